//! The history of a scenario: the writes of its threads, their acknowledgements, and the states
//! that are possible after them.
//!
//! Each writer numbers its batches and sets the same keys in two keyspaces to that number, together
//! with the number of the other writer's batches that were acknowledged when it began. So a state
//! shows, for each writer, one number. It is possible only if every batch is whole (P3), and if it
//! contains all batches that precede those that it shows (P2): a prefix of the order of commits.
//!
//! Owns: the numbers. Its own atomics are the standard library's, since the
//! bookkeeping of a test is no place to switch threads.

use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Batch, Db, Keyspace, Snapshot, WriteSync};
use windrow_base::Result;

/// Writers of a scenario.
pub(crate) const WRITERS: usize = 2;
/// Keys that each batch sets, in each of two keyspaces.
const KEYS: u64 = 2;
/// Bytes of a value: a few batches fill a memtable of 64 KiB.
const VALUE_BYTES: usize = 3 << 10;

/// The number of batches of each writer: 0 if there is none yet.
pub(crate) type Counts = [u64; WRITERS];

/// The batches that were acknowledged, and those of them that are durable.
#[derive(Default)]
pub(crate) struct History {
    acknowledged: [AtomicU64; WRITERS],
    synced: [AtomicU64; WRITERS],
    attempted: [AtomicU64; WRITERS],
    /// A bit for each batch that failed for good, and for each that was seen.
    refused: [AtomicU64; WRITERS],
    seen: [AtomicU64; WRITERS],
}

fn counts(of: &[AtomicU64; WRITERS]) -> Counts {
    std::array::from_fn(|writer| of[writer].load(Ordering::SeqCst))
}

fn key(writer: usize, index: u64) -> String {
    format!("w{writer}-{index}")
}

fn value(number: u64, known: u64) -> Vec<u8> {
    let mut value = format!("{number:06} {known:06} ").into_bytes();
    value.resize(VALUE_BYTES, b'.');
    value
}

/// Returns the number in a value, and the number that its writer knew.
fn parse(value: &[u8]) -> (u64, u64) {
    let field = |range| {
        let text: &[u8] = value.get::<std::ops::Range<usize>>(range).unwrap_or_default();
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
    };
    assert_eq!(value.len(), VALUE_BYTES, "a value that nobody wrote");
    field(0..6).zip(field(7..13)).expect("a value that nobody wrote")
}

impl History {
    /// Writes the next batch of a writer, and reads it back.
    ///
    /// # Errors
    /// The database's error for the write.
    pub(crate) fn write(
        &self,
        db: &Db,
        spaces: &[Keyspace; 2],
        writer: usize,
        sync: WriteSync,
    ) -> Result<()> {
        let number = self.attempted[writer].fetch_add(1, Ordering::SeqCst) + 1;
        let known = self.acknowledged[1 - writer].load(Ordering::SeqCst);
        let mut batch = Batch::new();
        for space in spaces {
            for index in 0..KEYS {
                batch.put(space, key(writer, index), value(number, known));
            }
        }
        db.write(batch, sync)?;
        self.acknowledged[writer].store(number, Ordering::SeqCst);
        if sync.is_yes() {
            self.synced[writer].store(number, Ordering::SeqCst);
            // All batches before it in the order of commits are durable with it.
            self.synced[1 - writer].fetch_max(known, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Reads a writer's last batch without a snapshot: a writer sees its own batch at once.
    ///
    /// # Errors
    /// The database's error for the read.
    pub(crate) fn read_own(&self, spaces: &[Keyspace; 2], writer: usize) -> Result<()> {
        let want = self.acknowledged()[writer];
        for space in spaces {
            let got = space.get(key(writer, 0))?;
            assert_eq!(got.map_or(0, |value| parse(&value).0), want, "one's own write");
        }
        Ok(())
    }

    /// Notes that a writer was told that its last batch is absent, and always will be.
    pub(crate) fn refused(&self, writer: usize) {
        let number = self.attempted[writer].load(Ordering::SeqCst);
        self.refused[writer].fetch_or(1 << number, Ordering::SeqCst);
    }

    /// Observes as [`observe`] does, and notes the batches that were seen.
    pub(crate) fn look(&self, spaces: &[Keyspace; 2], snapshot: &Snapshot) -> Counts {
        let counts = observe(spaces, snapshot).expect("observe");
        for (seen, number) in self.seen.iter().zip(counts) {
            seen.fetch_or(1 << number, Ordering::SeqCst);
        }
        counts
    }

    /// Asserts that no look has ever found a refused batch.
    pub(crate) fn assert_nothing_refused_was_seen(&self) {
        let both = counts(&self.refused).into_iter().zip(counts(&self.seen));
        for (writer, (refused, seen)) in both.enumerate() {
            let bad = refused & seen;
            assert_eq!(bad, 0, "writer {writer}: batches (by bit) were refused, and seen");
        }
    }

    /// Returns the batches that are acknowledged now.
    pub(crate) fn acknowledged(&self) -> Counts {
        counts(&self.acknowledged)
    }

    /// Returns the batches that are acknowledged as durable now.
    pub(crate) fn synced(&self) -> Counts {
        counts(&self.synced)
    }

    /// Returns the batches that were begun.
    pub(crate) fn attempted(&self) -> Counts {
        counts(&self.attempted)
    }
}

/// Returns the last batch of each writer in a snapshot, read by key and by both directions of
/// iteration.
///
/// # Errors
/// The database's error.
///
/// # Panics
/// If no prefix of the order of commits gives this state.
pub(crate) fn observe(spaces: &[Keyspace; 2], snapshot: &Snapshot) -> Result<Counts> {
    let mut seen = [None; WRITERS];
    for space in spaces {
        for (writer, seen) in seen.iter_mut().enumerate() {
            let got = space.get_at(snapshot, key(writer, 0))?;
            let got = got.map(|value| parse(&value));
            let first = *seen.get_or_insert(got);
            assert_eq!(got, first, "writer {writer}: the keyspaces show different batches");
            let prefix = format!("w{writer}-");
            let want = if got.is_some() { KEYS as usize } else { 0 };
            let there = space.prefix_at(snapshot, &prefix).collect::<Result<Vec<_>>>()?;
            let back = space.prefix_at(snapshot, &prefix).rev().collect::<Result<Vec<_>>>()?;
            assert_eq!((there.len(), back.len()), (want, want), "a batch is there in part");
            for (_, value) in there.iter().chain(&back) {
                assert_eq!(Some(parse(value)), got, "a batch is there in part");
            }
        }
    }
    let seen = seen.map(|value| value.flatten().unwrap_or_default());
    for (writer, &(number, known)) in seen.iter().enumerate() {
        assert!(
            known <= seen[1 - writer].0,
            "batch {number} of writer {writer} is there, and batch {known} of the other, \
             which it was written after, is not: {seen:?}"
        );
    }
    Ok(seen.map(|(number, _)| number))
}

/// Asserts that `lo <= counts <= hi` for each writer.
pub(crate) fn within(what: &str, lo: Counts, counts: Counts, hi: Counts) {
    let fits = |writer: usize| lo[writer] <= counts[writer] && counts[writer] <= hi[writer];
    assert!((0..WRITERS).all(fits), "{what}: {counts:?} is not within {lo:?} and {hi:?}");
}
