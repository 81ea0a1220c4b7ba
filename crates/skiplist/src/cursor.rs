//! The owned iterator over a list, in both directions.
//!
//! It sees each entry inserted before it got there, and may or may not see later ones.
//!
//! Owns: a reference to the list, so that it may outlive every other. Never does: block an insert,
//! or wait for one.
#![allow(unsafe_code)]

use crate::list::{KeyCompare, SkipList};
use crate::node::{Node, NodeRef};
use core::ptr;
use std::sync::Arc;

/// A position in a [`SkipList`], or none.
pub struct ListCursor<C> {
    list: Arc<SkipList<C>>,
    /// Null when not valid.
    at: *mut Node,
    /// The node after `at` when `at` was reached; for prefetching only.
    ahead: *mut Node,
}

// SAFETY: the pointers are to nodes of `list`, which is Send and Sync and kept alive.
unsafe impl<C: KeyCompare> Send for ListCursor<C> {}
// SAFETY: as above.
unsafe impl<C: KeyCompare> Sync for ListCursor<C> {}

impl<C: KeyCompare> ListCursor<C> {
    /// A cursor that is not at an entry yet.
    pub fn new(list: Arc<SkipList<C>>) -> ListCursor<C> {
        ListCursor { list, at: ptr::null_mut(), ahead: ptr::null_mut() }
    }

    /// The list it moves over.
    pub fn list(&self) -> &Arc<SkipList<C>> {
        &self.list
    }

    /// Whether the cursor is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        !self.at.is_null()
    }

    #[inline]
    fn node(&self) -> NodeRef<'_> {
        // SAFETY: `at` is null or a node of `self.list`, which outlives the borrow.
        unsafe { NodeRef::from_ptr(self.at) }.expect("the cursor is not at an entry")
    }

    /// The key of the entry.
    ///
    /// # Panics
    /// If the cursor is not valid, as do `trailer`, `value`, `next` and `prev`.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.node().key()
    }

    /// The trailer of the entry.
    #[inline]
    pub fn trailer(&self) -> u64 {
        self.node().trailer()
    }

    /// The value of the entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.node().value()
    }

    fn set(&mut self, node: Option<*mut Node>) {
        self.at = node.unwrap_or(ptr::null_mut());
        self.ahead = ptr::null_mut();
    }

    /// Moves to the first entry of the list.
    pub fn seek_first(&mut self) {
        let node = self.list.first().map(NodeRef::as_ptr);
        self.set(node);
    }

    /// Moves to the last entry of the list.
    pub fn seek_last(&mut self) {
        let node = self.list.last().map(NodeRef::as_ptr);
        self.set(node);
    }

    /// Moves to the first entry at or after `(key, trailer)`; larger trailers come earlier.
    pub fn seek(&mut self, key: &[u8], trailer: u64) {
        let node = self.list.at_or_after(key, trailer).map(NodeRef::as_ptr);
        self.set(node);
    }

    /// Moves to the last entry before `(key, trailer)`.
    pub fn seek_before(&mut self, key: &[u8], trailer: u64) {
        let node = self.list.before(key, trailer).map(NodeRef::as_ptr);
        self.set(node);
    }

    /// Moves to the next entry.
    // A cursor is no `Iterator`: it lends its entry.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) {
        let next = self.node().next(0);
        // Prefetch two ahead: the last step prefetched the node after `next`, so reading its link
        // does not wait, and the node after that has a whole step to arrive.
        let near = match (next, self.ahead) {
            (Some(next), far) if far.is_null() || far == next.as_ptr() => next.next(0),
            // SAFETY: `ahead` is null or a node of the list.
            (Some(_), far) => unsafe { NodeRef::from_ptr(far) },
            (None, _) => None,
        };
        let far = near.and_then(|node| node.next(0));
        if let Some(far) = far {
            far.prefetch_bytes(192);
        }
        let (next, near) = (next.map(NodeRef::as_ptr), near.map(NodeRef::as_ptr));
        self.at = next.unwrap_or(ptr::null_mut());
        self.ahead = near.unwrap_or(ptr::null_mut());
    }

    /// Moves to the entry before this one, by a search from the top.
    pub fn prev(&mut self) {
        let node = self.node();
        let before = self.list.before(node.key(), node.trailer()).map(NodeRef::as_ptr);
        self.set(before);
    }
}
