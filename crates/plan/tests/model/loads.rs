//! A load into an empty tree: partitions exist from the first flush on, and a first flush that
//! misleads about where keys are costs little. `--nocapture` prints the figures.
//!
//! A file is 64 entries, a memtable 8 files.

use super::sim::{Entry, Random, Sim};
use std::collections::BTreeSet;
use windrow_plan::{PlanSettings, Policy};

const FILE: u64 = 64;
const MEMTABLE: u64 = 8 * FILE;
const KEYS: u64 = 200_000;

#[derive(Debug)]
struct Load {
    /// Entries written per entry flushed, over all.
    written: f64,
    /// The largest job of the first eight memtables and of those after, read and
    /// written, in memtables.
    largest: [f64; 2],
    /// How often boundaries changed, and how many there are.
    changes: usize,
    boundaries: usize,
}

/// Loads 24 memtables of random keys after these flushes.
fn load(policy: &str, first: &[Vec<u32>]) -> Load {
    let mut sim = Sim::new(Policy::parse(policy).unwrap());
    sim.settings = PlanSettings {
        file_bytes: FILE,
        memtable_bytes: MEMTABLE,
        level_base_bytes: 17 * MEMTABLE,
        ..PlanSettings::default()
    };
    let mut random = Random(3);
    let mut largest = [0; 2];
    let mut seen = BTreeSet::new();
    for flush in 0..24 + first.len() {
        let drawn = || (0..MEMTABLE).map(|_| random.below(KEYS) as u32).collect();
        let keys = first.get(flush).cloned().unwrap_or_else(drawn);
        let entries: Vec<_> = keys.into_iter().map(|key| (key, Entry::Put(1))).collect();
        sim.flush_keys(&entries);
        seen.insert(sim.version.boundaries.to_vec());
        loop {
            let done = |sim: &Sim| sim.merged_entries + sim.read_entries;
            let before = done(&sim);
            if !sim.start_pick() {
                break;
            }
            sim.finish(0);
            let most = &mut largest[usize::from(flush >= 8 + first.len())];
            *most = done(&sim).saturating_sub(before).max(*most);
        }
    }
    let written = (sim.flushed_entries + sim.merged_entries) as f64;
    let load = Load {
        written: written / sim.flushed_entries as f64,
        largest: largest.map(|job| job as f64 / MEMTABLE as f64),
        changes: seen.len() - 1,
        boundaries: sim.version.boundaries.len(),
    };
    println!("{policy}, after {} flushes: {load:.2?}", first.len());
    load
}

/// With the first flushes uncut, the largest job was of ten memtables.
#[test]
fn partitions_exist_from_the_first_flush_on() {
    for policy in ["windrow", "leveled level0=partitioned(lanes=16,k=4)"] {
        let load = load(policy, &[]);
        assert!(load.largest[0] < 1.5, "{policy}: {load:?}");
        assert!(load.changes <= 3, "{policy}: {load:?}");
    }
}

/// Uncut, they left jobs of ten memtables.
#[test]
fn a_wrong_first_flush_costs_little() {
    let right = load("windrow", &[]);
    let tenth = |n: u32| n * (KEYS / 10) as u32;
    let wrong: [(&str, Vec<Vec<u32>>); 4] = [
        ("in order", vec![(0..MEMTABLE as u32).map(|n| tenth(1) + n).collect()]),
        ("one prefix", vec![(0..MEMTABLE as u32).map(|n| tenth(4) + n * 16).collect()]),
        ("three keys", vec![(0..MEMTABLE as u32).map(|n| tenth(3 * (n % 3))).collect()]),
        ("small ones", (0..5).map(|i| (0..50).map(|n| n * 3999 + i).collect()).collect()),
    ];
    for (what, first) in wrong {
        println!("{what}:");
        let load = load("windrow", &first);
        assert!(load.written <= right.written * 1.1, "{what}: {load:?}");
        assert!(load.largest[0] <= 2.5, "{what}: {load:?}");
        assert!(load.changes <= 3, "{what}: {load:?}");
        assert!(load.largest[1] <= right.largest[1] * 2.0, "{what}: {load:?}");
        assert!(load.boundaries >= right.boundaries / 2, "{what}: {load:?}");
    }
}
