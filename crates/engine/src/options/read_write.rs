//! Options of one read, one write, one keyspace.
//!
//! Owns: their fields and defaults. Never does: read settings; what is not
//! said here follows from them.

use crate::Snapshot;

/// How far a write has gone when the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sync {
    /// It is on the device: it survives the loss of power.
    Yes,
    /// It has reached the kernel: it survives the death of the process, and
    /// becomes durable with the next synced write, `Db::sync`, or
    /// `wal_sync_interval_ms`.
    #[default]
    No,
}

impl Sync {
    /// Whether the caller waits for the device.
    #[inline]
    pub fn is_yes(self) -> bool {
        self == Sync::Yes
    }
}

/// How a cursor or iterator reads.
#[derive(Clone)]
pub struct ReadOptions {
    /// First user key that may be returned; `None`: from the first key on.
    pub lower: Option<Vec<u8>>,
    /// First user key that is not returned any more; `None`: to the last key.
    pub upper: Option<Vec<u8>>,
    /// Whether blocks that are read are kept in the block cache (default:
    /// yes). Turn it off for one pass over much more data than the cache holds.
    pub fill_cache: bool,
    /// Bytes read ahead of the position in a table. `None` (default): none at
    /// first, growing to [`crate::Settings::readahead_bytes`] while the reads
    /// stay sequential; `Some(0)`: never; else that much from the first block on.
    /// While readers hold much of the memory for blocks already, less is read ahead.
    pub readahead_bytes: Option<u64>,
    /// The state that is read; `None`: the newest when the cursor is made. One
    /// of another open database is `InvalidArgument`.
    pub snapshot: Option<Snapshot>,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            lower: None,
            upper: None,
            fill_cache: true,
            readahead_bytes: None,
            snapshot: None,
        }
    }
}

/// How a keyspace is made or opened. What is given for a keyspace that exists
/// must agree with what it was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceOptions {
    /// Id of the comparator, one of [`crate::Components::comparators`];
    /// `None`: bytewise for a new keyspace, the stored one for an old.
    pub comparator: Option<String>,
    /// Name of the merge operator, built in (`add`, `append`, `max`) or one of
    /// [`crate::Components::merge_operators`]; `None`: merges are refused in a
    /// new keyspace, the stored one is used for an old.
    pub merge_operator: Option<String>,
}
