//! Locks and conditions that do not poison: a guard is had without a `Result`.
//!
//! They are the standard library's, which keep nothing but a word in themselves.
//! Rejected: `parking_lot`, whose waiting threads are in one table of the
//! process. A child made by `fork` inherits that table with threads that are not
//! there and whose memory its own threads take over, so the first wait of a
//! database that it opens may follow a pointer into nothing.
//!
//! Where ranks are checked (`ranks.rs`), a lock has one and a thread knows what it holds.
//!
//! Owns nothing. Never does: tell that a holder panicked; the engine's
//! background error says so where it matters.

#![allow(clippy::disallowed_types, reason = "this is what the names to be used are made of")]
#![cfg_attr(
    any(loom, shuttle),
    allow(unreachable_pub, dead_code, reason = "there `sync` is made of the other names")
)]

use super::ranks::Rank;
#[cfg(all(not(any(loom, shuttle)), any(debug_assertions, test, feature = "testing")))]
use super::ranks::checked::{Holding, Kept};
#[cfg(not(all(not(any(loom, shuttle)), any(debug_assertions, test, feature = "testing"))))]
use super::ranks::unchecked::{Holding, Kept};
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A value that one thread has at a time.
#[derive(Debug)]
pub struct Mutex<T: ?Sized> {
    rank: Kept,
    value: std::sync::Mutex<T>,
}

/// The right to a [`Mutex`]'s value, until it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    value: Option<std::sync::MutexGuard<'a, T>>,
    holding: Holding,
}

/// What threads wait for that hold a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl<T> Mutex<T> {
    /// Holds `value`. A thread takes it only while all that it holds is of lower rank.
    pub const fn new(rank: Rank, value: T) -> Mutex<T> {
        Mutex { rank: Kept::new(rank), value: std::sync::Mutex::new(value) }
    }

    /// The value, which nobody else can have any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody else has it.
    #[inline]
    #[cfg_attr(any(debug_assertions, test, feature = "testing"), track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(any(test, feature = "testing"))]
        forbidden::check(std::panic::Location::caller());
        let holding = self.rank.take();
        let value = Some(self.value.lock().unwrap_or_else(PoisonError::into_inner));
        MutexGuard { value, holding }
    }

    /// The value, of a lock that nobody else knows.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

const WAITS: &str = "a guard is away only while its thread waits";

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value.as_ref().expect(WAITS)
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(WAITS)
    }
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    /// Gives the lock away until somebody notifies, or for no reason.
    #[cfg_attr(any(debug_assertions, test, feature = "testing"), track_caller)]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.value.take().expect(WAITS);
        guard.holding.pause();
        let held = self.0.wait(held).unwrap_or_else(PoisonError::into_inner);
        guard.holding.go_on();
        guard.value = Some(held);
    }

    /// The same, but not beyond `until`.
    #[cfg_attr(any(debug_assertions, test, feature = "testing"), track_caller)]
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) {
        #[allow(clippy::disallowed_methods, reason = "the time by which the caller's is reckoned")]
        let left = until.saturating_duration_since(Instant::now());
        let held = guard.value.take().expect(WAITS);
        guard.holding.pause();
        let (held, _) = self.0.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner);
        guard.holding.go_on();
        guard.value = Some(held);
    }

    /// The same, for at most so many nanoseconds. Whether they are over.
    #[cfg_attr(any(debug_assertions, test, feature = "testing"), track_caller)]
    pub fn wait_ns<T>(&self, guard: &mut MutexGuard<'_, T>, ns: u64) -> bool {
        let held = guard.value.take().expect(WAITS);
        guard.holding.pause();
        let waited = self.0.wait_timeout(held, Duration::from_nanos(ns));
        let (held, over) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.holding.go_on();
        guard.value = Some(held);
        over.timed_out()
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A stretch of a thread in which no lock may be taken, such as a forked child's
/// use of what its parent opened: in the parent, any lock may have been held.
#[cfg(any(test, feature = "testing"))]
pub(crate) mod forbidden {
    use std::cell::Cell;

    std::thread_local! {
        pub(super) static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn check(place: &std::panic::Location<'_>) {
        assert!(!FORBIDDEN.get(), "{place} takes a lock that may be held for ever");
    }

    /// Runs `work` on this thread. It panics where it takes a [`super::Mutex`].
    pub fn without_locks<T>(work: impl FnOnce() -> T) -> T {
        FORBIDDEN.set(true);
        let value = work();
        FORBIDDEN.set(false);
        value
    }
}
