//! The list: search and insert.
//!
//! Each link above level 0 holds, besides the pointer, a *hint*: the fragment (eight bytes of key,
//! see `window.rs`) of the node it points to. The hint is never below that node's fragment, so a
//! search that finds it below the target's fragment moves right, and above moves down, without
//! touching the node; only a tie costs a read of the node itself. The nodes at which a search
//! leaves a level, about one a level, are thus never read.
//!
//! An insert that loses a race leaves a hint too high at worst. A search then moves down early and
//! walks further below: slower, never wrong, since level 0 has no hints and is compared by whole
//! keys.
//!
//! Owns: order, levels and hints. Never does: free, move or change an entry.
#![allow(unsafe_code)]

use crate::arena::Arena;
use crate::node::{Link, Node, NodeRef, UNKNOWN};
use crate::pool::ChunkPool;
use crate::sync::{AtomicUsize, Ordering};
use crate::window::{KeyWindow, WindowCell, prefix_u64};
use core::cmp;
use core::fmt;
use core::ptr;
use std::sync::Arc;

/// The most levels of a list.
pub(crate) const HEIGHT_MAX: usize = if cfg!(loom) { 3 } else { 18 };
/// Nodes higher than this, about one in twenty, are kept apart from the rest: most steps of a
/// search pass them, so they should share few pages.
const SHORT_HEIGHT_MAX: usize = 4;
/// Bytes of the first chunk of the arena of short nodes. Under loom it has room for two nodes.
const SHORT_BYTES_FIRST: usize = if cfg!(loom) { 192 } else { 512 };
/// Bytes of the first chunk of the arena of tall nodes, with the sentinel.
const TALL_BYTES_FIRST: usize = if cfg!(loom) { 4 << 10 } else { 512 };
/// The number of entries after which the window is chosen.
const WINDOW_AFTER: usize = if cfg!(loom) { 1 } else { 256 };

/// The order of keys.
pub trait KeyCompare: Send + Sync + 'static {
    /// Compares two keys; a total order that never changes.
    fn compare(&self, a: &[u8], b: &[u8]) -> cmp::Ordering;

    /// Whether `compare` is the lexicographic order of unsigned bytes, so that
    /// fixed-width prefixes may be compared first. Must never change for a value.
    fn bytewise(&self) -> bool;
}

/// A sorted multimap of byte strings. See the crate's documentation.
pub struct SkipList<C> {
    compare: C,
    bytewise: bool,
    /// Sentinel of full height before the first entry; lives in `tall`.
    head: *mut Node,
    /// Levels in use, at least 1.
    height: AtomicUsize,
    window: WindowCell,
    short: Arena,
    tall: Arena,
    identity: u64,
    len: Padded,
}

/// The counter that every insert writes, on a line of its own.
#[repr(align(128))]
struct Padded(AtomicUsize);

// SAFETY: `head` points into `tall`; everything shared in nodes is atomic or immutable.
unsafe impl<C: KeyCompare> Send for SkipList<C> {}
// SAFETY: as above.
unsafe impl<C: KeyCompare> Sync for SkipList<C> {}

/// An entry of a list.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    node: NodeRef<'a>,
}

impl<'a> Entry<'a> {
    pub(crate) fn of(node: NodeRef<'a>) -> Entry<'a> {
        Entry { node }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.node.key()
    }

    /// The trailer.
    #[inline]
    pub fn trailer(&self) -> u64 {
        self.node.trailer()
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.node.value()
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("key", &self.key()).field("trailer", &self.trailer()).finish()
    }
}

/// The place of the last insert, from which [`SkipList::insert_near`] starts.
/// A hint used with another list is reset, so one value may serve many lists.
#[derive(Debug)]
pub struct Hint {
    /// Identity of the list that `places` are of; 0 is no list.
    identity: u64,
    places: [*mut Node; HEIGHT_MAX],
    moves: [u8; HEIGHT_MAX],
}

// SAFETY: the pointers are only followed through the list they belong to.
unsafe impl Send for Hint {}
// SAFETY: as above.
unsafe impl Sync for Hint {}

impl Hint {
    /// A hint of no place.
    pub const fn new() -> Hint {
        Hint { identity: 0, places: [ptr::null_mut(); HEIGHT_MAX], moves: [0; HEIGHT_MAX] }
    }
}

impl Default for Hint {
    fn default() -> Hint {
        Hint::new()
    }
}

/// The entry that a search looks for, with the values that each step compares.
pub(crate) struct SearchKey<'a> {
    key: &'a [u8],
    trailer: u64,
    /// First eight bytes of `key`.
    head: u64,
    /// The fragment of `key` under `window`.
    pub(crate) fragment: u64,
    pub(crate) window: Option<KeyWindow<'a>>,
}

/// A record of the nodes that a search passed on its way down.
pub(crate) trait Trace<'a> {
    /// The search left `level` at `place`, `moves` nodes to the right of where it came down.
    fn set(&mut self, level: usize, place: NodeRef<'a>, moves: usize);
}

impl<'a> Trace<'a> for () {
    #[inline(always)]
    fn set(&mut self, _level: usize, _place: NodeRef<'a>, _moves: usize) {}
}

/// The nodes on the way down to a target.
pub(crate) struct Path<'a> {
    /// Per level, a node before the target.
    pub(crate) places: [NodeRef<'a>; HEIGHT_MAX],
    /// Per level, the nodes between the place above and this one.
    pub(crate) moves: [u8; HEIGHT_MAX],
}

impl<'a> Trace<'a> for Path<'a> {
    #[inline(always)]
    fn set(&mut self, level: usize, place: NodeRef<'a>, moves: usize) {
        self.places[level] = place;
        self.moves[level] = moves.min(u8::MAX as usize) as u8;
    }
}

impl<'a> Path<'a> {
    pub(crate) fn new(head: NodeRef<'a>) -> Path<'a> {
        Path { places: [head; HEIGHT_MAX], moves: [0; HEIGHT_MAX] }
    }

    /// Continues the path to a node of this height that was inserted at its end, where the path of
    /// the node's successor begins.
    pub(crate) fn continue_to_new(&mut self, height: usize) {
        self.moves[..height - 1].fill(0);
        self.moves[height - 1] = self.moves[height - 1].saturating_add(1);
    }

    /// The height of a node to be inserted here.
    ///
    /// A node is raised a level where it splits a run of nodes that are not raised, and else by
    /// chance, one in four. Against heights by chance alone (one in two) this takes a third off the
    /// nodes a search passes on the lower levels, which are its cache misses, and a sixth off the
    /// links. Chance is needed for keys that come in descending order, which split nothing.
    #[inline(always)]
    fn height_for(&self, target: &SearchKey<'_>) -> usize {
        let mut chance = hash(target.key, target.trailer);
        let mut height = 1;
        while height < HEIGHT_MAX {
            let below = height - 1;
            let next = self.places[below].next(below);
            let inner = next.is_some() && next != self.places[height].next(height);
            let moves = self.moves[below];
            if !(moves >= 3 || (moves >= 1 && inner) || chance & 3 == 0) {
                break;
            }
            chance >>= 2;
            height += 1;
        }
        height
    }
}

impl<C: KeyCompare> SkipList<C> {
    /// The bytes of memory that an empty list takes: its own, and its first chunks.
    pub const EMPTY_BYTES: usize = size_of::<SkipList<C>>() + SHORT_BYTES_FIRST + TALL_BYTES_FIRST;

    /// An empty list. Takes [`SkipList::EMPTY_BYTES`], few because there may be thousands of lists.
    pub fn new(compare: C) -> SkipList<C> {
        SkipList::with_arenas(compare, None)
    }

    /// An empty list whose large chunks come from `pool`, and go back to it.
    pub fn with_pool(compare: C, pool: Arc<ChunkPool>) -> SkipList<C> {
        SkipList::with_arenas(compare, Some(pool))
    }

    fn with_arenas(compare: C, pool: Option<Arc<ChunkPool>>) -> SkipList<C> {
        let short = Arena::new(SHORT_BYTES_FIRST, pool.clone());
        let tall = Arena::new(TALL_BYTES_FIRST, pool);
        let head = NodeRef::new_in(&tall, HEIGHT_MAX, &[], 0, &[]).as_ptr();
        SkipList {
            bytewise: compare.bytewise(),
            compare,
            head,
            height: AtomicUsize::new(1),
            window: WindowCell::new(),
            short,
            tall,
            identity: next_identity(),
            len: Padded(AtomicUsize::new(0)),
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len.0.load(Ordering::Relaxed)
    }

    /// Whether nothing was inserted yet.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The bytes that the list took from the allocator.
    pub fn allocated_bytes(&self) -> usize {
        self.short.allocated_bytes() + self.tall.allocated_bytes()
    }

    /// The order given to [`SkipList::new`].
    pub fn comparator(&self) -> &C {
        &self.compare
    }

    /// The first entry at or after `(key, trailer)`; larger trailers come earlier.
    pub fn seek(&self, key: &[u8], trailer: u64) -> Option<Entry<'_>> {
        self.at_or_after(key, trailer).map(|node| Entry { node })
    }

    /// Inserts an entry, seen by every search that starts after this returns.
    /// No entry with the same key and trailer may be in the list.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    pub fn insert(&self, key: &[u8], trailer: u64, value: &[u8]) {
        let target = self.target(key, trailer);
        let mut path = Path::new(self.head());
        self.search(&target, &mut path);
        self.insert_at(&target, value, &mut path);
    }

    /// Like [`SkipList::insert`], but starts from the place of the last insert with this hint: a
    /// few comparisons if the key belongs right after it, at any length of the list; a little
    /// slower than `insert` if it does not.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    pub fn insert_near(&self, near: &mut Hint, key: &[u8], trailer: u64, value: &[u8]) {
        let target = self.target(key, trailer);
        let mut path = Path::new(self.head());
        if near.identity == self.identity {
            for (place, &known) in path.places.iter_mut().zip(&near.places) {
                // SAFETY: equal identities: these are nodes of this list, each linked at its level.
                *place = unsafe { NodeRef::from_ptr(known) }.expect("a used hint has a path");
            }
            path.moves = near.moves;
            self.refine(&target, &mut path);
        } else {
            self.search(&target, &mut path);
        }
        let height = self.insert_at(&target, value, &mut path);
        path.continue_to_new(height);
        near.identity = self.identity;
        near.places = path.places.map(NodeRef::as_ptr);
        near.moves = path.moves;
    }

    /// Corrects a path that was right for another key: climbs to the lowest
    /// level at which it still encloses the target, and searches down from there.
    fn refine<'a>(&'a self, target: &SearchKey<'_>, path: &mut Path<'a>) {
        let mut level = 0;
        while level < HEIGHT_MAX {
            let place = path.places[level];
            let right_of = place == self.head() || self.precedes(place, target);
            if right_of && place.next(level).is_none_or(|next| !self.precedes(next, target)) {
                break;
            }
            level += 1;
        }
        let mut place = if level < HEIGHT_MAX { path.places[level] } else { self.head() };
        for below in (0..level).rev() {
            let mut moves = 0;
            while let Some(next) = place.next(below)
                && self.precedes(next, target)
            {
                place = next;
                moves += 1;
            }
            path.set(below, place, moves);
        }
    }

    /// Makes a node for the target and links it at all its levels, bottom up. `path` holds for each
    /// level a node before the target, not necessarily the last. Afterwards it holds the new node
    /// at the levels that it is linked at.
    #[inline(always)]
    pub(crate) fn insert_at<'a>(
        &'a self,
        target: &SearchKey<'_>,
        value: &[u8],
        path: &mut Path<'a>,
    ) -> usize {
        let height = path.height_for(target);
        let arena = if height > SHORT_HEIGHT_MAX { &self.tall } else { &self.short };
        let node = NodeRef::new_in(arena, height, target.key, target.trailer, value);
        if self.height.load(Ordering::Relaxed) < height {
            self.height.fetch_max(height, Ordering::Relaxed);
        }
        for level in 0..height {
            self.link(node, level, path.places[level], target);
            path.places[level] = node;
        }
        if self.len.0.fetch_add(1, Ordering::Relaxed) + 1 == WINDOW_AFTER && self.bytewise {
            let (first, last) = (self.first().unwrap_or(node), self.last().unwrap_or(node));
            self.window.choose(first, last);
        }
        height
    }

    /// Links a node at one level, somewhere after `place`.
    #[inline(always)]
    fn link<'a>(
        &'a self,
        node: NodeRef<'a>,
        level: usize,
        mut place: NodeRef<'a>,
        target: &SearchKey<'_>,
    ) {
        loop {
            let after;
            (place, after) = self.walk(place, level, target);
            debug_assert!(
                after.is_none_or(|next| next.trailer() != target.trailer
                    || self.compare.compare(next.key(), target.key).is_ne()),
                "an entry with this key and trailer is in the list"
            );
            let after_fragment = match (&target.window, after) {
                (Some(window), Some(after)) if level > 0 => window.fragment(after.key()),
                _ => UNKNOWN,
            };
            if place.link_next(level, after, after_fragment, node) {
                break;
            }
        }
        if level > 0 && target.window.is_some() {
            place.link(level).lower_hint(target.fragment);
        }
    }

    /// The number of levels in use.
    pub(crate) fn height(&self) -> usize {
        self.height.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> NodeRef<'_> {
        // SAFETY: `head` is a node in the list's own arena.
        unsafe { NodeRef::from_ptr(self.head).unwrap_unchecked() }
    }

    pub(crate) fn first(&self) -> Option<NodeRef<'_>> {
        self.head().next(0)
    }

    pub(crate) fn last(&self) -> Option<NodeRef<'_>> {
        let mut place = self.head();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            while let Some(next) = place.next(level) {
                place = next;
            }
        }
        (place != self.head()).then_some(place)
    }

    pub(crate) fn at_or_after(&self, key: &[u8], trailer: u64) -> Option<NodeRef<'_>> {
        let target = self.target(key, trailer);
        let place = self.search(&target, &mut ());
        // Another node may have been inserted between since.
        self.walk(place, 0, &target).1
    }

    pub(crate) fn before(&self, key: &[u8], trailer: u64) -> Option<NodeRef<'_>> {
        let place = self.search(&self.target(key, trailer), &mut ());
        (place != self.head()).then_some(place)
    }

    #[inline(always)]
    pub(crate) fn target<'a>(&'a self, key: &'a [u8], trailer: u64) -> SearchKey<'a> {
        let window = self.window.get();
        let fragment = window.map_or(UNKNOWN, |window| window.fragment(key));
        SearchKey { key, trailer, head: prefix_u64(key), fragment, window }
    }

    /// The last node before the target, perhaps the head.
    #[inline(always)]
    pub(crate) fn search<'a>(
        &'a self,
        target: &SearchKey<'_>,
        trace: &mut impl Trace<'a>,
    ) -> NodeRef<'a> {
        let mut place = self.head();
        // The node that ended the level above, so that it is not compared again.
        let mut bound = None;
        let height = self.height();
        let hinted_levels = if target.window.is_some() { 1..height } else { height..height };
        for level in hinted_levels.clone().rev() {
            place = self.advance(place, level, target, &mut bound, trace);
        }
        for level in (0..hinted_levels.start).rev() {
            let mut moves = 0;
            while let Some(next) = place.next(level) {
                if bound == Some(next) {
                    break;
                }
                if !self.precedes(next, target) {
                    bound = Some(next);
                    break;
                }
                place = next;
                moves += 1;
            }
            trace.set(level, place, moves);
        }
        place
    }

    /// Moves right along `level`, 1 or more, by hints.
    #[inline(always)]
    fn advance<'a>(
        &'a self,
        mut place: NodeRef<'a>,
        level: usize,
        target: &SearchKey<'_>,
        bound: &mut Option<NodeRef<'a>>,
        trace: &mut impl Trace<'a>,
    ) -> NodeRef<'a> {
        let mut moves = 0;
        loop {
            let link = place.link(level);
            let hint = link.hint();
            if hint > target.fragment && hint != UNKNOWN {
                break;
            }
            let Some(next) = place.next(level) else { break };
            if hint >= target.fragment && !self.passes(link, hint, next, target, bound) {
                break;
            }
            place = next;
            moves += 1;
        }
        trace.set(level, place, moves);
        place
    }

    /// Whether `next` comes before the target where `hint` does not decide.
    #[inline]
    fn passes<'a>(
        &'a self,
        link: &Link,
        hint: u64,
        next: NodeRef<'a>,
        target: &SearchKey<'_>,
        bound: &mut Option<NodeRef<'a>>,
    ) -> bool {
        if *bound == Some(next) {
            return false;
        }
        if let (UNKNOWN, Some(window)) = (hint, &target.window) {
            link.lower_hint(window.fragment(next.key()));
        }
        let passes = self.precedes(next, target);
        if !passes {
            *bound = Some(next);
        }
        passes
    }

    /// Moves right along `level` from `place`, which is before the target, by
    /// whole keys: the last node before the target and the first not before it.
    #[inline(always)]
    fn walk<'a>(
        &'a self,
        mut place: NodeRef<'a>,
        level: usize,
        target: &SearchKey<'_>,
    ) -> (NodeRef<'a>, Option<NodeRef<'a>>) {
        while let Some(next) = place.next(level) {
            if !self.precedes(next, target) {
                return (place, Some(next));
            }
            place = next;
        }
        (place, None)
    }

    /// Whether `node`, not the head, comes before the target.
    #[inline(always)]
    pub(crate) fn precedes(&self, node: NodeRef<'_>, target: &SearchKey<'_>) -> bool {
        let order = if self.bytewise {
            let head = node.head();
            if head != target.head {
                return head < target.head;
            }
            compare_rest(node.key(), target.key)
        } else {
            self.compare.compare(node.key(), target.key)
        };
        match order {
            cmp::Ordering::Less => true,
            cmp::Ordering::Greater => false,
            cmp::Ordering::Equal => node.trailer() > target.trailer,
        }
    }
}

impl<C> fmt::Debug for SkipList<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkipList")
            .field("len", &self.len.0.load(Ordering::Relaxed))
            .field("allocated_bytes", &(self.short.allocated_bytes() + self.tall.allocated_bytes()))
            .finish()
    }
}

/// Compares two keys whose first eight bytes, zeros after the end, are equal.
#[inline]
fn compare_rest(a: &[u8], b: &[u8]) -> cmp::Ordering {
    match (a.get(8..), b.get(8..)) {
        (Some(a_rest), Some(b_rest)) => {
            let (a_word, b_word) = (prefix_u64(a_rest), prefix_u64(b_rest));
            if a_word != b_word {
                return a_word.cmp(&b_word);
            }
            a_rest.cmp(b_rest)
        }
        // One is a prefix of the other, up to zeros that the word cannot tell from a key's end.
        _ => a.len().cmp(&b.len()),
    }
}

/// Well mixed bits that depend on key and trailer alone, so that the same
/// inserts build the same list.
#[inline]
fn hash(key: &[u8], trailer: u64) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = trailer.wrapping_add(key.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash ^ (hash >> 32) ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 32) ^ prefix_u64(rest)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 32)
}

/// A number that no other list of the process has.
fn next_identity() -> u64 {
    // Not loom's: it carries no data between threads, and statics outlive a model.
    use core::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The models in `tests/loom.rs` have too few entries to raise any but by chance.
    #[test]
    fn keys_of_the_loom_models_are_tall() {
        for trailer in [0, 1] {
            assert_eq!(hash(b"tall-102", trailer) & 15, 0);
            assert_eq!(hash(b"tall-12", trailer) & 3, 0);
        }
    }
}
