//! Manual compaction of a key range, step by step.
//!
//! 1. For each level n from 0 to the deepest but one: first the files of its log that overlap the
//!    range go down in one job, then its run in key order, a few files a job.
//! 2. In the deepest level: its log goes into its run.
//! 3. Then each file of its run in the range that still has something to give
//!    up, and that every snapshot allows to, is rewritten in place.
//!
//! It ends because the state (level, SST-log before run, key) only grows: a step starts after the
//! last one's key, and its own lies beyond. A file that enters a level behind the position, or that
//! other jobs write again, is not visited again. The deepest level may move down meanwhile; there
//! are `LEVELS_MAX`.
//!
//! Owns: the position, and the next step from it. Never does: go back, or keep the state between
//! steps.

use super::{decide, job, merge_of};
use crate::decision::{Decision, Reason};
use crate::tree::closure::{Seat, close};
use crate::tree::{File, LEVELS_MAX, Part, Span, Version};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{FileNumber, invariant};

/// A job takes at most this many times `file_bytes` from its source run.
const STEP_FILES_MAX: u64 = 16;

/// How far a manual compaction has come. The caller keeps it between steps,
/// and drops it to give up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualState {
    level: u32,
    log_done: bool,
    /// Where the last step's files ended: key, and whether it is exclusive.
    after: Option<(Vec<u8>, bool)>,
    done: bool,
    /// Files with larger numbers were written since it began.
    newest: Option<FileNumber>,
}

impl ManualState {
    /// The state at the beginning.
    pub fn new() -> ManualState {
        ManualState::default()
    }

    /// Whether the compaction is complete.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The level it has come to: everything above was taken down.
    pub fn level(&self) -> u32 {
        self.level
    }

    fn next_level(&mut self) {
        debug_assert!(self.log_done, "level {} is left with its SST-log", self.level);
        let (level, newest) = (self.level + 1, self.newest);
        debug_assert!(level <= LEVELS_MAX, "a compaction comes to level {level}");
        *self = ManualState { level, newest, ..ManualState::default() };
    }
}

/// The user's range, ends included.
struct Asked<'a> {
    lo: Option<&'a [u8]>,
    hi: Option<&'a [u8]>,
}

impl Asked<'_> {
    fn overlaps(&self, version: &Version, file: &File) -> bool {
        let order = &version.order;
        self.lo.is_none_or(|lo| !file.span().ends_before(order, lo))
            && self.hi.is_none_or(|hi| order.compare(&file.smallest, hi).is_le())
    }
}

/// See [`crate::Policy::manual`].
pub(crate) fn step(
    view: &View<'_>,
    lo: Option<&[u8]>,
    hi: Option<&[u8]>,
    state: &mut ManualState,
) -> Decision {
    let asked = Asked { lo, hi };
    let newest = || view.version.files().map(|(_, _, f)| f.number).max().unwrap_or(0);
    state.newest.get_or_insert_with(newest);
    while !state.done {
        // Level 0 alone is not deep enough: it has no run.
        let deepest = view.version.deepest().map_or(0, |n| n.max(1));
        if view.version.deepest().is_none() || state.level > deepest {
            state.done = true;
            break;
        }
        let last = state.level == deepest;
        let before = (state.level, state.log_done, state.done);
        let step = match (state.log_done, last) {
            (false, _) => log_step(view, &asked, state, last),
            (true, false) => run_step(view, &asked, state),
            (true, true) => rewrite_step(view, &asked, state),
        };
        match step {
            ManualStep::Do(decision) => return decision,
            ManualStep::Wait => return Decision::Idle,
            ManualStep::Next => {
                let after = (state.level, state.log_done, state.done);
                debug_assert!(before != after, "it comes no further than {after:?}");
            }
        }
    }
    Decision::Idle
}

enum ManualStep {
    Do(Decision),
    /// A running job is in the way.
    Wait,
    /// This part is done.
    Next,
}

/// Takes the whole of a level's SST-log in the range down, in one job.
fn log_step(view: &View<'_>, asked: &Asked<'_>, state: &mut ManualState, last: bool) -> ManualStep {
    debug_assert!(
        !state.log_done && state.after.is_none(),
        "the SST-log's turn is over: {state:?}"
    );
    let version = view.version;
    let level = state.level;
    let log = version.part(level, Part::SstLog).iter().enumerate();
    let seeds: Vec<Seat> = log
        .filter(|(_, f)| asked.overlaps(version, f))
        .map(|(i, _)| (level, Part::SstLog, i))
        .collect();
    if seeds.is_empty() {
        state.log_done = true;
        return ManualStep::Next;
    }
    let to = if last { (level, Part::Run) } else { (level + 1, Part::Run) };
    invariant!(I10, to.0 > 0, "level 0 is the last one");
    match job(view, seeds, to, Reason::Manual) {
        None => ManualStep::Wait,
        Some(decision) => {
            state.log_done = true;
            ManualStep::Do(decision)
        }
    }
}

/// Takes the next files of a level's run down by one level.
fn run_step(view: &View<'_>, asked: &Asked<'_>, state: &mut ManualState) -> ManualStep {
    debug_assert!(state.log_done, "a run goes down over its SST-log: {state:?}");
    let version = view.version;
    let level = state.level;
    let files = remaining(version, asked, state);
    let limit = view.settings.file_bytes.saturating_mul(STEP_FILES_MAX);
    let mut bytes = 0u64;
    let mut seeds: Vec<Seat> = Vec::new();
    for (i, file) in files {
        bytes = bytes.saturating_add(file.bytes);
        if !seeds.is_empty() && bytes > limit {
            break;
        }
        seeds.push((level, Part::Run, i));
    }
    let Some(&(_, _, last)) = seeds.last() else {
        state.next_level();
        return ManualStep::Next;
    };
    let reached = end(&version.part(level, Part::Run)[last]);
    let is_beyond = state.after.as_ref().is_none_or(|after| is_after(version, &reached, after));
    debug_assert!(is_beyond, "a step ends at or before the one before it");
    let allow = |f: &File| !view.busy.is_busy(f.number);
    // Alone a file may be moved; several are merged.
    let first = close(version, [seeds[0]], (level + 1, Part::Run), allow);
    let alone =
        first.filter(|closure| closure.len() == 1).and_then(|c| decide(view, &c, Reason::Manual));
    if let Some(decision) = alone {
        state.after = Some(end(&version.part(level, Part::Run)[seeds[0].2]));
        return ManualStep::Do(decision);
    }
    match job(view, seeds, (level + 1, Part::Run), Reason::Manual) {
        None => ManualStep::Wait,
        Some(decision) => {
            state.after = Some(reached);
            ManualStep::Do(decision)
        }
    }
}

/// Rewrites the next file of the deepest run that gains by it.
fn rewrite_step(view: &View<'_>, asked: &Asked<'_>, state: &mut ManualState) -> ManualStep {
    let version = view.version;
    let level = state.level;
    let Some((i, file)) = remaining(version, asked, state).find(|(_, f)| gains(view, f, state))
    else {
        state.done = true;
        return ManualStep::Next;
    };
    let is_beyond = state.after.as_ref().is_none_or(|after| is_after(version, &end(file), after));
    debug_assert!(is_beyond, "table {} is rewritten out of turn", file.number);
    debug_assert!(Some(level) == version.deepest(), "level {level} is not the last one");
    let allow = |f: &File| !view.busy.is_busy(f.number);
    let closure = close(version, [(level, Part::Run, i)], (level, Part::Run), allow);
    match closure.and_then(|closure| merge_of(view, &closure, Reason::Manual)) {
        None => ManualStep::Wait,
        Some(decision) => {
            state.after = Some(end(file));
            ManualStep::Do(decision)
        }
    }
}

/// Whether rewriting a file of the deepest run can give something up that no
/// snapshot needs: tombstones and expired entries, or perhaps shadowed ones,
/// which metadata does not show. Those a file can hold only if it has not been
/// merged since the compaction began and its sequence numbers are not zeroed.
fn gains(view: &View<'_>, file: &File, state: &ManualState) -> bool {
    let expired = file.expiring_entries > 0 && file.expiry_min_ms <= view.now_ms;
    let old = state.newest.is_none_or(|newest| file.number <= newest) && file.seq_max > 0;
    file.seq_max <= view.snapshots_oldest && (old || file.tombstones() > 0 || expired)
}

/// Returns where the file ends, to go on from there.
fn end(file: &File) -> (Vec<u8>, bool) {
    (file.largest.to_vec(), file.largest_exclusive)
}

/// Returns a position as a span that ends there.
fn position((key, is_open): &(Vec<u8>, bool)) -> Span<'_> {
    Span { lo: key, hi: key, hi_exclusive: *is_open }
}

/// Whether a position is beyond another one.
fn is_after(version: &Version, at: &(Vec<u8>, bool), before: &(Vec<u8>, bool)) -> bool {
    position(at).compare_ends(&version.order, &position(before)).is_gt()
}

/// Returns the files of the level's run in the range that end beyond the position.
fn remaining<'v>(
    version: &'v Version,
    asked: &Asked<'_>,
    state: &ManualState,
) -> impl Iterator<Item = (usize, &'v Arc<File>)> {
    let run = version.part(state.level, Part::Run);
    let start = state.after.as_ref().map_or(0, |after| {
        let after = position(after);
        run.partition_point(|f| f.span().compare_ends(&version.order, &after).is_le())
    });
    let beyond = run.iter().enumerate().skip(start);
    let asked = Asked { ..*asked };
    beyond.filter(move |(_, f)| asked.overlaps(version, f))
}
