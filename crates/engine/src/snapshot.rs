//! Snapshots: a state of the database that stays readable, and the list of
//! those that are alive: which sequence numbers somebody may still read
//! at, and the times at which they judge expiry.
//!
//! A merge takes one copy of it at its start: a snapshot made later has a
//! sequence number above everything in the merge's inputs, so it needs
//! nothing that the copy would let go by sequence numbers. What a compaction
//! filter or the clock took is another matter: the snapshot may have read it
//! while the merge ran. So a merge of which something was taken that way asks
//! before it *lands* (becomes part of the tree), and does not where that is so.

use crate::handle::Handle;
use crate::keyspace::Keyspace;
use crate::read::cursor::Iter;
use crate::slice::Slice;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;
use windrow_base::{Error, KeyspaceId, Result, SeqNo, mutant};
use windrow_env::sync::{Condvar, Mutex};

/// The snapshots that are held now.
#[derive(Default)]
pub(crate) struct SnapshotList {
    live: Mutex<Live>,
    landed: Condvar,
}

#[derive(Default)]
struct Live {
    next_id: u64,
    /// (sequence number, id) -> wall time in ms at which it was taken.
    by_seq: BTreeMap<(SeqNo, u64), u64>,
    /// What a filter took is going: a snapshot taken now could see it both
    /// there and gone.
    landing: bool,
}

/// What a merge must respect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Sequence numbers that are read at, ascending, without repeats.
    pub(crate) seqs: Vec<SeqNo>,
    /// The earliest time at which a snapshot judges expiry.
    pub(crate) time_min_ms: Option<u64>,
    /// The id of the next snapshot: those that the merge does not know have it or a later one.
    pub(crate) next_id: u64,
}

/// What a merge took that a snapshot taken since it began may still see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The first id of those snapshots.
    pub(crate) since_id: u64,
    /// A compaction filter removed or changed a value.
    pub(crate) filtered: bool,
    /// Entries went because they had expired by this time, in ms since 1970; 0: none.
    pub(crate) expired_ms: u64,
}

/// While it lives, what a merge took becomes part of the tree.
pub(crate) struct Landing<'a> {
    list: &'a SnapshotList,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.list.end_landing();
    }
}

impl SnapshotList {
    /// Registers a snapshot at the moment that `moment` reads (sequence number
    /// and wall time in ms), with the list locked, so that no merge can miss
    /// it. Waits for a landing to end. Returns (seq, wall time, id).
    pub(crate) fn register(&self, moment: impl FnOnce() -> (SeqNo, u64)) -> (SeqNo, u64, u64) {
        let mut live = self.live.lock();
        while live.landing {
            self.landed.wait(&mut live);
        }
        let (seq, now_ms) = moment();
        let id = live.next_id;
        live.next_id += 1;
        live.by_seq.insert((seq, id), now_ms);
        (seq, now_ms, id)
    }

    /// Begins the landing of what a merge took; at most one at a time, which the
    /// manifest's lock sees to. `None` if a snapshot that the merge does not
    /// know would miss it.
    ///
    /// A snapshot taken from here on judges expiry no earlier than the merge did
    /// (`Core::now_ms`, of which the floor is raised by now), so that it need
    /// wait only for what a filter took.
    pub(crate) fn land(&self, taken: &Taken) -> Option<Landing<'_>> {
        let mut live = self.live.lock();
        let misses = |(&(_, id), &now_ms): (&(SeqNo, u64), &u64)| {
            id >= taken.since_id && (taken.filtered || now_ms < taken.expired_ms)
        };
        if live.by_seq.iter().any(misses) && !mutant!(LandsUnderSnapshot) {
            return None;
        }
        live.landing = taken.filtered;
        Some(Landing { list: self })
    }

    /// Ends a landing, if there is one.
    pub(crate) fn end_landing(&self) {
        let mut live = self.live.lock();
        if std::mem::take(&mut live.landing) {
            self.landed.notify_all();
        }
    }

    /// The id of the next snapshot: those that are registered have lower ones.
    pub(crate) fn next_id(&self) -> u64 {
        self.live.lock().next_id
    }

    /// Forgets a snapshot.
    pub(crate) fn release(&self, seq: SeqNo, id: u64) {
        self.live.lock().by_seq.remove(&(seq, id));
    }

    /// What is held now.
    pub(crate) fn held(&self) -> Held {
        if mutant!(SnapshotForgotten) {
            return Held { next_id: u64::MAX, ..Held::default() };
        }
        let live = self.live.lock();
        let mut seqs: Vec<SeqNo> = live.by_seq.keys().map(|&(seq, _)| seq).collect();
        seqs.dedup();
        let time_min_ms = live.by_seq.values().copied().min();
        Held { seqs, time_min_ms, next_id: live.next_id }
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

/// A state of all keyspaces at one moment, readable for as long as it is held,
/// after [`crate::Db::close`] too; a keyspace that was dropped since, through a
/// handle of it that is kept. It keeps the database open, as a clone of
/// [`crate::Db`] does. (Files that it reads may go, which is an
/// error, once somebody else opens the closed database.)
///
/// Owned, cheap to clone, `Send`. What it alone can see is kept on disk until
/// the last clone drops. Expiry is judged at the time it was taken.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) inner: Arc<SnapshotInner>,
}

pub(crate) struct SnapshotInner {
    pub(crate) core: Handle,
    pub(crate) seq: SeqNo,
    pub(crate) now_ms: u64,
    pub(crate) id: u64,
    /// It was taken before the database was closed.
    was_open: bool,
}

impl Drop for SnapshotInner {
    fn drop(&mut self) {
        // A forked child's copy is not on the list.
        if self.core.latch.is_of_this_process() {
            self.core.snapshots.release(self.seq, self.id);
        }
    }
}

impl Snapshot {
    pub(crate) fn take(core: &Handle) -> Snapshot {
        let moment = || (core.queue.visible(), core.now_ms());
        let (seq, now_ms, id) = match core.latch.is_of_this_process() {
            true => core.snapshots.register(moment),
            // Nothing will be read of it.
            false => (0, 0, 0),
        };
        let was_open = core.latch.check_read().is_ok();
        let core = core.clone();
        Snapshot { inner: Arc::new(SnapshotInner { core, seq, now_ms, id, was_open }) }
    }

    /// Whether it shows a state of this open database.
    ///
    /// # Errors
    /// `InvalidArgument` if it is of another one; `Closed` if it was taken
    /// when the database was closed already.
    pub(crate) fn check_of(&self, core: &Handle) -> Result<()> {
        if !self.inner.core.is_of(core) {
            return Err(Error::invalid("the snapshot is of another open database"));
        }
        if self.inner.was_open { core.latch.check_process() } else { core.latch.check_read() }
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
    /// As [`crate::Db::get`]; `Closed` only if it was taken after a close.
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
        let register = |seq, now_ms| list.register(|| (seq, now_ms)).2;
        let (a, _b, c) = (register(10, 500), register(20, 400), register(20, 600));
        let held = list.held();
        assert_eq!(held.seqs, [10, 20]);
        assert_eq!(held.time_min_ms, Some(400));
        let stripes: Vec<_> = [1, 10, 11, 20, 21].iter().map(|&s| held.stripe(s)).collect();
        assert_eq!(stripes, [0, 0, 1, 1, 2]);
        list.release(10, a);
        list.release(20, c);
        assert_eq!((list.held().seqs, list.len()), (vec![20], 1));
    }
    #[test]
    fn what_a_later_snapshot_sees_does_not_land() {
        let list = SnapshotList::default();
        let (_, _, before) = list.register(|| (1, 100));
        let since_id = list.held().next_id;
        let filtered = Taken { since_id, filtered: true, expired_ms: 0 };
        let expired = Taken { since_id, filtered: false, expired_ms: 50 };
        assert!(list.land(&filtered).is_some(), "the merge knew of the only one");
        let (_, _, early) = list.register(|| (2, 49));
        assert!(list.land(&filtered).is_none() && list.land(&expired).is_none());
        list.release(2, early);
        let (_, _, late) = list.register(|| (2, 50));
        assert!(list.land(&filtered).is_none() && list.land(&expired).is_some());
        list.release(2, late);
        assert!(list.land(&filtered).is_some());
        list.release(1, before);
        assert_eq!(list.register(|| (3, 0)).0, 3, "a landing has ended with its guard");
    }
}
