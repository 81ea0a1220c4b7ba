//! Scenarios of the feed of changes: it has what tables have, drops in their place, and wakes those
//! who wait.
//!
//! Owns: the scenarios. Never does: draw anything by seed (the crash harness does).

use super::steps::{ensure, killed, options, text};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use windrow::changes::{ChangeOptions, Changes, OldValue, Operation};
use windrow::{Db, Follower, Snapshot};
use windrow_env::testing::{
    Fault, FaultKind, FileDamage, Handles, NameDamage, Ops, PowerLoss, When, env,
};
use windrow_testkit::world::DIR;

pub(super) fn open(handles: &Handles) -> Result<Db, String> {
    let mut options = options(handles);
    options.settings.changes_bytes = 1 << 30;
    Db::open_with(DIR, options).map_err(text)
}

/// Returns the world after a power loss that took all bytes that were not synced.
pub(super) fn without_power(db: Option<Db>, handles: &Handles, names: NameDamage) -> Handles {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    let (files, names) = (Some(FileDamage::DropAll), Some(names));
    handles.fs.crash_with(PowerLoss { seed: 1, files, names });
    handles.reborn(2)
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
    let handles = without_power(Some(db), &handles, NameDamage::DropAll);
    let db = open(&handles)?;
    ensure(db.snapshot().seq() == 40, "a flush was not durable")?;
    let changes = db.changes(1, Default::default()).map_err(text)?;
    let found = changes.collect::<windrow::Result<Vec<_>>>().map_err(text)?;
    ensure(found.len() == 40, "the feed lacks what is in tables")
}

/// A process is killed around the record that keeps a log, and the next one loses power in its open:
/// names come through, and the record does not.
pub(super) fn a_log_is_there_for_either_manifest() -> Result<(), String> {
    for killed_at in 0..40 {
        for dies_at in 0..80 {
            let (_, handles) = env(1);
            let mut options = options(&handles);
            options.settings.changes_bytes = 1 << 30;
            options.settings.preset = "leveled".to_owned();
            let db = Db::open_with(DIR, options.clone()).map_err(text)?;
            let bytes = db.stats().memory.budget_bytes / 100;
            for key in 0..6u64 {
                db.put(key.to_be_bytes(), vec![1; (bytes / 5) as usize]).map_err(text)?;
            }
            db.sync().map_err(text)?;
            handles.fs.crash_at(handles.fs.operations() + killed_at);
            handles.jobs.run_until_idle();
            let handles = killed(db, &handles, 1);
            let files = handles.fs.files(Path::new(DIR));
            let is_there = |kind: &str| files.iter().any(|name| name.ends_with(kind));
            // The log does not leave before its table is there, and then has its other name.
            if !is_there(".sst") || is_there(".changes") {
                break;
            }
            handles.fs.crash_at(handles.fs.operations() + dies_at);
            options.components.env = Some(handles.env());
            let opened = Db::open_with(DIR, options.clone()).ok();
            let is_whole = opened.is_some();
            let handles = without_power(opened, &handles, NameDamage::KeepAll);
            options.components.env = Some(handles.env());
            let found = Db::open_with(DIR, options).and_then(|db| db.count(..)).map_err(text);
            let says = format!("killed at {killed_at}, then at {dies_at}: {found:?}");
            ensure(found == Ok(6), &says)?;
            if is_whole {
                break;
            }
        }
    }
    Ok(())
}

/// The device fails at each operation of a drop.
pub(super) fn a_drop_took_place_for_all_or_none() -> Result<(), String> {
    for at in 0..20 {
        let (_, handles) = env(1);
        let db = open(&handles)?;
        db.keyspace("passing").and_then(|space| space.put("a", "1")).map_err(text)?;
        db.sync().map_err(text)?;
        handles.fs.inject(Fault::new(FaultKind::Io, Ops::MUTATING, When::Matching(at)));
        let _ = db.drop_keyspace("passing");
        handles.fs.clear_faults();
        let changes = db.changes(1, Default::default()).map_err(text)?;
        let found = changes.collect::<windrow::Result<Vec<_>>>().map_err(text)?;
        let mut operations = found.iter().flat_map(|change| &change.operations);
        let is_told = operations.any(|op| matches!(op, Operation::KeyspaceDropped { .. }));
        let is_gone = db.open_keyspace("passing").map_err(text)?.is_none();
        ensure(is_told == is_gone, &format!("failed at {at}: told {is_told}, gone {is_gone}"))?;
    }
    Ok(())
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
