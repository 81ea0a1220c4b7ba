//! `sst_log`: L2SM's picker. A file leaves its run for the SST-log of its level, which costs an
//! edit; files leave the log together (`aggregate.rs`).
//!
//! *Paper*: into the log by combined weight; logs of all levels but the last,
//! sized by the paper's rule. *Closed*: into the log round robin. Choosing the file
//! under which the log is shallowest wrote more: per entry flushed, 10.9 against
//! 9.8 for uniform updates, 7.6 against 5.9 for zipf, 10.8 against 8.5 where they
//! cluster (`docs/policies/l2sm.md`).
//!
//! *Columns*: as closed, but files that go into the last level take all tables above it along
//! (`column.rs`).
//!
//! Levels without a log of this policy are run as `leveled` runs them: the
//! deepest one, those past `levels`, and any that the shape gives no room,
//! whose log drains (I10).
//!
//! Owns: the sizes of the SST-logs, and when they fill and empty. Never does: rewrite a file to
//! fill one.

use super::aggregate::{ABSORB_FILES_MAX, SstLogFiles, free_bytes};
use super::column;
use super::garbage;
use super::level_limits::Levels;
use super::leveled::{Leveled, drain_log};
use super::score::{Candidate, candidates};
use super::with_cursor;
use crate::decision::{Decision, Move, Reason};
use crate::dial::{self, Dial};
use crate::hotness;
use crate::tree::level::deepest_point;
use crate::tree::{Level, Part, Place, Version};
use crate::view::{PlanSettings, View};
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// A log may hold this many times `file_bytes`, however small the tree is:
/// with less there is nothing to choose from.
const LOG_FILES_MIN: u64 = 4;

/// How an SST-log is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    /// As L2SM's paper has it: by combined weight, oldest first.
    Paper,
    /// By cost, closed under older-and-overlapping.
    Closed,
    /// As closed; into the last level with all that lies above it in a partition of level 0.
    Columns,
}

impl LogMode {
    /// All of them.
    pub const ALL: [LogMode; 3] = [LogMode::Paper, LogMode::Closed, LogMode::Columns];

    /// Its name in a policy's text.
    pub fn name(self) -> &'static str {
        match self {
            LogMode::Paper => "paper",
            LogMode::Closed => "closed",
            LogMode::Columns => "columns",
        }
    }
}

/// The SST-Log picker.
#[derive(Clone, Debug, PartialEq)]
pub struct SstLog {
    /// How logs are emptied.
    pub mode: LogMode,
    /// Bytes of all logs over those of the tree.
    pub omega: f64,
    /// Bytes of an SST-log over the capacity of its level, instead of by `omega`.
    pub share: LogShare,
    /// Weight of hotness against sparseness (the paper's alpha).
    pub alpha: f64,
    /// Levels 1 to this one have a log (never the last level).
    pub levels: u32,
    /// Most log files over one point.
    pub depth: u32,
}

/// Bytes of a log, by the capacity of its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogShare {
    /// Not by that, but by `omega`.
    OfTree,
    /// By two numbers; L2SM's authors published 12 and 0.2 (`docs/papers/l2sm.md`).
    Of {
        /// At level 1, over its capacity.
        first: f64,
        /// From each level's share to that of the level below.
        ratio: f64,
    },
    /// As the dial has it, within the ceiling of space.
    Dial,
}

/// The most bytes of each log; `None` for a level whose log is not fed.
struct SstLogLimits(Vec<Option<u64>>);

impl SstLogLimits {
    fn of(&self, level: u32) -> Option<u64> {
        self.0.get(level as usize).copied().flatten()
    }
}

impl SstLog {
    /// Returns the most urgent job that can start now. Moves into a log first: they cost nothing,
    /// and make room in the run for files from above.
    pub fn pick(&self, levels: Levels<'_>, view: &View<'_>) -> Decision {
        let limits = self.limits(levels, view.version, view.settings);
        self.fill(levels, view, &limits)
            .or_else(|| {
                let due = self.due(levels, view, &limits).into_iter();
                due.filter_map(|due| self.empty(levels, view, &limits, due)).next()
            })
            .or_else(|| garbage::pick(view))
            .unwrap_or(Decision::Idle)
    }

    /// The most bytes of `level`'s SST-log; `None` if it is not fed, and drained.
    pub fn log_limit(
        &self,
        levels: Levels<'_>,
        version: &Version,
        settings: &PlanSettings,
        level: u32,
    ) -> Option<u64> {
        self.limits(levels, version, settings).of(level)
    }

    fn limits(
        &self,
        levels: Levels<'_>,
        version: &Version,
        settings: &PlanSettings,
    ) -> SstLogLimits {
        let last = version.deepest().unwrap_or(0).min(self.levels.saturating_add(1));
        // A level without capacity is on its way out, and its log with it.
        let fed = |n: &u32| levels.capacity(version, settings, *n) > 0;
        let fed: Vec<u32> = (1..last).filter(fed).collect();
        let runs: Vec<f64> = fed.iter().map(|&n| version.part_bytes(n, Part::Run) as f64).collect();
        let tree = (1..version.levels.len() as u32).map(|n| version.part_bytes(n, Part::Run));
        let budget = self.omega * tree.fold(0, u64::saturating_add) as f64;
        let files = settings.file_bytes.saturating_mul(LOG_FILES_MIN);
        // Where there is a ceiling of space, files that are large for the memtable are no reason to
        // pass it: with 32 MiB of memory and 116 MB of data four files took the tree to 1.36 of it.
        let least = match self.share {
            LogShare::Dial => files.min(settings.memtable_bytes / 2),
            LogShare::OfTree | LogShare::Of { .. } => files,
        };
        let mut limits = alloc::vec![None; last as usize];
        if let Some(shares) = self.shares_of_levels(levels, version, settings, &fed) {
            for (&n, share) in fed.iter().zip(shares) {
                limits[n as usize] = Some((share as u64).max(least));
            }
            return SstLogLimits(limits);
        }
        let shares = match self.mode {
            LogMode::Paper => inverse_proportional(&runs, &fed, budget),
            LogMode::Closed | LogMode::Columns => split(&runs, budget),
        };
        debug_assert!(shares.len() == fed.len(), "{} shares of {} logs", shares.len(), fed.len());
        let taken: f64 = shares.iter().sum();
        let fits = taken <= budget * (1.0 + 1e-6);
        debug_invariant!(S1, fits, "SST-logs may hold {taken} bytes of {budget}");
        for (&n, share) in fed.iter().zip(shares) {
            limits[n as usize] = Some((share as u64).max(least));
        }
        SstLogLimits(limits)
    }

    /// The bytes of each fed SST-log by the capacity of its level; `None` if they go by the tree's.
    fn shares_of_levels(
        &self,
        levels: Levels<'_>,
        version: &Version,
        settings: &PlanSettings,
        fed: &[u32],
    ) -> Option<Vec<f64>> {
        let (first, ratio, room) = match self.share {
            LogShare::OfTree => return None,
            LogShare::Of { first, ratio } => (first, ratio, f64::INFINITY),
            LogShare::Dial => {
                (Dial::of(settings).log_share(), 1.0, room(levels, version, settings))
            }
        };
        let share = |n: u32| first * libm::pow(ratio, f64::from(n.saturating_sub(1)));
        let wanted = |&n: &u32| levels.capacity(version, settings, n) as f64 * share(n);
        let all: f64 = fed.iter().map(wanted).sum();
        let part = (room / all.max(1.0)).min(1.0);
        debug_invariant!(S1, (0.0..=1.0).contains(&part), "SST-logs get {part} of their bytes");
        Some(fed.iter().map(|n| wanted(n) * part).collect())
    }

    /// Returns everything that wants to go down, most urgent first.
    fn due(&self, levels: Levels<'_>, view: &View<'_>, limits: &SstLogLimits) -> Vec<Candidate> {
        let scored = |candidate: Candidate| {
            let Candidate { level, part, .. } = candidate;
            let (Some(limit), Some(at)) = (limits.of(level), view.version.level(level)) else {
                return Some(candidate);
            };
            if part == Part::Run {
                // It goes through its log; once that has no room, emptying the
                // log is as urgent as the run is full. (Else level 0 would always
                // come first under load, into a level 1 that only grows.)
                let stuck = free_bytes(view, at) > limit;
                return stuck.then_some(Candidate { part: Part::SstLog, ..candidate });
            }
            let full = free_bytes(view, at) as f64 / limit as f64;
            let deep = at.sst_log_depth() as f64 / self.depth as f64;
            let score = full.max(deep);
            (score > 1.0).then_some(Candidate { score, ..candidate })
        };
        let mut due: Vec<Candidate> =
            candidates(levels, view).into_iter().filter_map(scored).collect();
        due.sort_by(|a, b| b.score.total_cmp(&a.score));
        if cfg!(debug_assertions) {
            let is_unfed = |n: u32| limits.of(n).is_none() && n > 0;
            let has_log = |n: u32| !view.version.part(n, Part::SstLog).is_empty();
            let drains = |n: u32| due.iter().any(|c| (c.level, c.part) == (n, Part::SstLog));
            let mut levels = 0..view.version.levels.len() as u32;
            let left = levels.find(|&n| is_unfed(n) && has_log(n) && !drains(n));
            debug_invariant!(I10, left.is_none(), "the SST-log of level {left:?} is not drained");
        }
        due
    }

    /// Pseudo compaction: from a run over its capacity into its log, which has room.
    fn fill(&self, levels: Levels<'_>, view: &View<'_>, limits: &SstLogLimits) -> Option<Decision> {
        (1..view.version.levels.len() as u32).find_map(|level| {
            let limit = limits.of(level)?;
            let at = view.version.level(level)?;
            let bytes = at.part_bytes(Part::Run);
            let capacity = levels.capacity(view.version, view.settings, level);
            let is_free = |i: &usize| !view.busy.is_busy(at.run[*i].number);
            if bytes <= capacity || free_bytes(view, at) > limit {
                return None;
            }
            let reason = Reason::RunToSstLog { level, bytes, capacity };
            let ranked = self.ranked(view, level, at);
            ranked.into_iter().filter(is_free).find_map(|i| self.to_log(view, level, i, &reason))
        })
    }

    /// The files of a run in the order in which they enter its log.
    fn ranked(&self, view: &View<'_>, level: u32, at: &Level) -> Vec<usize> {
        match self.mode {
            LogMode::Closed | LogMode::Columns => Leveled::round_robin(view.version, level, at),
            LogMode::Paper => {
                let weights = hotness::weights(&at.run, self.alpha);
                let (weighed, count) = (weights.len(), at.run.len());
                invariant!(H1, weighed == count, "{weighed} of {count} files are weighed");
                let mut ranked: Vec<usize> = (0..at.run.len()).collect();
                ranked.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
                ranked
            }
        }
    }

    /// The move of a run's file into the SST-log of its level: nothing is between (I5).
    fn to_log(&self, view: &View<'_>, level: u32, i: usize, reason: &Reason) -> Option<Decision> {
        let version = view.version;
        let file = &version.part(level, Part::Run)[i];
        let is_last = version.deepest() == Some(level);
        invariant!(I10, level > 0 && !is_last, "level {level} has no SST-log to fill");
        let epoch = version.next_epoch;
        let (from, to) = (Place::run(level), Place::sst_log(level, epoch));
        if view.busy.conflicts_move(&version.order, file, from, to) {
            return None;
        }
        let decision = Decision::Move(Move {
            file: file.clone(),
            from: (level, Part::Run),
            to: (level, Part::SstLog),
            epoch,
            reason: reason.clone(),
            cursor: None,
        });
        Some(match self.mode {
            LogMode::Closed | LogMode::Columns => with_cursor(decision, level),
            LogMode::Paper => decision,
        })
    }

    /// Returns a job that takes files down.
    fn empty(
        &self,
        levels: Levels<'_>,
        view: &View<'_>,
        limits: &SstLogLimits,
        due: Candidate,
    ) -> Option<Decision> {
        match (due, limits.of(due.level)) {
            (Candidate { level: 0, .. }, _) => levels.pick_level0(view),
            (Candidate { level, part: Part::SstLog, .. }, Some(limit)) => {
                self.aggregate(view, level, limit)
            }
            (Candidate { level, part: Part::SstLog, .. }, None) => drain_log(view, level),
            (Candidate { level, .. }, _) => Leveled::default().pick_run(levels, view, level),
        }
    }

    /// Aggregated compaction of an SST-log.
    fn aggregate(&self, view: &View<'_>, level: u32, limit: u64) -> Option<Decision> {
        let at = view.version.level(level)?;
        debug_assert!(limit > 0, "the SST-log of level {level} may hold nothing");
        let log = SstLogFiles::new(view, level, self.alpha);
        let take = |at: Option<&[u8]>, reason: Reason| match self.mode {
            LogMode::Closed | LogMode::Columns => log.cheapest(at, &reason),
            LogMode::Paper => log.by_weight(at, &reason),
        };
        if at.sst_log_depth() > self.depth {
            let free = at.sst_log.iter().filter(|f| !view.busy.is_busy(f.number));
            let deepest = deepest_point(&view.version.order, free);
            let (depth, all) = (deepest.depth, at.sst_log_depth());
            debug_invariant!(I4, depth <= all, "free files are {depth} deep, of {all}");
            if deepest.depth > self.depth {
                let depth = deepest.depth;
                let reason = Reason::SstLogDeep { level, depth, limit: self.depth };
                if let Some(decision) = take(Some(deepest.key), reason) {
                    return Some(decision);
                }
            }
        }
        let bytes = free_bytes(view, at);
        if bytes <= limit {
            return None;
        }
        let reason = Reason::SstLogFull { level, bytes, limit };
        let is_above_last = view.version.deepest() == Some(level + 1);
        if self.mode == LogMode::Columns && is_above_last {
            let bytes_max = view.settings.file_bytes.saturating_mul(ABSORB_FILES_MAX);
            if let Some(decision) = column::pick(view, level, bytes_max, &reason) {
                return Some(decision);
            }
        }
        take(None, reason)
    }
}

/// Bytes that SST-logs may take below the ceiling of space, with every run above the
/// last as large as it may be.
fn room(levels: Levels<'_>, version: &Version, settings: &PlanSettings) -> f64 {
    let Some(last) = version.deepest().filter(|_| settings.space_max_percent > 0) else {
        return f64::INFINITY;
    };
    let above = |n: u32| match n {
        0 => version.part_bytes(0, Part::SstLog),
        n => levels.capacity(version, settings, n),
    };
    let upper: f64 = (0..last).map(|n| above(n) as f64).sum();
    (dial::room(settings, version.part_bytes(last, Part::Run)) - upper).max(0.0)
}

/// The paper's sizes: level j's log is lambda^j of its run, and all logs
/// together are `budget`. By bisection: the sum grows with lambda.
fn inverse_proportional(runs: &[f64], levels: &[u32], budget: f64) -> Vec<f64> {
    debug_assert!(runs.len() == levels.len(), "{} runs of {} levels", runs.len(), levels.len());
    let sizes = |lambda: f64| {
        let size = move |(run, &level): (&f64, &u32)| run * libm::pow(lambda, level as f64);
        runs.iter().zip(levels).map(size)
    };
    let fits = |lambda: f64| sizes(lambda).sum::<f64>() <= budget;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..64 {
        if !fits(high) {
            break;
        }
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if fits(middle) { low = middle } else { high = middle }
    }
    debug_assert!(low <= high, "bisection ends from {low} to {high}");
    sizes(low).collect()
}

/// Windrow's sizes: by the square roots of the runs. Between equal logs, which wrote
/// less for level 2 and asked two tables more (10.3 writes, 10.0 tables, against
/// 10.0 and 8.2), and shares of the runs, which wrote more in three levels (9.9, 9.5).
fn split(runs: &[f64], budget: f64) -> Vec<f64> {
    let weight: Vec<f64> = runs.iter().map(|r| libm::sqrt(*r)).collect();
    let sum: f64 = weight.iter().sum();
    weight.iter().map(|w| budget * w / sum.max(1.0)).collect()
}
