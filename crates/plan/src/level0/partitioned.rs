//! `partitioned(lanes, k)`: flushes are cut into lanes of the key space, and
//! each lane of level 0 goes down by itself.
//!
//! Merging k flushes at once is what makes level 0 cheap in writes, and the size
//! of that job is what makes it long ([`super::Tiered`]). Here a job takes all
//! files of one lane, k deep, and the lane's part of level 1: as cheap, and as
//! many times shorter as there are lanes. vLSM gets short jobs from small
//! memtables instead, and pays for it in writes ([`super::Fifo`]).
//!
//! *Pace.* Each flush should retire lanes/k lanes, so that the work per flush is
//! even. No state is needed for that: if n lanes are evenly phased, level 0
//! holds `(k-1)/2` flushes after their turn, and one n-th of that more while the
//! next lane is due, so lanes go down while it holds more than
//! `(k-1)/2 * (1 + 1/n)` flushes. With one lane this says `k-1`: the k-th flush
//! starts the merge, as tiering does. A lane of `depth` epochs goes down whatever
//! level 0 holds. A backlog makes lanes deeper, and jobs cheaper for what they take.
//!
//! The deepest lane goes first, and of those the one with the most bytes. By
//! bytes alone, lanes that get less of each flush wait until they are twice as
//! deep, and cost more in the end: 10.8 entries written per entry flushed
//! against 10.7 under uniform updates, 7.7 against 7.4 under clustered ones
//! (`tests/model/chains.rs`, 16 lanes, 100,000 keys).
//!
//! *A job* is the closure (I5) of the lane's files. One that lies across a
//! border, left by other lanes or another policy, brings in what it overlaps.
//! So that a job stays bounded it takes only the oldest of the lane's files if
//! all would be too many. What overlaps nothing below is moved.
//!
//! Where the borders are is `lanes.rs`.

use super::lanes::{self, Lane};
use crate::cut::Cutter;
use crate::decision::{Decision, Reason};
use crate::pick;
use crate::tree::closure::{Seat, close, may_move};
use crate::tree::{File, Part, Version};
use crate::view::{Settings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A job takes at most so many times what a lane usually holds.
const JOB_LANES_MAX: u64 = 4;
/// A job may be so large in any case, in times `file_bytes`.
const JOB_FILES_MIN: u64 = 8;
/// No flush counts as less than this part of a memtable.
const FLUSH_PART_MIN: u64 = 16;
/// A flush is not cut after less than this part of a lane's share of a memtable.
const PIECE_PART_MIN: u64 = 64;

/// Level 0 in lanes of the key space.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioned {
    /// Most lanes.
    pub lanes: u32,
    /// Flushes that a lane gathers before it goes down.
    pub k: u32,
    /// Epochs over a point at which a lane goes first, however small it is.
    pub depth: u32,
}

impl Partitioned {
    /// Urgency; merging starts at 1: by bytes, and by depth (I10).
    pub fn score(&self, version: &Version, settings: &Settings) -> f64 {
        let Some(level) = version.level(0) else { return 0.0 };
        let limit = self.limit(version, settings);
        let by_bytes = level.part_bytes(Part::Log) as f64 / limit.saturating_add(1) as f64;
        by_bytes.max(level.log_depth() as f64 / self.depth as f64)
    }

    /// Bytes of level 0 above which a lane goes down: `(k-1)/2 * (1 + 1/n)` flushes.
    pub(crate) fn limit(&self, version: &Version, settings: &Settings) -> u64 {
        let n = version.lanes.len() as f64 + 1.0;
        let flushes = (self.k as f64 - 1.0) / 2.0 * (1.0 + 1.0 / n);
        (flushes * flush_bytes(version, settings) as f64) as u64
    }

    /// Bytes that go down, and those that are written for it: as much of level 1
    /// as of level 0. Only what is over the limit goes, or lies in deep lanes.
    pub(crate) fn debt(&self, version: &Version, settings: &Settings) -> (u64, u64) {
        let waiting = version.part_bytes(0, Part::Log);
        let lanes = lanes::lanes_of(version);
        let deep = lanes.iter().filter(|l| self.is_deep(l)).map(|l| l.bytes).sum::<u64>();
        let leaving = waiting.saturating_sub(self.limit(version, settings)).max(deep).min(waiting);
        let share = leaving as f64 / waiting.max(1) as f64;
        let rewritten = version.part_bytes(1, Part::Run) as f64 * share;
        (leaving, leaving.saturating_add(rewritten as u64))
    }

    /// The job on the lane that is due.
    pub fn pick(&self, view: &View<'_>) -> Option<Decision> {
        let version = view.version;
        let log = version.part(0, Part::Log);
        let busy = log.iter().filter(|f| view.busy.is_busy(f.number)).map(|f| f.bytes);
        let bytes = version.part_bytes(0, Part::Log) - busy.sum::<u64>();
        let limit = self.limit(version, view.settings);
        let mut lanes = lanes::lanes_of(version);
        lanes.retain(|lane| !lane.files.is_empty());
        lanes.sort_by_key(|lane| core::cmp::Reverse((lane.depth, lane.bytes)));
        lanes.iter().find_map(|lane| {
            let reason = match self.is_deep(lane) {
                true => Reason::LaneDeep { lane: lane.index, depth: lane.depth, limit: self.depth },
                false if bytes > limit => Reason::LaneFull {
                    lane: lane.index,
                    bytes: lane.bytes,
                    level0_bytes: bytes,
                    limit,
                },
                false => return None,
            };
            self.retire(view, lane, reason)
        })
    }

    fn is_deep(&self, lane: &Lane) -> bool {
        lane.depth >= self.depth
    }

    /// All of a lane, or as much of it as one job may take, oldest first.
    fn retire(&self, view: &View<'_>, lane: &Lane, reason: Reason) -> Option<Decision> {
        let version = view.version;
        let allow = |f: &File| !view.busy.is_busy(f.number);
        let log = version.part(0, Part::Log);
        let seat = |&i: &usize| -> Seat { (0, Part::Log, i) };
        let to = (1, Part::Run);
        // Writes in key order: each file can go as it is, where a merge would
        // rewrite what no other file has to do with.
        let clear = |i: &usize| {
            let span = log[*i].span();
            allow(&log[*i])
                && version
                    .level(1)
                    .is_none_or(|l| l.run_overlapping(&version.order, &span).is_empty())
        };
        let mut moves = lane.files.iter().rev().filter(|i| clear(i)).map(seat);
        // Not where the file is so wide that it would be rewritten: that is
        // the whole lane's chance, which would come to the same place.
        if let Some(seat) = moves.find(|&seat| may_move(version, seat, to))
            && let Some(decision @ Decision::Move(_)) = pick::job(view, [seat], to, reason.clone())
        {
            return Some(decision);
        }
        let budget = self.job_bytes_max(version, view.settings);
        let mut count = lane.files.len();
        while count > 0 {
            let oldest = lane.files[lane.files.len() - count..].iter().map(seat);
            // A busy member: what is above it cannot go, what is below may.
            if let Some(closure) = close(version, oldest, to, allow)
                && (count == 1 || closure.bytes() <= budget)
            {
                return pick::decide(view, &closure, reason);
            }
            count /= 2;
        }
        None
    }

    fn job_bytes_max(&self, version: &Version, settings: &Settings) -> u64 {
        let waiting = flush_bytes(version, settings).saturating_mul(self.k as u64);
        let usual = waiting.saturating_add(version.part_bytes(1, Part::Run));
        let of_a_lane = usual / (version.lanes.len() as u64 + 1);
        let least = settings.file_bytes.saturating_mul(JOB_FILES_MIN);
        of_a_lane.saturating_mul(JOB_LANES_MAX).max(least)
    }

    /// New borders of the lanes, if the present ones no longer fit.
    pub fn lanes(&self, version: &Version, settings: &Settings) -> Option<Arc<[Vec<u8>]>> {
        lanes::rederive(version, settings, self.lanes, self.k)
    }

    /// A flush is cut at each lane's border, so that lanes share no file. A
    /// piece too small to be worth a file stays with the next lane's.
    pub fn flush_cutter(&self, settings: &Settings, lanes: &Arc<[Vec<u8>]>) -> Cutter {
        let share = settings.memtable_bytes / (lanes.len() as u64 + 1);
        Cutter::at(lanes.clone()).least(share / PIECE_PART_MIN)
    }
}

/// What a full flush is, in bytes: the largest that waits. Lanes have retired
/// their pieces of it, so it counts as if those had been like the others; but
/// no flush that stayed within few lanes counts as more than a memtable.
fn flush_bytes(version: &Version, settings: &Settings) -> u64 {
    let lanes = version.lanes.len() as u64 + 1;
    let whole = |epoch: &[Arc<File>]| {
        let bytes: u64 = epoch.iter().map(|f| f.bytes).sum();
        let pieces = (epoch.len() as u64).clamp(1, lanes);
        (bytes / pieces).saturating_mul(lanes).min(settings.memtable_bytes).max(bytes)
    };
    let log = version.part(0, Part::Log);
    let largest = log.chunk_by(|a, b| a.epoch == b.epoch).map(whole).max().unwrap_or(0);
    largest.max(settings.memtable_bytes / FLUSH_PART_MIN).max(1)
}
