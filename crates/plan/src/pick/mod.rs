//! Pickers: which files move down, and when.
//!
//! Every job of every picker is made here out of a closure, so that I5 and I9 are kept in one
//! place; and every picker drains every SST-log (I10).
//!
//! Owns: the step from a closure to a move or a merge. Never does: wait; a running job in the way
//! means no job.

mod aggregate;
mod column;
pub mod garbage;
pub mod hidden_tables;
pub mod level_limits;
pub mod leveled;
pub mod manual;
mod picker;
pub mod read_triggered_merges;
pub(crate) mod scarce_room;
pub mod score;
pub(crate) mod small_files;
pub mod sst_log;

pub use level_limits::Levels;
pub use picker::Picker;

use crate::decision::{Decision, Merge, Move, Reason};
use crate::tree::closure::{Closure, Seat, close};
use crate::tree::{File, Part};
use crate::view::View;
use alloc::sync::Arc;
use windrow_base::{debug_invariant, invariant};

/// Returns the job that takes `seeds` and the files that they need to `to`: a move if nothing has
/// to be rewritten, or a merge. `None` if a running job is in the way.
pub(crate) fn job(
    view: &View<'_>,
    seeds: impl IntoIterator<Item = Seat>,
    to: (u32, Part),
    reason: Reason,
) -> Option<Decision> {
    let closure = close(view.version, seeds, to, |f| !view.busy.is_busy(f.number))?;
    decide(view, &closure, reason)
}

/// Returns a closure as a move or a merge; `None` if a running job is in the way.
pub(crate) fn decide(view: &View<'_>, closure: &Closure<'_>, reason: Reason) -> Option<Decision> {
    invariant!(I5, closure.len() > 0, "a job of no file");
    if closure.len() == 1
        && let Some(decision) = move_of(view, closure, &reason)
    {
        return match decision {
            Decision::Idle => None,
            decision => Some(decision),
        };
    }
    merge_of(view, closure, reason)
}

/// Returns the move of a closure of one file. `None` if it has to be rewritten: it is where it goes
/// already, or it is so wide that it should be cut. `Idle` if a running job is in the way.
fn move_of(view: &View<'_>, closure: &Closure<'_>, reason: &Reason) -> Option<Decision> {
    invariant!(I5, closure.len() == 1, "{} files are to move at once", closure.len());
    let (level, part, file) = closure.files().next()?;
    let output = closure.output();
    let (from, to) = ((level, part), (output.level, output.part));
    if from == to {
        return None;
    }
    let order = &view.version.order;
    let below =
        view.version.level(to.0 + 1).map_or(0, |l| l.run_bytes_overlapping(order, &file.span()));
    let limit = view.settings.file_bytes.saturating_mul(view.settings.overlap_files_max as u64);
    if below > limit && file.entries > 1 {
        return None;
    }
    if view.busy.conflicts_move(order, file, file.place(level, part), output) {
        return Some(Decision::Idle);
    }
    let here = view.version.part(to.0, Part::Run).iter();
    let mut over = here.filter(|f| to.1 == Part::Run && f.overlaps(order, &file.span()));
    debug_invariant!(I1, over.next().is_none(), "table {} moves over another one", file.number);
    Some(Decision::Move(Move {
        file: file.clone(),
        from,
        to,
        epoch: output.age.0,
        reason: reason.clone(),
        cursor: None,
    }))
}

/// Returns a closure as a merge; `None` if a running job is in the way.
pub(crate) fn merge_of(view: &View<'_>, closure: &Closure<'_>, reason: Reason) -> Option<Decision> {
    let output = closure.output();
    let merge = Merge {
        inputs: closure.inputs(),
        output_level: output.level,
        output_part: output.part,
        output_epoch: output.age.0,
        bounds: closure.span().to_bounds(),
        reason,
        cursor: None,
    };
    let count = merge.files().count();
    invariant!(I5, count == closure.len(), "a merge of {count} of {} files", closure.len());
    let idle = |(_, _, f): (u32, Part, &Arc<File>)| !view.busy.is_busy(f.number);
    debug_invariant!(I9, merge.files().all(idle), "a merge was closed over a busy file");
    (!view.busy.conflicts(&view.version.order, &merge)).then_some(Decision::Merge(merge))
}

/// Stores with the decision's edit that round-robin picking of `level` goes on
/// after the last file it takes from there.
pub(crate) fn with_cursor(decision: Decision, level: u32) -> Decision {
    let files = decision.files();
    let last = files.iter().rfind(|(n, part, _)| (*n, *part) == (level, Part::Run));
    invariant!(I10, last.is_some(), "a job of a run takes nothing of level {level}");
    let cursor = last.map(|(_, _, file)| (level, file.largest.to_vec()));
    match decision {
        Decision::Merge(merge) => Decision::Merge(Merge { cursor, ..merge }),
        Decision::Move(m) => Decision::Move(Move { cursor, ..m }),
        other => other,
    }
}
