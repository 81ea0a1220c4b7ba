//! Blocks: the unit that tables are read, checked, compressed and cached in.
//!
//! On disk a block is a payload, a tag byte (kind and codec) and a CRC over both, seeded with the
//! file's uid and the block's offset (R6). In memory a [`Block`] is the payload after those checks,
//! decompressed, with its own structure checked once: no restart offset or index column can then
//! lead a reader outside of it.
//!
//! Data blocks hold entries with prefix-compressed user keys, restart points, and a hash index from
//! user key to restart interval. Layout in `docs/format/block.md`.
//!
//! Owns: the bytes of a block, and the checks of them. Never does: read files (`table::read`), or
//! know other blocks.

mod account;
mod builder;
mod column;
mod compact;
mod entry;
mod get;
mod handle;
mod index;
mod iter;

pub use account::{Account, Charge};
pub(crate) use builder::BlockBuilder;
pub(crate) use compact::{GROUP, TAIL_HAS_TRAILER, TAIL_IS_SHORT, TAILS_BYTES_MAX};
pub use get::BlockGet;
pub(crate) use get::common_prefix;
pub use handle::{BlockHandle, Locate, PartitionHandle};
pub(crate) use index::{HAS_TRAILER, HEAD_BYTES, IS_COMPACT, IS_WIDE, IndexLayout, IndexLevel};
pub use iter::BlockIter;

use crate::codec::Codec;
use crate::filter::{self, Filter};
use entry::EntryLayout;
use windrow_base::key::{self, Kind};
use windrow_base::{Error, FileUid, KeyOrder, Result, SeqNo};
use windrow_env::Buffer;
use windrow_env::checksum::checksum;

/// Bytes after a block's payload on disk: tag and checksum.
pub const BLOCK_TRAILER_BYTES: usize = 5;

/// Bytes at the end of a data block's payload: restart count, hash buckets, flags.
const TAIL_BYTES: usize = 8;

/// The trailers of puts without a sequence number, which [`Block::give_seq`] sets.
const PUT_WITHOUT_SEQ: u64 = Kind::Put as u64;
const PUT_EXPIRY_WITHOUT_SEQ: u64 = Kind::PutExpiry as u64;

/// The most restarts that a hash index can name.
const HASH_RESTARTS_MAX: usize = 253;
/// The number of restart points that are prefetched before a search among them: the search would
/// wait for one after the other.
const ASKED_RESTARTS_MAX: usize = 16;

/// Bucket of keys in more than one restart interval, which need the binary search.
const BUCKET_COLLISION: u8 = 254;
/// Bucket without a key.
const BUCKET_EMPTY: u8 = 255;

/// The kind of a block's content. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockKind {
    /// Entries.
    Data = 1,
    /// An index, or a partition of one.
    Index = 2,
    /// A filter, or a partition of one.
    Filter = 3,
    /// Range tombstones.
    Tombstones = 4,
    /// Properties of the table.
    Properties = 5,
}

impl BlockKind {
    /// The name of the kind in messages.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Data => "data",
            BlockKind::Index => "index",
            BlockKind::Filter => "filter",
            BlockKind::Tombstones => "tombstone",
            BlockKind::Properties => "properties",
        }
    }

    /// The kind of the block that ends with this tag; `None` for a byte that is no tag.
    pub fn of_tag(tag: u8) -> Option<BlockKind> {
        use BlockKind::{Data, Filter, Index, Properties, Tombstones};
        let kinds = [Data, Index, Filter, Tombstones, Properties];
        let is_codec = Codec::from_u8(tag & 0x0f).is_ok();
        kinds.into_iter().find(|&kind| kind as u8 == tag >> 4 && is_codec)
    }
}

/// The tag byte: kind in the upper half, codec in the lower.
fn tag(kind: BlockKind, codec: Codec) -> u8 {
    (kind as u8) << 4 | codec as u8
}

/// The trailer for a payload that will be stored at `offset`.
pub(crate) fn trailer(
    uid: FileUid,
    offset: u64,
    kind: BlockKind,
    codec: Codec,
    payload: &[u8],
) -> [u8; BLOCK_TRAILER_BYTES] {
    let tag = tag(kind, codec);
    let crc = checksum(uid, offset, &[payload, &[tag]]).to_le_bytes();
    [tag, crc[0], crc[1], crc[2], crc[3]]
}

/// The positions of the parts of a data block's payload.
#[derive(Clone, Copy, Debug)]
struct DataLayout {
    /// Entries take `0..entries_end`; the restart offsets follow.
    entries_end: usize,
    restarts: usize,
    /// Bytes of the hash index, after the restart offsets; 0 without one.
    buckets: usize,
}

/// The structure that was found in a block's bytes. Small: a get from the cache waits for this line
/// of memory.
enum Parsed {
    /// A [`DataLayout`].
    Data {
        entries_end: u32,
        restarts: u32,
        buckets: u16,
    },
    Index(IndexLayout),
    /// The lines of a filter, which are all of the block's bytes.
    Filter {
        probes: u32,
    },
    Plain,
}

/// A verified, decompressed block.
pub struct Block {
    bytes: Buffer,
    parsed: Parsed,
    /// The charge for its memory, which ends with the block.
    charge: Option<Charge>,
}

impl Block {
    /// Checks a block in its form on disk, trailer included, and decompresses it.
    ///
    /// # Errors
    /// `Corruption` if the checksum fails, the block is of another kind, or
    /// its structure is impossible; `NotSupported` for a codec this build lacks.
    pub(crate) fn from_disk(
        mut raw: Buffer,
        uid: FileUid,
        offset: u64,
        kind: BlockKind,
    ) -> Result<Block> {
        let Some((covered, crc)) = raw.split_last_chunk::<4>().filter(|(c, _)| !c.is_empty())
        else {
            return Err(Error::corruption("block shorter than its trailer"));
        };
        if u32::from_le_bytes(*crc) != checksum(uid, offset, &[covered]) {
            return Err(Error::corruption(format!("{} block fails its checksum", kind.name())));
        }
        let tag = covered[covered.len() - 1];
        if tag >> 4 != kind as u8 {
            return Err(Error::corruption(format!("a {} block is of another kind", kind.name())));
        }
        let codec = Codec::from_u8(tag & 0x0f)?;
        raw.truncate(raw.len() - BLOCK_TRAILER_BYTES);
        let payload = if codec == Codec::None { raw } else { codec.decompress(&raw)? };
        Block::parse(payload, kind)
    }

    /// Makes a data block of its payload, which was just built.
    ///
    /// # Errors
    /// `Corruption` if its structure is impossible.
    pub(crate) fn of_entries(payload: &[u8]) -> Result<Block> {
        Block::parse(Buffer::copy_of(payload), BlockKind::Data)
    }

    fn parse(bytes: Buffer, kind: BlockKind) -> Result<Block> {
        let parsed = match kind {
            BlockKind::Data => parse_data(&bytes)?,
            BlockKind::Index => Parsed::Index(IndexLayout::parse(&bytes)?),
            BlockKind::Filter => {
                let (bytes, probes) = Filter::parse(bytes)?.into_parts();
                return Ok(Block { bytes, parsed: Parsed::Filter { probes }, charge: None });
            }
            BlockKind::Tombstones | BlockKind::Properties => Parsed::Plain,
        };
        Ok(Block { bytes, parsed, charge: None })
    }

    /// Attaches a charge for the block's memory, which ends with the block.
    pub fn carry(&mut self, charge: Charge) {
        self.charge = Some(charge);
    }

    /// The payload; for a filter, its lines.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + size_of::<Block>()
    }

    /// Whether a filter block may hold a key of this hash; `true` for other kinds.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        match self.parsed {
            Parsed::Filter { probes } => filter::lines_may_contain(&self.bytes, probes, hash),
            _ => true,
        }
    }

    pub(crate) fn into_filter(self) -> Option<Filter> {
        match self.parsed {
            Parsed::Filter { probes } => Some(Filter::of_parts(self.bytes, probes)),
            _ => None,
        }
    }

    /// Sets the sequence number of a data block's entries, in a table whose entries have none
    /// ([`crate::table::Properties::given_above`]). Blocks of other kinds are not changed: their
    /// keys, without a number, still lead to the right block, since such a table holds each key
    /// once.
    ///
    /// # Errors
    /// `Corruption` if an entry has a number, is no put, or is malformed.
    pub fn give_seq(&mut self, seq: SeqNo) -> Result<()> {
        let (mut at, end) = (0, self.data().entries_end);
        while at < end {
            let Some(entry) = EntryLayout::read(&self.bytes[..end], at) else {
                return Err(entry::malformed());
            };
            let kind = match entry.trailer(&self.bytes) {
                PUT_WITHOUT_SEQ => Kind::Put,
                PUT_EXPIRY_WITHOUT_SEQ => Kind::PutExpiry,
                _ => {
                    return Err(Error::corruption(
                        "an entry that was to be given a number has one",
                    ));
                }
            };
            let given = key::trailer(seq, kind).to_le_bytes();
            self.bytes[entry.trailer_at..entry.trailer_at + given.len()].copy_from_slice(&given);
            at = entry.end;
        }
        Ok(())
    }

    /// The layout of an index block.
    pub(crate) fn index_layout(&self) -> Option<&IndexLayout> {
        match &self.parsed {
            Parsed::Index(layout) => Some(layout),
            _ => None,
        }
    }

    /// The layout of a data block; an empty one for blocks of other kinds.
    #[inline]
    fn data(&self) -> DataLayout {
        match self.parsed {
            Parsed::Data { entries_end, restarts, buckets } => DataLayout {
                entries_end: entries_end as usize,
                restarts: restarts as usize,
                buckets: usize::from(buckets),
            },
            _ => DataLayout { entries_end: 0, restarts: 0, buckets: 0 },
        }
    }

    /// The bytes of the entries.
    #[inline]
    fn entries(&self, layout: &DataLayout) -> &[u8] {
        &self.bytes[..layout.entries_end]
    }

    /// Offset of a restart point. `index` is below `layout.restarts`.
    #[inline]
    fn restart(&self, layout: &DataLayout, index: usize) -> usize {
        let at = layout.entries_end + index * 4;
        match self.bytes[at..].first_chunk::<4>() {
            Some(bytes) => u32::from_le_bytes(*bytes) as usize,
            None => layout.entries_end,
        }
    }

    /// The end of a restart interval.
    #[inline]
    fn restart_end(&self, layout: &DataLayout, index: usize) -> usize {
        if index + 1 < layout.restarts {
            self.restart(layout, index + 1)
        } else {
            layout.entries_end
        }
    }

    /// The last restart point whose entry comes before `(user_key, trailer)`, or the first.
    fn seek_restart(
        &self,
        layout: &DataLayout,
        order: &KeyOrder,
        user_key: &[u8],
        trailer: u64,
    ) -> Result<usize> {
        if layout.restarts <= ASKED_RESTARTS_MAX {
            for restart in 1..layout.restarts {
                let at = self.restart(layout, restart);
                windrow_env::prefetch(self.bytes.get(at..at + 1).unwrap_or_default());
            }
        }
        let bytewise = order.is_bytewise();
        let prefix = key::prefix_u64(user_key);
        let (mut lo, mut hi) = (0, layout.restarts);
        // Invariant: entries of restarts below `lo` come before the target (or lo is 0).
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            let (key, entry_trailer) =
                entry::at_restart(self.entries(layout), self.restart(layout, mid))?;
            let mid_prefix = key::prefix_u64(key);
            let before = if bytewise && mid_prefix != prefix {
                mid_prefix < prefix
            } else {
                order.compare(key, user_key).then(trailer.cmp(&entry_trailer)).is_lt()
            };
            if before {
                lo = mid;
            } else {
                hi = mid;
            }
        }
        Ok(lo)
    }

    /// The restart interval that holds byte `offset` of the entries.
    fn restart_of(&self, layout: &DataLayout, offset: usize) -> usize {
        let (mut lo, mut hi) = (0, layout.restarts);
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            if self.restart(layout, mid) <= offset {
                lo = mid;
            } else {
                hi = mid;
            }
        }
        lo
    }
}

fn parse_data(bytes: &[u8]) -> Result<Parsed> {
    let bad = || Error::corruption("data block of an impossible shape");
    let (body, tail) = bytes.split_last_chunk::<TAIL_BYTES>().ok_or_else(bad)?;
    let restarts = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
    let buckets = u16::from_le_bytes([tail[4], tail[5]]);
    if tail[6..] != [0, 0] {
        return Err(Error::not_supported("data block with flags that need a newer Windrow"));
    }
    let fixed =
        restarts.checked_mul(4).and_then(|n| n.checked_add(buckets.into())).ok_or_else(bad)?;
    let entries_end = body.len().checked_sub(fixed).ok_or_else(bad)?;
    // Restarts ascend from 0 and stay inside; an empty block has none.
    let mut next_min = 0;
    for (i, offset) in body[entries_end..].as_chunks::<4>().0.iter().take(restarts).enumerate() {
        let offset = u32::from_le_bytes(*offset) as usize;
        if (i == 0 && offset != 0) || offset < next_min || offset >= entries_end {
            return Err(bad());
        }
        next_min = offset + 1;
    }
    let hash_index = &body[entries_end + restarts * 4..];
    let names_restart =
        |&b: &u8| b == BUCKET_EMPTY || b == BUCKET_COLLISION || (b as usize) < restarts;
    if (restarts == 0) != (entries_end == 0) || !hash_index.iter().all(names_restart) {
        return Err(bad());
    }
    // Restart points of four bytes reach no further.
    let entries_end = u32::try_from(entries_end).map_err(|_| bad())?;
    Ok(Parsed::Data { entries_end, restarts: restarts as u32, buckets })
}

#[inline]
fn bucket_of(hash: u64, buckets: usize) -> usize {
    ((u64::from(hash as u32) * buckets as u64) >> 32) as usize
}

#[cfg(test)]
mod tests;
