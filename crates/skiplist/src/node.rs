//! One entry in memory: the tower of links, lengths, key, trailer and value in
//! one allocation.
//!
//! ```text
//! link[h-1] .. link[1] | next | key_bytes, value_bytes | key (padded to 8) | trailer | value
//! {hint, next} each    ^ NodeRef points here
//! ```
//!
//! A search that moves right along level `l` arrives at nodes whose highest
//! level is `l`, so the links it reads next start at the node's first byte and
//! run towards the key: one line, or two neighbours.
//!
//! Owns: the layout and every raw access to it. Never does: compare keys, or choose a node's
//! height.
#![allow(unsafe_code)]

use crate::arena::{ALIGN, Arena};
use crate::sync::{AtomicPtr, AtomicU64, Ordering, Payload};
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

/// The [`Link::hint`] that says nothing about the next node.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// The least room of a key, so that its first word can be read whole.
const KEY_ROOM_MIN: usize = 8;

/// A link of level 1 or above.
///
/// Invariant: `hint` is [`UNKNOWN`], or `next` is a node whose fragment (see
/// `window.rs`) is at most `hint`. Writers change `next` before they lower
/// `hint`, readers load `hint` before `next`.
#[repr(C)]
pub(crate) struct Link {
    hint: AtomicU64,
    next: AtomicPtr<Node>,
}

impl Link {
    #[inline(always)]
    pub(crate) fn hint(&self) -> u64 {
        self.hint.load(Ordering::Acquire)
    }

    /// Lowers the hint to `fragment`, that of a node which `next` points to or once did.
    #[inline]
    pub(crate) fn lower_hint(&self, fragment: u64) {
        // Relaxed: a stale hint is too high, which only costs the exchange.
        if fragment < self.hint.load(Ordering::Relaxed) {
            self.hint.fetch_min(fragment, Ordering::AcqRel);
        }
    }
}

/// The fixed part of a node, level 0 of its tower included.
#[repr(C)]
pub(crate) struct Node {
    next: AtomicPtr<Node>,
    key_bytes: u32,
    value_bytes: u32,
    payload: Payload,
    #[cfg(debug_assertions)]
    height: usize,
}

const KEY_OFFSET: usize = size_of::<Node>();
const _: () = assert!(align_of::<Node>() <= ALIGN && align_of::<Link>() <= ALIGN);

/// A node of a list that lives for `'a`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeRef<'a> {
    node: NonNull<Node>,
    list: PhantomData<&'a Node>,
}

// SAFETY: a node is immutable except for its links, which are atomic.
unsafe impl Send for NodeRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for NodeRef<'_> {}

impl<'a> NodeRef<'a> {
    /// Writes a node with no successors into `arena`, which must outlive it.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    pub(crate) fn new_in(
        arena: &'a Arena,
        height: usize,
        key: &[u8],
        trailer: u64,
        value: &[u8],
    ) -> NodeRef<'a> {
        let key_bytes = u32::try_from(key.len()).expect("key of 4 GiB or more");
        let value_bytes = u32::try_from(value.len()).expect("value of 4 GiB or more");
        let tower_bytes = (height - 1) * size_of::<Link>();
        let key_room = key.len().max(KEY_ROOM_MIN);
        let total_bytes = (tower_bytes + KEY_OFFSET + key_room + size_of::<u64>())
            .checked_add(value.len() + ALIGN - 1)
            .expect("entry size overflows")
            & !(ALIGN - 1);
        let memory = arena.allocate(total_bytes);
        // SAFETY: everything written lies in the `total_bytes` just allocated, which no other
        // thread knows of; `tower_bytes` and `KEY_OFFSET` keep the alignment.
        unsafe {
            let node = memory.add(tower_bytes).cast::<Node>();
            for level in 1..height {
                let hint = AtomicU64::new(UNKNOWN);
                let next = AtomicPtr::new(ptr::null_mut());
                node.cast::<Link>().sub(level).write(Link { hint, next });
            }
            node.write(Node {
                next: AtomicPtr::new(ptr::null_mut()),
                key_bytes,
                value_bytes,
                payload: Payload::written(),
                #[cfg(debug_assertions)]
                height,
            });
            let bytes = node.cast::<u8>().add(KEY_OFFSET);
            bytes.cast::<u64>().write_unaligned(0);
            bytes.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            let bytes = bytes.add(key_room);
            bytes.cast::<u64>().write_unaligned(trailer);
            let bytes = bytes.add(size_of::<u64>());
            bytes.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            NodeRef { node, list: PhantomData }
        }
    }

    /// # Safety
    /// `node` is null or came from [`NodeRef::as_ptr`] of a list that lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn from_ptr(node: *mut Node) -> Option<NodeRef<'a>> {
        NonNull::new(node).map(|node| NodeRef { node, list: PhantomData })
    }

    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *mut Node {
        self.node.as_ptr()
    }

    #[inline(always)]
    fn fixed(self) -> &'a Node {
        // SAFETY: a NodeRef points to a node that lives for 'a.
        unsafe { self.node.as_ref() }
    }

    /// The link of `level`, which is 1 or more and below the node's height.
    #[inline(always)]
    pub(crate) fn link(self, level: usize) -> &'a Link {
        #[cfg(debug_assertions)]
        assert!(1 <= level && level < self.fixed().height);
        // SAFETY: `new_in` wrote links 1 to height - 1 before the fixed part.
        // Callers come from a node's own height or along a link of this level,
        // and only nodes higher than `level` are linked there.
        unsafe { self.node.cast::<Link>().sub(level).as_ref() }
    }

    #[inline(always)]
    fn slot(self, level: usize) -> &'a AtomicPtr<Node> {
        if level == 0 { &self.fixed().next } else { &self.link(level).next }
    }

    /// The next node at `level`, below the node's height.
    #[inline(always)]
    pub(crate) fn next(self, level: usize) -> Option<NodeRef<'a>> {
        // SAFETY: links hold null or nodes of the same arena.
        unsafe { NodeRef::from_ptr(self.slot(level).load(Ordering::Acquire)) }
    }

    /// Puts `new` between this node and `next` at `level`; false if another node came between.
    #[inline]
    pub(crate) fn link_next(
        self,
        level: usize,
        next: Option<NodeRef<'a>>,
        next_fragment: u64,
        new: NodeRef<'a>,
    ) -> bool {
        let next = next.map_or(ptr::null_mut(), NodeRef::as_ptr);
        // Relaxed: no thread reaches `new` at this level before the exchange below.
        new.slot(level).store(next, Ordering::Relaxed);
        if level > 0 {
            new.link(level).hint.store(next_fragment, Ordering::Relaxed);
        }
        self.slot(level)
            .compare_exchange(next, new.as_ptr(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    #[inline(always)]
    fn key_start(self) -> NonNull<u8> {
        // SAFETY: the key's room follows the fixed part.
        unsafe { self.node.cast::<u8>().add(KEY_OFFSET) }
    }

    #[inline(always)]
    pub(crate) fn key_len(self) -> usize {
        self.fixed().key_bytes as usize
    }

    /// The first eight bytes of the key as a big-endian number, zeros after its end.
    #[inline(always)]
    pub(crate) fn head(self) -> u64 {
        self.fixed().payload.read();
        // SAFETY: a key has room for a word at least, written by `new_in`.
        u64::from_be(unsafe { self.key_start().cast::<u64>().read_unaligned() })
    }

    #[inline(always)]
    pub(crate) fn key(self) -> &'a [u8] {
        self.fixed().payload.read();
        // SAFETY: `new_in` wrote `key_bytes` bytes there; they never change.
        unsafe { core::slice::from_raw_parts(self.key_start().as_ptr(), self.key_len()) }
    }

    #[inline(always)]
    fn trailer_start(self) -> NonNull<u8> {
        // SAFETY: the trailer follows the key's room.
        unsafe { self.key_start().add(self.key_len().max(KEY_ROOM_MIN)) }
    }

    #[inline(always)]
    pub(crate) fn trailer(self) -> u64 {
        self.fixed().payload.read();
        // SAFETY: `new_in` wrote it there.
        unsafe { self.trailer_start().cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    pub(crate) fn value(self) -> &'a [u8] {
        self.fixed().payload.read();
        // SAFETY: `new_in` wrote `value_bytes` bytes there; they never change.
        unsafe {
            let start = self.trailer_start().add(size_of::<u64>());
            core::slice::from_raw_parts(start.as_ptr(), self.fixed().value_bytes as usize)
        }
    }

    /// Prefetches the link of `level`, below the node's height, and those below it.
    #[inline(always)]
    pub(crate) fn prefetch_links(self, level: usize) {
        let first = self.node.as_ptr().cast::<u8>().wrapping_sub(level * size_of::<Link>());
        prefetch(first);
        prefetch(self.node.as_ptr().cast());
    }

    /// Prefetches the first `bytes` of the node.
    #[inline(always)]
    pub(crate) fn prefetch_bytes(self, bytes: usize) {
        for offset in (0..bytes).step_by(64) {
            prefetch(self.node.as_ptr().cast::<u8>().wrapping_add(offset));
        }
    }
}

#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults, at any address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
