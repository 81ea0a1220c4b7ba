//! The properties of a table: counts, bounds, and how it was made.
//!
//! Tagged fields ([`crate::fields`]): a later version may add some, and marks those as required
//! without which the table would be misread.
//!
//! Owns: the fields of the properties block, and their tags. Never does: count; the writer does.

use crate::codec::Codec;
use crate::fields::{FieldReader, FieldWriter, RawField};
use windrow_base::bound::{self, Bound};
use windrow_base::coding::{Decoder, put_varint};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Error, FileNumber, FileUid, KeyspaceId, Result, SeqNo};

/// Properties of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// The file's identity, again.
    pub uid: FileUid,
    /// Keyspace of the entries.
    pub keyspace: KeyspaceId,
    /// Id of the comparator the keys are ordered by.
    pub comparator: String,
    /// Point entries.
    pub entries: u64,
    /// Of them, deletes and single deletes.
    pub point_tombstones: u64,
    /// Range tombstones, counted by fragment and sequence number.
    pub range_tombstones: u64,
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
    /// Number of data blocks.
    pub data_blocks: u64,
    /// Bytes of the index on disk, partitions included.
    pub index_bytes: u64,
    /// Bytes of the filter on disk, partitions included.
    pub filter_bytes: u64,
    /// Bits per key the filter was built with, in thousandths.
    pub filter_bits_per_key_milli: u64,
    /// Smallest user key, range tombstones included.
    pub smallest: Bound,
    /// Largest user key, range tombstones included.
    pub largest: Bound,
    /// Whether `largest` is the exclusive end of a range tombstone.
    pub largest_exclusive: bool,
    /// First and last user key of the point entries, if there are any.
    pub point_bounds: Option<(Bound, Bound)>,
    /// Entries with an expiry.
    pub expiring_entries: u64,
    /// The earliest expiry, ms since 1970; 0 without expiring entries.
    pub expiry_min_ms: u64,
    /// When the table was made, ms since 1970.
    pub created_ms: u64,
    /// Level it was made for.
    pub level_hint: u32,
    /// Codec of the data blocks (each block says its own).
    pub codec: Codec,
    /// Bytes of a data block before compression, as asked for.
    pub block_bytes: u64,
    /// Entries per restart point.
    pub restart_interval: u32,
    /// Numbers of the tables that it was merged from, which may hold its merge operands as well.
    /// `None`: not known.
    pub made_of: Option<Vec<FileNumber>>,
    /// If set, the entries have no sequence number of their own (they have 0): the tree that the
    /// table is part of gives them one, above this. `None`: each has its own.
    pub given_above: Option<SeqNo>,
    /// Identity of the database that the table was made for, which is the same in its copies.
    /// `None`: made by an earlier version, which did not store it.
    pub database_uid: Option<u64>,
}

const UID: u64 = 1;
const KEYSPACE: u64 = 2;
const COMPARATOR: u64 = 3;
const ENTRIES: u64 = 4;
const POINT_TOMBSTONES: u64 = 5;
const RANGE_TOMBSTONES: u64 = 6;
const SEQ_MIN: u64 = 7;
const SEQ_MAX_FIELD: u64 = 8;
const RAW_KEY_BYTES: u64 = 9;
const RAW_VALUE_BYTES: u64 = 10;
const DATA_BYTES: u64 = 11;
const DATA_BLOCKS: u64 = 12;
const INDEX_BYTES: u64 = 13;
const FILTER_BYTES: u64 = 14;
const FILTER_BITS: u64 = 15;
const SMALLEST: u64 = 16;
const LARGEST: u64 = 17;
const LARGEST_EXCLUSIVE: u64 = 18;
const POINT_SMALLEST: u64 = 19;
const POINT_LARGEST: u64 = 20;
const EXPIRING_ENTRIES: u64 = 21;
const EXPIRY_MIN_MS: u64 = 22;
const CREATED_MS: u64 = 23;
const LEVEL_HINT: u64 = 24;
const CODEC: u64 = 25;
const BLOCK_BYTES: u64 = 26;
const RESTART_INTERVAL: u64 = 27;
const MADE_OF: u64 = 28;
const GIVEN_ABOVE: u64 = 29;
const DATABASE_UID: u64 = 30;

impl Properties {
    /// Bytes of memory of the bounds.
    pub(super) fn bounds_memory_bytes(&self) -> usize {
        let (first, last) = match &self.point_bounds {
            Some((first, last)) => (first, last),
            None => (&self.smallest, &self.largest),
        };
        bound::memory_bytes(&self.smallest, first) + bound::memory_bytes(&self.largest, last)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        let mut w = FieldWriter::new(&mut out);
        w.number(UID, true, self.uid);
        w.number(KEYSPACE, true, self.keyspace.0.into());
        w.bytes(COMPARATOR, true, self.comparator.as_bytes());
        w.number(ENTRIES, true, self.entries);
        w.number(POINT_TOMBSTONES, false, self.point_tombstones);
        w.number(RANGE_TOMBSTONES, true, self.range_tombstones);
        w.number(SEQ_MIN, true, self.seq_min);
        w.number(SEQ_MAX_FIELD, true, self.seq_max);
        w.number(RAW_KEY_BYTES, false, self.raw_key_bytes);
        w.number(RAW_VALUE_BYTES, false, self.raw_value_bytes);
        w.number(DATA_BYTES, false, self.data_bytes);
        w.number(DATA_BLOCKS, false, self.data_blocks);
        w.number(INDEX_BYTES, false, self.index_bytes);
        w.number(FILTER_BYTES, false, self.filter_bytes);
        w.number(FILTER_BITS, false, self.filter_bits_per_key_milli);
        w.bytes(SMALLEST, true, &self.smallest);
        w.bytes(LARGEST, true, &self.largest);
        w.number(LARGEST_EXCLUSIVE, true, self.largest_exclusive.into());
        if let Some((first, last)) = &self.point_bounds {
            w.bytes(POINT_SMALLEST, true, first);
            w.bytes(POINT_LARGEST, true, last);
        }
        w.number(EXPIRING_ENTRIES, false, self.expiring_entries);
        w.number(EXPIRY_MIN_MS, false, self.expiry_min_ms);
        w.number(CREATED_MS, false, self.created_ms);
        w.number(LEVEL_HINT, false, self.level_hint.into());
        w.number(CODEC, false, self.codec as u64);
        w.number(BLOCK_BYTES, false, self.block_bytes);
        w.number(RESTART_INTERVAL, false, self.restart_interval.into());
        if let Some(numbers) = &self.made_of {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put_varint(&mut bytes, *number));
            w.bytes(MADE_OF, false, &bytes);
        }
        if let Some(seq) = self.given_above {
            w.number(GIVEN_ABOVE, true, seq);
        }
        if let Some(uid) = self.database_uid {
            w.number(DATABASE_UID, false, uid);
        }
        out
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Properties> {
        let mut p = Properties::default();
        let mut point = (None, None);
        let mut seen = 0u64;
        let mut fields = FieldReader::new(payload);
        while let Some(field) = fields.next()? {
            seen |= 1u64.checked_shl(field.tag.min(63) as u32).unwrap_or(0);
            match field.tag {
                POINT_SMALLEST => point.0 = Some(Bound::from(field.value)),
                POINT_LARGEST => point.1 = Some(Bound::from(field.value)),
                _ => p.take(&field)?,
            }
        }
        p.point_bounds = match point {
            (Some(mut first), Some(mut last)) => {
                bound::share_equal(&p.smallest, &mut first);
                bound::share_equal(&p.largest, &mut last);
                Some((first, last))
            }
            (None, None) => None,
            _ => return Err(Error::corruption("table properties with half of its point bounds")),
        };
        let needed = [UID, COMPARATOR, ENTRIES, RANGE_TOMBSTONES, SMALLEST, LARGEST];
        let complete = needed.iter().all(|tag| seen & (1 << tag) != 0);
        let consistent = p.seq_min <= p.seq_max
            && p.seq_max <= SEQ_MAX
            && p.smallest.len().max(p.largest.len()) <= KEY_BYTES_MAX
            && (p.entries > 0) == p.point_bounds.is_some()
            && p.given_above.is_none_or(|above| above < SEQ_MAX && p.is_without_numbers());
        if complete && consistent {
            return Ok(p);
        }
        Err(Error::corruption("table properties are incomplete or contradict each other"))
    }

    /// Whether it has only points without a sequence number, none of them a tombstone.
    fn is_without_numbers(&self) -> bool {
        (self.seq_max, self.point_tombstones, self.range_tombstones) == (0, 0, 0)
    }

    fn take(&mut self, field: &RawField<'_>) -> Result<()> {
        let narrow = |n: u64| {
            u32::try_from(n).map_err(|_| Error::corruption("table property beyond 32 bits"))
        };
        match field.tag {
            UID => self.uid = field.number()?,
            KEYSPACE => self.keyspace = KeyspaceId(narrow(field.number()?)?),
            COMPARATOR => {
                self.comparator = std::str::from_utf8(field.value)
                    .map_err(|_| Error::corruption("comparator id is not UTF-8"))?
                    .to_string();
            }
            ENTRIES => self.entries = field.number()?,
            POINT_TOMBSTONES => self.point_tombstones = field.number()?,
            RANGE_TOMBSTONES => self.range_tombstones = field.number()?,
            SEQ_MIN => self.seq_min = field.number()?,
            SEQ_MAX_FIELD => self.seq_max = field.number()?,
            RAW_KEY_BYTES => self.raw_key_bytes = field.number()?,
            RAW_VALUE_BYTES => self.raw_value_bytes = field.number()?,
            DATA_BYTES => self.data_bytes = field.number()?,
            DATA_BLOCKS => self.data_blocks = field.number()?,
            INDEX_BYTES => self.index_bytes = field.number()?,
            FILTER_BYTES => self.filter_bytes = field.number()?,
            FILTER_BITS => self.filter_bits_per_key_milli = field.number()?,
            SMALLEST => self.smallest = field.value.into(),
            LARGEST => self.largest = field.value.into(),
            LARGEST_EXCLUSIVE => self.largest_exclusive = field.number()? != 0,
            EXPIRING_ENTRIES => self.expiring_entries = field.number()?,
            EXPIRY_MIN_MS => self.expiry_min_ms = field.number()?,
            CREATED_MS => self.created_ms = field.number()?,
            LEVEL_HINT => self.level_hint = narrow(field.number()?)?,
            CODEC => {
                let number = narrow(field.number()?)?;
                self.codec = Codec::from_u8(u8::try_from(number).unwrap_or(u8::MAX))?;
            }
            BLOCK_BYTES => self.block_bytes = field.number()?,
            RESTART_INTERVAL => self.restart_interval = narrow(field.number()?)?,
            MADE_OF => {
                let mut numbers = Decoder::new(field.value);
                let made_of = self.made_of.insert(Vec::new());
                while !numbers.is_empty() {
                    made_of.push(numbers.varint()?);
                }
            }
            GIVEN_ABOVE => self.given_above = Some(field.number()?),
            DATABASE_UID => self.database_uid = Some(field.number()?),
            _ => field.unknown("table property")?,
        }
        Ok(())
    }
}
