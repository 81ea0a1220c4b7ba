//! Beginning to write: a new manifest, a new log, and the timers.
//!
//! Owns: their order. The manifest comes first ([`Catalog::begin`]) and is in force
//! before the log is made, so that the logs of before can go in between: on a
//! device that is nearly full their room is the room there is.
//!
//! [`Catalog::begin`]: crate::manifest::catalog::Catalog::begin

use crate::core::Core;
use crate::jobs::Jobs;
use crate::open::listing::Listing;
use crate::open::remains::remove_orphans;
use crate::open::replay::Replayed;
use crate::repair::traces;
use std::sync::Arc;
use windrow_base::{Result, mutant};

/// How often an idle database looks for work, in ms.
const IDLE_LOOK_MS: u64 = 30_000;

/// Makes what was replayed durable, starts a new manifest and a new log,
/// and removes what neither names.
///
/// # Errors
/// `ReadOnly` where the replay kept what it found in memory, or a sync of its
/// tables failed: a manifest would name less than the logs hold. `Io`, `NoSpace`.
pub(crate) fn start_writing(core: &Core, listing: &Listing, replayed: &Replayed) -> Result<()> {
    core.latch.check()?;
    if mutant!(OrphansBeforeManifest) {
        remove_orphans(core, &core.catalog, listing);
    }
    let last_seq = replayed.last_seq;
    let begun = core.catalog.begin(core.catalog.state(), last_seq)?;
    core.catalog.lock().adopt(begun);
    traces::remove(&core.env, &core.dir, listing);
    remove_orphans(core, &core.catalog, listing);
    let segments = &core.pipeline.segments;
    let wal = segments.create_first(&mut core.catalog.lock())?;
    segments.begin(if mutant!(SeqReused) { 0 } else { last_seq }, Arc::new(wal));
    core.cleanup.arm();
    start_timers(core);
    core.scheduler.note_all_due();
    core.scheduler.schedule();
    Ok(())
}

/// Work that only time brings: entries that expire in an idle database, and
/// the sync of the log, as often as the settings ask.
fn start_timers(core: &Core) {
    let scheduler = Arc::downgrade(&core.scheduler);
    let look = move || {
        let Some(scheduler) = scheduler.upgrade() else { return false };
        let Jobs { host, workers, .. } = &*scheduler.jobs;
        let look = || scheduler.schedule_if_open() && host.watch_place().is_ok();
        workers.contain(look).unwrap_or(false)
    };
    core.env.jobs.every(IDLE_LOOK_MS, Arc::new(look));
    let interval_ms = core.settings.wal_sync_interval_ms;
    if interval_ms == 0 {
        return;
    }
    let pipeline = Arc::downgrade(&core.pipeline);
    let sync = move || match pipeline.upgrade() {
        Some(pipeline) => {
            // It goes on where writing is off: that may end.
            pipeline.workers.contain(|| pipeline.segments.sync());
            !pipeline.workers.gate.is_closing()
        }
        None => false,
    };
    core.env.jobs.every(interval_ms, Arc::new(sync));
}
