//! The files and ranges that running jobs hold: their inputs, and the range of the place that their
//! output will take (I9).
//!
//! Owns: the marks, and the rule by which jobs conflict. The engine owns the value and gives it to
//! policies by reference. Never does: wait; a policy that meets a busy file looks for another job.

use crate::decision::{Decision, Merge, Reshape};
use crate::tree::file::File;
use crate::tree::{Place, Span};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use windrow_base::{Epoch, FileNumber, KeyOrder, debug_invariant, invariant};

/// The files and ranges of the jobs that run on one tree.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    files: BTreeSet<FileNumber>,
    claims: Vec<Claim>,
    /// A change of the shape is under way: nothing else may begin, since the
    /// levels may be about to get other numbers.
    reshaping: bool,
    /// The number of places that are reserved for tables from outside; no job has them.
    reserved: usize,
    /// Some files are marked because of a damaged table, and stay marked.
    damaged: bool,
}

/// The range that one job holds besides its files.
#[derive(Clone, Debug)]
struct Claim {
    /// The smallest number among its inputs: names the job, since no file is in two.
    job: FileNumber,
    reach: Reach,
    bounds: (Vec<u8>, Vec<u8>, bool),
}

/// The stretch of read order over which a job carries entries.
#[derive(Clone, Copy, Debug)]
struct Reach {
    first: Place,
    last: Place,
    output: Place,
}

impl Reach {
    fn new(inputs: impl Iterator<Item = Place>, output: Place) -> Reach {
        let reach = inputs.fold(Reach { first: output, last: output, output }, |r, place| Reach {
            first: r.first.min(place),
            last: r.last.max(place),
            output,
        });
        let (first, last) = (reach.first, reach.last);
        debug_invariant!(
            I9,
            first <= output && output <= last,
            "a job from {first:?} to {last:?} writes to {output:?}"
        );
        reach
    }

    /// Whether outputs of one may break the other, given that their ranges overlap: they go to one
    /// place, or one is installed between the other's inputs and output (I5).
    fn crosses(&self, other: &Reach) -> bool {
        debug_invariant!(I9, self.first <= self.last, "{self:?} is crossed");
        debug_invariant!(I9, other.first <= other.last, "{other:?} is crossed");
        let amid = |place: Place, way: &Reach| way.first < place && place < way.last;
        self.output == other.output || amid(self.output, other) || amid(other.output, self)
    }
}

impl Busy {
    /// Nothing is busy.
    pub fn new() -> Busy {
        Busy::default()
    }

    /// Marks a job's inputs and reserves its output range.
    pub fn add(&mut self, merge: &Merge) {
        let taken = merge.files().find(|(_, _, file)| self.is_busy(file.number));
        invariant!(I9, taken.is_none(), "two jobs take a table: {merge}");
        let Some(job) = job_of(merge) else { return };
        self.files.extend(merge.files().map(|(_, _, f)| f.number));
        self.claims.push(Claim { job, reach: reach_of(merge), bounds: merge.bounds.clone() });
        self.check();
    }

    /// Checks that no range is reserved without a file that is busy for it, and no two by one job.
    fn check(&self) {
        let (claims, files) = (self.claims.len(), self.files.len());
        debug_invariant!(I9, claims <= files, "{claims} ranges are reserved for {files} tables");
        let reserved = self.reserved;
        debug_invariant!(
            I9,
            reserved <= claims,
            "{reserved} places are reserved by {claims} ranges"
        );
        let is_idle = |claim: &&Claim| !self.files.contains(&claim.job);
        let idle = self.claims.iter().find(is_idle).map(|claim| claim.job);
        debug_invariant!(
            I9,
            idle.is_none(),
            "a range is reserved for table {idle:?}, which is free"
        );
    }

    /// Undoes [`Busy::add`], once the job is installed or given up.
    pub fn remove(&mut self, merge: &Merge) {
        for (_, _, file) in merge.files() {
            let was_busy = self.files.remove(&file.number);
            invariant!(I9, was_busy, "a job gives table {} back twice", file.number);
        }
        let (job, claims) = (job_of(merge), self.claims.len());
        self.claims.retain(|claim| Some(claim.job) != job);
        let released = claims - self.claims.len();
        invariant!(I9, released == usize::from(job.is_some()), "a job had {released} ranges");
        self.check();
    }

    /// Marks the files and the range that a decision takes. Moves and drops that are installed at
    /// once, under the lock they were picked under, need not be marked.
    pub fn claim(&mut self, decision: &Decision) {
        let files = match decision {
            Decision::Merge(_) => Vec::new(),
            decision => decision.files(),
        };
        let taken = files.iter().map(|(_, _, f)| f.number).find(|&number| self.is_busy(number));
        invariant!(I9, taken.is_none(), "table {taken:?} is taken by two jobs");
        match decision {
            Decision::Idle => {}
            Decision::Merge(merge) => self.add(merge),
            Decision::Reshape(Reshape { renamed, .. }) => {
                invariant!(I9, !self.reshaping, "two changes of the shape at once");
                self.reshaping = true;
                self.files.extend(renamed.iter().map(|(_, _, f)| f.number));
            }
            Decision::Drop(drop) => self.files.extend(drop.files.iter().map(|(_, _, f)| f.number)),
            Decision::Move(m) => {
                let output = m.file.at_epoch(m.epoch).place(m.to.0, m.to.1);
                let place = m.file.place(m.from.0, m.from.1);
                self.files.insert(m.file.number);
                self.claims.push(Claim {
                    job: m.file.number,
                    reach: Reach::new([place].into_iter(), output),
                    bounds: m.file.span().to_bounds(),
                });
            }
        }
        self.check();
    }

    /// Undoes [`Busy::claim`].
    pub fn release(&mut self, decision: &Decision) {
        match decision {
            Decision::Merge(merge) => return self.remove(merge),
            Decision::Reshape(_) => {
                invariant!(I9, self.reshaping, "a change of the shape ends twice");
                self.reshaping = false;
            }
            _ => {}
        }
        for (_, _, file) in decision.files() {
            let was_busy = self.files.remove(&file.number);
            invariant!(I9, was_busy, "a job gives table {} back, which it has not", file.number);
            self.claims.retain(|claim| claim.job != file.number);
        }
        self.check();
    }

    /// Marks a file that no job may take: it is damaged.
    pub fn add_file(&mut self, number: FileNumber) {
        self.files.insert(number);
        self.damaged = true;
    }

    /// Marks the files and the range of a decision that no job may take again: some table of it is
    /// damaged.
    pub fn claim_damaged(&mut self, decision: &Decision) {
        self.claim(decision);
        self.damaged = true;
    }

    /// Whether a table is damaged; marks for it are never released.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Whether a job has the file among its inputs.
    #[inline]
    pub fn is_busy(&self, number: FileNumber) -> bool {
        self.files.contains(&number)
    }

    /// Whether no job runs, and no place is reserved.
    pub fn is_empty(&self) -> bool {
        let has_claims = !self.claims.is_empty();
        invariant!(I9, !has_claims || !self.files.is_empty(), "a range is reserved for no table");
        self.files.is_empty() && !self.reshaping
    }

    /// Whether something is marked for a job, and not only a place reserved for a new table.
    pub fn has_jobs(&self) -> bool {
        self.reshaping || self.files.len() > self.reserved
    }

    /// Whether a change of the shape is under way.
    pub fn is_reshaping(&self) -> bool {
        self.reshaping
    }

    /// Whether some job takes from, passes or adds to `level` or one below it.
    pub fn reaches(&self, level: u32) -> bool {
        self.claims.iter().any(|claim| claim.reach.last.level >= level)
    }

    /// Number of jobs that run.
    pub fn jobs(&self) -> usize {
        self.claims.len()
    }

    /// Whether the merge may not start while the others run: an input is busy, or
    /// its output range is claimed.
    pub fn conflicts(&self, order: &KeyOrder, merge: &Merge) -> bool {
        self.reshaping
            || merge.files().any(|(_, _, f)| self.is_busy(f.number))
            || self.range_conflicts(order, &merge.span(), reach_of(merge))
    }

    /// Whether a move may not happen while the others run.
    pub fn conflicts_move(&self, order: &KeyOrder, file: &File, from: Place, to: Place) -> bool {
        self.reshaping
            || self.is_busy(file.number)
            || self.range_conflicts(order, &file.span(), Reach::new([from].into_iter(), to))
    }

    /// Whether a new table may go into the run of `level` while these jobs run.
    pub fn admits(&self, order: &KeyOrder, file: &File, level: u32) -> bool {
        !self.reshaping && !self.range_conflicts(order, &file.span(), way_of_new(level))
    }

    /// Reserves the place of a new table in the run of `level`.
    pub fn reserve(&mut self, file: &File, level: u32) {
        let is_new = self.files.insert(file.number);
        invariant!(I9, is_new, "two jobs make table {}", file.number);
        let (job, bounds) = (file.number, file.span().to_bounds());
        self.claims.push(Claim { job, reach: way_of_new(level), bounds });
        self.reserved += 1;
        self.check();
    }

    /// Undoes [`Busy::reserve`].
    pub fn give_back(&mut self, number: FileNumber) {
        let was_busy = self.files.remove(&number);
        invariant!(I9, was_busy, "the place of table {number} is given back twice");
        self.claims.retain(|claim| claim.job != number);
        invariant!(I9, self.reserved > 0, "table {number} has no place that was reserved");
        self.reserved -= 1;
        self.check();
    }

    fn range_conflicts(&self, order: &KeyOrder, span: &Span<'_>, reach: Reach) -> bool {
        debug_invariant!(I9, !span.is_empty(order), "a job is to reserve an empty range");
        self.claims.iter().any(|claim| {
            claim.reach.crosses(&reach) && Span::of(&claim.bounds).overlaps(order, span)
        })
    }
}

/// Returns the reach of a new table, from above all others.
fn way_of_new(level: u32) -> Reach {
    let output = Place::run(level);
    Reach { first: Place::sst_log(0, Epoch::MAX), last: output, output }
}

fn job_of(merge: &Merge) -> Option<FileNumber> {
    merge.files().map(|(_, _, f)| f.number).min()
}

fn reach_of(merge: &Merge) -> Reach {
    Reach::new(merge.files().map(|(n, part, f)| f.place(n, part)), merge.output_place())
}
