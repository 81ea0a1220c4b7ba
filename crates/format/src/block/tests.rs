//! Blocks against a sorted list: iteration in both directions, seeks, gets, and bytes that no
//! builder wrote.
//!
//! Owns: the cases, and the sorted list that answers are compared with. Never does: read or write a
//! file.

use super::entry::EntryLayout;
use super::*;
use crate::filter;
use crate::test_files::orders;
use proptest::prelude::*;
use std::sync::Arc;
use windrow_base::key::{
    Kind, compare_internal, push_internal, seek_trailer, split, trailer as pack,
};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Sorts and dedups (user key, sequence) pairs into entries under an order.
fn entries_of(raw: Vec<(Vec<u8>, u64, Vec<u8>)>, order: &KeyOrder) -> Entries {
    let mut entries: Entries = raw
        .into_iter()
        .map(|(user, seq, value)| {
            let mut key = Vec::new();
            push_internal(&mut key, &user, pack(seq, Kind::Put));
            (key, value)
        })
        .collect();
    entries.sort_by(|a, b| compare_internal(order, &a.0, &b.0));
    entries.dedup_by(|a, b| compare_internal(order, &a.0, &b.0).is_eq());
    entries
}

fn payload_of(entries: &Entries, order: &KeyOrder, interval: u32, hash_index: bool) -> Vec<u8> {
    let mut builder = BlockBuilder::new(interval, hash_index && order.equality_is_bytewise());
    let mut last: Vec<u8> = Vec::new();
    for (i, (key, value)) in entries.iter().enumerate() {
        let (user, trailer) = split(key);
        let hash = (i == 0 || user != last).then(|| filter::hash(user));
        let shared = common_prefix(user, &last);
        builder.add(user, trailer.to_le_bytes(), value, shared, hash);
        last = user.to_vec();
    }
    let estimated = builder.bytes();
    let payload = builder.finish().to_vec();
    assert!(payload.len() <= estimated);
    payload
}

fn block_of(entries: &Entries, order: &KeyOrder, interval: u32, hash_index: bool) -> Arc<Block> {
    let payload = payload_of(entries, order, interval, hash_index);
    Arc::new(Block::parse(Buffer::copy_of(&payload), BlockKind::Data).unwrap())
}

/// Short keys of few letters: many shared prefixes, keys that are prefixes of others, and versions.
fn raw_entries() -> impl Strategy<Value = Vec<(Vec<u8>, u64, Vec<u8>)>> {
    let key = prop_oneof![
        prop::collection::vec(prop::sample::select(b"abAB\xff\0".to_vec()), 0..5),
        prop::collection::vec(prop::sample::select(b"ab".to_vec()), 7..12),
        prop::collection::vec(any::<u8>(), 120..140),
    ];
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::collection::vec(any::<u8>(), 126..131),
    ];
    prop::collection::vec((key, 0u64..8, value), 0..80)
}

fn check_iteration(block: &Arc<Block>, order: &KeyOrder, entries: &Entries) {
    let mut iter = BlockIter::new(Arc::clone(block), order.clone());
    iter.seek_first();
    for (key, value) in entries {
        assert!(iter.valid());
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        assert_eq!(&block.bytes()[iter.value_range()], &value[..]);
        iter.next();
    }
    assert!(!iter.valid());
    iter.seek_last();
    for (key, value) in entries.iter().rev() {
        assert!(iter.valid());
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.prev();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
}

fn check_target(block: &Arc<Block>, order: &KeyOrder, entries: &Entries, user: &[u8], seq: u64) {
    let mut target = Vec::new();
    push_internal(&mut target, user, seek_trailer(seq));
    let at = entries.partition_point(|(k, _)| compare_internal(order, k, &target).is_lt());
    let mut iter = BlockIter::new(Arc::clone(block), order.clone());
    iter.seek(&target);
    assert_eq!(iter.valid().then(|| iter.key()), entries.get(at).map(|e| &e.0[..]));
    // Change direction twice from the place that the seek found.
    if iter.valid() {
        iter.prev();
        assert_eq!(iter.valid(), at > 0);
        if iter.valid() {
            assert_eq!(iter.key(), entries[at - 1].0);
            iter.next();
            assert_eq!(iter.key(), entries[at].0);
        }
    }
    iter.seek_before(&target);
    let before = at.checked_sub(1).map(|i| &entries[i].0[..]);
    assert_eq!(iter.valid().then(|| iter.key()), before);

    let got = block.get(order, user, seek_trailer(seq)).unwrap();
    assert_eq!(got, block.get_hashed(order, user, filter::hash(user), seek_trailer(seq)).unwrap());
    match entries.get(at) {
        Some((key, value)) if order.equal(split(key).0, user) => {
            let BlockGet::Found { trailer, value: range } = got else {
                panic!("{user:?}@{seq} is there, but {got:?}");
            };
            assert_eq!((trailer, &block.bytes()[range]), (split(key).1, &value[..]));
        }
        Some(_) => assert_eq!(got, BlockGet::Absent),
        None => assert!(got == BlockGet::Passed || got == BlockGet::Absent),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_block_is_its_sorted_list(
        raw in raw_entries(), more in raw_entries(),
        which in 0usize..3, interval in 1u32..20, hash_index: bool,
    ) {
        let order = orders()[which].clone();
        let entries = entries_of(raw.clone(), &order);
        let block = block_of(&entries, &order, interval, hash_index);
        check_iteration(&block, &order, &entries);
        for (user, seq, _) in raw.iter().chain(&more) {
            for seq in [*seq, seq + 1, 0] {
                check_target(&block, &order, &entries, user, seq);
            }
        }
    }

    #[test]
    fn bytes_no_builder_wrote_are_an_answer_or_corruption(
        raw in raw_entries(), flips in prop::collection::vec((any::<usize>(), 0u8..8), 1..4),
        cut in any::<usize>(), which in 0usize..3,
    ) {
        let order = orders()[which].clone();
        let entries = entries_of(raw, &order);
        let mut payload = payload_of(&entries, &order, 4, true);
        for (at, bit) in flips {
            let at = at % payload.len();
            payload[at] ^= 1 << bit;
        }
        let whole = payload.clone();
        walk_anything(payload, &order);
        walk_anything(whole[..cut % whole.len()].to_vec(), &order);
    }
}

/// Uses a payload in every way; only panics and endless loops are failures.
fn walk_anything(payload: Vec<u8>, order: &KeyOrder) {
    let steps_max = payload.len() + 2;
    let Ok(block) = Block::parse(Buffer::copy_of(&payload), BlockKind::Data) else { return };
    let block = Arc::new(block);
    let mut iter = BlockIter::new(Arc::clone(&block), order.clone());
    let mut keys = Vec::new();
    iter.seek_first();
    while iter.valid() {
        keys.push(iter.key().to_vec());
        let _ = iter.value();
        iter.next();
        assert!(keys.len() < steps_max);
    }
    for key in keys.iter().take(20) {
        let mut iter = BlockIter::new(Arc::clone(&block), order.clone());
        iter.seek(key);
        iter.seek_before(key);
        let (user, trailer) = split(key);
        let _ = block.get(order, user, trailer);
    }
    let mut iter = BlockIter::new(Arc::clone(&block), order.clone());
    iter.seek_last();
    let mut steps = 0;
    while iter.valid() {
        iter.prev();
        steps += 1;
        assert!(steps < steps_max);
    }
}

#[test]
fn a_block_read_as_another_kind_is_empty() {
    let plain = Arc::new(Block::parse(Buffer::copy_of(b"x"), BlockKind::Properties).unwrap());
    let mut iter = BlockIter::new(Arc::clone(&plain), KeyOrder::Bytewise);
    iter.seek_first();
    assert!(!iter.valid());
    iter.seek_last();
    assert!(!iter.valid());
    iter.seek(&[0; 9]);
    assert!(!iter.valid());
    assert_eq!(plain.get(&KeyOrder::Bytewise, b"k", 1).unwrap(), BlockGet::Passed);
    assert!(plain.may_contain(1));
}

#[test]
fn every_flip_of_a_block_on_disk_is_found() {
    let order = KeyOrder::Bytewise;
    let raw =
        (0..40u64).map(|i| (format!("key{i:03}").into_bytes(), i, vec![i as u8; 5])).collect();
    let payload = payload_of(&entries_of(raw, &order), &order, 16, true);
    let mut disk = payload.clone();
    disk.extend_from_slice(&trailer(7, 4096, BlockKind::Data, Codec::None, &payload));
    let decode =
        |raw: &[u8], uid, offset, kind| Block::from_disk(Buffer::copy_of(raw), uid, offset, kind);
    assert_eq!(decode(&disk, 7, 4096, BlockKind::Data).unwrap().bytes(), payload);
    for bit in 0..disk.len() * 8 {
        let mut bad = disk.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bad, 7, 4096, BlockKind::Data).err().unwrap().is_corruption());
    }
    for len in 0..disk.len() {
        assert!(decode(&disk[..len], 7, 4096, BlockKind::Data).is_err());
    }
    // At another offset, in another file, and as another kind, these bytes fail their checks.
    for (uid, offset, kind) in
        [(8, 4096, BlockKind::Data), (7, 0, BlockKind::Data), (7, 4096, BlockKind::Index)]
    {
        assert!(decode(&disk, uid, offset, kind).err().unwrap().is_corruption());
    }
}

#[test]
fn codecs_of_the_future_are_refused() {
    let mut disk = b"payload".to_vec();
    disk.push((BlockKind::Data as u8) << 4 | 9);
    let crc = checksum(1, 0, &[&disk]);
    disk.extend_from_slice(&crc.to_le_bytes());
    let e = Block::from_disk(Buffer::copy_of(&disk), 1, 0, BlockKind::Data).err().unwrap();
    assert_eq!(e.kind(), windrow_base::ErrorKind::NotSupported);
}

/// An interval has few bytes where values are large and few entries where they are small. Restarts
/// and buckets take at most a fiftieth of the block more than intervals of sixteen entries and four
/// buckets for three keys did.
#[test]
fn intervals_are_bounded_in_bytes_and_entries() {
    let order = KeyOrder::Bytewise;
    for value_bytes in [0, 10, 50, 100, 400, 1000, 3000] {
        let key = |i: u64| format!("user{i:012}").into_bytes();
        let count = 30_000 / (value_bytes + 20);
        let raw = (0..count as u64).map(|i| (key(i), 1, vec![7; value_bytes])).collect();
        let entries = entries_of(raw, &order);
        let block = block_of(&entries, &order, 16, true);
        let layout = block.data();
        for restart in 0..layout.restarts {
            let (from, to) = (block.restart(&layout, restart), block.restart_end(&layout, restart));
            let mut entry_starts = vec![from];
            while let Some(entry) =
                EntryLayout::read(block.entries(&layout), entry_starts[entry_starts.len() - 1])
                && entry.end < to
            {
                entry_starts.push(entry.end);
            }
            assert!(entry_starts.len() <= 16, "{value_bytes}");
            assert!(entry_starts[entry_starts.len() - 1] - from < 1024, "{value_bytes}");
        }
        assert!(count * 4 / 3 < layout.buckets && layout.buckets <= 2 * count + 1);
        for (i, (key, _)) in entries.iter().enumerate() {
            check_target(&block, &order, &entries, split(key).0, i as u64 % 3);
        }
        let restarts_at_16 = count.div_ceil(16);
        let more_restarts = (layout.restarts - restarts_at_16.min(layout.restarts)) * (4 + 16);
        let more = more_restarts + layout.buckets - (count * 4 / 3 + 1);
        assert!(
            more * 50 <= block.bytes().len(),
            "{value_bytes}: {more} of {}",
            block.bytes().len()
        );
    }
}

/// A get from the cache waits for two lines of memory, with the counters of its `Arc`.
#[test]
fn what_is_known_of_a_block_is_small() {
    assert!(size_of::<Block>() <= 72, "{}", size_of::<Block>());
}
