//! Followers that are too far behind: the files kept for them are bounded. They show their state,
//! or report that it is gone, or show the newest state; never anything else.

use crate::simulated_database::{DIR, options};
use std::collections::BTreeMap;
use std::path::Path;
use windrow::{Db, ErrorKind, Follower, Options};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, Rng, When, env};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const KEEP_BYTES: u64 = 1 << 20;

struct World {
    handles: Handles,
    rng: Rng,
    writer: Db,
    map: Map,
}

fn writer_options(handles: &Handles) -> Options {
    let mut options = options(handles);
    options.settings.followers_keep_bytes = KEEP_BYTES;
    options
}

impl World {
    fn new(seed: u64) -> World {
        let (_, handles) = env(seed);
        let writer = Db::open_with(DIR, writer_options(&handles)).unwrap();
        let mut world = World { handles, rng: Rng::new(seed), writer, map: Map::new() };
        world.write(KEEP_BYTES / 8);
        world
    }

    fn follow(&self) -> Follower {
        Follower::open_with(DIR, options(&self.handles)).unwrap()
    }

    /// Writes about `bytes`, over and over the same keys, and merges all of it.
    fn write(&mut self, bytes: u64) {
        let mut written = 0;
        while written < bytes {
            let key = format!("key{:03}", self.rng.below(200)).into_bytes();
            let mut value = vec![0; 100 + self.rng.below(900) as usize];
            value.iter_mut().for_each(|byte| *byte = self.rng.below(256) as u8);
            written += value.len() as u64;
            self.writer.put(&key, &value).unwrap();
            self.map.insert(key, value);
        }
        self.writer.compact().unwrap();
        self.look();
    }

    /// Makes the writer look for readers.
    fn look(&self) {
        self.handles.jobs.fire_timers();
        self.handles.jobs.run_until_idle();
    }

    fn reopen(&mut self) {
        self.writer.close().unwrap();
        self.writer = Db::open_with(DIR, writer_options(&self.handles)).unwrap();
        self.look();
    }

    fn names(&self, part: &str) -> Vec<String> {
        let mut names = self.handles.fs.files(Path::new(DIR));
        names.retain(|name| name.contains(part));
        names
    }

    /// Bytes of tables and logs.
    fn bytes(&self) -> u64 {
        let bytes = |name: &String| {
            self.handles.fs.read_file(&Path::new(DIR).join(name)).map_or(0, |file| file.len())
        };
        let files = [self.names(".sst"), self.names(".wal")].concat();
        files.iter().map(bytes).sum::<usize>() as u64
    }
}

/// Checks that a state shows the map, or an error that says it is gone. Returns whether all of it
/// was there.
fn holds(db: &Db, map: &Map, what: &str) -> bool {
    let gone = |error: &windrow::Error| {
        assert_eq!(error.kind(), ErrorKind::Closed, "{what}: {error}");
        assert!(error.message().contains("refresh the follower"), "{what}: {error}");
    };
    let mut is_whole = true;
    for (key, value) in map.iter().step_by(11) {
        match db.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..]), "{what}"),
            Err(error) => (gone(&error), is_whole = false).0,
        }
    }
    let mut wanted = map.iter();
    for item in db.iter() {
        match item {
            Ok((key, value)) => {
                let found = (key.to_vec(), value.to_vec());
                let wanted = wanted.next().map(|(k, v)| (k.clone(), v.clone()));
                assert!(Some(found) == wanted, "{what}");
            }
            Err(error) => {
                gone(&error);
                return false;
            }
        }
    }
    assert!(wanted.next().is_none(), "{what}: the end came too early");
    match db.verify() {
        Ok(report) => report.into_result().map(|_| is_whole).unwrap(),
        Err(error) => (gone(&error), false).1,
    }
}

#[test]
fn a_stopped_follower_keeps_so_much_and_is_told_what_it_missed() {
    let mut lost = 0;
    for seed in 0..12 {
        let mut world = World::new(seed);
        let follower = world.follow();
        let (then, before) = (world.map.clone(), follower.db());
        // On even seeds it has read a part, whose tables stay open and are read again.
        assert!(seed % 2 > 0 || holds(&before, &then, "before"));
        for round in 0..10 {
            world.write(KEEP_BYTES / 2);
            let bytes = world.bytes();
            assert!(bytes < 4 * KEEP_BYTES, "seed {seed}, round {round}: {bytes} bytes");
            if seed % 3 == 0 {
                holds(&before, &then, &format!("seed {seed}, round {round}"));
            }
        }
        assert_eq!(world.writer.stats().files_waiting, 0, "seed {seed}");
        lost += u32::from(!holds(&before, &then, &format!("seed {seed}, at the end")));
        if seed % 4 == 0 {
            world.reopen();
        }
        let copied = follower.checkpoint("/late");
        assert!(
            copied.as_ref().is_ok_and(|()| false)
                || copied.unwrap_err().kind() == ErrorKind::Closed
        );
        assert!(follower.refresh().unwrap(), "seed {seed}");
        assert!(holds(&follower.db(), &world.map, "refreshed"), "seed {seed}");
        assert!(!follower.refresh().unwrap(), "seed {seed}");
        follower.checkpoint("/copy").unwrap();
        let copy = Db::open_with("/copy", options(&world.handles)).unwrap();
        assert!(holds(&copy, &world.map, "the copy"), "seed {seed}");
        // Files are kept for it again, up to the bound.
        let (then, again) = (world.map.clone(), follower.db());
        world.write(KEEP_BYTES / 4);
        assert!(holds(&again, &then, "kept again"), "seed {seed}");
    }
    assert!(lost > 3, "{lost}: nothing was gone, and nothing is tested");
}

#[test]
fn the_one_that_is_furthest_behind_goes_and_the_others_stay() {
    for seed in 0..6 {
        let mut world = World::new(seed);
        let (stopped, follows) = (world.follow(), world.follow());
        let then = world.map.clone();
        for _ in 0..10 {
            world.write(KEEP_BYTES / 4);
            follows.refresh().unwrap();
            assert!(holds(&follows.db(), &world.map, "it follows"), "seed {seed}");
        }
        let (mine, map) = (follows.db(), world.map.clone());
        world.write(KEEP_BYTES / 4);
        assert!(holds(&mine, &map, "it still has its state"), "seed {seed}");
        assert!(!holds(&stopped.db(), &then, "it is left behind"), "seed {seed}");
        // Its place is below that of the other, which is found nevertheless.
        assert_eq!(world.names("READER"), ["READER-000001"], "seed {seed}");
        assert!(stopped.refresh().unwrap());
        assert_eq!(world.names("READER"), ["READER-000000", "READER-000001"]);
        world.reopen();
        assert!(holds(&stopped.db(), &world.map, "after a reopen"), "seed {seed}");
        assert!(holds(&mine, &map, "after a reopen"), "seed {seed}");
    }
}

/// The writer goes on, and takes the lease away, in the middle of the follower's work.
#[test]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "another process is another thread here"
)]
fn a_lease_that_goes_in_the_middle_of_an_open_a_refresh_or_a_copy_does_no_harm() {
    let whens = [("MANIFEST", 0), ("MANIFEST", 1), (".wal", 0), (".wal", 1), (".sst", 0)];
    for (case, (part, nth)) in (0..3).flat_map(|case| whens.map(|when| (case, when))) {
        let mut world = World::new(case);
        let follower = (case > 0).then(|| world.follow());
        world.write(KEEP_BYTES / 4);
        world.writer.put("tail", "1").unwrap();
        world.map.insert(b"tail".to_vec(), b"1".to_vec());
        if let (2, Some(follower)) = (case, &follower) {
            follower.refresh().unwrap();
        }
        let before = world.map.clone();
        let map = std::sync::Arc::new(std::sync::Mutex::new(before.clone()));
        let (writer, handles, shared) = (world.writer.clone(), world.handles.clone(), map.clone());
        world.handles.fs.before_open(part, nth, move || {
            let act = move || {
                let rng = Rng::new(1);
                let mut goes_on =
                    World { handles, rng, writer, map: shared.lock().unwrap().clone() };
                (0..3).for_each(|_| goes_on.write(KEEP_BYTES));
                *shared.lock().unwrap() = goes_on.map.clone();
            };
            std::thread::spawn(act).join().unwrap();
        });
        let what = format!("case {case}, at {part} {nth}");
        let now = || map.lock().unwrap().clone();
        match case {
            0 => _ = holds(&world.follow().db(), &now(), &what),
            1 => {
                let follower = follower.as_ref().unwrap();
                follower.refresh().unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(holds(&follower.db(), &now(), &what) || part == ".sst", "{what}");
            }
            _ => match follower.as_ref().unwrap().checkpoint("/copy") {
                Err(error) => assert_eq!(error.kind(), ErrorKind::Closed, "{what}: {error}"),
                Ok(()) => {
                    let copy = Db::open_with("/copy", options(&world.handles)).unwrap();
                    assert!(holds(&copy, &before, &what), "{what}");
                }
            },
        }
        let follower = follower.unwrap_or_else(|| world.follow());
        follower.refresh().unwrap();
        assert!(holds(&follower.db(), &now(), &what), "{what}");
    }
}

/// At any failure or death of the writer meanwhile, the follower is right or gets an error.
#[test]
fn a_writer_that_fails_or_dies_while_it_lets_a_follower_go_does_no_harm() {
    let cases = [("READER", 0), (".sst", 0), (".sst", 1), (".sst", 5), (".wal", 0), ("", 2)];
    for (seed, (path, nth)) in (0..4).flat_map(|seed| cases.map(|case| (seed, case))) {
        let mut world = World::new(seed);
        let follower = world.follow();
        let (then, before) = (world.map.clone(), follower.db());
        let what = format!("seed {seed}, at {path} {nth}");
        let fault = Fault::new(FaultKind::Io, Ops::REMOVE, When::MatchingFrom(nth)).on_path(path);
        let fault = world.handles.fs.inject(fault);
        (0..3).for_each(|_| world.write(KEEP_BYTES));
        holds(&before, &then, &what);
        world.handles.fs.remove_fault(fault);
        world.reopen();
        holds(&before, &then, &format!("{what}, after a reopen"));
        follower.refresh().unwrap();
        assert!(holds(&follower.db(), &world.map, &what), "{what}");
        world.write(KEEP_BYTES / 8);
        let bytes = world.bytes();
        assert!(bytes < 4 * KEEP_BYTES, "{what}: {bytes} bytes");
    }
}

#[test]
fn leases_of_readers_that_are_gone_are_removed() {
    let mut world = World::new(1);
    let followers: Vec<Follower> = (0..3).map(|_| world.follow()).collect();
    assert_eq!(world.names("READER").len(), 3);
    let mut followers = followers.into_iter();
    drop(followers.next());
    world.look();
    assert_eq!(world.names("READER"), ["READER-000001", "READER-000002"]);
    let last = followers.nth(1).unwrap();
    drop(followers);
    world.look();
    assert_eq!(world.names("READER"), ["READER-000002"]);
    let then = world.map.clone();
    world.reopen();
    world.write(KEEP_BYTES / 16);
    assert!(world.writer.stats().files_waiting > 0, "a writer that has begun later finds it");
    assert!(holds(&last.db(), &then, "it is kept for"));
    drop(last);
    world.reopen();
    assert_eq!(world.names("READER"), [""; 0]);
    // Without a writer the lease stays, until there is one.
    world.writer.close().unwrap();
    drop(world.follow());
    assert_eq!(world.names("READER").len(), 1);
    world.writer = Db::open_with(DIR, writer_options(&world.handles)).unwrap();
    assert_eq!(world.names("READER"), [""; 0]);
}
