//! Who must see writes in the order in which they get their sequence numbers.
//!
//! All are told at one place, under the commit queue's lock, where the numbers are given out:
//! - transactions: each write is recorded, and a commit is admitted by the record (`recent.rs`);
//! - gaps: what is put is cut out of them before it is visible (`gaps.rs`);
//! - reads: a view that was taken before an ingestion lacks its tables, and is taken again.
//!
//! Where nobody looks, a writer asks two flags. Transactions that lock keys see no writes by that,
//! only each other (`key_locks.rs`).
//!
//! Owns: the list, and the order: told, then written, then visible. Never does: write.

use crate::tree::Tree;
use crate::tree::trees::Keyspaces;
use crate::write::batch::Touched;
use crate::write::read_set::ReadSet;
use crate::write::recent::{RecentWrites, Verdict};
use std::sync::Arc;
use windrow_base::SeqNo;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow_format::batch::BatchBuf;

/// The observers of a database's writes.
pub struct Observers {
    /// What transactions are admitted by.
    pub recent: RecentWrites,
    /// A keyspace has had a gap: from then on writers look which ones do.
    has_gaps: AtomicBool,
    /// Ingestions that were installed, whether they are published or not.
    ingestions: AtomicU64,
}

/// The keyspaces of a write that have gaps, which what it puts must be cut out of before it is
/// visible.
#[derive(Default)]
pub struct Watching(Vec<Arc<Tree>>);

impl Observers {
    /// None yet; the record of recent writes takes at most so many bytes.
    pub fn new(recent_bytes_max: usize) -> Observers {
        Observers {
            recent: RecentWrites::new(recent_bytes_max),
            has_gaps: AtomicBool::new(false),
            ingestions: AtomicU64::new(0),
        }
    }

    /// Whether a write is of interest to none of them. Under the queue's lock.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.recent.is_on() && !self.has_gaps.load(Ordering::Relaxed)
    }

    /// A gap is about to be listed. Under the queue's lock: who is given a number after that
    /// looks for gaps.
    pub(crate) fn watch_gaps(&self) {
        self.has_gaps.store(true, Ordering::Relaxed);
    }

    /// Whether nothing of what was read has been written since. Under the queue's lock, after
    /// `last_seq` was given out.
    pub(crate) fn admit(&self, reads: &ReadSet, last_seq: SeqNo) -> Verdict {
        // Where nobody has written anything, nobody need have recorded it.
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
            // Of a keyspace that was dropped, some order.
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

    /// An ingestion was installed, and is not published.
    pub fn installed_ingestion(&self) {
        self.ingestions.fetch_add(1, Ordering::AcqRel);
    }

    /// How many were installed: a view that was taken before the last one lacks its tables.
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

    /// Cuts what is put out of the gaps.
    #[cold]
    pub fn cut(&self, buf: &BatchBuf) {
        for tree in &self.0 {
            let ops = buf.ops().filter(|op| op.keyspace == tree.id);
            tree.reads.gaps.note_writes(&tree.reads.order, &tree.reads.blocks, ops);
        }
    }
}
