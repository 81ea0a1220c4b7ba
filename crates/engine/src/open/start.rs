//! Beginning to write: a new manifest, a new log, and the timers.
//!
//! Owns: their order. The manifest comes first ([`Catalog::begin`]) and is in force
//! before the log is made, so that the logs of before can go in between: on a
//! device that is nearly full their room is the room there is.
//!
//! [`Catalog::begin`]: crate::manifest::catalog::Catalog::begin

use crate::database::Database;
use crate::jobs::Jobs;
use crate::open::listing::Listing;
use crate::open::remains::remove_orphans;
use crate::open::replay::Replayed;
use crate::repair::traces;
use std::sync::Arc;
use windrow_base::Result;

/// How often an idle database looks for work, in ms.
const IDLE_LOOK_MS: u64 = 30_000;

/// Makes what was replayed durable, starts a new manifest and a new log,
/// and removes what neither names.
///
/// # Errors
/// `ReadOnly` where the replay kept what it found in memory, or a sync of its
/// tables failed: a manifest would name less than the logs hold. `Io`, `NoSpace`.
pub(crate) fn start_writing(
    database: &Database,
    listing: &Listing,
    replayed: &Replayed,
) -> Result<()> {
    database.write_state.check()?;
    let last_seq = replayed.last_seq;
    let begun = database.catalog.begin(database.catalog.state(), last_seq)?;
    database.catalog.lock().adopt(begun);
    traces::remove(&database.env, &database.dir, listing);
    remove_orphans(database, &database.catalog, listing);
    let segments = &database.pipeline.segments;
    let wal = segments.create_first(&mut database.catalog.lock())?;
    segments.begin(last_seq, Arc::new(wal));
    database.cleanup.arm();
    start_timers(database);
    database.scheduler.note_all_due();
    database.scheduler.schedule();
    Ok(())
}

/// Work that only time brings: entries that expire in an idle database, and
/// the sync of the log, as often as the settings ask.
fn start_timers(database: &Database) {
    let scheduler = Arc::downgrade(&database.scheduler);
    let look = move || {
        let Some(scheduler) = scheduler.upgrade() else { return false };
        let Jobs { host, workers, .. } = &*scheduler.jobs;
        let look = || scheduler.schedule_if_open() && host.watch_place().is_ok();
        workers.contain(look).unwrap_or(false)
    };
    database.env.jobs.every(IDLE_LOOK_MS, Arc::new(look));
    let interval_ms = database.settings.wal_sync_interval_ms;
    if interval_ms == 0 {
        return;
    }
    let pipeline = Arc::downgrade(&database.pipeline);
    let sync = move || match pipeline.upgrade() {
        Some(pipeline) => {
            // It goes on where writing is off: that may end.
            pipeline.workers.contain(|| pipeline.segments.sync());
            !pipeline.workers.gate.is_closing()
        }
        None => false,
    };
    database.env.jobs.every(interval_ms, Arc::new(sync));
}
