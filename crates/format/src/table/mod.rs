//! Tables: immutable sorted files of entries.
//!
//! A header, data blocks in key order, (partitions of a large index and filter between them), then
//! tombstones, filter, index, properties, and a footer of fixed size with their places. Layout in
//! `docs/format/table.md`.
//!
//! Owns: writing a table front to back, opening one, finding the block for a key, verifying all of
//! it, and finding the undamaged parts of a damaged one. Never does: cache blocks, name or delete
//! files, or choose among the versions of a key (the engine does).

mod footer;
mod index;
mod index_builder;
mod open;
mod partition;
mod pieces;
mod properties;
mod read;
mod remains;
mod sink;
mod verify;
mod writer;

pub use crate::block::{
    BLOCK_TRAILER_BYTES, Block, BlockHandle, BlockKind, Locate, PartitionHandle,
};
pub(crate) use footer::HEADER_MAGIC as MAGIC;
pub use footer::{FOOTER_BYTES, HEADER_BYTES, HEADER_MAGIC};
pub use index::{IndexIter, IndexPart, decode_partition};
pub use open::{FilterKind, Table};
pub use pieces::PieceReader;
pub use properties::Properties;
pub use read::{decode_block, read_block};
pub use remains::{Remains, remains, uids};
pub use verify::{VerifyCount, verify};
pub use writer::{TableSummary, TableWriter};

use crate::codec::Codec;
use windrow_base::{FileUid, KeyOrder, KeyspaceId, SeqNo};

/// How a table is written.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The file's identity; seeds its checksums. Drawn at random by the caller.
    pub uid: FileUid,
    /// Keyspace the entries belong to.
    pub keyspace: KeyspaceId,
    /// Order of the user keys.
    pub order: KeyOrder,
    /// Bytes of a data block before compression; exceeded only by a block of one larger entry.
    pub block_bytes: usize,
    /// Entries per restart point.
    pub restart_interval: u32,
    /// Whether data blocks get a hash index (where the order allows it).
    pub hash_index: bool,
    /// Codec of the data blocks; kept only for blocks it makes an eighth smaller.
    pub codec: Codec,
    /// Level of a codec that has levels.
    pub codec_level: i32,
    /// Filter bits per distinct user key; 0 for none.
    pub filter_bits_per_key: f64,
    /// Whether [`TableWriter::set_filter_bits`] may still set the bits: then keys are hashed even
    /// where the bits so far are 0.
    pub late_filter: bool,
    /// Index and filter together beyond this many bytes are partitioned.
    pub partition_bytes: usize,
    /// Level of the tree that the table is made for; only stored in the properties.
    pub level_hint: u32,
    /// When the table is made, ms since 1970.
    pub created_ms: u64,
    /// If set, the entries have sequence number 0, and the tree that the table becomes part of
    /// gives them one above this ([`Properties::given_above`]).
    pub given_above: Option<SeqNo>,
    /// The database that the table is made for; `None`: not stored.
    pub database_uid: Option<u64>,
}

impl TableOptions {
    /// Sensible options for a table of this identity and order.
    pub fn new(uid: FileUid, keyspace: KeyspaceId, order: KeyOrder) -> TableOptions {
        TableOptions {
            uid,
            keyspace,
            order,
            block_bytes: 4096,
            restart_interval: 16,
            hash_index: true,
            codec: Codec::None,
            codec_level: 0,
            filter_bits_per_key: 10.0,
            late_filter: false,
            partition_bytes: 4 << 20,
            level_hint: 0,
            created_ms: 0,
            given_above: None,
            database_uid: None,
        }
    }
}

/// The facts that the opener of a table knows from the manifest.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Length of the file.
    pub file_bytes: u64,
    /// Its identity.
    pub uid: FileUid,
    /// Order of the keyspace.
    pub order: KeyOrder,
}

#[cfg(test)]
mod tests;
