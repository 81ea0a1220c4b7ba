//! The names of `real` on top of a model checker, loom or shuttle, whose types follow `std`: guards
//! come in a `Result`, and a wait takes its guard by value.
//!
//! Owns: the difference in form to the locks of `real` and `arc_swap`. Never does:
//! poison, as those do not; time out, as no time passes.

#[cfg(loom)]
use loom as checker;
#[cfg(all(shuttle, not(loom)))]
use shuttle as checker;

use super::ranks::Rank;
use super::ranks::checked::{Holding, Kept};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};

/// The thread-locals of the checker's threads, which share those of the system.
pub use checker::thread_local;

/// Atomic integers, flags and pointers, and the fences between them.
pub mod atomic {
    pub use super::checker::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
}

/// Threads, for the runners of jobs.
pub mod thread {
    pub use super::checker::thread::{Builder, JoinHandle, current};
}

/// A lock that does not poison.
#[derive(Debug)]
pub struct Mutex<T> {
    rank: Kept,
    value: checker::sync::Mutex<T>,
}

/// The right to a [`Mutex`]'s value, until it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    value: Option<checker::sync::MutexGuard<'a, T>>,
    holding: Holding,
}

impl<T> Mutex<T> {
    /// A lock around a value. A thread takes it only while all locks that it holds are of lower
    /// rank.
    pub fn new(rank: Rank, value: T) -> Mutex<T> {
        Mutex { rank: Kept::new(rank), value: checker::sync::Mutex::new(value) }
    }

    /// Takes the lock, once no other thread holds it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let holding = self.rank.take();
        let value = Some(self.value.lock().unwrap_or_else(PoisonError::into_inner));
        MutexGuard { value, holding }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("taken out only within a wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("taken out only within a wait")
    }
}

/// A condition, on which threads wait for a change of a [`Mutex`]'s value.
#[derive(Debug, Default)]
pub struct Condvar(checker::sync::Condvar);

impl Condvar {
    /// A condition without waiting threads.
    pub fn new() -> Condvar {
        Condvar(checker::sync::Condvar::new())
    }

    /// Releases the lock, and takes it again after being woken.
    #[track_caller]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.value.take().expect("taken out only within a wait");
        guard.holding.pause();
        let inner = self.0.wait(inner).unwrap_or_else(PoisonError::into_inner);
        guard.holding.go_on();
        guard.value = Some(inner);
    }

    /// As [`Condvar::wait`]: no time passes here, so it never returns that the time is over.
    #[track_caller]
    pub fn wait_ns<T>(&self, guard: &mut MutexGuard<'_, T>, _ns: u64) -> bool {
        self.wait(guard);
        false
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

/// A shared pointer that is replaced whole. A lock takes the place of the atomic: it orders a load
/// before a later store too, which `arc_swap` does not promise. It has no rank, as an atomic has
/// none.
#[derive(Debug)]
pub struct Swap<P>(checker::sync::Mutex<P>);

/// A pointer that is always there.
pub type ArcSwap<T> = Swap<Arc<T>>;

/// A pointer that may be absent.
pub type ArcSwapOption<T> = Swap<Option<Arc<T>>>;

/// The pointer that [`Swap::load`] found.
#[derive(Clone, Debug)]
pub struct Guard<P>(P);

impl<P: Clone> Swap<P> {
    /// A swap that holds this pointer.
    pub fn new(pointer: P) -> Swap<P> {
        Swap(checker::sync::Mutex::new(pointer))
    }

    /// The pointer as it is now.
    pub fn load(&self) -> Guard<P> {
        Guard(self.load_full())
    }

    /// The pointer as it is now, owned.
    pub fn load_full(&self) -> P {
        self.lock().clone()
    }

    /// Replaces the pointer.
    pub fn store(&self, pointer: P) {
        let old = std::mem::replace(&mut *self.lock(), pointer);
        // Dropped outside the lock: its value's drop may call this swap.
        drop(old);
    }

    fn lock(&self) -> checker::sync::MutexGuard<'_, P> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Clone + Default> Default for Swap<P> {
    fn default() -> Swap<P> {
        Swap::new(P::default())
    }
}

impl<T> Swap<Arc<T>> {
    /// A swap that holds a pointer to this value.
    pub fn from_pointee(value: T) -> Swap<Arc<T>> {
        Swap::new(Arc::new(value))
    }
}

impl<T> Swap<Option<Arc<T>>> {
    /// A swap without a pointer.
    pub fn empty() -> Swap<Option<Arc<T>>> {
        Swap::new(None)
    }
}

impl<P> Guard<P> {
    /// A guard of a pointer that was not loaded.
    pub fn from_inner(pointer: P) -> Guard<P> {
        Guard(pointer)
    }
}

impl<P> Deref for Guard<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}
