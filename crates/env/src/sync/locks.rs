//! Locks and conditions that do not poison: `lock` returns a guard without a `Result`.
//!
//! They are the standard library's, whose only state is a word. Rejected: `parking_lot`, whose
//! waiting threads are in one table of the process. A child made by `fork` inherits that table with
//! threads that do not exist in it, and whose memory its own threads reuse, so the first wait of a
//! database that it opens may follow an invalid pointer.
//!
//! Where ranks are checked (`ranks.rs`), a lock has a rank, and a thread knows the locks that it
//! holds.
//!
//! Owns: no state beyond a lock's. Never does: tell that a holder panicked; the engine's background
//! error says so where it matters.

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

/// A condition, on which threads that hold a [`Mutex`] wait.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl<T> Mutex<T> {
    /// A lock around `value`. A thread takes it only while all locks that it holds are of lower
    /// rank.
    pub const fn new(rank: Rank, value: T) -> Mutex<T> {
        Mutex { rank: Kept::new(rank), value: std::sync::Mutex::new(value) }
    }

    /// Returns the value: no other thread can have the lock any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, once no other thread holds it.
    #[inline]
    #[cfg_attr(any(debug_assertions, test, feature = "testing"), track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(any(test, feature = "testing"))]
        forbidden::check(std::panic::Location::caller());
        let holding = self.rank.take();
        let value = Some(self.value.lock().unwrap_or_else(PoisonError::into_inner));
        MutexGuard { value, holding }
    }

    /// The value, without taking the lock: the borrow is unique.
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
    /// A condition without waiting threads.
    pub const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    /// Releases the lock until a notification, or a spurious wake-up, and takes it again.
    #[cfg_attr(any(debug_assertions, test, feature = "testing"), track_caller)]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.value.take().expect(WAITS);
        guard.holding.pause();
        let held = self.0.wait(held).unwrap_or_else(PoisonError::into_inner);
        guard.holding.go_on();
        guard.value = Some(held);
    }

    /// As [`Condvar::wait`], but not beyond `until`.
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

    /// As [`Condvar::wait`], for at most `ns` nanoseconds. Returns whether they are over.
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

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A part of a thread's run in which no lock may be taken, such as a forked child's use of a
/// database that its parent opened: in the parent, any lock may have been held.
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
