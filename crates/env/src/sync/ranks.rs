//! Ranks of locks: the order in which a thread may take several.
//!
//! Two threads that take two locks in opposite orders may wait for each other for ever, which a
//! test finds seldom at best. So every lock has a rank, and a thread takes a lock only if its rank
//! is greater than that of every lock that the thread holds. Where that is checked (debug builds,
//! the feature `testing`, under a model checker) a single thread that takes two locks in the wrong
//! order panics, independently of other threads. Elsewhere a lock has no rank, and the check costs
//! nothing.
//!
//! Two locks of one rank are never held at once: a thread takes the locks of files, or of trees,
//! one at a time.
//!
//! Owns: the locks that each thread holds. Never does: know a lock's purpose: the crate that has
//! the lock has the table (`lock_ranks.rs` here, and in the engine).

/// The place of a lock in the order. A name for messages, and a number: greater ones are
/// taken later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    number: u16,
    name: &'static str,
}

impl Rank {
    /// The rank of a lock that is held while a database is called: it is taken before all others.
    pub const OUTERMOST: Rank = Rank::new(0, "a caller's lock");
    /// The rank of a lock under which no other is taken.
    pub const INNERMOST: Rank = Rank::new(u16::MAX, "a lock that is held alone");

    /// The first number of the environment's ranks: a thread that holds only locks of lower ranks
    /// may read a file or queue a job.
    pub const ENVIRONMENT: u16 = 1000;

    /// A rank of this number.
    pub const fn new(number: u16, name: &'static str) -> Rank {
        Rank { number, name }
    }
}

/// The implementation without checks.
#[cfg_attr(
    all(not(any(loom, shuttle)), any(debug_assertions, test, feature = "testing")),
    allow(dead_code, reason = "there ranks are checked")
)]
pub(super) mod unchecked {
    use super::Rank;

    /// The rank of a lock.
    #[derive(Debug)]
    pub(in crate::sync) struct Kept;

    /// A lock that this thread holds.
    #[derive(Debug)]
    pub(in crate::sync) struct Holding;

    impl Kept {
        pub(in crate::sync) const fn new(_: Rank) -> Kept {
            Kept
        }

        #[inline(always)]
        pub(in crate::sync) fn take(&self) -> Holding {
            Holding
        }
    }

    impl Holding {
        #[inline(always)]
        pub(in crate::sync) fn pause(&self) {}

        #[inline(always)]
        pub(in crate::sync) fn go_on(&self) {}
    }
}

/// The implementation that checks every lock that is taken.
#[cfg(any(loom, shuttle, debug_assertions, test, feature = "testing"))]
pub(super) mod checked {
    use super::Rank;
    use crate::sync::thread_local;
    use std::cell::Cell;
    use std::panic::Location;

    /// The most locks that a thread holds at once.
    const HELD_MAX: usize = 16;

    /// The locks that a thread holds, in the order in which it took them.
    struct ThreadLocks {
        count: Cell<usize>,
        ranks: [Cell<Rank>; HELD_MAX],
    }

    thread_local! {
        // Not const: the model checkers' threads have their own form of this.
        #[allow(clippy::missing_const_for_thread_local)]
        static HELD: ThreadLocks = ThreadLocks {
            count: Cell::new(0),
            ranks: std::array::from_fn(|_| Cell::new(Rank::OUTERMOST)),
        };
    }

    impl ThreadLocks {
        fn ranks(&self) -> impl Iterator<Item = Rank> {
            self.ranks[..self.count.get()].iter().map(Cell::get)
        }

        fn add(&self, rank: Rank, place: &Location<'_>) {
            let highest = self.ranks().max_by_key(|held| held.number);
            // One panic is enough: the code that it unwinds may hold any lock.
            if let Some(held) = highest.filter(|held| rank.number <= held.number)
                && !std::thread::panicking()
            {
                panic!(
                    "{place} takes {} (rank {}) while this thread holds {} (rank {}): take it \
                     first, or let go of the other",
                    rank.name, rank.number, held.name, held.number
                );
            }
            let count = self.count.get();
            assert!(count < HELD_MAX, "this thread holds {count} locks at once");
            self.ranks[count].set(rank);
            self.count.set(count + 1);
        }

        /// Locks may be released in any order.
        fn remove(&self, rank: Rank) {
            let Some(last) = self.count.get().checked_sub(1) else { return };
            let Some(at) = self.ranks[..=last].iter().rposition(|held| held.get() == rank) else {
                return;
            };
            (at..last).for_each(|at| self.ranks[at].set(self.ranks[at + 1].get()));
            self.count.set(last);
        }
    }

    /// The rank of a lock.
    #[derive(Debug)]
    pub(in crate::sync) struct Kept(Rank);

    /// A lock that this thread holds.
    #[derive(Debug)]
    pub(in crate::sync) struct Holding(Rank);

    impl Kept {
        pub(in crate::sync) const fn new(rank: Rank) -> Kept {
            Kept(rank)
        }

        /// Notes that the thread takes the lock.
        #[track_caller]
        pub(in crate::sync) fn take(&self) -> Holding {
            note(self.0);
            Holding(self.0)
        }
    }

    /// At a thread's end, when its thread-locals are gone, nothing is checked.
    #[track_caller]
    fn note(rank: Rank) {
        let place = Location::caller();
        let _ = HELD.try_with(|held| held.add(rank, place));
    }

    impl Holding {
        /// Notes that the thread releases the lock for a wait.
        pub(in crate::sync) fn pause(&self) {
            let _ = HELD.try_with(|held| held.remove(self.0));
        }

        /// Notes that the thread takes the lock again.
        #[track_caller]
        pub(in crate::sync) fn go_on(&self) {
            note(self.0);
        }
    }

    impl Drop for Holding {
        fn drop(&mut self) {
            self.pause();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Rank;
    use crate::sync::{Condvar, Mutex};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const FIRST: Rank = Rank::new(1, "the first");
    const SECOND: Rank = Rank::new(2, "the second");
    const THIRD: Rank = Rank::new(3, "the third");

    /// The message of the panic of `work`.
    fn refusal(work: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("no panic");
        *panic.downcast::<String>().expect("a message")
    }

    #[test]
    fn a_lock_out_of_order_names_both() {
        let (first, second) = (Mutex::new(FIRST, ()), Mutex::new(SECOND, ()));
        let said = refusal(|| {
            let _second = second.lock();
            let _first = first.lock();
        });
        for part in ["the first", "rank 1", "the second", "rank 2", "ranks.rs"] {
            assert!(said.contains(part), "{said}");
        }
        // The record of held locks is empty again, and neither lock stays locked.
        let _first = first.lock();
        let _second = second.lock();
    }

    #[test]
    fn two_of_one_rank_are_not_held_at_once() {
        let (one, other) = (Mutex::new(FIRST, ()), Mutex::new(FIRST, ()));
        drop((one.lock(), ()));
        let said = refusal(|| drop((one.lock(), other.lock())));
        assert!(said.contains("the first"), "{said}");
        drop(other.lock());
    }

    #[test]
    fn locks_are_let_go_of_in_any_order() {
        let locks = [FIRST, SECOND, THIRD].map(|rank| Mutex::new(rank, ()));
        let held = locks.each_ref().map(Mutex::lock);
        let [first, second, third] = held;
        drop(second);
        drop(first);
        assert!(refusal(|| drop(locks[1].lock())).contains("the third"));
        drop(third);
        drop(locks[1].lock());
    }

    #[test]
    fn what_a_thread_waits_for_it_does_not_hold() {
        let (first, third) = (Mutex::new(FIRST, ()), Mutex::new(THIRD, false));
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            let mut set = third.lock();
            scope.spawn(|| {
                // It gets the lock only while the other thread waits; no rank of its own forbids
                // it.
                *third.lock() = true;
                changed.notify_one();
            });
            while !*set {
                changed.wait(&mut set);
            }
            assert!(refusal(|| drop(first.lock())).contains("the third"), "taken again");
        });
        drop(first.lock());
    }

    #[test]
    fn a_wait_takes_its_lock_again_in_order() {
        let (first, second) = (Mutex::new(FIRST, ()), Mutex::new(SECOND, ()));
        let changed = Condvar::new();
        let said = refusal(|| {
            let mut waiting = first.lock();
            let _second = second.lock();
            #[allow(clippy::disallowed_methods, reason = "a time that has passed")]
            let now = std::time::Instant::now();
            changed.wait_until(&mut waiting, now);
        });
        assert!(said.contains("the first") && said.contains("the second"), "{said}");
    }
}
