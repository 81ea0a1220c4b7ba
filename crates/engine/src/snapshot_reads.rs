//! Reads of the default keyspace as a snapshot sees it.
//!
//! Owns no state. Never does: a read that [`Keyspace`] does not offer for a snapshot.

use crate::key_range::KeyRange;
use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use windrow_base::{KeyspaceId, Result};
use windrow_read::read::cursor::Iter;
use windrow_read::slice::Slice;

impl Snapshot {
    fn default_keyspace(&self) -> Result<Keyspace> {
        Ok(Keyspace::new(
            self.inner.database.clone(),
            self.inner.database.tree(KeyspaceId::DEFAULT)?,
        ))
    }

    /// The value of `key` in the default keyspace.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `Closed` only if it was taken after a close.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.default_keyspace()?.get_at(self, key)
    }

    /// The entries of the default keyspace, in key order from either end.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The entries of a range of the default keyspace.
    pub fn range(&self, range: impl KeyRange) -> Iter {
        let keyspace = self.default_keyspace().expect("the default keyspace cannot be dropped");
        keyspace.range_at(self, range)
    }

    /// The entries of the default keyspace whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let keyspace = self.default_keyspace().expect("the default keyspace cannot be dropped");
        keyspace.prefix_at(self, prefix)
    }
}
