//! The observers that must see writes in the order in which they get their sequence numbers.
//!
//! All are told at one place, under the commit queue's lock, where the numbers are given out:
//! - transactions: each write is recorded, and a commit is admitted by the record
//!   (`recent_writes.rs`);
//! - gaps: the keys that are put are cut out of them before they are visible (`read/src/gaps`);
//! - reads: a view that was taken before an ingestion lacks its tables, and is taken again.
//!
//! If there are no observers, a writer checks two flags. A lock on a key shows its transaction no
//! writes, only other transactions (`key_locks.rs`).
//!
//! Owns: the list, and the order: told, then written, then visible. Never does: write.

use crate::tree::Tree;
use crate::tree::keyspace_list::Keyspaces;
use crate::write::batch::Touched;
use crate::write::read_set::ReadSet;
use crate::write::recent_writes::{RecentWrites, Verdict};
use std::sync::Arc;
use windrow_base::SeqNo;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow_format::batch::BatchBuf;

/// The observers of a database's writes.
pub struct Observers {
    /// The record by which transactions are admitted.
    pub recent: RecentWrites,
    /// Whether a keyspace has had a gap: from then on writers look which ones do.
    has_gaps: AtomicBool,
    /// The number of ingestions that were installed, published or not.
    ingestions: AtomicU64,
}

/// The keyspaces of a write that have gaps. The keys that it puts must be cut out of them before
/// the write is visible.
#[derive(Default)]
pub struct Watching(Vec<Arc<Tree>>);

impl Observers {
    /// Makes them with no observer yet; the record of recent writes takes at most
    /// `recent_bytes_max`.
    pub fn new(recent_bytes_max: usize) -> Observers {
        Observers {
            recent: RecentWrites::new(recent_bytes_max),
            has_gaps: AtomicBool::new(false),
            ingestions: AtomicU64::new(0),
        }
    }

    /// Whether no observer needs to see a write. Under the queue's lock.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.recent.is_on() && !self.has_gaps.load(Ordering::Relaxed)
    }

    /// Announces that a gap is about to be listed. Under the queue's lock: a writer that gets a
    /// number after that looks for gaps.
    pub(crate) fn watch_gaps(&self) {
        self.has_gaps.store(true, Ordering::Relaxed);
    }

    /// Whether none of the keys that were read was written since. Under the queue's lock, after
    /// `last_seq` was given out.
    pub(crate) fn admit(&self, reads: &ReadSet, last_seq: SeqNo) -> Verdict {
        // If nothing was written since, nothing need be recorded.
        if reads.is_as_of(last_seq) { Verdict::Unchanged } else { self.recent.check(reads) }
    }

    /// Tells of a batch that was given numbers from `first_seq` on. Under the queue's lock.
    #[cold]
    pub fn given(
        &self,
        keyspaces: &Keyspaces,
        touched: &[Touched],
        buf: &BatchBuf,
        first_seq: SeqNo,
    ) -> Watching {
        let trees = keyspaces.load();
        if self.recent.is_on() {
            // For a keyspace that was dropped, any order serves.
            let order_of = |id| trees.get(id).map(|tree| tree.reads.order.clone());
            self.recent.record(buf, first_seq, |id| order_of(id).unwrap_or_default());
        }
        if !self.has_gaps.load(Ordering::Relaxed) {
            return Watching::default();
        }
        let touched = touched.iter().filter_map(|touch| trees.get(touch.id));
        Watching(touched.filter(|tree| tree.reads.gaps.is_armed()).cloned().collect())
    }

    /// Tells of an ingestion of the keys from the first to the last. Under the queue's lock.
    pub(crate) fn given_ingestion(&self, tree: &Tree, bounds: (&[u8], &[u8]), seq: SeqNo) {
        if self.recent.is_on() {
            self.recent.record_ingestion(tree.id, &tree.reads.order, bounds, seq);
        }
    }

    /// Notes that an ingestion was installed, and is not published.
    pub fn installed_ingestion(&self) {
        self.ingestions.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of installed ingestions: a view that was taken before the last one lacks its
    /// tables.
    #[inline]
    pub fn ingestions(&self) -> u64 {
        self.ingestions.load(Ordering::Acquire)
    }
}

impl Watching {
    /// Whether there is nothing to cut.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Cuts the keys that a batch puts out of the gaps.
    #[cold]
    pub fn cut(&self, buf: &BatchBuf) {
        for tree in &self.0 {
            let ops = buf.ops().filter(|op| op.keyspace == tree.id);
            tree.reads.gaps.note_writes(&tree.reads.order, &tree.reads.blocks, ops);
        }
    }
}
