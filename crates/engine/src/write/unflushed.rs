//! What was written and is in no table yet, by keyspace and by log: what a
//! write, a flush or a new log must know of all keyspaces, without asking each.
//!
//! Part of the commit queue's state, changed under its lock. Owns no memtable's
//! content. Of 10,000 keyspaces those that nobody writes to cost nothing here.

use crate::memtable::Memtable;
use crate::read::view::ReadView;
use crate::tree::Tree;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use windrow_base::{FileNumber, KeyspaceId};

/// A frozen memtable that waits for its flush.
#[derive(Clone)]
pub(crate) struct Frozen {
    pub(crate) tree: Arc<Tree>,
    pub(crate) memtable: Arc<Memtable>,
}

impl Frozen {
    /// Whether it is in no table yet, and its keyspace is there.
    pub(crate) fn is_waiting(&self) -> bool {
        let is_it = |m: &Arc<Memtable>| Arc::ptr_eq(m, &self.memtable);
        !self.tree.is_dropped() && self.tree.view().frozen.iter().any(is_it)
    }
}

/// The memtables that hold anything.
#[derive(Default)]
pub(crate) struct Unflushed {
    /// Keyspaces whose active memtable does.
    active: BTreeMap<KeyspaceId, Arc<Tree>>,
    /// Frozen ones, in the order in which they were frozen.
    frozen: BTreeMap<u64, Frozen>,
    next: u64,
    /// Keyspaces of which a memtable is being flushed.
    flushing: HashSet<KeyspaceId>,
    /// How many memtables, active or frozen, have their first record in each log.
    logs: BTreeMap<FileNumber, usize>,
}

impl Unflushed {
    /// A memtable got its first bytes.
    pub(crate) fn wrote(&mut self, tree: &Arc<Tree>, memtable: &Memtable) {
        self.active.insert(tree.id, tree.clone());
        if let Some(log) = memtable.first_wal() {
            *self.logs.entry(log).or_default() += 1;
        }
    }

    /// A keyspace's active memtable was frozen.
    pub(crate) fn froze(&mut self, tree: &Arc<Tree>, memtable: &Arc<Memtable>) {
        self.active.remove(&tree.id);
        let frozen = Frozen { tree: tree.clone(), memtable: memtable.clone() };
        self.frozen.insert(self.next, frozen);
        self.next += 1;
    }

    /// What a frozen memtable held is in tables.
    pub(crate) fn flushed(&mut self, memtable: &Arc<Memtable>) {
        let mut all = self.frozen.iter();
        let found = all.find(|(_, frozen)| Arc::ptr_eq(&frozen.memtable, memtable));
        if let Some(at) = found.map(|(&at, _)| at) {
            self.frozen.remove(&at);
        }
        self.let_go(memtable);
    }

    /// A keyspace was dropped, with these memtables.
    pub(crate) fn dropped(&mut self, tree: &Tree, view: &ReadView) {
        self.active.remove(&tree.id);
        self.frozen.retain(|_, frozen| frozen.tree.id != tree.id);
        view.memtables().for_each(|memtable| self.let_go(memtable));
    }

    fn let_go(&mut self, memtable: &Memtable) {
        let Some(log) = memtable.first_wal() else { return };
        if let Some(count) = self.logs.get_mut(&log) {
            *count -= 1;
            if *count == 0 {
                self.logs.remove(&log);
            }
        }
    }

    /// Keyspaces whose active memtable holds something, by id.
    pub(crate) fn active(&self) -> impl ExactSizeIterator<Item = &Arc<Tree>> {
        self.active.values()
    }

    /// The frozen memtables that wait for their flush, oldest first.
    pub(crate) fn frozen(&self) -> impl ExactSizeIterator<Item = &Frozen> {
        self.frozen.values()
    }

    /// Claims the oldest frozen memtables that may be flushed now, one of a
    /// keyspace: at most `count_max`, and at most `bytes_max` unless it is one.
    /// `next` says which memtable of a keyspace is to go first, if any may.
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
            claimed.push(Frozen { tree: tree.clone(), memtable });
        }
        claimed
    }

    /// Ends a claim, whatever became of it.
    pub(crate) fn release(&mut self, claimed: &[Frozen]) {
        for frozen in claimed {
            self.flushing.remove(&frozen.tree.id);
        }
    }

    /// Whether frozen memtables wait and none of them is being flushed.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.frozen.is_empty() && self.flushing.is_empty()
    }

    /// The oldest log that a memtable beside these has its first record in.
    pub(crate) fn oldest_log(&self, beside: &[Arc<Memtable>]) -> Option<FileNumber> {
        let of = |log| beside.iter().filter(|m| m.first_wal() == Some(log)).count();
        self.logs.iter().find(|&(&log, &count)| count > of(log)).map(|(&log, _)| log)
    }

    /// Whether more memtables than these many hold anything.
    pub(crate) fn more_than(&self, count: usize) -> bool {
        self.logs.values().sum::<usize>() > count
    }
}
