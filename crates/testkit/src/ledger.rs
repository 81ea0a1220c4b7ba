//! The ledger: the writes of several authors, their acknowledgements, and the states that are
//! possible after them.
//!
//! Each author numbers its writes, and sets keys of its own to that number, together with the
//! number of every other author that was acknowledged when it began, and the number of keyspaces
//! that it goes to. So a state shows a number for each author. It is possible only if each write is
//! whole (P3, P27), and if it contains all writes that came before those that it shows (P2, P26): a
//! prefix of the order of commits, keyspaces together.
//!
//! Owns: the numbers, in memory, or in a file that several processes read and that outlives them.
//! Its own atomics are the standard library's, since the bookkeeping of a test is no place for
//! shuttle to switch threads. Never does: open or close a database.

#![allow(clippy::disallowed_types, reason = "the ledger is a file of the real system")]

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Batch, Db, Keyspace, Snapshot, WriteSync};
use windrow_base::Result;

/// The number of keys that each write sets, in each keyspace that it goes to.
const KEYS: u64 = 3;

/// The last write of each author: 0 if there is none yet.
pub type Counts = Vec<u64>;

/// The stage of an author's writes that is counted.
#[derive(Clone, Copy)]
enum Of {
    Attempted,
    Acknowledged,
    Durable,
}

const KINDS: usize = 3;

/// The last write of each author that was begun, acknowledged, and acknowledged as durable. Each
/// author is one thread.
pub struct Ledger {
    authors: usize,
    value_bytes: usize,
    numbers: Vec<AtomicU64>,
    file: Option<File>,
}

/// A write that was begun.
pub struct Attempt {
    author: usize,
    number: u64,
    /// The number of keyspaces that it goes to.
    spaces: usize,
    known: Counts,
    value_bytes: usize,
}

/// A write, as each of its values describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    number: u64,
    spaces: usize,
    known: Counts,
}

impl Ledger {
    /// Makes a ledger of `authors` authors, whose values have `value_bytes` bytes.
    pub fn new(authors: usize, value_bytes: usize) -> Ledger {
        let numbers = (0..authors * KINDS).map(|_| AtomicU64::new(0)).collect();
        Ledger { authors, value_bytes, numbers, file: None }
    }

    /// Opens a ledger in a file, with its contents.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path, authors: usize, value_bytes: usize) -> std::io::Result<Ledger> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len((authors * KINDS * 8) as u64)?;
        let mut ledger = Ledger::new(authors, value_bytes);
        ledger.file = Some(file);
        Ok(ledger)
    }

    fn at(&self, of: Of, author: usize) -> usize {
        of as usize * self.authors + author
    }

    fn get(&self, of: Of, author: usize) -> u64 {
        let at = self.at(of, author);
        let Some(file) = &self.file else { return self.numbers[at].load(Ordering::SeqCst) };
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, (at * 8) as u64).expect("the ledger is read");
        u64::from_le_bytes(bytes)
    }

    /// Raises a number. Only the author's thread does, but other threads may also raise the durable
    /// one.
    fn raise(&self, of: Of, author: usize, number: u64) {
        let at = self.at(of, author);
        let before = self.numbers[at].fetch_max(number, Ordering::SeqCst);
        if let Some(file) = &self.file
            && before < number
            // No process reads it from a file: a killed process loses nothing.
            && !matches!(of, Of::Durable)
        {
            file.write_all_at(&number.to_le_bytes(), (at * 8) as u64).expect("the ledger is kept");
        }
    }

    fn counts(&self, of: Of) -> Counts {
        (0..self.authors).map(|author| self.get(of, author)).collect()
    }

    /// Begins the next write of an author, to both keyspaces.
    pub fn begin(&self, author: usize) -> Attempt {
        Attempt { spaces: 2, ..self.begin_in_one(author) }
    }

    /// Begins the next write of an author, to one keyspace.
    pub fn begin_in_one(&self, author: usize) -> Attempt {
        let known = self.acknowledged();
        let number = self.get(Of::Attempted, author) + 1;
        self.raise(Of::Attempted, author, number);
        Attempt { author, number, spaces: 1, known, value_bytes: self.value_bytes }
    }

    /// Records that a write was acknowledged.
    pub fn end(&self, Attempt { author, number, known, .. }: &Attempt, is_durable: bool) {
        self.raise(Of::Acknowledged, *author, *number);
        if is_durable {
            // All writes before it in the order of commits are durable with it.
            known.iter().enumerate().for_each(|(other, known)| {
                self.raise(Of::Durable, other, *known);
            });
            self.raise(Of::Durable, *author, *number);
        }
    }

    /// Writes an author's next batch to both keyspaces.
    ///
    /// # Errors
    /// The database's error.
    pub fn write(
        &self,
        db: &Db,
        spaces: &[Keyspace; 2],
        author: usize,
        sync: WriteSync,
    ) -> Result<()> {
        let (attempt, mut batch) = (self.begin(author), Batch::new());
        attempt.push(&mut batch, spaces);
        db.write(batch, sync)?;
        self.end(&attempt, sync.is_yes());
        Ok(())
    }

    /// Reads an author's last write without a snapshot: its thread sees it at once.
    ///
    /// # Errors
    /// The database's error.
    ///
    /// # Panics
    /// If another one is there.
    pub fn read_own(&self, spaces: &[Keyspace], author: usize) -> Result<()> {
        for space in spaces {
            let got = self.number(space.get(first_key(author))?.as_deref());
            assert_eq!(got, self.get(Of::Acknowledged, author), "one's own write");
        }
        Ok(())
    }

    /// Continues after a power loss from the writes that are left.
    pub fn go_on_from(&self, counts: &[u64]) {
        for (author, number) in counts.iter().enumerate() {
            for of in [Of::Acknowledged, Of::Durable] {
                self.numbers[self.at(of, author)].store(*number, Ordering::SeqCst);
            }
        }
    }

    /// Returns the last writes that were begun.
    pub fn attempted(&self) -> Counts {
        self.counts(Of::Attempted)
    }

    /// Returns the last writes that were acknowledged.
    pub fn acknowledged(&self) -> Counts {
        self.counts(Of::Acknowledged)
    }

    /// Returns the last writes that were acknowledged as durable, or precede one that was.
    pub fn durable(&self) -> Counts {
        self.counts(Of::Durable)
    }

    /// Returns the last write of each author in a snapshot, by gets and by scans both ways.
    ///
    /// # Errors
    /// The database's error.
    ///
    /// # Panics
    /// If no prefix of the order of commits gives this state.
    pub fn observe(&self, spaces: &[Keyspace], snapshot: &Snapshot) -> Result<Counts> {
        let seen = (0..self.authors)
            .map(|author| self.observe_author(author, spaces, snapshot))
            .collect::<Result<Vec<_>>>()?;
        let counts: Counts =
            seen.iter().map(|write| write.as_ref().map_or(0, |write| write.number)).collect();
        for (author, write) in seen.iter().enumerate() {
            let known = write.iter().flat_map(|write| &write.known);
            assert!(
                known.zip(&counts).all(|(known, count)| known <= count),
                "{write:?} of author {author} is there, and not what was there before it: {counts:?}"
            );
        }
        Ok(counts)
    }

    fn observe_author(
        &self,
        author: usize,
        spaces: &[Keyspace],
        snapshot: &Snapshot,
    ) -> Result<Option<Written>> {
        let mut writes = Vec::new();
        for space in spaces {
            let got = space.get_at(snapshot, key(author, 0))?.map(|value| self.parse(&value));
            let want = if got.is_some() { KEYS as usize } else { 0 };
            let prefix = prefix(author);
            let there = space.prefix_at(snapshot, &prefix).collect::<Result<Vec<_>>>()?;
            let back = space.prefix_at(snapshot, &prefix).rev().collect::<Result<Vec<_>>>()?;
            let counts = (there.len(), back.len());
            assert_eq!(counts, (want, want), "a write of author {author} is there in part");
            for (_, value) in there.iter().chain(&back) {
                let value = Some(self.parse(value));
                assert_eq!(value, got, "a write of author {author} is there in part");
            }
            writes.extend(got);
        }
        assert!(writes.windows(2).all(|pair| pair[0] == pair[1]), "author {author}: {writes:?}");
        let spaces = writes.len();
        let write = writes.into_iter().next();
        let whole = write.as_ref().is_none_or(|write| write.spaces == spaces);
        assert!(whole, "author {author}: {write:?} is there in {spaces} keyspaces");
        Ok(write)
    }

    fn parse(&self, value: &[u8]) -> Written {
        assert_eq!(value.len(), self.value_bytes, "a value that nobody wrote");
        let text = std::str::from_utf8(value).expect("a value that nobody wrote");
        let mut numbers = text.split(' ').map_while(|word| word.parse::<u64>().ok());
        let head = numbers.next().zip(numbers.next());
        let ((number, spaces), known) = (head.expect("a value that nobody wrote"), numbers);
        let known: Counts = known.collect();
        assert_eq!(known.len(), self.authors, "a value that nobody wrote");
        Written { number, spaces: spaces as usize, known }
    }

    /// Returns the author of a key of a write; `None` for any other key.
    pub fn author(&self, found: &[u8]) -> Option<usize> {
        (0..self.authors).find(|&author| found.starts_with(prefix(author).as_bytes()))
    }

    /// Returns the number of the write that an author's value belongs to; 0 if there is no value.
    pub fn number(&self, value: Option<&[u8]>) -> u64 {
        value.map_or(0, |value| self.parse(value).number)
    }
}

impl Attempt {
    /// Returns its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the pairs that it writes, in the order of keys.
    pub fn pairs(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let mut text = format!("{} {} ", self.number, self.spaces);
        self.known.iter().for_each(|known| write!(text, "{known} ").expect("a string"));
        let mut value = text.into_bytes();
        assert!(value.len() <= self.value_bytes, "values are too short for {:?}", self.known);
        value.resize(self.value_bytes, b'.');
        (0..KEYS).map(move |n| (key(self.author, n), value.clone()))
    }

    /// Adds its pairs for each of these keyspaces to a batch.
    pub fn push(&self, batch: &mut Batch, spaces: &[Keyspace]) {
        for space in spaces {
            self.pairs().for_each(|(key, value)| batch.put(space, key, value));
        }
    }

    /// Returns the range of the author's keys, which has no others.
    pub fn range(&self) -> (String, String) {
        let prefix = prefix(self.author);
        let end = format!("{prefix}~");
        (prefix, end)
    }
}

/// Returns the first of an author's keys.
pub fn first_key(author: usize) -> String {
    key(author, 0)
}

fn prefix(author: usize) -> String {
    format!("author{author:02} ")
}

fn key(author: usize, n: u64) -> String {
    format!("{}key{n}", prefix(author))
}

/// Asserts that `lo <= counts <= hi` for each author.
///
/// # Panics
/// If that is not so.
pub fn within(what: &str, lo: &[u64], counts: &[u64], hi: &[u64]) {
    let fits = |author: usize| lo[author] <= counts[author] && counts[author] <= hi[author];
    let all = (0..counts.len()).all(fits);
    assert!(all, "{what}: {counts:?} is not within {lo:?} and {hi:?}");
}
