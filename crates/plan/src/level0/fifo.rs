//! `fifo`: level 0 is a queue of flushes, and the oldest goes to level 1 alone
//! ("vLSM: Low tail latency and I/O amplification in LSM-based KV stores",
//! section 4.1).
//!
//! No flush waits for others, so no job is larger than one flush and what it
//! overlaps in level 1. The price is that level 1 is rewritten for every flush:
//! the paper pairs it with a small level 1 and a large step to level 2.
//!
//! Owns: the order of the queue. Never does: hold a flush back to merge it with others.

use crate::decision::{Decision, Reason};
use crate::pick;
use crate::tree::{Part, Version};
use crate::view::{PlanSettings, View};
use core::cmp::Reverse;
use windrow_base::debug_invariant;

/// First in, first out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fifo;

impl Fifo {
    /// Urgency: the length of the queue. Merging starts at 1. While level 1 is over
    /// its capacity it goes first, however long the queue is (`pick/score.rs`).
    pub fn score(&self, version: &Version, _settings: &PlanSettings) -> f64 {
        epochs(version) as f64
    }

    /// Bytes that go down, and those that are written for it: level 1 once for
    /// each flush.
    pub(crate) fn debt(&self, version: &Version) -> (u64, u64) {
        let waiting = version.part_bytes(0, Part::SstLog);
        let rewritten = version.part_bytes(1, Part::Run).saturating_mul(epochs(version) as u64);
        (waiting, waiting.saturating_add(rewritten))
    }

    /// Returns the merge, or move, of the oldest flush. A flush in several files (of another
    /// policy) goes file by file; one that overlaps no file on its way down may follow at once, any
    /// other waits (I5).
    pub fn pick(&self, view: &View<'_>) -> Option<Decision> {
        let log = view.version.part(0, Part::SstLog);
        let reason = Reason::Level0Queue { epochs: epochs(view.version) };
        (0..log.len())
            .rev()
            .find_map(|i| pick::job(view, [(0, Part::SstLog, i)], (1, Part::Run), reason.clone()))
    }
}

/// Counts the flushes that wait in level 0.
fn epochs(version: &Version) -> u32 {
    let log = version.part(0, Part::SstLog);
    debug_invariant!(I4, log.is_sorted_by_key(|f| Reverse(f.epoch)), "flushes are out of order");
    let depth = version.level(0).map_or(0, |level| level.sst_log_depth());
    let epochs = log.chunk_by(|a, b| a.epoch == b.epoch).count() as u32;
    debug_invariant!(I4, depth <= epochs, "{depth} of {epochs} epochs over one point");
    epochs
}
