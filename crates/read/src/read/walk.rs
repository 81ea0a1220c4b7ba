//! A scan's walk over deleted keys: where it began and how far it came. A long walk is remembered
//! ([`crate::gaps`]), so that later ones jump over it.
//!
//! Owns: the count, and the edge. Never does: move the scan.

use super::ReadOwner;
use crate::gaps::edge::{Edge, EdgeAt};
use crate::gaps::{GapSpan, ReadPoint};

/// In builds that check themselves a few deleted keys make a gap, so that harnesses
/// with few keys try them.
const IS_TRIED: bool = cfg!(debug_assertions);

/// Deleted keys in a row after which a scan looks for a gap: some 30 ns each,
/// and a look with the seek after it takes some microseconds.
const LOOK_EVERY: u32 = if IS_TRIED { 2 } else { 16 };

/// Deleted keys in a row that are worth remembering.
const REMEMBERED_MIN: u32 = if IS_TRIED { 4 } else { 64 };

// A walk is cleared at an expired key, which going backward is counted then. A walk that has no
// edge yet begins where a gap is first looked for: behind that key.
const _: () = assert!(LOOK_EVERY > 1 && REMEMBERED_MIN >= LOOK_EVERY);

/// The place at which a scan looks for a gap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    /// Before all keys.
    First,
    /// At its target.
    Target,
    /// At its last key, which is deleted.
    Key,
}

impl Here {
    /// The place; `None` is before all keys.
    pub(super) fn place<'a>(self, target: &'a [u8], user_key: &'a [u8]) -> Option<EdgeAt<'a>> {
        match self {
            Here::First => None,
            Here::Target => Some(EdgeAt::of(target)),
            Here::Key => Some(EdgeAt::before(user_key)),
        }
    }
}

/// The result of a look for a gap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// There is no gap.
    None,
    /// The scan is behind the gap.
    Done,
    /// No key is behind the gap.
    ToEnd,
}

/// The place at which a walk began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// At the deleted key at which it first looks for a gap: the keys before are not known.
    Somewhere,
    /// Before all keys.
    First,
    /// At the scan's target, as long as that is not overwritten.
    Target,
    /// At the edge that is kept.
    Kept,
}

/// A walk over deleted keys, and nothing else.
pub(super) struct Walk {
    deleted: u32,
    begin: Begin,
    /// Left as it is when the walk ends: that happens at every key that a scan returns.
    edge: Option<Edge>,
}

impl Walk {
    /// Makes a walk over no key.
    pub(super) fn new() -> Walk {
        Walk { deleted: 0, begin: Begin::Somewhere, edge: None }
    }

    /// Ends it: the scan is at a key that is not deleted.
    #[inline]
    pub(super) fn clear(&mut self) {
        (self.deleted, self.begin) = (0, Begin::Somewhere);
    }

    /// Begins a walk at the place to which the scan is positioned.
    #[inline]
    pub(super) fn begin(&mut self, here: Here) {
        self.deleted = 0;
        self.begin = match here {
            Here::First => Begin::First,
            Here::Target => Begin::Target,
            Here::Key => Begin::Somewhere,
        };
    }

    /// Keeps its beginning before the target is overwritten.
    #[inline]
    pub(super) fn leave_target(&mut self, target: &[u8]) {
        if self.begin == Begin::Target {
            self.keep(EdgeAt::of(target));
        }
    }

    fn keep(&mut self, begin: EdgeAt<'_>) {
        (self.begin, self.edge) = (Begin::Kept, Some(begin.to_edge()));
    }

    /// Counts a deleted key. Returns whether it is time to look for a gap.
    #[inline]
    pub(super) fn count(&mut self) -> bool {
        self.deleted += 1;
        self.deleted.is_multiple_of(LOOK_EVERY)
    }

    /// Makes sure that its beginning is known, at the latest at `user_key`, which is deleted.
    pub(super) fn settle_begin(&mut self, user_key: &[u8], is_forward: bool, target: &[u8]) {
        self.leave_target(target);
        if self.begin == Begin::Somewhere {
            self.keep(EdgeAt { key: user_key, after: !is_forward });
        }
    }

    /// Whether it is worth remembering.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.deleted >= REMEMBERED_MIN
    }

    /// Remembers it, up to `user_key`, where it ends; `is_deleted` says whether the key is a part
    /// of it.
    #[cold]
    pub(super) fn remember(
        &mut self,
        owner: &ReadOwner,
        is_forward: bool,
        (user_key, is_deleted): (&[u8], bool),
        found: ReadPoint,
    ) {
        let far = EdgeAt { key: user_key, after: is_forward == is_deleted }.to_edge();
        let (begin, edge) = (self.begin, self.edge.take());
        self.clear();
        let span = match (begin, edge) {
            (Begin::First, _) => GapSpan { start: None, end: far },
            (Begin::Kept, Some(near)) if is_forward => GapSpan { start: Some(near), end: far },
            (Begin::Kept, Some(near)) => GapSpan { start: Some(far), end: near },
            _ => {
                debug_assert!(false, "a long walk was never asked where it began");
                return;
            }
        };
        owner.gaps.record(&owner.order, &owner.blocks, span, found);
    }
}
