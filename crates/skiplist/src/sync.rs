//! The atomics of this crate: core's, or loom's when a model is checked.
//!
//! Owns nothing else; no other file names an atomic type by another path.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Stands for the plain bytes of a node. Under loom it is a cell that fails
/// the model when a node's bytes are read without a happens-before edge from
/// their writing; otherwise it is nothing.
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
}

#[cfg(not(loom))]
impl Payload {
    #[inline(always)]
    pub(crate) fn written() -> Payload {
        Payload
    }

    #[inline(always)]
    pub(crate) fn read(&self) {}
}
