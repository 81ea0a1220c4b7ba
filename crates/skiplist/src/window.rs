//! The *fragment* of a key: the eight bytes of it that link hints hold.
//!
//! Keys of one list often start alike, so the fragment is not taken from the front but after the
//! prefix that the list's first entries share. The window is chosen once and then fixed, because
//! hints made under it stay in the list.
//!
//! Owns: the choice of the window. Never does: compare whole keys for the list's order.
#![allow(unsafe_code)]

use crate::node::{Node, NodeRef, UNKNOWN};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use core::ptr;

/// Bytes of a fragment.
const FRAGMENT_BYTES: usize = 8;

/// The cell in which the window is published once it is chosen.
pub(crate) struct WindowCell {
    /// A node whose key starts with the shared prefix; null until the window is known.
    origin: AtomicPtr<Node>,
    /// Length of the shared prefix, written before `origin`.
    skip: AtomicUsize,
}

/// The window: the shared prefix after which all fragments of a list begin.
#[derive(Clone, Copy)]
pub(crate) struct KeyWindow<'a> {
    shared: &'a [u8],
}

impl WindowCell {
    pub(crate) fn new() -> WindowCell {
        WindowCell { origin: AtomicPtr::new(ptr::null_mut()), skip: AtomicUsize::new(0) }
    }

    /// The window, if it is known. The cell belongs to the list of the nodes, hence `'a`.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<KeyWindow<'_>> {
        // SAFETY: `choose` stores only nodes of the list that this cell is part of.
        let origin = unsafe { NodeRef::from_ptr(self.origin.load(Ordering::Acquire)) }?;
        Some(KeyWindow { shared: &origin.key()[..self.skip.load(Ordering::Relaxed)] })
    }

    /// Fixes the window from the least and the greatest key so far. Called once, by one thread.
    pub(crate) fn choose(&self, first: NodeRef<'_>, last: NodeRef<'_>) {
        let (a, b) = (first.key(), last.key());
        let shared = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        // Ascending keys share more with each other than with the keys after them, so the window
        // keeps to the last eight bytes of the key.
        let skip = shared.min(a.len().min(b.len()).saturating_sub(FRAGMENT_BYTES));
        self.skip.store(skip, Ordering::Relaxed);
        self.origin.store(first.as_ptr(), Ordering::Release);
    }
}

impl KeyWindow<'_> {
    /// The fragment of a key: if `a <= b` bytewise, then `fragment(a) <= fragment(b)`.
    /// [`UNKNOWN`] for keys beyond the window.
    #[inline(always)]
    pub(crate) fn fragment(&self, key: &[u8]) -> u64 {
        match key.split_at_checked(self.shared.len()) {
            Some((head, rest)) if head == self.shared => prefix_u64(rest),
            _ if key < self.shared => 0,
            _ => UNKNOWN,
        }
    }
}

/// The first eight bytes as a big-endian number, zeros after the end.
#[inline(always)]
pub(crate) fn prefix_u64(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<FRAGMENT_BYTES>() {
        Some(word) => u64::from_be_bytes(*word),
        None => {
            let mut word = [0; FRAGMENT_BYTES];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    }
}
