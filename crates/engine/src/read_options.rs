//! Options of one read.
//!
//! Owns: their fields and defaults. Never does: read settings.

use crate::snapshot::Snapshot;
use windrow_read::read::readahead::Readahead;
use windrow_read::read::scan_options::ScanOptions;

/// The way in which a cursor or iterator reads.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::ReadOptions;
/// // One pass over everything, which leaves the block cache to others.
/// let once = ReadOptions { fill_cache: false, ..ReadOptions::default() };
/// for item in db.iter_with(once) {
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
    /// The first user key that may be returned; `None`: from the first key on.
    pub lower: Option<Vec<u8>>,
    /// The first user key that is not returned any more; `None`: to the last key.
    pub upper: Option<Vec<u8>>,
    /// Whether blocks that are read are kept in the block cache (default: yes). Turn it off for one
    /// pass over much more data than the cache holds.
    pub fill_cache: bool,
    /// Bytes read ahead of the position in a table. `None` (default): none at
    /// first, growing to [`crate::settings::Settings::readahead_bytes`] while the reads
    /// stay sequential; `Some(0)`: never; else that much from the first block on.
    /// While readers hold much of the memory for blocks already, less is read ahead.
    pub readahead_bytes: Option<u64>,
    /// The state that is read; `None`: the newest when the cursor is made. A snapshot of another
    /// open database gives `InvalidArgument`.
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

impl ReadOptions {
    /// The scan for these options. A long scan may read ahead up to `readahead_bytes`.
    pub(crate) fn scan(&self, readahead_bytes: u64) -> ScanOptions {
        ScanOptions {
            lower: self.lower.clone(),
            lower_after: false,
            upper: self.upper.clone(),
            upper_after: false,
            prefix: None,
            fill_cache: self.fill_cache,
            readahead: match self.readahead_bytes {
                None => Readahead::Auto { max_bytes: readahead_bytes },
                Some(0) => Readahead::None,
                Some(bytes) => Readahead::Sequential { bytes },
            },
        }
    }
}
