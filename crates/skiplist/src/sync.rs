//! The atomics of this crate: core's, or loom's when a model is checked.
//!
//! Owns: the choice between the two; no other file names an atomic type by another path. Never
//! does: wrap or change an atomic operation.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A marker for plain bytes: a node's, or those that a chunk hands out. Under loom it is a cell
/// that fails the model when bytes are used without a happens-before edge from their writing, or
/// given up without one from their last use; otherwise it is empty.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Payload(loom::cell::UnsafeCell<()>);
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Payload;

#[cfg(loom)]
impl Payload {
    pub(crate) fn written() -> Payload {
        let cell = loom::cell::UnsafeCell::new(());
        cell.with_mut(|_| ());
        Payload(cell)
    }

    pub(crate) fn read(&self) {
        self.0.with(|_| ());
    }

    pub(crate) fn give_up(&self) {
        self.0.with_mut(|_| ());
    }
}

#[cfg(not(loom))]
impl Payload {
    #[inline(always)]
    pub(crate) fn written() -> Payload {
        Payload
    }

    #[inline(always)]
    pub(crate) fn read(&self) {}

    #[inline(always)]
    pub(crate) fn give_up(&self) {}
}
