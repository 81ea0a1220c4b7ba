//! The options of a transaction.
//!
//! Owns: the choices. Never does: act on them.

use std::time::Duration;
use windrow_read::options::WriteSync;

/// The behaviour of a transaction where others may come in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionMode {
    /// It goes on, and its commit finds conflicts: best where they are rare. Keys are locked only
    /// where [`crate::Transaction::get_for_update`] asks for it.
    #[default]
    Optimistic,
    /// It locks each key that it writes as well, and waits for others that did: best where many
    /// write the same few keys.
    Pessimistic,
}

/// The options of a transaction: for [`crate::Db::transaction_with`] and
/// [`crate::Db::transact_with`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::{WriteSync, TransactionOptions};
/// // Many threads take from the same account: they wait for each other, and none runs twice.
/// let waiting = TransactionOptions { sync: WriteSync::Yes, ..TransactionOptions::pessimistic() };
/// db.put("stock", [9])?;
/// db.transact_with(&waiting, |tx| {
///     let left = tx.get_for_update(&db, "stock")?.map_or(0, |bytes| bytes[0]);
///     if left > 0 {
///         tx.put(&db, "stock", [left - 1])?;
///     }
///     Ok::<_, windrow::Error>(())
/// })?;
/// assert_eq!(db.get("stock")?.as_deref(), Some(&[8][..]));
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Whether keys that are written are locked (default: optimistic, they are not).
    pub mode: TransactionMode,
    /// How long one call waits for the lock of a key (default: 1 s). Zero: it does not wait.
    pub lock_timeout: Duration,
    /// How durable a commit is (default: [`WriteSync::No`]).
    pub sync: WriteSync,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            mode: TransactionMode::Optimistic,
            lock_timeout: Duration::from_secs(1),
            sync: WriteSync::No,
        }
    }
}

impl TransactionOptions {
    /// The defaults, but pessimistic.
    pub fn pessimistic() -> TransactionOptions {
        TransactionOptions { mode: TransactionMode::Pessimistic, ..TransactionOptions::default() }
    }
}
