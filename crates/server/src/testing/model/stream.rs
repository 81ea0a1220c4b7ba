//! Streams of the model, whose identifiers are numbers.
//!
//! Owns: their entries and groups. Never does: know a command.

use std::collections::{BTreeMap, BTreeSet};

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct ModelStream {
    /// Fields and values of each entry.
    pub entries: BTreeMap<u64, Vec<String>>,
    pub(super) last: u64,
    /// Its consumer groups.
    pub groups: BTreeMap<String, ModelGroup>,
}

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct ModelGroup {
    pub(super) last: u64,
    /// Its consumers.
    pub consumers: BTreeSet<String>,
    /// Entries that are not acknowledged, each with its consumer.
    pub pending: BTreeMap<u64, String>,
}

impl ModelStream {
    /// Returns the number of its rows among those of streams.
    pub fn rows(&self) -> usize {
        let of_group = |group: &ModelGroup| 1 + group.consumers.len() + 2 * group.pending.len();
        1 + self.entries.len() + self.groups.values().map(of_group).sum::<usize>()
    }

    pub(super) fn trim(&mut self, len: usize) -> usize {
        let surplus = self.entries.len().saturating_sub(len);
        for _ in 0..surplus {
            self.entries.pop_first();
        }
        surplus
    }
}
