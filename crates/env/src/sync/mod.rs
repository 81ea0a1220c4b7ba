//! Locks, atomics, threads and shared pointers: the one place where the core
//! takes them.
//!
//! Owns: which implementation each name has. Normally that is
//! `real`. Built with `--cfg loom` or `--cfg shuttle` it is a model
//! checker's, which then decides who runs next at every use of one:
//!
//! - `loom` tries every interleaving, and every value that a weak memory model
//!   lets an atomic read return: for small parts (`engine/src/models`, and the
//!   skiplist's own).
//! - `shuttle` draws interleavings, one sequentially consistent memory: for the
//!   whole database (`sim/tests/shuttle.rs`).
//!
//! What neither sees: the counts of `std`'s `Arc` (loom's own has no weak
//! pointers and holds nothing unsized; what runs when the last one drops is
//! seen), the inside of `arc_swap` and of the block cache's `quick_cache` (one
//! indivisible step each, which is what they promise), statistics, and what
//! lies in `os` and `sys` but the thread pool. Shuttle moreover takes an
//! operation on the skiplist for one step.
//!
//! Every lock has a rank (`ranks.rs`), which says what may be held when it is taken.
//!
//! Never does: add behaviour of its own, but for that check.

#[cfg(any(loom, shuttle))]
mod checked;
pub(crate) mod locks;
mod ranks;
pub(crate) mod real;

pub use ranks::Rank;

#[cfg(any(loom, shuttle))]
pub use checked::{
    ArcSwap, ArcSwapOption, Condvar, Guard, Mutex, MutexGuard, atomic, thread, thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub use real::{
    ArcSwap, ArcSwapOption, Condvar, Guard, Mutex, MutexGuard, atomic, thread, thread_local,
};
pub use std::sync::{Arc, OnceLock, Weak};
