//! Work that frees space when no level is over its limit: files of tombstones
//! and of expired entries.
//!
//! Each step makes progress that can be counted, so that this never loops: a
//! drop removes a file; a job for a file with something older below it takes
//! it a level deeper; a rewrite in place is chosen only if everything in the
//! file is below every snapshot and nothing older lies below it (I6), so that
//! its tombstones and expired entries are gone afterwards.
//!
//! Owns: when garbage is due, and the job that frees it. Never does: read a table; its counts are
//! enough.

use super::{job, merge_of};
use crate::decision::{Decision, Drop, Reason};
use crate::tree::closure::{Seat, close};
use crate::tree::older_files::nothing_older;
use crate::tree::{File, Level, Part};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// Returns the first job that frees space, from the top of the tree down.
pub(crate) fn pick(view: &View<'_>) -> Option<Decision> {
    let version = view.version;
    let counted = |level: &Level| {
        let both = level.run.iter().chain(&level.sst_log);
        both.filter(|file| file.may_hold_garbage()).count()
    };
    let odd = version.levels.iter().position(|level| level.garbage_files() != counted(level));
    debug_invariant!(I2, odd.is_none(), "tables with tombstones of level {odd:?} are miscounted");
    let with_garbage = (0..).zip(&version.levels).filter(|(_, level)| level.garbage_files() > 0);
    for (n, level) in with_garbage {
        for part in [Part::Run, Part::SstLog] {
            for (i, file) in level.part(part).iter().enumerate() {
                if !file.may_hold_garbage() || view.busy.is_busy(file.number) {
                    continue;
                }
                if let Some(decision) = collect(view, (n, part, i), file) {
                    return Some(decision);
                }
            }
        }
    }
    None
}

fn collect(view: &View<'_>, seat: Seat, file: &Arc<File>) -> Option<Decision> {
    let (level, part, _) = seat;
    invariant!(I9, !view.busy.is_busy(file.number), "table {} is busy", file.number);
    let only_tombstones = file.point_tombstones == file.entries;
    // Most files are in no way due, which is cheaper to see than the files below.
    if !only_tombstones && due(view, file, true).is_none() {
        return None;
    }
    let bottom = nothing_older(view.version, level, part, file);
    // `entries` counts points alone, so that a file of range tombstones is one as well.
    if bottom && only_tombstones {
        let reason = Reason::OnlyTombstones { file: file.number };
        let files = vec![(level, part, file.clone())];
        return Some(Decision::Drop(Drop { files, under: Vec::new(), reason }));
    }
    let reason = due(view, file, bottom)?;
    let deepest = view.version.deepest().unwrap_or(0);
    if !bottom {
        // In the deepest level only the log lies below the run, and it drains by itself.
        let to = (level + 1, Part::Run);
        debug_invariant!(I6, level <= deepest, "level {level} of a tree of {deepest} levels");
        return if level < deepest { job(view, [seat], to, reason) } else { None };
    }
    if file.seq_max >= view.snapshots_oldest {
        return None;
    }
    let to = (level.max(1), Part::Run);
    let closure = close(view.version, [seat], to, |f| !view.busy.is_busy(f.number))?;
    // Nothing older overlaps it: the files merged with it are newer, in its own level.
    let alien = closure.files().find(|(n, _, _)| *n != level && *n != to.0);
    debug_invariant!(I6, alien.is_none(), "a rewriting in level {level} takes {alien:?}");
    merge_of(view, &closure, reason)
}

/// Returns the reason to collect the file's garbage, if it is due by now.
fn due(view: &View<'_>, file: &File, bottom: bool) -> Option<Reason> {
    let age_ms = view.now_ms.saturating_sub(file.created_ms);
    if age_ms >= view.settings.tombstone_grace_ms {
        if file.range_tombstones > 0 {
            let tombstones = file.range_tombstones;
            return Some(Reason::RangeTombstones { file: file.number, tombstones });
        }
        // At the bottom a tombstone has nothing left to do. A snapshot may have
        // kept each with the entry it hides: then they are but half.
        let dense = match bottom {
            true => file.point_tombstones.saturating_mul(8) >= file.entries,
            false => file.point_tombstones > file.entries / 2,
        };
        if dense && file.point_tombstones > 0 {
            return Some(Reason::Tombstones {
                file: file.number,
                tombstones: file.point_tombstones,
                entries: file.entries,
            });
        }
    }
    let since_ms = view.now_ms.saturating_sub(file.expiry_min_ms);
    let grace_ms = view.settings.expiry_grace_ms.max(1);
    let expired = file.expiring_entries > 0 && since_ms >= grace_ms && age_ms >= grace_ms;
    expired.then_some(Reason::Expired { file: file.number, since_ms })
}
