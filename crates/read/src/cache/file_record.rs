//! The lookups that asked one file: its part of the record from which Merlin estimates
//! (`read/access.rs` says which lookups are recorded).
//!
//! It is kept with the table's handle, which versions share, so that nothing is lost between a copy
//! and an install. The counts are relaxed atomics: a query that two threads note at once may be
//! lost or counted twice, which changes an estimate little.
//!
//! Owns: the window of a file's last queries. Never does: estimate, or decide which lookup is
//! recorded.

use std::sync::OnceLock;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_plan::filter_memory::merlin::{self, Seen, WINDOW};
use windrow_plan::tree::File;

/// Number of a recorded query; 0 for one that is not recorded.
pub type Query = u64;

/// Returns the counts in a file's metadata: inherited or stored ones, or none of the time before
/// this open.
pub(crate) fn known_at_birth(file: &File, origin: u64) -> Seen {
    match merlin::decode(&file.statistics) {
        Some((estimate, since)) => Seen { older: Some(estimate), since, ..Seen::default() },
        None => Seen { since: origin, ..Seen::default() },
    }
}

/// A file's last queries and counts of those before.
pub struct FileRecord {
    birth: Seen,
    /// Counts of queries that left the window.
    older_queries: AtomicU64,
    older_hits: AtomicU64,
    /// The number of recorded queries: the slot of the next one.
    next: AtomicU64,
    /// Query number and hit bit; 0 while empty.
    slots: [AtomicU64; WINDOW],
}

/// The slot of a file's record: made when the first query is recorded.
pub type RecordSlot = OnceLock<Box<FileRecord>>;

impl FileRecord {
    pub fn new(file: &File, origin: u64) -> Box<FileRecord> {
        Box::new(FileRecord {
            birth: known_at_birth(file, origin),
            older_queries: AtomicU64::new(0),
            older_hits: AtomicU64::new(0),
            next: AtomicU64::new(0),
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    pub fn add(&self, query: Query, hit: bool) {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[at as usize % WINDOW];
        let old = slot.swap(query << 1 | u64::from(hit), Ordering::Relaxed);
        if at >= WINDOW as u64 {
            self.older_queries.fetch_add(1, Ordering::Relaxed);
            self.older_hits.fetch_add(old & 1, Ordering::Relaxed);
        }
    }

    /// Returns the counts from which Merlin estimates.
    pub fn seen(&self) -> Seen {
        let mut seen = self.birth;
        let mut oldest = u64::MAX;
        for slot in &self.slots {
            let entry = slot.load(Ordering::Relaxed);
            if entry != 0 {
                oldest = oldest.min(entry >> 1);
                seen.recent.queries += 1.0;
                seen.recent.hits += (entry & 1) as f64;
            }
        }
        if self.next.load(Ordering::Relaxed) > WINDOW as u64 {
            let older = seen.older.get_or_insert_default();
            older.queries += self.older_queries.load(Ordering::Relaxed) as f64;
            older.hits += self.older_hits.load(Ordering::Relaxed) as f64;
            // Not before its birth, even if a slot is read while it changes.
            seen.since = oldest.max(seen.since);
            seen.rolls = true;
        }
        seen
    }
}
