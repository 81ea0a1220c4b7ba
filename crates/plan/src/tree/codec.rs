//! Edits as bytes: the manifest's form of a change to a tree.
//!
//! An edit is a sequence of fields `tag varint, length varint, payload`. The
//! lowest bit of a tag is its must-understand bit: a reader that does not know
//! the tag refuses the edit (`NotSupported`) if the bit is set and skips the
//! field if it is not. The field's number is `tag >> 1`. A file within an edit
//! is coded the same way. Integers in payloads are
//! varints. Fields may be in any order; those of a file whose value is zero
//! are left out.
//!
//! | field | must | payload |
//! |---|---|---|
//! | 1 removed (repeats) | yes | level, part (0 run, 1 log), file number |
//! | 2 added (repeats) | yes | level, part, then the fields of a file |
//! | 3 shape levels | yes | count |
//! | 4 next epoch | yes | epoch |
//! | 5 boundaries of level-0 partitions | yes | count, then a length-prefixed key each |
//! | 6 cursor (repeats) | no | level, then nothing (unset) or a length-prefixed key |
//! | 7 flushed through | yes | sequence number |
//!
//! | field of a file | must | payload |
//! |---|---|---|
//! | 1 number | yes | varint |
//! | 2 uid | yes | u64, little endian |
//! | 3 bytes | yes | varint |
//! | 4 entries | yes | varint |
//! | 5 point tombstones | yes | varint |
//! | 6 range tombstones | yes | varint |
//! | 7 smallest | yes | key |
//! | 8 largest | yes | key |
//! | 9 largest is exclusive | yes | empty |
//! | 10 point bounds | yes | length-prefixed first key, length-prefixed last key |
//! | 11 sequence numbers | yes | smallest, largest |
//! | 12 epoch | yes | varint |
//! | 13 created | no | ms since 1970 |
//! | 14 expiry | yes | entries that expire, earliest expiry in ms since 1970 |
//! | 15 filter bytes | no | varint |
//! | 16 statistics | no | bytes of the filter memory policy |
//! | 17 hotness | no | varint |
//! | 18 ingested: entries have 0 for the sequence number of field 11 | yes | empty |
//!
//! A field that does not repeat and is there twice is corruption; number, uid,
//! bytes, smallest and largest must be there.
//!
//! Owns: the tags and the payloads. Never does: check an edit against a tree (`apply.rs`).

use super::edit::Edit;
use super::file::{File, Part};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::coding::{Decoder, put_slice, put_varint, varint_len};
use windrow_base::key::{ENTRIES_PER_BYTE_MAX, SEQ_MAX};
use windrow_base::{COUNTER_MAX, Error, Result, debug_invariant};

/// Tags as they are on disk: number << 1 | must-understand.
mod tag {
    const fn must(number: u64) -> u64 {
        number << 1 | 1
    }
    const fn may(number: u64) -> u64 {
        number << 1
    }
    pub(super) const REMOVED: u64 = must(1);
    pub(super) const ADDED: u64 = must(2);
    pub(super) const SHAPE_LEVELS: u64 = must(3);
    pub(super) const NEXT_EPOCH: u64 = must(4);
    pub(super) const BOUNDARIES: u64 = must(5);
    pub(super) const CURSOR: u64 = may(6);
    pub(super) const FLUSHED_THROUGH: u64 = must(7);

    pub(super) const FILE_NUMBER: u64 = must(1);
    pub(super) const FILE_UID: u64 = must(2);
    pub(super) const FILE_BYTES: u64 = must(3);
    pub(super) const FILE_ENTRIES: u64 = must(4);
    pub(super) const FILE_POINT_TOMBSTONES: u64 = must(5);
    pub(super) const FILE_RANGE_TOMBSTONES: u64 = must(6);
    pub(super) const FILE_SMALLEST: u64 = must(7);
    pub(super) const FILE_LARGEST: u64 = must(8);
    pub(super) const FILE_LARGEST_EXCLUSIVE: u64 = must(9);
    pub(super) const FILE_POINT_BOUNDS: u64 = must(10);
    pub(super) const FILE_SEQS: u64 = must(11);
    pub(super) const FILE_EPOCH: u64 = must(12);
    pub(super) const FILE_CREATED: u64 = may(13);
    pub(super) const FILE_EXPIRY: u64 = must(14);
    pub(super) const FILE_FILTER_BYTES: u64 = may(15);
    pub(super) const FILE_STATISTICS: u64 = may(16);
    pub(super) const FILE_HOTNESS: u64 = may(17);
    pub(super) const FILE_INGESTED: u64 = must(18);
}

fn put_field(out: &mut Vec<u8>, tag: u64, payload: &[u8]) {
    put_varint(out, tag);
    put_slice(out, payload);
}

fn put_varint_field(out: &mut Vec<u8>, tag: u64, value: u64) {
    put_varint(out, tag);
    put_varint(out, varint_len(value) as u64);
    put_varint(out, value);
}

impl Edit {
    /// Appends the edit's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let mut field = Vec::new();
        for (level, part, number) in &self.removed {
            field.clear();
            put_place(&mut field, *level, *part);
            put_varint(&mut field, *number);
            put_field(out, tag::REMOVED, &field);
        }
        for (level, part, file) in &self.added {
            field.clear();
            put_place(&mut field, *level, *part);
            encode_file(file, &mut field);
            put_field(out, tag::ADDED, &field);
        }
        if let Some(levels) = self.shape_levels {
            put_varint_field(out, tag::SHAPE_LEVELS, levels as u64);
        }
        if let Some(epoch) = self.next_epoch {
            put_varint_field(out, tag::NEXT_EPOCH, epoch);
        }
        if let Some(boundaries) = &self.boundaries {
            field.clear();
            put_varint(&mut field, boundaries.len() as u64);
            boundaries.iter().for_each(|key| put_slice(&mut field, key));
            put_field(out, tag::BOUNDARIES, &field);
        }
        for (level, key) in &self.cursors {
            field.clear();
            put_varint(&mut field, *level as u64);
            if let Some(key) = key {
                put_slice(&mut field, key);
            }
            put_field(out, tag::CURSOR, &field);
        }
        if let Some(through) = self.flushed_through {
            put_varint_field(out, tag::FLUSHED_THROUGH, through);
        }
        if cfg!(debug_assertions) {
            // Tests also encode edits that are refused.
            let again = Edit::decode(&out[begin..]);
            let is_other = again.is_ok_and(|again| again != *self);
            debug_invariant!(I2, !is_other, "an edit is read again as another one");
        }
    }

    /// Reads an edit from all of `input`.
    ///
    /// # Errors
    /// `Corruption` for malformed bytes, `NotSupported` for a field that is
    /// unknown and must be understood.
    pub fn decode(input: &[u8]) -> Result<Edit> {
        let mut edit = Edit::default();
        let mut fields = Fields::new(input);
        while let Some((tag, payload)) = fields.next()? {
            let mut field = Decoder::new(payload);
            match tag {
                tag::REMOVED => {
                    let (level, part) = get_place(&mut field)?;
                    edit.removed.push((level, part, field.varint()?));
                }
                tag::ADDED => {
                    let (level, part) = get_place(&mut field)?;
                    let file = decode_file(field.rest())?;
                    edit.added.push((level, part, Arc::new(file)));
                    continue;
                }
                tag::SHAPE_LEVELS => set(&mut edit.shape_levels, get_u32(&mut field)?)?,
                tag::NEXT_EPOCH => set(&mut edit.next_epoch, get_counter(&mut field)?)?,
                tag::BOUNDARIES => set(&mut edit.boundaries, get_keys(&mut field)?.into())?,
                tag::CURSOR => {
                    let level = get_u32(&mut field)?;
                    let key = match field.is_empty() {
                        true => None,
                        false => Some(field.slice()?.to_vec()),
                    };
                    edit.cursors.push((level, key));
                }
                tag::FLUSHED_THROUGH => set(&mut edit.flushed_through, get_seq(&mut field)?)?,
                unknown => {
                    skip_unless_required("an edit", unknown)?;
                    continue;
                }
            }
            finished(&field, tag)?;
        }
        Ok(edit)
    }
}

fn encode_file(file: &File, out: &mut Vec<u8>) {
    let mut number = |tag, value: u64| {
        if value != 0 {
            put_varint_field(out, tag, value);
        }
    };
    number(tag::FILE_ENTRIES, file.entries);
    number(tag::FILE_POINT_TOMBSTONES, file.point_tombstones);
    number(tag::FILE_RANGE_TOMBSTONES, file.range_tombstones);
    number(tag::FILE_EPOCH, file.epoch);
    number(tag::FILE_CREATED, file.created_ms);
    number(tag::FILE_FILTER_BYTES, file.filter_bytes);
    number(tag::FILE_HOTNESS, file.hotness);
    put_varint_field(out, tag::FILE_NUMBER, file.number);
    put_varint_field(out, tag::FILE_BYTES, file.bytes);
    put_field(out, tag::FILE_UID, &file.uid.to_le_bytes());
    put_field(out, tag::FILE_SMALLEST, &file.smallest);
    put_field(out, tag::FILE_LARGEST, &file.largest);
    if file.largest_exclusive {
        put_field(out, tag::FILE_LARGEST_EXCLUSIVE, &[]);
    }
    if file.is_ingested {
        put_field(out, tag::FILE_INGESTED, &[]);
    }
    let mut pair = |tag, first: u64, second: u64| {
        if (first, second) != (0, 0) {
            put_varint(out, tag);
            put_varint(out, (varint_len(first) + varint_len(second)) as u64);
            put_varint(out, first);
            put_varint(out, second);
        }
    };
    pair(tag::FILE_SEQS, file.seq_min, file.seq_max);
    pair(tag::FILE_EXPIRY, file.expiring_entries, file.expiry_min_ms);
    if let Some((first, last)) = &file.point_bounds {
        let mut bounds = Vec::with_capacity(first.len() + last.len() + 6);
        put_slice(&mut bounds, first);
        put_slice(&mut bounds, last);
        put_field(out, tag::FILE_POINT_BOUNDS, &bounds);
    }
    if !file.statistics.is_empty() {
        put_field(out, tag::FILE_STATISTICS, &file.statistics);
    }
}

fn decode_file(input: &[u8]) -> Result<File> {
    let mut file = File::default();
    let mut seen = 0u64;
    let mut fields = Fields::new(input);
    while let Some((tag, payload)) = fields.next()? {
        let mut field = Decoder::new(payload);
        match tag {
            tag::FILE_NUMBER => file.number = get_counter(&mut field)?,
            tag::FILE_UID => file.uid = field.u64()?,
            tag::FILE_BYTES => file.bytes = field.varint()?,
            tag::FILE_ENTRIES => file.entries = field.varint()?,
            tag::FILE_POINT_TOMBSTONES => file.point_tombstones = field.varint()?,
            tag::FILE_RANGE_TOMBSTONES => file.range_tombstones = field.varint()?,
            tag::FILE_SMALLEST => file.smallest = field.bytes(payload.len())?.into(),
            tag::FILE_LARGEST => file.largest = field.bytes(payload.len())?.into(),
            tag::FILE_LARGEST_EXCLUSIVE => file.largest_exclusive = true,
            tag::FILE_POINT_BOUNDS => {
                file.point_bounds = Some((field.slice()?.into(), field.slice()?.into()));
            }
            tag::FILE_SEQS => {
                (file.seq_min, file.seq_max) = (get_seq(&mut field)?, get_seq(&mut field)?);
            }
            tag::FILE_EPOCH => file.epoch = get_counter(&mut field)?,
            tag::FILE_CREATED => file.created_ms = field.varint()?,
            tag::FILE_EXPIRY => {
                (file.expiring_entries, file.expiry_min_ms) = (field.varint()?, field.varint()?);
            }
            tag::FILE_FILTER_BYTES => file.filter_bytes = field.varint()?,
            tag::FILE_STATISTICS => file.statistics = field.bytes(payload.len())?.to_vec(),
            tag::FILE_HOTNESS => file.hotness = field.varint()?,
            tag::FILE_INGESTED => file.is_ingested = true,
            unknown => {
                skip_unless_required("a table", unknown)?;
                continue;
            }
        }
        finished(&field, tag)?;
        let bit = 1u64 << (tag >> 1);
        if seen & bit != 0 {
            return Err(Error::corruption(format!("field {} of a table is there twice", tag >> 1)));
        }
        seen |= bit;
    }
    let required =
        [tag::FILE_NUMBER, tag::FILE_UID, tag::FILE_BYTES, tag::FILE_SMALLEST, tag::FILE_LARGEST];
    match required.into_iter().find(|tag| seen & (1 << (tag >> 1)) == 0) {
        None => check_counts(&file).map(|()| file.sharing_bounds()),
        Some(tag) => Err(Error::corruption(format!("a table lacks field {}", tag >> 1))),
    }
}

/// Counts must suit the table's length, which is checked against the file: sums
/// over tables then stay as far from wrapping as their bytes do.
fn check_counts(file: &File) -> Result<()> {
    let counts_max = file.bytes.saturating_mul(ENTRIES_PER_BYTE_MAX);
    let suits = file.entries <= counts_max
        && file.range_tombstones <= counts_max
        && file.point_tombstones <= file.entries
        && file.expiring_entries <= file.entries
        && file.filter_bytes <= file.bytes;
    if suits {
        return Ok(());
    }
    Err(Error::corruption(format!("table {} counts more than it can hold", file.number)))
}

/// Walks `tag, length, payload` fields.
struct Fields<'a>(Decoder<'a>);

impl<'a> Fields<'a> {
    fn new(input: &'a [u8]) -> Fields<'a> {
        Fields(Decoder::new(input))
    }

    fn next(&mut self) -> Result<Option<(u64, &'a [u8])>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.0.varint()?;
        Ok(Some((tag, self.0.slice()?)))
    }
}

fn put_place(out: &mut Vec<u8>, level: u32, part: Part) {
    put_varint(out, level as u64);
    out.push(part as u8);
}

fn get_place(field: &mut Decoder<'_>) -> Result<(u32, Part)> {
    let level = get_u32(field)?;
    match field.u8()? {
        0 => Ok((level, Part::Run)),
        1 => Ok((level, Part::SstLog)),
        other => Err(Error::corruption(format!("part {other} of a level"))),
    }
}

fn get_u32(field: &mut Decoder<'_>) -> Result<u32> {
    let value = field.varint()?;
    u32::try_from(value)
        .map_err(|_| Error::corruption(format!("{value} is too large for its field")))
}

fn get_bounded(field: &mut Decoder<'_>, max: u64) -> Result<u64> {
    let value = field.varint()?;
    if value <= max {
        return Ok(value);
    }
    Err(Error::corruption(format!("{value} is too large for its field")))
}

/// Reads a file number or epoch; the next one is counted on from it.
fn get_counter(field: &mut Decoder<'_>) -> Result<u64> {
    get_bounded(field, COUNTER_MAX)
}

fn get_seq(field: &mut Decoder<'_>) -> Result<u64> {
    get_bounded(field, SEQ_MAX)
}

fn get_keys(field: &mut Decoder<'_>) -> Result<Vec<Vec<u8>>> {
    let count = field.varint()?;
    // A key takes a byte at least: the count cannot ask for more than is there.
    if count > field.rest().len() as u64 {
        return Err(Error::corruption(format!("{count} keys in {} bytes", field.rest().len())));
    }
    (0..count).map(|_| Ok(field.slice()?.to_vec())).collect()
}

fn set<T>(slot: &mut Option<T>, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::corruption("a field of an edit is there twice")),
    }
}

fn finished(field: &Decoder<'_>, tag: u64) -> Result<()> {
    if field.is_empty() {
        return Ok(());
    }
    Err(Error::corruption(format!("{} bytes left over in field {}", field.rest().len(), tag >> 1)))
}

#[cold]
fn skip_unless_required(of: &str, tag: u64) -> Result<()> {
    if tag & 1 == 0 {
        return Ok(());
    }
    Err(Error::not_supported(format!("field {} of {of} needs a newer Windrow", tag >> 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Version;
    use alloc::vec;
    use windrow_base::{ErrorKind, KeyOrder};

    fn sample() -> Edit {
        let file = File {
            number: 300,
            uid: u64::MAX - 7,
            bytes: 1 << 33,
            entries: 1000,
            point_tombstones: 7,
            range_tombstones: 2,
            smallest: b"".as_slice().into(),
            largest: b"zebra".as_slice().into(),
            largest_exclusive: true,
            point_bounds: Some((b"a".as_slice().into(), b"b".as_slice().into())),
            seq_min: 1,
            seq_max: (1 << 56) - 1,
            is_ingested: true,
            epoch: 12,
            created_ms: 1_700_000_000_000,
            expiring_entries: 3,
            expiry_min_ms: 1_800_000_000_000,
            filter_bytes: 1250,
            hotness: 77,
            statistics: vec![1, 2, 3],
        };
        let bare = File {
            number: 4,
            smallest: b"k".as_slice().into(),
            largest: b"k".as_slice().into(),
            ..File::default()
        };
        Edit {
            removed: vec![(3, Part::Run, 9), (0, Part::SstLog, u64::MAX)],
            added: vec![(0, Part::SstLog, Arc::new(file)), (31, Part::Run, Arc::new(bare))],
            shape_levels: Some(4),
            next_epoch: Some(13),
            boundaries: Some(vec![b"g".to_vec(), vec![]].into()),
            cursors: vec![(2, Some(b"mm".to_vec())), (1, None), (5, Some(vec![]))],
            flushed_through: Some(1 << 40),
        }
    }

    fn bytes_of(edit: &Edit) -> Vec<u8> {
        let mut out = Vec::new();
        edit.encode(&mut out);
        out
    }

    #[test]
    fn edits_round_trip() {
        assert_eq!(Edit::decode(&bytes_of(&sample())).unwrap(), sample());
        assert_eq!(Edit::decode(&[]).unwrap(), Edit::default());
    }

    #[test]
    fn the_tags_on_disk_do_not_change() {
        let edit = Edit {
            removed: vec![(1, Part::SstLog, 5)],
            cursors: vec![(2, Some(b"k".as_slice().into()))],
            flushed_through: Some(300),
            ..Edit::default()
        };
        assert_eq!(bytes_of(&edit), [3, 3, 1, 1, 5, 12, 3, 2, 1, b'k', 15, 2, 0xac, 2]);
        let file = File {
            number: 1,
            uid: 2,
            bytes: 3,
            largest: b"a".as_slice().into(),
            ..File::default()
        };
        let mut out = Vec::new();
        encode_file(&file, &mut out);
        assert_eq!(out, [3, 1, 1, 7, 1, 3, 5, 8, 2, 0, 0, 0, 0, 0, 0, 0, 15, 0, 17, 1, b'a']);
    }

    #[test]
    fn an_unknown_field_is_skipped_or_refused_by_its_bit() {
        let mut bytes = bytes_of(&sample());
        put_field(&mut bytes, 40, b"from the future");
        assert_eq!(Edit::decode(&bytes).unwrap(), sample());
        put_field(&mut bytes, 41, b"");
        assert_eq!(Edit::decode(&bytes).unwrap_err().kind(), ErrorKind::NotSupported);

        let mut file = vec![1, Part::Run as u8];
        encode_file(&File { number: 1, ..File::default() }, &mut file);
        put_field(&mut file, 200, b"?");
        let mut bytes = Vec::new();
        put_field(&mut bytes, tag::ADDED, &file);
        assert_eq!(Edit::decode(&bytes).unwrap().added[0].2.number, 1);
        put_field(&mut file, 201, b"?");
        let mut bytes = Vec::new();
        put_field(&mut bytes, tag::ADDED, &file);
        assert_eq!(Edit::decode(&bytes).unwrap_err().kind(), ErrorKind::NotSupported);
    }

    #[test]
    fn damaged_edits_never_panic_and_never_pass_for_the_same() {
        let bytes = bytes_of(&sample());
        for end in 0..bytes.len() {
            // A cut at the end of a field is a shorter edit, which record framing excludes.
            if let Ok(edit) = Edit::decode(&bytes[..end]) {
                assert_ne!(edit, sample(), "cut at {end}");
            }
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                if let Ok(edit) = Edit::decode(&bad) {
                    assert_ne!(edit, sample(), "byte {at} bit {bit}");
                    let _ = Version::empty(KeyOrder::Bytewise).apply(&edit);
                }
            }
        }
    }

    #[test]
    fn doubled_missing_and_leftover_fields_are_corruption() {
        let mut twice = Vec::new();
        put_varint_field(&mut twice, tag::NEXT_EPOCH, 4);
        put_varint_field(&mut twice, tag::NEXT_EPOCH, 4);
        let mut left = Vec::new();
        put_field(&mut left, tag::SHAPE_LEVELS, &[1, 1]);
        let mut lacking = Vec::new();
        put_field(&mut lacking, tag::ADDED, &[1, 0, tag::FILE_NUMBER as u8, 1, 9]);
        let mut part = Vec::new();
        put_field(&mut part, tag::REMOVED, &[1, 2, 9]);
        let mut keys = Vec::new();
        put_field(&mut keys, tag::BOUNDARIES, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        for bytes in [twice, left, lacking, part, keys] {
            assert!(Edit::decode(&bytes).unwrap_err().is_corruption(), "{bytes:?}");
        }
    }

    #[test]
    fn counters_near_their_end_and_impossible_counts_are_refused() {
        let spoils: [fn(&mut Edit); 7] = [
            |edit| edit.next_epoch = Some(u64::MAX),
            |edit| edit.flushed_through = Some(SEQ_MAX + 1),
            |edit| spoil_file(edit, |file| file.number = COUNTER_MAX + 1),
            |edit| spoil_file(edit, |file| (file.seq_max, file.epoch) = (SEQ_MAX, u64::MAX)),
            |edit| spoil_file(edit, |file| file.entries = file.bytes * 256 + 1),
            |edit| spoil_file(edit, |file| file.point_tombstones = file.entries + 1),
            |edit| spoil_file(edit, |file| file.filter_bytes = file.bytes + 1),
        ];
        for (i, spoil) in spoils.into_iter().enumerate() {
            let mut edit = sample();
            spoil(&mut edit);
            assert!(Edit::decode(&bytes_of(&edit)).unwrap_err().is_corruption(), "case {i}");
        }
    }

    fn spoil_file(edit: &mut Edit, spoil: impl FnOnce(&mut File)) {
        let mut file = (*edit.added[0].2).clone();
        spoil(&mut file);
        edit.added[0].2 = Arc::new(file);
    }
}
