//! Locks, atomics and shared pointers: the one place where the core takes them.
//!
//! Owns: which implementation stands behind each name. Locks are
//! `parking_lot`'s: they do not poison, and a guard is had without a `Result`.
//! Never does: add behaviour of its own. Code that imports its locks and
//! atomics from here, and nowhere else, can be put under a model checker by
//! changing this file alone.

pub use parking_lot::{
    Condvar, Mutex, MutexGuard, Once, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard, WaitTimeoutResult,
};
pub use std::sync::{Arc, OnceLock, Weak};

/// Atomic integers, flags and pointers, and the fences between them.
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
}

/// Tells the processor that this thread spins.
#[inline]
pub fn spin_hint() {
    std::hint::spin_loop();
}

/// Gives the rest of the time slice away.
#[inline]
pub fn yield_now() {
    std::thread::yield_now();
}
