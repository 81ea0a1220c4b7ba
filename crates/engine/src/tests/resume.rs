//! Tests of `recover/src/resume.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, ErrorKind, Options, WriteSync};
use std::thread;
use windrow_base::Error;
use windrow_store::write::queue::Memtables;

/// A write that filled its slot behind one whose append failed was never visible, and does not
/// become visible when its sequence number is given out again. That holds also for a reader that
/// got hold of the memtable before.
#[test]
#[allow(clippy::disallowed_methods, reason = "a writer that waits for another")]
fn what_was_filled_behind_a_failure_is_never_seen() {
    let (env, handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with("db", options).unwrap();
    db.put("before", "1").unwrap();
    let database = db.database();
    let failing = database.pipeline.queue().lock().take(1, 100, Memtables::Many(Vec::new()));
    let other = db.clone();
    let behind = thread::spawn(move || other.put_with("behind", "1", WriteSync::No));
    let tree = db.default_keyspace().tree.clone();
    while tree.view().memtable.entries() < 2 {
        thread::yield_now();
    }
    let view = tree.pin();
    database.set_background_error(&Error::new(ErrorKind::NoSpace, "the append failed"));
    database.pipeline.queue().fail(&failing);
    assert_eq!(behind.join().unwrap().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    db.resume().unwrap();
    let before = db.snapshot().seq();
    db.put("after", "1").unwrap();
    db.put("after", "2").unwrap();
    assert_eq!(db.snapshot().seq(), before + 2);
    let seen = view.seq_at(database.pipeline.queue().visible());
    assert_eq!(seen, before);
    let now = || 0;
    let got = windrow_read::read::get::get(&tree.reads, &view, b"behind", seen, now).unwrap();
    assert!(got.is_none(), "a reader with an old view sees what failed");
    assert!(db.get("behind").unwrap().is_none());
    let reopened = {
        handles.jobs.discard();
        handles.fs.kill(1);
        let handles = handles.reborn(2);
        let mut options = Options::default();
        options.components.env = Some(handles.env());
        Db::open_with("db", options).unwrap()
    };
    let found = |key| reopened.get(key).unwrap().map(|value| value.to_vec());
    assert_eq!(found("before"), Some(b"1".to_vec()));
    assert_eq!(found("after"), Some(b"2".to_vec()));
    assert_eq!(found("behind"), None);
}

/// Two writers have their slots when the device is full for one of them. The log then refuses the
/// other's write. In whichever order the two failures are noted, writing can be resumed.
#[test]
fn what_follows_from_a_full_device_goes_away_with_it() {
    use windrow_env::testing::{Fault, FaultKind, Ops, When};
    for first_is_noted_first in [true, false] {
        let (db, handles) = Db::in_memory();
        db.put("before", "1").unwrap();
        let full = Fault::new(FaultKind::NoSpace, Ops::WRITE, When::Matching(0));
        handles.fs.inject(full.on_path(".wal"));
        let database = db.database();
        let slot = database.pipeline.queue().lock().take(1, 100, Memtables::Many(Vec::new()));
        let first = slot.wal.file.write_at(slot.offset, &[0; 100]).unwrap_err();
        let note = || {
            database.set_background_error(&first);
            database.pipeline.queue().fail(&slot);
        };
        if first_is_noted_first {
            note();
            database.set_background_error(&slot.wal.file.sync().unwrap_err());
        } else {
            let following = db.put("behind", "1").unwrap_err();
            assert_eq!(following.first_failure().kind(), ErrorKind::NoSpace, "{following}");
            note();
        }
        let cause = db.write_error().unwrap();
        assert!(cause.to_string().ends_with(&first.to_string()), "{cause}");
        db.resume().unwrap();
        db.put("after", "1").unwrap();
        let found = ["before", "behind", "after"].map(|key| db.get(key).unwrap().is_some());
        assert_eq!(found, [true, false, true]);
    }
}
