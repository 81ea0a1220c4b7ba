//! Options of one read, one write, one keyspace.
//!
//! Owns: their fields and defaults. Never does: read settings; what is not
//! said here follows from them.

use super::KeyspaceSettings;
use crate::Snapshot;

/// How far a write has gone when the call returns.
///
/// Not `Sync`: `use windrow::*` would hide the marker of that name.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::WriteSync;
/// let mut batch = windrow::Batch::new();
/// batch.put(&db, "order/17", "paid");
/// db.write(batch, WriteSync::Yes)?; // on the device
/// db.put("seen/17", "")?; // `WriteSync::No`: in the kernel
/// db.sync()?; // all of it on the device
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteSync {
    /// It is on the device: it survives the loss of power.
    Yes,
    /// It has reached the kernel: it survives the death of the process, and
    /// becomes durable with the next synced write, `Db::sync`, or
    /// `wal_sync_interval_ms`.
    #[default]
    No,
}

impl WriteSync {
    /// Whether the caller waits for the device.
    #[inline]
    pub fn is_yes(self) -> bool {
        self == WriteSync::Yes
    }
}

/// How a cursor or iterator reads.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::ReadOptions;
/// let all = db.default_keyspace();
/// // One pass over everything, which leaves the block cache to others.
/// let once = ReadOptions { fill_cache: false, ..ReadOptions::default() };
/// for item in all.iter_with(once) {
///     let (key, value) = item?;
///     println!("{key:?} {value:?}");
/// }
/// // A cursor over a part of a snapshot.
/// let bounded = ReadOptions {
///     lower: Some(b"b".to_vec()),
///     upper: Some(b"d".to_vec()),
///     snapshot: Some(db.snapshot()),
///     ..ReadOptions::default()
/// };
/// let mut cursor = db.cursor(bounded);
/// assert!(!cursor.seek_first()?);
/// # Ok::<(), windrow::Error>(())
/// ```
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

/// How a keyspace is made or opened. The comparator and merge operator that are given for a
/// keyspace that exists must be those that it was made with.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::{ErrorKind, KeyspaceOptions};
/// let lists = KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
/// let tags = db.keyspace_with("tags", lists.clone())?;
/// tags.merge("ada", "maths,")?;
/// tags.merge("ada", "poetry,")?;
/// assert_eq!(tags.get("ada")?.as_deref(), Some(&b"maths,poetry,"[..]));
///
/// // It was made once and for all: without options it opens as what it is ...
/// assert_eq!(db.keyspace("tags")?.name(), "tags");
/// // ... and not as something else.
/// let counters = KeyspaceOptions { merge_operator: Some("add".into()), ..Default::default() };
/// let refused = db.keyspace_with("tags", counters).unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceOptions {
    /// Id of the comparator, one of [`crate::Components::comparators`];
    /// `None`: bytewise for a new keyspace, the stored one for an old.
    pub comparator: Option<String>,
    /// Name of the merge operator, built in (`add`, which takes and keeps `i64::to_le_bytes`,
    /// `append`, `max` of bytes) or one of
    /// [`crate::Components::merge_operators`]; `None`: merges are refused in a
    /// new keyspace, the stored one is used for an old.
    pub merge_operator: Option<String>,
    /// What it has of its own. What is given for a keyspace that exists is from then on
    /// stored with it, unless the database is open for reading only.
    pub settings: KeyspaceSettings,
}
