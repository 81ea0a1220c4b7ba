//! Writes a table front to back.
//!
//! Nothing is allocated per entry: the last key, the block being built and the compressor's output
//! are reused. Order is checked for every entry (and again by the reader's `verify`): entries may
//! come from damaged tables, so a breach is an error and not a panic.
//!
//! Owns: the file while it is written, and the table's properties. Never does: name or delete the
//! file, or choose which entries are written.

use super::footer::{Footer, encode_header};
use super::partition::PartitionBuilder;
use super::properties::Properties;
use super::sink::BlockSink;
use super::{BLOCK_TRAILER_BYTES, BlockKind, FOOTER_BYTES, HEADER_BYTES, TableOptions};
use crate::block::{Block, BlockBuilder, common_prefix};
use crate::codec::Compressor;
use crate::filter;
use crate::tombstone::{Collector, FragmentRef, Fragments, RangeTombstone, Tombstones};
use windrow_base::bound::Bound;
use windrow_base::key::{
    KEY_BYTES_MAX, Kind, TRAILER_BYTES, VALUE_BYTES_MAX, push_internal, trailer_kind, trailer_seq,
};
use windrow_base::{Error, FileNumber, KeyOrder, Result, SeqNo, check_invariant};
use windrow_env::WriteFile;

/// The most bytes of a data block that options can ask for.
const BLOCK_BYTES_MAX: usize = 16 << 20;

/// The summary of a written table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSummary {
    /// Length of the file.
    pub file_bytes: u64,
    /// Point entries.
    pub entries: u64,
    /// Of them, deletes and single deletes.
    pub point_tombstones: u64,
    /// Range tombstones, counted by fragment and sequence number.
    pub range_tombstones: u64,
    /// First and last user key of the point entries.
    pub point_bounds: Option<(Bound, Bound)>,
    /// Smallest and largest user key of points and range tombstones, and
    /// whether the largest is the exclusive end of a range tombstone.
    pub bounds: (Bound, Bound, bool),
    /// Smallest sequence number, range tombstones included.
    pub seq_min: SeqNo,
    /// Largest sequence number, range tombstones included.
    pub seq_max: SeqNo,
    /// Bytes of all internal keys.
    pub raw_key_bytes: u64,
    /// Bytes of all values.
    pub raw_value_bytes: u64,
    /// Bytes of the data blocks on disk.
    pub data_bytes: u64,
    /// Bytes of the index on disk, partitions included.
    pub index_bytes: u64,
    /// Bytes of the filter on disk, partitions included.
    pub filter_bytes: u64,
    /// Entries with an expiry.
    pub expiring_entries: u64,
    /// The earliest expiry, ms since 1970; 0 without expiring entries.
    pub expiry_min_ms: u64,
}

/// Writes one table. Dropped without `finish`, it leaves a file that the caller removes.
pub struct TableWriter {
    sink: BlockSink,
    options: TableOptions,
    order: KeyOrder,
    hash_keys: bool,
    block: BlockBuilder,
    compressor: Compressor,
    directory: PartitionBuilder,
    tombstones: Collector,
    properties: Properties,
    /// User key and trailer of the last entry.
    last_key: Vec<u8>,
    last_trailer: u64,
    separator: Vec<u8>,
    separator_user: Vec<u8>,
    cached: CachedSources,
}

/// The bytes of the block being built whose entries come from cached blocks.
#[derive(Default)]
struct CachedSources {
    bytes: u64,
    cached_bytes: u64,
    /// The block before, if most of its bytes did.
    ended: Option<(u64, Block)>,
}

impl CachedSources {
    /// Begins to count for the next block. Returns whether most bytes of the last one were cached.
    fn end_block(&mut self) -> bool {
        let most = self.bytes < 2 * self.cached_bytes;
        (self.bytes, self.cached_bytes) = (0, 0);
        most
    }
}

impl TableWriter {
    /// Starts a table: writes the file's header.
    ///
    /// # Errors
    /// `NotSupported` for a codec that is not built in; errors of the file.
    pub fn new(file: Box<dyn WriteFile>, mut options: TableOptions) -> Result<TableWriter> {
        options.block_bytes = options.block_bytes.min(BLOCK_BYTES_MAX);
        let mut sink = BlockSink { file, uid: options.uid };
        sink.file.append(&encode_header(options.uid))?;
        let order = options.order.clone();
        let hash_index = options.hash_index && order.equality_is_bytewise();
        let directory = PartitionBuilder::new(
            order.clone(),
            options.filter_bits_per_key,
            options.late_filter,
            options.partition_bytes,
            HEADER_BYTES as u64,
        );
        let properties = Properties {
            uid: options.uid,
            keyspace: options.keyspace,
            comparator: order.id().to_string(),
            seq_min: SeqNo::MAX,
            created_ms: options.created_ms,
            level_hint: options.level_hint,
            codec: options.codec,
            block_bytes: options.block_bytes as u64,
            restart_interval: options.restart_interval,
            given_above: options.given_above,
            database_uid: options.database_uid,
            ..Properties::default()
        };
        Ok(TableWriter {
            sink,
            hash_keys: hash_index || directory.filtered(),
            block: BlockBuilder::new(options.restart_interval, hash_index),
            compressor: Compressor::new(options.codec, options.codec_level)?,
            directory,
            tombstones: Collector::default(),
            properties,
            last_key: Vec::new(),
            last_trailer: 0,
            separator: Vec::new(),
            separator_user: Vec::new(),
            cached: CachedSources::default(),
            order,
            options,
        })
    }

    /// Adds a point entry; keys must ascend.
    ///
    /// # Errors
    /// `Corruption` if the key is malformed (the caller read it from somewhere), `InvalidArgument`
    /// beyond the limits and where a comparator contradicts itself, `NotSupported` for an unknown
    /// kind, `Internal` if the key is not after the last one; errors of the file. After an error
    /// the table must be abandoned.
    #[inline]
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let Some((user_key, tail)) = internal_key.split_last_chunk::<TRAILER_BYTES>() else {
            return Err(Error::corruption("internal key shorter than its trailer"));
        };
        let entry_trailer = u64::from_le_bytes(*tail);
        let shared = common_prefix(user_key, &self.last_key);
        let same = self.check_order(user_key, entry_trailer, shared)?;
        self.count(user_key, entry_trailer, value)?;

        let room = BlockBuilder::bytes_of_entry(user_key.len(), value.len());
        let full = self.block.bytes() + room + BLOCK_TRAILER_BYTES > self.options.block_bytes;
        if full && !self.block.is_empty() {
            self.end_block(Some(user_key))?;
        }
        // Every block adds the hashes of all its keys: a partition's filter must know a key whose
        // versions began in the block before.
        let hash = if self.hash_keys && (!same || self.block.is_empty()) {
            let hash = filter::hash(user_key);
            if self.directory.filtered() {
                self.directory.add_hash(hash);
            }
            Some(hash)
        } else {
            None
        };
        self.block.add(user_key, *tail, value, shared, hash);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&user_key[shared..]);
        self.last_trailer = entry_trailer;
        Ok(())
    }

    /// Returns whether the user key is that of the last entry; an error if the entry is out of
    /// order.
    #[inline]
    fn check_order(&self, user_key: &[u8], entry_trailer: u64, shared: usize) -> Result<bool> {
        if self.properties.entries == 0 {
            return Ok(false);
        }
        let (last, same, ascends) = match &self.order {
            KeyOrder::Bytewise => {
                let same = shared == user_key.len() && shared == self.last_key.len();
                let next = user_key.get(shared);
                (self.last_trailer, same, self.last_key.get(shared) < next)
            }
            KeyOrder::Custom(c) => {
                let ordering = c.compare(&self.last_key, user_key);
                (self.last_trailer, ordering.is_eq(), ordering.is_lt())
            }
        };
        let in_order = ascends || (same && last > entry_trailer);
        if !in_order {
            self.blame_comparator()?;
        }
        check_invariant!(I1, in_order, "entries given to a table are not in order");
        Ok(same)
    }

    /// Returns an error if the order is a user's comparator: keys that are not in order are its
    /// fault.
    #[cold]
    fn blame_comparator(&self) -> Result<()> {
        let KeyOrder::Custom(comparator) = &self.order else { return Ok(()) };
        Err(Error::invalid(format!(
            "comparator `{}` gives no total order: it has two keys before each other",
            comparator.id()
        )))
    }

    #[inline]
    fn count(&mut self, user_key: &[u8], entry_trailer: u64, value: &[u8]) -> Result<()> {
        let kind = Kind::from_u8(trailer_kind(entry_trailer))?;
        let seq = trailer_seq(entry_trailer);
        let p = &mut self.properties;
        if user_key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX + 8 {
            return Err(Error::invalid("key or value beyond its limit"));
        }
        if kind.has_expiry() {
            let Some(expiry) = value.first_chunk::<8>() else {
                return Err(Error::corruption("expiring value shorter than its expiry"));
            };
            let expiry_ms = u64::from_le_bytes(*expiry);
            let first = p.expiring_entries == 0;
            p.expiry_min_ms = if first { expiry_ms } else { p.expiry_min_ms.min(expiry_ms) };
            p.expiring_entries += 1;
        } else if kind == Kind::RangeDelete {
            return Err(Error::corruption("a range tombstone is among point entries"));
        }
        if p.entries == 0 {
            p.point_bounds = Some((user_key.into(), Bound::default()));
        }
        p.entries += 1;
        p.point_tombstones += u64::from(kind.is_point_tombstone());
        p.seq_min = p.seq_min.min(seq);
        p.seq_max = p.seq_max.max(seq);
        p.raw_key_bytes += (user_key.len() + TRAILER_BYTES) as u64;
        p.raw_value_bytes += value.len() as u64;
        Ok(())
    }

    /// Adds a range tombstone. They must come by key, and those of one fragment newest first.
    /// Points and range tombstones may be added in any interleaving.
    ///
    /// # Errors
    /// `Corruption` if it overlaps the last one without being of the same fragment.
    pub fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.tombstones.add(&self.order, tombstone.parts())?;
        self.count_tombstones(&[tombstone.seq]);
        Ok(())
    }

    /// Adds a fragment of range tombstones, at or after the last one's end.
    ///
    /// # Errors
    /// `Corruption` if it is out of order.
    pub fn add_fragment(&mut self, fragment: FragmentRef<'_>) -> Result<()> {
        self.tombstones.add_fragment(&self.order, fragment)?;
        self.count_tombstones(fragment.seqs);
        Ok(())
    }

    /// Adds a layer of range tombstones, newer than the layers before, and shares its memory.
    ///
    /// # Errors
    /// `Corruption` if it is not newer, or its fragments are out of order.
    pub fn add_tombstone_layer(&mut self, layer: &Fragments) -> Result<()> {
        self.tombstones.add_layer(&self.order, layer)?;
        layer.iter().for_each(|fragment| self.count_tombstones(fragment.seqs));
        Ok(())
    }

    /// Ends a layer of range tombstones: the next ones are newer, and begin at the first key again.
    pub fn end_tombstone_layer(&mut self) {
        self.tombstones.end_layer();
    }

    fn count_tombstones(&mut self, seqs: &[SeqNo]) {
        let p = &mut self.properties;
        p.range_tombstones += seqs.len() as u64;
        for &seq in seqs {
            p.seq_min = p.seq_min.min(seq);
            p.seq_max = p.seq_max.max(seq);
        }
    }

    /// About the bytes that the file would have if it were finished now.
    pub fn estimated_bytes(&self) -> u64 {
        let pending = self.block.bytes() + self.directory.pending_bytes();
        self.sink.offset() + (pending + self.tombstones.memory_bytes() + FOOTER_BYTES) as u64
    }

    /// The number of point entries added.
    pub fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Sets the bits per key of the filters that are not written yet: the whole filter, or those of
    /// later partitions. Needs [`TableOptions::late_filter`] or bits above 0 from the start. The
    /// first partition decides whether the table has filters at all.
    pub fn set_filter_bits(&mut self, bits_per_key: f64) {
        self.directory.set_bits_per_key(bits_per_key);
    }

    /// The number of keys whose filter is not written yet, and the bytes of written filters.
    pub fn filter_progress(&self) -> (usize, u64) {
        (self.directory.pending_keys(), self.directory.filter_bytes())
    }

    /// The most pieces that the filter of the pending keys may be written in.
    pub fn filter_pieces_max(&self) -> usize {
        self.directory.pieces_max()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.block.memory_bytes()
            + self.compressor.memory_bytes()
            + self.directory.memory_bytes()
            + self.tombstones.memory_bytes()
    }

    /// Writes the block being built. `next_key` is the user key after it, if there is one.
    fn end_block(&mut self, next_key: Option<&[u8]>) -> Result<()> {
        self.separate(next_key);
        self.directory.make_way(&self.separator, &mut self.sink)?;
        let plain = self.block.finish();
        let (codec, payload) = self.compressor.compress(plain);
        let handle = self.sink.write(BlockKind::Data, codec, payload)?;
        if self.cached.end_block() {
            self.cached.ended = Some((handle.offset, Block::of_entries(plain)?));
        }
        self.properties.data_bytes += u64::from(handle.bytes);
        self.properties.data_blocks += 1;
        self.block.reset();
        self.directory.add_block(&self.separator, handle, &mut self.sink)
    }

    /// Ends the data blocks: no entry may be added from here on.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn end_last_block(&mut self) -> Result<()> {
        if self.block.is_empty() { Ok(()) } else { self.end_block(None) }
    }

    /// Tells whether an entry of `bytes` that is about to be added comes from a cached block.
    #[inline]
    pub fn note_source(&mut self, is_cached: bool, bytes: usize) {
        self.cached.bytes += bytes as u64;
        self.cached.cached_bytes += if is_cached { bytes as u64 } else { 0 };
    }

    /// Returns the data block that the last call ended, and its offset, if most of its bytes come
    /// from cached blocks.
    #[inline]
    pub fn take_cached(&mut self) -> Option<(u64, Block)> {
        self.cached.ended.take()
    }

    /// Puts the index key between the last key and `next_key` into `separator`.
    fn separate(&mut self, next_key: Option<&[u8]>) {
        self.separator.clear();
        if next_key.is_none_or(|next| !self.order.equal(&self.last_key, next)) {
            match next_key {
                Some(next) => {
                    self.order.separator(&self.last_key, next, &mut self.separator_user);
                }
                None => self.order.successor(&self.last_key, &mut self.separator_user),
            }
            if !self.order.equal(&self.last_key, &self.separator_user) {
                // Trailer 0 is after every version of the separator's user key.
                return push_internal(&mut self.separator, &self.separator_user, 0);
            }
        }
        push_internal(&mut self.separator, &self.last_key, self.last_trailer);
    }

    /// Writes the rest, makes the file durable, and closes it.
    ///
    /// # Errors
    /// `InvalidArgument` if nothing was added; errors of the file, which must
    /// be discarded then.
    pub fn finish(self) -> Result<TableSummary> {
        let (summary, mut file) = self.write_out()?;
        file.finish()?;
        Ok(summary)
    }

    /// Writes the rest. The table is durable once the caller finishes the file: several files are
    /// made durable together at less cost.
    ///
    /// # Errors
    /// As [`TableWriter::finish`].
    pub fn write_out(mut self) -> Result<(TableSummary, Box<dyn WriteFile>)> {
        self.end_last_block()?;
        let tombstones = std::mem::take(&mut self.tombstones).finish();
        let bounds = self.bounds(&tombstones)?;
        let mut footer = Footer { uid: self.options.uid, ..Footer::default() };
        // Partitions belong before the meta blocks, which lie together.
        let is_partitioned = self.directory.complete();
        if is_partitioned {
            self.directory.finish_filter(&mut self.sink, &mut footer)?;
        }
        if !tombstones.is_empty() {
            let mut payload = Vec::new();
            tombstones.encode(&mut payload);
            footer.layered = tombstones.layers().len() > 1;
            footer.tombstones = self.sink.write_plain(BlockKind::Tombstones, &payload)?;
        }
        if !is_partitioned {
            self.directory.finish_filter(&mut self.sink, &mut footer)?;
        }
        self.directory.finish_index(&mut self.sink, &mut footer)?;

        let p = &mut self.properties;
        p.index_bytes = self.directory.index_bytes();
        p.filter_bytes = self.directory.filter_bytes();
        p.filter_bits_per_key_milli = (self.directory.bits_per_key() * 1000.0) as u64;
        (p.smallest, p.largest, p.largest_exclusive) = bounds;
        let payload = p.encode();
        footer.properties = self.sink.write_plain(BlockKind::Properties, &payload)?;
        footer.file_bytes = self.sink.offset() + FOOTER_BYTES as u64;
        self.sink.file.append(&footer.encode())?;
        self.sink.file.write_out()?;
        Ok((summary(self.properties, footer.file_bytes), self.sink.file))
    }

    /// The hull of points and range tombstones.
    fn bounds(&mut self, tombstones: &Tombstones) -> Result<(Bound, Bound, bool)> {
        if let Some((_, last)) = &mut self.properties.point_bounds {
            *last = self.last_key.as_slice().into();
        }
        let ranges = tombstones.bounds(&self.order);
        let ranges = ranges.map(|(start, end)| (Bound::from(start), Bound::from(end)));
        Ok(match (self.properties.point_bounds.clone(), ranges) {
            (None, None) => return Err(Error::invalid("a table of nothing is not written")),
            (Some((first, last)), None) => (first, last, false),
            (None, Some((start, end))) => (start, end, true),
            (Some((first, last)), Some((start, end))) => {
                let smallest =
                    if self.order.compare(&first, &start).is_le() { first } else { start };
                let exclusive = self.order.compare(&last, &end).is_lt();
                (smallest, if exclusive { end } else { last }, exclusive)
            }
        })
    }

    /// Sets the numbers of the tables that it is merged from; none for a table that was made of no
    /// other.
    pub fn set_made_of(&mut self, numbers: Vec<FileNumber>) {
        self.properties.made_of = Some(numbers);
    }

    /// Abandons the table; the caller removes the file.
    pub fn abandon(self) {}
}

fn summary(p: Properties, file_bytes: u64) -> TableSummary {
    TableSummary {
        file_bytes,
        entries: p.entries,
        point_tombstones: p.point_tombstones,
        range_tombstones: p.range_tombstones,
        point_bounds: p.point_bounds,
        bounds: (p.smallest, p.largest, p.largest_exclusive),
        seq_min: p.seq_min,
        seq_max: p.seq_max,
        raw_key_bytes: p.raw_key_bytes,
        raw_value_bytes: p.raw_value_bytes,
        data_bytes: p.data_bytes,
        index_bytes: p.index_bytes,
        filter_bytes: p.filter_bytes,
        expiring_entries: p.expiring_entries,
        expiry_min_ms: p.expiry_min_ms,
    }
}
