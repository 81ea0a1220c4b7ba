//! How long a key is there for.

use std::time::Duration;

/// How long a key is there for, if nobody writes it: see [`crate::Keyspace::ttl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// There is no such key.
    NoKey,
    /// It never expires.
    Forever,
    /// It expires after this long.
    Left(Duration),
}
