//! The tree of one keyspace at one moment, as metadata.
//!
//! Owns: the levels, and the state that policies persist (boundaries, cursors, L, epochs). Never
//! changes: an edit gives a new version (`apply.rs`), which shares every level that the edit does
//! not touch (I7).

use super::file::{File, Part};
use super::level::Level;
use super::span::Span;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::{Epoch, FileNumber, KeyOrder, SeqNo, debug_invariant};

/// Most levels a tree can have. The last one has no capacity limit; at ratio 2
/// over a megabyte it lies in the petabytes.
pub const LEVELS_MAX: u32 = 32;

/// An immutable tree. Cheap to clone: an `Arc` per level.
#[derive(Clone, Debug)]
pub struct Version {
    /// Levels from 0; at least one, and the last is empty only if it is the only one.
    pub levels: Vec<Arc<Level>>,
    /// The number of levels that the shape plans for (Autumn's L); at least 1.
    pub shape_levels: u32,
    /// Epoch for the next file to enter an SST-log; larger than every epoch in the tree.
    pub next_epoch: Epoch,
    /// Boundaries of level 0's partitions, ascending; empty for one partition.
    pub boundaries: Arc<[Vec<u8>]>,
    /// Round-robin position by level: the next pick starts after this key.
    pub cursors: Vec<Option<Vec<u8>>>,
    /// Every entry up to this sequence number is in a table.
    pub flushed_through: SeqNo,
    /// Order of the keyspace's keys.
    pub order: KeyOrder,
}

impl Version {
    /// A tree without files.
    pub fn empty(order: KeyOrder) -> Version {
        Version {
            levels: vec![Arc::new(Level::default())],
            shape_levels: 1,
            next_epoch: 1,
            boundaries: Arc::new([]),
            cursors: Vec::new(),
            flushed_through: 0,
            order,
        }
    }

    /// Every file with where it is, in read order.
    pub fn files(&self) -> impl Iterator<Item = (u32, Part, &Arc<File>)> {
        self.levels.iter().enumerate().flat_map(|(n, level)| {
            let run = level.run.iter().map(move |f| (n as u32, Part::Run, f));
            run.chain(level.sst_log.iter().map(move |f| (n as u32, Part::SstLog, f)))
        })
    }

    /// Number of files.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(|l| l.run.len() + l.sst_log.len()).sum()
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().fold(0, |sum, l| sum.saturating_add(l.bytes()))
    }

    /// The deepest level that holds a file; `None` for an empty tree.
    pub fn deepest(&self) -> Option<u32> {
        let deepest = self.levels.iter().rposition(|l| !l.is_empty());
        let due = self.levels.len().checked_sub(1).filter(|_| deepest.is_some());
        debug_invariant!(I3, deepest == due, "the last level, {due:?}, is empty");
        deepest.map(|n| n as u32)
    }

    /// L: the number of levels planned for, or the number that there are. There are more after
    /// another shape, or a manual compaction, went deeper.
    pub fn planned_levels(&self) -> u32 {
        let levels = self.shape_levels.max(self.deepest().unwrap_or(0)).max(1);
        debug_invariant!(S1, levels <= LEVELS_MAX, "a plan for {levels} levels");
        levels
    }

    /// The level, if the tree reaches that deep.
    pub fn level(&self, level: u32) -> Option<&Arc<Level>> {
        self.levels.get(level as usize)
    }

    /// The files of half a level; none if the tree does not reach that deep.
    pub fn part(&self, level: u32, part: Part) -> &[Arc<File>] {
        self.level(level).map_or(&[], |l| l.part(part))
    }

    /// Bytes of half a level.
    pub fn part_bytes(&self, level: u32, part: Part) -> u64 {
        self.level(level).map_or(0, |l| l.part_bytes(part))
    }

    /// Where round-robin picking of `level` goes on.
    pub fn cursor(&self, level: u32) -> Option<&[u8]> {
        self.cursors.get(level as usize)?.as_deref()
    }

    /// The files of half a level that may hold a key of `[lo, hi]` (or `[lo, hi)`),
    /// in read order. Binary search in a run, a scan in a log.
    pub fn overlapping<'a>(
        &'a self,
        level: u32,
        part: Part,
        lo: &'a [u8],
        hi: &'a [u8],
        hi_exclusive: bool,
    ) -> impl Iterator<Item = &'a Arc<File>> {
        self.overlapping_span(level, part, Span { lo, hi, hi_exclusive }).map(|(_, file)| file)
    }

    /// As [`Version::overlapping`], with each file's index in its half.
    pub fn overlapping_span<'a>(
        &'a self,
        level: u32,
        part: Part,
        span: Span<'a>,
    ) -> impl Iterator<Item = (usize, &'a Arc<File>)> {
        let range = match (self.level(level), part) {
            (None, _) => 0..0,
            (Some(l), Part::Run) => l.run_overlapping(&self.order, &span),
            (Some(l), Part::SstLog) => 0..l.sst_log.len(),
        };
        let has_run = level == 0 && part == Part::Run && !range.is_empty();
        debug_invariant!(I1, !has_run, "level 0 has a run");
        let files = &self.part(level, part)[range.clone()];
        range.zip(files).filter(move |(_, f)| f.overlaps(&self.order, &span))
    }

    /// Finds a file by number: where it is and its index there.
    pub fn find(&self, number: FileNumber) -> Option<(u32, Part, usize)> {
        self.levels.iter().enumerate().find_map(|(n, level)| {
            [Part::Run, Part::SstLog]
                .into_iter()
                .find_map(|part| Some((n as u32, part, level.find(part, number)?)))
        })
    }
}
