//! The gate that a close shuts: how much work is under way, and whether more may begin.
//!
//! Both are in one word, so that nothing begins once a close has seen that nothing is under way.
//! (With a flag that was checked before a job was queued, a job flushed a memtable a second time,
//! while the close itself did.)
//!
//! Owns: that word. Never does: wait, or know what is under way.

use windrow_base::{debug_invariant, invariant};
use windrow_env::sync::atomic::{AtomicUsize, Ordering};

/// Set in the gate's word once the database closes; the count is in the bits above it.
const CLOSING: usize = 1;
const ONE: usize = 2;

/// How much is under way, and whether more may begin.
#[derive(Default)]
pub struct Gate {
    word: AtomicUsize,
}

impl Gate {
    /// Counts one more, unless the database is closing. Returns whether it did.
    pub fn enter(&self) -> bool {
        // Not counted first and taken back: a close could see that, and wait for a change that
        // nobody announces.
        let one_more = |word| (word & CLOSING == 0).then_some(word + ONE);
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    /// Counts one more for work that is counted already.
    pub(crate) fn enter_again(&self) {
        let before = self.word.fetch_add(ONE, Ordering::Relaxed);
        invariant!(R14, before >= ONE, "work begins for somebody who is not counted");
    }

    /// Counts one less.
    pub fn leave(&self) {
        let before = self.word.fetch_sub(ONE, Ordering::AcqRel);
        // Debug only, as it runs in a drop: a panic there may be the second one.
        debug_invariant!(R14, before >= ONE, "something ends that did not begin");
    }

    /// Lets nothing more begin. Returns whether that was so already.
    pub fn close(&self) -> bool {
        self.word.fetch_or(CLOSING, Ordering::AcqRel) & CLOSING != 0
    }

    /// Whether nothing more may begin.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSING != 0
    }

    /// Whether one thing alone is under way.
    pub fn is_alone(&self) -> bool {
        self.word.load(Ordering::Acquire) & !CLOSING == ONE
    }

    /// Whether nothing is under way.
    pub fn is_quiet(&self) -> bool {
        self.word.load(Ordering::Acquire) < ONE
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "(R14): work begins for somebody who is not counted")]
    fn a_job_of_nobody_is_refused() {
        let gate = Gate::default();
        assert!(gate.enter());
        gate.enter_again();
        gate.leave();
        gate.leave();
        gate.enter_again();
    }
}
