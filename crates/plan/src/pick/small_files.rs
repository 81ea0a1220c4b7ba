//! Small neighbours become one file, whether they overlap or not.
//!
//! Flushes that hold little and do not overlap are neither deep nor large, so no other rule asks
//! for them, and each stays a file for ever: 400 short runs of a program that writes one key made
//! 400 tables. Where no other job is due, a *window* of neighbours is rewritten in place: epochs of
//! level 0 that follow each other, or files of a run. A job of level 0 is its own closure (I5):
//! every epoch between two of a window is in it. So is one of a run.
//!
//! *No byte is rewritten often.* A window is taken if its largest member is at most a fourth of it
//! (or half, where there are many): with each rewriting a byte comes to be in a file four times as
//! large, until that is no longer small. And each job leaves fewer files: of a level above 0 the
//! window holds no place at which the policy's cutter would end a file. In level 0 epochs count,
//! and those that mostly cover one point are left to the policy of level 0, whose measure is depth.
//!
//! Rejected: a limit on the number of files in level 0, which would send them down one by
//! one, into a level 1 of as many.
//!
//! Owns: the windows. Never does: take a file to another level.

use super::merge_of;
use crate::cut::Cutter;
use crate::decision::{Decision, Reason};
use crate::tree::closure::{Seat, close};
use crate::tree::level::deepest_point;
use crate::tree::{File, Part};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use windrow_base::{debug_invariant, invariant};

/// An epoch of level 0 is small up to this part of `file_bytes`.
const SMALL_PART_LEVEL0: u64 = 8;
/// So is a file of a run, less than a cut by overlap leaves (`cut/overlap.rs`).
const SMALL_PART_RUN: u64 = 16;
/// Fewest members of a window.
const MEMBERS_MIN: usize = 8;
/// The largest member is at most this part of its window.
const LARGEST_PART: u64 = 4;
/// This many members are also merged if the largest is half of them.
const MEMBERS_MANY: usize = 32;

/// Files that stay together: an epoch of level 0, or one file of a run.
struct Member {
    /// Indices in their half of the level.
    files: Range<usize>,
    bytes: u64,
    /// It may be merged.
    is_small: bool,
    /// It begins a file whatever comes before it.
    is_cut: bool,
}

/// Returns the first window that is worth a job, from the top of the tree down. `cutter` ends the
/// files of an output into a level.
pub(crate) fn pick(view: &View<'_>, cutter: impl Fn(u32) -> Cutter) -> Option<Decision> {
    let log = view.version.part(0, Part::SstLog);
    // The oldest epochs first: the windows after them are not finished.
    let found = windows(&epochs(view, log), view.settings.file_bytes)
        .filter(|window| is_wide(view, &log[window.clone()]))
        .last();
    if let Some(decision) = found.and_then(|window| job(view, 0, Part::SstLog, window)) {
        return Some(decision);
    }
    (1..view.version.levels.len() as u32).find_map(|level| {
        let members = files_of_run(view, level, &cutter);
        let mut found = windows(&members, view.settings.file_bytes);
        found.find_map(|window| job(view, level, Part::Run, window))
    })
}

fn job(view: &View<'_>, level: u32, part: Part, files: Range<usize>) -> Option<Decision> {
    invariant!(I5, files.len() >= MEMBERS_MIN, "a window of {} files", files.len());
    let bytes = view.version.part(level, part)[files.clone()].iter().map(|f| f.bytes).sum();
    let most = view.settings.file_bytes;
    debug_assert!(bytes <= most, "{bytes} bytes of small files become one file of {most}");
    let reason = Reason::SmallFiles { level, files: files.len() as u32, bytes };
    let seeds = files.map(|i| -> Seat { (level, part, i) });
    let count = seeds.len();
    let closure = close(view.version, seeds, (level, part), |f| !view.busy.is_busy(f.number))?;
    debug_invariant!(I5, closure.len() == count, "a window of {count} needs {}", closure.len());
    merge_of(view, &closure, reason)
}

/// The epochs of level 0, newest first.
fn epochs(view: &View<'_>, log: &[Arc<File>]) -> Vec<Member> {
    let mut first = 0;
    let member = |files: &[Arc<File>]| {
        let range = first..first + files.len();
        first = range.end;
        let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.bytes));
        let is_small = bytes <= view.settings.file_bytes / SMALL_PART_LEVEL0
            && !files.iter().any(|f| view.busy.is_busy(f.number));
        Member { files: range, bytes, is_small, is_cut: false }
    };
    let members: Vec<Member> = log.chunk_by(|a, b| a.epoch == b.epoch).map(member).collect();
    let end = members.last().map_or(0, |last| last.files.end);
    invariant!(I5, end == log.len(), "epochs up to file {end} of {}", log.len());
    members
}

/// The files of a run, by key, with the places at which an output would be cut.
fn files_of_run(view: &View<'_>, level: u32, cutter: &impl Fn(u32) -> Cutter) -> Vec<Member> {
    let run = view.version.part(level, Part::Run);
    let is_small = |file: &File| file.bytes <= view.settings.file_bytes / SMALL_PART_RUN;
    if run.iter().filter(|file| is_small(file)).count() < MEMBERS_MIN {
        return Vec::new();
    }
    let order = &view.version.order;
    let mut cutter = cutter(level);
    // Bytes of the output that the file would be in.
    let mut so_far = 0u64;
    let mut member = |(i, file): (usize, &Arc<File>)| {
        let is_cut = cutter.cut_before(order, &file.smallest, so_far, || u64::MAX);
        so_far = if is_cut { file.bytes } else { so_far.saturating_add(file.bytes) };
        let is_split = cutter.cut_before(order, &file.largest, so_far, || u64::MAX);
        if is_split {
            so_far = 0;
        }
        let is_small = is_small(file) && !is_split && !view.busy.is_busy(file.number);
        Member { files: i..i + 1, bytes: file.bytes, is_small, is_cut }
    };
    run.iter().enumerate().map(&mut member).collect()
}

/// Whether no point is covered by more than half of these: else that is a matter
/// of depth.
fn is_wide(view: &View<'_>, files: &[Arc<File>]) -> bool {
    let epochs = files.chunk_by(|a, b| a.epoch == b.epoch).count();
    let depth = deepest_point(&view.version.order, files.iter()).depth as usize;
    debug_invariant!(I4, depth <= epochs, "{depth} of {epochs} epochs cover a point");
    depth * 2 <= epochs
}

/// Windows of members that follow each other and are worth a job, each of at
/// most `bytes_max`; they do not overlap.
fn windows(members: &[Member], bytes_max: u64) -> impl Iterator<Item = Range<usize>> {
    let follow = members.windows(2).all(|pair| pair[0].files.end == pair[1].files.start);
    debug_invariant!(I5, follow, "members of a window do not follow each other");
    let mut at = 0;
    core::iter::from_fn(move || {
        while at < members.len() {
            match window_at(members, at, bytes_max) {
                Some(window) => {
                    let files = members[at].files.start..members[window.end - 1].files.end;
                    at = window.end;
                    return Some(files);
                }
                None => at += 1,
            }
        }
        None
    })
}

/// The longest window that begins here.
fn window_at(members: &[Member], first: usize, bytes_max: u64) -> Option<Range<usize>> {
    let (mut sum, mut largest) = (0u64, 0);
    let mut found = None;
    for (count, member) in (1..).zip(&members[first..]) {
        sum = sum.saturating_add(member.bytes);
        largest = largest.max(member.bytes);
        if !member.is_small || (count > 1 && member.is_cut) || sum > bytes_max {
            break;
        }
        let part = if count >= MEMBERS_MANY { 2 } else { LARGEST_PART };
        if count >= MEMBERS_MIN && largest <= sum / part {
            found = Some(first..first + count);
        }
    }
    let taken = found.clone().map_or(&members[..0], |window| &members[window]);
    let large = taken.iter().find(|member| !member.is_small).map(|member| member.bytes);
    debug_assert!(large.is_none(), "a file of {large:?} bytes is among small ones");
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Busy;
    use crate::Policy;
    use crate::preset::PRESETS;
    use crate::tree::{Edit, Version};
    use crate::view::PlanSettings;
    use alloc::format;
    use windrow_base::KeyOrder;
    use windrow_base::key::SEQ_MAX;

    const FLUSHES: u64 = 2000;
    const FLUSH_BYTES: u64 = 2000;

    fn file(number: u64, key: u64) -> File {
        let key: Arc<[u8]> = format!("{key:08}").into_bytes().into();
        File {
            number,
            bytes: FLUSH_BYTES,
            entries: 1,
            smallest: key.clone(),
            largest: key.clone(),
            point_bounds: Some((key.clone(), key)),
            seq_min: number,
            seq_max: number,
            ..File::default()
        }
    }

    /// One file of all inputs, as a merge leaves it where nothing is cut.
    fn joined(inputs: &[Arc<File>], number: u64) -> File {
        let smallest = inputs.iter().map(|f| f.smallest.clone()).min().unwrap();
        let largest = inputs.iter().map(|f| f.largest.clone()).max().unwrap();
        File {
            number,
            bytes: inputs.iter().map(|f| f.bytes).sum(),
            entries: inputs.iter().map(|f| f.entries).sum(),
            point_bounds: Some((smallest.clone(), largest.clone())),
            smallest,
            largest,
            seq_min: inputs.iter().map(|f| f.seq_min).min().unwrap(),
            seq_max: inputs.iter().map(|f| f.seq_max).max().unwrap(),
            ..File::default()
        }
    }

    /// Flushes one key at a time, idle in between. Returns the most files there
    /// were, and bytes that jobs on small files wrote per byte flushed.
    fn flush_keys(preset: &str, key_of: impl Fn(u64) -> u64) -> (usize, f64) {
        let policy = Policy::parse(preset).unwrap();
        let sizes = policy.sizes(64 << 20);
        let settings = PlanSettings {
            memtable_bytes: 64 << 20,
            file_bytes: sizes.file_bytes,
            level_base_bytes: sizes.level_base_bytes,
            ..PlanSettings::default()
        };
        let mut version = Version::empty(KeyOrder::Bytewise);
        let (mut number, mut written, mut most) = (0, 0, 0);
        for flush in 0..FLUSHES {
            number += 1;
            let flushed = alloc::vec![file(number, key_of(flush))];
            version = version.apply(&Edit::flush(&version, flushed, number)).unwrap();
            loop {
                let busy = Busy::new();
                let view = View {
                    version: &version,
                    busy: &busy,
                    settings: &settings,
                    snapshots_oldest: SEQ_MAX,
                    now_ms: 0,
                };
                let edit = match policy.pick(&view) {
                    Decision::Idle => break,
                    Decision::Merge(merge) => {
                        number += 1;
                        if let Reason::SmallFiles { bytes, .. } = merge.reason {
                            written += bytes;
                        }
                        let inputs: Vec<_> = merge.files().map(|(_, _, f)| f.clone()).collect();
                        merge.edit(alloc::vec![joined(&inputs, number)])
                    }
                    Decision::Move(step) => step.edit(),
                    Decision::Drop(drop) => drop.edit(),
                    Decision::Reshape(shape) => shape.edit(),
                };
                version = version.apply(&edit).unwrap();
            }
            most = version.files().count().max(most);
        }
        (most, written as f64 / (FLUSHES * FLUSH_BYTES) as f64)
    }

    /// Fails with one file for each flush where small neighbours stay apart.
    #[test]
    fn flushes_of_a_key_each_leave_few_files_and_are_rewritten_seldom() {
        for (preset, _) in PRESETS {
            let scattered = |flush: u64| flush * 7919 % 2003;
            let orders: [(&str, &dyn Fn(u64) -> u64); 3] = [
                ("ascending", &|flush| flush),
                ("descending", &|flush| FLUSHES - flush),
                ("scattered", &scattered),
            ];
            for (order, key_of) in orders {
                let (most, written) = flush_keys(preset, key_of);
                assert!(most <= 40, "{preset}, {order}: {most} files");
                assert!(written <= 6.0, "{preset}, {order}: {written} bytes a byte");
            }
        }
    }
}
