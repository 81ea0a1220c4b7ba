//! `leveled`: from the level most over its capacity, one file with what it
//! overlaps below.
//!
//! Which file: with `min_overlap`, the one whose bytes meet the fewest bytes
//! below; with `round_robin`, the next one in key order after the last. Entries
//! written per entry flushed, in the simulation of `tests/model` (ratio 10,
//! tiered(4), 16,000 and 40,000 keys, a memtable of two files):
//!
//! | updates | min_overlap | round_robin |
//! |---|---|---|
//! | uniform | 9.1, 11.4 | 9.2, 11.5 |
//! | zipf, scattered | 5.0, 6.0 | 5.2, 6.2 |
//! | nine of ten in a tenth of the keys | 6.3, 8.4 | 6.4, 7.7 |
//!
//! So the first is the default. It loses where updates cluster in one range: that range is dense in
//! its level, so that it is always cheapest to take down, before it has collected the entries that
//! shadow its own.
//!
//! Owns: the choice of the file, and how far its job grows. Never does: fill an SST-log.

use super::level_limits::Levels;
use super::score::{Candidate, candidates};
use super::{decide, garbage, job, with_cursor};
use crate::decision::{Decision, Reason};
use crate::tree::closure::{Closure, Seat, close};
use crate::tree::{File, Level, Part, Version};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// Which file of an overfull run goes down first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileChoice {
    /// Fewest bytes overlapped below per byte of its own.
    #[default]
    MinOverlap,
    /// The next in key order, from a cursor kept in the version.
    RoundRobin,
}

/// The leveled picker.
#[derive(Clone, Debug, PartialEq)]
pub struct Leveled {
    /// Which file goes first.
    pub file: FileChoice,
    /// A job grows by further files of its source run, as long as it takes none
    /// more from the target, up to this many times `file_bytes`.
    pub grow: u32,
}

impl Default for Leveled {
    fn default() -> Leveled {
        Leveled { file: FileChoice::default(), grow: 25 }
    }
}

impl Leveled {
    /// Returns the most urgent job that can start now; if no level has one, a job that frees space.
    pub fn pick(&self, levels: Levels<'_>, view: &View<'_>) -> Decision {
        candidates(levels, view)
            .into_iter()
            .find_map(|candidate| match candidate {
                Candidate { level: 0, .. } => levels.pick_level0(view),
                Candidate { level, part: Part::SstLog, .. } => drain_log(view, level),
                Candidate { level, .. } => self.pick_run(levels, view, level),
            })
            .or_else(|| garbage::pick(view))
            .unwrap_or(Decision::Idle)
    }

    /// Takes the best file of a run, with those that it meets, down into the next run.
    pub(super) fn pick_run(
        &self,
        levels: Levels<'_>,
        view: &View<'_>,
        level: u32,
    ) -> Option<Decision> {
        invariant!(I1, level > 0, "level 0 has no run to pick from");
        let version = view.version;
        let source = version.level(level)?;
        let bytes = source.part_bytes(Part::Run);
        let capacity = levels.capacity(version, view.settings, level);
        let reason = || Reason::LevelFull { level, bytes, capacity };
        self.ranked(view, level, source).into_iter().find_map(|index| {
            let allow = |f: &File| !view.busy.is_busy(f.number);
            let to = (level + 1, Part::Run);
            let closure = close(version, [(level, Part::Run, index)], to, allow)?;
            let grown = grow(view, &closure, index, level, self.grow);
            let decision = grown
                .and_then(|grown| decide(view, &grown, reason()))
                .or_else(|| decide(view, &closure, reason()))?;
            Some(match self.file {
                FileChoice::RoundRobin => with_cursor(decision, level),
                FileChoice::MinOverlap => decision,
            })
        })
    }

    /// Returns a run's files from the cursor on, and over the end.
    pub(super) fn round_robin(version: &Version, level: u32, source: &Level) -> Vec<usize> {
        let start = version.cursor(level).map_or(0, |cursor| {
            source.run.partition_point(|f| version.order.compare(&f.smallest, cursor).is_le())
        });
        debug_invariant!(I10, level > 0, "level 0 has no run to go round");
        let after = |f: &Arc<File>| {
            version
                .cursor(level)
                .is_none_or(|cursor| version.order.compare(&f.smallest, cursor).is_gt())
        };
        debug_invariant!(I1, source.run.get(start).is_none_or(after), "a run goes on too early");
        (start..source.run.len()).chain(0..start).collect()
    }

    /// Returns the run's files that are not busy, best first.
    fn ranked(&self, view: &View<'_>, level: u32, source: &Level) -> Vec<usize> {
        let version = view.version;
        let free = |i: &usize| !view.busy.is_busy(source.run[*i].number);
        match self.file {
            FileChoice::RoundRobin => {
                Leveled::round_robin(version, level, source).into_iter().filter(free).collect()
            }
            FileChoice::MinOverlap => {
                let below = overlapped_bytes(version, source, level + 1);
                let mut ranked: Vec<(f64, usize)> = (0..source.run.len())
                    .filter(free)
                    .map(|i| (below[i] as f64 / source.run[i].bytes.max(1) as f64, i))
                    .collect();
                ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
                ranked.into_iter().map(|(_, i)| i).collect()
            }
        }
    }
}

/// Returns, for each file of a run, the bytes of the run of `below` that it overlaps. One pass over
/// both.
fn overlapped_bytes(version: &Version, source: &Level, below: u32) -> Vec<u64> {
    let order = &version.order;
    let target = version.part(below, Part::Run);
    let mut first = 0;
    let overlapped = |file: &Arc<File>| {
        while target.get(first).is_some_and(|t| t.span().ends_before(order, &file.smallest)) {
            first += 1;
        }
        let span = file.span();
        target[first..]
            .iter()
            .take_while(|t| !span.ends_before(order, &t.smallest))
            .map(|t| t.bytes)
            .sum()
    };
    let below_bytes: Vec<u64> = source.run.iter().map(overlapped).collect();
    if let Some(target) =
        version.level(below).filter(|_| cfg!(debug_assertions) && below_bytes.len() < 16)
    {
        let mut both = source.run.iter().zip(&below_bytes);
        let odd = both.find(|(f, bytes)| target.run_bytes_overlapping(order, &f.span()) != **bytes);
        let number = odd.map(|(file, _)| file.number);
        debug_invariant!(I1, number.is_none(), "what table {number:?} meets is miscounted");
    }
    below_bytes
}

/// Adds neighbours of the seed that the target files of its closure cover
/// anyway: more goes down for the same rewriting.
fn grow<'v>(
    view: &View<'v>,
    closure: &Closure<'v>,
    index: usize,
    level: u32,
    files_max: u32,
) -> Option<Closure<'v>> {
    let version = view.version;
    let target = (level + 1, Part::Run);
    let covered = closure.count(target.0, target.1);
    let source = version.level(level)?;
    if covered == 0 {
        return None;
    }
    let span = closure.span();
    let order = &version.order;
    let inside = |f: &File| {
        order.compare(span.lo, &f.smallest).is_le()
            && f.span().compare_ends(order, &span).is_le()
            && !view.busy.is_busy(f.number)
    };
    let limit = view.settings.file_bytes.saturating_mul(files_max as u64);
    let mut bytes = closure.bytes();
    let mut take = |i: usize| {
        bytes = bytes.saturating_add(source.run[i].bytes);
        inside(&source.run[i]) && bytes <= limit
    };
    let mut first = index;
    while first > 0 && take(first - 1) {
        first -= 1;
    }
    let mut end = index + 1;
    while end < source.run.len() && take(end) {
        end += 1;
    }
    if end - first == 1 {
        return None;
    }
    let seeds = (first..end).map(|i| -> Seat { (level, Part::Run, i) });
    let grown = close(version, seeds, target, |f| !view.busy.is_busy(f.number))?;
    let (few, many) = (closure.len(), grown.len());
    invariant!(I5, many >= few + (end - first - 1), "a job of {few} files grows to {many}");
    debug_assert!(first <= index && index < end, "file {index} is not in {first} to {end}");
    let same = grown.count(target.0, target.1) == covered
        && grown.count(level, Part::SstLog) == closure.count(level, Part::SstLog);
    same.then_some(grown)
}

/// Returns the next job that empties the log of `level` (I10): down into the next run, oldest files
/// first; in the deepest level into its own run, newest first.
pub(super) fn drain_log(view: &View<'_>, level: u32) -> Option<Decision> {
    let version = view.version;
    let log = version.part(level, Part::SstLog);
    let reason = Reason::DrainSstLog { level, bytes: version.part_bytes(level, Part::SstLog) };
    let deepest = version.deepest() == Some(level);
    invariant!(I10, level > 0, "level 0 is drained by its own policy");
    debug_invariant!(I10, !log.is_empty(), "the SST-log of level {level} is empty already");
    (0..log.len()).find_map(|i| match deepest {
        true => job(view, [(level, Part::SstLog, i)], (level, Part::Run), reason.clone()),
        false => {
            let seat = (level, Part::SstLog, log.len() - 1 - i);
            job(view, [seat], (level + 1, Part::Run), reason.clone())
        }
    })
}
