//! A stretch of a file in memory, for readers that go through it from front to back.
//!
//! Owns: those bytes. Never does: believe a length; it reads only bytes that the file has.

use std::ops::Range;
use windrow_base::Result;
use windrow_env::ReadFile;

/// Bytes read from the file at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// A stretch of the file in memory.
pub(super) struct FileWindow {
    start: u64,
    pub(super) bytes: Vec<u8>,
    /// The file is taken to end here, if it does not before.
    end: u64,
}

impl FileWindow {
    /// An empty one, of a file that is read up to `end`.
    pub(super) fn up_to(end: u64) -> FileWindow {
        FileWindow { start: 0, bytes: Vec::new(), end }
    }

    /// Makes `len` bytes from file offset `at` available. Returns their range in `self.bytes`, or
    /// `None` if the file ends before (nothing is allocated then, R12).
    pub(super) fn load(
        &mut self,
        file: &dyn ReadFile,
        at: u64,
        len: usize,
    ) -> Result<Option<Range<usize>>> {
        let left = file.len().min(self.end).saturating_sub(at);
        if len as u64 > left {
            return Ok(None);
        }
        let held = self.start..self.start + self.bytes.len() as u64;
        if !(held.start <= at && at + len as u64 <= held.end) {
            let want = len.max(WINDOW_BYTES).min(usize::try_from(left).unwrap_or(usize::MAX));
            self.bytes.clear();
            self.bytes.resize(want, 0);
            self.start = at;
            if let Err(e) = file.read_at(at, &mut self.bytes) {
                self.bytes.clear();
                return Err(e);
            }
        }
        let from = (at - self.start) as usize;
        Ok(Some(from..from + len))
    }

    /// As [`FileWindow::load`], but returns all bytes in memory from `at` on: `at_least` bytes or
    /// more, unless the file ends before.
    pub(super) fn load_from(
        &mut self,
        file: &dyn ReadFile,
        at: u64,
        at_least: usize,
    ) -> Result<Range<usize>> {
        let left =
            usize::try_from(file.len().min(self.end).saturating_sub(at)).unwrap_or(usize::MAX);
        let found = self.load(file, at, at_least.min(left))?;
        Ok(found.map_or(0..0, |range| range.start..self.bytes.len()))
    }
}
