//! Identities: files, keyspaces, and the epochs that order an SST-log.
//!
//! Plain integers by type alias where code counts with them (file numbers, epochs), a newtype where
//! mixing them up would be silent (keyspace ids).
//!
//! Owns: the types and their limits. Never does: give one out.

/// Number of a file in a database directory; never reused (rule R8).
pub type FileNumber = u64;

/// The largest file number and the largest epoch: so far from where counting
/// on would wrap that no database gets there. A larger one was not written by
/// Windrow, and must not be counted on from (R8).
pub const COUNTER_MAX: u64 = (1 << 62) - 1;

/// Random 64-bit identity of a file's contents. Seeds its checksums (rule R6).
///
/// Not the file number: ingested and copied databases reuse numbers.
pub type FileUid = u64;

/// Entry epoch of a file of an SST-log: the order in which files entered it,
/// larger is newer (invariant I4). Persisted in the manifest, unique within a keyspace
/// but for the outputs of one job, which share their inputs' newest.
pub type Epoch = u64;

/// Identity of a keyspace; never reused within a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyspaceId(pub u32);

impl KeyspaceId {
    /// The keyspace that every database has, under the name `default`.
    pub const DEFAULT: KeyspaceId = KeyspaceId(0);
}

impl core::fmt::Display for KeyspaceId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}
