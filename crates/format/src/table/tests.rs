//! Tables against the list that they were written from, whole and partitioned, in every order and
//! codec; and the sweep: every byte flipped, every length cut.
//!
//! Owns: the cases. Never does: use a file system; the files are in memory.

use super::*;
use crate::block::{BlockGet, BlockIter};
use crate::filter;
use crate::test_files::{MemWriter, mem_file, orders};
use crate::tombstone::{RangeTombstone, Tombstones};
use proptest::prelude::*;
use std::sync::Arc;
use windrow_base::key::{Kind, compare_internal, push_internal, seek_trailer, split, trailer};
use windrow_base::{Comparator, ErrorKind, Result};
use windrow_env::ReadFile;

const UID: u64 = 0xfeed_beef_0bad_cafe;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

struct WrittenTable {
    bytes: Vec<u8>,
    summary: TableSummary,
    order: KeyOrder,
}

impl WrittenTable {
    fn expect(&self) -> Expect {
        Expect { file_bytes: self.bytes.len() as u64, uid: UID, order: self.order.clone() }
    }

    fn file(&self) -> Arc<dyn ReadFile> {
        mem_file(self.bytes.clone())
    }
}

fn options(order: &KeyOrder) -> TableOptions {
    TableOptions {
        level_hint: 3,
        created_ms: 99,
        ..TableOptions::new(UID, KeyspaceId(5), order.clone())
    }
}

fn write(options: TableOptions, entries: &Entries, tombstones: &Tombstones) -> WrittenTable {
    let order = options.order.clone();
    // The block being built counts uncompressed.
    let pending_max = if options.codec == Codec::None { 0 } else { options.block_bytes as u64 };
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), options).unwrap();
    let tombstones = tombstones.to_tombstones();
    let mut rest = tombstones.iter();
    for (i, (key, value)) in entries.iter().enumerate() {
        writer.add(key, value).unwrap();
        if i % 3 == 0 {
            rest.next().map_or(Ok(()), |t| writer.add_tombstone(t)).unwrap();
        }
    }
    rest.for_each(|t| writer.add_tombstone(t).unwrap());
    assert_eq!(writer.entries(), entries.len() as u64);
    let estimated = writer.estimated_bytes();
    let summary = writer.finish().unwrap();
    let bytes = file.bytes();
    assert_eq!(summary.file_bytes, bytes.len() as u64);
    let estimated_max = 2 * summary.file_bytes + pending_max + 1024;
    assert!(estimated <= estimated_max, "{estimated} for {}", summary.file_bytes);
    WrittenTable { bytes, summary, order }
}

/// One data block's entries.
fn read_entries(
    file: &dyn ReadFile,
    order: &KeyOrder,
    at: BlockHandle,
    out: &mut Entries,
) -> Result<()> {
    let block = Arc::new(read_block(file, UID, at, BlockKind::Data)?);
    let mut iter = BlockIter::new(block, order.clone());
    iter.seek_first();
    while iter.valid() {
        out.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status()
}

/// All entries and range tombstones of a table, in order.
fn read_all(file: &Arc<dyn ReadFile>, expect: Expect) -> Result<(Entries, Vec<RangeTombstone>)> {
    let order = expect.order.clone();
    let table = Table::open(file, expect)?;
    let mut entries = Entries::new();
    let mut top = table.index_iter();
    top.seek_first();
    while top.valid() {
        match top.place() {
            Locate::Block(handle) => read_entries(&**file, &order, handle, &mut entries)?,
            Locate::Partition(partition) => {
                let block = read_block(&**file, UID, partition.index, BlockKind::Index)?;
                let mut leaf = IndexIter::new(Arc::new(block), order.clone())?;
                leaf.seek_first();
                while let Locate::Block(handle) = leaf.place() {
                    read_entries(&**file, &order, handle, &mut entries)?;
                    leaf.next();
                }
            }
            Locate::None => unreachable!("a valid iterator has a place"),
        }
        top.next();
    }
    Ok((entries, table.tombstones().to_tombstones()))
}

/// A get in the way of the engine: filter, index, block.
fn get(
    file: &dyn ReadFile,
    table: &Table,
    user: &[u8],
    seq: u64,
) -> Result<Option<(u64, Vec<u8>)>> {
    let hash = filter::hash(user);
    if table.filter() == FilterKind::Whole && !table.may_contain(hash) {
        return Ok(None);
    }
    let place = match table.locate_user(user, seek_trailer(seq)) {
        Locate::Partition(partition) => {
            if let Some(handle) = partition.filter
                && !read_block(file, UID, handle, BlockKind::Filter)?.may_contain(hash)
            {
                return Ok(None);
            }
            let block = read_block(file, UID, partition.index, BlockKind::Index)?;
            decode_partition(&block)?.locate_user(table.order(), user, seek_trailer(seq))
        }
        place => place,
    };
    let Locate::Block(handle) = place else { return Ok(None) };
    let block = read_block(file, UID, handle, BlockKind::Data)?;
    Ok(match block.get(table.order(), user, seek_trailer(seq))? {
        BlockGet::Found { trailer, value } => Some((trailer, block.bytes()[value].to_vec())),
        BlockGet::Absent | BlockGet::Passed => None,
    })
}

fn check(
    written: &WrittenTable,
    entries: &Entries,
    tombstones: &Tombstones,
    asked: &[(Vec<u8>, u64)],
) {
    let order = &written.order;
    let file = written.file();
    let counted = verify(&file, written.expect()).unwrap();
    assert_eq!(
        (counted.entries, counted.bytes),
        (entries.len() as u64, written.bytes.len() as u64)
    );
    for bytes_max in [0, 300, 100_000, u64::MAX] {
        assert!(copy(&file, bytes_max).unwrap() == written.bytes, "{bytes_max} at a time");
    }
    let (read, ranges) = read_all(&file, written.expect()).unwrap();
    assert!(read == *entries);
    assert_eq!(ranges, tombstones.to_tombstones());

    let table = Table::open(&file, written.expect()).unwrap();
    for (user, seq) in asked {
        let mut target = Vec::new();
        push_internal(&mut target, user, seek_trailer(*seq));
        let at = entries.partition_point(|(k, _)| compare_internal(order, k, &target).is_lt());
        let expected = entries.get(at).filter(|(k, _)| order.equal(split(k).0, user));
        let expected = expected.map(|(k, v)| (split(k).1, v.clone()));
        assert_eq!(get(&*file, &table, user, *seq).unwrap(), expected, "{user:?}@{seq}");
        check_seek(&*file, &table, &target, entries.get(at));
        assert!(table.data_bytes_before(&target) <= written.bytes.len() as u64);
    }
    check_summary(written, &table, entries);
}

/// Checks that the index leads a seek to the block with the first entry at or after the target.
fn check_seek(
    file: &dyn ReadFile,
    table: &Table,
    target: &[u8],
    expected: Option<&(Vec<u8>, Vec<u8>)>,
) {
    let mut top = table.index_iter();
    top.seek(target);
    let handle = match top.place() {
        Locate::Block(handle) => handle,
        Locate::Partition(partition) => {
            let block = read_block(file, UID, partition.index, BlockKind::Index).unwrap();
            let mut leaf = IndexIter::new(Arc::new(block), table.order().clone()).unwrap();
            leaf.seek(target);
            assert!(leaf.valid(), "the partition's key is at or after its last block's");
            leaf.handle()
        }
        Locate::None => return assert!(expected.is_none()),
    };
    let block = Arc::new(read_block(file, UID, handle, BlockKind::Data).unwrap());
    let mut iter = BlockIter::new(block, table.order().clone());
    iter.seek(target);
    if iter.valid() {
        assert_eq!(Some(iter.key()), expected.map(|e| &e.0[..]));
    } else if let Some((key, _)) = expected {
        // The target lies in the gap after the block: expect the next block's first entry.
        let mut next = table.index_iter();
        next.seek(key);
        assert!(next.valid());
        assert!(!table.order().equal(split(key).0, split(target).0), "versions are never passed");
    }
}

fn check_summary(written: &WrittenTable, table: &Table, entries: &Entries) {
    let (s, p) = (&written.summary, table.properties());
    assert_eq!(s.entries, entries.len() as u64);
    assert_eq!(
        (&p.smallest, &p.largest, p.largest_exclusive),
        (&s.bounds.0, &s.bounds.1, s.bounds.2)
    );
    assert_eq!(p.point_bounds, s.point_bounds);
    assert_eq!((p.level_hint, p.created_ms, p.keyspace), (3, 99, KeyspaceId(5)));
    let ends = entries.first().zip(entries.last());
    let ends = ends.map(|(a, b)| (split(&a.0).0.into(), split(&b.0).0.into()));
    assert_eq!(s.point_bounds, ends);
    let bytes: u64 = entries.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum();
    assert_eq!(s.raw_key_bytes + s.raw_value_bytes, bytes);
    let order = &written.order;
    for (key, _) in entries {
        let user = split(key).0;
        assert!(
            order.compare(&s.bounds.0, user).is_le() && order.compare(user, &s.bounds.1).is_le()
        );
    }
}

fn point(user: &[u8], seq: u64, value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let kind = if seq % 5 == 4 { Kind::Delete } else { Kind::Put };
    let mut key = Vec::new();
    push_internal(&mut key, user, trailer(seq, kind));
    (key, value.to_vec())
}

fn sorted(mut entries: Entries, order: &KeyOrder) -> Entries {
    entries.sort_by(|a, b| compare_internal(order, &a.0, &b.0));
    entries.dedup_by(|a, b| {
        order.equal(split(&a.0).0, split(&b.0).0) && split(&a.0).1 >> 8 == split(&b.0).1 >> 8
    });
    entries
}

fn user_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(b"abAB\xff".to_vec()), 0..4),
        (0u32..400).prop_map(|i| format!("user{i:09}").into_bytes()),
        (0u32..50).prop_map(|i| format!("user{i:09}/a-long-tail-that-is-not-shared").into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_table_is_its_sorted_list(
        raw in prop::collection::vec((user_key(), 0u64..9, prop::collection::vec(97u8..100, 0..40)), 0..300),
        ranges in prop::collection::vec((user_key(), user_key(), 0u64..20), 0..6),
        asked in prop::collection::vec((user_key(), 0u64..10), 0..40),
        which in 0usize..3, codec in 0u8..3, partitioned: bool,
        block_bytes in prop::sample::select(vec![1usize, 80, 300, 4096]),
        bits in prop::sample::select(vec![0.0, 3.3, 10.0]), hash_index: bool,
    ) {
        let order = orders()[which].clone();
        let entries = sorted(raw.iter().map(|(k, s, v)| point(k, *s, v)).collect(), &order);
        let ranges = ranges.into_iter().map(|(start, end, seq)| RangeTombstone { start, end, seq });
        let tombstones = {
            let ranges = Vec::from_iter(ranges);
            Tombstones::build(ranges.iter().map(RangeTombstone::parts), &order)
        };
        let codec = Codec::from_u8(codec).unwrap();
        if (entries.is_empty() && tombstones.is_empty()) || !codec.is_built_in() {
            return Ok(());
        }
        let options = TableOptions {
            block_bytes, codec, codec_level: 1, hash_index,
            filter_bits_per_key: bits,
            partition_bytes: if partitioned { 200 } else { 1 << 20 },
            ..options(&order)
        };
        let written = write(options, &entries, &tombstones);
        let present = raw.into_iter().flat_map(|(k, s, _)| [(k.clone(), s), (k, 9)]);
        let asked: Vec<_> = present.chain(asked).collect();
        check(&written, &entries, &tombstones, &asked);
    }
}

fn numbered(count: u64) -> Entries {
    (0..count).map(|i| point(format!("key{i:08}").as_bytes(), i + 1, &[b'v'; 20])).collect()
}

#[test]
fn a_large_table_goes_over_to_partitions_for_good() {
    let entries = numbered(120_000);
    let options = TableOptions { partition_bytes: 64 << 10, ..options(&KeyOrder::Bytewise) };
    let written = write(options, &entries, &Tombstones::empty());
    let asked: Vec<_> =
        (0..122_000).step_by(197).map(|i| (format!("key{i:08}").into_bytes(), 1 << 40)).collect();
    check(&written, &entries, &Tombstones::empty(), &asked);
    let table = Table::open(&written.file(), written.expect()).unwrap();
    assert_eq!(table.filter(), FilterKind::Partitioned);
    let mut top = table.index_iter();
    top.seek_first();
    let mut partitions = 0;
    while let Some(p) = top.partition() {
        let bytes = p.index.bytes + p.filter.unwrap().bytes;
        assert!(bytes < 24 << 10, "a partition of {bytes} bytes");
        partitions += 1;
        top.next();
    }
    assert!(partitions >= 10, "{partitions}");
    assert!(table.memory_bytes() < 4096, "{}", table.memory_bytes());
    // The bytes before a key grow with the key.
    let at = |i: u64| table.data_bytes_before(&point(format!("key{i:08}").as_bytes(), 0, b"").0);
    assert!(at(0) == 0 && at(60_000) < at(120_000) && at(120_000) <= written.summary.file_bytes);
}

/// The blocks that go into a cache are those of the file, and only where most entries were cached.
#[test]
fn blocks_of_cached_entries_are_handed_over() {
    for codec in [Codec::None, Codec::Lz4] {
        let options = TableOptions { codec, ..options(&KeyOrder::Bytewise) };
        let file = MemWriter::default();
        let mut writer = TableWriter::new(Box::new(file.clone()), options).unwrap();
        let mut cached = Vec::new();
        for (at, (key, value)) in numbered(6_000).iter().enumerate() {
            // The first half of the keys: two in three. Of the second half every third.
            writer.note_source((at % 3 == 0) != (at < 3_000), key.len() + value.len());
            writer.add(key, value).unwrap();
            cached.extend(writer.take_cached());
        }
        assert!(writer.take_cached().is_none());
        writer.note_source(true, 1);
        let last = writer.entries();
        writer.end_last_block().unwrap();
        assert!(writer.take_cached().is_none(), "of the last block's keys one in three");
        let summary = writer.finish().unwrap();
        assert_eq!(summary.entries, last);
        let file = mem_file(file.bytes());
        let expect = Expect { file_bytes: summary.file_bytes, uid: UID, order: KeyOrder::Bytewise };
        let mut index = Table::open(&file, expect).unwrap().index_iter();
        index.seek_first();
        let handles = std::iter::from_fn(|| {
            let handle = index.valid().then(|| index.handle());
            index.next();
            handle
        });
        let handles: Vec<_> = handles.collect();
        let half = handles.len().div_ceil(2);
        assert!((half - 1..=half).contains(&cached.len()), "{} of {}", cached.len(), handles.len());
        for (handle, (offset, block)) in handles.iter().zip(&cached) {
            let read = read_block(&*file, UID, *handle, BlockKind::Data).unwrap();
            assert_eq!((handle.offset, read.bytes()), (*offset, block.bytes()));
        }
    }
}

/// A large entry that was not cached is not carried along by small ones that were.
#[test]
fn a_block_is_cached_by_its_bytes() {
    let mut writer =
        TableWriter::new(Box::new(MemWriter::default()), options(&KeyOrder::Bytewise)).unwrap();
    for (key, bytes) in [("a", 10), ("b", 10), ("c", 3_000)] {
        let (key, value) = point(key.as_bytes(), 1, &vec![b'v'; bytes]);
        writer.note_source(bytes == 10, key.len() + value.len());
        writer.add(&key, &value).unwrap();
    }
    writer.end_last_block().unwrap();
    assert!(writer.take_cached().is_none());
}

/// Filter bits that are set late: they hold for a filter that is written at the end, and for the
/// partitions that are not written yet; a table with partitions written has none or some
/// throughout.
#[test]
fn filter_bits_may_be_decided_late() {
    let entries = numbered(60_000);
    for (partition_bytes, early) in [(1 << 10, true), (16 << 10, false), (16 << 20, false)] {
        for (first, last) in [(0.0, 6.0), (6.0, 0.0), (2.0, 9.0)] {
            let options = TableOptions {
                filter_bits_per_key: first,
                late_filter: true,
                partition_bytes,
                ..options(&KeyOrder::Bytewise)
            };
            let file = MemWriter::default();
            let order = options.order.clone();
            let mut writer = TableWriter::new(Box::new(file.clone()), options).unwrap();
            entries.iter().for_each(|(key, value)| writer.add(key, value).unwrap());
            assert_eq!(writer.filter_progress().1 > 0, early && first > 0.0);
            assert!(writer.filter_pieces_max() == 1 || partition_bytes < 1 << 20);
            writer.set_filter_bits(last);
            let summary = writer.finish().unwrap();
            let written = WrittenTable { bytes: file.bytes(), summary, order };
            check(&written, &entries, &Tombstones::empty(), &[(b"key00000007".to_vec(), 1 << 40)]);
            let filtered = if early { first > 0.0 } else { last > 0.0 };
            assert_eq!(written.summary.filter_bytes > 0, filtered, "{early} {first} {last}");
        }
    }
}

#[test]
fn versions_of_one_key_span_blocks_and_partitions() {
    let mut entries = Entries::new();
    for user in [&b"a"[..], b"k", b"kk", b"z"] {
        let versions = if user == b"k" { 300 } else { 3 };
        entries.extend((0..versions).rev().map(|seq| point(user, seq, &[seq as u8; 30])));
    }
    for order in orders() {
        let entries = sorted(entries.clone(), &order);
        for partition_bytes in [50, 1 << 20] {
            let options = TableOptions { partition_bytes, block_bytes: 256, ..options(&order) };
            let written = write(options, &entries, &Tombstones::empty());
            let asked: Vec<_> = (0..310).map(|seq| (b"k".to_vec(), seq)).collect();
            check(&written, &entries, &Tombstones::empty(), &asked);
        }
    }
}

#[test]
fn giant_entries_and_longest_keys() {
    let long = vec![b'k'; windrow_base::key::KEY_BYTES_MAX];
    let mut entries = vec![point(b"a", 1, &vec![7; 3 << 20]), point(&long, 2, b"v")];
    entries.push(point(b"z", 3, b""));
    let written = write(options(&KeyOrder::Bytewise), &entries, &Tombstones::empty());
    check(
        &written,
        &entries,
        &Tombstones::empty(),
        &[(long, 9), (b"a".to_vec(), 9), (b"b".to_vec(), 9)],
    );
}

/// Copies a table piece by piece; pieces of at most `bytes_max` are copied several at a time.
fn copy(file: &Arc<dyn ReadFile>, bytes_max: u64) -> Result<Vec<u8>> {
    let mut reader = PieceReader::new(file.clone(), UID, file.len())?;
    let mut copied = Vec::new();
    while (copied.len() as u64) < file.len() {
        let announced = reader.next_bytes(bytes_max);
        let pieces = reader.read(bytes_max)?;
        assert!(!pieces.is_empty() && pieces.len() as u64 == announced, "at {}", copied.len());
        copied.extend_from_slice(pieces);
    }
    assert!(reader.read(bytes_max)?.is_empty(), "nothing is behind the end");
    Ok(copied)
}

/// Damages a file in every given way, and requires the right answer or `Corruption`.
fn sweep(written: &WrittenTable, damaged: impl Iterator<Item = (String, Vec<u8>)>) {
    let right = read_all(&written.file(), written.expect()).unwrap();
    let mut harmless = 0u64;
    for (what, bytes) in damaged {
        let file = mem_file(bytes);
        match read_all(&file, written.expect()) {
            Ok(answer) => {
                assert!(answer == right, "{what}: a wrong answer");
                harmless += 1;
            }
            Err(e) => assert!(e.is_corruption() && e.file().is_some(), "{what}: {e}"),
        }
        let verified = verify(&file, written.expect());
        assert!(verified.is_err_and(|e| e.is_corruption()), "{what}: verify finds nothing");
        let copied = copy(&file, 300);
        assert!(copied.is_err_and(|e| e.is_corruption()), "{what}: it is copied");
    }
    // Only damage to the header and partition filters, which this reading does not use, may pass.
    let unused = HEADER_BYTES as u64 + written.summary.filter_bytes;
    assert!(harmless <= unused * 8, "{harmless} flips unnoticed");
}

#[test]
fn every_flip_and_cut_of_a_table_is_found() {
    let order = KeyOrder::Bytewise;
    let ranges = [
        RangeTombstone { start: b"key00000003".to_vec(), end: b"key00000009".to_vec(), seq: 70 },
        RangeTombstone { start: b"key00000005".to_vec(), end: b"zzz".to_vec(), seq: 60 },
    ];
    let tombstones = Tombstones::build(ranges.iter().map(RangeTombstone::parts), &order);
    for (partition_bytes, codec) in
        [(1 << 20, Codec::None), (1 << 20, Codec::Lz4), (200, Codec::None)]
    {
        let options = TableOptions { partition_bytes, codec, block_bytes: 256, ..options(&order) };
        let written = write(options, &numbered(30), &tombstones);
        let flips = (0..written.bytes.len() * 8).map(|bit| {
            let mut bad = written.bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            (format!("byte {} bit {}", bit / 8, bit % 8), bad)
        });
        sweep(&written, flips);
        let cuts = (0..written.bytes.len())
            .map(|len| (format!("cut {len}"), written.bytes[..len].to_vec()));
        sweep(&written, cuts);
        let longer = [&written.bytes[..], &[0]].concat();
        assert!(read_all(&mem_file(longer), written.expect()).unwrap_err().is_corruption());
    }
}

#[test]
fn swapped_blocks_and_files_are_found() {
    let order = KeyOrder::Bytewise;
    let options_small = TableOptions { block_bytes: 256, ..options(&order) };
    let written = write(options_small.clone(), &numbered(60), &Tombstones::empty());
    let table = Table::open(&written.file(), written.expect()).unwrap();
    let mut index = table.index_iter();
    index.seek_first();
    let mut handles = Vec::new();
    while index.valid() {
        handles.push(index.handle());
        index.next();
    }
    let pair = handles[1..].windows(2).find(|w| w[0].bytes == w[1].bytes).unwrap();
    let mut swapped = written.bytes.clone();
    for (from, to) in [(pair[0], pair[1]), (pair[1], pair[0])] {
        let block = &written.bytes[from.offset as usize..from.end() as usize];
        swapped[to.offset as usize..to.end() as usize].copy_from_slice(block);
    }
    sweep(&written, [("two blocks swapped".to_string(), swapped)].into_iter());
    // Another table of the same length under this one's name.
    let other =
        write(TableOptions { uid: UID + 1, ..options_small }, &numbered(60), &Tombstones::empty());
    assert_eq!(other.bytes.len(), written.bytes.len());
    let e = Table::open(&other.file(), written.expect()).err().unwrap();
    assert!(e.is_corruption() && e.message().contains("uid"), "{e}");
    let custom = Expect { order: orders()[1].clone(), ..written.expect() };
    let e = Table::open(&written.file(), custom).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

/// An order in which every key comes after every other.
struct NoOrder;

impl Comparator for NoOrder {
    fn id(&self) -> &str {
        "test.no-order"
    }

    fn compare(&self, _: &[u8], _: &[u8]) -> std::cmp::Ordering {
        std::cmp::Ordering::Greater
    }
}

#[test]
fn a_comparator_without_an_order_is_named() {
    let order = KeyOrder::Custom(Arc::new(NoOrder));
    let mut writer = TableWriter::new(Box::new(MemWriter::default()), options(&order)).unwrap();
    writer.add(&point(b"a", 2, b"").0, b"").unwrap();
    let error = writer.add(&point(b"b", 3, b"").0, b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("test.no-order"), "{error}");
    writer.abandon();
}

#[test]
fn what_cannot_be_a_table_is_refused_by_the_writer() {
    let order = KeyOrder::Bytewise;
    let new = || TableWriter::new(Box::new(MemWriter::default()), options(&order)).unwrap();
    assert_eq!(new().finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut writer = new();
    let (b2, _) = point(b"b", 2, b"");
    writer.add(&b2, b"").unwrap();
    for late in [point(b"b", 2, b""), point(b"b", 3, b""), point(b"a", 9, b""), point(b"", 9, b"")]
    {
        assert_eq!(writer.add(&late.0, b"").unwrap_err().kind(), ErrorKind::Internal);
    }
    writer.add(&point(b"b", 1, b"").0, b"").unwrap();
    writer.add(&point(b"ba", 9, b"").0, b"").unwrap();
    assert!(writer.add(b"short", b"").is_err());
    writer.abandon();
}

#[test]
fn expiry_and_tombstones_are_counted() {
    let order = KeyOrder::Bytewise;
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), options(&order)).unwrap();
    let key = |user: &[u8], seq, kind| {
        let mut key = Vec::new();
        push_internal(&mut key, user, trailer(seq, kind));
        key
    };
    writer
        .add(&key(b"a", 7, Kind::PutExpiry), &[&500u64.to_le_bytes()[..], b"v"].concat())
        .unwrap();
    writer.add(&key(b"b", 8, Kind::MergeExpiry), &300u64.to_le_bytes()).unwrap();
    writer.add(&key(b"c", 9, Kind::SingleDelete), b"").unwrap();
    let t = |start: &[u8], end: &[u8], seq| RangeTombstone {
        start: start.into(),
        end: end.into(),
        seq,
    };
    writer.add_tombstone(&t(b"0", b"1", 20)).unwrap();
    writer.add_tombstone(&t(b"0", b"1", 3)).unwrap();
    assert!(writer.add_tombstone(&t(b"0", b"2", 1)).is_err());
    writer.add_tombstone(&t(b"1", b"c", 5)).unwrap();
    let s = writer.finish().unwrap();
    assert_eq!((s.expiring_entries, s.expiry_min_ms, s.point_tombstones), (2, 300, 1));
    assert_eq!((s.range_tombstones, s.seq_min, s.seq_max), (3, 3, 20));
    // Both the exclusive end "c" of the range and the point "c": the point makes the bound
    // inclusive.
    assert_eq!(s.bounds, (b"0".as_slice().into(), b"c".as_slice().into(), false));
    let expect = Expect { file_bytes: s.file_bytes, uid: UID, order };
    assert_eq!(verify(&mem_file(file.bytes()), expect).unwrap().range_tombstones, 3);
}

/// Checks the remains of a table of these bytes, whose undamaged blocks are `blocks`.
fn check_remains(bytes: Vec<u8>, blocks: &[(BlockHandle, Entries)], damaged: &[usize], what: &str) {
    let len = bytes.len() as u64;
    let file = mem_file(bytes);
    let found = remains(&file, UID, &KeyOrder::Bytewise);
    let is_whole = |at: &BlockHandle| {
        let hit = |&byte: &usize| (at.offset..at.end()).contains(&(byte as u64));
        at.end() <= len && !damaged.iter().any(hit)
    };
    let whole: Vec<BlockHandle> = blocks.iter().map(|(at, _)| *at).filter(is_whole).collect();
    assert_eq!(found.data, whole, "{what}");
    for (at, want) in blocks.iter().filter(|(at, _)| is_whole(at)) {
        let mut got = Entries::new();
        read_entries(&*file, &KeyOrder::Bytewise, *at, &mut got).unwrap();
        assert_eq!(&got, want, "{what}");
    }
    // The gaps cover the lost blocks.
    for (at, _) in blocks.iter().filter(|(at, _)| !is_whole(at) && at.end() <= len) {
        let covers = |gap: &std::ops::Range<u64>| gap.start <= at.offset && at.end() <= gap.end;
        assert!(found.gaps.iter().any(covers), "{what}: {at:?} is in none of {:?}", found.gaps);
    }
}

/// With one damaged byte anywhere, and with a second one in the index or the footer, every block
/// without a damaged byte is found; likewise in a truncated table.
#[test]
fn damage_costs_the_block_that_it_is_in() {
    let order = KeyOrder::Bytewise;
    let range = RangeTombstone { start: b"key00000003".to_vec(), end: b"zzz".to_vec(), seq: 70 };
    let tombstones = Tombstones::build([range.parts()].into_iter(), &order);
    for (partition_bytes, codec) in
        [(1 << 20, Codec::None), (1 << 20, Codec::Lz4), (200, Codec::None)]
    {
        let options = TableOptions { partition_bytes, codec, block_bytes: 256, ..options(&order) };
        let WrittenTable { bytes, .. } = write(options, &numbered(40), &tombstones);
        let whole = remains(&mem_file(bytes.clone()), UID, &order);
        assert!(whole.gaps.is_empty() && whole.data.len() > 5, "{whole:?}");
        assert_eq!(whole.tombstones.as_ref().map(Tombstones::pairs), Some(1));
        let read = |&at: &BlockHandle| {
            let mut entries = Entries::new();
            read_entries(&*mem_file(bytes.clone()), &order, at, &mut entries).unwrap();
            (at, entries)
        };
        let blocks: Vec<(BlockHandle, Entries)> = whole.data.iter().map(read).collect();
        let entries: Entries = blocks.iter().flat_map(|(_, entries)| entries.clone()).collect();
        assert!(entries == numbered(40), "the undamaged table");
        let end = bytes.len() - FOOTER_BYTES;
        let footer = footer::Footer::decode(&bytes[end..], bytes.len() as u64, UID).unwrap();
        let (index, footer) = (footer.index.offset as usize + 9, end + 20);
        for others in [&[][..], &[index], &[footer], &[index, footer]] {
            for at in 0..bytes.len() {
                let damaged = [others, &[at]].concat();
                let mut bad = bytes.clone();
                damaged.iter().for_each(|&at| bad[at] ^= 0x40);
                check_remains(bad, &blocks, &damaged, &format!("{damaged:?} of {codec:?}"));
            }
        }
        for len in 0..bytes.len() {
            check_remains(bytes[..len].to_vec(), &blocks, &[], &format!("cut {len}"));
        }
    }
}

/// A file that fails the test when it is read beyond its end.
struct BoundsCheckedFile(Arc<dyn ReadFile>);

impl ReadFile for BoundsCheckedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        assert!(offset + buf.len() as u64 <= self.len(), "read at {offset}, behind the end");
        self.0.read_at(offset, buf)
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn path(&self) -> &std::path::Path {
        self.0.path()
    }
}

/// An index with a right checksum that points far behind the end of its file. The search once went
/// on there from the last block, in steps of half a MiB.
#[test]
fn an_index_that_leads_outside_its_file_is_not_followed() {
    let order = KeyOrder::Bytewise;
    for partition_bytes in [1 << 20, 200] {
        let options = TableOptions { partition_bytes, block_bytes: 256, ..options(&order) };
        let WrittenTable { mut bytes, .. } = write(options, &numbered(40), &Tombstones::empty());
        let whole = remains(&mem_file(bytes.clone()), UID, &order);
        let end = bytes.len() - FOOTER_BYTES;
        let footer = footer::Footer::decode(&bytes[end..], bytes.len() as u64, UID).unwrap();
        let (from, to) = (footer.index.offset as usize, footer.index.end() as usize);
        let index = &mut bytes[from..to - BLOCK_TRAILER_BYTES + 1];
        let count = u32::from_le_bytes(index[4..8].try_into().unwrap()) as usize;
        index[15] = 0x40;
        if footer.partitioned {
            for place in 0..count {
                let at = crate::block::HEAD_BYTES + count * 12 + place * 24;
                [at + 7, at + 15].iter().for_each(|&top| index[top] = 0x40);
            }
        }
        let crc = windrow_env::checksum::checksum(UID, footer.index.offset, &[index]);
        bytes[to - 4..to].copy_from_slice(&crc.to_le_bytes());
        let read = read_block(&*mem_file(bytes.clone()), UID, footer.index, BlockKind::Index);
        assert!(read.is_ok(), "{:?}", read.err());
        // Without the properties the search goes on behind the last block.
        bytes[footer.properties.offset as usize] ^= 1;
        let file: Arc<dyn ReadFile> = Arc::new(BoundsCheckedFile(mem_file(bytes)));
        let found = remains(&file, UID, &order);
        assert_eq!(found.data, whole.data);
        assert!(found.properties.is_none() && found.gaps.iter().all(|gap| gap.end <= file.len()));
    }
}

/// The uid is both in the header and in the footer.
#[test]
fn either_end_of_a_table_says_whose_it_is() {
    let order = KeyOrder::Bytewise;
    let mut bytes = write(options(&order), &numbered(30), &Tombstones::empty()).bytes;
    assert_eq!(uids(&*mem_file(bytes.clone())), [UID]);
    let footer = bytes.len() - FOOTER_BYTES;
    bytes[footer] ^= 1;
    assert_eq!(uids(&*mem_file(bytes.clone()))[0], UID);
    bytes[footer] ^= 1;
    bytes[16] ^= 1;
    assert_eq!(uids(&*mem_file(bytes)), [UID]);
}

/// Keys of the greatest length that differ at their end, where no separator is
/// short; at their beginning; and by groups of both.
fn longest_keys(count: usize) -> Vec<Vec<u8>> {
    let of = |head: String, tail: String| {
        let fill = vec![b'x'; windrow_base::key::KEY_BYTES_MAX - head.len() - tail.len()];
        [head.as_bytes(), &fill, tail.as_bytes()].concat()
    };
    let ends = (0..count).map(|i| of("a".into(), format!("{i:08}")));
    let begins = (0..count).map(|i| of(format!("b{i:08}"), String::new()));
    let groups = (0..count).map(|i| of(format!("c{:08}", i / 20), format!("{i:08}")));
    ends.chain(begins).chain(groups).collect()
}

#[test]
fn an_index_of_the_longest_keys_is_small() {
    const COUNT: usize = 200;
    let entries = Vec::from_iter(longest_keys(COUNT).iter().map(|key| point(key, 9, b"value")));
    let mut options = options(&KeyOrder::Bytewise);
    options.partition_bytes = 512 << 10;
    let file = MemWriter::default();
    let mut writer = TableWriter::new(Box::new(file), options.clone()).unwrap();
    for (key, value) in &entries {
        writer.add(key, value).unwrap();
        let held = writer.memory_bytes();
        assert!(held < 3 << 20, "the writer holds {held} bytes");
    }
    let summary = writer.finish().unwrap();
    // Each group stores the prefix that its keys share once in its partition and once in the top
    // level.
    let groups = 1 + COUNT / 20;
    let most = (2 * groups + 4) * windrow_base::key::KEY_BYTES_MAX;
    assert!(summary.index_bytes < most as u64, "{} bytes of index", summary.index_bytes);
    let written = write(options, &entries, &Tombstones::empty());
    let asked = Vec::from_iter(longest_keys(COUNT).into_iter().map(|key| (key, 9)).step_by(7));
    check(&written, &entries, &Tombstones::empty(), &asked);
}
