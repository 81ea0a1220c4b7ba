//! The files that a job may not contradict (I6): those outside it that lie at or below the place of
//! its output, and so are older for every key they share.
//!
//! A tombstone may go, an operand be resolved without a base, an expired entry
//! vanish, only for keys that none of these files can hold. Range tombstones in
//! them count: a file's bounds are the hull of both.
//!
//! Built once per job as a list of disjoint intervals; asked once per key in
//! ascending order, it moves one cursor.
//!
//! Owns: that set of ranges. Never does: read a table; bounds are enough.

use super::file::{File, Part, Place};
use super::span::Span;
use super::version::Version;
use crate::decision::Merge;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{KeyOrder, debug_invariant};

/// Whether no file that is later in read order overlaps this one: then its tombstones hide nothing,
/// and none need be kept.
pub fn nothing_older(version: &Version, level: u32, part: Part, file: &File) -> bool {
    let is_there = version.level(level).is_some_and(|at| at.find(part, file.number).is_some());
    debug_invariant!(I6, is_there, "table {} is not in level {level}", file.number);
    let place = file.place(level, part);
    (level..version.levels.len() as u32).all(|n| {
        [Part::Run, Part::SstLog].into_iter().all(|half| {
            !version.overlapping_span(n, half, file.span()).any(|(_, f)| f.place(n, half) > place)
        })
    })
}

/// The union of the ranges of all older files outside a job. Owned and
/// `'static`; cheap to clone for a job that is worked on in pieces.
#[derive(Clone, Debug)]
pub struct OlderFiles {
    order: KeyOrder,
    /// Disjoint and ascending: the file that gives the start, and the one that gives the end.
    intervals: Arc<[(Arc<File>, Arc<File>)]>,
    next: usize,
    #[cfg(debug_assertions)]
    last: Vec<u8>,
}

impl OlderFiles {
    /// Collects the files that the job may not contradict in this version.
    ///
    /// The set stays valid while the job runs: a file that enters below meanwhile is made of files
    /// that are below now (I5, I9).
    pub fn new(version: &Version, merge: &Merge) -> OlderFiles {
        let inputs: BTreeSet<_> =
            merge.inputs.iter().flat_map(|i| &i.files).map(|f| f.number).collect();
        if cfg!(debug_assertions) {
            let gone = merge.files().find(|(level, part, f)| {
                version.level(*level).is_none_or(|at| at.find(*part, f.number).is_none())
            });
            let gone = gone.map(|(level, _, f)| (level, f.number));
            debug_invariant!(I6, gone.is_none(), "input {gone:?} of a job is not in the tree");
        }
        let span = Span::of(&merge.bounds);
        OlderFiles::below(version, merge.output_place(), &span, |f| inputs.contains(&f.number))
    }

    /// Collects the files in `span` at or below `place` that `inside` does not claim.
    pub fn below(
        version: &Version,
        place: Place,
        span: &Span<'_>,
        inside: impl Fn(&File) -> bool,
    ) -> OlderFiles {
        let order = &version.order;
        debug_invariant!(I6, !span.is_empty(order), "a job over no key");
        let mut files: Vec<&Arc<File>> = Vec::new();
        for level in place.level..version.levels.len() as u32 {
            for part in [Part::Run, Part::SstLog] {
                files.extend(
                    version
                        .overlapping_span(level, part, *span)
                        .map(|(_, f)| f)
                        .filter(|f| f.place(level, part) >= place && !inside(f)),
                );
            }
        }
        // Stable, since it is fast on sorted stretches, which runs are.
        files.sort_by(|a, b| order.compare(&a.smallest, &b.smallest));
        let mut intervals: Vec<(Arc<File>, Arc<File>)> = Vec::with_capacity(files.len());
        for file in files {
            match intervals.last_mut() {
                Some((_, end)) if !end.span().ends_before(order, &file.smallest) => {
                    if file.span().compare_ends(order, &end.span()).is_gt() {
                        *end = file.clone();
                    }
                }
                _ => intervals.push((file.clone(), file.clone())),
            }
        }
        let apart =
            intervals.windows(2).all(|w| w[0].1.span().ends_before(order, &w[1].0.smallest));
        debug_invariant!(I6, apart, "what lies below a job is not in order");
        OlderFiles {
            order: order.clone(),
            intervals: intervals.into(),
            next: 0,
            #[cfg(debug_assertions)]
            last: Vec::new(),
        }
    }

    /// Whether nothing older is outside the job: every key may be settled.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Whether an older file outside the job may hold `user_key`. Keys must
    /// not descend from call to call; O(1) amortised.
    #[inline]
    pub fn may_hold(&mut self, user_key: &[u8]) -> bool {
        #[cfg(debug_assertions)]
        {
            debug_invariant!(
                I6,
                self.next == 0 && self.last.is_empty()
                    || self.order.compare(&self.last, user_key).is_le(),
                "keys do not ascend"
            );
            self.last.clear();
            self.last.extend_from_slice(user_key);
        }
        while let Some((start, end)) = self.intervals.get(self.next) {
            if end.span().ends_before(&self.order, user_key) {
                self.next += 1;
                continue;
            }
            return self.order.compare(&start.smallest, user_key).is_le();
        }
        false
    }

    /// Whether an older file outside the job overlaps `[start, end)`: then a
    /// range tombstone over it has to stay. In any order; O(log n).
    pub fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        let span = Span { lo: start, hi: end, hi_exclusive: true };
        if span.is_empty(&self.order) {
            return false;
        }
        let at =
            self.intervals.partition_point(|(_, last)| last.span().ends_before(&self.order, start));
        let overlaps = self
            .intervals
            .get(at)
            .is_some_and(|(first, _)| !span.ends_before(&self.order, &first.smallest));
        if cfg!(debug_assertions) && self.intervals.len() < 100 {
            let touches = |file: &File| file.overlaps(&self.order, &span);
            let found = self.intervals.iter().any(|(first, last)| touches(first) || touches(last));
            debug_invariant!(I6, overlaps || !found, "a table below a range tombstone is missed");
        }
        overlaps
    }
}
