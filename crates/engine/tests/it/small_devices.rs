//! A device that is full of entries which newer ones hide: merges that fit make room, and one that
//! does not fit is not tried again and again.

use crate::simulated_database::{DIR, options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Db, Error, ErrorKind, Event, Options};
use windrow_env::testing::{Handles, Rng, env};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys that are written over and over, and the number written at once.
const KEYS: u64 = 1500;
const TOGETHER: u64 = 30;
const VALUE_BYTES: usize = 3000;

struct World {
    handles: Handles,
    rng: Rng,
    map: Map,
    begun: Arc<AtomicU64>,
    given_up: Arc<AtomicU64>,
    preset: &'static str,
}

impl World {
    fn new(seed: u64, preset: &'static str) -> World {
        let (_, handles) = env(seed);
        let (begun, given_up) = Default::default();
        World { handles, rng: Rng::new(seed), map: Map::new(), begun, given_up, preset }
    }

    fn options(&self) -> Options {
        let mut options = options(&self.handles);
        options.settings.preset = self.preset.to_owned();
        options.settings.file_bytes = 64 << 10;
        options.settings.compression = "none".to_owned();
        let (begun, given_up) = (self.begun.clone(), self.given_up.clone());
        options.components.listener = Some(Arc::new(move |event: &Event| match event {
            Event::MergeBegin { .. } => _ = begun.fetch_add(1, Ordering::Relaxed),
            Event::MergeEnd { error: Some(_), .. } => _ = given_up.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }));
        options
    }

    /// Ingests some keys in a row. Returns whether there was room.
    fn ingest(&mut self, db: &Db) -> bool {
        let from = self.rng.below(KEYS / TOGETHER) * TOGETHER;
        let mut value =
            || -> Vec<u8> { (0..VALUE_BYTES).map(|_| self.rng.below(256) as u8).collect() };
        let pairs: Vec<_> =
            (from..from + TOGETHER).map(|n| (format!("{n:06}").into_bytes(), value())).collect();
        let ingested = (|| -> Result<(), Error> {
            let mut ingest = db.ingest()?;
            pairs.iter().try_for_each(|(key, value)| ingest.put(key, value))?;
            ingest.finish().map(drop)
        })();
        match ingested {
            Ok(()) => self.map.extend(pairs),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                return false;
            }
        }
        true
    }

    fn run_jobs(&self) {
        self.handles.jobs.fire_timers();
        self.handles.jobs.run_until_idle();
    }
}

#[test]
fn what_newer_entries_hide_makes_room() {
    for (seed, preset) in (0..4).flat_map(|seed| ["windrow", "leveled"].map(|p| (seed, p))) {
        let what = format!("seed {seed}, {preset}");
        let mut world = World::new(seed, preset);
        let live = KEYS * VALUE_BYTES as u64;
        let db = Db::open_with(DIR, world.options()).unwrap();
        // Logs take some of it.
        world.handles.fs.set_capacity(Some(live * 2 + (3 << 20) + (seed << 19)));
        let mut done = 0;
        for _ in 0..600 {
            done += u64::from(world.ingest(&db));
            world.run_jobs();
        }
        // Several times the device: hidden entries were dropped.
        assert!(done > 400, "{what}: {done} ingestions of 600 found room");
        let (begun, given_up) = (&world.begun, &world.given_up);
        let (all, failed) = (begun.load(Ordering::Relaxed), given_up.load(Ordering::Relaxed));
        assert!(failed * 4 < all, "{what}: of {all} merges {failed} were given up");
        (0..20).for_each(|_| world.run_jobs());
        let idle = begun.load(Ordering::Relaxed);
        (0..50).for_each(|_| world.run_jobs());
        let more = begun.load(Ordering::Relaxed) - idle;
        assert!(more < 3, "{what}: {more} merges began where nothing changed");
        db.compact().unwrap_or_else(|error| panic!("{what}: {error}"));
        db.wait_idle().unwrap();
        let found: Map = db
            .iter()
            .map(|item| item.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
            .collect();
        assert!(found == world.map, "{what}");
        db.verify().unwrap().into_result().unwrap();
        db.close().unwrap();
    }
}
