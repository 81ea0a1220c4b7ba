//! Work that a close waits for: background jobs, and what a user's thread does
//! to the files of a database beside reading and writing it.
//!
//! Owns the gate: how much is under way, and whether a close lets more begin.
//! Both stand in one word, so that nothing begins once a close has seen that
//! nothing is under way. (With a flag looked at before a job is queued, one
//! was queued that flushed a memtable a second time, beside the close itself.)

use crate::core::{Core, closed};
use crate::latch::{Panic, panicked};
use std::cell::RefCell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use windrow_base::{Result, unless_mutant};
use windrow_env::jobs::Urgency;
use windrow_env::sync::atomic::{AtomicUsize, Ordering};

/// Set in the gate's word once the database closes; the count stands above it.
const CLOSING: usize = 1;
const ONE: usize = 2;

/// How much is under way, and whether more may begin.
#[derive(Default)]
pub(crate) struct Gate {
    word: AtomicUsize,
}

impl Gate {
    /// Counts one more, unless the database is closing. Returns whether it did.
    pub(crate) fn enter(&self) -> bool {
        // Not counted first and taken back: a close could see that and wait for
        // a change that nobody tells of.
        let one_more = |word| (word & CLOSING == 0).then_some(word + ONE);
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    /// Counts one more for somebody who is counted.
    pub(crate) fn enter_again(&self) {
        self.word.fetch_add(ONE, Ordering::Relaxed);
    }

    /// Counts one less.
    pub(crate) fn leave(&self) {
        self.word.fetch_sub(ONE, Ordering::AcqRel);
    }

    /// Lets nothing more begin. Returns whether that was so already.
    pub(crate) fn close(&self) -> bool {
        self.word.fetch_or(CLOSING, Ordering::AcqRel) & CLOSING != 0
    }

    /// Whether nothing more may begin.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSING != 0
    }

    /// Whether one thing alone is under way.
    pub(crate) fn is_alone(&self) -> bool {
        self.word.load(Ordering::Acquire) & !CLOSING == ONE
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.word.load(Ordering::Acquire) < ONE
    }
}

windrow_env::sync::thread_local! {
    /// The databases whose work this thread does, the innermost last: it may
    /// call a filter or a listener, and that whatever it likes.
    // Not const: the model checkers' threads have their own form of this.
    #[allow(clippy::missing_const_for_thread_local)]
    static WORKING_FOR: RefCell<Vec<u64>> = RefCell::new(Vec::new());
}

/// While it lives, the thread works for a database.
struct Working;

impl Working {
    fn begin(core: &Core) -> Working {
        WORKING_FOR.with(|ids| ids.borrow_mut().push(core.instance_id));
        Working
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING_FOR.with(|ids| ids.borrow_mut().pop());
    }
}

/// Whether this thread is in some database's work: it must not wait for jobs.
pub(crate) fn is_working() -> bool {
    // Where the thread is going down, it is in none.
    WORKING_FOR.try_with(|ids| !ids.borrow().is_empty()).unwrap_or(false)
}

/// Something is under way for as long as this lives.
pub(crate) struct Underway<C: Deref<Target = Core>>(C);

impl<C: Deref<Target = Core>> Drop for Underway<C> {
    fn drop(&mut self) {
        self.0.gate.leave();
        self.0.note_progress();
    }
}

impl Underway<&Core> {
    /// Queues a job, under way from here on. A panic in it latches the database.
    pub(crate) fn submit(&self, urgency: Urgency, work: impl FnOnce(&Core) + Send + 'static) {
        let Some(core) = self.0.me.upgrade() else {
            return;
        };
        core.gate.enter_again();
        let job: Underway<Arc<Core>> = Underway(core);
        let run = move || {
            job.0.contain(work);
            drop(job);
        };
        self.0.env.jobs.submit(urgency, Box::new(run));
    }
}

impl Core {
    /// Begins something that a close must wait for.
    ///
    /// # Errors
    /// `Closed` if the database is closing.
    pub(crate) fn begin_work(&self) -> Result<Underway<&Core>> {
        if self.gate.enter() { Ok(Underway(self)) } else { Err(closed()) }
    }

    /// Runs background work. A panic in it latches the database, and nothing
    /// is returned.
    pub(crate) fn contain<T>(&self, work: impl FnOnce(&Core) -> T) -> Option<T> {
        self.watch("a background job", work).ok()
    }

    /// Runs what is background work but for the thread, which is a user's: a
    /// panic in it latches the database, too, and then goes on.
    pub(crate) fn latch_panics<T>(&self, work: impl FnOnce(&Core) -> T) -> T {
        self.watch("a compaction", work).unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn watch<T>(&self, what: &str, work: impl FnOnce(&Core) -> T) -> std::result::Result<T, Panic> {
        let tell = |panic: &Panic| {
            unless_mutant!(PanicIgnored, self.trip(&panicked(what, panic)));
        };
        let working = Working::begin(self);
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        drop(working);
        done.inspect_err(tell)
    }

    /// Whether this thread is in work of this database, which a close waits for.
    pub(crate) fn is_worked_for_here(&self) -> bool {
        WORKING_FOR.with(|ids| ids.borrow().contains(&self.instance_id))
    }
}
