//! The conditions that the invariants set on every decision, whichever policy made it.
//!
//! Every decision of [`crate::Policy`] passes here. A condition that takes time for each of the
//! job's files is checked in every build; one that looks at files outside the job, as the closure
//! of I5 does, in debug builds.
//!
//! Owns: those conditions. Never does: decide.

use crate::decision::{Decision, Drop, Input, Merge, Move, Reshape};
use crate::tree::closure::{Seat, close};
use crate::tree::older_files::nothing_older;
use crate::tree::{File, LEVELS_MAX, Part, Place, Version};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{Epoch, debug_invariant, invariant};

/// Passes the decision on.
///
/// # Panics
/// If it breaks an invariant.
pub(crate) fn checked(view: &View<'_>, decision: Decision) -> Decision {
    match &decision {
        Decision::Idle => {}
        Decision::Move(m) => moves(view, m),
        Decision::Merge(merge) => merges(view, merge),
        Decision::Drop(drop) => drops(view, drop),
        Decision::Reshape(reshape) => reshapes(view, reshape),
    }
    decision
}

/// Checks that these files are where the decision says, and no job has them.
fn are_there<'a>(view: &View<'_>, level: u32, part: Part, files: impl Iterator<Item = &'a File>) {
    let mut numbers: Vec<_> = files.map(|file| file.number).collect();
    numbers.sort_unstable();
    let is_twice = numbers.windows(2).any(|pair| pair[0] == pair[1]);
    invariant!(I2, !is_twice, "a job takes a table twice, of {numbers:?}");
    let busy = numbers.iter().find(|&&number| view.busy.is_busy(number));
    invariant!(I9, busy.is_none(), "a job takes table {busy:?}, which another one has");
    let here = view.version.level(level).map_or(0, |at| at.count(part, &numbers));
    let count = numbers.len();
    invariant!(I2, here == count, "{here} of tables {numbers:?} are in {} {level}", part.name());
}

/// Checks that a file can have this place.
fn is_a_place(view: &View<'_>, (level, part): (u32, Part), epoch: Epoch) {
    invariant!(I1, level < LEVELS_MAX, "a job writes to level {level} of at most {LEVELS_MAX}");
    invariant!(I1, level > 0 || part == Part::SstLog, "a job writes to a run of level 0");
    let next = view.version.next_epoch;
    let fits = match part {
        Part::Run => epoch == 0,
        Part::SstLog => (1..=next).contains(&epoch),
    };
    invariant!(I4, fits, "epoch {epoch} in a {}, where {next} is the next one", part.name());
}

fn cursor_is_a_level(cursor: &Option<(u32, Vec<u8>)>) {
    let level = cursor.as_ref().map(|(level, _)| *level);
    let fits = level.is_none_or(|level| (1..LEVELS_MAX).contains(&level));
    invariant!(I10, fits, "round-robin picking goes on in level {level:?}");
}

/// Checks that nothing outside the job is between it and its output (I5).
fn is_closed(version: &Version, files: &[(u32, Part, &Arc<File>)], to: Place) {
    let seat = |&(level, part, file): &(u32, Part, &Arc<File>)| -> Option<Seat> {
        Some((level, part, version.level(level)?.find(part, file.number)?))
    };
    let seats: Option<Vec<Seat>> = files.iter().map(seat).collect();
    let closure = close(version, seats.unwrap_or_default(), (to.level, to.part), |_| true);
    let whole = closure.map(|closure| closure.len());
    let count = files.len();
    invariant!(I5, whole == Some(count), "a job takes {count} tables of a closure of {whole:?}");
}

fn moves(view: &View<'_>, m: &Move) {
    let (level, part) = m.from;
    are_there(view, level, part, core::iter::once(&*m.file));
    is_a_place(view, m.to, m.epoch);
    cursor_is_a_level(&m.cursor);
    invariant!(I2, m.from != m.to, "table {} moves to where it is", m.file.number);
    let from = m.file.place(level, part);
    let to = match m.to.1 {
        Part::Run => Place::run(m.to.0),
        Part::SstLog => Place::sst_log(m.to.0, m.epoch),
    };
    let order = &view.version.order;
    let is_free = !view.busy.conflicts_move(order, &m.file, from, to);
    invariant!(I9, is_free, "table {} moves across a job that runs", m.file.number);
    if cfg!(debug_assertions) {
        is_closed(view.version, &[(level, part, &m.file)], to);
    }
}

fn merges(view: &View<'_>, merge: &Merge) {
    let files = merge.inputs.iter().map(|input| input.files.len()).sum::<usize>();
    invariant!(I5, files > 0, "a merge of nothing");
    let place = |input: &Input| (input.level, input.part);
    let ascend = merge.inputs.windows(2).all(|pair| place(&pair[0]) < place(&pair[1]));
    invariant!(I3, ascend, "the inputs of a merge are not in read order");
    for input in &merge.inputs {
        are_there(view, input.level, input.part, input.files.iter().map(|file| &**file));
    }
    is_a_place(view, (merge.output_level, merge.output_part), merge.output_epoch);
    cursor_is_a_level(&merge.cursor);
    let order = &view.version.order;
    let is_free = !view.busy.conflicts(order, merge);
    invariant!(I9, is_free, "a merge writes where a job that runs does");
    let hull = merge.files().map(|(_, _, file)| file.span()).reduce(|a, b| a.hull(order, &b));
    let bounds = merge.span();
    let is_hull = hull.is_some_and(|hull| {
        order.equal(hull.lo, bounds.lo) && hull.compare_ends(order, &bounds).is_eq()
    });
    invariant!(I9, is_hull, "a merge reserves another range than that of its inputs");
    if cfg!(debug_assertions) {
        let files: Vec<_> = merge.files().collect();
        is_closed(view.version, &files, merge.output_place());
    }
}

fn drops(view: &View<'_>, drop: &Drop) {
    invariant!(I6, !drop.files.is_empty(), "a drop of nothing");
    let needed = drop.needed();
    invariant!(I6, needed.is_none(), "table {needed:?} is dropped, and has entries");
    let is_hidden = !drop.under.is_empty();
    for (level, part, file) in &drop.files {
        are_there(view, *level, *part, core::iter::once(&**file));
        debug_invariant!(
            I6,
            is_hidden || nothing_older(view.version, *level, *part, file),
            "table {} is dropped over older ones",
            file.number
        );
    }
}

fn reshapes(view: &View<'_>, reshape: &Reshape) {
    let levels = reshape.levels;
    invariant!(I3, (1..LEVELS_MAX).contains(&levels), "a tree is to have {levels} levels");
    for (level, part, file) in &reshape.renamed {
        are_there(view, *level, *part, core::iter::once(&**file));
    }
    let Some(first) = reshape.renamed.iter().map(|renamed| renamed.0).min() else { return };
    invariant!(I3, first > 0, "level 0 gets another number");
    // All from one level on keep their order, if the place that they move to is empty.
    let all = view.version.files().filter(|(level, _, _)| *level >= first).count();
    let count = reshape.renamed.len();
    invariant!(I3, count == all, "{count} of {all} tables from level {first} on are renamed");
    let to = reshape.renamed_to(first).unwrap_or(0);
    invariant!(I3, to > 0, "level {first} becomes level 0");
    let is_free = to > first || view.version.level(to).is_none_or(|level| level.is_empty());
    invariant!(I3, is_free, "a level takes the name of level {to}, which has files");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::busy::Busy;
    use crate::decision::Reason;
    use crate::pick;
    use crate::view::PlanSettings;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::string::String;
    use windrow_base::key::SEQ_MAX;

    const TREE: &str = "next_epoch 20\n\
                        L0.sst_log 12 [a,c] epoch=12 seq=90-99\n\
                        L0.sst_log 11 [b,d] epoch=11 seq=80-89\n\
                        L1.run 5 [a,b] seq=10-19\n\
                        L1.run 6 [c,f] seq=20-29\n\
                        L3.run 4 [m,n] seq=1-9";

    /// Returns the message that a decision is refused with; `None` if it passes.
    fn refusal(busy: &Busy, decision: Decision) -> Option<String> {
        let version: Version = TREE.parse().unwrap();
        let settings = PlanSettings::default();
        let (busy, snapshots_oldest) = (busy, SEQ_MAX);
        let view =
            View { version: &version, busy, settings: &settings, snapshots_oldest, now_ms: 0 };
        let panic = catch_unwind(AssertUnwindSafe(|| checked(&view, decision))).err()?;
        Some(panic.downcast_ref::<String>().unwrap().clone())
    }

    fn is_refused(decision: Decision, name: &str) {
        let text = refusal(&Busy::new(), decision).unwrap_or_default();
        assert!(text.contains(name), "{name}: {text:?}");
    }

    /// The job that takes one file where policies would.
    fn job_of(number: u64, to: (u32, Part)) -> Decision {
        let version: Version = TREE.parse().unwrap();
        let settings = PlanSettings { overlap_files_max: 100, ..PlanSettings::default() };
        let busy = &Busy::new();
        let snapshots_oldest = SEQ_MAX;
        let view =
            View { version: &version, busy, settings: &settings, snapshots_oldest, now_ms: 0 };
        pick::job(&view, version.find(number), to, Reason::Manual).unwrap()
    }

    fn merge() -> Merge {
        let Decision::Merge(merge) = job_of(12, (1, Part::Run)) else { panic!("no merge") };
        merge
    }

    fn a_move() -> Move {
        let Decision::Move(m) = job_of(6, (2, Part::Run)) else { panic!("no move") };
        m
    }

    #[test]
    fn what_policies_decide_passes() {
        let merge = Decision::Merge(merge());
        assert_eq!(merge.files().len(), 4);
        for decision in [Decision::Idle, merge, Decision::Move(a_move())] {
            assert_eq!(refusal(&Busy::new(), decision), None);
        }
    }

    #[test]
    fn a_merge_that_breaks_an_invariant_is_refused() {
        let is_refused = |change: fn(&mut Merge), name| {
            let mut merge = merge();
            change(&mut merge);
            is_refused(Decision::Merge(merge), name);
        };
        is_refused(|m| m.inputs.clear(), "(I5): a merge of nothing");
        is_refused(|m| m.inputs.reverse(), "(I3): the inputs");
        is_refused(|m| m.inputs[1].level = 3, "(I2): 0 of tables [5, 6]");
        is_refused(|m| m.inputs[1].files[1] = m.inputs[1].files[0].clone(), "(I2): a job takes");
        is_refused(|m| m.output_level = LEVELS_MAX, "(I1): a job writes to level 32");
        is_refused(|m| m.output_level = 0, "(I1): a job writes to a run of level 0");
        is_refused(|m| m.output_epoch = 12, "(I4): epoch 12 in a run");
        is_refused(|m| m.output_part = Part::SstLog, "(I4): epoch 0 in a sst_log");
        is_refused(|m| m.bounds.1 = b"e".to_vec(), "(I9): a merge reserves");
        is_refused(|m| m.cursor = Some((0, Vec::new())), "(I10)");
        let without_older = |m: &mut Merge| {
            m.inputs[0].files.pop();
            m.inputs[1].files.pop();
            m.bounds.1 = b"c".to_vec();
        };
        is_refused(without_older, "(I5): a job takes 2 tables of a closure of Some(4)");
    }

    #[test]
    fn a_job_across_another_one_is_refused() {
        let mut busy = Busy::new();
        busy.add(&merge());
        for decision in [Decision::Merge(merge()), Decision::Move(a_move())] {
            let text = refusal(&busy, decision).unwrap();
            assert!(text.contains("(I9): a job takes table"), "{text}");
        }
        let mut busy = Busy::new();
        busy.claim(&Decision::Reshape(Reshape {
            levels: 2,
            renamed: Vec::new(),
            is_insertion: false,
            cursors: Vec::new(),
            reason: Reason::Manual,
        }));
        let text = refusal(&busy, Decision::Merge(merge())).unwrap();
        assert!(text.contains("(I9): a merge writes where"), "{text}");
    }

    #[test]
    fn a_move_or_drop_that_breaks_an_invariant_is_refused() {
        let to = |to, epoch| Decision::Move(Move { to, epoch, ..a_move() });
        is_refused(to((1, Part::Run), 0), "(I2): table 6 moves to where it is");
        is_refused(to((2, Part::Run), 3), "(I4): epoch 3 in a run");
        is_refused(to((2, Part::SstLog), 21), "(I4): epoch 21 in a sst_log");
        let version: Version = TREE.parse().unwrap();
        let files: Vec<_> = version.files().map(|(n, part, f)| (n, part, f.clone())).collect();
        let drop =
            |files| Decision::Drop(Drop { files, under: Vec::new(), reason: Reason::Manual });
        is_refused(drop(Vec::new()), "(I6): a drop of nothing");
        is_refused(drop(files[..1].to_vec()), "(I6): table Some(12) is dropped, and has entries");
    }

    /// Returns the message that a call panics with.
    fn panics(call: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("a broken invariant");
        panic.downcast_ref::<String>().expect("a message").clone()
    }

    #[test]
    fn an_edit_that_breaks_an_invariant_is_refused() {
        let output = |number, seq_max| File { number, seq_max, ..File::default() };
        let merges = |outputs: &[File]| panics(|| _ = merge().edit(outputs.to_vec()));
        for (text, name) in [
            (merges(&[output(5, 1)]), "(I2): a merge of {5, 6, 11, 12} writes table Some(5) again"),
            (merges(&[output(30, 1), output(30, 1)]), "writes table Some(30) again"),
            (
                merges(&[output(30, 100)]),
                "(I3): a merge writes entries up to Some(100) of Some(99)",
            ),
            (panics(|| _ = Merge { output_epoch: 3, ..merge() }.edit(Vec::new())), "(I4): epoch 3"),
            (panics(|| _ = Move { epoch: 3, ..a_move() }.edit()), "(I4): epoch 3 of a run"),
            (panics(|| _ = Move { to: (1, Part::Run), ..a_move() }.edit()), "(I2): table 6 moves"),
            (
                panics(|| _ = Move { cursor: Some((0, Vec::new())), ..a_move() }.edit()),
                "(I10): level Some(0) goes on",
            ),
        ] {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert_eq!(merge().edit(alloc::vec![output(30, 99)]).added.len(), 1);
    }

    #[test]
    fn books_of_what_is_busy_agree() {
        let job = Decision::Move(a_move());
        let mut busy = Busy::new();
        busy.claim(&job);
        let again = panics(|| busy.claim(&job));
        assert!(again.contains("(I9): table Some(6) is taken by two jobs"), "{again}");
        busy.release(&job);
        let again = panics(|| busy.release(&job));
        assert!(again.contains("(I9): a job gives table 6 back"), "{again}");
    }

    #[test]
    fn a_change_of_the_shape_that_breaks_an_invariant_is_refused() {
        let version: Version = TREE.parse().unwrap();
        let files: Vec<_> = version.files().map(|(n, part, f)| (n, part, f.clone())).collect();
        let reshape = |levels, renamed: &[_], is_insertion| {
            let (renamed, cursors, reason) = (renamed.to_vec(), Vec::new(), Reason::Manual);
            Decision::Reshape(Reshape { levels, renamed, is_insertion, cursors, reason })
        };
        let (up, down) = (
            |levels, files| reshape(levels, files, false),
            |levels, files| reshape(levels, files, true),
        );
        is_refused(up(0, &[]), "(I3): a tree is to have 0 levels");
        is_refused(up(1, &files[2..4]), "(I3): 2 of ");
        is_refused(up(1, &files[2..]), "(I3): level 1 becomes level 0");
        is_refused(down(4, &files), "(I3): level 0 gets another number");
        is_refused(down(4, &files[3..]), "(I3): ");
        assert_eq!(refusal(&Busy::new(), up(2, &files[4..])), None);
        assert_eq!(refusal(&Busy::new(), up(5, &[])), None);
        assert_eq!(refusal(&Busy::new(), down(4, &files[2..])), None);
    }
}
