//! The cutter: says, key by key, where the files of one output end.
//!
//! A cursor goes through the run of the level below once, so that a file's overlap with it is known
//! at every key in O(1) amortised.
//!
//! It is asked between user keys alone, so that no cut separates versions of one key (I1). It holds
//! its level by `Arc`: versions may come and go while a job writes.
//!
//! Owns: the limits, the boundaries and the cursor of one output. Never does: choose the limits, or
//! write a file.

use crate::tree::{File, Level};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{KeyOrder, debug_invariant, invariant};

/// When a file ends, in bytes of its own or of the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutLimits {
    /// A file with this number of bytes ends, unless little is left.
    pub(super) file_bytes: u64,
    /// A file that has passed more bytes of the level below ends. Files that end before the next
    /// key are passed.
    pub(super) passed_bytes: u64,
    /// A file that would touch more bytes of the level below with the next key, files that only
    /// begin included, ends ...
    pub(super) touched_bytes: u64,
    /// ... if it has as many bytes of its own as these.
    pub(super) touched_min_bytes: u64,
}

impl CutLimits {
    /// Files do not end.
    pub(super) const NONE: CutLimits = CutLimits {
        file_bytes: u64::MAX,
        passed_bytes: u64::MAX,
        touched_bytes: u64::MAX,
        touched_min_bytes: 0,
    };
}

/// The rest of a stream goes into the present file if it is less than this part of a file.
const REST_PART: u64 = 4;

/// Keys up to this length cost little as bounds of a file.
const BOUND_BYTES: usize = 1 << 10;

/// A file has this number of bytes for each byte of its bounds beyond `BOUND_BYTES`: bounds are
/// held in memory, and written to the manifest, for as long as the file exists. Files of a megabyte
/// with keys of 64 KiB had a quarter of their bytes there.
const FILE_BYTES_PER_BOUND_BYTE: u64 = 128;

/// Says, key by key, whether a new file begins.
#[derive(Clone, Debug)]
pub struct Cutter {
    limits: CutLimits,
    overlap: Option<Overlapped>,
    boundaries: Arc<[Vec<u8>]>,
    /// Boundaries at or before the last key.
    boundaries_passed: usize,
    /// A boundary cuts off no less than this.
    piece_min_bytes: u64,
    /// Length of the key that the present file begins with; `None` before the first.
    first_bytes: Option<usize>,
}

impl Cutter {
    /// Cuts before each of these keys (ascending) and nowhere else: a flush.
    pub fn at(boundaries: Arc<[Vec<u8>]>) -> Cutter {
        Cutter::new(CutLimits::NONE, None).also_at(boundaries)
    }

    /// Cuts by `limits` against the run of `below`.
    pub(super) fn new(limits: CutLimits, below: Option<Arc<Level>>) -> Cutter {
        Cutter {
            limits,
            overlap: below.map(Overlapped::new),
            boundaries: Arc::new([]),
            boundaries_passed: 0,
            piece_min_bytes: 1,
            first_bytes: None,
        }
    }

    /// Adds a cut before each of these keys (ascending).
    #[must_use]
    pub fn also_at(self, boundaries: Arc<[Vec<u8>]>) -> Cutter {
        invariant!(I1, self.first_bytes.is_none(), "an output gets boundaries half way");
        invariant!(I1, self.boundaries.is_empty(), "an output gets boundaries twice");
        Cutter { boundaries, ..self }
    }

    /// Sets the least bytes that a boundary cuts off.
    #[must_use]
    pub fn least(self, bytes: u64) -> Cutter {
        invariant!(I1, self.first_bytes.is_none(), "the least piece changes half way");
        Cutter { piece_min_bytes: bytes.max(1), ..self }
    }

    /// Whether to end the present file, which holds `bytes_so_far`, before
    /// `user_key`. Ask for every user key, the first of the stream included, once, at its
    /// first version, in ascending order; a `true` must be obeyed. O(1) amortised.
    ///
    /// `bytes_left` returns, roughly, the bytes from `user_key` on. A file does not end by its size
    /// where few are left: a merge that finds a file below its limit as full as it left it would
    /// add a file of a few keys each time. Nor does it end where it is small for the length of its
    /// bounds.
    pub fn cut_before(
        &mut self,
        order: &KeyOrder,
        user_key: &[u8],
        bytes_so_far: u64,
        bytes_left: impl FnOnce() -> u64,
    ) -> bool {
        let boundary = self.pass_boundaries(order, user_key);
        if let Some(overlap) = &mut self.overlap {
            overlap.reach(order, user_key);
        }
        let first_bytes = *self.first_bytes.get_or_insert(user_key.len());
        let cut = bytes_so_far > 0
            && bytes_so_far >= bytes_for_bounds(first_bytes, user_key.len())
            && ((boundary && bytes_so_far >= self.piece_min_bytes)
                || self.is_full(bytes_so_far, bytes_left));
        invariant!(I1, !cut || bytes_so_far > 0, "a table ends before its first key");
        if cut {
            self.first_bytes = Some(user_key.len());
            if let Some(overlap) = &mut self.overlap {
                overlap.passed = 0;
            }
        }
        cut
    }

    fn is_full(&self, bytes_so_far: u64, bytes_left: impl FnOnce() -> u64) -> bool {
        let CutLimits { file_bytes, passed_bytes, touched_bytes, touched_min_bytes } = self.limits;
        debug_invariant!(I1, bytes_so_far > 0, "a table may end before its first key");
        let (passed, touched) = self.overlap.as_ref().map_or((0, 0), |o| (o.passed, o.touched()));
        (bytes_so_far >= file_bytes && bytes_left() >= file_bytes / REST_PART)
            || passed > passed_bytes
            || (touched > touched_bytes && bytes_so_far >= touched_min_bytes)
    }

    /// Whether the key is the first one past a boundary.
    fn pass_boundaries(&mut self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let before = self.boundaries_passed;
        let passed = |b: &Vec<u8>| order.compare(b, user_key).is_le();
        while self.boundaries.get(self.boundaries_passed).is_some_and(passed) {
            self.boundaries_passed += 1;
        }
        let passed = self.boundaries_passed;
        let rest = self.boundaries.get(passed);
        let is_before = rest.is_none_or(|boundary| order.compare(user_key, boundary).is_lt());
        debug_invariant!(I1, is_before, "a boundary is not passed in time");
        passed > before
    }
}

/// Returns the least bytes of a file with bounds of these lengths.
fn bytes_for_bounds(first_bytes: usize, last_bytes: usize) -> u64 {
    let burden = |bytes: usize| bytes.saturating_sub(BOUND_BYTES) as u64;
    (burden(first_bytes) + burden(last_bytes)) * FILE_BYTES_PER_BOUND_BYTE
}

/// The overlap of the present file with the run below.
#[derive(Clone, Debug)]
struct Overlapped {
    below: Arc<Level>,
    /// Files that end before the last key; `None` before the first key.
    ended: Option<usize>,
    /// Bytes of those that ended since the present file began.
    passed: u64,
    /// Bytes of the one that the last key lies in.
    inside: u64,
}

impl Overlapped {
    fn new(below: Arc<Level>) -> Overlapped {
        Overlapped { below, ended: None, passed: 0, inside: 0 }
    }

    fn reach(&mut self, order: &KeyOrder, user_key: &[u8]) {
        let run = &self.below.run;
        let ends = |f: &Arc<File>| f.span().ends_before(order, user_key);
        let mut ended = self.ended.unwrap_or_else(|| run.partition_point(ends));
        while let Some(file) = run.get(ended).filter(|f| ends(f)) {
            self.passed = self.passed.saturating_add(file.bytes);
            ended += 1;
        }
        debug_invariant!(I1, self.ended.is_none_or(|before| before <= ended), "keys go back");
        self.ended = Some(ended);
        let is_past = ended == 0 || ends(&run[ended - 1]);
        debug_invariant!(I1, is_past, "a table of the level below is passed before its end");
        let next = run.get(ended).filter(|f| order.compare(&f.smallest, user_key).is_le());
        self.inside = next.map_or(0, |f| f.bytes);
    }

    /// Bytes below of the file with the last key.
    fn touched(&self) -> u64 {
        self.passed.saturating_add(self.inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Sizes of the files of entries that are keys of `key_bytes` alone.
    fn files(mut cutter: Cutter, key_bytes: usize, entries: u32) -> Vec<u64> {
        let (mut files, mut so_far) = (Vec::new(), 0);
        for n in 0..entries {
            let key = [&n.to_be_bytes()[..], &vec![7; key_bytes - 4]].concat();
            if cutter.cut_before(&KeyOrder::Bytewise, &key, so_far, || u64::MAX) {
                files.push(core::mem::take(&mut so_far));
            }
            so_far += key_bytes as u64;
        }
        files
    }

    /// Files of a mebibyte held a quarter of their bytes in memory as bounds.
    #[test]
    fn files_are_large_for_their_bounds() {
        let boundary = |n: u32| [&n.to_be_bytes()[..], &[7; 1000]].concat();
        for key_bytes in [100, 1 << 10, 2000, 8000, 65_535] {
            let by_size = Cutter::new(CutLimits { file_bytes: 1 << 20, ..CutLimits::NONE }, None);
            let entries = (64 << 20) / key_bytes as u32;
            let boundaries = (1..50).map(|n| boundary(n * (entries / 50))).collect();
            for cutter in [by_size, Cutter::at(boundaries)] {
                let files = files(cutter, key_bytes, entries);
                assert!(files.len() > 2, "{key_bytes}: {files:?}");
                for bytes in files {
                    let long = key_bytes > 2 * BOUND_BYTES;
                    let part = bytes / (2 * key_bytes as u64);
                    assert!(!long || part >= 96, "{key_bytes}: {bytes}");
                    // Ordinary keys make files of the size that was asked for.
                    assert!(key_bytes > BOUND_BYTES || bytes < 3 << 19, "{key_bytes}: {bytes}");
                }
            }
        }
    }
}
