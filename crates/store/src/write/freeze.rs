//! Freezing memtables: which go, and the switch from an active one to the next.
//!
//! Under the commit queue's lock, so every slot that was given out before is for the frozen
//! memtable, and none after.
//!
//! Owns: which memtables are frozen together. Never does: wait, or flush.

use crate::tree::Tree;
use crate::write::queue::QueueState;
use std::sync::Arc;

/// Logs other than the active one that idle keyspaces may keep.
const OLD_LOGS_MAX: usize = 4;

/// Memtables are frozen until they hold this part of all active ones: if there are many small ones,
/// some at a time, which are flushed together.
const FROZEN_PART: usize = 16;

impl QueueState {
    /// The keyspaces with the largest active memtables: as few as hold one in [`FROZEN_PART`] of
    /// all bytes.
    pub fn largest(&self) -> Vec<Arc<Tree>> {
        let bytes = |tree: &Arc<Tree>| tree.view().memtable.reserved_bytes();
        let mut trees: Vec<(usize, &Arc<Tree>)> =
            self.unflushed.active().map(|tree| (bytes(tree), tree)).collect();
        // Stable: by id if they are as large.
        trees.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
        let enough = self.unflushed.active_bytes() / FROZEN_PART;
        let mut sum = 0;
        let is_due = |&(bytes, _): &(usize, &Arc<Tree>)| {
            let due = sum == 0 || sum < enough;
            sum += bytes;
            due
        };
        trees.into_iter().take_while(is_due).map(|(_, tree)| tree.clone()).collect()
    }

    /// Freezes the memtables that pin the oldest log if more than [`OLD_LOGS_MAX`] old ones are
    /// kept: a keyspace that idles must not pin the log for ever.
    pub fn freeze_pinning(&mut self) {
        if self.older_wals.len() <= OLD_LOGS_MAX {
            return;
        }
        let Some((oldest, _)) = self.older_wals.first() else {
            return;
        };
        let oldest = oldest.number;
        let pins =
            |tree: &&Arc<Tree>| tree.view().memtable.first_wal().is_some_and(|wal| wal <= oldest);
        let pinning: Vec<_> = self.unflushed.active().filter(pins).cloned().collect();
        pinning.iter().for_each(|tree| self.freeze(tree));
    }

    /// Freezes every active memtable that holds anything.
    pub fn freeze_all(&mut self) {
        let active: Vec<_> = self.unflushed.active().cloned().collect();
        active.iter().for_each(|tree| self.freeze(tree));
    }

    /// Freezes a keyspace's active memtable. The caller holds the queue's lock,
    /// so every slot given out before is for the frozen one, and none after.
    pub fn freeze(&mut self, tree: &Arc<Tree>) {
        let frozen = tree.switch_memtable(self.last_seq());
        self.unflushed.froze(tree, &frozen);
    }
}
