//! The files that leave an SST-log together: L2SM's aggregated compaction, two ways. In this file a
//! log is always an SST-log.
//!
//! Both take sets of log files that are closed under older-and-overlapping
//! (I5), and go through [`close`] like every other job. They differ in what
//! they look for.
//!
//! *Paper* (Huang et al., section III-E): seed with the file of smallest weight, gather every log
//! file that overlaps, transitively, and evict the oldest first for as long as at most ten files
//! below are met per file evicted. Going by age makes every prefix closed. It looks at the cost of
//! a job only to stop, so that chance decides which ranges go down.
//!
//! *Closed*: for each file x of the log let OC(x) be x with every older file that it overlaps,
//! transitively: the least that can leave if x does. Its cost is the bytes of the run below under
//! its range, per byte of its own. The cheapest goes, with all files that make it cheaper: further
//! files of the log, and then files of the level's run, whose older entries all go too. That
//! empties a range instead of leaving its newest layer behind.
//!
//! A set here is one connected range, so that a job is as well (I9); ranges
//! that do not touch are different jobs, which can run at the same time.
//!
//! Owns: the sets that may leave, and their cost. Never does: say that an SST-log is full.

use super::decide;
use crate::decision::{Decision, Reason};
use crate::hotness;
use crate::tree::closure::{Seat, close};
use crate::tree::{File, Level, Part, Span, Version};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// The paper's limit of files met below per file evicted.
const INVOLVED_MAX: usize = 10;

/// The longest log whose sets are checked: that takes time for each pair of files.
const CHECKED_MAX: usize = 32;

/// A job takes in further files up to this many times `file_bytes`.
pub(super) const ABSORB_FILES_MAX: u64 = 25;

/// The SST-log of a level, and the run below it.
pub(super) struct SstLogFiles<'v> {
    view: &'v View<'v>,
    level: u32,
    /// Newest first: older files have larger indices.
    files: &'v [Arc<File>],
    /// Bytes of the first n files of the run below.
    below: Vec<u64>,
    weights: Vec<f64>,
}

/// Files of a log, closed under older-and-overlapping, over one range.
#[derive(Clone)]
struct ClosedSet<'v> {
    members: Bits,
    /// Files of the level's run that go along; only in a set that has grown.
    run: Vec<usize>,
    span: Span<'v>,
    bytes: u64,
    /// Bytes of the run below that the range overlaps.
    below_bytes: u64,
    /// A member is an input of a running job.
    busy: bool,
}

impl<'v> SstLogFiles<'v> {
    pub(super) fn new(view: &'v View<'v>, level: u32, alpha: f64) -> SstLogFiles<'v> {
        let files = view.version.part(level, Part::SstLog);
        let mut sum = 0u64;
        let run = view.version.part(level + 1, Part::Run).iter();
        let below = run.map(|f| {
            sum = sum.saturating_add(f.bytes);
            sum
        });
        let below: Vec<u64> = core::iter::once(0).chain(below).collect();
        let total = view.version.part_bytes(level + 1, Part::Run);
        debug_invariant!(I2, below.last() == Some(&total), "{total} bytes are miscounted");
        let weights = hotness::weights(files, alpha);
        let count = files.len();
        invariant!(H1, weights.len() == count, "{} weights of {count} files", weights.len());
        SstLogFiles { view, level, files, below, weights }
    }

    fn version(&self) -> &'v Version {
        self.view.version
    }

    fn is_busy(&self, file: &File) -> bool {
        self.view.busy.is_busy(file.number)
    }

    fn overlap(&self, a: usize, b: usize) -> bool {
        self.files[a].overlaps(&self.version().order, &self.files[b].span())
    }

    /// Bytes of the run below that `span` overlaps. O(log n).
    fn below_bytes(&self, span: &Span<'_>) -> u64 {
        let Some(run) = self.version().level(self.level + 1) else { return 0 };
        let range = run.run_overlapping(&self.version().order, span);
        let count = self.below.len();
        invariant!(I1, range.end < count, "files up to {} of {count}", range.end);
        self.below[range.end] - self.below[range.start]
    }

    /// Returns the job that takes these files of the log and the run down, if it can start now.
    fn job(
        &self,
        members: impl Iterator<Item = usize>,
        run: &[usize],
        reason: &Reason,
    ) -> Option<Decision> {
        let seat = |part| move |i| -> Seat { (self.level, part, i) };
        let seeds = members.map(seat(Part::SstLog)).chain(run.iter().copied().map(seat(Part::Run)));
        let to = (self.level + 1, Part::Run);
        let closure = close(self.version(), seeds, to, |f| !self.is_busy(f))?;
        let taken = closure.count(self.level, Part::Run);
        debug_invariant!(I5, taken >= run.len(), "{taken} of {} files of the run", run.len());
        decide(self.view, &closure, reason.clone())
    }

    /// Returns the closed job, cheapest first. With `at`, among the files over a key.
    pub(super) fn cheapest(&self, at: Option<&[u8]>, reason: &Reason) -> Option<Decision> {
        let order = &self.version().order;
        let sets = self.closed_sets();
        let over = |i: usize| at.is_none_or(|key| self.files[i].span().contains(order, key));
        let mut ranked: Vec<usize> =
            (0..sets.len()).filter(|&i| !sets[i].busy && over(i)).collect();
        ranked.sort_by(|&a, &b| {
            let by_cost = sets[a].cost().total_cmp(&sets[b].cost());
            by_cost.then_with(|| self.weights[a].total_cmp(&self.weights[b]))
        });
        invariant!(I5, sets.len() == self.files.len(), "{} sets of files", sets.len());
        ranked.into_iter().find_map(|i| {
            let grown = self.absorb_run(self.absorb(&sets, i));
            self.job(grown.members.iter(), &grown.run, reason).or_else(|| {
                let same = grown.run.is_empty() && grown.members == sets[i].members;
                if same { None } else { self.job(sets[i].members.iter(), &[], reason) }
            })
        })
    }

    /// Returns OC(x) of every file. From the oldest on, each is made of the sets of the older files
    /// that it overlaps. O(n^2) overlap tests.
    fn closed_sets(&self) -> Vec<ClosedSet<'v>> {
        let order = &self.version().order;
        let count = self.files.len();
        let mut sets: Vec<Option<ClosedSet<'v>>> = vec![None; count];
        for i in (0..count).rev() {
            let file = &self.files[i];
            let mut members = Bits::new(count);
            members.set(i);
            let mut span = file.span();
            let mut busy = self.is_busy(file);
            for (j, older) in sets.iter().enumerate().skip(i + 1) {
                let Some(older) = older else { continue };
                if !members.get(j) && self.overlap(i, j) {
                    members.add(&older.members);
                    span = span.hull(order, &older.span);
                    busy |= older.busy;
                }
            }
            let bytes = members.iter().map(|j| self.files[j].bytes).sum();
            let below_bytes = self.below_bytes(&span);
            let newer = members.iter().next().filter(|&first| first < i);
            debug_invariant!(I5, newer.is_none(), "what leaves with file {i} is newer: {newer:?}");
            debug_invariant!(I5, self.is_closed(&members), "what leaves with file {i} is not all");
            sets[i] = Some(ClosedSet { members, run: Vec::new(), span, bytes, below_bytes, busy });
        }
        sets.into_iter().flatten().collect()
    }

    /// Whether every older file that a member overlaps is a member (I5). Asked in debug
    /// builds, of short logs.
    fn is_closed(&self, members: &Bits) -> bool {
        if self.files.len() > CHECKED_MAX {
            return true;
        }
        let needed = |i: usize| (i + 1..self.files.len()).filter(move |&j| self.overlap(i, j));
        members.iter().all(|i| needed(i).all(|j| members.get(j)))
    }

    /// Returns the set of file `seed` with all that makes it cheaper. Oldest first, so that a file
    /// comes after those that it needs.
    fn absorb(&self, sets: &[ClosedSet<'v>], seed: usize) -> ClosedSet<'v> {
        let order = &self.version().order;
        let mut set = sets[seed].clone();
        let mut grew = true;
        while grew {
            grew = false;
            for i in (0..self.files.len()).rev() {
                let file = &self.files[i];
                if set.members.get(i) || !file.overlaps(order, &self.reach(&set.span)) {
                    continue;
                }
                let inside = |j: usize| j == i || set.members.get(j);
                if sets[i].members.iter().all(inside) && self.gains(&mut set, file) {
                    set.members.set(i);
                    grew = true;
                }
            }
        }
        let bytes = set.members.iter().fold(0u64, |sum, i| sum.saturating_add(self.files[i].bytes));
        debug_assert!(bytes == set.bytes, "a set of {bytes} bytes is counted as {}", set.bytes);
        debug_invariant!(I5, self.is_closed(&set.members), "a set grew by what needs more");
        set
    }

    /// Returns the set with files of the level's run that make it cheaper. All that the log holds
    /// below such a file must be in the set (I5).
    fn absorb_run(&self, mut set: ClosedSet<'v>) -> ClosedSet<'v> {
        let order = &self.version().order;
        invariant!(I5, set.run.is_empty(), "a set takes in files of its run twice");
        let Some(level) = self.version().level(self.level) else { return set };
        for i in level.run_overlapping(order, &self.reach(&set.span)) {
            let file = &level.run[i];
            let left_behind = |(j, f): (usize, &Arc<File>)| {
                !set.members.get(j) && f.overlaps(order, &file.span())
            };
            if !self.files.iter().enumerate().any(left_behind) && self.gains(&mut set, file) {
                set.run.push(i);
            }
        }
        set
    }

    /// Takes a file's range and bytes into the set, if that makes it cheaper and the job not too
    /// large. The caller adds the member.
    fn gains(&self, set: &mut ClosedSet<'v>, file: &'v Arc<File>) -> bool {
        let limit = self.view.settings.file_bytes.saturating_mul(ABSORB_FILES_MAX);
        let span = set.span.hull(&self.version().order, &file.span());
        let bytes = set.bytes.saturating_add(file.bytes);
        let below_bytes = self.below_bytes(&span);
        let fits = bytes.saturating_add(below_bytes) <= limit && !self.is_busy(file);
        debug_assert!(below_bytes >= set.below_bytes, "a wider range meets {below_bytes} bytes");
        let gains = fits && cost(below_bytes, bytes) < set.cost();
        if gains {
            (set.span, set.bytes, set.below_bytes) = (span, bytes, below_bytes);
        }
        gains
    }

    /// Returns the range with the files of the run below that it meets: a file in there costs
    /// nothing more.
    fn reach(&self, span: &Span<'v>) -> Span<'v> {
        let order = &self.version().order;
        let Some(run) = self.version().level(self.level + 1) else { return *span };
        let met = &run.run[run.run_overlapping(order, span)];
        match (met.first(), met.last()) {
            (Some(first), Some(last)) => span.hull(order, &first.span()).hull(order, &last.span()),
            _ => *span,
        }
    }

    /// Returns the paper's job: from the file of smallest weight on.
    pub(super) fn by_weight(&self, at: Option<&[u8]>, reason: &Reason) -> Option<Decision> {
        let order = &self.version().order;
        let over = |i: usize| at.is_none_or(|key| self.files[i].span().contains(order, key));
        let mut ranked: Vec<usize> = (0..self.files.len()).filter(|&i| over(i)).collect();
        ranked.sort_by(|&a, &b| self.weights[a].total_cmp(&self.weights[b]));
        let mut seen = Bits::new(self.files.len());
        ranked.into_iter().find_map(|seed| {
            if seen.get(seed) {
                return None;
            }
            let gathered = self.gather(seed);
            gathered.iter().for_each(|&i| seen.set(i));
            let evicted = self.evict(&gathered);
            let count = evicted.len();
            invariant!(
                I5,
                count > 0 && gathered.starts_with(&evicted),
                "{count} files are evicted"
            );
            self.job(evicted.into_iter(), &[], reason)
        })
    }

    /// Returns the file and all that overlap it, transitively; oldest first.
    fn gather(&self, seed: usize) -> Vec<usize> {
        let mut members = Bits::new(self.files.len());
        members.set(seed);
        let mut queue = vec![seed];
        while let Some(i) = queue.pop() {
            for j in 0..self.files.len() {
                if !members.get(j) && self.overlap(i, j) {
                    members.set(j);
                    queue.push(j);
                }
            }
        }
        let mut gathered: Vec<usize> = members.iter().collect();
        gathered.reverse();
        debug_invariant!(I5, self.is_closed(&members), "files that overlap are not gathered");
        let oldest_first = gathered.windows(2).all(|pair| pair[0] > pair[1]);
        debug_invariant!(I4, oldest_first, "files are not gathered oldest first");
        gathered
    }

    /// Returns the oldest, and more for as long as few enough files below are met. Those between
    /// two that do not touch count: the job takes them too (I9).
    fn evict(&self, gathered: &[usize]) -> Vec<usize> {
        let order = &self.version().order;
        let run = self.version().level(self.level + 1);
        let mut evicted: Vec<usize> = Vec::new();
        let mut hull: Option<Span<'v>> = None;
        for &i in gathered {
            let span = self.files[i].span();
            let wider = hull.map_or(span, |hull| hull.hull(order, &span));
            let involved = run.map_or(0, |run| run.run_overlapping(order, &wider).len());
            if !evicted.is_empty() && involved > INVOLVED_MAX * (evicted.len() + 1) {
                break;
            }
            hull = Some(wider);
            evicted.push(i);
        }
        evicted
    }
}

impl ClosedSet<'_> {
    /// Bytes rewritten per byte that goes down.
    fn cost(&self) -> f64 {
        cost(self.below_bytes, self.bytes)
    }
}

fn cost(below_bytes: u64, bytes: u64) -> f64 {
    below_bytes as f64 / bytes.max(1) as f64
}

/// Free bytes of a log: those that no running job is taking down already.
pub(super) fn free_bytes(view: &View<'_>, level: &Level) -> u64 {
    let bytes = level.part_bytes(Part::SstLog);
    if view.busy.is_empty() {
        return bytes;
    }
    let busy = level.sst_log.iter().filter(|f| view.busy.is_busy(f.number));
    let busy: u64 = busy.map(|f| f.bytes).sum();
    debug_invariant!(I9, busy <= bytes, "{busy} bytes of an SST-log go down, of {bytes}");
    bytes.saturating_sub(busy)
}

/// A set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn new(count: usize) -> Bits {
        Bits { words: vec![0; count.div_ceil(64)] }
    }

    fn get(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    fn set(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    fn add(&mut self, other: &Bits) {
        let (here, there) = (self.words.len(), other.words.len());
        debug_assert!(here == there, "sets of {here} and {there} words are joined");
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Ascending.
    fn iter(&self) -> impl Iterator<Item = usize> {
        let bits = |(at, &word): (usize, &u64)| {
            let mut word = word;
            core::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                (word != 0).then(|| {
                    word &= word - 1;
                    at * 64 + bit
                })
            })
        };
        self.words.iter().enumerate().flat_map(bits)
    }
}
