//! Every workload on Windrow and on a map: the same answers and contents. And
//! stores that answer wrongly, each in its way: the run must say so.
//!
//! Owns: the map as a store, and its faults. Never does: compare speeds.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a store that is no database, and directories of tests"
)]

use super::*;
use crate::store::{Abilities, Counters, OnEntry, OnValue, Sync, Tree, Write};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The fault that a map's answers get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapFault {
    None,
    /// One put in a thousand is lost.
    LostPut,
    /// One overwrite in a hundred is lost.
    StaleValue,
    /// One get in seven has another byte in its value.
    Flip,
    /// Gets find every key.
    Ghost,
    /// Scans run backwards.
    Backwards,
}

type Open = fn(&Path, &Common) -> Result<Box<dyn Store>>;
type Map = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

/// A map as a store.
struct Model {
    map: Mutex<Map>,
    fault: MapFault,
    calls: AtomicU64,
}

impl Model {
    fn map(&self) -> std::sync::MutexGuard<'_, Map> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn every(&self, fault: MapFault, calls: u64) -> bool {
        self.fault == fault
            && (self.calls.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(calls)
    }
}

/// The contents of the databases of this process's models between openings.
static KEPT: Mutex<BTreeMap<PathBuf, Map>> = Mutex::new(BTreeMap::new());

struct Opened {
    model: Model,
    dir: PathBuf,
}

fn open(dir: &Path, fault: MapFault) -> Result<Box<dyn Store>> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).remove(dir).unwrap_or_default();
    let model = Model { map: Mutex::new(kept), fault, calls: AtomicU64::new(0) };
    Ok(Box::new(Opened { model, dir: dir.to_owned() }))
}

impl Store for Opened {
    fn put(&self, space: u32, key: &[u8], value: &[u8], _: Sync) -> Result<()> {
        if self.model.every(MapFault::LostPut, 1000) {
            return Ok(());
        }
        let mut map = self.model.map();
        let is_old = map.contains_key(&(space, key.to_vec()));
        if !(is_old && self.model.every(MapFault::StaleValue, 100)) {
            map.insert((space, key.to_vec()), value.to_vec());
        }
        Ok(())
    }

    fn put_for(&self, space: u32, key: &[u8], value: &[u8], _: u64) -> Result<()> {
        self.put(space, key, value, Sync::No)
    }

    fn delete(&self, space: u32, key: &[u8], _: Sync) -> Result<()> {
        self.model.map().remove(&(space, key.to_vec()));
        Ok(())
    }

    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
        writes.iter().try_for_each(|write| match *write {
            Write::Put { space, key, value } => self.put(space, key, value, sync),
            Write::Delete { space, key } => self.delete(space, key, sync),
        })
    }

    fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        match self.model.map().get(&(space, key.to_vec())) {
            Some(found) => value.extend_from_slice(found),
            None => return Ok(self.model.fault == MapFault::Ghost),
        }
        if self.model.every(MapFault::Flip, 7) {
            value[50] ^= 1;
        }
        Ok(true)
    }

    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
        let mut value = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            let found = self.get(space, key, &mut value)?;
            each(place, found.then_some(value.as_slice()));
        }
        Ok(())
    }

    fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
        let map = self.model.map();
        let range = (space, from.to_vec())..(space + 1, Vec::new());
        let mut met: Vec<_> = map.range(range).take(entries.try_into()?).collect();
        if self.model.fault == MapFault::Backwards {
            met.reverse();
        }
        met.iter().for_each(|((_, key), value)| each(key, value));
        Ok(met.len() as u64)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn tree(&self) -> Tree {
        Tree::default()
    }

    fn statistics(&self) -> String {
        String::new()
    }

    fn close(self: Box<Self>) -> Result<()> {
        let map = std::mem::take(&mut *self.model.map());
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(self.dir, map);
        Ok(())
    }
}

const ENGINES: &[Engine] = &[store::windrow::ENGINE, MODEL];

const MODEL: Engine = Engine {
    name: "model",
    version: String::new,
    abilities: Abilities { direct_io: true, expiry: false, lz4: false, transactions: false },
    tuning: "",
    variants: &[],
    open: |dir, _| open(dir, MapFault::None),
};

/// Returns the lines of all phases of a workload but those of the open loop,
/// records and operations cut to a share.
fn lines_of(engines: &[Engine], name: &str, contender: &str) -> Result<Vec<record::PhaseLine>> {
    let text = workload::builtin(name).expect("a workload").to_owned();
    let phases = workload::parse(name, &text, Scale::Quick)?[0].phases.len();
    let dir = tempfile::tempdir()?;
    let unit = Unit {
        workload: name.to_owned(),
        file: name.to_owned(),
        text,
        scale: "quick".to_owned(),
        seed: 5,
        contender: contender.to_owned(),
        round: 1,
        phases: (0, phases),
        dir: dir.path().join("data"),
        setup: Setup { background_threads: 2, ..Setup::default() },
        rates_per_s: BTreeMap::new(),
    };
    std::fs::create_dir_all(&unit.dir)?;
    lines(engines, &unit)
}

#[test]
fn windrow_answers_as_a_map_does() {
    for name in
        ["queue", "ycsb", "keyspaces", "fillsync", "synced", "clustered", "skewed_latest", "cached"]
    {
        let theirs = lines_of(ENGINES, name, "model").unwrap();
        let ours = lines_of(ENGINES, name, "windrow").unwrap();
        assert_eq!(ours.len(), theirs.len());
        let mut compared = 0;
        for (a, b) in ours.iter().zip(&theirs) {
            assert_eq!((&a.phase, a.ops), (&b.phase, b.ops), "{name}");
            assert_eq!(a.answers, b.answers, "{name}, {}: answers", a.phase);
            assert_eq!(a.contents, b.contents, "{name}, {}: contents", a.phase);
            compared += usize::from(a.answers.is_some()) + usize::from(a.contents.is_some());
            assert!(a.figures["kops_per_s"] > 0.0, "{name}, {}", a.phase);
            assert!(!a.latencies.is_empty(), "{name}, {}", a.phase);
        }
        assert!(compared > 0, "{name}: nothing was compared");
    }
}

/// Rounds overwrite in one database what the round before has written.
#[test]
fn a_round_finds_the_values_of_the_one_before() {
    const TEXT: &str = r#"
        title = "rounds"
        family = "tests"
        about = "rounds after one load"
        rounds = 3
        phase = [
            { name = "load", once = true, mix = { insert = 1 } },
            { name = "write", ops = 20, mix = { put = 1 } },
            { name = "read", ops = 2_000, mix = { get = 50, put = 50 } },
        ]
        [data]
        records = 2_000
        value_bytes = "100"
        [store]
        memory_mib = 8
    "#;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    for (round, phases) in [(0, (0, 1)), (1, (1, 3)), (2, (1, 3)), (3, (1, 3))] {
        let unit = Unit {
            workload: "rounds".to_owned(),
            file: "rounds".to_owned(),
            text: TEXT.to_owned(),
            scale: "quick".to_owned(),
            seed: 5,
            contender: "windrow".to_owned(),
            round,
            phases,
            dir: data.clone(),
            setup: Setup { background_threads: 2, ..Setup::default() },
            rates_per_s: BTreeMap::new(),
        };
        let lines = lines(ENGINES, &unit).unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert_eq!(lines.len(), phases.1 - phases.0);
    }
}

#[test]
fn wrong_answers_are_noticed() {
    let right = |name| lines_of(ENGINES, name, "model").unwrap();
    let faulty: [(MapFault, Open); 5] = [
        (MapFault::LostPut, |dir, _| open(dir, MapFault::LostPut)),
        (MapFault::StaleValue, |dir, _| open(dir, MapFault::StaleValue)),
        (MapFault::Flip, |dir, _| open(dir, MapFault::Flip)),
        (MapFault::Ghost, |dir, _| open(dir, MapFault::Ghost)),
        (MapFault::Backwards, |dir, _| open(dir, MapFault::Backwards)),
    ];
    let sums = |lines: &[record::PhaseLine]| -> Vec<_> {
        lines.iter().map(|line| (line.answers.clone(), line.contents.clone())).collect()
    };
    for (fault, open) in faulty {
        let name = if fault == MapFault::StaleValue { "skewed_latest" } else { "cached" };
        let engine = Engine { name: "faulty", open, ..MODEL };
        // Either an operation fails, or a checksum differs from the right one.
        if let Ok(lines) = lines_of(&[engine], name, "faulty") {
            assert_ne!(sums(&lines), sums(&right(name)), "{fault:?}");
        }
    }
}
