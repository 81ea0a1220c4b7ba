//! `partitioned(lanes, k)`: flushes are cut into partitions of the key space
//! (that parameter says how many at most), and each partition of level 0 is merged down by itself.
//!
//! Merging k flushes at once makes level 0 cheap in writes, and makes the job large
//! ([`super::Tiered`]). Here a job takes all files of one partition, k deep, and the partition's
//! part of level 1. It is as cheap, and n times shorter with n partitions. vLSM gets short jobs
//! from small memtables instead, and pays for it in writes ([`super::Fifo`]).
//!
//! *Pace.* Each flush should retire one partition in k, so that the work per flush is even. No
//! state is needed for that. If n partitions are evenly phased, level 0 holds `(k-1)/2` flushes
//! after their turn, and one n-th of that more while the next partition is due. So partitions are
//! merged down while it holds more than `(k-1)/2 * (1 + 1/n)` flushes. With one partition this is
//! `k-1`: the k-th flush starts the merge, as tiering does. A partition of `depth` epochs goes down
//! whatever level 0 holds. A backlog makes partitions deeper, and jobs cheaper per byte that they
//! take.
//!
//! The deepest partition goes first, and of those the one with the most bytes. By
//! bytes alone, partitions that get less of each flush wait until they are twice as
//! deep, and cost more in the end: 10.8 entries written per entry flushed
//! against 10.7 under uniform updates, 7.7 against 7.4 under clustered ones
//! (`tests/model/chains.rs`, 16 partitions, 100,000 keys).
//!
//! *A job* is the closure (I5) of the partition's files. A file across a boundary,
//! left by other boundaries or another policy, brings in the files that it overlaps.
//! So that a job stays bounded, it takes only the oldest of the partition's files if
//! all would be too many. A file that overlaps nothing below is moved. A partition of small pieces
//! stays in level 0, and has them merged with each other (`newest_flushes.rs`).
//!
//! Owns: k, the limit, and the job of a partition. Never does: place a boundary (`partitions.rs`).

use super::newest_flushes::{self, NewestFlushes, Worth};
use super::partitions::{self, Partition};
use super::sample::Sample;
use crate::cut::Cutter;
use crate::decision::{Decision, Reason};
use crate::dial::{self, Dial};
use crate::pick;
use crate::tree::closure::{Seat, close, may_move};
use crate::tree::{File, Part, Version};
use crate::view::{PlanSettings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// A job takes at most this many times the usual bytes of a partition.
const JOB_PARTITIONS_MAX: u64 = 4;
/// A job may be this large in any case, in times `file_bytes`.
const JOB_FILES_MIN: u64 = 8;
/// A partition goes first, however small it is, at this many times k where the dial sets k, and
/// before writers are slowed.
const DEPTH_OF_K: f64 = 2.0;
/// Small pieces stay in level 0 where level 1 has at least this many times the partition's bytes.
/// Entries written per entry flushed, with flushes of a sixteenth of a memtable (the model of
/// `tests/model/measure.rs`, uniform updates): with a level 1 of two memtables 8.7 at 2, 8.2 at 4, 7.1
/// at 8, and 6.9 without such merges; in a tree of one level, of 31 memtables, 10.3, 9.4, 11.2, 30.8.
const SMALL_BELOW_MIN: u64 = 4;
/// No flush counts as less than this part of a memtable.
const FLUSH_PART_MIN: u64 = 16;
/// A flush is not cut after less than this part of a partition's share of it.
const PIECE_PART_MIN: u64 = 64;

/// Level 0 in partitions of the key space.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioned {
    /// Most partitions.
    pub partitions: u32,
    /// Flushes that a partition gathers before it goes down; `None`: by the dial.
    pub k: Option<u32>,
    /// Epochs over a point at which a partition goes first, however small it is.
    pub depth: u32,
}

impl Partitioned {
    /// Urgency; merging starts at 1: by bytes, and by depth (I10).
    pub fn score(&self, version: &Version, settings: &PlanSettings) -> f64 {
        let Some(level) = version.level(0) else { return 0.0 };
        let limit = self.limit(version, settings);
        let by_bytes = level.part_bytes(Part::SstLog) as f64 / limit.saturating_add(1) as f64;
        by_bytes.max(level.sst_log_depth() as f64 / self.depth(version, settings) as f64)
    }

    /// Returns k, as given or by the dial.
    fn gathered(&self, version: &Version, settings: &PlanSettings) -> f64 {
        if let Some(k) = self.k {
            return f64::from(k);
        }
        let flush = flush_bytes(version, settings) as f64;
        let level1 = version.part_bytes(1, Part::Run);
        let is_last = version.planned_levels() <= 1;
        let k = Dial::of(settings).gathered(level1 as f64 / flush, is_last);
        match is_last {
            // Level 0 is all that shadows the last level: (k-1)/2 flushes. A small tree has room
            // for several, since they take little.
            true => {
                let least = flush * dial::LEVEL1_FLUSHES_MIN;
                k.min(1.0 + 2.0 * dial::room(settings, level1.max(least as u64)) / flush)
            }
            false => k,
        }
    }

    /// Epochs over a point at which a partition goes first.
    fn depth(&self, version: &Version, settings: &PlanSettings) -> u32 {
        match self.k {
            Some(_) => self.depth,
            None => {
                let usual = (self.gathered(version, settings) * DEPTH_OF_K) as u32;
                self.depth.max(usual.min(settings.level0_slowdown.saturating_sub(2)))
            }
        }
    }

    /// Bytes of level 0 above which a partition goes down: `(k-1)/2 * (1 + 1/n)` flushes.
    pub(crate) fn limit(&self, version: &Version, settings: &PlanSettings) -> u64 {
        let k = self.gathered(version, settings);
        debug_assert!(k >= 1.0 && self.depth > 0, "{self:?} gathers no flush");
        let n = version.boundaries.len() as f64 + 1.0;
        let flushes = (k - 1.0) / 2.0 * (1.0 + 1.0 / n);
        (flushes * flush_bytes(version, settings) as f64) as u64
    }

    /// Bytes that go down, and those that are written for it: as much of level 1 as of level 0.
    /// Only bytes over the limit go, or those of deep partitions. Small flushes that are merged with
    /// each other are written, and go nowhere.
    pub(crate) fn debt(&self, version: &Version, settings: &PlanSettings) -> (u64, u64) {
        let waiting = version.part_bytes(0, Part::SstLog);
        let partitions = partitions::partitions_of(version);
        let depth = self.depth(version, settings);
        let (mut deep, mut within) = (0u64, 0u64);
        for partition in partitions.iter().filter(|p| p.depth >= depth) {
            match self.small_flushes(version, settings, partition, |_| true) {
                Some(small) => within = within.saturating_add(small.bytes),
                None => deep = deep.saturating_add(partition.bytes),
            }
        }
        let leaving = waiting.saturating_sub(self.limit(version, settings)).max(deep).min(waiting);
        let share = leaving as f64 / waiting.max(1) as f64;
        debug_assert!((0.0..=1.0).contains(&share), "{share} of level 0 goes down");
        let rewritten = version.part_bytes(1, Part::Run) as f64 * share;
        (leaving, leaving.saturating_add(rewritten as u64).saturating_add(within))
    }

    /// Returns what a partition in its turn has merged within level 0. `None` where it goes down: that
    /// rewrites little of level 1 for it, or its newest pieces are not small.
    fn small_flushes(
        &self,
        version: &Version,
        settings: &PlanSettings,
        partition: &Partition,
        may_take: impl Fn(&File) -> bool,
    ) -> Option<NewestFlushes> {
        let partitions = version.boundaries.len() as u64 + 1;
        let log = version.part(0, Part::SstLog);
        let spans = partition.files.iter().map(|&i| log[i].span());
        let span = spans.reduce(|hull, span| hull.hull(&version.order, &span))?;
        let level1 = version.level(1).map_or(0, |l| l.run_bytes_overlapping(&version.order, &span));
        if level1 < partition.bytes.saturating_mul(SMALL_BELOW_MIN) {
            return None;
        }
        // A merge of fewer leaves the partition about as deep.
        let epochs_min = (self.depth(version, settings) / 2).max(2);
        let bytes_max = settings.memtable_bytes / partitions;
        let worth = Worth { epochs_min, bytes_max, uneven_max: epochs_min };
        newest_flushes::newest(log, &partition.files, worth, may_take)
    }

    /// Returns the job on the partition that is due.
    pub fn pick(&self, view: &View<'_>) -> Option<Decision> {
        let version = view.version;
        let log = version.part(0, Part::SstLog);
        let busy = log.iter().filter(|f| view.busy.is_busy(f.number)).map(|f| f.bytes);
        let (all, busy) = (version.part_bytes(0, Part::SstLog), busy.sum::<u64>());
        invariant!(I9, busy <= all, "{busy} bytes of level 0 go down, of {all}");
        let bytes = all - busy;
        let limit = self.limit(version, view.settings);
        let depth = self.depth(version, view.settings);
        let mut partitions = partitions::partitions_of(version);
        partitions.retain(|partition| !partition.files.is_empty());
        partitions.sort_by_key(|partition| core::cmp::Reverse((partition.depth, partition.bytes)));
        partitions.iter().find_map(|partition| {
            let reason = match partition.depth >= depth {
                true => Reason::PartitionDeep {
                    partition: partition.index,
                    depth: partition.depth,
                    limit: depth,
                },
                false if bytes > limit => Reason::PartitionFull {
                    partition: partition.index,
                    bytes: partition.bytes,
                    level0_bytes: bytes,
                    limit,
                },
                false => return None,
            };
            match self.is_of_small_flushes(view, partition) {
                true => self.merge_within(view, partition),
                false => self.retire(view, partition, reason),
            }
        })
    }

    /// Whether a partition in its turn stays in level 0: not where a damaged table may be in the way of
    /// its merges there.
    fn is_of_small_flushes(&self, view: &View<'_>, partition: &Partition) -> bool {
        let small = || self.small_flushes(view.version, view.settings, partition, |_| true);
        !view.busy.is_damaged() && small().is_some()
    }

    /// Merges the newest pieces of a partition with each other. `None` while a running job is in the
    /// way.
    fn merge_within(&self, view: &View<'_>, partition: &Partition) -> Option<Decision> {
        let allow = |f: &File| !view.busy.is_busy(f.number);
        let small = self.small_flushes(view.version, view.settings, partition, allow)?;
        let seeds = partition.files[..small.tables].iter();
        let seats = seeds.map(|&i| -> Seat { (0, Part::SstLog, i) });
        let closure = close(view.version, seats, (0, Part::SstLog), allow)?;
        let reason = Reason::PartitionOfSmallFlushes {
            partition: partition.index,
            depth: partition.depth,
            epochs: small.epochs,
        };
        pick::merge_of(view, &closure, reason)
    }

    /// Takes all of a partition down, or as much of it as one job may take, oldest first.
    fn retire(&self, view: &View<'_>, partition: &Partition, reason: Reason) -> Option<Decision> {
        let version = view.version;
        invariant!(I10, !partition.files.is_empty(), "partition {} is empty", partition.index);
        let allow = |f: &File| !view.busy.is_busy(f.number);
        let log = version.part(0, Part::SstLog);
        let seat = |&i: &usize| -> Seat { (0, Part::SstLog, i) };
        let to = (1, Part::Run);
        // Writes in key order: each file can go as it is, where a merge would rewrite it for
        // nothing.
        let clear = |i: &usize| {
            let span = log[*i].span();
            allow(&log[*i])
                && version
                    .level(1)
                    .is_none_or(|l| l.run_overlapping(&version.order, &span).is_empty())
        };
        let mut moves = partition.files.iter().rev().filter(|i| clear(i)).map(seat);
        // Not where the file is so wide that it would be rewritten: then the whole
        // partition goes, which would come to the same place.
        if let Some(seat) = moves.find(|&seat| may_move(version, seat, to))
            && let Some(decision @ Decision::Move(_)) = pick::job(view, [seat], to, reason.clone())
        {
            return Some(decision);
        }
        let files = &partition.files;
        // The files of level 1 that the oldest flush takes along, the others take too.
        let least = files.last().and_then(|oldest| close(version, [seat(oldest)], to, allow));
        let least = least.map_or(0, |closure| closure.bytes().saturating_mul(2));
        let budget = self.job_bytes_max(version, view.settings).max(least);
        let mut count = files.len();
        while count > 0 {
            let oldest = partition.files[partition.files.len() - count..].iter().map(seat);
            // With a busy member, files above it cannot go, and those below may.
            if let Some(closure) = close(version, oldest, to, allow)
                && (count == 1 || closure.bytes() <= budget)
            {
                return pick::decide(view, &closure, reason);
            }
            count /= 2;
        }
        None
    }

    fn job_bytes_max(&self, version: &Version, settings: &PlanSettings) -> u64 {
        let k = self.gathered(version, settings);
        let waiting = (flush_bytes(version, settings) as f64 * k) as u64;
        let usual = waiting.saturating_add(version.part_bytes(1, Part::Run));
        debug_assert!(k >= 1.0, "{self:?} gathers no flush");
        let of_a_partition = usual / (version.boundaries.len() as u64 + 1);
        let least = settings.file_bytes.saturating_mul(JOB_FILES_MIN);
        of_a_partition.saturating_mul(JOB_PARTITIONS_MAX).max(least)
    }

    /// Whether boundaries may come from a sample of the entries of a flush.
    pub(crate) fn wants_sample(&self, version: &Version, settings: &PlanSettings) -> bool {
        partitions::wants_sample(version, settings, self.partitions)
    }

    /// New boundaries of the partitions, if the present ones no longer fit.
    pub fn boundaries(
        &self,
        version: &Version,
        settings: &PlanSettings,
        sample: Option<&Sample>,
    ) -> Option<Arc<[Vec<u8>]>> {
        let sampled = sample.and_then(|sample| {
            partitions::first_boundaries(version, settings, self.partitions, sample)
        });
        let boundaries = sampled.or_else(|| {
            let k = self.gathered(version, settings);
            partitions::rederive(version, settings, self.partitions, k)
        });
        let count = boundaries.as_ref().map_or(0, |keys| keys.len());
        invariant!(I10, count < self.partitions as usize, "{count} boundaries of {self:?}");
        boundaries
    }

    /// A flush of `bytes` is cut at each partition's boundary, so that partitions share no file. A
    /// piece too small to be worth a file stays with the next partition's. How small that is depends
    /// on the flush: one that was asked for early, for a backup say, is cut like any other. Its few
    /// files would else tie all partitions together, until a job has rewritten all of level 1.
    pub fn flush_cutter(&self, bytes: u64, boundaries: &Arc<[Vec<u8>]>) -> Cutter {
        let share = bytes / (boundaries.len() as u64 + 1);
        Cutter::at(boundaries.clone()).least(share / PIECE_PART_MIN)
    }
}

/// Returns the bytes of a full flush: the largest that waits. Pieces of it have been merged down;
/// they count as if they had been like the others. A flush that stayed within few partitions counts
/// as no more than a memtable.
pub(super) fn flush_bytes(version: &Version, settings: &PlanSettings) -> u64 {
    let partitions = version.boundaries.len() as u64 + 1;
    let whole = |epoch: &[Arc<File>]| {
        let bytes: u64 = epoch.iter().map(|f| f.bytes).sum();
        let pieces = (epoch.len() as u64).clamp(1, partitions);
        (bytes / pieces).saturating_mul(partitions).min(settings.memtable_bytes).max(bytes)
    };
    let log = version.part(0, Part::SstLog);
    debug_invariant!(I4, log.iter().all(|f| f.epoch < version.next_epoch), "a flush to come");
    let largest = log.chunk_by(|a, b| a.epoch == b.epoch).map(whole).max().unwrap_or(0);
    largest.max(settings.memtable_bytes / FLUSH_PART_MIN).max(1)
}
