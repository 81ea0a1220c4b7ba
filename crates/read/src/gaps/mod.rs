//! Gaps: ranges of a keyspace in which a scan found deleted keys alone. A later scan goes to the
//! other end of a gap at once: the head of a queue is found without a walk over the tombstones of
//! all entries that were taken from it.
//!
//! A gap was found at a sequence number S. It says that no key of its range is visible at S, and
//! that no write above S which could change this has been published. Deletes keep that true; puts
//! and merge operands do not. So a reader at R may use it if S <= R: a key of the range that it
//! could see was put above S and published before the reader took R. Three steps keep the range
//! free of such keys:
//!
//! 1. A scan's range is recorded in three moves, under one lock: the range is watched, which
//!    writers see; the last sequence number that was given out, N, is asked for under the commit
//!    queue's lock; the range is listed.
//! 2. A writer looks at the list after it was given its sequence numbers under the commit queue's
//!    lock, and before it is published. A writer above N had that lock after the scan, so it sees
//!    the range watched or listed. It then cuts its keys out of all ranges, for which it waits for
//!    the lock of the gaps: a reader that may see the write finds the range cut.
//! 3. Writers in S+1..=N may have come too early to be noticed. If there are none (N <= S), the
//!    range is a gap at once. Otherwise it is pending until a scan at some S2 >= N finds it empty
//!    as well: that scan has seen their writes, and the range was watched for all others. It is
//!    then a gap from S2 on.
//!
//! A `resume` gives sequence numbers out again that no reader was at. A writer that gets them sees
//! the ranges as any writer does; those that failed with them are never published.
//!
//! Expired entries are in no gap, since the clock may be set back. But a merge may have dropped an
//! expired entry, or one that a compaction filter removed, after a reader got hold of its view, in
//! which the entry still exists. So a gap knows how many versions of the tree were installed before
//! the view that it was found in, and a reader of a view with fewer does not use it. Otherwise
//! merges make nothing visible that was not. A keyspace that is made again has a list of its own.
//!
//! An ingestion has a sequence number of its own, as a writer has, and forgets all ranges between
//! that number and its publication. Nothing else puts entries into a tree that is open: replay and
//! repair have ended before its first scan, and flushes, merges and `resume` write published
//! entries again. A delete, also of a span of keys, makes nothing visible; a put into the deleted
//! span is a put. A batch is cut out of the gaps of every keyspace that it touches before it is
//! published in any. A key that has versions above S alone counts as deleted: they were put above
//! S, for which see 2 and 3. Places are compared as the keyspace orders its keys, so that a key is
//! cut out under all its spellings, and both ways of a scan mean the same span. Bounds and prefixes
//! only end a walk early: its range ends at the last key that it decided on.
//!
//! Readers, and writers of keys that are in no range, take no lock. Rejected: to count the highest
//! put of each range in the memtable, which costs every put; to compare with the sequence number of
//! the last put to the keyspace, which turns off every gap of a queue, since a queue is put to.
//!
//! Owns: the list, of a bounded size. Never does: read an entry.

pub mod edge;
mod list;

pub use list::{GapSpan, ReadPoint};

use crate::cache::BlockCache;
use crate::gaps::edge::{Edge, EdgeAt};
use crate::lock_ranks;
use list::List;
use std::sync::{Arc, OnceLock};
use windrow_base::key::Kind;
use windrow_base::{KeyOrder, SeqNo, unless_mutant};
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_env::sync::{ArcSwapOption, Mutex};
use windrow_format::batch::Op;
use windrow_format::block::Charge;

/// Most bytes of a key at which a range begins or ends.
const EDGE_BYTES_MAX: usize = 512;

/// Returns the last sequence number that was given out.
type AskLastGiven = dyn Fn() -> Option<SeqNo> + Send + Sync;

/// The source of the last sequence number that was given out: the commit queue, which is made after
/// the first keyspaces.
#[derive(Default)]
pub struct LastGiven(OnceLock<Box<AskLastGiven>>);

impl LastGiven {
    /// Sets the function that asks the queue; it takes the queue's lock.
    #[inline]
    pub fn ask_by(&self, ask: impl Fn() -> Option<SeqNo> + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(ask));
    }

    fn get(&self) -> Option<SeqNo> {
        self.0.get()?()
    }
}

/// The keys beyond a gap.
#[derive(Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The keys from here on, in the reader's direction.
    From(Edge),
    Nothing,
}

/// The gaps of a keyspace. An idle keyspace has none.
pub struct Gaps {
    last_given: Arc<LastGiven>,
    /// Made by the first scan that records a range.
    shared: OnceLock<Box<SharedGaps>>,
}

struct SharedGaps {
    /// Whether there is a list. It saves a look for writers that need none.
    is_armed: AtomicBool,
    /// Replaced whole, under the lock.
    list: ArcSwapOption<List>,
    /// Taken to change the list; the memory of the list is charged to readers.
    changing: Mutex<Option<Charge>>,
}

impl Gaps {
    /// Makes them with no gap yet.
    pub fn new(last_given: Arc<LastGiven>) -> Gaps {
        Gaps { last_given, shared: OnceLock::new() }
    }

    /// Whether there may be any range. A writer asks under the commit queue's lock, which orders it
    /// after the scans that recorded one before.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.shared.get().is_some_and(|shared| shared.is_armed.load(Ordering::Relaxed))
    }

    /// Cuts the keys that a writer may make visible out of all ranges. For a writer that has its
    /// sequence numbers and is not published.
    pub fn note_writes<'a>(
        &self,
        order: &KeyOrder,
        blocks: &BlockCache,
        ops: impl Iterator<Item = Op<'a>> + Clone,
    ) {
        let Some(shared) = self.shared.get() else { return };
        let puts = ops.filter(|op| !is_delete(op.kind));
        let is_held = |list: &List| puts.clone().any(|op| list.holds(order, op.key));
        if !shared.list.load().as_deref().is_some_and(is_held) {
            return;
        }
        let mut charge = shared.changing.lock();
        let Some(list) = shared.list.load_full() else { return };
        let mut list = (*list).clone();
        unless_mutant!(GapKept, puts.for_each(|op| list.cut(order, op.key, EDGE_BYTES_MAX)));
        shared.put(list, &mut charge, blocks);
    }

    /// Forgets all ranges. For an ingestion that has its sequence number and is not published.
    pub fn forget(&self, blocks: &BlockCache) {
        let Some(shared) = self.shared.get() else { return };
        let mut charge = shared.changing.lock();
        unless_mutant!(IngestedIntoGap, shared.put(List::default(), &mut charge, blocks));
    }

    /// Returns the keys beyond the gap that a reader meets at a place (`None`: before all keys) in
    /// its direction, if it meets one. The reader took its sequence number before.
    pub fn beyond(
        &self,
        order: &KeyOrder,
        is_forward: bool,
        place: Option<EdgeAt<'_>>,
        reader: ReadPoint,
    ) -> Option<Beyond> {
        let list = self.shared.get()?.list.load();
        let gap = list.as_deref()?.gap_at(order, is_forward, place, reader)?;
        let edge = if is_forward { Some(&gap.end) } else { gap.start.as_ref() };
        Some(edge.map_or(Beyond::Nothing, |edge| Beyond::From(edge.clone())))
    }

    /// Remembers that a scan found deleted keys alone in a span.
    #[cold]
    pub fn record(&self, order: &KeyOrder, blocks: &BlockCache, span: GapSpan, found: ReadPoint) {
        if span.is_empty(order) || span.edge_bytes_max() > EDGE_BYTES_MAX {
            return;
        }
        let none = || SharedGaps {
            is_armed: AtomicBool::new(false),
            list: ArcSwapOption::new(None),
            changing: Mutex::new(lock_ranks::GAPS, None),
        };
        let shared = self.shared.get_or_init(|| Box::new(none()));
        let mut charge = shared.changing.lock();
        let mut list = shared.list.load().as_deref().cloned().unwrap_or_default();
        list.watch(span);
        // Before the sequence number is asked for: a writer that gets a later one finds both.
        shared.list.store(Some(Arc::new(list.clone())));
        shared.is_armed.store(true, Ordering::Relaxed);
        list.list_watched(order, found, self.last_given.get());
        shared.put(list, &mut charge, blocks);
    }
}

impl SharedGaps {
    /// Puts a list in place, or none, and charges its memory: a cut adds keys as well.
    fn put(&self, list: List, charge: &mut Option<Charge>, blocks: &BlockCache) {
        if list.is_empty() {
            *charge = None;
            self.is_armed.store(false, Ordering::Relaxed);
            self.list.store(None);
        } else {
            *charge = Some(blocks.hold(list.bytes() as u64));
            self.list.store(Some(Arc::new(list)));
        }
    }
}

/// Whether an entry makes no key visible.
fn is_delete(kind: Kind) -> bool {
    matches!(kind, Kind::Delete | Kind::SingleDelete | Kind::RangeDelete)
}
