//! Several threads on one database: a batch is seen whole or not at all, a
//! snapshot never changes, and no later read of a thread is older than an
//! earlier one.

#![allow(clippy::disallowed_methods, reason = "the test is about real threads")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use windrow::{Batch, Db, Keyspace, Snapshot, WriteSync};
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::World;

const WRITERS: u64 = 3;
const READERS: u64 = 2;
const BATCHES_PER_WRITER: u64 = 1_500;
/// A writer pauses after this number of batches until the readers have done
/// another round.
const BATCHES_PER_ROUND: u64 = 100;
/// Keys that each batch sets, in each of two keyspaces.
const KEYS: u64 = 8;

/// A value large enough that memtables fill, and distinct.
fn value(writer: u64, number: u64) -> Vec<u8> {
    format!("{writer:02}-{number:08}-").into_bytes().repeat(6)
}

fn key(writer: u64, index: u64) -> String {
    format!("w{writer}-k{index}")
}

/// Returns the one value that all of a writer's keys have at a snapshot; `None`
/// before its first batch.
fn consistent(spaces: [&Keyspace; 2], snapshot: &Snapshot, writer: u64) -> Option<Vec<u8>> {
    let prefix = format!("w{writer}-");
    let first = spaces[0].get_at(snapshot, key(writer, 0)).expect("get").map(|v| v.to_vec());
    for space in spaces {
        let forward: Vec<_> =
            space.prefix_at(snapshot, &prefix).map(|i| i.expect("scan")).collect();
        let want = if first.is_some() { KEYS as usize } else { 0 };
        assert_eq!(forward.len(), want, "a batch is there in part");
        let back: Vec<_> =
            space.prefix_at(snapshot, &prefix).rev().map(|i| i.expect("scan")).collect();
        assert!(forward.iter().eq(back.iter().rev()), "both ways show the same");
        for (key, value) in &forward {
            assert_eq!(Some(&value[..]), first.as_deref(), "a batch is there in part");
            let got = space.get_at(snapshot, key).expect("get");
            assert_eq!(got.as_deref(), first.as_deref());
        }
    }
    first
}

/// The progress of the readers.
#[derive(Default)]
struct Readers {
    rounds: AtomicU64,
    panicked: AtomicBool,
}

impl Readers {
    /// Waits until the readers have done `rounds` rounds, however slow they
    /// are.
    fn wait_for(&self, rounds: u64) {
        while self.rounds.load(Ordering::Relaxed) < rounds && !self.panicked.load(Ordering::Relaxed)
        {
            thread::yield_now();
        }
    }
}

/// Tells the writers, which wait for a reader, that the reader is gone.
struct Reader<'a>(&'a Readers);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.panicked.fetch_or(thread::panicking(), Ordering::Relaxed);
    }
}

fn write(db: &Db, other: &Keyspace, writer: u64, readers: &Readers) {
    for number in 0..BATCHES_PER_WRITER {
        readers.wait_for(number / BATCHES_PER_ROUND);
        let mut batch = Batch::new();
        let value = value(writer, number);
        for index in 0..KEYS {
            batch.put(db, key(writer, index), &value);
            batch.put(other, key(writer, index), &value);
        }
        let sync = if number % 50 == 0 { WriteSync::Yes } else { WriteSync::No };
        db.write(batch, sync).expect("write");
        // A thread sees its own write at once.
        let got = db.get(key(writer, number % KEYS)).expect("get");
        assert_eq!(got.as_deref(), Some(&value[..]));
    }
}

fn read(db: &Db, other: &Keyspace, done: &AtomicBool, readers: &Readers) {
    let _reader = Reader(readers);
    let default = db.default_keyspace();
    let mut seen: Vec<Option<Vec<u8>>> = vec![None; WRITERS as usize];
    while !done.load(Ordering::Relaxed) {
        let snapshot = db.snapshot();
        for writer in 0..WRITERS {
            let now = consistent([&default, other], &snapshot, writer);
            let last = &mut seen[writer as usize];
            assert!(*last <= now, "time ran backwards");
            *last = now;
        }
        // Reads the snapshot again, while the writers go on.
        for writer in 0..WRITERS {
            let again = consistent([&default, other], &snapshot, writer);
            assert_eq!(again, seen[writer as usize], "a snapshot changed");
        }
        readers.rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn batches_are_whole_and_snapshots_do_not_change() {
    for variant in VARIANTS.iter().filter(|v| ["threads", "system files"].contains(&v.name)) {
        let world = World::new(variant.ground, 1);
        let mut options = variant.options().expect("options");
        options.components.env = Some(world.env());
        let db = Db::open_with(world.dir(), options).expect("open");
        let other = db.keyspace("other").expect("keyspace");
        let (done, readers) = (AtomicBool::new(false), Readers::default());
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|w| {
                    scope.spawn({
                        let (db, other, readers) = (&db, &other, &readers);
                        move || write(db, other, w, readers)
                    })
                })
                .collect();
            for _ in 0..READERS {
                scope.spawn(|| read(&db, &other, &done, &readers));
            }
            let results: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            results.into_iter().for_each(|r| r.expect("a writer"));
        });
        let rounds = readers.rounds.load(Ordering::Relaxed);
        assert!(BATCHES_PER_WRITER / BATCHES_PER_ROUND <= rounds + 1, "{rounds} rounds of reading");
        db.wait_idle().expect("wait");
        db.verify().and_then(|r| r.into_result()).expect("verify");
        for writer in 0..WRITERS {
            let last = consistent([&db.default_keyspace(), &other], &db.snapshot(), writer);
            assert_eq!(last, Some(value(writer, BATCHES_PER_WRITER - 1)));
        }
        db.close().expect("close");
    }
}
