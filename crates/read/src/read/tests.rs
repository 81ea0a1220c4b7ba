//! Tests of reads against the model: gets, scans and iterators over random trees, and damage to
//! their files.
//!
//! Owns: the cases. Never does: build a tree (`testing.rs` does).

use super::cursor::{Cursor, Iter};
use super::get::get;
use super::multi_get::multi_get;
use super::readahead::Readahead;
use super::scan::Scan;
use super::scan_options::ScanOptions;
use super::scan_sources::merge_of;
use super::table_iter::{Bounds, TableIterOptions};
use super::testing::{
    HistoryOp, Still, Submissions, TableWorld, everything, model, number_key, random_history,
};
use super::view::ReadView;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use windrow_base::key::{self, Kind};
use windrow_base::{Comparator, KeyOrder, SeqNo};
use windrow_env::FileSystem;
use windrow_env::testing::{Fault, FaultKind, Ops, Rng, When};
use windrow_format::names;

const KEYS: u64 = 40;

/// More than the cache of [`TableWorld`] has room for.
const CROWD_BYTES: u64 = 2 << 20;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn entries(map: BTreeMap<Vec<u8>, Vec<u8>>, options: &ScanOptions) -> Entries {
    map.into_iter()
        .filter(|(key, _)| match &options.lower {
            Some(lower) => lower < key || (lower == key && !options.lower_after),
            None => true,
        })
        .filter(|(key, _)| match &options.upper {
            Some(upper) => key < upper || (key == upper && options.upper_after),
            None => true,
        })
        .filter(|(key, _)| options.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix)))
        .collect()
}

fn random_options(rng: &mut Rng) -> ScanOptions {
    let bound = |rng: &mut Rng| rng.chance(0.4).then(|| number_key(rng.below(KEYS)));
    ScanOptions {
        lower: bound(rng),
        lower_after: rng.chance(0.3),
        upper: bound(rng),
        upper_after: rng.chance(0.3),
        prefix: rng.chance(0.2).then(|| number_key(10 * rng.below(KEYS / 10))[..3].to_vec()),
        fill_cache: rng.chance(0.5),
        readahead: [
            Readahead::None,
            Readahead::Auto { max_bytes: 8192 },
            Readahead::Sequential { bytes: 1 + rng.below(9000) },
        ][rng.below(3) as usize],
    }
}

/// Walks at random, and compares every position with the sorted entries.
fn walk(rng: &mut Rng, scan: &mut Scan, expected: &Entries, label: &str) {
    let mut at: Option<usize> = None;
    for step in 0..60 {
        let mut key = number_key(rng.below(KEYS + 2));
        let what = rng.below(12);
        let moved = match what {
            0 => {
                at = (!expected.is_empty()).then_some(0);
                scan.seek_first()
            }
            1 => {
                at = expected.len().checked_sub(1);
                scan.seek_last()
            }
            2 => {
                at = expected.iter().position(|(k, _)| *k >= key);
                scan.seek(&key)
            }
            3 => {
                at = expected.iter().rposition(|(k, _)| *k < key);
                scan.seek_before(&key)
            }
            4..7 => {
                at = at.map(|i| i + 1).filter(|&i| i < expected.len());
                scan.next()
            }
            // Just ahead, where the scan steps, or just after its entry.
            7..9 if at.is_some() => {
                let ahead = at.map(|i| i + rng.below(7) as usize).filter(|&i| i < expected.len());
                key = expected[ahead.or(at).unwrap_or(0)].0.clone();
                if rng.chance(0.3) {
                    key.push(0);
                }
                at = expected.iter().position(|(k, _)| *k >= key);
                scan.seek(&key)
            }
            _ => {
                at = at.and_then(|i| i.checked_sub(1));
                scan.prev()
            }
        };
        let moved = moved.unwrap_or_else(|e| panic!("{label} step {step}: {e}"));
        let got = moved.then(|| (scan.key().to_vec(), scan.value().to_vec()));
        let key = String::from_utf8_lossy(&key).into_owned();
        assert_eq!(got.as_ref(), at.map(|i| &expected[i]), "{label} step {step}: {what} {key:?}");
        assert_eq!(scan.valid(), moved);
        if let Some((_, value)) = got {
            assert_eq!(scan.value_slice(), value, "{label} step {step}");
        }
    }
}

fn check_tree(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut world = TableWorld::new(seed, KeyOrder::Bytewise);
    let count = 20 + rng.below(300);
    let history = random_history(&mut rng, count, KEYS);
    let view = world.grow(&mut rng, &history, KEYS);
    for round in 0..6 {
        let seq: SeqNo = if round == 0 { count } else { rng.below(count + 1) };
        let now_ms = 850 + rng.below(300);
        let label = format!("seed {seed} round {round} seq {seq}");
        let map = model(&history, seq, now_ms);

        let keys: Vec<Vec<u8>> = (0..KEYS + 2).map(number_key).collect();
        let owner = world.with_cold_caches(if rng.chance(0.5) { 0 } else { 1 << 20 }, 3);
        let cold_view = world.view_for(&owner, &view);
        let many = multi_get(&owner, &cold_view, &keys, seq, || now_ms);
        for (key, from_many) in keys.iter().zip(many) {
            let one = get(&world.owner, &view, key, seq, || now_ms).unwrap();
            let expected = map.get(key).map(Vec::as_slice);
            assert_eq!(
                one.as_deref(),
                expected,
                "{label} get {:?}",
                key.escape_ascii().to_string()
            );
            assert_eq!(from_many.unwrap().as_deref(), expected, "{label} multi_get");
        }

        let options = random_options(&mut rng);
        let expected = entries(map, &options);
        let label = format!("{label} {options:?}");
        let mut scan =
            Scan::new(Arc::clone(&owner), Arc::clone(&cold_view), seq, now_ms, options.clone());
        walk(&mut rng, &mut scan, &expected, &label);
        let other = rng.below(count + 1);
        scan.refresh(Arc::clone(&cold_view), other, now_ms).unwrap();
        walk_from_anywhere(&mut rng, &mut scan, &history, other, now_ms, &options, &label);
        draw_from_both_ends(&mut rng, &world, &view, seq, now_ms, options, &expected, &label);
    }
}

fn walk_from_anywhere(
    rng: &mut Rng,
    scan: &mut Scan,
    history: &[HistoryOp],
    seq: SeqNo,
    now_ms: u64,
    options: &ScanOptions,
    label: &str,
) {
    let expected = entries(model(history, seq, now_ms), options);
    scan.seek_first().unwrap();
    scan.seek_last().unwrap();
    assert_eq!(scan.key(), expected.last().map_or(&[][..], |(key, _)| key), "{label} refreshed");
    let mut fresh = Rng::new(rng.next_u64());
    // `walk` assumes that the scan is nowhere: go past the end.
    while scan.next().unwrap() {}
    walk(&mut fresh, scan, &expected, &format!("{label} refreshed to {seq}"));
}

#[allow(clippy::too_many_arguments)]
fn draw_from_both_ends(
    rng: &mut Rng,
    world: &TableWorld,
    view: &Arc<ReadView>,
    seq: SeqNo,
    now_ms: u64,
    options: ScanOptions,
    expected: &Entries,
    label: &str,
) {
    let keep =
        Arc::new(Still { view: Arc::clone(view), seq, now_ms, is_snapshot: rng.chance(0.5) });
    let owner = Arc::clone(&world.owner);
    let mut iter = Iter::new(owner, Arc::clone(view), seq, now_ms, options, keep);
    let mut left = expected.iter();
    let bias = rng.below(100) as f64 / 100.0;
    // In some rounds memory is short from some step on: the iterator parks.
    let crowded_from = rng.below(12);
    let mut crowd = None;
    for step in 0.. {
        if step == crowded_from {
            crowd = Some(world.owner.blocks.hold(CROWD_BYTES));
        }
        let from_front = rng.chance(bias);
        let (got, want) = match from_front {
            true => (iter.next(), left.next()),
            false => (iter.next_back(), left.next_back()),
        };
        let got = got.map(|item| item.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec()));
        assert_eq!(got.as_ref(), want, "{label} front {from_front}");
        if want.is_none() {
            break;
        }
    }
    assert!(iter.next().is_none() && iter.next_back().is_none());
    drop(crowd);
}

#[test]
fn an_iterator_gives_up_its_place_while_memory_is_short() {
    let mut world = TableWorld::new(6, KeyOrder::Bytewise);
    let ops: Vec<HistoryOp> =
        (0..100).map(|n| HistoryOp::new(1, Kind::Put, &format!("key{n:03}"), "value")).collect();
    let bottom = world.table(&ops);
    let view = world.view(&[], vec![(vec![], vec![]), (vec![bottom], vec![])]);
    let blocks = &world.owner.blocks;
    let outside = || blocks.held_bytes() - blocks.bytes_used();
    let iter = || {
        let keep = Still::new(&view, 100, 0);
        Iter::new(Arc::clone(&world.owner), Arc::clone(&view), 100, 0, everything(), keep)
    };
    let mut early = iter();
    early.next().unwrap().unwrap();
    assert!(outside() as usize >= size_of::<Scan>(), "an open scan is charged");
    let crowd = blocks.hold(CROWD_BYTES);
    early.next().unwrap().unwrap();
    assert_eq!(outside(), CROWD_BYTES, "nothing but its key");
    assert_eq!(early.next().unwrap().unwrap().0, "key002");
    assert_eq!(early.next_back().unwrap().unwrap().0, "key099");
    // One that moves must not seek for ever.
    assert_eq!(early.by_ref().take(40).count(), 40);
    assert!(outside() > CROWD_BYTES);
    assert_eq!(early.next().unwrap().unwrap().0, "key043");
    assert_eq!(early.count(), 55);
    assert_eq!(outside(), CROWD_BYTES);
    drop(crowd);
}

#[test]
fn random_trees_read_as_the_model_does() {
    for seed in 0..80 {
        check_tree(seed);
    }
}

/// Bytes from the last to the first, so that bytewise shortcuts would show.
struct Backward;

impl Comparator for Backward {
    fn id(&self) -> &str {
        "test.backward"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }
}

#[test]
fn a_custom_order_is_kept_and_prefixes_are_filtered() {
    let mut world = TableWorld::new(5, KeyOrder::Custom(Arc::new(Backward)));
    let put = |seq, key: &str| HistoryOp::new(seq, Kind::Put, key, key);
    let old: Vec<HistoryOp> = ["za", "ya", "xb", "yb", "yc"].iter().map(|k| put(1, k)).collect();
    let new = [put(9, "yd"), put(8, "ab"), HistoryOp::new(7, Kind::Delete, "yb", "")];
    let bottom = world.table(&old);
    let view = world.view(&[new.to_vec()], vec![(vec![], vec![]), (vec![bottom], vec![])]);
    let all = ["ya", "za", "ab", "xb", "yc", "yd"];
    let mut scan = world.scan(&view, 100, 0);
    let mut seen = Vec::new();
    let mut more = scan.seek_first().unwrap();
    while more {
        seen.push(String::from_utf8(scan.key().to_vec()).unwrap());
        more = scan.next().unwrap();
    }
    assert_eq!(seen, all);
    let options = everything().with_prefix(b"y");
    for (from_front, crowd) in [(true, 0), (false, 0), (true, CROWD_BYTES), (false, CROWD_BYTES)] {
        let _crowd = world.owner.blocks.hold(crowd);
        let keep = Still::new(&view, 100, 0);
        let owner = Arc::clone(&world.owner);
        let mut iter = Iter::new(owner, Arc::clone(&view), 100, 0, options.clone(), keep);
        let mut seen = Vec::new();
        while let Some(item) = if from_front { iter.next() } else { iter.next_back() } {
            seen.push(String::from_utf8(item.unwrap().0.to_vec()).unwrap());
        }
        if !from_front {
            seen.reverse();
        }
        assert_eq!(seen, ["ya", "yc", "yd"]);
    }
    assert_eq!(get(&world.owner, &view, b"yb", 100, || 0).unwrap(), None);
    assert_eq!(get(&world.owner, &view, b"yb", 5, || 0).unwrap().unwrap(), "yb");
}

/// A million keys under one range tombstone cost a scan a seek per run, not a million steps.
#[test]
fn a_scan_seeks_past_what_a_newer_range_tombstone_hides() {
    let mut world = TableWorld::new(3, KeyOrder::Bytewise);
    let old: Vec<HistoryOp> =
        (0..20_000).map(|i| HistoryOp::new(1, Kind::Put, &format!("key{i:06}"), "old")).collect();
    let bottom: Vec<_> = old.chunks(5000).map(|part| world.table(part)).collect();
    let newer = [HistoryOp::new(5, Kind::RangeDelete, "key000010", "key019990")];
    let top = world.table(&newer);
    let view = world.view(&[], vec![(vec![], vec![top]), (bottom, vec![])]);
    for forward in [true, false] {
        let mut scan = world.scan(&view, 100, 0);
        let mut more = if forward { scan.seek_first() } else { scan.seek_last() }.unwrap();
        let mut count = 0;
        while more {
            count += 1;
            more = if forward { scan.next() } else { scan.prev() }.unwrap();
        }
        assert_eq!(count, 20);
        drop(scan);
        let skipped = world.owner.counters.snapshot().entries_skipped;
        assert!(skipped < 100, "{skipped} entries were stepped over");
    }
    let mut before = world.scan(&view, 4, 0);
    assert!(before.seek(b"key005000").unwrap() && before.key() == b"key005000");
}

/// Flips bits all over a table: a read gives the right answer or says
/// `Corruption` with file and offset, and a scan that failed stays failed.
#[test]
fn damage_is_reported_and_never_read_as_absence() {
    let mut world = TableWorld::new(11, KeyOrder::Bytewise);
    let history: Vec<HistoryOp> = (0..60)
        .map(|i| HistoryOp::new(i + 1, Kind::Put, &format!("key{i:03}"), "some value"))
        .collect();
    let table = world.table(&history);
    let (number, bytes) = (table.number, table.bytes);
    let path = Path::new("db").join(names::table(number));
    let view = world.view(&[], vec![(vec![], vec![]), (vec![table], vec![])]);
    let mut errors = 0;
    for offset in 0..bytes {
        world.handles.fs.flip(&path, offset, 0x10);
        let owner = world.with_cold_caches(1 << 20, 10);
        let cold = world.view_for(&owner, &view);
        for i in [0, 7, 30, 59] {
            let key = format!("key{i:03}");
            match get(&owner, &cold, key.as_bytes(), 1000, || 0) {
                Ok(value) => assert_eq!(value.unwrap(), "some value", "offset {offset}"),
                Err(error) => {
                    assert!(error.file().is_some_and(|file| file.contains(&names::table(number))));
                    errors += 1;
                }
            }
        }
        let keep = Still::new(&cold, 1000, 0);
        let scan = Scan::new(owner, Arc::clone(&cold), 1000, 0, everything());
        let mut cursor = Cursor::new(scan, keep);
        let mut count = 0;
        let mut more = cursor.seek_first();
        while let Ok(true) = more {
            count += 1;
            more = cursor.next();
        }
        match more {
            Ok(_) => assert_eq!(count, 60, "offset {offset}"),
            Err(_) => {
                assert!(!cursor.valid() && cursor.status().is_err());
                assert!(cursor.seek_first().is_err() && cursor.prev().is_err());
                world.handles.fs.flip(&path, offset, 0x10);
                cursor.refresh().unwrap();
                assert!(cursor.seek_last().unwrap() && cursor.key() == b"key059");
                world.handles.fs.flip(&path, offset, 0x10);
            }
        }
        world.handles.fs.flip(&path, offset, 0x10);
    }
    assert!(errors > 100);
}

/// An entry's expiry is the first one of its value's parts, whichever way it is met.
#[test]
fn the_expiry_of_an_entry_is_that_of_the_first_part_to_go() {
    let world = TableWorld::new(5, KeyOrder::Bytewise);
    let until = |seq, kind, key: &str, expiry_ms: u64| HistoryOp {
        value: [&expiry_ms.to_le_bytes()[..], b"v"].concat(),
        ..HistoryOp::new(seq, kind, key, "")
    };
    let ops = vec![
        HistoryOp::new(1, Kind::Put, "a never", "v"),
        until(2, Kind::PutExpiry, "b put", 700),
        until(3, Kind::PutExpiry, "c merged", 900),
        until(4, Kind::MergeExpiry, "c merged", 800),
        HistoryOp::new(5, Kind::Merge, "c merged", "w"),
        until(6, Kind::PutExpiry, "d replaced", 600),
        HistoryOp::new(7, Kind::Put, "d replaced", "v"),
        until(8, Kind::PutExpiry, "e base gone", 100),
        until(9, Kind::MergeExpiry, "e base gone", 650),
        until(10, Kind::PutExpiry, "f replaced", 600),
        until(11, Kind::PutExpiry, "f replaced", 950),
        until(12, Kind::PutExpiry, "g gone", 100),
    ];
    let expected = [
        ("a never", None),
        ("b put", Some(700)),
        ("c merged", Some(800)),
        ("d replaced", None),
        ("e base gone", Some(650)),
        ("f replaced", Some(950)),
    ];
    let view = world.view(&[ops], vec![(vec![], vec![])]);
    let keep = Still::new(&view, 1000, 500);
    let scan = Scan::new(Arc::clone(&world.owner), Arc::clone(&view), 1000, 500, everything());
    let mut cursor = Cursor::new(scan, keep);
    let mut met = |forward: bool| {
        let mut met = Vec::new();
        let mut more = if forward { cursor.seek_first() } else { cursor.seek_last() }.unwrap();
        while more {
            met.push((String::from_utf8(cursor.key().to_vec()).unwrap(), cursor.expiry_ms()));
            more = if forward { cursor.next() } else { cursor.prev() }.unwrap();
        }
        assert_eq!(cursor.expiry_ms(), None);
        met
    };
    let (forward, mut backward) = (met(true), met(false));
    backward.reverse();
    let forward: Vec<_> = forward.iter().map(|(key, ms)| (key.as_str(), *ms)).collect();
    assert_eq!(forward, expected);
    assert!(backward.iter().map(|(key, ms)| (key.as_str(), *ms)).eq(expected));
}

#[test]
fn operands_without_an_operator_or_that_do_not_fit_are_errors() {
    let world = TableWorld::new(1, KeyOrder::Bytewise);
    let ops =
        vec![HistoryOp::new(1, Kind::Merge, "a", "1"), HistoryOp::new(2, Kind::Put, "b", "2")];
    let view = world.view(&[ops], vec![(vec![], vec![])]);
    let mut owner = Arc::try_unwrap(world.with_cold_caches(0, 1)).ok().unwrap();
    owner.operator = None;
    let none = Arc::new(owner);
    let error = get(&none, &view, b"a", 10, || 0).unwrap_err();
    assert_eq!(error.kind(), windrow_base::ErrorKind::InvalidArgument);
    let mut owner = Arc::try_unwrap(world.with_cold_caches(0, 1)).ok().unwrap();
    owner.operator = crate::operators::built_in("add");
    let add = Arc::new(owner);
    let refused = get(&add, &view, b"a", 10, || 0).unwrap_err();
    assert_eq!(refused.kind(), windrow_base::ErrorKind::MergeRefused);
    let mut scan = Scan::new(Arc::clone(&none), Arc::clone(&view), 10, 0, everything());
    assert!(scan.seek_first().is_err() && scan.seek(b"b").is_err(), "errors are sticky");
    assert_eq!(get(&none, &view, b"b", 10, || 0).unwrap().unwrap(), "2");
}

/// The first blocks of all runs, and the blocks of many keys, are read together.
#[test]
fn a_cold_seek_and_a_cold_batch_take_one_submission_each() {
    let mut world = TableWorld::new(21, KeyOrder::Bytewise);
    world.block_bytes = 4096;
    let run_of = |world: &mut TableWorld, seq: u64| {
        let put =
            |i: u64| HistoryOp::new(seq, Kind::Put, &format!("key{:05}", i * 7 + seq), "value");
        let ops: Vec<HistoryOp> = (0..2000).map(put).collect();
        world.table(&ops)
    };
    let runs: Vec<_> = (1..6).map(|seq| run_of(&mut world, 6 - seq)).collect();
    let [a, b, c, d, e] = &runs[..] else { unreachable!() };
    let log = vec![a.clone(), b.clone(), c.clone()];
    let view =
        world.view(&[], vec![(vec![], log), (vec![d.clone()], vec![]), (vec![e.clone()], vec![])]);
    let counter = Arc::new(Submissions(Default::default()));
    let mut owner = Arc::try_unwrap(world.with_cold_caches(1 << 20, 10)).ok().unwrap();
    Arc::make_mut(&mut owner.env).fs = Arc::clone(&counter) as Arc<dyn FileSystem>;
    let owner = Arc::new(owner);
    let cold = world.view_for(&owner, &view);
    assert_eq!(cold.runs.len(), 5);
    for run in &cold.runs {
        run.files[0].open(&owner.tables).unwrap();
    }
    let count = || counter.0.swap(0, std::sync::atomic::Ordering::Relaxed);
    let reads_before = world.handles.fs.reads();

    let mut scan = Scan::new(Arc::clone(&owner), Arc::clone(&cold), 100, 0, everything());
    assert!(scan.seek(b"key07000").unwrap());
    for _ in 0..30 {
        assert!(scan.next().unwrap());
    }
    assert_eq!(count(), 1);
    assert_eq!(world.handles.fs.reads() - reads_before, 5, "a block and its neighbour per run");

    let keys: Vec<String> = (0..40).map(|i| format!("key{:05}", i * 7 * 25 + 1 + i % 5)).collect();
    let values = multi_get(&owner, &cold, &keys, 100, || 0);
    assert!(values.into_iter().all(|value| value.unwrap().unwrap() == "value"));
    let rounds = count();
    assert!(rounds <= 2, "{rounds} rounds: a false positive costs one more");
}

/// The blocks that look-ups hold while they wait for each other do not grow with the batch.
#[test]
fn a_large_batch_holds_the_blocks_of_a_part_of_its_keys() {
    let mut world = TableWorld::new(22, KeyOrder::Bytewise);
    world.block_bytes = 100;
    let keys: Vec<String> = (0..5000).map(|i| format!("key{i:05}")).collect();
    // Expired: the clock is asked while blocks are held, and no result keeps one.
    let value = [&1u64.to_le_bytes()[..], &[b'v'; 100]].concat();
    let put = |key: &String| {
        let value = value.clone();
        HistoryOp { key: key.clone().into(), seq: 1, kind: Kind::PutExpiry, value }
    };
    let file = world.table(&keys.iter().map(put).collect::<Vec<_>>());
    let view = world.view(&[], vec![(Vec::new(), vec![file])]);
    let most_held = |keys: &[String]| {
        let owner = world.with_cold_caches(0, 10);
        let cold = world.view_for(&owner, &view);
        let most = std::cell::Cell::new(0);
        let now_ms = || {
            most.set(most.get().max(owner.blocks.held_bytes()));
            1000
        };
        let values = multi_get(&owner, &cold, keys, 10, now_ms);
        assert!(values.len() == keys.len() && values.iter().all(|v| matches!(v, Ok(None))));
        most.get()
    };
    let few = most_held(&keys[..1024]);
    assert!(few > 1000 * 100, "one block for each key");
    assert_eq!(most_held(&keys), few);
}

/// A look-up that was put off for a block asks no filter twice.
#[test]
fn a_batch_counts_each_filter_once() {
    for partition_bytes in [100, 1 << 20] {
        let mut world = TableWorld::new(23, KeyOrder::Bytewise);
        world.partition_bytes = partition_bytes;
        let put = |i: u64| HistoryOp::new(1, Kind::Put, &format!("key{i:05}"), "value");
        let file = world.table(&(0..2000).step_by(2).map(put).collect::<Vec<_>>());
        let view = world.view(&[], vec![(Vec::new(), vec![file])]);
        let keys: Vec<String> = (0..2000).map(|i| format!("key{i:05}")).collect();
        let counted = |together: bool| {
            let owner = world.with_cold_caches(0, 10);
            let cold = world.view_for(&owner, &view);
            if together {
                multi_get(&owner, &cold, &keys, 10, || 0)
                    .into_iter()
                    .for_each(|v| drop(v.unwrap()));
            } else {
                keys.iter().for_each(|k| drop(get(&owner, &cold, k.as_ref(), 10, || 0).unwrap()));
            }
            let stats = owner.counters.snapshot();
            (stats.filter_checks, stats.filter_negatives, stats.filter_false_positives)
        };
        let alone = counted(false);
        assert!((1999..=2000).contains(&alone.0) && alone.1 > 900, "{alone:?}");
        assert_eq!(counted(true), alone, "partitions of {partition_bytes} bytes");
    }
}

/// However much a scan is asked to read ahead, it is counted while it is held,
/// and keeps to the part of the memory that is there for it.
#[test]
fn what_a_scan_is_asked_to_read_ahead_is_counted_and_bounded() {
    const ROOM: u64 = 256 << 10;
    const PART: u64 = ROOM / 4;
    let mut world = TableWorld::new(12, KeyOrder::Bytewise);
    world.block_bytes = 1000;
    let put = |run: u64, i: u64| {
        let key = format!("key{i:05}{run}");
        HistoryOp::new(run * 1000 + i + 1, Kind::Put, &key, &"v".repeat(300))
    };
    let runs = [0, 1, 2].map(|run| (0..900).map(|i| put(run, i)).collect::<Vec<HistoryOp>>());
    let files = runs.iter().rev().map(|ops| world.table(ops)).collect();
    let view = world.view(&[], vec![(Vec::new(), files)]);
    for (bytes, fill_cache) in [(u64::MAX, false), (20_000, false), (u64::MAX, true), (1, true)] {
        let owner = world.with_cold_caches(ROOM, 10);
        let readahead = Readahead::Sequential { bytes };
        let options = ScanOptions { fill_cache, readahead, ..everything() };
        let cold = world.view_for(&owner, &view);
        let mut scan = Scan::new(Arc::clone(&owner), cold, 10_000, 0, options);
        let held = || owner.blocks.held_bytes() - owner.blocks.bytes_used();
        let (mut most, mut count) = (0, 0);
        let mut valid = scan.seek_first().unwrap();
        while valid {
            count += 1;
            most = most.max(held());
            valid = scan.next().unwrap();
        }
        assert_eq!(count, 3 * 900);
        assert!(most > bytes.min(PART), "{bytes}: {most} bytes held, not all counted");
        assert!(most < PART + (40 << 10), "{bytes}: {most} bytes held");
        let cached = owner.blocks.bytes_used();
        assert_eq!(cached > ROOM / 2, fill_cache, "{cached} bytes cached");
        drop(scan);
        assert_eq!(held(), 0);
    }
}

/// Another read costs more than a few blocks, but none is read behind the last one that is missing.
#[test]
fn a_long_read_passes_over_cached_blocks_and_does_not_end_with_them() {
    let mut world = TableWorld::new(13, KeyOrder::Bytewise);
    world.block_bytes = 1000;
    let key = |i: u64| format!("key{i:05}");
    let put = |i: u64| HistoryOp::new(i + 1, Kind::Put, &key(i), &"v".repeat(300));
    let file = world.table(&(0..900).map(put).collect::<Vec<_>>());
    let view = world.view(&[], vec![(Vec::new(), vec![file])]);
    let reads_after = |cached: &mut dyn Iterator<Item = u64>| {
        let owner = world.with_cold_caches(4 << 20, 10);
        let cold = world.view_for(&owner, &view);
        let get = |i| get(&owner, &cold, key(i).as_bytes(), 10_000, || 0);
        cached.for_each(|i| assert!(get(i).unwrap().is_some()));
        let before = owner.counters.snapshot();
        let readahead = Readahead::Sequential { bytes: 100_000 };
        let options = ScanOptions { readahead, ..everything() };
        let mut scan = Scan::new(Arc::clone(&owner), Arc::clone(&cold), 10_000, 0, options);
        let mut valid = scan.seek_first().unwrap();
        let mut count = 0;
        while valid {
            assert_eq!(scan.key(), key(count).as_bytes());
            count += 1;
            valid = scan.next().unwrap();
        }
        assert_eq!(count, 900);
        let now = owner.counters.snapshot();
        let bytes = now.blocks_read_bytes - before.blocks_read_bytes;
        (now.blocks_read - before.blocks_read, bytes)
    };
    let (reads, bytes) = reads_after(&mut std::iter::empty());
    assert!(reads <= 4 && bytes > 270_000, "{reads} reads of {bytes} bytes");
    assert_eq!(reads_after(&mut [100, 200, 210, 400, 500].into_iter()), (reads, bytes));
    let (less_reads, less_bytes) = reads_after(&mut (450..890));
    assert!(less_reads <= reads && less_bytes < bytes * 11 / 20, "{less_reads}, {less_bytes}");
}

/// The merge gives every version of every key in order, and turns anywhere.
#[test]
fn a_merge_gives_every_version_both_ways() {
    for seed in 1000..1020 {
        let mut rng = Rng::new(seed);
        let mut world = TableWorld::new(seed, KeyOrder::Bytewise);
        let history = random_history(&mut rng, 150, KEYS);
        let view = world.grow(&mut rng, &history, KEYS);
        let mut expected: Vec<&HistoryOp> =
            history.iter().filter(|op| op.kind != Kind::RangeDelete).collect();
        expected.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
        for readahead in [Readahead::None, Readahead::Sequential { bytes: 700 }] {
            let bounds = Bounds::default();
            let is_accounted = matches!(readahead, Readahead::Sequential { .. });
            let options = TableIterOptions {
                fill_cache: false,
                readahead,
                bounds,
                is_accounted,
                notes_cached: false,
            };
            let mut merge = merge_of(&world.owner, &view, options);
            merge.seek_first().unwrap();
            let mut at = 0;
            for step in 0..2000 {
                // Mostly one way for a while, so that all of it is walked.
                let forward = rng.chance(if step / 200 % 2 == 0 { 0.9 } else { 0.1 });
                assert!(merge.valid());
                let op = expected[at];
                let internal = key::split(merge.key());
                assert_eq!(internal, (&op.key[..], key::trailer(op.seq, op.kind)), "seed {seed}");
                assert_eq!(merge.value(), op.value);
                match (forward, at) {
                    (true, _) if at + 1 < expected.len() => {
                        at += 1;
                        merge.next().unwrap();
                    }
                    (true, _) => {
                        merge.next().unwrap();
                        assert!(!merge.valid());
                        merge.seek_last().unwrap();
                    }
                    (false, 0) => {
                        merge.prev().unwrap();
                        assert!(!merge.valid());
                        merge.seek_first().unwrap();
                    }
                    (false, _) => {
                        at -= 1;
                        merge.prev().unwrap();
                    }
                }
            }
        }
    }
}

/// Fails every read in turn (P9): what is returned without an error is right,
/// an error is never an absence, and a scan that failed stays failed.
#[test]
fn a_failed_read_is_an_error_wherever_it_strikes() {
    let mut rng = Rng::new(77);
    let mut world = TableWorld::new(77, KeyOrder::Bytewise);
    let history = random_history(&mut rng, 120, KEYS);
    let mut view = world.grow(&mut rng, &history, KEYS);
    while view.runs.len() < 5 {
        view = world.grow(&mut rng, &history, KEYS);
    }
    let map = model(&history, 1000, 1000);
    let expected: Entries = map.clone().into_iter().collect();
    let keys: Vec<Vec<u8>> = (0..KEYS).map(number_key).collect();
    let mut failures = 0;
    for kind in [FaultKind::Io, FaultKind::FlipBit, FaultKind::TooManyFiles] {
        let on = if kind == FaultKind::TooManyFiles { Ops::OPEN } else { Ops::READ };
        for index in (0..200).step_by(3) {
            for part in 0..3 {
                let owner = world.with_cold_caches(if index % 2 == 0 { 0 } else { 1 << 20 }, 5);
                let cold = world.view_for(&owner, &view);
                let fault = world.handles.fs.inject(Fault::new(kind, on, When::Matching(index)));
                match part {
                    0 => {
                        for key in &keys {
                            match get(&owner, &cold, key, 1000, || 1000) {
                                Ok(value) => {
                                    assert_eq!(value.as_deref(), map.get(key).map(Vec::as_slice));
                                }
                                Err(_) => failures += 1,
                            }
                        }
                    }
                    1 => {
                        let values = multi_get(&owner, &cold, &keys, 1000, || 1000);
                        for (key, value) in keys.iter().zip(values) {
                            match value {
                                Ok(value) => {
                                    assert_eq!(value.as_deref(), map.get(key).map(Vec::as_slice));
                                }
                                Err(_) => failures += 1,
                            }
                        }
                    }
                    _ => failures += scan_until_failure(&owner, &cold, &expected),
                }
                world.handles.fs.remove_fault(fault);
            }
        }
    }
    assert!(failures > 100, "{failures}");
}

/// Walks there and back; returns how many walks failed, each after right entries only.
fn scan_until_failure(
    owner: &Arc<super::ReadOwner>,
    view: &Arc<ReadView>,
    expected: &Entries,
) -> u32 {
    let mut scan = Scan::new(Arc::clone(owner), Arc::clone(view), 1000, 1000, everything());
    for forward in [true, false] {
        let mut wanted = expected.iter();
        let mut more = if forward { scan.seek_first() } else { scan.seek_last() };
        loop {
            match more {
                Ok(true) => {
                    let want = if forward { wanted.next() } else { wanted.next_back() };
                    assert_eq!(
                        Some((scan.key(), scan.value())),
                        want.map(|(k, v)| (&k[..], &v[..]))
                    );
                }
                Ok(false) => {
                    assert_eq!(wanted.len(), 0);
                    break;
                }
                Err(_) => {
                    assert!(scan.next().is_err() && scan.seek_last().is_err() && !scan.valid());
                    return 1;
                }
            }
            more = if forward { scan.next() } else { scan.prev() };
        }
    }
    0
}
