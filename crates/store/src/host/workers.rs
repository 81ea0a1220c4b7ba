//! Work that a close waits for: background jobs, and work of a user's thread on the files of a
//! database besides reads and writes.
//!
//! Owns: the gate, how many merges run, and which databases a thread works for. A panic in such
//! work turns writing off. Never does: decide what is due.

use crate::host::Host;
use crate::host::gate::Gate;
use crate::host::write_state::{Panic, panicked};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use windrow_base::{Error, ErrorKind, Result, unless_mutant};
use windrow_env::jobs::Urgency;
use windrow_env::sync::atomic::AtomicUsize;

windrow_env::sync::thread_local! {
    /// The databases for which this thread works, the innermost last: it may call a filter or a
    /// listener, which may call any database.
    // Not const: the model checkers' threads have their own form of this.
    #[allow(clippy::missing_const_for_thread_local)]
    static WORKING_FOR: RefCell<Vec<u64>> = RefCell::new(Vec::new());
}

/// While it exists, the thread works for a database.
struct Working;

impl Working {
    fn begin(instance_id: u64) -> Working {
        WORKING_FOR.with(|ids| ids.borrow_mut().push(instance_id));
        Working
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let ended = WORKING_FOR.with(|ids| ids.borrow_mut().pop());
        debug_assert!(ended.is_some(), "a thread ends work that it did not begin");
    }
}

/// Whether this thread is in some database's work: it must not wait for jobs.
pub fn is_working() -> bool {
    // A thread that is being destroyed is in none.
    WORKING_FOR.try_with(|ids| !ids.borrow().is_empty()).unwrap_or(false)
}

/// The error of every call after a close.
pub fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database was closed")
}

/// Work is under way for as long as this exists.
pub struct Underway(Arc<Workers>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.gate.leave();
        self.0.host.note_progress();
    }
}

impl Underway {
    /// Queues a job, under way from here on. A panic in it turns writing off.
    pub fn submit(&self, urgency: Urgency, work: impl FnOnce() + Send + 'static) {
        self.0.gate.enter_again();
        let job = Underway(self.0.clone());
        let run = move || {
            job.0.contain(work);
            drop(job);
        };
        self.0.host.env.jobs.submit(urgency, Box::new(run));
    }
}

/// A request to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// Work may be due.
    MayBeDue,
    /// A caller waits for work that is held back for a later attempt: it is due now.
    RetryNow,
}

/// Runs the work of a database.
pub struct Workers {
    /// The scheduler, which this file does not know by type.
    kicked: OnceLock<Box<dyn Fn(Kick) + Send + Sync>>,
    host: Arc<Host>,
    pub gate: Gate,
    pub merges_running: AtomicUsize,
}

impl Workers {
    pub fn new(host: Arc<Host>) -> Arc<Workers> {
        Arc::new(Workers {
            kicked: OnceLock::new(),
            host,
            gate: Gate::default(),
            merges_running: AtomicUsize::new(0),
        })
    }

    /// Sets the function that begins due work on a request.
    pub(crate) fn kick_by(&self, begin: impl Fn(Kick) + Send + Sync + 'static) {
        let is_first = self.kicked.set(Box::new(begin)).is_ok();
        debug_assert!(is_first, "two decide what is due");
    }

    /// Has due work begun.
    pub fn kick(&self, kick: Kick) {
        if let Some(begin) = self.kicked.get() {
            begin(kick);
        }
    }

    /// Begins work that a close must wait for.
    ///
    /// # Errors
    /// `Closed` if the database is closing.
    pub fn begin(self: &Arc<Workers>) -> Result<Underway> {
        if self.gate.enter() { Ok(Underway(self.clone())) } else { Err(closed()) }
    }

    /// Returns once nothing is under way. For the thread that has closed the gate.
    pub fn wait_quiet(&self) {
        self.host.wait_until(|| self.gate.is_quiet().then_some(()));
    }

    /// Refuses new work once the database is closing. Under the commit queue's lock.
    pub fn check_open(&self) -> Result<()> {
        if self.gate.is_closing() { Err(closed()) } else { Ok(()) }
    }

    /// Most merges at a time. A flush that finds no thread free is run by a merge, between two of
    /// its entries.
    pub fn merges_max(&self) -> usize {
        self.host.env.jobs.parallelism()
    }

    /// Runs background work. If it panics, turns writing off and returns `None`.
    pub fn contain<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.watch("a background job", work).ok()
    }

    /// Runs work on a user's thread. A panic in it turns writing off, too, and then goes on.
    pub fn contain_panics<T>(&self, work: impl FnOnce() -> T) -> T {
        self.watch("a compaction", work).unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn watch<T>(&self, what: &str, work: impl FnOnce() -> T) -> std::result::Result<T, Panic> {
        let tell = |panic: &Panic| {
            unless_mutant!(PanicIgnored, self.host.set_background_error(&panicked(what, panic)));
        };
        let working = Working::begin(self.host.instance_id);
        let done = catch_unwind(AssertUnwindSafe(work));
        drop(working);
        done.inspect_err(tell)
    }

    /// Whether this thread is in work of this database, which a close waits for.
    pub fn is_worked_for_here(&self) -> bool {
        WORKING_FOR.with(|ids| ids.borrow().contains(&self.host.instance_id))
    }
}
