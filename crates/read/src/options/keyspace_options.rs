//! Options of one keyspace.
//!
//! Owns: their fields and defaults. Never does: compare them with those that a keyspace was made
//! with.

use super::KeyspaceSettings;

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
    /// Id of the comparator, one of
    /// [`Components::comparators`](crate::options::Components::comparators); `None`: bytewise for a
    /// new keyspace, the stored one for an old.
    pub comparator: Option<String>,
    /// Name of the merge operator, built in (`add`, which takes and keeps `i64::to_le_bytes`,
    /// `append`, `max` of bytes) or one of
    /// [`Components::merge_operators`](crate::options::Components::merge_operators); `None`: merges
    /// are refused in a new keyspace, the stored one is used for an old.
    pub merge_operator: Option<String>,
    /// The keyspace's own settings. Those that are given for a keyspace that exists are stored with
    /// it from then on, unless the database is open for reading only.
    pub settings: KeyspaceSettings,
}
