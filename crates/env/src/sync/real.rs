//! The implementation in production, which code that talks to the operating system always uses.
//!
//! Locks are the standard library's, without poison (`locks.rs`); threads are the C library's
//! (`sys/threads.rs`).
//!
//! Owns: the list of names. Never does: add anything to them.
#![cfg_attr(
    any(loom, shuttle),
    allow(unreachable_pub, unused_imports, reason = "there `sync` is made of the other names")
)]

pub use super::locks::{Condvar, Mutex, MutexGuard};
pub use arc_swap::{ArcSwap, ArcSwapOption, Guard};

pub use std::thread_local;

/// Atomic integers, flags and pointers, and the fences between them.
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
}

/// Threads, for the runners of jobs.
pub mod thread {
    pub use crate::sys::threads::{Builder, JoinHandle, current};
}
