//! The items of the feed: a batch, and its operations.
//!
//! Owns: their form, and how one is made of an operation in a log. Never does: read a log.

use std::sync::Arc;
use windrow_base::{Error, KeyspaceId, Kind, Result, SeqNo};
use windrow_format::batch::Op;
use windrow_read::read::split_expiry;

/// A committed batch.
///
/// See [`crate::Db::changes`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The number of the batch's first operation; `seq + 1` for a drop of a keyspace, which has no
    /// number of its own.
    pub first_seq: SeqNo,
    /// The number of the last operation. A consumer that has done all of them goes on with
    /// `seq + 1`.
    pub seq: SeqNo,
    /// The operations, in order. None are left of a batch whose keyspaces are gone for too long.
    pub operations: Vec<Operation>,
}

impl Change {
    /// Makes a change that a consumer has sent elsewhere, to apply it there.
    pub fn new(first_seq: SeqNo, seq: SeqNo, operations: Vec<Operation>) -> Change {
        Change { first_seq, seq, operations }
    }
}

/// A change that was read from a log, with the keyspace of each operation.
pub(super) struct ReadChange {
    pub(super) change: Change,
    pub(super) keyspaces: Vec<KeyspaceId>,
}

/// The value that a key had before an operation, those before it in its batch included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OldValue {
    /// It was not asked for ([`ChangeOptions::old_values`](super::ChangeOptions::old_values)), or is
    /// not known: after an ingestion; in a keyspace that was dropped before the feed came to it;
    /// where the merge operator refuses the values that are stored.
    #[default]
    Unknown,
    /// The key was not there.
    Absent,
    /// As readers saw it, operands merged. It may have expired since the snapshot before.
    Value(Vec<u8>),
}

/// An operation of a [`Change`]. Keyspaces go by the names that they had then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A key got a value.
    Put {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
        /// The time at which it expires, in ms since 1970, if it does.
        expiry_ms: Option<u64>,
        /// The value before, if the feed gives it.
        old: OldValue,
    },
    /// A key was removed.
    Delete {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Vec<u8>,
        /// The value before, if the feed gives it.
        old: OldValue,
    },
    /// A key was removed that had been put once ([`crate::Batch::single_delete`]).
    SingleDelete {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Vec<u8>,
        /// The value before, if the feed gives it.
        old: OldValue,
    },
    /// All keys of a range were removed. (It has no old values: there may be any number of them.)
    DeleteRange {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The first key.
        from: Vec<u8>,
        /// The end, exclusive.
        to: Vec<u8>,
    },
    /// An operand for the keyspace's merge operator.
    Merge {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Vec<u8>,
        /// The operand.
        operand: Vec<u8>,
        /// The time at which it expires, in ms since 1970, if it does.
        expiry_ms: Option<u64>,
        /// The value before, if the feed gives it.
        old: OldValue,
    },
    /// Entries came into the keyspace by an ingestion, which writes no log: the feed does not have
    /// them. Copy the keyspace from a snapshot with this number or a later one.
    Ingested {
        /// The keyspace.
        keyspace: Arc<str>,
    },
    /// The keyspace was dropped. (It is made by its first operation, as far as the feed tells.)
    KeyspaceDropped {
        /// The keyspace.
        keyspace: Arc<str>,
    },
}

impl Operation {
    /// The keyspace that it applies to.
    pub fn keyspace(&self) -> &str {
        match self {
            Operation::Put { keyspace, .. }
            | Operation::Delete { keyspace, .. }
            | Operation::SingleDelete { keyspace, .. }
            | Operation::DeleteRange { keyspace, .. }
            | Operation::Merge { keyspace, .. }
            | Operation::Ingested { keyspace }
            | Operation::KeyspaceDropped { keyspace } => keyspace,
        }
    }

    /// An operation as it is in a log, in the keyspace of this name.
    ///
    /// # Errors
    /// `Corruption` for a value that is too short, `NotSupported` for a newer kind.
    pub(super) fn of(op: &Op<'_>, keyspace: Arc<str>) -> Result<Operation> {
        let key = op.key.to_vec();
        let (expiry_ms, value) = match op.kind.has_expiry() {
            true => {
                let (expiry_ms, value) = split_expiry(op.value)?;
                (Some(expiry_ms), value.to_vec())
            }
            false => (None, op.value.to_vec()),
        };
        let old = OldValue::Unknown;
        Ok(match op.kind {
            Kind::Put | Kind::PutExpiry => Operation::Put { keyspace, key, value, expiry_ms, old },
            Kind::Delete => Operation::Delete { keyspace, key, old },
            Kind::SingleDelete => Operation::SingleDelete { keyspace, key, old },
            Kind::Merge | Kind::MergeExpiry => {
                Operation::Merge { keyspace, key, operand: value, expiry_ms, old }
            }
            // No batch has an empty range: see `Pipeline::ingest`.
            Kind::RangeDelete if key == value => Operation::Ingested { keyspace },
            Kind::RangeDelete => Operation::DeleteRange { keyspace, from: key, to: value },
            Kind::Blob | Kind::BlobExpiry => {
                return Err(Error::not_supported("an operation of the log needs a newer Windrow"));
            }
        })
    }
}
