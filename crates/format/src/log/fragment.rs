//! Fragments: the pieces of a record, each with a header that has a checksum of its own.
//!
//! Owns: the kinds of fragments, and the fields of a header. Never does: know the header's bytes
//! (`fixed_header.rs`, `short_header.rs`), or put records together.

use windrow_base::{Error, Result};

/// The bytes of a fragment's header of fixed length, which no header that is written exceeds.
pub const HEADER_BYTES: usize = 32;

/// The most payload bytes of one fragment (1 MiB).
///
/// Large, since small fragments gain nothing: a record is valid only as a whole, and fragments only
/// bound the bytes that a writer must hold in one piece.
pub const FRAGMENT_BYTES_MAX: usize = 1 << 20;

/// The class of a record's payload. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// A write batch ([`crate::batch`]).
    Batch = 1,
    /// An edit of the manifest.
    Edit = 2,
    /// A note in a write-ahead log of the durable lengths of other files ([`Mark`](super::Mark)).
    Mark = 3,
}

impl Class {
    pub(super) fn from_u8(byte: u8) -> Result<Class> {
        Ok(match byte {
            1 => Class::Batch,
            2 => Class::Edit,
            3 => Class::Mark,
            _ => {
                return Err(Error::not_supported(format!(
                    "log record class {byte} needs a newer Windrow"
                )));
            }
        })
    }
}

/// A fragment's place in its record. The numbers are on disk; none is zero,
/// so that no valid header begins like preallocated space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FragmentKind {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl FragmentKind {
    pub(super) fn from_u8(byte: u8) -> Option<FragmentKind> {
        Some(match byte {
            1 => FragmentKind::Full,
            2 => FragmentKind::First,
            3 => FragmentKind::Middle,
            4 => FragmentKind::Last,
            _ => return None,
        })
    }

    pub(super) fn starts(self) -> bool {
        matches!(self, FragmentKind::Full | FragmentKind::First)
    }

    pub(super) fn ends(self) -> bool {
        matches!(self, FragmentKind::Full | FragmentKind::Last)
    }
}

/// The fields of a fragment's header, in either form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentHeader {
    pub(super) payload_crc: u32,
    pub(super) len: u32,
    pub(super) class: u8,
    pub(super) fragment: u8,
    pub(super) stream: u16,
    pub(super) durable_up_to: u64,
}
