//! The remaining lifetime of a key.
//!
//! Owns: the type. Never does: read a key ([`crate::Keyspace::ttl`] does).

use std::time::Duration;

/// The remaining lifetime of a key, if nobody writes it: see [`crate::Keyspace::ttl`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use std::time::Duration;
/// use windrow::Ttl;
/// db.put("a", "1")?;
/// db.put_with_ttl("b", "1", Duration::from_secs(60))?;
/// assert_eq!(db.ttl("a")?, Ttl::Forever);
/// assert!(matches!(db.ttl("b")?, Ttl::Left(left) if left <= Duration::from_secs(60)));
/// assert_eq!(db.ttl("c")?, Ttl::NoKey);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// There is no such key.
    NoKey,
    /// It never expires.
    Forever,
    /// It expires after this time.
    Left(Duration),
}
