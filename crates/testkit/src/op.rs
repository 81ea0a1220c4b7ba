//! The vocabulary of a test: operations on a database, and their answers.
//!
//! Owns: `Op`, `Answer`, and the `Subject` trait that the model and the engine implement.
//! Scripts (`text.rs`), random sequences (`compose.rs`) and the crash harness all use
//! this vocabulary. Never does: run anything.

use std::borrow::Cow;
use windrow_base::ErrorKind;

/// A change to one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key has this value.
    Put {
        /// Key.
        key: Vec<u8>,
        /// Value.
        value: Vec<u8>,
    },
    /// The key has this value until the time is over.
    PutTtl {
        /// Key.
        key: Vec<u8>,
        /// Value.
        value: Vec<u8>,
        /// Milliseconds from the moment of the write.
        ttl_ms: u64,
    },
    /// The key is absent.
    Delete {
        /// Key.
        key: Vec<u8>,
    },
    /// The key, put exactly once since it was last absent, is absent.
    SingleDelete {
        /// Key.
        key: Vec<u8>,
    },
    /// An operand for the keyspace's merge operator.
    Merge {
        /// Key.
        key: Vec<u8>,
        /// Operand.
        operand: Vec<u8>,
    },
    /// An operand that expires. From then on it hides what is older, as a delete does.
    MergeTtl {
        /// Key.
        key: Vec<u8>,
        /// Operand.
        operand: Vec<u8>,
        /// Milliseconds from the moment of the write.
        ttl_ms: u64,
    },
    /// The keys of `from..to` are absent.
    DeleteRange {
        /// First key.
        from: Vec<u8>,
        /// First key not deleted any more.
        to: Vec<u8>,
    },
}

/// A change and the keyspace it is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Name of the keyspace.
    pub keyspace: String,
    /// The change.
    pub change: Change,
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first key on.
    Forward,
    /// From the last key back.
    Backward,
    /// One key from the front, one from the back, and so on until they meet.
    Zigzag,
}

/// A part of a keyspace's keys, and where and when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Name of the snapshot that is read; `None`: the newest state.
    pub at: Option<String>,
    /// First key; `None`: no bound.
    pub from: Option<Vec<u8>>,
    /// First key not read any more; `None`: no bound.
    pub to: Option<Vec<u8>>,
}

/// A movement of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the first key.
    First,
    /// To the last key.
    Last,
    /// To the first key at or after this one.
    Seek(Vec<u8>),
    /// To the last key before this one.
    SeekBefore(Vec<u8>),
    /// One entry on. No movement if the cursor is on no entry.
    Next,
    /// One entry back. No movement if the cursor is on no entry.
    Prev,
}

/// An operation on a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// One change by its own method (or as a batch of one, if synced).
    Write {
        /// The change.
        write: Write,
        /// Whether it is durable when it returns.
        sync: bool,
    },
    /// Changes that happen together or not at all.
    Batch {
        /// The changes, in order.
        writes: Vec<Write>,
        /// Whether they are durable when it returns.
        sync: bool,
    },
    /// Sorted entries, straight into tables.
    Ingest {
        /// Name of the keyspace.
        keyspace: String,
        /// The entries, in the order of the keyspace.
        pairs: Vec<Pair>,
    },
    /// The value of a key.
    Get {
        /// Name of the keyspace.
        keyspace: String,
        /// Name of the snapshot.
        at: Option<String>,
        /// Key.
        key: Vec<u8>,
    },
    /// The values of several keys.
    MultiGet {
        /// Name of the keyspace.
        keyspace: String,
        /// Keys.
        keys: Vec<Vec<u8>>,
    },
    /// The entries of a span.
    Scan {
        /// The keys that are read.
        span: Span,
        /// The direction.
        direction: Direction,
    },
    /// The entries whose keys start with `prefix`.
    Prefix {
        /// Name of the keyspace.
        keyspace: String,
        /// Name of the snapshot.
        at: Option<String>,
        /// The beginning of the keys.
        prefix: Vec<u8>,
        /// The direction.
        direction: Direction,
    },
    /// Every entry of every keyspace.
    Dump,
    /// Makes a cursor that stays open under this name.
    OpenCursor {
        /// Its name.
        cursor: String,
        /// The keys that it may visit.
        span: Span,
    },
    /// Moves a cursor, and reports its entry after each step.
    Walk {
        /// Its name.
        cursor: String,
        /// The movements.
        steps: Vec<Step>,
    },
    /// Brings a cursor to the newest state, at the first key at or after its last one.
    Refresh {
        /// Its name.
        cursor: String,
    },
    /// Drops a cursor.
    CloseCursor {
        /// Its name.
        cursor: String,
    },
    /// Takes a snapshot.
    Snapshot {
        /// Its name.
        name: String,
    },
    /// Drops a snapshot.
    Release {
        /// Its name.
        name: String,
    },
    /// Flushes the memtables of one keyspace, or of all.
    Flush {
        /// Name of the keyspace; `None`: all.
        keyspace: Option<String>,
    },
    /// Compacts everything.
    Compact,
    /// Compacts a span of one keyspace.
    CompactRange {
        /// The keys that are compacted.
        span: Span,
    },
    /// Waits until no background work is left.
    Wait,
    /// Makes everything written so far durable.
    Sync,
    /// Gives every keyspace another policy, now and whenever it is opened again.
    Policy {
        /// A preset's name, or one value per axis.
        policy: String,
    },
    /// Closes and opens again. Snapshots and cursors are gone.
    Reopen,
    /// Drops the database without closing it (the process died), opens again.
    Kill,
    /// Makes a checkpoint, and dumps it through a database of its own.
    Checkpoint,
    /// Checks every file.
    Verify,
    /// Makes a keyspace (or opens it, if it is there).
    CreateKeyspace {
        /// Its name.
        name: String,
        /// Name of its merge operator.
        operator: Option<String>,
        /// Id of its comparator.
        comparator: Option<String>,
    },
    /// Gives a keyspace settings of its own, in place of its present ones.
    Configure {
        /// Its name.
        name: String,
        /// Time to live of the values that are put, in ms.
        ttl_ms: Option<u64>,
        /// Its codecs by level.
        compression: Option<String>,
    },
    /// Drops a keyspace.
    DropKeyspace {
        /// Its name.
        name: String,
    },
    /// Names of the keyspaces.
    Keyspaces,
    /// Moves the clock on.
    Clock {
        /// The number of milliseconds.
        forward_ms: u64,
    },
}

impl Op {
    /// Returns the changes that it writes, all of them or none, and whether they are
    /// durable when it returns; `None` if it writes nothing.
    pub fn writes(&self) -> Option<(Cow<'_, [Write]>, bool)> {
        match self {
            Op::Write { write, sync } => Some((Cow::Borrowed(std::slice::from_ref(write)), *sync)),
            Op::Batch { writes, sync } => Some((Cow::Borrowed(writes), *sync)),
            Op::Ingest { keyspace, pairs } if !pairs.is_empty() => {
                let put = |(key, value): &Pair| Write {
                    keyspace: keyspace.clone(),
                    change: Change::Put { key: key.clone(), value: value.clone() },
                };
                Some((Cow::Owned(pairs.iter().map(put).collect()), true))
            }
            _ => None,
        }
    }
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The answer of an operation. Errors compare by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// A value; `None` for an absent key.
    Value(Option<Vec<u8>>),
    /// One value or error per key.
    Values(Vec<Result<Option<Vec<u8>>, ErrorKind>>),
    /// Entries, and the error that ended them, if one did.
    Pairs(Vec<Pair>, Option<ErrorKind>),
    /// Keyspaces with their entries.
    Dump(Vec<(String, Vec<Pair>)>),
    /// The entry that a cursor was on after each step.
    Steps(Vec<Result<Option<Pair>, ErrorKind>>),
    /// Names, sorted.
    Names(Vec<String>),
    /// There is no keyspace, snapshot or cursor of that name to act on.
    Missing,
    /// It failed.
    Error(ErrorKind),
}

/// Something that answers operations: the model, or a database.
pub trait Subject {
    /// Runs one operation.
    fn apply(&mut self, op: &Op) -> Answer;
}

/// Name of the keyspace that every database has.
pub const DEFAULT: &str = "default";
