//! Whether writing is on: once a write to the log, the manifest or the directory has failed, no
//! later write is acknowledged (rule R13) until the database is opened again or, if the cause can
//! go away, resumed (`resume.rs`). Reads go on.
//!
//! Owns: the first failure; one that cannot go away takes the place of one that can. Never does:
//! decide that it is over.

use std::any::Any;
use windrow_base::{Error, ErrorKind, Result, debug_invariant, invariant};
use windrow_env::Process;
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicU8, Ordering};
use windrow_read::fork::forked;
use windrow_read::lock_ranks;

const OPEN: u8 = 0;
const FAILED: u8 = 1;
const READ_ONLY: u8 = 2;
const CLOSED: u8 = 3;

/// Whether the database takes writes, and why not.
pub struct WriteState {
    /// The process that opened the database: in any other, every call is refused.
    process: Process,
    state: AtomicU8,
    cause: Mutex<Option<Error>>,
}

impl WriteState {
    pub fn new(read_only: bool) -> WriteState {
        let state = if read_only { READ_ONLY } else { OPEN };
        let process = Process::current();
        WriteState {
            process,
            state: AtomicU8::new(state),
            cause: Mutex::new(lock_ranks::BACKGROUND_ERROR, None),
        }
    }

    /// Whether the running process opened the database.
    #[inline]
    pub fn is_of_this_process(&self) -> bool {
        self.process.is_this()
    }

    /// Whether the running process may use the database at all. In a child made
    /// by `fork` no lock may be taken before this: nobody might release it.
    ///
    /// # Errors
    /// `Closed` in a child of the process that opened it.
    #[inline]
    pub fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() { Ok(()) } else { Err(forked(&self.process)) }
    }

    /// Whether writing is on.
    ///
    /// # Errors
    /// `ReadOnly` naming the first failure, or `Closed`.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.state.load(Ordering::Acquire) {
            OPEN if self.is_of_this_process() => Ok(()),
            FAILED if self.is_of_this_process() => self.check_failed(),
            state => Err(self.refusal(state)),
        }
    }

    /// Checks again after writing was off a moment ago: a resume may have turned it on since, and
    /// have taken the cause away.
    #[cold]
    fn check_failed(&self) -> Result<()> {
        let cause = self.cause.lock();
        match (self.state.load(Ordering::Acquire), &*cause) {
            (OPEN, cause) => {
                debug_invariant!(R13, cause.is_none(), "writing is on after {cause:?}");
                Ok(())
            }
            (FAILED, Some(cause)) => Err(background_error(cause)),
            (state, _) => Err(self.refusal(state)),
        }
    }

    /// Whether reading is on.
    ///
    /// # Errors
    /// `Closed`.
    #[inline]
    pub fn check_read(&self) -> Result<()> {
        if self.state.load(Ordering::Acquire) == CLOSED || !self.is_of_this_process() {
            return Err(self.refusal(CLOSED));
        }
        Ok(())
    }

    #[cold]
    fn refusal(&self, state: u8) -> Error {
        match state {
            _ if !self.is_of_this_process() => forked(&self.process),
            CLOSED => Error::new(ErrorKind::Closed, "the database was closed"),
            READ_ONLY => Error::new(ErrorKind::ReadOnly, "the database was opened read-only"),
            _ => unreachable!("whoever finds writing off by a failure knows the cause"),
        }
    }

    /// Turns writing off. Returns whether this was the first failure. For an error that only
    /// follows from another one, the other one counts.
    pub fn set_background_error(&self, error: &Error) -> bool {
        let error = error.first_failure();
        let mut cause = self.cause.lock();
        let state = self.state.load(Ordering::Acquire);
        if state != OPEN {
            let is_known = state != FAILED || cause.is_some();
            debug_invariant!(R13, is_known, "writing is off, and nobody knows why");
            if let Some(first) = &mut *cause
                && can_go_away(first)
                && !can_go_away(error)
                && error.kind() != ErrorKind::ReadOnly
            {
                *first = error.clone();
            }
            return false;
        }
        debug_invariant!(R13, cause.is_none(), "writing is on after {cause:?}");
        *cause = Some(error.clone());
        self.state.store(FAILED, Ordering::Release);
        true
    }

    /// Turns writing on again: the cause is gone, and every doubt that it left is settled. No
    /// thread waits for a write from before.
    ///
    /// # Errors
    /// `ReadOnly` if another failure came meanwhile that cannot go away.
    pub fn reset(&self) -> Result<()> {
        let mut cause = self.cause.lock();
        if self.state.load(Ordering::Acquire) != FAILED {
            return Ok(());
        }
        debug_invariant!(R13, cause.is_some(), "writing is off, and nobody knows why");
        if let Some(cause) = cause.as_ref().filter(|cause| !can_go_away(cause)) {
            return Err(background_error(cause));
        }
        *cause = None;
        self.state.store(OPEN, Ordering::Release);
        Ok(())
    }

    /// Marks the database closed; reads and writes fail from here on.
    pub fn close(&self) {
        // Under the lock: a failure that is being noted would overwrite this.
        let _cause = self.cause.lock();
        self.state.store(CLOSED, Ordering::Release);
    }

    /// The failure that turned writing off, if one did.
    pub fn cause(&self) -> Option<Error> {
        if !self.is_of_this_process() {
            return Some(forked(&self.process));
        }
        let cause = self.cause.lock();
        let is_known = cause.is_some() || self.state.load(Ordering::Acquire) != FAILED;
        debug_invariant!(R13, is_known, "writing is off, and nobody knows why");
        cause.clone()
    }
}

/// The error of a write after this failure.
#[cold]
fn background_error(cause: &Error) -> Error {
    let way = if can_go_away(cause) { "resumed or reopened" } else { "reopened" };
    let text = format!("writing is off until the database is {way}, since: {cause}");
    Error::new(ErrorKind::ReadOnly, text).with_source(cause.clone())
}

/// Whether the cause of an error can end while the database stays open. An operation that the
/// system refused (a full device, too many open files, a failed write) may succeed another time,
/// into other files. Damage does not go away, nor does a panic: nobody knows what it left half
/// done.
pub fn can_go_away(error: &Error) -> bool {
    use std::error::Error as _;
    match error.kind() {
        ErrorKind::NoSpace => true,
        ErrorKind::Io => error.first_failure().source().is_some(),
        _ => false,
    }
}

/// The payload of a panic.
pub type Panic = Box<dyn Any + Send>;

/// The error with which a panic in `what` turns writing off.
pub fn panicked(what: &str, panic: &Panic) -> Error {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    match text {
        Some(text) if invariant::is_message(&text) => Error::new(ErrorKind::Internal, text),
        text => Error::new(
            ErrorKind::Io,
            format!("{what} panicked: {}", text.as_deref().unwrap_or("?")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_is_a_defect_of_ours() {
        let panic = |work: fn()| std::panic::catch_unwind(work).unwrap_err();
        let ours = panicked("a job", &panic(|| invariant!(I2, 1 + 1 == 3, "two")));
        assert_eq!(ours.kind(), ErrorKind::Internal);
        assert!(ours.message().contains("(I2): two; this is a defect of Windrow"), "{ours}");
        let other = panicked("a job", &panic(|| panic!("a comparator's")));
        assert_eq!(
            (other.kind(), other.message()),
            (ErrorKind::Io, "a job panicked: a comparator's")
        );
        let write_state = WriteState::new(false);
        assert!(write_state.set_background_error(&ours) && !can_go_away(&ours));
        assert!(
            write_state.check().unwrap_err().message().contains("until the database is reopened")
        );
    }

    #[test]
    fn the_first_failure_stays() {
        let write_state = WriteState::new(false);
        assert!(write_state.check().is_ok());
        assert!(write_state.set_background_error(&Error::new(ErrorKind::NoSpace, "full")));
        assert!(!write_state.set_background_error(&Error::new(ErrorKind::NoSpace, "later")));
        let error = write_state.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        assert!(error.message().contains("full"), "{error}");
        assert!(write_state.check_read().is_ok());
        assert!(error.message().contains("resumed or reopened"), "{error}");
        // An error that follows from another is not the cause, even if it is reported first.
        let following = Error::after(&Error::new(ErrorKind::NoSpace, "full"), "an earlier write");
        assert!(!write_state.set_background_error(&following));
        let other = WriteState::new(false);
        assert!(other.set_background_error(&following));
        assert_eq!(other.cause().unwrap().message(), "full");
        // More room does not undo a panic.
        assert!(!write_state.set_background_error(&Error::new(ErrorKind::Io, "a job panicked")));
        let error = write_state.check().unwrap_err();
        assert!(error.message().contains("panicked") && !error.message().contains("resumed"));
        // A failure that came meanwhile and cannot go away is not forgotten.
        assert!(write_state.reset().unwrap_err().message().contains("panicked"));
        assert!(write_state.check().is_err() && write_state.cause().is_some());
        let write_state = WriteState::new(false);
        write_state.set_background_error(&Error::new(ErrorKind::NoSpace, "full"));
        write_state.reset().unwrap();
        assert!(write_state.check().is_ok() && write_state.cause().is_none());
        // A thread that found it off just before.
        assert!(write_state.check_failed().is_ok());
        write_state.close();
        assert_eq!(write_state.check_read().unwrap_err().kind(), ErrorKind::Closed);
    }
}
