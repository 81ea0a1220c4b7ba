//! `tiered(k)`: flushed memtables pile up until k of them cover one point, and
//! then go to level 1 together with what they overlap there.
//!
//! Merging k at once makes this cheap in writes: level 1 is rewritten once for k memtables. The
//! price is the size of that job. While one runs, flushes go on piling up over its range and cannot
//! follow it down (I5: their older neighbours are busy), so the newest of them are merged with each
//! other: reads stay fast and writers need not be slowed.
//!
//! Owns: when level 0 goes down. Never does: merge within level 0 while the way down is free.

use super::newest_flushes::{self, Worth};
use crate::decision::{Decision, Reason};
use crate::pick;
use crate::tree::closure::{Seat, close};
use crate::tree::level::deepest_point;
use crate::tree::{File, Part, Version};
use crate::view::{PlanSettings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// Tiered level 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiered {
    /// Epochs over one point at which merging starts; at least 1.
    pub k: u32,
}

/// Files of level 0 that are connected by overlap.
struct OverlapGroup {
    /// Indices in the log, newest first.
    files: Vec<usize>,
    depth: u32,
    /// Newest file over the deepest point.
    seed: usize,
}

impl Tiered {
    /// Urgency; merging starts at 1. By depth, which counts epochs over a point
    /// and not files (I10). Writes in key order never grow deep, so bytes count
    /// as well, once there are as many as k memtables or level 1's capacity.
    pub fn score(&self, version: &Version, settings: &PlanSettings) -> f64 {
        debug_assert!(self.k > 0, "merging starts at no epoch");
        let Some(level) = version.level(0) else { return 0.0 };
        let by_depth = level.sst_log_depth() as f64 / self.k as f64;
        let by_bytes = level.part_bytes(Part::SstLog) as f64 / self.bytes_limit(settings) as f64;
        by_depth.max(by_bytes)
    }

    fn bytes_limit(&self, settings: &PlanSettings) -> u64 {
        let memtables = settings.memtable_bytes.saturating_mul(self.k as u64);
        settings.level_base_bytes.max(memtables).max(1)
    }

    /// Bytes that go down, and those that are written for it: one merge with
    /// all of level 1.
    pub(crate) fn debt(&self, version: &Version) -> (u64, u64) {
        let waiting = version.part_bytes(0, Part::SstLog);
        (waiting, waiting.saturating_add(version.part_bytes(1, Part::Run)))
    }

    /// Returns the merge, or move, that takes level 0 down where it is deepest; while the way is
    /// busy, a merge within level 0.
    pub fn pick(&self, view: &View<'_>) -> Option<Decision> {
        let version = view.version;
        let log = version.part(0, Part::SstLog);
        let mut groups = groups(version, log);
        let deepest = groups.iter().map(|group| group.depth).max().unwrap_or(0);
        let due = version.level(0).map_or(0, |level| level.sst_log_depth());
        debug_invariant!(I10, deepest == due, "groups are {deepest} deep, and level 0 is {due}");
        groups.sort_by_key(|g| core::cmp::Reverse(g.depth));
        for group in groups.iter().filter(|g| g.depth >= self.k) {
            let reason = Reason::Level0Depth { depth: group.depth, limit: self.k };
            let down = pick::job(view, [(0, Part::SstLog, group.seed)], (1, Part::Run), reason);
            if let Some(decision) = down.or_else(|| self.merge_within(view, group)) {
                return Some(decision);
            }
        }
        let (bytes, limit) = (version.part_bytes(0, Part::SstLog), self.bytes_limit(view.settings));
        if bytes < limit {
            return None;
        }
        // Wide, not deep: oldest first, each with the few files that it overlaps.
        (0..log.len()).rev().find_map(|i| {
            let reason = Reason::Level0Bytes { bytes, limit };
            pick::job(view, [(0, Part::SstLog, i)], (1, Part::Run), reason)
        })
    }

    /// Merges the newest epochs of a group with each other. Only epochs that follow each other
    /// (I5), and none much larger than those before it together: a file that was merged here once
    /// is not merged again for little.
    fn merge_within(&self, view: &View<'_>, group: &OverlapGroup) -> Option<Decision> {
        invariant!(I5, !group.files.is_empty(), "a group of no file");
        // The way may be free again soon, and then this was done for nothing.
        if group.depth < self.k.saturating_mul(2).max(self.k + 2) {
            return None;
        }
        let log = view.version.part(0, Part::SstLog);
        let allow = |f: &File| !view.busy.is_busy(f.number);
        let worth = Worth { epochs_min: self.k.max(2), bytes_max: u64::MAX, uneven_max: 1 };
        let newest = newest_flushes::newest(log, &group.files, worth, allow)?;
        let seeds = group.files[..newest.tables].iter().map(|&i| -> Seat { (0, Part::SstLog, i) });
        let reason = Reason::Level0Blocked { depth: group.depth, epochs: newest.epochs };
        let closure = close(view.version, seeds, (0, Part::SstLog), allow)?;
        pick::merge_of(view, &closure, reason)
    }
}

/// Sorts level 0 into groups that do not touch each other.
fn groups(version: &Version, log: &[Arc<File>]) -> Vec<OverlapGroup> {
    let order = &version.order;
    let mut by_key: Vec<usize> = (0..log.len()).collect();
    by_key.sort_by(|&a, &b| order.compare(&log[a].smallest, &log[b].smallest));
    let mut groups = Vec::new();
    let mut rest = by_key.as_slice();
    while let Some((&first, _)) = rest.split_first() {
        let mut hull = log[first].span();
        let mut len = 1;
        while let Some(&next) = rest.get(len)
            && !hull.ends_before(order, &log[next].smallest)
        {
            hull = hull.hull(order, &log[next].span());
            len += 1;
        }
        let (members, after) = rest.split_at(len);
        rest = after;
        let mut files = members.to_vec();
        files.sort_unstable();
        let deepest = deepest_point(order, files.iter().map(|&i| &log[i]));
        let seed = files.iter().copied().find(|&i| log[i].span().contains(order, deepest.key));
        debug_invariant!(I10, seed.is_some(), "no file covers the deepest point of its group");
        debug_invariant!(I10, deepest.depth as usize <= files.len(), "{} deep", deepest.depth);
        let seed = seed.unwrap_or(files[0]);
        groups.push(OverlapGroup { depth: deepest.depth, seed, files });
    }
    let count = groups.iter().map(|group| group.files.len()).sum::<usize>();
    invariant!(I10, count == log.len(), "{count} of {} files are in a group", log.len());
    groups
}
