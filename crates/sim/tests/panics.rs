//! A panic in the background turns writing off and is reported (P24): one fault point for every
//! kind of job that the engine starts, and one for the work of a compaction on the thread that
//! asked for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windrow::{CompactionFilter, Db, ErrorKind, FilterDecision, Options, WriteSync};
use windrow_env::jobs::Urgency;
use windrow_env::testing::{Fault, FaultKind, Handles, ManualClock, Ops, When, env};
use windrow_env::{Clock, Env};
use windrow_testkit::variant::Variant;
use windrow_testkit::world::DIR;

/// Rounds of writing within which a merge and a removal must happen.
const ROUNDS_MAX: u32 = 200;

/// A manual clock that panics on request.
struct Clockwork {
    inner: Arc<ManualClock>,
    broken: AtomicBool,
}

impl Clock for Clockwork {
    fn wall_ms(&self) -> u64 {
        assert!(!self.broken.load(Ordering::SeqCst), "a fault in the clock (simulated)");
        self.inner.wall_ms()
    }

    fn monotonic_ns(&self) -> u64 {
        self.inner.monotonic_ns()
    }

    fn sleep_ns(&self, ns: u64) {
        self.inner.sleep_ns(ns);
    }
}

/// A compaction filter that panics on request.
#[derive(Default)]
struct Strainer {
    broken: AtomicBool,
}

impl CompactionFilter for Strainer {
    fn name(&self) -> &str {
        "strainer"
    }

    fn filter(&self, _level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        assert!(!self.broken.load(Ordering::SeqCst), "a fault in the filter (simulated)");
        FilterDecision::Keep
    }
}

/// A database with one durable entry, and the parts of its world that a test may break.
struct Scenario {
    db: Db,
    handles: Handles,
    clock: Arc<Clockwork>,
    strainer: Arc<Strainer>,
}

fn options(env: Env) -> Options {
    let mut options = Variant::named("shallow level 0").options().expect("options");
    options.settings.set("wal_sync_interval_ms", "10").expect("a setting");
    options.components.env = Some(env);
    options
}

impl Scenario {
    fn new() -> Scenario {
        let (env, handles) = env(1);
        let broken = AtomicBool::new(false);
        let clock = Arc::new(Clockwork { inner: handles.clock.clone(), broken });
        let env = Env { clock: clock.clone(), ..env };
        let strainer = Arc::new(Strainer::default());
        let mut options = options(env);
        options.components.compaction_filters.push(("default".to_owned(), strainer.clone()));
        let db = Db::open_with(DIR, options).expect("open");
        db.put_with("a", "1", WriteSync::Yes).expect("put");
        Scenario { db, handles, clock, strainer }
    }

    fn panic_at(&self, on: Ops, path: &str) {
        let fault = Fault::new(FaultKind::Panic, on, When::MatchingFrom(0));
        self.handles.fs.inject(fault.on_path(path));
    }

    /// Writes and flushes until only merges are queued.
    fn queue_merges_only(&self) {
        let jobs = &self.handles.jobs;
        for round in 0..ROUNDS_MAX {
            self.db.put(format!("key{round}"), vec![b'v'; 2000]).expect("put");
            self.db.flush().expect("flush");
            let queued = jobs.queued_of(Urgency::Normal);
            if queued > 0 && queued == jobs.queued() {
                return;
            }
        }
        panic!("{ROUNDS_MAX} rounds queue no merge alone");
    }

    /// Checks that the panic has turned writing off, and only writing.
    fn check(self, what: &str) {
        let Scenario { db, handles, clock, .. } = self;
        assert_eq!(handles.jobs.panics(), 0, "{what}: the panic went past the engine");
        let cause =
            db.write_error().unwrap_or_else(|| panic!("{what}: there is no background error"));
        assert!(cause.to_string().contains("panicked: a fault"), "{what}: {cause}");
        let refused = db.put("b", "2").expect_err("a write after the panic");
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{what}");
        assert!(refused.to_string().contains("panicked"), "{what}: {refused}");
        clock.broken.store(false, Ordering::SeqCst);
        handles.fs.clear_faults();
        assert_eq!(db.get("a").expect("get").as_deref(), Some(&b"1"[..]), "{what}");
        assert_eq!(db.wait_idle().expect_err("idle").kind(), ErrorKind::ReadOnly, "{what}");
        assert_eq!(db.close().expect_err("close").kind(), ErrorKind::ReadOnly, "{what}");
        drop(db);
        handles.fs.crash(1);
        let handles = handles.reborn(2);
        let db = Db::open_with(DIR, options(handles.env())).expect("open again");
        assert_eq!(db.get("a").expect("get").as_deref(), Some(&b"1"[..]), "{what}");
        db.close().expect("close");
    }
}

#[test]
fn in_a_flush() {
    let scenario = Scenario::new();
    scenario.panic_at(Ops::CREATE, ".sst");
    assert_eq!(scenario.db.flush().expect_err("flush").kind(), ErrorKind::ReadOnly);
    scenario.check("flush");
}

#[test]
fn in_making_a_log() {
    let scenario = Scenario::new();
    // The next log is made once the memtable is partly full.
    let mut rounds = 0..10_000;
    while scenario.handles.jobs.queued_of(Urgency::High) == 0 && rounds.next().is_some() {
        scenario.db.put("b", vec![0; 1_000]).expect("put");
    }
    assert!(scenario.handles.jobs.queued_of(Urgency::High) > 0, "a log is queued");
    scenario.panic_at(Ops::CREATE, ".wal");
    scenario.handles.jobs.run_until_idle();
    scenario.check("log");
}

#[test]
fn in_a_merge() {
    let scenario = Scenario::new();
    scenario.queue_merges_only();
    scenario.panic_at(Ops::ALL, "");
    scenario.handles.jobs.run_until_idle();
    scenario.check("merge");
}

#[test]
fn in_removing_files() {
    let scenario = Scenario::new();
    // Only clean-up removes files once the database is open.
    scenario.panic_at(Ops::REMOVE, "");
    let mut rounds = 0..ROUNDS_MAX;
    while scenario.db.write_error().is_none() && rounds.next().is_some() {
        scenario.db.put("b", "0").expect("put");
        let _ = scenario.db.flush();
        scenario.handles.jobs.run_until_idle();
    }
    scenario.check("removal");
}

#[test]
fn in_the_timer_that_looks_for_work() {
    let scenario = Scenario::new();
    scenario.handles.jobs.run_until_idle();
    scenario.clock.broken.store(true, Ordering::SeqCst);
    scenario.handles.jobs.fire_timers();
    scenario.check("the timer of idle databases");
}

#[test]
fn in_the_timer_that_syncs_the_log() {
    let scenario = Scenario::new();
    scenario.handles.jobs.run_until_idle();
    scenario.db.put("c", "3").expect("put");
    scenario.panic_at(Ops::SYNC, ".wal");
    scenario.handles.jobs.fire_timers();
    scenario.check("the timer that syncs");
}

/// In a writer: if the panic went unnoticed, every later writer would wait for ever.
#[test]
fn in_a_write() {
    let (panic, refused) = fault_in_the_log(Ops::WRITE);
    assert!(panic && refused.contains("a writer panicked"), "{refused}");
}

#[test]
fn in_the_sync_of_a_write() {
    let (panic, refused) = fault_in_the_log(Ops::SYNC);
    assert!(panic && refused.contains("a sync of the write-ahead log panicked"), "{refused}");
}

/// Runs a synced write that meets a panic of the file system in such an operation on the log.
/// Returns whether the panic went on to the caller, and the error of the next write; nothing
/// acknowledged is lost.
fn fault_in_the_log(ops: Ops) -> (bool, String) {
    let Scenario { db, handles, .. } = Scenario::new();
    handles.fs.inject(Fault::new(FaultKind::Panic, ops, When::Matching(0)).on_path(".wal"));
    let put = || db.put_with("b", "2", WriteSync::Yes);
    let panic = catch_unwind(AssertUnwindSafe(put)).is_err();
    let refused = put().expect_err("a write after the panic");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert_eq!(db.close().expect_err("close").kind(), ErrorKind::ReadOnly);
    drop(db);
    let db = Db::open_with(DIR, options(handles.env())).expect("open again");
    assert_eq!(db.get("a").expect("get").as_deref(), Some(&b"1"[..]));
    // A batch whose sync failed may be present, one that was not written is not.
    assert!(ops == Ops::SYNC || db.get("b").expect("get").is_none());
    db.close().expect("close");
    (panic, refused.to_string())
}

/// On the thread that asked for it: the panic goes on to it.
#[test]
fn in_a_manual_compaction() {
    let scenario = Scenario::new();
    // Two tables that overlap: a single one would be moved, not merged.
    scenario.db.flush().expect("flush");
    scenario.db.put("a", "1").expect("put");
    scenario.strainer.broken.store(true, Ordering::SeqCst);
    let compact = || scenario.db.default_keyspace().compact();
    let panic = catch_unwind(AssertUnwindSafe(compact)).expect_err("the filter's panic");
    let text = panic.downcast_ref::<&str>().expect("a text");
    assert!(text.contains("a fault in the filter"), "{text}");
    scenario.strainer.broken.store(false, Ordering::SeqCst);
    // No thread waits for the files of the compaction.
    assert_eq!(compact().expect_err("writing is off").kind(), ErrorKind::ReadOnly);
    scenario.check("manual compaction");
}
