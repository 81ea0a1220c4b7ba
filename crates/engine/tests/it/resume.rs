//! Writing turned on again after a failure, without reopening.

use crate::changes;
use crate::simulated_database::{DIR, options};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::changes::Operation;
use windrow::{
    Batch, Conditions, Db, ErrorKind, Event, Keyspace, KeyspaceOptions, Result, TransactionOptions,
    WriteSync,
};
use windrow_env::jobs::{Job, Jobs, Urgency};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, PowerLoss, Stepper, When, env};

fn open(handles: &Handles) -> Db {
    Db::open_with(DIR, options(handles)).unwrap()
}

/// Reopens after a loss of power.
fn after_power_loss(db: Db, handles: &Handles) -> (Db, Handles) {
    let handles = lose_power(db, handles);
    (open(&handles), handles)
}

/// Keeps nothing that was not synced.
fn lose_power(db: Db, handles: &Handles) -> Handles {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.crash_with(PowerLoss {
        seed: 1,
        files: Some(windrow_env::testing::FileDamage::DropAll),
        names: Some(windrow_env::testing::NameDamage::DropAll),
    });
    handles.fs.clear_faults();
    handles.fs.set_capacity(None);
    handles.reborn(2)
}

fn is_there(db: &Db, key: &str) -> bool {
    db.get(key).unwrap().is_some()
}

/// A lock of such a transaction stayed for ever: it was taken after the resume, and given back only
/// by transactions that began while writing was on.
#[test]
fn a_transaction_from_before_a_resume_gives_its_locks_back() {
    let (_, handles) = env(1);
    let db = open(&handles);
    db.put("key", "1").unwrap();
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::WRITE, When::MatchingFrom(0)).on_path(".wal"));
    db.put("failed", "1").unwrap_err();
    let options = TransactionOptions {
        lock_timeout: std::time::Duration::ZERO,
        ..TransactionOptions::pessimistic()
    };
    let mut before = db.transaction_with(&options).unwrap();
    assert!(before.put(&db, "key", "2").is_err(), "writing is off");
    handles.fs.clear_faults();
    db.resume().unwrap();
    before.put(&db, "key", "2").unwrap();
    assert_eq!(before.get_for_update(&db, "other").unwrap(), None);
    let mut other = db.transaction_with(&options).unwrap();
    assert_eq!(other.put(&db, "key", "3").unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(before.commit().unwrap_err().kind(), ErrorKind::Conflict);
    other.put(&db, "key", "3").unwrap();
    assert_eq!(other.get_for_update(&db, "other").unwrap(), None);
    other.commit().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"3"[..]));
}

#[test]
fn a_full_device_is_gone_on_from_once_there_is_room() {
    let (_, handles) = env(1);
    let events = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut options = options(&handles);
    let seen = events.clone();
    options.components.listener = Some(Arc::new(move |event: &Event| match event {
        Event::BackgroundError { .. } => _ = seen[0].fetch_add(1, Ordering::Relaxed),
        Event::Resumed { .. } => _ = seen[1].fetch_add(1, Ordering::Relaxed),
        _ => {}
    }));
    let db = Db::open_with(DIR, options).unwrap();
    db.put("first", "1").unwrap();
    handles
        .fs
        .inject(Fault::new(FaultKind::NoSpace, Ops::WRITE, When::MatchingFrom(0)).on_path(".wal"));
    let failed = db.put("failed", "1").unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(failed.first_failure().kind(), ErrorKind::NoSpace);
    let refused = db.put("refused", "1").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert!(refused.message().contains("resumed or reopened"), "{refused}");
    // Still full: nothing changes, and the attempt leaves nothing behind.
    handles.fs.set_capacity(Some(handles.fs.used_bytes()));
    let files = handles.fs.files(Path::new(DIR));
    let error = db.resume().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.message().contains("bytes of free space"), "{error}");
    assert_eq!(handles.fs.files(Path::new(DIR)), files);
    assert!(is_there(&db, "first"));
    // There is room again.
    handles.fs.set_capacity(None);
    handles.fs.clear_faults();
    db.resume().unwrap();
    db.resume().unwrap();
    assert!(db.write_error().is_none());
    assert_eq!([&events[0], &events[1]].map(|n| n.load(Ordering::Relaxed)), [1, 1]);
    assert_eq!(db.stats().resumes, 1);
    db.put("second", "1").unwrap();
    db.sync().unwrap();
    let (db, _handles) = after_power_loss(db, &handles);
    let found = ["first", "failed", "refused", "second"].map(|key| is_there(&db, key));
    assert_eq!(found, [true, false, false, true]);
    db.close().unwrap();
}

/// The log whose sync failed is never synced again (rule R13), and entries that readers saw of it
/// are durable nevertheless.
#[test]
fn what_a_failed_sync_left_in_doubt_is_made_durable_elsewhere() {
    let (_, handles) = env(1);
    let db = open(&handles);
    db.put("unsynced", "1").unwrap();
    let log = handles.fs.files(Path::new(DIR));
    let log = log.iter().find(|name| name.ends_with(".wal")).unwrap();
    let name = log.rsplit('/').next().unwrap();
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::SYNC, When::MatchingFrom(0)).on_path(name));
    let failed = db.put_with("seen", "1", WriteSync::Yes).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(failed.first_failure().kind(), ErrorKind::Io);
    assert!(is_there(&db, "seen"));
    // It would fail again.
    db.resume().unwrap();
    assert!(is_there(&db, "seen"));
    let (db, _handles) = after_power_loss(db, &handles);
    assert!(is_there(&db, "unsynced") && is_there(&db, "seen"));
    db.close().unwrap();
}

/// An operand counts once where the device has no room for its sync, in whichever way it is
/// written: the error says that it may be there, and it is. `transact` does not run again a
/// transaction that may be committed.
#[test]
fn a_write_whose_sync_failed_says_that_it_may_be_there() {
    let one = 1i64.to_le_bytes();
    let runs = AtomicU64::new(0);
    type Op<'a> = (&'a str, &'a dyn Fn(&Db, &Keyspace) -> Result<()>);
    let ops: &[Op<'_>] = &[
        ("merge", &|_, sums| sums.merge("n", one)),
        ("write", &|db, sums| {
            let mut batch = Batch::new();
            batch.merge(sums, "n", one);
            db.write(batch, WriteSync::Yes).map(drop)
        }),
        ("commit", &|db, sums| {
            let options = TransactionOptions { sync: WriteSync::Yes, ..Default::default() };
            let mut tx = db.transaction_with(&options)?;
            assert!(tx.get(sums, "n")?.is_none());
            tx.merge(sums, "n", one)?;
            tx.commit().map(drop)
        }),
        ("transact", &|db, sums| {
            db.transact(|tx| {
                runs.fetch_add(1, Ordering::Relaxed);
                tx.merge(sums, "n", one)
            })
        }),
        ("update", &|_, sums| sums.update("n", |_| Some(one.to_vec())).map(drop)),
        ("write_if", &|db, sums| {
            let mut batch = Batch::new();
            batch.merge(sums, "n", one);
            let is_new = Conditions::new().absent(sums, "n");
            db.write_if(batch, &is_new, WriteSync::Yes).map(drop)
        }),
        ("delete", &|_, sums| {
            sums.put_with("n", one, WriteSync::No).and_then(|()| sums.delete("x"))
        }),
    ];
    for (what, op) in ops {
        let (_, handles) = env(1);
        let db = open(&handles).synced();
        let options =
            KeyspaceOptions { merge_operator: Some("add".into()), ..KeyspaceOptions::default() };
        let sums = db.keyspace_with("sums", options).unwrap().synced();
        handles.fs.inject(
            Fault::new(FaultKind::NoSpace, Ops::SYNC, When::MatchingFrom(0)).on_path(".wal"),
        );
        let error = op(&db, &sums).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{what}: {error}");
        assert_eq!(error.first_failure().kind(), ErrorKind::NoSpace, "{what}: {error}");
        // A later write is refused, and never happens.
        assert_eq!(sums.merge("n", one).unwrap_err().kind(), ErrorKind::ReadOnly, "{what}");
        handles.fs.clear_faults();
        db.resume().unwrap();
        assert_eq!(sums.get("n").unwrap().as_deref(), Some(&one[..]), "{what}");
        db.close().unwrap();
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

/// The interval at which the log is synced goes on after a resume.
#[test]
fn timers_go_on() {
    let (_, handles) = env(1);
    let mut options = options(&handles);
    options.settings.wal_sync_interval_ms = 10;
    let db = Db::open_with(DIR, options).unwrap();
    let write = Fault::new(FaultKind::Io, Ops::WRITE, When::Matching(0)).on_path(".wal");
    handles.fs.inject(write);
    db.put("failed", "1").unwrap_err();
    handles.jobs.fire_timers();
    db.resume().unwrap();
    db.put("kept", "1").unwrap();
    handles.jobs.fire_timers();
    let (db, _handles) = after_power_loss(db, &handles);
    assert!(is_there(&db, "kept"), "no timer synced the log");
    db.close().unwrap();
}

#[test]
fn what_cannot_go_away_is_refused() {
    let (_, handles) = env(1);
    let db = open(&handles);
    db.put("key", "1").unwrap();
    let panics = Fault::new(FaultKind::Panic, Ops::CREATE, When::MatchingFrom(0)).on_path(".sst");
    handles.fs.inject(panics);
    db.flush().unwrap_err();
    handles.fs.clear_faults();
    let error = db.resume().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(error.message().contains("until the database is reopened"), "{error}");
    let _ = db.close();
    assert_eq!(db.resume().unwrap_err().kind(), ErrorKind::Closed);
    let handles = handles.reborn(2);
    let mut read_only = options(&handles);
    read_only.read_only = true;
    let db = Db::open_with(DIR, read_only).unwrap();
    assert_eq!(db.resume().unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// A device too small for a flush, but not for the log: writes go on until memory is full of
/// memtables that cannot be flushed, and go on by themselves once there is room.
#[test]
fn a_flush_without_room_turns_nothing_off() {
    let (_, handles) = env(1);
    let db = open(&handles);
    let full = Fault::new(FaultKind::NoSpace, Ops::CREATE | Ops::WRITE, When::MatchingFrom(0));
    handles.fs.inject(full.on_path(".sst"));
    let mut written = 0;
    let error = loop {
        match db.put(format!("{written:06}"), [7; 1000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100_000);
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.message().contains("nothing was written"), "{error}");
    assert!(written > 200, "{written}");
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(db.write_error().is_none());
    // A close leaves all entries in durable logs, to be replayed.
    handles.fs.clear_faults();
    db.flush().unwrap();
    db.put(format!("{written:06}"), [7; 1000]).unwrap();
    let full = Fault::new(FaultKind::NoSpace, Ops::CREATE | Ops::WRITE, When::MatchingFrom(0));
    handles.fs.inject(full.on_path(".sst"));
    db.close().unwrap();
    let (db, _handles) = after_power_loss(db, &handles);
    assert_eq!(db.iter().count(), written + 1);
    db.close().unwrap();
}

/// Jobs of a stepper that no other thread steps: a thread that would wait for them for ever panics.
struct NobodyElse(Arc<Stepper>);

impl Jobs for NobodyElse {
    fn submit(&self, urgency: Urgency, job: Job) {
        self.0.submit(urgency, job);
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }

    fn step(&self) -> bool {
        assert!(self.0.step(), "it waits, and nobody will ever wake it");
        true
    }

    fn run_urgent(&self) -> bool {
        self.0.run_urgent()
    }

    fn every(&self, interval_ms: u64, work: Arc<dyn Fn() -> bool + Send + Sync>) {
        self.0.every(interval_ms, work);
    }
}

/// A batch that has the active memtable to itself, and fits into none with others: it waited for a
/// flush that no job would try again.
#[test]
fn a_large_batch_is_refused_while_memory_is_full_of_what_cannot_be_flushed() {
    let (mut env, handles) = env(1);
    env.jobs = Arc::new(NobodyElse(handles.jobs.clone()));
    let mut options = options(&handles);
    options.settings.memtable_bytes = 2 << 20;
    options.components.env = Some(env);
    let db = Db::open_with(DIR, options).unwrap();
    (0..1750).for_each(|i| db.put(format!("{i:06}"), [7; 1000]).unwrap());
    let full = Fault::new(FaultKind::NoSpace, Ops::CREATE | Ops::WRITE, When::MatchingFrom(0));
    handles.fs.inject(full.on_path(".sst"));
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
    let deletes = || {
        let mut batch = Batch::new();
        (0..60_000).for_each(|i| batch.delete(&db, format!("{i:06}")));
        assert!(((5 << 19)..4 << 20).contains(&batch.memory_bytes()), "{}", batch.memory_bytes());
        batch
    };
    let error = db.write(deletes(), WriteSync::No).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.message().contains("nothing was written"), "{error}");
    db.put("small", "1").unwrap();
    assert!(db.write_error().is_none());
    handles.fs.clear_faults();
    db.resume().unwrap();
    db.write(deletes(), WriteSync::No).unwrap();
    assert_eq!(db.iter().count(), 1);
    db.close().unwrap();
}

/// A resume that fails leaves a sound database, at whichever operation: also between the
/// replacement of CURRENT and the sync that makes it durable.
#[test]
fn a_resume_that_fails_at_any_operation_leaves_a_sound_database() {
    let mut failed = 0;
    for at in 0..100 {
        let (_, handles) = env(at);
        let db = open(&handles);
        db.put_with("before", "1", WriteSync::Yes).unwrap();
        let sync = Fault::new(FaultKind::Io, Ops::SYNC, When::Matching(0));
        handles.fs.inject(sync.on_path(".wal"));
        db.put_with("seen", "1", WriteSync::Yes).unwrap_err();
        handles.fs.clear_faults();
        handles.fs.inject(Fault::new(FaultKind::Io, Ops::MUTATING, When::Matching(at)));
        let resumed = db.resume();
        handles.fs.clear_faults();
        db.verify().unwrap().into_result().unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(is_there(&db, "before") && is_there(&db, "seen"), "{at}");
        if resumed.is_ok() {
            break;
        }
        failed += 1;
        db.resume().unwrap();
        db.put("after", "1").unwrap();
    }
    assert!((10..90).contains(&failed), "{failed} operations failed");
}

/// The device fails at each operation of a drop. The database, its feed of changes, the database
/// that goes on after a resume, and the next open agree on whether the keyspace is gone.
#[test]
fn a_drop_that_fails_took_place_for_all_or_for_none() {
    let mut outcomes = [0; 2];
    for at in 0..20 {
        let (_, handles) = env(1);
        let db = changes::open(&handles, 1 << 30);
        db.keyspace("users").unwrap().put("a", "1").unwrap();
        db.put_with("b", "2", WriteSync::Yes).unwrap();
        let agreed = |db: &Db, place: &str| {
            let all = changes::from(db, 1).unwrap().collect::<Result<Vec<_>>>().unwrap();
            let mut operations = all.iter().flat_map(|change| &change.operations);
            let is_told = operations.any(|op| matches!(op, Operation::KeyspaceDropped { .. }));
            let is_gone = db.open_keyspace("users").unwrap().is_none();
            assert_eq!(is_told, is_gone, "the feed tells of a drop, {place}, failed at {at}");
            is_gone
        };
        handles.fs.inject(Fault::new(
            FaultKind::Io,
            Ops::WRITE | Ops::SYNC | Ops::RESERVE | Ops::CREATE,
            When::Matching(at),
        ));
        let dropped = db.drop_keyspace("users");
        handles.fs.clear_faults();
        let is_gone = agreed(&db, "before the resume");
        assert!(is_gone || dropped.is_err());
        outcomes[usize::from(is_gone)] += u64::from(dropped.is_err());
        if db.write_error().is_some() {
            db.resume().unwrap();
        }
        assert_eq!(agreed(&db, "after the resume"), is_gone, "failed at {at}");
        let handles = lose_power(db, &handles);
        let db = changes::open(&handles, 1 << 30);
        assert_eq!(agreed(&db, "after the next open"), is_gone, "failed at {at}");
    }
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}
