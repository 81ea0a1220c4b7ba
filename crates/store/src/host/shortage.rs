//! Background work that found no room on the device.
//!
//! Such a failure changed nothing and is no background error: a memtable is still in memory and in
//! a log, and the inputs of a merge are as they were. So the job is tried again, after longer and
//! longer delays, and at once when a caller asks for its effect. Meanwhile writes go on while they
//! fit into memory and the log. A write that does not fit is refused with the job's error, before
//! anything of it is written. Rejected: to turn writing off (a merge that needs more room than
//! there is would keep out the deletes that make room); to have writers wait (nobody says when
//! there will be room).
//!
//! A merge that reads more than there is room for may still fit, since it drops entries that newer
//! ones hide; nobody knows before. So the policy is asked for one that surely fits first
//! (`plan/src/pick/scarce_room.rs`). Only if there is none, the large one is tried. It is tried
//! again only once it is another one or there is more room: an attempt that fails has written all
//! the room there is, and merges in a loop took a core.
//!
//! Owns: when flushes, and a tree's merges, are tried again. Never does: try again a job that
//! touched the log, the manifest or a directory's names: that is a background error.

use crate::host::Host;
use windrow_base::{Error, ErrorKind, FileNumber, Result};
use windrow_plan::{Decision, Merge};

/// The delay before the second attempt, in ns; each failure doubles it.
const DELAY_NS_MIN: u64 = 10_000_000;
/// The longest delay, in ns.
const DELAY_NS_MAX: u64 = 2_000_000_000;

/// The room that must have been added, at the least, before the same merge is tried again.
const ROOM_BYTES_MIN: u64 = 64 << 10;

/// When a kind of job of a tree is tried again.
#[derive(Default)]
pub struct Retry {
    /// Why the last attempt failed; `None` if it did not.
    error: Option<Error>,
    until_ns: u64,
    delay_ns: u64,
}

impl Retry {
    fn failed(&mut self, error: &Error, now_ns: u64) {
        self.delay_ns = (self.delay_ns * 2).clamp(DELAY_NS_MIN, DELAY_NS_MAX);
        self.until_ns = now_ns.saturating_add(self.delay_ns);
        self.error = Some(error.clone());
    }

    /// Allows the next attempt at once, whatever came of the last.
    pub fn ask(&mut self) {
        (self.error, self.until_ns) = (None, 0);
    }

    /// Whether the next attempt may begin.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.error.is_none() || self.until_ns <= now_ns
    }

    /// Why the last attempt failed.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Notes how an attempt ended. Returns whether it should be tried again later.
    pub fn note(&mut self, host: &Host, result: &Result<()>) -> bool {
        match result {
            Ok(()) => *self = Retry::default(),
            Err(error) if is_short(host, error) => {
                self.failed(error, host.env.clock.monotonic_ns());
                return true;
            }
            Err(_) => {}
        }
        false
    }
}

/// The last merge of a tree that was begun although there might be too little room.
#[derive(Default)]
pub struct OversizedMerge {
    /// The tables that it reads, in its order.
    files: Vec<FileNumber>,
    /// The room that there was for merges, in bytes.
    room_bytes: u64,
    retry: Retry,
    /// Whether the merge that was picked last is held back.
    is_held: bool,
}

impl OversizedMerge {
    /// Whether to begin this merge, for which there may be too little room.
    pub(crate) fn is_worth(&mut self, merge: &Merge, room_bytes: u64, now_ns: u64) -> bool {
        let files: Vec<FileNumber> = merge.files().map(|(_, _, file)| file.number).collect();
        let has_more_room = self.room_bytes + self.room_bytes / 4 + ROOM_BYTES_MIN < room_bytes;
        let is_new = files != self.files && self.retry.is_due(now_ns);
        self.is_held = self.retry.error.is_some() && !has_more_room && !is_new;
        if !self.is_held {
            (self.files, self.room_bytes) = (files, room_bytes);
        }
        !self.is_held
    }

    /// Notes that another merge is due first, or none.
    pub fn let_go(&mut self) {
        self.is_held = false;
    }

    /// Notes how a merge ended.
    pub fn note(&mut self, host: &Host, decision: &Decision, result: &Result<()>) {
        let numbers = decision.files().into_iter().map(|(_, _, file)| file.number);
        if !self.files.is_empty() && numbers.eq(self.files.iter().copied()) {
            self.retry.note(host, result);
            if result.is_ok() {
                *self = OversizedMerge::default();
            }
        }
    }

    /// Why the merge that the policy wants is not tried.
    pub fn error(&self) -> Option<&Error> {
        self.retry.error().filter(|_| self.is_held)
    }
}

#[cfg(any(test, feature = "testing"))]
impl OversizedMerge {
    /// An attempt that failed, and is not made again.
    pub fn held() -> OversizedMerge {
        let mut attempt = OversizedMerge { is_held: true, ..OversizedMerge::default() };
        attempt.retry.failed(&Error::new(ErrorKind::NoSpace, "no room (simulated)"), 0);
        attempt
    }
}

/// Whether a job failed for a shortage that turned nothing off.
pub(crate) fn is_short(host: &Host, error: &Error) -> bool {
    error.kind() == ErrorKind::NoSpace && host.write_state.check().is_ok()
}
