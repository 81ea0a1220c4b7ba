//! The list against `BTreeMap`: the same entries give the same answers, for keys of every shape, in
//! any order of insertion. Under Miri, which checks every access, with fewer entries, and without
//! the tests of cost.
#![cfg(not(loom))]

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_skiplist::{Hint, KeyCompare, ListCursor, SkipList};

/// Bytewise order.
struct Bytewise;

impl KeyCompare for Bytewise {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn bytewise(&self) -> bool {
        true
    }
}

/// Bytewise order that does not declare itself: no prefixes, no hints.
struct Opaque;

impl KeyCompare for Opaque {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn bytewise(&self) -> bool {
        false
    }
}

/// Shorter keys first, then bytes from the back.
struct Odd;

fn odd_key(key: &[u8]) -> (usize, Vec<u8>) {
    (key.len(), key.iter().rev().copied().collect())
}

impl KeyCompare for Odd {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        odd_key(a).cmp(&odd_key(b))
    }

    fn bytewise(&self) -> bool {
        false
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }
}

/// `n`, or under Miri a number that it can handle.
const fn scaled(n: usize, miri: usize) -> usize {
    if cfg!(miri) { miri } else { n }
}

type Model<K> = BTreeMap<(K, Reverse<u64>), Vec<u8>>;

/// Shapes of keys: the first bytes differ, only later ones do, zeros and 0xff sit at the edges of a
/// word, or lengths alone differ.
fn key(look: &str, random: &mut Random) -> Vec<u8> {
    match look {
        "binary" => random.below(u64::MAX).to_be_bytes().repeat(2),
        "decimal" => format!("{:016}", random.below(100_000)).into_bytes(),
        "long prefix" => format!("a/prefix/of/some/length/{}", random.below(50_000)).into_bytes(),
        "edges" => {
            let len = random.below(20) as usize;
            (0..len).map(|_| [0, 1, 0xfe, 0xff][random.below(4) as usize]).collect()
        }
        "zeros" => vec![0; random.below(300) as usize],
        "tables" => {
            let table = [&b"aa"[..], b"ab", b"b", b"zzzzzzzzzzzzzzzz"][random.below(4) as usize];
            [table, &random.below(9_000).to_be_bytes()].concat()
        }
        _ => unreachable!("no look {look}"),
    }
}

const LOOKS: [&str; 6] = ["binary", "decimal", "long prefix", "edges", "zeros", "tables"];

/// Inserts `count` entries into both, plainly or near a hint, and compares
/// every way of reading. `model_key` maps keys to the order of the comparator.
fn check<C: KeyCompare, K: Ord + Clone>(
    compare: C,
    look: &str,
    order: &str,
    count: usize,
    model_key: impl Fn(&[u8]) -> K,
) {
    let mut random = Random(count as u64 * 31 + look.len() as u64);
    let mut entries: Vec<(Vec<u8>, u64)> =
        (0..count).map(|i| (key(look, &mut random), (i as u64) << 8 | random.below(4))).collect();
    match order {
        "random" => {}
        "ascending" => entries.sort_by_key(|(key, trailer)| (model_key(key), Reverse(*trailer))),
        "descending" => entries.sort_by_key(|(key, trailer)| (Reverse(model_key(key)), *trailer)),
        _ => unreachable!("no order {order}"),
    }
    let list = Arc::new(SkipList::new(compare));
    let mut model = Model::new();
    let mut hints = [Hint::new(), Hint::default()];
    assert!(list.is_empty());
    let mut rest = &entries[..];
    while !rest.is_empty() {
        let way = random.below(4);
        let together = if way == 3 { random.below(40) as usize + 1 } else { 1 };
        let (some, others) = rest.split_at(together.min(rest.len()));
        rest = others;
        let value =
            |key: &[u8], trailer: u64| [&trailer.to_le_bytes()[..], &key[key.len() / 2..]].concat();
        let values: Vec<_> = some.iter().map(|(key, trailer)| value(key, *trailer)).collect();
        let new: Vec<(&[u8], u64, &[u8])> = some
            .iter()
            .zip(&values)
            .map(|((key, trailer), value)| (&key[..], *trailer, &value[..]))
            .collect();
        match way {
            3 => list.insert_many(&new),
            2 => list.insert(new[0].0, new[0].1, new[0].2),
            hint => {
                let hint = &mut hints[hint as usize];
                list.insert_near(hint, new[0].0, new[0].1, new[0].2);
            }
        }
        for (key, trailer, value) in new {
            model.insert((model_key(key), Reverse(trailer)), value.to_vec());
            let found = list.seek(key, trailer).expect("just inserted");
            assert_eq!((found.key(), found.trailer()), (key, trailer));
        }
        assert_eq!(list.len(), count - rest.len());
    }
    check_seeks_together(&list, &entries, || key(look, &mut random));
    check_walks(&list, &model, &model_key);
    for i in 0..scaled(2_000, 20) {
        let (probe, trailer) = match i % 2 {
            0 => entries[random.below(count as u64) as usize].clone(),
            _ => (key(look, &mut random), 0),
        };
        let trailer = [trailer, trailer + 1, trailer.saturating_sub(1), 0, u64::MAX]
            [random.below(5) as usize];
        check_probe(&list, &model, &model_key, &probe, trailer);
    }
}

/// Seeks many keys at once, those of entries and others, and compares with seeks one by one.
fn check_seeks_together<C: KeyCompare>(
    list: &SkipList<C>,
    entries: &[(Vec<u8>, u64)],
    mut other: impl FnMut() -> Vec<u8>,
) {
    for (count, trailer) in [(1, 0), (16, u64::MAX), (17, 7 << 8), (50, 3)] {
        let probes: Vec<Vec<u8>> =
            entries.iter().rev().map(|(key, _)| key.clone()).take(count / 2).collect();
        let probes: Vec<Vec<u8>> =
            probes.into_iter().chain((count / 2..count).map(|_| other())).collect();
        let keys: Vec<&[u8]> = probes.iter().map(Vec::as_slice).collect();
        let mut answers = vec![None; keys.len()];
        list.seek_many(&keys, trailer, |place, entry| {
            let was = answers[place].replace(entry.map(|entry| (entry.key(), entry.trailer())));
            assert!(was.is_none(), "an answer for each key");
        });
        for (key, answer) in keys.iter().zip(answers) {
            let alone = list.seek(key, trailer).map(|entry| (entry.key(), entry.trailer()));
            assert_eq!(answer, Some(alone));
        }
    }
}

fn check_walks<C: KeyCompare, K: Ord>(
    list: &Arc<SkipList<C>>,
    model: &Model<K>,
    model_key: impl Fn(&[u8]) -> K,
) {
    let mut cursor = ListCursor::new(list.clone());
    assert!(!cursor.valid());
    cursor.seek_first();
    for ((key, trailer), value) in model {
        assert!(model_key(cursor.key()) == *key);
        assert_eq!((cursor.trailer(), cursor.value()), (trailer.0, &value[..]));
        cursor.next();
    }
    assert!(!cursor.valid());
    cursor.seek_last();
    for ((key, trailer), value) in model.iter().rev() {
        assert!(model_key(cursor.key()) == *key);
        assert_eq!((cursor.trailer(), cursor.value()), (trailer.0, &value[..]));
        cursor.prev();
    }
    assert!(!cursor.valid());
}

fn check_probe<C: KeyCompare, K: Ord + Clone>(
    list: &Arc<SkipList<C>>,
    model: &Model<K>,
    model_key: impl Fn(&[u8]) -> K,
    probe: &[u8],
    trailer: u64,
) {
    let place = (model_key(probe), Reverse(trailer));
    let after = model.range(place.clone()..).next();
    let before = model.range(..place).next_back();
    let found = list.seek(probe, trailer);
    assert_eq!(found.map(|entry| entry.value()), after.map(|(_, value)| &value[..]));
    let mut cursor = ListCursor::new(list.clone());
    cursor.seek(probe, trailer);
    assert_eq!(cursor.valid().then(|| cursor.value()), after.map(|(_, value)| &value[..]));
    if cursor.valid() {
        cursor.prev();
        assert_eq!(cursor.valid().then(|| cursor.value()), before.map(|(_, value)| &value[..]));
    }
    cursor.seek_before(probe, trailer);
    assert_eq!(cursor.valid().then(|| cursor.value()), before.map(|(_, value)| &value[..]));
    if cursor.valid() {
        cursor.next();
        assert_eq!(cursor.valid().then(|| cursor.value()), after.map(|(_, value)| &value[..]));
    }
}

/// Around the number of entries at which the window is chosen, and beyond.
const COUNTS: &[usize] = if cfg!(miri) { &[1, 270] } else { &[1, 100, 255, 256, 257, 6_000] };

#[test]
fn agrees_with_a_btree_map_under_the_bytewise_order() {
    for look in LOOKS {
        for order in ["random", "ascending", "descending"] {
            for &count in COUNTS {
                check(Bytewise, look, order, count, |key| key.to_vec());
            }
        }
    }
}

#[test]
fn agrees_with_a_btree_map_under_other_orders() {
    for look in LOOKS {
        for order in ["random", "ascending", "descending"] {
            check(Opaque, look, order, scaled(3_000, 50), |key| key.to_vec());
            check(Odd, look, order, scaled(3_000, 50), odd_key);
        }
    }
}

/// The first entries fix the window of the hints; later keys may lie before, after or within the
/// prefix that they share.
#[test]
fn keys_outside_the_window_are_found() {
    let list = Arc::new(SkipList::new(Bytewise));
    let mut model = Model::new();
    let mut random = Random(9);
    for i in 0..scaled(8_000, 350) as u64 {
        let key = match i {
            0..300 => format!("user/0000/{i:04}").into_bytes(),
            _ => key(LOOKS[random.below(6) as usize], &mut random),
        };
        list.insert(&key, i, &i.to_le_bytes());
        model.insert((key, Reverse(i)), i.to_le_bytes().to_vec());
    }
    check_walks(&list, &model, |key| key.to_vec());
    for (key, trailer) in model.keys() {
        check_probe(&list, &model, |key| key.to_vec(), key, trailer.0);
    }
}

#[test]
fn an_empty_list_has_nothing_anywhere() {
    let list = Arc::new(SkipList::new(Bytewise));
    assert_eq!((list.len(), list.allocated_bytes()), (0, 1 << 10));
    assert!(list.is_empty() && list.seek(b"", u64::MAX).is_none());
    let mut cursor = ListCursor::new(list);
    for position in [
        ListCursor::seek_first,
        ListCursor::seek_last,
        |cursor: &mut ListCursor<Bytewise>| cursor.seek(b"a", 0),
        |cursor: &mut ListCursor<Bytewise>| cursor.seek_before(b"a", 0),
    ] {
        position(&mut cursor);
        assert!(!cursor.valid());
    }
}

#[test]
fn large_values_get_memory_of_their_own() {
    let list = SkipList::new(Bytewise);
    let value = |i: usize| vec![i as u8; i * 70_001 % 5_000_000];
    let mut sum = 0;
    let count = scaled(60, 8);
    for i in 0..count {
        list.insert(format!("{i:03}").as_bytes(), 0, &value(i));
        sum += value(i).len();
        list.insert(format!("{i:03}").as_bytes(), 1, b"small");
    }
    for i in 0..count {
        let entry = list.seek(format!("{i:03}").as_bytes(), 0).unwrap();
        assert!(entry.trailer() == 0 && entry.value() == value(i));
    }
    assert!(sum < list.allocated_bytes() && list.allocated_bytes() < sum + (4 << 20));
}

#[test]
#[cfg_attr(miri, ignore = "a test of cost, of many entries")]
fn small_entries_cost_little_more_than_their_bytes() {
    let list = SkipList::new(Bytewise);
    let mut random = Random(5);
    for i in 0..200_000 {
        list.insert(&key("binary", &mut random), i, &[1; 100]);
    }
    let overhead_bytes = list.allocated_bytes() / 200_000 - (16 + 8 + 100);
    assert!(overhead_bytes < 50, "{overhead_bytes} bytes an entry");
}

/// A hint is of one list at a time, also when that list is gone.
#[test]
fn a_hint_survives_its_list() {
    let mut hint = Hint::new();
    for round in 0..scaled(50, 3) as u64 {
        let list = SkipList::new(Bytewise);
        for i in 0..100u64 {
            list.insert_near(&mut hint, &(i * 7 % 100).to_be_bytes(), round, b"");
        }
        assert_eq!(list.len(), 100);
        let mut next = list.seek(b"", u64::MAX);
        for i in 0..100u64 {
            assert_eq!(next.expect("an entry").key(), i.to_be_bytes());
            next = list.seek(&(i + 1).to_be_bytes(), u64::MAX);
        }
    }
}

/// Levels keep searches short in any order of insertion: compares grow with the logarithm of the
/// length.
#[test]
#[cfg_attr(miri, ignore = "a test of cost, of many entries")]
fn searches_compare_few_keys() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    struct Counting(Arc<AtomicUsize>);
    impl KeyCompare for Counting {
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            self.0.fetch_add(1, Relaxed);
            a.cmp(b)
        }
        fn bytewise(&self) -> bool {
            false
        }
    }
    let n = 100_000u32;
    for (order, key_of, compares_max) in [
        ("random", (|i| i.wrapping_mul(2_654_435_761)) as fn(u32) -> u32, 40),
        ("ascending", |i| i, 40),
        ("descending", |i| u32::MAX - i, 60),
    ] {
        let compares = Arc::new(AtomicUsize::new(0));
        let list = SkipList::new(Counting(compares.clone()));
        for i in 0..n {
            list.insert(&key_of(i).to_be_bytes(), 0, b"");
        }
        compares.store(0, Relaxed);
        for i in (0..n).step_by(10) {
            list.seek(&key_of(i).to_be_bytes(), 0).unwrap();
        }
        let mean = compares.load(Relaxed) / (n as usize / 10);
        assert!(mean < compares_max, "{order}: {mean} compares a seek");
        compares.store(0, Relaxed);
        let list = SkipList::new(Counting(compares.clone()));
        let mut hint = Hint::new();
        for i in 0..n {
            list.insert_near(&mut hint, &i.to_be_bytes(), 0, b"");
        }
        let mean = compares.load(Relaxed) / n as usize;
        assert!(mean <= 4, "{mean} compares an insert near the last");
    }
}

#[test]
fn types_cross_threads() {
    fn send_sync<T: Send + Sync + 'static>() {}
    send_sync::<SkipList<Bytewise>>();
    send_sync::<ListCursor<Bytewise>>();
    send_sync::<Hint>();
    fn send_sync_entry<T: Send + Sync>() {}
    send_sync_entry::<windrow_skiplist::Entry<'_>>();
}
