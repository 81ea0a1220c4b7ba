//! Close: flushes the memtables, and leaves the directory in the state that the next open likes
//! best, or else as a crash would leave it, with every log durable.
//!
//! Owns no state. Never does: free the directory (`handle.rs`).

use crate::database::Database;
use crate::measure::stats_file;
use windrow_base::{Error, ErrorKind, Result, check_invariant, debug_invariant, unless_mutant};
use windrow_env::fs::is_shortage;
use windrow_env::sync::atomic::Ordering;
use windrow_read::events::Event;
use windrow_store::jobs::JobContext;
use windrow_store::jobs::failure_policy::Tries;
use windrow_store::manifest::record::Field;
use windrow_store::tree::Tree;
use windrow_store::write::segments::EMPTY_BYTES;

/// Closes the database. See `Db::close`.
pub fn close(database: &Database) -> Result<()> {
    let in_place = database.write_state.check().and_then(|()| database.watch_place());
    let mut queue = database.pipeline.queue().lock();
    if database.workers.gate.close() {
        return Ok(());
    }
    let writable = in_place.and_then(|()| database.write_state.check());
    let last_seq = queue.last_seq();
    if writable.is_ok() {
        queue.freeze_all();
    }
    drop(queue);
    // A thread that waits for progress which will not come any more must wake up.
    database.note_progress();
    // A drop of a keyspace that passed the gate holds this lock until it is done: from here on the
    // list of keyspaces does not change.
    let read_only = database.catalog.lock().log().is_none();
    let published = writable
        .and_then(|()| database.pipeline.queue().wait_visible(last_seq, &database.write_state));
    if published.is_err() {
        // No thread may write to a log once the directory is free.
        database.pipeline.queue().settle();
    }
    if published.is_ok() && database.settings.changes_bytes > 0 {
        // A failure has turned writing off, which the rest notices.
        let _ = database.pipeline.note_time();
    }
    unless_mutant!(CloseLeavesJobs, database.workers.wait_quiet());
    if !read_only && database.place.check().is_ok() {
        stats_file::remove(&database.env, &database.dir);
    }
    let left =
        |()| leave_clean(database, last_seq).or_else(|error| leave_to_replay(database, error));
    let closed = published.and_then(left).and_then(|()| check_over(database));
    // Only a database that is still in its place may be reported closed.
    let closed = closed.and_then(|()| database.place.check());
    if closed.is_ok() {
        database.pipeline.segments.wal_sync.retire_all();
    }
    if !database.is_moment {
        database.caches.tables.release_directory();
    }
    database.write_state.close();
    database.note_progress();
    database.pipeline.queue().wake_listeners();
    if read_only { Ok(()) } else { closed }
}

/// Flushes the rest, and leaves one empty log that names the manifest and the durable length of it
/// (rules R10, R11). The log comes first: if the manifest loses the record of the clean close, the
/// two still agree.
fn leave_clean(database: &Database, last_seq: u64) -> Result<()> {
    unless_mutant!(CloseKeepsMemtables, flush_rest(database)?);
    for tree in database.trees().iter() {
        keep_statistics(&database.jobs, tree)?;
    }
    check_flushed(database, last_seq)?;
    let wal = database.pipeline.segments.create_empty()?;
    let active = database.pipeline.queue().lock().wal.number;
    check_invariant!(R8, active < wal.number, "log {} comes after {active}", wal.number);
    let mut catalog = database.catalog.lock_to_change()?;
    let mut fields = database.pipeline.segments.log_end(catalog.state())?;
    fields.extend([
        Field::LastSeq(last_seq),
        Field::TimeFloor(database.time_floor_ms.load(Ordering::Relaxed)),
        Field::LogBegin { number: wal.number, first_seq: last_seq + 1 },
        wal.added(),
        Field::NextFile(database.next_file.load(Ordering::Relaxed)),
        Field::CleanClose { wal: wal.number, bytes: EMPTY_BYTES },
    ]);
    catalog.append(fields)?;
    let kept = catalog.state().kept.clone();
    drop(catalog);
    database.catalog.finish()?;
    database.pipeline.segments.remove_all(&kept);
    Ok(())
}

/// Checks that a clean close leaves nothing in logs: all of it was published, and is in tables.
pub fn check_flushed(database: &Database, last_seq: u64) -> Result<()> {
    let pipeline = &database.pipeline;
    let (given, visible) = (pipeline.queue().lock().last_seq(), pipeline.visible());
    check_invariant!(R10, given == last_seq, "a close through {last_seq}, and {given} is written");
    check_invariant!(R10, visible == given, "a close through {given}, of which {visible} is seen");
    let queue = pipeline.queue().lock();
    let left = queue.unflushed.active().len() + queue.unflushed.frozen().len();
    check_invariant!(R10, left == 0, "a clean close, and {left} memtables are in no table");
    Ok(())
}

/// Checks that no work for the database runs any more, so that its metadata stays true of its
/// files.
fn check_over(database: &Database) -> Result<()> {
    let is_over = database.workers.gate.is_quiet();
    check_invariant!(R14, is_over, "work is under way as the database is closed");
    // The gate does not count merges.
    let merges = database.workers.merges_running.load(Ordering::Acquire);
    check_invariant!(R14, merges == 0, "{merges} merges run as the database is closed");
    Ok(())
}

/// Writes today's estimates into the metadata of every file, so that they
/// survive the close.
///
/// # Errors
/// As [`JobContext::install`].
fn keep_statistics(jobs: &JobContext, tree: &Tree) -> Result<()> {
    if tree.reads.access.queries() == tree.reads.access.origin() {
        return Ok(());
    }
    if tree.estimates().edit(&tree.version()).is_empty() {
        return Ok(());
    }
    jobs.install(tree, |version| tree.estimates().edit(version))
}

/// Flushes the waiting memtables, group by group, on this thread.
fn flush_rest(database: &Database) -> Result<()> {
    loop {
        let group = database.jobs.claim_flush();
        if group.is_empty() {
            return Ok(());
        }
        let mut tries = Tries::default();
        let flushed = loop {
            match database.jobs.flush_group(&group) {
                Err(error) if tries.again_closing(&database.host, &error) => {}
                Err(error)
                    if error.kind() == ErrorKind::NoSpace
                        && database.pipeline.segments.give_up_kept(0) => {}
                flushed => break flushed,
            }
        };
        database.pipeline.queue().lock().unflushed.release(&group);
        let waits = group.iter().find(|frozen| frozen.is_waiting());
        let waits = waits.map(|frozen| frozen.tree.name.clone());
        debug_invariant!(I4, flushed.is_err() || waits.is_none(), "{waits:?} was not flushed");
        database.pipeline.let_go(group);
        flushed?;
    }
}

/// Ends a close that found no room for a clean one. The entries that are not in tables stay in
/// logs, which are made durable, and the next open replays them. Every write was published, so the
/// logs, and a table or manifest that was not finished, are as a crash would leave them.
///
/// # Errors
/// `error`, if it is of another kind; an error of syncing a log.
fn leave_to_replay(database: &Database, error: Error) -> Result<()> {
    if !is_shortage(&error) && error.kind() != ErrorKind::NoSpace {
        return Err(error);
    }
    unless_mutant!(CloseForgetsLog, database.pipeline.segments.wal_sync.sync_all()?);
    for wal in database.pipeline.segments.in_use() {
        let (has, due) = (wal.durable_up_to(), wal.written());
        check_invariant!(R10, has >= due, "log {} is durable to {has} of {due}", wal.number);
        wal.give_back();
    }
    database.events.send(&Event::LeftToReplay { error });
    Ok(())
}
