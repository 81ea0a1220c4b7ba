//! The closure of a job (I5): the one place that decides which files it must take along.
//!
//! Give every file its place in read order (level; run before log; newest
//! epoch first) and the output its place too. A job is right exactly if, for
//! every key, nothing outside it lies between one of its inputs and the place
//! of its output. So:
//!
//! 1. start from the seeds;
//! 2. for each member, add every file that overlaps it and whose place lies
//!    between the member's and the output's, both ends included;
//! 3. repeat 2 for the added files, until none is added;
//! 4. if the output is a run, add the run's files in the hull of all members,
//!    so that no output can cover an idle file in a gap (I9).
//!
//! All the rules one finds in books are cases of step 2. Files that leave log n downward take the
//! older files of log n, then run n+1: closed under older-and-overlapping. Files that leave run n
//! downward take all of log n. Files that are drained from log n into run n go the other way:
//! closed under newer-and-overlapping. A lone file may be moved without rewriting exactly if its
//! closure is itself. Level 0 is a log like any other.
//!
//! The set is the smallest that is right: a hull counts as all its keys, since metadata knows no
//! more, and steps 2 and 3 add only what they must. A single seed gives a connected range, since
//! each member overlaps one before it.
//!
//! Owns: the closure, and whether a file may move as it is. Never does: choose seeds, or wait for a
//! busy file.

use super::file::{File, Part, Place};
use super::span::Span;
use super::version::{LEVELS_MAX, Version};
use crate::decision::Input;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{FileNumber, debug_invariant, invariant};

/// A closure is checked against the definition where there are fewer pairs of files.
const PAIRS_MAX: usize = 200;

/// Where a file is in a version: level, half, index in it.
pub type Seat = (u32, Part, usize);

/// The files of a job, closed under I5, and where its output goes.
#[derive(Clone, Debug)]
pub struct Closure<'v> {
    version: &'v Version,
    members: BTreeMap<(u32, Part), BTreeSet<usize>>,
    output: Place,
    files: usize,
}

/// Closes `seeds` under I5 for an output into `to`. `None` if there is no seed, or if a file is
/// needed that `allow` refuses (it is busy: wait).
///
/// An output into a log takes the epoch of its newest input there, or the next
/// epoch if it has none.
pub fn close<'v>(
    version: &'v Version,
    seeds: impl IntoIterator<Item = Seat>,
    to: (u32, Part),
    allow: impl Fn(&File) -> bool,
) -> Option<Closure<'v>> {
    let seeds: Vec<Seat> = seeds.into_iter().collect();
    invariant!(I1, to.0 < LEVELS_MAX, "an output into level {} of at most {LEVELS_MAX}", to.0);
    invariant!(I1, to != (0, Part::Run), "an output into a run of level 0");
    let output = output_place(version, &seeds, to);
    let given = if cfg!(debug_assertions) { seeds.clone() } else { Vec::new() };
    let mut closure = Closure { version, members: BTreeMap::new(), output, files: 0 };
    let mut queue = Vec::new();
    for seat in seeds {
        closure.insert(seat, &mut queue, &allow)?;
    }
    while let Some((level, part, index)) = queue.pop() {
        let file = &version.part(level, part)[index];
        let place = file.place(level, part);
        let (first, last) = (place.min(output), place.max(output));
        for n in first.level..=last.level {
            for half in [Part::Run, Part::SstLog] {
                for (i, other) in version.overlapping_span(n, half, file.span()) {
                    let at = other.place(n, half);
                    if first <= at && at <= last {
                        closure.insert((n, half, i), &mut queue, &allow)?;
                    }
                }
            }
        }
    }
    if closure.files == 0 {
        return None;
    }
    let is_member = |seat: &Seat| closure.count(seat.0, seat.1) > 0;
    debug_invariant!(I5, given.iter().all(is_member), "a seed is not in its closure");
    if to.1 == Part::Run {
        let hull = closure.span();
        for (i, _) in version.overlapping_span(to.0, Part::Run, hull) {
            closure.insert((to.0, Part::Run, i), &mut queue, &allow)?;
        }
    }
    let count: usize = closure.members.values().map(BTreeSet::len).sum();
    invariant!(I5, count == closure.files, "{} of {count} files counted", closure.files);
    if cfg!(debug_assertions) && version.file_count() * count < PAIRS_MAX {
        let left = closure.left_between();
        debug_invariant!(I5, left.is_none(), "table {left:?} is between an input and the output");
    }
    Some(closure)
}

/// Whether the file may be moved to `to` as it is: nothing lies between, and
/// nothing in a target run overlaps it.
pub fn may_move(version: &Version, seat: Seat, to: (u32, Part)) -> bool {
    (seat.0, seat.1) != to
        && close(version, [seat], to, |_| true).is_some_and(|closure| closure.len() == 1)
}

fn output_place(version: &Version, seeds: &[Seat], to: (u32, Part)) -> Place {
    invariant!(I4, version.next_epoch > 0, "there is no next epoch");
    match to.1 {
        Part::Run => Place::run(to.0),
        Part::SstLog => {
            let foreign = seeds.iter().any(|s| (s.0, s.1) != to);
            let newest = seeds
                .iter()
                .filter(|s| (s.0, s.1) == to)
                .map(|s| version.part(s.0, s.1)[s.2].epoch)
                .max();
            let next = version.next_epoch;
            invariant!(I4, newest < Some(next), "epoch {newest:?}, where {next} is the next one");
            match newest {
                Some(epoch) if !foreign => Place::sst_log(to.0, epoch),
                _ => Place::sst_log(to.0, version.next_epoch),
            }
        }
    }
}

impl<'v> Closure<'v> {
    fn insert(
        &mut self,
        seat: Seat,
        queue: &mut Vec<Seat>,
        allow: &impl Fn(&File) -> bool,
    ) -> Option<()> {
        let (level, part, index) = seat;
        let count = self.version.part(level, part).len();
        invariant!(I5, index < count, "file {index} of {count} in {} {level}", part.name());
        if !self.members.entry((level, part)).or_default().insert(index) {
            return Some(());
        }
        if !allow(&self.version.part(level, part)[index]) {
            return None;
        }
        self.files += 1;
        queue.push(seat);
        Some(())
    }

    /// Number of files.
    #[allow(clippy::len_without_is_empty)] // a closure is never empty
    pub fn len(&self) -> usize {
        self.files
    }

    /// Where the output goes.
    pub fn output(&self) -> Place {
        self.output
    }

    /// The members, newest in read order first.
    pub fn files(&self) -> impl Iterator<Item = (u32, Part, &'v Arc<File>)> {
        let version = self.version;
        self.members.iter().flat_map(move |(&(level, part), members)| {
            members.iter().map(move |&i| (level, part, &version.part(level, part)[i]))
        })
    }

    /// Number of members in half a level.
    pub fn count(&self, level: u32, part: Part) -> usize {
        self.members.get(&(level, part)).map_or(0, BTreeSet::len)
    }

    /// Bytes of all members.
    pub fn bytes(&self) -> u64 {
        self.files().map(|(_, _, f)| f.bytes).sum()
    }

    /// The hull of all members.
    pub fn span(&self) -> Span<'v> {
        let order = &self.version.order;
        invariant!(I5, self.files > 0, "a job over no file");
        let mut spans = self.files().map(|(_, _, f)| f.span());
        // Never empty once built; while building, the caller has checked.
        let first = spans.next().unwrap_or(Span::closed(&[], &[]));
        spans.fold(first, |hull, span| hull.hull(order, &span))
    }

    /// The members as a job's inputs.
    pub fn inputs(&self) -> Vec<Input> {
        let inputs: Vec<Input> = self
            .members
            .iter()
            .filter(|(_, members)| !members.is_empty())
            .map(|(&(level, part), members)| Input {
                level,
                part,
                files: members.iter().map(|&i| self.version.part(level, part)[i].clone()).collect(),
            })
            .collect();
        let count = inputs.iter().map(|input| input.files.len()).sum::<usize>();
        invariant!(I5, count == self.files, "{count} inputs of {} files", self.files);
        inputs
    }

    /// Returns a file outside that lies between a member and the output. It tests every pair: the
    /// definition of I5, where [`close`] takes steps.
    fn left_between(&self) -> Option<FileNumber> {
        let order = &self.version.order;
        let is_member = |number| self.files().any(|(_, _, member)| member.number == number);
        self.files().find_map(|(level, part, member)| {
            let place = member.place(level, part);
            let (first, last) = (place.min(self.output), place.max(self.output));
            let mut others = self.version.files().filter(|(n, half, other)| {
                let at = other.place(*n, *half);
                first <= at && at <= last && other.overlaps(order, &member.span())
            });
            others.find(|(_, _, other)| !is_member(other.number)).map(|(_, _, other)| other.number)
        })
    }
}
