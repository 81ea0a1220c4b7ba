//! `by_size`: a file ends at `file_bytes`, or earlier once it overlaps so much
//! of the level below that merging it down later would be a large job.
//!
//! The cutter is asked between user keys alone, so that no cut separates
//! versions of one key (I1).

use crate::tree::{File, Level, Version};
use crate::view::Settings;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::KeyOrder;

/// Cuts by size and by overlap with the next level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BySize;

impl BySize {
    /// The cutter of one output stream into `output_level`.
    pub fn cutter(&self, version: &Version, settings: &Settings, output_level: u32) -> Cutter {
        let overlap = settings.file_bytes.saturating_mul(settings.overlap_files_max as u64);
        // Level 0 is not cut: its files are made for one reading, and fewer are better.
        if output_level == 0 {
            return Cutter::at(Arc::new([]));
        }
        Cutter {
            file_bytes: settings.file_bytes,
            overlap_bytes_max: overlap,
            below: version.level(output_level + 1).cloned(),
            ..Cutter::at(Arc::new([]))
        }
    }
}

/// Says, key by key, whether a new file begins. Owned: versions may come and
/// go while a job writes.
#[derive(Clone, Debug)]
pub struct Cutter {
    file_bytes: u64,
    overlap_bytes_max: u64,
    below: Option<Arc<Level>>,
    /// Files of the run below that end before the last key; `None` before the first.
    passed: Option<usize>,
    /// Bytes of those passed since the file began.
    overlapped: u64,
    cuts: Arc<[Vec<u8>]>,
    /// Cuts at or before the last key.
    cuts_passed: usize,
}

impl Cutter {
    /// Cuts before each of these keys (ascending) and nowhere else: a flush.
    pub fn at(cuts: Arc<[Vec<u8>]>) -> Cutter {
        Cutter {
            file_bytes: u64::MAX,
            overlap_bytes_max: u64::MAX,
            below: None,
            passed: None,
            overlapped: 0,
            cuts,
            cuts_passed: 0,
        }
    }

    /// Whether to end the present file, which holds `bytes_so_far`, before
    /// `user_key`. Ask for every user key, the first of the stream included, once, at its
    /// first version, in ascending order; a `true` must be obeyed. O(1) amortised.
    pub fn cut_before(&mut self, order: &KeyOrder, user_key: &[u8], bytes_so_far: u64) -> bool {
        let border = self.pass_cuts(order, user_key);
        self.pass_files(order, user_key);
        let full = bytes_so_far >= self.file_bytes || self.overlapped > self.overlap_bytes_max;
        if (full || border) && bytes_so_far > 0 {
            self.overlapped = 0;
            return true;
        }
        false
    }

    fn pass_cuts(&mut self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let before = self.cuts_passed;
        while self.cuts.get(self.cuts_passed).is_some_and(|c| order.compare(c, user_key).is_le()) {
            self.cuts_passed += 1;
        }
        self.cuts_passed > before
    }

    fn pass_files(&mut self, order: &KeyOrder, user_key: &[u8]) {
        let Some(below) = &self.below else { return };
        let ends = |f: &Arc<File>| f.span().ends_before(order, user_key);
        let Some(mut passed) = self.passed else {
            self.passed = Some(below.run.partition_point(ends));
            return;
        };
        while let Some(file) = below.run.get(passed).filter(|f| ends(f)) {
            self.overlapped = self.overlapped.saturating_add(file.bytes);
            passed += 1;
        }
        self.passed = Some(passed);
    }
}
