//! A scan by a cursor of RocksDB's, over any of its databases.
//!
//! Owns: the loop. Never does: make a cursor.

use rocksdb::{DBAccess, DBRawIteratorWithThreadMode};
use windrow_bench::store::{OnEntry, Result};

/// Moves to the first key at or after `from`, and on from there.
///
/// # Errors
/// RocksDB's.
pub(super) fn walk<D: DBAccess>(
    mut cursor: DBRawIteratorWithThreadMode<'_, D>,
    from: &[u8],
    entries: u64,
    each: OnEntry<'_>,
) -> Result<u64> {
    cursor.seek(from);
    let mut met = 0;
    while met < entries
        && let Some((key, value)) = cursor.item()
    {
        each(key, value);
        met += 1;
        if met < entries {
            cursor.next();
        }
    }
    cursor.status()?;
    Ok(met)
}
