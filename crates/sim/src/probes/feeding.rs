//! Scenarios of the feed of changes: it has what tables have, drops in their place, and wakes those
//! who wait.
//!
//! Owns: the scenarios. Never does: draw anything by seed (the crash harness does).

use super::steps::{ensure, options, text};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use windrow::changes::{ChangeOptions, Changes, OldValue, Operation};
use windrow::{Db, Follower, Snapshot};
use windrow_env::testing::{FileDamage, Handles, NameDamage, PowerLoss, env};
use windrow_testkit::world::DIR;

fn open(handles: &Handles) -> Result<Db, String> {
    let mut options = options(handles);
    options.settings.changes_bytes = 1 << 30;
    Db::open_with(DIR, options).map_err(text)
}

/// A flush makes writes durable that were not synced: by tables. The log of them, which is kept, must
/// not be gone with the power.
pub(super) fn a_kept_log_is_durable() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let bytes = db.stats().memory.budget_bytes / 100;
    for key in 0..40u64 {
        db.put(key.to_be_bytes(), vec![1; (bytes / 40) as usize]).map_err(text)?;
        handles.jobs.run_until_idle();
    }
    db.flush().map_err(text)?;
    handles.jobs.run_until_idle();
    ensure(db.stats().changes_bytes > 0, "no log is kept")?;
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.crash_with(PowerLoss {
        seed: 1,
        files: Some(FileDamage::DropAll),
        names: Some(NameDamage::DropAll),
    });
    let handles = handles.reborn(2);
    let db = open(&handles)?;
    ensure(db.snapshot().seq() == 40, "a flush was not durable")?;
    let changes = db.changes(1, Default::default()).map_err(text)?;
    let found = changes.collect::<windrow::Result<Vec<_>>>().map_err(text)?;
    ensure(found.len() == 40, "the feed lacks what is in tables")
}

/// The drop of a keyspace comes behind its last write, and before those to one of its name.
pub(super) fn a_drop_is_a_change() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    for value in ["1", "2"] {
        db.keyspace("passing").and_then(|space| space.put("a", value)).map_err(text)?;
        if value == "1" {
            db.drop_keyspace("passing").map_err(text)?;
        }
    }
    let changes = db.changes(1, Default::default()).map_err(text)?;
    let found = changes.collect::<windrow::Result<Vec<_>>>().map_err(text)?;
    let is_drop = |op: &Operation| matches!(op, Operation::KeyspaceDropped { .. });
    let drops: Vec<bool> =
        found.iter().flat_map(|change| &change.operations).map(is_drop).collect();
    ensure(drops == [false, true, false], "a drop is not in its place")
}

struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that waits for a change is woken by the next write.
pub(super) fn a_write_wakes_who_waits() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let mut changes = db.changes(1, Default::default()).map_err(text)?;
    let woken = Arc::new(Woken(AtomicU64::new(0)));
    let waker = Waker::from(woken.clone());
    let waits = changes.poll_next(&mut Context::from_waker(&waker)).is_pending();
    ensure(waits, "there is a change of nothing")?;
    db.put("a", "1").map_err(text)?;
    ensure(woken.0.load(Ordering::Relaxed) == 1, "a task sleeps on")
}

fn behind(snapshot: &Snapshot) -> ChangeOptions {
    let mut options = ChangeOptions::default();
    options.old_values = Some(snapshot.clone());
    options
}

/// The old values of the puts that are there.
fn olds(changes: &mut Changes) -> Result<Vec<OldValue>, String> {
    let found = changes.collect::<windrow::Result<Vec<_>>>().map_err(text)?;
    let operations = found.into_iter().flat_map(|change| change.operations);
    let old = |operation| match operation {
        Operation::Put { old, .. } => Some(old),
        _ => None,
    };
    Ok(operations.filter_map(old).collect())
}

/// An old value is that of the change before, however far behind the consumer is, or not known.
pub(super) fn old_values_are_those_before() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let snapshot = db.snapshot();
    let mut changes = db.changes(snapshot.seq() + 1, behind(&snapshot)).map_err(text)?;
    db.put("a", "1").and_then(|()| db.put("a", "2")).map_err(text)?;
    let expected = [OldValue::Absent, OldValue::Value(b"1".to_vec())];
    ensure(olds(&mut changes)? == expected, "an old value is an older one")?;
    let bytes = db.stats().memory.budget_bytes / 1000;
    for key in 0..600u64 {
        db.put(key.to_be_bytes(), vec![1; bytes as usize]).map_err(text)?;
        handles.jobs.run_until_idle();
    }
    let count = olds(&mut changes)?.len();
    ensure(count == 600, "a slow consumer does not get all old values")?;
    let follower = Follower::open_with(DIR, options(&handles)).map_err(text)?;
    let snapshot = follower.db().snapshot();
    let mut changes = follower.changes(snapshot.seq() + 1, behind(&snapshot)).map_err(text)?;
    let mut ingest = db.ingest().map_err(text)?;
    ingest.put("b", "1").and_then(|()| ingest.finish()).map_err(text)?;
    db.put("b", "2").map_err(text)?;
    ensure(olds(&mut changes)? == [OldValue::Unknown], "an ingestion is not in the log")
}
