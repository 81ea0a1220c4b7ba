//! What authors of several kinds wrote and were told, and what may be seen of it.
//!
//! Each author numbers its writes, and sets keys of its own to that number, together with what
//! was acknowledged to each other author when it began. So a state shows a number for each
//! author, and is possible only if each write is whole (P3, P27), and if the state has all that
//! its writes came after (P2, P26): a prefix of the order of commits, keyspaces together.
//!
//! Owns: the numbers. Its own atomics are the standard library's, since the bookkeeping of a test
//! is no place to switch threads. Never does: write to a database.

use crate::history::VALUE_BYTES;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Keyspace, Snapshot};
use windrow_base::Result;

/// Authors of a scenario: one that always writes, and one for each thing that is done.
pub(crate) const AUTHORS: usize = 3;
/// Keys that each write sets, in each keyspace that it goes to.
const KEYS: u64 = 3;

/// The last write of each author: 0 for none yet.
pub(crate) type Counts = [u64; AUTHORS];

/// What was begun, acknowledged, and acknowledged as durable.
#[derive(Default)]
pub(crate) struct Ledger {
    attempted: [AtomicU64; AUTHORS],
    acknowledged: [AtomicU64; AUTHORS],
    durable: [AtomicU64; AUTHORS],
}

/// A write that was begun.
pub(crate) struct Attempt {
    author: usize,
    number: u64,
    known: Counts,
}

fn counts(of: &[AtomicU64; AUTHORS]) -> Counts {
    std::array::from_fn(|author| of[author].load(Ordering::SeqCst))
}

impl Ledger {
    /// The next write of an author.
    pub(crate) fn begin(&self, author: usize) -> Attempt {
        let known = self.acknowledged();
        let number = self.attempted[author].fetch_add(1, Ordering::SeqCst) + 1;
        Attempt { author, number, known }
    }

    /// It was acknowledged.
    pub(crate) fn end(&self, Attempt { author, number, known }: &Attempt, is_durable: bool) {
        self.acknowledged[*author].fetch_max(*number, Ordering::SeqCst);
        if is_durable {
            // All before it in the order of commits is durable with it.
            self.durable.iter().zip(known).for_each(|(durable, known)| {
                durable.fetch_max(*known, Ordering::SeqCst);
            });
            self.durable[*author].fetch_max(*number, Ordering::SeqCst);
        }
    }

    pub(crate) fn attempted(&self) -> Counts {
        counts(&self.attempted)
    }

    pub(crate) fn acknowledged(&self) -> Counts {
        counts(&self.acknowledged)
    }

    pub(crate) fn durable(&self) -> Counts {
        counts(&self.durable)
    }
}

impl Attempt {
    /// The pairs that it writes, in the order of keys.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let mut text = format!("{} ", self.number);
        self.known.iter().for_each(|known| write!(text, "{known} ").expect("a string"));
        let mut value = text.into_bytes();
        value.resize(VALUE_BYTES, b'.');
        (0..KEYS).map(move |n| (key(self.author, n), value.clone()))
    }

    /// The range that holds the author's keys, and no others.
    pub(crate) fn range(&self) -> (String, String) {
        (key(self.author, 0), format!("{}~", key(self.author, KEYS)))
    }

    /// Whether a value is of an earlier write of the author, or there is none, as is right for
    /// what it reads under a lock or in a transaction.
    pub(crate) fn assert_comes_after(&self, value: Option<&[u8]>) {
        let before = value.map_or(0, |value| parse(value)[0]);
        assert!(before < self.number, "write {} reads {before}", self.number);
    }
}

fn key(author: usize, n: u64) -> String {
    format!("author{author} key{n}")
}

/// The number of a write, and what it knew.
fn parse(value: &[u8]) -> [u64; 1 + AUTHORS] {
    assert_eq!(value.len(), VALUE_BYTES, "a value that nobody wrote");
    let text = std::str::from_utf8(value).expect("a value that nobody wrote");
    let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
    std::array::from_fn(|_| numbers.next().expect("a value that nobody wrote"))
}

/// What a snapshot shows of each author, by gets and by scans both ways.
///
/// # Errors
/// What the database said.
///
/// # Panics
/// If no prefix of the order of commits looks like this.
pub(crate) fn observe(spaces: &[Keyspace], snapshot: &Snapshot) -> Result<Counts> {
    let mut seen = [[0; 1 + AUTHORS]; AUTHORS];
    for (author, seen) in seen.iter_mut().enumerate() {
        let mut writes = Vec::new();
        for space in spaces {
            let got = space.get_at(snapshot, key(author, 0))?.map(|value| parse(&value));
            let want = if got.is_some() { KEYS as usize } else { 0 };
            let prefix = format!("author{author} ");
            let there = space.prefix_at(snapshot, &prefix).collect::<Result<Vec<_>>>()?;
            let back = space.prefix_at(snapshot, &prefix).rev().collect::<Result<Vec<_>>>()?;
            assert_eq!(
                (there.len(), back.len()),
                (want, want),
                "{author}: a write is there in part"
            );
            for (_, value) in there.iter().chain(&back) {
                assert_eq!(Some(parse(value)), got, "{author}: a write is there in part");
            }
            writes.extend(got);
        }
        // One that goes to one keyspace alone always does.
        assert!(writes.windows(2).all(|pair| pair[0] == pair[1]), "{author}: {writes:?}");
        *seen = writes.first().copied().unwrap_or_default();
    }
    for (author, [number, known @ ..]) in seen.iter().enumerate() {
        let has = |other: usize| known[other] <= seen[other][0];
        assert!(
            (0..AUTHORS).all(has),
            "write {number} of author {author} is there, and not what was there before it: {seen:?}"
        );
    }
    Ok(seen.map(|[number, ..]| number))
}

/// Asserts that `lo <= counts <= hi` for each author.
pub(crate) fn within(what: &str, lo: Counts, counts: Counts, hi: Counts) {
    let fits = |author: usize| lo[author] <= counts[author] && counts[author] <= hi[author];
    assert!((0..AUTHORS).all(fits), "{what}: {counts:?} is not within {lo:?} and {hi:?}");
}
