//! Background work that found no room on the device.
//!
//! Such a failure changed nothing and is no background error: what was to be flushed
//! is still in memory and in a log, and what was to be merged is as it was. So the
//! job is tried again, after longer and longer delays, and at once when somebody asks
//! for what it does. Meanwhile writes go on while they fit into memory and the log. A
//! write that does not fit is refused with the job's error, before anything of it is
//! written. Rejected: to turn writing off (a merge that needs more room than
//! there is would keep out the deletes that make room); to have writers wait
//! (nobody says when there will be room).
//! Owns: when flushes, and a tree's merges, are tried again. Never does: try again
//! what touched the log, the manifest or a directory's names: that is a background error.

use crate::host::Host;
use windrow_base::{Error, ErrorKind, Result};

/// Until the first further attempt, in ns; doubled by each that fails.
const DELAY_NS_MIN: u64 = 10_000_000;
/// At most.
const DELAY_NS_MAX: u64 = 2_000_000_000;

/// When a kind of job of a tree is tried again.
#[derive(Default)]
pub(crate) struct Retry {
    /// Why the last attempt failed; `None` where it did not.
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

    /// The next attempt may begin, and what came of the last is of no matter.
    pub(crate) fn ask(&mut self) {
        (self.error, self.until_ns) = (None, 0);
    }

    /// The next attempt may begin.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.error.is_none() || self.until_ns <= now_ns
    }

    /// Why the last attempt failed.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Notes how an attempt ended. Whether it is to be tried again later.
    pub(crate) fn note(&mut self, host: &Host, result: &Result<()>) -> bool {
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

/// Whether a job failed for a shortage that turned nothing off.
pub(crate) fn is_short(host: &Host, error: &Error) -> bool {
    error.kind() == ErrorKind::NoSpace && host.write_state.check().is_ok()
}
