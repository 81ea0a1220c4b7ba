//! Snapshots: a state of the database that stays readable, and the list of
//! those that are alive: which sequence numbers somebody may still read
//! at, and the times at which they judge expiry.
//!
//! A merge takes one copy of it at its start: a snapshot made later has a
//! sequence number above everything in the merge's inputs, so it needs
//! nothing that the copy would let go.

use crate::core::Core;
use crate::keyspace::Keyspace;
use crate::read::cursor::Iter;
use crate::slice::Slice;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;
use windrow_base::{KeyspaceId, Result, SeqNo, mutant};
use windrow_env::sync::Mutex;

/// The snapshots that are held now.
#[derive(Default)]
pub(crate) struct SnapshotList {
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    next_id: u64,
    /// (sequence number, id) -> wall time in ms at which it was taken.
    by_seq: BTreeMap<(SeqNo, u64), u64>,
}

/// What a merge must respect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Sequence numbers that are read at, ascending, without repeats.
    pub(crate) seqs: Vec<SeqNo>,
    /// The earliest time at which a snapshot judges expiry.
    pub(crate) time_min_ms: Option<u64>,
}

impl SnapshotList {
    /// Registers a snapshot at the sequence number that `seq` reads, with the
    /// list locked, so that no merge can miss it. Returns (seq, id).
    pub(crate) fn register(&self, seq: impl FnOnce() -> SeqNo, now_ms: u64) -> (SeqNo, u64) {
        let mut live = self.live.lock();
        let seq = seq();
        let id = live.next_id;
        live.next_id += 1;
        live.by_seq.insert((seq, id), now_ms);
        (seq, id)
    }

    /// Forgets a snapshot.
    pub(crate) fn release(&self, seq: SeqNo, id: u64) {
        self.live.lock().by_seq.remove(&(seq, id));
    }

    /// What is held now.
    pub(crate) fn held(&self) -> Held {
        if mutant!(SnapshotForgotten) {
            return Held::default();
        }
        let live = self.live.lock();
        let mut seqs: Vec<SeqNo> = live.by_seq.keys().map(|&(seq, _)| seq).collect();
        seqs.dedup();
        Held { seqs, time_min_ms: live.by_seq.values().copied().min() }
    }

    /// How many snapshots are held.
    pub(crate) fn len(&self) -> usize {
        self.live.lock().by_seq.len()
    }
}

impl Held {
    /// The stripe of a sequence number: how many held snapshots lie below it.
    /// Two entries of a key in one stripe are told apart by no snapshot.
    pub(crate) fn stripe(&self, seq: SeqNo) -> usize {
        if self.seqs.is_empty() {
            return 0;
        }
        self.seqs.partition_point(|&held| held < seq || mutant!(StripeOffByOne) && held == seq)
    }
}

/// A state of all keyspaces at one moment, readable for as long as it is held.
///
/// Owned, cheap to clone, `Send`. What it alone can see is kept on disk until
/// the last clone drops. Expiry is judged at the time it was taken.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) inner: Arc<SnapshotInner>,
}

pub(crate) struct SnapshotInner {
    pub(crate) core: Arc<Core>,
    pub(crate) seq: SeqNo,
    pub(crate) now_ms: u64,
    id: u64,
}

impl Drop for SnapshotInner {
    fn drop(&mut self) {
        self.core.snapshots.release(self.seq, self.id);
    }
}

impl Snapshot {
    pub(crate) fn take(core: &Arc<Core>) -> Snapshot {
        let now_ms = core.now_ms();
        let (seq, id) = core.snapshots.register(|| core.queue.visible(), now_ms);
        Snapshot { inner: Arc::new(SnapshotInner { core: core.clone(), seq, now_ms, id }) }
    }

    /// The sequence number of the last write that it sees.
    pub fn seq(&self) -> SeqNo {
        self.inner.seq
    }

    fn default_keyspace(&self) -> Result<Keyspace> {
        Ok(Keyspace::new(self.inner.core.clone(), self.inner.core.tree(KeyspaceId::DEFAULT)?))
    }

    /// The value of `key` in the default keyspace.
    ///
    /// # Errors
    /// As [`crate::Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.default_keyspace()?.get_at(self, key)
    }

    /// The entries of a range of the default keyspace.
    pub fn range<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<K>) -> Iter {
        let keyspace = self.default_keyspace().expect("the default keyspace cannot be dropped");
        keyspace.range_at(self, bounds)
    }

    /// The entries of the default keyspace whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let keyspace = self.default_keyspace().expect("the default keyspace cannot be dropped");
        keyspace.prefix_at(self, prefix)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot(seq {})", self.seq())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_count_the_snapshots_below() {
        let list = SnapshotList::default();
        let (_, a) = list.register(|| 10, 500);
        let (_, _b) = list.register(|| 20, 400);
        let (_, c) = list.register(|| 20, 600);
        let held = list.held();
        assert_eq!(held.seqs, [10, 20]);
        assert_eq!(held.time_min_ms, Some(400));
        let stripes: Vec<_> = [1, 10, 11, 20, 21].iter().map(|&s| held.stripe(s)).collect();
        assert_eq!(stripes, [0, 0, 1, 1, 2]);
        list.release(10, a);
        list.release(20, c);
        assert_eq!((list.held().seqs, list.len()), (vec![20], 1));
    }
}
