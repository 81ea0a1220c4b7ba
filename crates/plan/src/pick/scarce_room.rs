//! The merge for a device without room for the policy's own choice: it takes most out of its level
//! for the bytes that it writes, of those whose output surely fits.
//!
//! A job writes no more than it reads, and its inputs go once it is installed: a job that fits now
//! leaves at least as much room as there was. In level 0 it takes a few tables and those that they
//! overlap below, or, where that is too much, merges tables of level 0 over one point with each
//! other; below, it takes a file of a run. Each takes files down, or leaves fewer in level 0, so
//! these jobs come to an end.
//!
//! They write more in all than the policy's would. Rejected: waiting until there is room. A level 0
//! full of small tables, most of whose entries newer ones hide, kept a device full, though only a
//! third of its bytes was live.
//!
//! Owns: that choice. Never does: measure the room.

use super::{decide, merge_of};
use crate::decision::{Decision, Reason};
use crate::tree::closure::{Closure, Seat, close};
use crate::tree::{File, Part};
use crate::view::View;
use alloc::vec::Vec;

/// Most files of a level that are looked at.
const CANDIDATES_MAX: usize = 16;

/// Returns the merge. It reads `room_bytes` at most, and takes from levels up to `deepest`.
pub(crate) fn pick(view: &View<'_>, room_bytes: u64, deepest: u32) -> Option<Decision> {
    let level0 = || down(view, (0, Part::SstLog), room_bytes).or_else(|| within(view, room_bytes));
    let deepest = deepest.min(view.version.deepest().unwrap_or(0));
    let below = || (1..=deepest).find_map(|level| down(view, (level, Part::Run), room_bytes));
    let decision = level0().or_else(below)?;
    let bytes: u64 = decision.files().iter().map(|(_, _, file)| file.bytes).sum();
    let is_move = matches!(decision, Decision::Move(_));
    debug_assert!(is_move || bytes <= room_bytes, "{bytes} bytes into {room_bytes}");
    Some(decision)
}

/// Returns files of half a level that no job has, some of many, the oldest first.
fn candidates(view: &View<'_>, (level, part): (u32, Part)) -> impl Iterator<Item = Seat> {
    let files = view.version.part(level, part);
    let step = files.len().div_ceil(CANDIDATES_MAX).max(1);
    let idle = move |i: &usize| !view.busy.is_busy(files[*i].number);
    (0..files.len()).rev().step_by(step).filter(idle).map(move |i| (level, part, i))
}

/// Returns the files that overlap these, in the same half of a level.
fn neighbours(view: &View<'_>, closure: &Closure<'_>, (level, part): (u32, Part)) -> Vec<Seat> {
    let over = view.version.overlapping_span(level, part, closure.span());
    over.map(|(i, _)| (level, part, i)).collect()
}

fn reason(room_bytes: u64) -> Reason {
    Reason::LittleRoom { bytes: room_bytes }
}

/// Takes some files of a level to the next one: those that carry the largest part of the job.
fn down(view: &View<'_>, from: (u32, Part), room_bytes: u64) -> Option<Decision> {
    let version = view.version;
    let (to, last) = ((from.0 + 1, Part::Run), version.deepest().unwrap_or(0));
    if from.0 > 0 && last <= from.0 {
        // Nothing is below that it could hide.
        return None;
    }
    let allow = |file: &File| !view.busy.is_busy(file.number);
    let mut best: Option<(f64, Closure<'_>)> = None;
    for seat in candidates(view, from) {
        let Some(least) = close(version, [seat], to, allow) else { continue };
        if room_bytes < least.bytes() {
            continue;
        }
        let more = close(version, neighbours(view, &least, from), to, allow);
        let closure = more.filter(|more| more.bytes() <= room_bytes).unwrap_or(least);
        if from.0 > 0 && closure.count(to.0, to.1) == 0 {
            continue;
        }
        let all = closure.bytes().max(1);
        let carried: u64 =
            closure.files().filter(|(level, _, _)| *level == from.0).map(|(_, _, f)| f.bytes).sum();
        let share = carried as f64 / all as f64;
        if best.as_ref().is_none_or(|(most, _)| *most < share) {
            best = Some((share, closure));
        }
    }
    decide(view, &best?.1, reason(room_bytes))
}

/// Merges tables of level 0 over one point into one: the most that fit.
fn within(view: &View<'_>, room_bytes: u64) -> Option<Decision> {
    let (version, level0) = (view.version, (0, Part::SstLog));
    let allow = |file: &File| !view.busy.is_busy(file.number);
    let of = |seat: Seat| {
        let alone = close(version, [seat], level0, allow)?;
        close(version, neighbours(view, &alone, level0), level0, allow)
    };
    let fits = |closure: &Closure<'_>| 1 < closure.len() && closure.bytes() <= room_bytes;
    let all = candidates(view, level0).filter_map(of).filter(fits);
    merge_of(view, &all.max_by_key(Closure::len)?, reason(room_bytes))
}
