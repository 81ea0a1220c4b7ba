//! Whether the device has room for the log and for the tables that its records will need.
//!
//! The log never takes the room that its records need in tables. So a database that has filled its
//! device can still be flushed, closed and opened. Before a write is refused, it has the memtables
//! flushed, after which old segments can go. A merge gives up if it would take that room. A close
//! that finds no room syncs the logs and leaves them to be replayed; an open removes the old logs
//! before it makes a new one.
//!
//! Logs that are kept for the feed of changes count as free: the oldest of them go before a write is
//! refused, a flush or merge gives up, or an open fails.
//!
//! Owns no state. Never does: flush, or wait for room (`room.rs`, `shortage.rs`).

use crate::manifest::record::Field;
use crate::write::segments::Segments;
use crate::write::wal::Wal;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result};

/// Room in addition to the log and the tables: for the manifest, and for parts of tables besides
/// entries.
const MARGIN_BYTES: u64 = 16 << 10;
/// Room that the next log takes at most when it is made.
const NEXT_LOG_BYTES: u64 = 64 << 10;
/// Room that a log reserves at once if there is enough.
const STEP_BYTES_MIN: u64 = 64 << 10;
/// With less than this free, in addition to room to flush, no log is made ahead.
const SPARE_BYTES_MIN: u64 = 1 << 20;

/// Bytes that the next log takes of `free` bytes: a flush lets a log go only if there is another.
fn next_log_bytes(free: u64) -> u64 {
    (free / 16).min(NEXT_LOG_BYTES)
}

impl Segments {
    /// Has a merge give up if it would take the room that the memtables need in tables: nothing is
    /// lost if it waits, and much is lost if they find no room. `step`: the bytes that it may write
    /// before it asks again; each of the `merges` that run may do so, too.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn leave_room_to_flush(&self, step: u64, merges: usize) -> Result<()> {
        let Ok(free) = self.host.env.fs.free_bytes(&self.host.dir) else { return Ok(()) };
        let steps = step.saturating_mul(merges.max(1) as u64);
        let needed = self.bytes_to_flush(free).saturating_add(steps);
        if needed <= free {
            return Ok(());
        }
        let text = format!(
            "a merge leaves {free} bytes free, of which a flush of what is in memory needs {needed}"
        );
        match self.give_up_kept(needed) {
            true => self.leave_room_to_flush(step, merges),
            false => Err(Error::new(ErrorKind::NoSpace, text)),
        }
    }

    /// Bytes that merges may write without taking that room.
    pub(crate) fn room_to_merge(&self) -> u64 {
        match self.host.env.fs.free_bytes(&self.host.dir) {
            Ok(free) => {
                let free = free.saturating_add(self.catalog.retained().bytes());
                free.saturating_sub(self.bytes_to_flush(free))
            }
            Err(_) => u64::MAX,
        }
    }

    /// Lets the oldest logs go that are kept for the feed of changes, until `needed` bytes are free,
    /// and a quarter of them at least. Returns whether any went.
    pub fn give_up_kept(&self, needed: u64) -> bool {
        let all = self.catalog.retained().bytes();
        if all == 0 {
            return false;
        }
        let Ok(mut catalog) = self.catalog.lock_to_change() else { return false };
        let free = self.host.env.fs.free_bytes(&self.host.dir).unwrap_or(0);
        let mut left = needed.saturating_sub(free).max(all / 4);
        let mut begin = None;
        // The files first: the record may need their room.
        for (&number, log) in catalog.state().kept.iter() {
            self.kept.remove_now(number);
            begin = Some(number + 1);
            left = left.saturating_sub(log.bytes);
            if left == 0 {
                break;
            }
        }
        // A failure turns writing off, and the caller finds that.
        begin.is_some_and(|begin| catalog.append(vec![Field::KeptBegin(begin)]).is_ok())
    }

    /// Bytes of `free` that a flush takes: of the memtables, and of writes that may still enter
    /// them without a check of the free space.
    fn bytes_to_flush(&self, free: u64) -> u64 {
        let to_come = self.bytes_in_memory().saturating_add(self.reserved_ahead());
        to_come.saturating_add(next_log_bytes(free) + MARGIN_BYTES)
    }

    /// Whether so little is free that a log is made only when it is needed, and not ahead.
    pub(crate) fn is_short_of_room(&self) -> bool {
        let needed = self.bytes_in_memory().saturating_add(SPARE_BYTES_MIN);
        self.host.env.fs.free_bytes(&self.host.dir).is_ok_and(|free| free < needed)
    }

    /// Bytes promised in memtables: about the bytes that they take in tables, at most.
    pub fn bytes_in_memory(&self) -> u64 {
        self.queue.lock().unflushed.bytes() as u64
    }

    /// Bytes of room that logs have already: writes enter memory by it without a check whether a
    /// flush has room for them.
    fn reserved_ahead(&self) -> u64 {
        let queue = self.queue.lock();
        let rest = |wal: &Wal, written: u64| match wal.file.reserved_bytes() {
            // The file system reserves nothing.
            u64::MAX => 0,
            reserved => reserved.saturating_sub(written),
        };
        let spare = queue.spare.as_ref().map_or(0, |spare| rest(spare, 0));
        rest(&queue.wal, queue.wal_offset) + spare
    }

    pub(super) fn too_little_is_left(&self, (wal, end): &(Arc<Wal>, u64)) -> Option<Error> {
        let free = self.host.env.fs.free_bytes(&self.host.dir).ok()?;
        let reserved = wal.file.reserved_bytes();
        // A step doubles the reserved bytes. It is 64 KiB at least, and takes a quarter of the free
        // space at most, or else the bytes that are asked for.
        let step = reserved.max(STEP_BYTES_MIN).min(free / 4).max(end.saturating_sub(reserved));
        let to_come = self.bytes_in_memory().saturating_add(self.reserved_ahead());
        let needed = to_come.saturating_add(2 * step + next_log_bytes(free) + MARGIN_BYTES);
        if needed <= free {
            return None;
        }
        let text = format!(
            "{free} bytes are free, and {needed} are needed to log and to flush what is in memory: \
             nothing of the write was done; make room and retry"
        );
        Some(Error::new(ErrorKind::NoSpace, text))
    }
}
