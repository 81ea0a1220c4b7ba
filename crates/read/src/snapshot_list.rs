//! The list of the snapshots that are alive: which sequence numbers somebody may
//! still read at, and the times at which they judge expiry.
//!
//! A merge takes one copy of it at its start: a snapshot made later has a
//! sequence number above everything in the merge's inputs, so it needs
//! nothing that the copy would let go by sequence numbers. Entries that a compaction
//! filter or expiry dropped are another matter: such a snapshot may have read them
//! while the merge ran. So before a merge that dropped entries in this way is *installed*
//! (becomes part of the tree), it asks for snapshots that it does not know. If there is one, the merge
//! runs again without the filter. While a merge whose filter dropped entries is installed, no
//! snapshot is registered (the install barrier).
//!
//! Owns: the list, and whether a merge may be installed. Never does: read, or drop entries.

use crate::lock_ranks;
use std::collections::BTreeMap;
use windrow_base::{SeqNo, debug_invariant, invariant};
use windrow_env::sync::{Condvar, Mutex};

/// The snapshots that are held now.
pub struct SnapshotList {
    live: Mutex<Live>,
    installed: Condvar,
}

#[derive(Default)]
struct Live {
    next_id: u64,
    /// (sequence number, id) -> wall time in ms at which it was taken.
    by_seq: BTreeMap<(SeqNo, u64), u64>,
    /// Entries that a filter dropped are going: a snapshot taken now could see them both
    /// there and gone.
    installing: bool,
}

/// The snapshots that a merge must respect.
#[derive(Clone, Debug, Default)]
pub struct LiveSnapshots {
    /// Sequence numbers that are read at, ascending, without repeats.
    pub seqs: Vec<SeqNo>,
    /// The earliest time at which a snapshot judges expiry.
    pub time_min_ms: Option<u64>,
    /// The id of the next snapshot: those that the merge does not know have it or a later one.
    pub next_id: u64,
}

/// The entries that a merge dropped and that a snapshot taken since it began may still see.
#[derive(Clone, Copy, Debug)]
pub struct DroppedEntries {
    /// The first id of those snapshots.
    pub since_id: u64,
    /// A compaction filter removed or changed a value.
    pub filtered: bool,
    /// Entries went because they had expired by this time, in ms since 1970; 0: none.
    pub expired_ms: u64,
}

/// The install barrier: while it exists, a merge becomes part of the tree.
pub struct InstallBarrier<'a> {
    list: &'a SnapshotList,
}

impl Drop for InstallBarrier<'_> {
    fn drop(&mut self) {
        self.list.lower_barrier();
    }
}

impl Default for SnapshotList {
    fn default() -> SnapshotList {
        let live = Mutex::new(lock_ranks::SNAPSHOTS, Live::default());
        SnapshotList { live, installed: Condvar::new() }
    }
}

impl SnapshotList {
    /// Registers a snapshot at the moment that `moment` reads (sequence number
    /// and wall time in ms), with the list locked, so that no merge can miss
    /// it. Waits while a merge is installed. Returns (seq, wall time, id).
    pub fn register(&self, moment: impl FnOnce() -> (SeqNo, u64)) -> (SeqNo, u64, u64) {
        let mut live = self.live.lock();
        while live.installing {
            self.installed.wait(&mut live);
        }
        let (seq, now_ms) = moment();
        let is_newest = || live.by_seq.keys().next_back().is_none_or(|(newest, _)| *newest <= seq);
        debug_invariant!(I6, is_newest(), "a snapshot at {seq} is older than one before");
        let id = live.next_id;
        live.next_id += 1;
        let before = live.by_seq.insert((seq, id), now_ms);
        invariant!(I6, before.is_none(), "two snapshots have the id {id}");
        (seq, now_ms, id)
    }

    /// Begins to install what a merge made; at most one at a time, which the
    /// manifest's lock sees to. `None` if a snapshot that the merge does not
    /// know would miss it.
    ///
    /// A snapshot taken from here on judges expiry no earlier than the merge did
    /// (the floor of `Host::now_ms` is raised by now), so that it need
    /// wait only for a filter's drops.
    pub fn raise_barrier(&self, taken: &DroppedEntries) -> Option<InstallBarrier<'_>> {
        let mut live = self.live.lock();
        invariant!(I6, !live.installing, "two merges are installed at once");
        let misses = |(&(_, id), &now_ms): (&(SeqNo, u64), &u64)| {
            id >= taken.since_id && (taken.filtered || now_ms < taken.expired_ms)
        };
        if live.by_seq.iter().any(misses) {
            return None;
        }
        live.installing = taken.filtered;
        Some(InstallBarrier { list: self })
    }

    /// Ends the install, if there is one.
    pub fn lower_barrier(&self) {
        let mut live = self.live.lock();
        if std::mem::take(&mut live.installing) {
            self.installed.notify_all();
        }
    }

    /// The id of the next snapshot: those that are registered have lower ones.
    pub fn next_id(&self) -> u64 {
        self.live.lock().next_id
    }

    /// Forgets a snapshot.
    pub fn release(&self, seq: SeqNo, id: u64) {
        let was_held = self.live.lock().by_seq.remove(&(seq, id)).is_some();
        debug_invariant!(I6, was_held, "snapshot {id} at {seq} is released, and was not held");
    }

    /// The snapshots of this moment.
    pub fn held(&self) -> LiveSnapshots {
        let live = self.live.lock();
        let mut seqs: Vec<SeqNo> = live.by_seq.keys().map(|&(seq, _)| seq).collect();
        seqs.dedup();
        let ascend = seqs.windows(2).all(|pair| pair[0] < pair[1]);
        debug_invariant!(I6, ascend, "snapshots are not in order: {seqs:?}");
        let (next, ids) = (live.next_id, live.by_seq.keys().map(|&(_, id)| id));
        let newest = ids.max();
        debug_invariant!(I6, newest < Some(next), "snapshot {newest:?}, where {next} is next");
        let time_min_ms = live.by_seq.values().copied().min();
        LiveSnapshots { seqs, time_min_ms, next_id: live.next_id }
    }

    /// How many snapshots are held.
    pub fn len(&self) -> usize {
        self.live.lock().by_seq.len()
    }
}

impl LiveSnapshots {
    /// The stripe of a sequence number: how many held snapshots lie below it.
    /// Two entries of a key in one stripe are told apart by no snapshot.
    pub fn stripe(&self, seq: SeqNo) -> usize {
        if self.seqs.is_empty() {
            return 0;
        }
        self.seqs.partition_point(|&held| held < seq)
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
    fn what_a_later_snapshot_sees_is_not_installed() {
        let list = SnapshotList::default();
        let (_, _, before) = list.register(|| (1, 100));
        let since_id = list.held().next_id;
        let filtered = DroppedEntries { since_id, filtered: true, expired_ms: 0 };
        let expired = DroppedEntries { since_id, filtered: false, expired_ms: 50 };
        assert!(list.raise_barrier(&filtered).is_some(), "the merge knew of the only one");
        let (_, _, early) = list.register(|| (2, 49));
        assert!(list.raise_barrier(&filtered).is_none() && list.raise_barrier(&expired).is_none());
        list.release(2, early);
        let (_, _, late) = list.register(|| (2, 50));
        assert!(list.raise_barrier(&filtered).is_none() && list.raise_barrier(&expired).is_some());
        list.release(2, late);
        assert!(list.raise_barrier(&filtered).is_some());
        list.release(1, before);
        assert_eq!(list.register(|| (3, 0)).0, 3, "the barrier went down with its guard");
    }
}
