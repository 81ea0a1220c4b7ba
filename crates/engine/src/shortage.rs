//! Background work that found no room on the device.
//!
//! Such a failure changed nothing and turns nothing off: what was to be flushed
//! is in memory and in a log still, what was to be merged is as it was. So the
//! job is tried again, later and later, and at once when somebody asks for what
//! it does; meanwhile writes go on while they fit into memory and the log. One
//! that does not fit is refused with the job's error, before anything of it is
//! written. Rejected: to turn writing off (a merge that needs more room than
//! there is would keep out the deletes that make room); to have writers wait
//! (nobody says when there will be room).
//! Owns: when flushes, and a tree's merges, are tried again. Never does: try again
//! what touched the log, the manifest or a directory's names: that is the latch's.

use crate::core::Core;
use crate::tree::Tree;
use std::sync::Arc;
use windrow_base::{Error, Result};

/// How often it is looked whether an attempt is due, in ms.
const LOOK_MS: u64 = 500;

impl Core {
    /// Notes how a flush ended. `Ok`: there is no shortage any more.
    pub(crate) fn note_flush(&self, result: &Result<()>) {
        if self.pipeline.flush_retry.lock().note(self, result) {
            self.look_again();
        }
    }

    /// Notes how a merge of a tree ended.
    pub(crate) fn note_merge(&self, tree: &Tree, result: &Result<()>) {
        let waits = tree.work.lock().merge_retry.note(self, result);
        if waits {
            self.note_due(tree);
            self.look_again();
        }
    }

    /// Whether flushes may begin now.
    pub(crate) fn flush_is_due(&self) -> bool {
        self.pipeline.flush_retry.lock().is_due(self.env.clock.monotonic_ns())
    }

    /// Has the jobs that are due again begun, for as long as there are any.
    fn look_again(&self) {
        if !self.retry_timer.begin() {
            return;
        }
        let core = self.me.clone();
        let look = move || {
            let Some(core) = core.upgrade() else { return false };
            core.workers.contain(|| core.schedule_if_open());
            core.retry_timer.goes_on(|| core.any_job_waits() && !core.workers.gate.is_closing())
        };
        self.env.jobs.every(LOOK_MS, Arc::new(look));
    }

    /// Whether a flush or a merge is to be tried again.
    fn any_job_waits(&self) -> bool {
        let merge_waits = |tree: &Arc<Tree>| tree.work.lock().merge_retry.error().is_some();
        let flush_waits = self.pipeline.flush_retry.lock().error().is_some();
        flush_waits || self.trees().iter().any(merge_waits)
    }

    /// Somebody asks for what waits: it is due at once.
    pub(crate) fn retry_now(&self) {
        self.pipeline.flush_retry.lock().ask();
        self.trees().iter().for_each(|tree| tree.work.lock().merge_retry.ask());
        self.note_all_due();
    }

    /// Why a flush or merge waits.
    pub(crate) fn stuck_work(&self) -> Option<Error> {
        let of = |tree: &Arc<Tree>| tree.work.lock().merge_retry.error().cloned();
        self.pipeline.stuck_flush().or_else(|| self.trees().iter().find_map(of))
    }
}
