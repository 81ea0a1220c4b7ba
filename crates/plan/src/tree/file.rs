//! The metadata of one table file: its identity, bounds and counts.
//!
//! Owns: metadata alone. Never does: open a file; handles live with the engine.

use super::span::Span;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;
use windrow_base::bound::{self, Bound};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Epoch, Error, FileNumber, FileUid, KeyOrder, Result, SeqNo, debug_invariant};

/// One of the two halves of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Part {
    /// Sorted, disjoint files; read first.
    Run = 0,
    /// Files that may overlap, read after the run, newest epoch first.
    SstLog = 1,
}

impl Part {
    /// The word that text trees and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Part::Run => "run",
            Part::SstLog => "sst_log",
        }
    }
}

/// A place in a tree's read order; smaller is read earlier, and is newer for
/// every key (I3, I4). All files of a run share one place, as do the files of
/// one epoch of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Level, from 0.
    pub level: u32,
    /// Run before log.
    pub part: Part,
    /// Newest epoch first; `Reverse(0)` in a run.
    pub age: Reverse<Epoch>,
}

impl Place {
    /// The place of level `level`'s run.
    pub fn run(level: u32) -> Place {
        Place { level, part: Part::Run, age: Reverse(0) }
    }

    /// The place of one epoch of level `level`'s SST-log.
    pub fn sst_log(level: u32, epoch: Epoch) -> Place {
        Place { level, part: Part::SstLog, age: Reverse(epoch) }
    }
}

/// Metadata of a table file. Immutable; shared by versions through `Arc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Number, unique in the database (I2).
    pub number: FileNumber,
    /// Random identity that seeds the file's checksums.
    pub uid: FileUid,
    /// Size on disk in bytes.
    pub bytes: u64,
    /// Point entries of every kind, tombstones and operands included, range
    /// tombstones not.
    pub entries: u64,
    /// Point tombstones among `entries`.
    pub point_tombstones: u64,
    /// Range tombstones (fragments), not counted in `entries`.
    pub range_tombstones: u64,
    /// First user key of the hull of points and range tombstones.
    pub smallest: Bound,
    /// Last user key of that hull.
    pub largest: Bound,
    /// Whether `largest` is the open end of a range tombstone.
    pub largest_exclusive: bool,
    /// First and last user key that has a point entry; `None` if there is none.
    pub point_bounds: Option<(Bound, Bound)>,
    /// Smallest sequence number of any entry (0 where it was zeroed).
    pub seq_min: SeqNo,
    /// Largest sequence number of any entry.
    pub seq_max: SeqNo,
    /// Whether the file was ingested: its entries have no sequence number in it, and all of them
    /// have the one that is its smallest and largest here.
    pub is_ingested: bool,
    /// When it entered the SST-log of its level (I4); 0 in a run.
    pub epoch: Epoch,
    /// Wall clock at which it was written, ms since 1970.
    pub created_ms: u64,
    /// Entries with an expiry.
    pub expiring_entries: u64,
    /// Earliest expiry of any entry, ms since 1970; meaningless if `expiring_entries` is 0.
    pub expiry_min_ms: u64,
    /// Bytes of the file's filter.
    pub filter_bytes: u64,
    /// How hot its keys were when it was written (L2SM's H; `hotness/`).
    pub hotness: u64,
    /// The filter memory policy's record of the file; opaque here.
    pub statistics: Vec<u8>,
}

impl File {
    /// The hull of the file's points and range tombstones.
    #[inline]
    pub fn span(&self) -> Span<'_> {
        Span { lo: &self.smallest, hi: &self.largest, hi_exclusive: self.largest_exclusive }
    }

    /// Whether some key may lie in this file and in `span`.
    #[inline]
    pub fn overlaps(&self, order: &KeyOrder, span: &Span<'_>) -> bool {
        self.span().overlaps(order, span)
    }

    /// The file's place in read order, given the half it is in.
    #[inline]
    pub fn place(&self, level: u32, part: Part) -> Place {
        let (number, epoch) = (self.number, self.epoch);
        let fits = (part == Part::Run) == (epoch == 0);
        debug_invariant!(I4, fits, "table {number} of a {} has epoch {epoch}", part.name());
        match part {
            Part::Run => Place::run(level),
            Part::SstLog => Place::sst_log(level, self.epoch),
        }
    }

    /// Returns the file at another epoch (0 for a run).
    #[must_use]
    pub fn at_epoch(&self, epoch: Epoch) -> File {
        File { epoch, ..self.clone() }
    }

    /// Returns the file with equal bounds as one key in memory. Bounds are shared with every clone:
    /// keys can be as long as 64 KiB, and there are two or four of them for each table.
    #[must_use]
    pub fn sharing_bounds(mut self) -> File {
        if let Some((first, last)) = &mut self.point_bounds {
            bound::share_equal(&self.smallest, first);
            bound::share_equal(&self.largest, last);
        }
        self
    }

    /// Bytes of memory, where the file shares bounds with its own clones alone.
    pub fn memory_bytes(&self) -> usize {
        let (first, last) = match &self.point_bounds {
            Some((first, last)) => (first, last),
            None => (&self.smallest, &self.largest),
        };
        size_of::<File>()
            + self.statistics.capacity()
            + bound::memory_bytes(&self.smallest, first)
            + bound::memory_bytes(&self.largest, last)
    }

    /// Point and range tombstones.
    pub fn tombstones(&self) -> u64 {
        self.point_tombstones.saturating_add(self.range_tombstones)
    }

    /// Whether merging the file could free space by itself: it holds
    /// tombstones or entries that expire.
    pub fn may_hold_garbage(&self) -> bool {
        self.tombstones() > 0 || self.expiring_entries > 0
    }

    /// Checks the metadata by itself, for the half of a level that the file enters.
    ///
    /// # Errors
    /// `Corruption` naming the file and the fault: metadata may come from disk.
    pub fn check(&self, order: &KeyOrder, part: Part) -> Result<()> {
        let fault = if self.span().is_empty(order) {
            "its bounds are crossed"
        } else if self.smallest.len() > KEY_BYTES_MAX || self.largest.len() > KEY_BYTES_MAX {
            "a bound is longer than a key may be"
        } else if !self.points_lie_within(order) {
            "its point bounds are not within its bounds"
        } else if self.seq_min > self.seq_max || self.seq_max > SEQ_MAX {
            "its sequence numbers are crossed or too large"
        } else if self.is_ingested && !self.is_all_of_one_number() {
            "it was ingested, and has not one sequence number"
        } else if self.point_tombstones > self.entries || self.expiring_entries > self.entries {
            "it counts more tombstones or expiring entries than entries"
        } else if (part == Part::Run) != (self.epoch == 0) {
            "it has an epoch in a run, or none in a log"
        } else {
            return Ok(());
        };
        Err(Error::corruption(format!("table {}: {fault}", self.number)))
    }

    /// The sequence number that its entries get as they are read; 0: they have their own.
    pub fn given_seq(&self) -> SeqNo {
        if self.is_ingested { self.seq_min } else { 0 }
    }

    /// Whether all its entries are puts of one sequence number.
    fn is_all_of_one_number(&self) -> bool {
        self.seq_min == self.seq_max
            && self.seq_min > 0
            && self.tombstones() == 0
            && self.entries > 0
    }

    fn points_lie_within(&self, order: &KeyOrder) -> bool {
        match &self.point_bounds {
            None => true,
            Some((first, last)) => {
                let span = self.span();
                order.compare(first, last).is_le()
                    && span.contains(order, first)
                    && span.contains(order, last)
            }
        }
    }
}
