//! The entries that are in no table yet, by keyspace and by log: the facts that a write, a flush or
//! a new log must know of all keyspaces, without asking each.
//!
//! Part of the commit queue's state, changed under its lock.
//!
//! Owns: the one account of the bytes that memtables were promised. Each byte counts as active or
//! as frozen for as long as its memtable is listed here. A keyspace without writes costs nothing
//! here. Never does: change a memtable's content.

use crate::tree::Tree;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use windrow_base::{FileNumber, KeyspaceId, debug_invariant, invariant};
use windrow_format::block::Account;
use windrow_read::memtable::{LIST_BYTES, Memtable};
use windrow_read::read::view::ReadView;

/// The account is compared with all memtables if there are fewer than this.
const LISTED_CHECKED_MAX: usize = 32;

/// A frozen memtable that waits for its flush.
#[derive(Clone)]
pub struct Frozen {
    pub tree: Arc<Tree>,
    pub memtable: Arc<Memtable>,
}

impl Frozen {
    /// Whether it is in no table yet, and its keyspace exists.
    pub fn is_waiting(&self) -> bool {
        let is_it = |m: &Arc<Memtable>| Arc::ptr_eq(m, &self.memtable);
        !self.tree.is_dropped() && self.tree.view().frozen.iter().any(is_it)
    }
}

/// The memtables that have entries.
#[derive(Default)]
pub struct Unflushed {
    /// Keyspaces whose active memtable has entries.
    active: BTreeMap<KeyspaceId, Arc<Tree>>,
    /// Frozen ones, in the order in which they were frozen.
    frozen: BTreeMap<u64, Frozen>,
    next: u64,
    /// Keyspaces with a memtable that is being flushed.
    flushing: HashSet<KeyspaceId>,
    /// The number of memtables, active or frozen, that have their first record in each log.
    logs: BTreeMap<FileNumber, usize>,
    /// Bytes promised in all active memtables.
    active_bytes: usize,
    /// Bytes of frozen memtables that wait for their flush.
    frozen_bytes: usize,
    /// Bytes of those that are in tables, and whose memory is not free yet.
    leaving: Account,
}

impl Unflushed {
    /// Promises room to a write in a keyspace's active memtable, whose record goes into `log`:
    /// `bytes`, and those of the memtable's list if the write is its first.
    pub(crate) fn promise(
        &mut self,
        tree: &Arc<Tree>,
        memtable: &Memtable,
        bytes: usize,
        log: FileNumber,
    ) {
        let is_first = memtable.first_wal().is_none();
        let bytes = bytes + if is_first { LIST_BYTES } else { 0 };
        let is_active = self.active.contains_key(&tree.id);
        debug_assert!(
            is_first != is_active,
            "`{}`: first {is_first}, active {is_active}",
            tree.name
        );
        memtable.reserve(bytes, log);
        if is_first {
            self.active.insert(tree.id, tree.clone());
            *self.logs.entry(log).or_default() += 1;
        }
        self.active_bytes += bytes;
        let is_kept = |first| first <= log && self.logs.contains_key(&first);
        let is_in_log = || memtable.first_wal().is_some_and(is_kept);
        debug_invariant!(R7, is_in_log(), "a memtable begins in a log that none keeps");
    }

    /// Checks that each listed memtable counts in one log, and that no bytes are promised without
    /// one.
    fn check(&self) {
        let listed = self.active.len() + self.frozen.len();
        let in_logs = self.logs.values().sum::<usize>();
        debug_invariant!(R4, listed == in_logs, "{listed} memtables, of which logs keep {in_logs}");
        let odd = self.frozen.is_empty() && self.frozen_bytes > 0;
        debug_assert!(!odd, "{} bytes of no frozen memtable", self.frozen_bytes);
        if cfg!(debug_assertions) && listed < LISTED_CHECKED_MAX {
            self.check_bytes();
        }
    }

    /// Checks that the account agrees with the promises of each memtable. For the active ones it
    /// may say more: bytes promised in dropped keyspaces.
    fn check_bytes(&self) {
        let active = self.active.values().map(|tree| tree.view().memtable.reserved_bytes());
        let (active, most) = (active.sum::<usize>(), self.active_bytes);
        debug_assert!(active <= most, "active memtables have {active} bytes, {most} counted");
        let frozen = self.frozen.values().map(|frozen| frozen.memtable.reserved_bytes());
        let (frozen, counted) = (frozen.sum::<usize>(), self.frozen_bytes);
        debug_assert_eq!(frozen, counted, "bytes of frozen memtables");
        let mut lost = self.frozen.values().filter(|frozen| frozen.memtable.last_seq() == 0);
        let lost = lost.next().map(|frozen| &frozen.tree.name);
        debug_invariant!(I4, lost.is_none(), "a memtable of {lost:?} is listed as frozen");
    }

    /// Notes that a keyspace's active memtable was frozen.
    pub(crate) fn froze(&mut self, tree: &Arc<Tree>, memtable: &Arc<Memtable>) {
        self.active.remove(&tree.id);
        let bytes = memtable.reserved_bytes();
        let active = self.active_bytes;
        debug_assert!(bytes <= active, "a memtable was promised {bytes} bytes of {active}");
        self.active_bytes = self.active_bytes.saturating_sub(bytes);
        self.frozen_bytes += bytes;
        let frozen = Frozen { tree: tree.clone(), memtable: memtable.clone() };
        let is_twice = self.has_frozen(memtable);
        debug_invariant!(I4, !is_twice, "a memtable of `{}` is frozen twice", tree.name);
        self.frozen.insert(self.next, frozen);
        self.next += 1;
        self.check();
    }

    /// Takes a frozen memtable off the list: its entries are in tables. Its memory counts as frozen
    /// until it is free, or until [`Memtable::count_as`] counts it elsewhere.
    pub fn flushed(&mut self, memtable: &Arc<Memtable>) {
        let mut all = self.frozen.iter();
        let found = all.find(|(_, frozen)| Arc::ptr_eq(&frozen.memtable, memtable));
        if let Some(at) = found.map(|(&at, _)| at) {
            let (bytes, all) = (memtable.reserved_bytes(), self.frozen_bytes);
            invariant!(I4, bytes <= all, "a memtable of {bytes} bytes is flushed, of {all}");
            self.frozen.remove(&at);
            self.frozen_bytes -= memtable.reserved_bytes();
            memtable.count_as(vec![self.leaving.charge(bytes as u64)]);
        }
        self.let_go(memtable);
        self.check();
    }

    /// Notes that a keyspace with these memtables was dropped.
    pub fn dropped(&mut self, tree: &Tree, view: &ReadView) {
        self.active.remove(&tree.id);
        self.active_bytes = self.active_bytes.saturating_sub(view.memtable.reserved_bytes());
        let frozen_bytes = &mut self.frozen_bytes;
        self.frozen.retain(|_, Frozen { tree: of, memtable }| {
            let stays = of.id != tree.id;
            *frozen_bytes -= if stays { 0 } else { memtable.reserved_bytes() };
            stays
        });
        view.memtables().for_each(|memtable| self.let_go(memtable));
        self.check();
    }

    fn let_go(&mut self, memtable: &Memtable) {
        let Some(log) = memtable.first_wal() else { return };
        let is_kept = self.logs.contains_key(&log);
        debug_invariant!(R4, is_kept, "a memtable lets go of log {log}, which none needs");
        if let Some(count) = self.logs.get_mut(&log) {
            *count -= 1;
            if *count == 0 {
                self.logs.remove(&log);
            }
        }
    }

    /// Bytes promised in all active memtables.
    pub fn active_bytes(&self) -> usize {
        self.active_bytes
    }

    /// Bytes of frozen memtables that wait for their flush, or for its end.
    pub fn frozen_bytes(&self) -> usize {
        self.frozen_bytes + self.leaving.bytes() as usize
    }

    /// Bytes promised in all of them: about the bytes that they take in tables, at most.
    pub fn bytes(&self) -> usize {
        self.active_bytes + self.frozen_bytes
    }

    /// Notes that no active memtable has entries: the promised bytes were in dropped keyspaces.
    pub(crate) fn forget_active(&mut self) {
        self.active_bytes = 0;
    }

    /// Keyspaces whose active memtable has entries, by id.
    #[inline]
    pub fn active(&self) -> impl ExactSizeIterator<Item = &Arc<Tree>> {
        self.active.values()
    }

    /// The frozen memtables that wait for their flush, oldest first.
    #[inline]
    pub fn frozen(&self) -> impl ExactSizeIterator<Item = &Frozen> {
        self.frozen.values()
    }

    /// Claims the oldest frozen memtables that may be flushed now, one of a keyspace: at most
    /// `count_max`, and at most `bytes_max` unless it is one. `next` returns the memtable of a
    /// keyspace that must go first, if any may.
    pub(crate) fn claim(
        &mut self,
        (count_max, bytes_max): (usize, usize),
        next: impl Fn(&Tree) -> Option<Arc<Memtable>>,
    ) -> Vec<Frozen> {
        let mut claimed: Vec<Frozen> = Vec::new();
        let mut bytes = 0;
        for Frozen { tree, .. } in self.frozen.values() {
            if self.flushing.contains(&tree.id) || tree.is_dropped() {
                continue;
            }
            let Some(memtable) = next(tree) else { continue };
            bytes += memtable.reserved_bytes();
            if !claimed.is_empty() && (claimed.len() == count_max || bytes > bytes_max) {
                break;
            }
            self.flushing.insert(tree.id);
            let is_listed = self.has_frozen(&memtable);
            debug_invariant!(I4, is_listed, "a memtable of `{}` is not frozen", tree.name);
            claimed.push(Frozen { tree: tree.clone(), memtable });
        }
        claimed
    }

    /// Ends a claim, however the flush ended.
    pub fn release(&mut self, claimed: &[Frozen]) {
        for frozen in claimed {
            let was_claimed = self.flushing.remove(&frozen.tree.id);
            debug_invariant!(I4, was_claimed, "`{}` is flushed twice", frozen.tree.name);
        }
    }

    /// Whether a memtable is among those that wait for their flush.
    pub(crate) fn has_frozen(&self, memtable: &Arc<Memtable>) -> bool {
        self.frozen.values().any(|frozen| Arc::ptr_eq(&frozen.memtable, memtable))
    }

    /// Whether frozen memtables wait and none of them is being flushed.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.frozen.is_empty() && self.flushing.is_empty()
    }

    /// The oldest log that has the first record of a memtable other than these.
    pub(crate) fn oldest_log(&self, except: &[Arc<Memtable>]) -> Option<FileNumber> {
        let of = |log| except.iter().filter(|m| m.first_wal() == Some(log)).count();
        self.logs.iter().find(|&(&log, &count)| count > of(log)).map(|(&log, _)| log)
    }

    /// Whether more than `count` memtables have entries.
    pub(crate) fn more_than(&self, count: usize) -> bool {
        self.check();
        self.logs.values().sum::<usize>() > count
    }
}
