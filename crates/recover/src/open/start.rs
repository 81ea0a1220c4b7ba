//! Beginning to write: a new manifest, a new log, and the timers.
//!
//! The manifest comes first ([`Catalog::begin`]) and is in force before the log is made, so that
//! the old logs can be removed in between: on a device that is nearly full there is no other room.
//!
//! Owns: their order. Never does: replay a log, or write a table.
//!
//! [`Catalog::begin`]: windrow_store::catalog::Catalog::begin

use crate::database::Database;
use crate::discovery::remains::remove_orphans;
use crate::discovery::traces;
use crate::log::logs_at_rest::Replayed;
use crate::measure::stats_file;
use std::sync::Arc;
use windrow_base::{Result, check_invariant};
use windrow_env::sync::atomic::Ordering;
use windrow_store::host::listing::Listing;
use windrow_store::jobs::JobContext;
use windrow_store::jobs::read_triggered_merges;

/// How often an idle database looks for work, in ms.
const IDLE_LOOK_MS: u64 = 30_000;

/// How often an idle database looks for files that readers have released, in ms.
const READERS_LOOK_MS: u64 = 1_000;

/// How often the log remembers the time, in ms, where it is kept for the feed of changes.
const TIME_MS: u64 = 1_000;

/// Makes the replayed entries durable, starts a new manifest and a new log, and removes the files
/// that neither names.
///
/// # Errors
/// `ReadOnly` where the replay kept its entries in memory, or a sync of its tables failed: a
/// manifest would name less than the logs hold. `Io`, `NoSpace`.
pub(crate) fn start_writing(
    database: &Arc<Database>,
    listing: &Listing,
    replayed: &Replayed,
) -> Result<()> {
    database.write_state.check()?;
    let last_seq = replayed.last_seq;
    check_replayed(database, listing)?;
    let begun = database.catalog.begin(database.catalog.state(), last_seq)?;
    database.catalog.lock().adopt(begun);
    let segments = &database.pipeline.segments;
    let kept = database.catalog.state().kept;
    segments.kept.found(&kept);
    // A crash left these under their old names.
    let left = kept.keys().filter(|number| listing.wals.contains(number));
    left.for_each(|&number| segments.kept.retire(number, &kept));
    traces::remove(&database.env, &database.dir, listing);
    remove_orphans((database, &database.cleanup), &database.catalog, listing);
    let wal = segments.create_first(&mut database.catalog.lock())?;
    let found = listing.wals.contains(&wal.number);
    check_invariant!(R2, !found, "log {} was there before this open", wal.number);
    segments.begin(last_seq, Arc::new(wal));
    database.cleanup.arm();
    start_timers(database);
    database.scheduler.note_all_due();
    database.scheduler.schedule();
    stats_file::start(database);
    Ok(())
}

/// Checks that all replayed entries are in tables, and that no file number that was found in the
/// directory can be given out.
pub fn check_replayed(database: &Database, listing: &Listing) -> Result<()> {
    for tree in database.trees().iter() {
        let view = tree.view();
        let left = view.frozen.len() + usize::from(view.memtable.entries() > 0);
        let is_stored = left == 0;
        check_invariant!(R3, is_stored, "{left} memtables of `{}` are in no table", tree.name);
    }
    let (next, found) = (database.next_file.load(Ordering::Relaxed), listing.number_max());
    let is_free = found < next;
    check_invariant!(R8, is_free, "file {next} is to be made, and {found} is there");
    Ok(())
}

/// Starts the work that only time brings: entries that expire in an idle database, and the sync of
/// the log, as often as the settings ask.
fn start_timers(database: &Database) {
    let scheduler = Arc::downgrade(&database.scheduler);
    let look = move || {
        let Some(scheduler) = scheduler.upgrade() else { return false };
        let JobContext { host, workers, .. } = &*scheduler.jobs;
        let look = || {
            if let Ok(_underway) = workers.begin() {
                let _ = scheduler.jobs.pipeline.segments.expire_kept();
            }
            scheduler.schedule_if_open() && host.watch_place().is_ok()
        };
        workers.contain(look).unwrap_or(false)
    };
    database.env.jobs.every(IDLE_LOOK_MS, Arc::new(look));
    let scheduler = Arc::downgrade(&database.scheduler);
    let look = move || {
        let Some(scheduler) = scheduler.upgrade() else { return false };
        let workers = &scheduler.jobs.workers;
        workers.contain(|| scheduler.schedule_for_reads());
        !workers.gate.is_closing()
    };
    database.env.jobs.every(read_triggered_merges::LOOK_MS, Arc::new(look));
    let waiting = Arc::downgrade(&database.cleanup);
    let look = move || waiting.upgrade().is_some_and(|waiting| waiting.look_again());
    database.env.jobs.every(READERS_LOOK_MS, Arc::new(look));
    if database.settings.changes_bytes > 0 {
        database.env.jobs.every(TIME_MS, Arc::new(time_notes(database)));
    }
    let interval_ms = database.settings.wal_sync_interval_ms;
    if interval_ms == 0 {
        return;
    }
    let pipeline = Arc::downgrade(&database.pipeline);
    let sync = move || match pipeline.upgrade() {
        Some(pipeline) => {
            // The timer goes on while writing is off, since writing may be turned on again.
            pipeline.workers.contain(|| pipeline.segments.sync());
            !pipeline.workers.gate.is_closing()
        }
        None => false,
    };
    database.env.jobs.every(interval_ms, Arc::new(sync));
}

/// The timer by which the log remembers the time, for a restore to a moment.
fn time_notes(database: &Database) -> impl Fn() -> bool + Send + Sync + use<> {
    let pipeline = Arc::downgrade(&database.pipeline);
    move || match pipeline.upgrade() {
        Some(pipeline) => {
            let note = || match pipeline.workers.begin() {
                Ok(_underway) => pipeline.note_time(),
                Err(closing) => Err(closing),
            };
            // A failure has turned writing off, which says why.
            let _ = pipeline.workers.contain(note);
            !pipeline.workers.gate.is_closing()
        }
        None => false,
    }
}
