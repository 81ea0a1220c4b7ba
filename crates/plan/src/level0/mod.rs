//! Level 0: how flushed data waits, and what takes it to level 1.
//!
//! Owns: the axis, and the choice between its values. Never does: look at what the
//! levels below 1 need.

use crate::busy::Busy;
use crate::cut::Cutter;
use crate::decision::Decision;
use crate::filter_memory::ExpectedLevel;
use crate::tree::level::deepest_point;
use crate::tree::{File, Part, Span, Version};
use crate::view::{PlanSettings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

mod fifo;
mod newest_flushes;
mod partitioned;
mod partitions;
mod sample;
mod tiered;

pub use fifo::Fifo;
pub use partitioned::Partitioned;
pub use sample::{Sample, Sampler};
pub use tiered::Tiered;

/// How flushed data waits in level 0, and what takes it to level 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Level0 {
    /// Whole memtables pile up, and go down together.
    Tiered(Tiered),
    /// A queue: the oldest flush goes down alone (vLSM).
    Fifo(Fifo),
    /// Flushes are cut into partitions of the key space, each a queue of its own.
    Partitioned(Partitioned),
}

impl Level0 {
    /// How urgent level 0 is; merging starts at 1.
    pub fn score(&self, version: &Version, settings: &PlanSettings) -> f64 {
        let score = match self {
            Level0::Tiered(tiered) => tiered.score(version, settings),
            Level0::Fifo(fifo) => fifo.score(version, settings),
            Level0::Partitioned(partitioned) => partitioned.score(version, settings),
        };
        debug_assert!(score >= 0.0 && score.is_finite(), "level 0 is {score} times too full");
        let is_empty = version.part(0, Part::SstLog).is_empty();
        debug_assert!(!is_empty || score == 0.0, "an empty level 0 is {score} times too full");
        score
    }

    /// Returns the most urgent job that takes files out of level 0, or merges some there.
    pub(crate) fn pick(&self, view: &View<'_>) -> Option<Decision> {
        let decision = match self {
            Level0::Tiered(tiered) => tiered.pick(view),
            Level0::Fifo(fifo) => fifo.pick(view),
            Level0::Partitioned(partitioned) => partitioned.pick(view),
        };
        if let Some(decision) = decision.as_ref().filter(|_| cfg!(debug_assertions)) {
            let has_level0 = decision.files().iter().any(|(level, _, _)| *level == 0);
            debug_invariant!(I10, has_level0, "a job of level 0 leaves it as it is: {decision}");
        }
        decision
    }

    /// Returns the bytes that leave level 0 for level 1, and those that merging them writes; none
    /// as long as no merge is due.
    pub(crate) fn debt(&self, version: &Version, settings: &PlanSettings) -> (u64, u64) {
        if self.score(version, settings) < 1.0 {
            return (0, 0);
        }
        let (leaving, written) = match self {
            Level0::Tiered(tiered) => tiered.debt(version),
            Level0::Fifo(fifo) => fifo.debt(version),
            Level0::Partitioned(partitioned) => partitioned.debt(version, settings),
        };
        let waiting = version.part_bytes(0, Part::SstLog);
        debug_assert!(leaving <= waiting, "{leaving} bytes leave level 0, which has {waiting}");
        debug_assert!(leaving <= written, "{leaving} bytes leave level 0 by writing {written}");
        (leaving, written)
    }

    /// The level as full as it may be: flushes, each a table over every point.
    pub(crate) fn expected(&self, version: &Version, settings: &PlanSettings) -> ExpectedLevel {
        let (flush, bytes) = match self {
            Level0::Tiered(tiered) => {
                let flush = settings.memtable_bytes.max(1);
                (flush, flush.saturating_mul(u64::from(tiered.k)))
            }
            Level0::Fifo(_) => (settings.memtable_bytes.max(1), settings.memtable_bytes),
            Level0::Partitioned(partitioned) => {
                let flush = partitioned::flush_bytes(version, settings);
                (flush, partitioned.limit(version, settings))
            }
        };
        let bytes = bytes.max(flush) as f64;
        ExpectedLevel { level: 0, bytes, tables: bytes / flush as f64 }
    }

    /// Whether it goes by the use of the keyspace.
    pub(crate) fn is_by_dial(&self) -> bool {
        matches!(self, Level0::Partitioned(partitioned) if partitioned.k.is_none())
    }

    /// Whether boundaries may come from a sample of the entries of a flush.
    pub(crate) fn wants_sample(&self, version: &Version, settings: &PlanSettings) -> bool {
        match self {
            Level0::Partitioned(partitioned) => partitioned.wants_sample(version, settings),
            Level0::Tiered(_) | Level0::Fifo(_) => false,
        }
    }

    /// New boundaries of the partitions, if the present ones no longer fit.
    pub(crate) fn boundaries(
        &self,
        version: &Version,
        settings: &PlanSettings,
        sample: Option<&Sample>,
    ) -> Option<Arc<[Vec<u8>]>> {
        match self {
            Level0::Partitioned(partitioned) => partitioned.boundaries(version, settings, sample),
            Level0::Tiered(_) | Level0::Fifo(_) => {
                (!version.boundaries.is_empty()).then(|| Arc::new([]) as Arc<[Vec<u8>]>)
            }
        }
    }

    /// Decides where the files of a flush of `bytes` end, given the partitions' boundaries.
    pub(crate) fn flush_cutter(&self, bytes: u64, boundaries: &Arc<[Vec<u8>]>) -> Cutter {
        match self {
            Level0::Partitioned(partitioned) => partitioned.flush_cutter(bytes, boundaries),
            Level0::Tiered(_) | Level0::Fifo(_) => Cutter::at(Arc::new([])),
        }
    }
}

/// Counts epochs over the deepest point of level 0, without the files that cannot be merged down
/// because `damaged` ones are in their way: an older one of level 0 that overlaps, directly or
/// through others between, or one of level 1.
pub fn depth_without(version: &Version, damaged: &Busy) -> u32 {
    let order = &version.order;
    let is_damaged = |file: &&Arc<File>| damaged.is_busy(file.number);
    // The ranges over which nothing newer can go, joined where they overlap.
    let mut barred: Vec<Span<'_>> =
        version.part(1, Part::Run).iter().filter(is_damaged).map(|file| file.span()).collect();
    let mut free = Vec::new();
    let all = version.level(0).map_or(0, |level| level.sst_log_depth());
    for file in version.part(0, Part::SstLog).iter().rev() {
        let mut span = file.span();
        if !is_damaged(&file) && !barred.iter().any(|other| other.overlaps(order, &span)) {
            free.push(file);
            continue;
        }
        barred.retain(|other| {
            let apart = !other.overlaps(order, &span);
            if !apart {
                span = span.hull(order, other);
            }
            apart
        });
        debug_invariant!(
            I5,
            !barred.iter().any(|other| other.overlaps(order, &span)),
            "ranges that overlap are not joined"
        );
        barred.push(span);
    }
    let depth = deepest_point(order, free.into_iter()).depth;
    debug_invariant!(I4, depth <= all, "{depth} epochs without those of damaged files, of {all}");
    depth
}
