//! An open table: the parts of it that stay in memory, and the lookup of a key's block.
//!
//! Owns: the properties, the index or its top level, the whole filter, and the range tombstones.
//! Never does: hold the file, or read a data block.

use super::footer::{FOOTER_BYTES, Footer, HEADER_BYTES};
use super::index::{IndexPart, decode_partition};
use super::{Block, BlockHandle, BlockKind, Expect, IndexIter, Locate, Properties, decode_block};
use crate::block::IndexLevel;
use crate::filter::Filter;
use crate::tombstone::Tombstones;
use std::sync::Arc;
use windrow_base::key::{ENTRIES_PER_BYTE_MAX, split};
use windrow_base::{Error, KeyOrder, Result};
use windrow_env::{Buffer, ReadFile};

/// The meta blocks of a table take about this share of it, or less where its index is in
/// partitions: as a rule one read at open gets them all.
const META_SHARE: u64 = 32;
const TAIL_BYTES_MIN: u64 = 4 << 10;
const TAIL_BYTES_MAX: u64 = 32 << 10;

/// The kinds of filters of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// No filter: every key may be there (I8).
    None,
    /// One filter, held in memory: [`Table::may_contain`].
    Whole,
    /// One filter per partition, read with it: [`super::PartitionHandle::filter`].
    Partitioned,
}

/// The parts of an open table that stay in memory: properties, index (the top level of a
/// partitioned one), filter (unless partitioned), range tombstones.
pub struct Table {
    properties: Properties,
    order: KeyOrder,
    index: Arc<Block>,
    filter: Option<Filter>,
    filter_kind: FilterKind,
    partitioned: bool,
    tombstones: Tombstones,
    opening_bytes: u64,
    pub(super) footer: Footer,
}

impl Table {
    /// Opens a table: reads and checks its footer and meta blocks.
    ///
    /// # Errors
    /// `Corruption` if the file's length or uid is another, or any of those bytes is damaged;
    /// `NotSupported` for a newer format; `InvalidArgument` if the keys are in another comparator's
    /// order; `Io`.
    pub fn open(file: &Arc<dyn ReadFile>, expect: Expect) -> Result<Table> {
        Table::open_file(&**file, expect)
            .map_err(|e| e.with_file(file.path().display().to_string()))
    }

    fn open_file(file: &dyn ReadFile, expect: Expect) -> Result<Table> {
        let file_bytes = file.len();
        if file_bytes != expect.file_bytes || file_bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(Error::corruption(format!(
                "table has {file_bytes} bytes, the manifest says {}",
                expect.file_bytes
            )));
        }
        let guess = (file_bytes / META_SHARE).clamp(TAIL_BYTES_MIN, TAIL_BYTES_MAX).min(file_bytes);
        let mut tail = FileTail::read(file, file_bytes - guess)?;
        let footer_at = file_bytes - FOOTER_BYTES as u64;
        let footer = Footer::decode(tail.get(footer_at, FOOTER_BYTES), file_bytes, expect.uid)
            .map_err(|e| e.with_offset(footer_at))?;
        let mut opening_bytes = guess;
        if footer.meta_offset() < tail.start {
            tail = FileTail::read(file, footer.meta_offset())?;
            opening_bytes += file_bytes - tail.start;
        }
        let block = |handle: BlockHandle, kind| -> Result<Block> {
            let raw = Buffer::copy_of(tail.get(handle.offset, handle.bytes as usize));
            decode_block(raw, file.path(), expect.uid, handle, kind)
        };
        let properties = block(footer.properties, BlockKind::Properties)?;
        let properties = Properties::decode(properties.bytes())
            .map_err(|e| e.with_offset(footer.properties.offset))?;
        check_properties(&properties, &expect)?;
        let index = block(footer.index, BlockKind::Index)?;
        let filter = match footer.filter.bytes {
            0 => None,
            _ => block(footer.filter, BlockKind::Filter)?.into_filter(),
        };
        let tombstones = match footer.tombstones.bytes {
            0 => Tombstones::empty(),
            _ => Tombstones::decode(
                block(footer.tombstones, BlockKind::Tombstones)?.bytes(),
                &expect.order,
                footer.layered,
            )
            .map_err(|e| e.with_offset(footer.tombstones.offset))?,
        };
        if tombstones.pairs() != properties.range_tombstones {
            return Err(Error::corruption(
                "table has another number of range tombstones than it says",
            ));
        }
        check_index(decode_partition(&index)?, &footer)?;
        let filter_kind = match (footer.filtered, footer.partitioned) {
            (false, _) => FilterKind::None,
            (true, true) => FilterKind::Partitioned,
            (true, false) if filter.is_some() => FilterKind::Whole,
            (true, false) => {
                return Err(Error::corruption("table lacks the filter it says it has"));
            }
        };
        Ok(Table {
            properties,
            order: expect.order,
            index: Arc::new(index),
            filter,
            filter_kind,
            partitioned: footer.partitioned,
            tombstones,
            opening_bytes,
            footer,
        })
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let p = &self.properties;
        let bounds = p.bounds_memory_bytes();
        size_of::<Table>()
            + self.index.memory_bytes()
            + self.filter.as_ref().map_or(0, Filter::memory_bytes)
            + self.tombstones.memory_bytes()
            + bounds
    }

    /// The table's properties.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Its range tombstones.
    pub fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// The kind of its filter.
    pub fn filter(&self) -> FilterKind {
        self.filter_kind
    }

    /// Whether the index is in partitions.
    pub fn is_partitioned(&self) -> bool {
        self.partitioned
    }

    /// The number of partitions of the index; 0 for one that is not partitioned.
    pub fn partitions(&self) -> usize {
        match decode_partition(&self.index) {
            Ok(top) if self.partitioned => top.len(),
            _ => 0,
        }
    }

    /// The bytes that were read to open the table.
    pub fn opening_bytes(&self) -> u64 {
        self.opening_bytes
    }

    /// Whether a user key of this [`crate::filter::hash`] may be among the point entries, by the
    /// whole filter; `true` without one.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        match &self.filter {
            Some(filter) => filter.may_contain(hash),
            None => true,
        }
    }

    /// Returns the data block (or partition) that holds the first entry at or after an internal
    /// key, if there is one. An entry of that user key with that or an older trailer is in this
    /// block, or not in the table.
    #[inline]
    pub fn locate(&self, internal_key: &[u8]) -> Locate {
        let (user_key, trailer) = split(internal_key);
        self.locate_user(user_key, trailer)
    }

    /// [`Table::locate`] for a key in two parts.
    #[inline]
    pub fn locate_user(&self, user_key: &[u8], trailer: u64) -> Locate {
        match decode_partition(&self.index) {
            Ok(part) => part.locate_user(&self.order, user_key, trailer),
            Err(_) => Locate::None,
        }
    }

    /// An iterator over the index, not positioned yet: data blocks of a whole
    /// index, partitions of a partitioned one.
    pub fn index_iter(&self) -> IndexIter {
        IndexIter::over(Arc::clone(&self.index), self.order.clone())
    }

    /// The bytes of data before the data that may hold an internal key, exact to a block, or to a
    /// partition of a partitioned index.
    pub fn data_bytes_before(&self, internal_key: &[u8]) -> u64 {
        match decode_partition(&self.index) {
            Ok(part) => part.data_offset(&self.order, internal_key) - part.base(),
            Err(_) => 0,
        }
    }
}

/// Refuses counts that are more than the file can hold: counts are summed over tables.
fn check_counts(p: &Properties, file_bytes: u64) -> Result<()> {
    let counts_max = file_bytes.saturating_mul(ENTRIES_PER_BYTE_MAX);
    let suits = p.entries <= counts_max
        && p.range_tombstones <= counts_max
        && p.point_tombstones <= p.entries
        && p.expiring_entries <= p.entries
        && p.filter_bytes <= file_bytes;
    if suits {
        return Ok(());
    }
    Err(Error::corruption("table properties count more than the file can hold"))
}

fn check_properties(properties: &Properties, expect: &Expect) -> Result<()> {
    check_counts(properties, expect.file_bytes)?;
    if properties.uid != expect.uid {
        return Err(Error::corruption("table properties carry another file's uid"));
    }
    if properties.comparator != expect.order.id() {
        return Err(Error::invalid(format!(
            "table is ordered by comparator {:?}, not {:?}",
            properties.comparator,
            expect.order.id()
        )));
    }
    Ok(())
}

/// Checks that the index is of the footer's level, and points before the meta blocks.
fn check_index(index: IndexPart<'_>, footer: &Footer) -> Result<()> {
    let level = if footer.partitioned { IndexLevel::Partitions } else { IndexLevel::Blocks };
    let last_end = match index.len().checked_sub(1).map_or(Locate::None, |last| index.get(last)) {
        Locate::Block(handle) => handle.end(),
        Locate::Partition(partition) => partition.index.end(),
        Locate::None => HEADER_BYTES as u64,
    };
    if index.level() != level
        || last_end > footer.meta_offset()
        || index.base() < HEADER_BYTES as u64
    {
        return Err(Error::corruption("table index points outside its data"));
    }
    Ok(())
}

/// The end of a file, in memory.
struct FileTail {
    start: u64,
    bytes: Buffer,
}

impl FileTail {
    fn read(file: &dyn ReadFile, start: u64) -> Result<FileTail> {
        let mut bytes = Buffer::new((file.len() - start) as usize);
        file.read_at(start, &mut bytes)?;
        Ok(FileTail { start, bytes })
    }

    /// Bytes at a file offset; empty if they are not all in this tail.
    fn get(&self, offset: u64, len: usize) -> &[u8] {
        let from = offset.wrapping_sub(self.start) as usize;
        self.bytes.get(from..).and_then(|b| b.get(..len)).unwrap_or_default()
    }
}
