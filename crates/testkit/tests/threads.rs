//! Several threads on one database, judged by their ledger: every state that is seen is a prefix of
//! the commits, a snapshot never changes, and no later read of a thread is older than an earlier one.

#![allow(clippy::disallowed_methods, reason = "the test is about real threads")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use windrow::{Db, Keyspace, WriteSync};
use windrow_testkit::ledger::{Ledger, within};
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::World;

const WRITERS: usize = 3;
const READERS: u64 = 2;
const BATCHES_PER_WRITER: u64 = 1_500;
/// A writer pauses after this number of batches until the readers have done
/// another round.
const BATCHES_PER_ROUND: u64 = 100;
/// Bytes of a value: memtables fill.
const VALUE_BYTES: usize = 200;

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

fn write(db: &Db, spaces: &[Keyspace; 2], ledger: &Ledger, writer: usize, readers: &Readers) {
    for number in 0..BATCHES_PER_WRITER {
        readers.wait_for(number / BATCHES_PER_ROUND);
        let sync = if number % 50 == 0 { WriteSync::Yes } else { WriteSync::No };
        ledger.write(db, spaces, writer, sync).expect("write");
        ledger.read_own(spaces, writer).expect("get");
    }
}

fn read(db: &Db, spaces: &[Keyspace; 2], ledger: &Ledger, done: &AtomicBool, readers: &Readers) {
    let _reader = Reader(readers);
    let mut seen = vec![0; WRITERS];
    while !done.load(Ordering::Relaxed) {
        let before = ledger.acknowledged();
        let snapshot = db.snapshot();
        let now = ledger.observe(spaces, &snapshot).expect("observe");
        within("a snapshot", &before, &now, &ledger.attempted());
        within("a later snapshot", &seen, &now, &ledger.attempted());
        // Reads the snapshot again, while the writers go on.
        let again = ledger.observe(spaces, &snapshot).expect("observe");
        assert_eq!(again, now, "a snapshot changed");
        seen = now;
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
        let spaces = [db.default_keyspace(), db.keyspace("other").expect("keyspace")];
        let ledger = Ledger::new(WRITERS, VALUE_BYTES);
        let (done, readers) = (AtomicBool::new(false), Readers::default());
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|w| {
                    scope.spawn({
                        let (db, spaces, ledger, readers) = (&db, &spaces, &ledger, &readers);
                        move || write(db, spaces, ledger, w, readers)
                    })
                })
                .collect();
            for _ in 0..READERS {
                scope.spawn(|| read(&db, &spaces, &ledger, &done, &readers));
            }
            let results: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            results.into_iter().for_each(|r| r.expect("a writer"));
        });
        let rounds = readers.rounds.load(Ordering::Relaxed);
        assert!(BATCHES_PER_WRITER / BATCHES_PER_ROUND <= rounds + 1, "{rounds} rounds of reading");
        db.wait_idle().expect("wait");
        db.verify().and_then(|r| r.into_result()).expect("verify");
        let last = ledger.observe(&spaces, &db.snapshot()).expect("observe");
        assert_eq!(last, [BATCHES_PER_WRITER; WRITERS]);
        db.close().expect("close");
    }
}
