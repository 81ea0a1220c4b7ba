//! Locks, atomics, threads and shared pointers: the one module from which the core takes them.
//!
//! Owns: the implementation of each name. Normally that is `real`. Built with `--cfg loom` or
//! `--cfg shuttle` it is a model checker's, which then decides at every use which thread runs next:
//!
//! - `loom` tries every interleaving, and every value that a weak memory model
//!   lets an atomic read return: for small parts (`engine/src/models`, and the
//!   skiplist's own).
//! - `shuttle` draws interleavings, one sequentially consistent memory: for the
//!   whole database (`sim/tests/shuttle.rs`).
//!
//! Neither sees the counts of `std`'s `Arc` (loom's own has no weak pointers and holds nothing
//! unsized; the drop of the value is seen), the inside of `arc_swap` and of the block cache's
//! `quick_cache` (one indivisible step each, as they promise), statistics, and the code in `os` and
//! `sys` except the thread pool. Shuttle moreover takes an operation on the skiplist for one step.
//!
//! Every lock has a rank (`ranks.rs`), which says which locks a thread may hold when it takes it.
//!
//! Never does: add behaviour of its own, except the check of ranks.

pub(crate) mod locks;
#[cfg(any(loom, shuttle))]
mod model_checker;
mod ranks;
pub(crate) mod real;

pub use ranks::Rank;

#[cfg(any(loom, shuttle))]
pub use model_checker::{
    ArcSwap, ArcSwapOption, Condvar, Guard, Mutex, MutexGuard, atomic, thread, thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub use real::{
    ArcSwap, ArcSwapOption, Condvar, Guard, Mutex, MutexGuard, atomic, thread, thread_local,
};
pub use std::sync::{Arc, OnceLock, Weak};
