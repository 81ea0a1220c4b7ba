//! Measures inserts, seeks and scans against crossbeam-skiplist:
//! `cargo run --release -p windrow-skiplist --example compare [entries] [rounds]`.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use crossbeam_skiplist::SkipMap;
use std::cmp::{Ordering, Reverse};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use windrow_skiplist::{Hint, KeyCompare, ListCursor, SkipList};

struct Bytewise;

impl KeyCompare for Bytewise {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn bytewise(&self) -> bool {
        true
    }
}

type Key = [u8; 16];

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Keys of three shapes, all in random order.
fn keys(shape: &str, entries: u64) -> Vec<Key> {
    let random = (0..entries).map(|i| mix(i + 1));
    match shape {
        "binary" => random
            .map(|x| [x.to_be_bytes(), mix(x).to_be_bytes()].concat().try_into().unwrap())
            .collect(),
        "number" => random
            .map(|x| {
                [(x % (10 * entries)).to_be_bytes(), *b"00000000"].concat().try_into().unwrap()
            })
            .collect(),
        _ => random
            .map(|x| format!("{:016}", x % (10 * entries)).into_bytes().try_into().unwrap())
            .collect(),
    }
}

fn timed(name: &str, count: usize, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    println!("    {name:<28} {:7.3} us", start.elapsed().as_secs_f64() * 1e6 / count as f64);
}

fn ours(keys: &[Key], value: &[u8], threads: usize) {
    let n = keys.len();
    let list = Arc::new(SkipList::new(Bytewise));
    timed("insert", n, || {
        for (i, key) in keys.iter().enumerate() {
            list.insert(key, i as u64, value);
        }
    });
    println!("    bytes an entry {}", list.allocated_bytes() / n);
    let probe: Vec<usize> = (0..n).map(|i| (mix(i as u64 * 77 + 5) % n as u64) as usize).collect();
    timed("get", n, || {
        for &i in &probe {
            let entry = list.seek(&keys[i], u64::MAX).unwrap();
            assert_eq!(entry.key(), keys[i]);
            black_box(entry.value()[0]);
        }
    });
    timed("get, sixteen at once", n, || {
        for group in probe.chunks(16) {
            let some: Vec<&[u8]> = group.iter().map(|&i| &keys[i][..]).collect();
            list.seek_many(&some, u64::MAX, |place, entry| {
                let entry = entry.unwrap();
                assert_eq!(entry.key(), some[place]);
                black_box(entry.value()[0]);
            });
        }
    });
    let mut cursor = ListCursor::new(list.clone());
    timed("next (key and value)", n, || {
        let mut sum = 0;
        cursor.seek_first();
        while cursor.valid() {
            sum += cursor.key()[15] as u64 + cursor.value()[50] as u64;
            cursor.next();
        }
        black_box(sum);
    });
    timed("prev", n / 4, || {
        cursor.seek_last();
        for _ in 0..n / 4 {
            cursor.prev();
        }
    });
    let list = SkipList::new(Bytewise);
    timed(&format!("insert, {threads} threads"), n, || {
        std::thread::scope(|scope| {
            for part in 0..threads {
                let list = &list;
                scope.spawn(move || {
                    for (i, key) in keys.iter().enumerate().skip(part).step_by(threads) {
                        list.insert(key, i as u64, value);
                    }
                });
            }
        });
    });
    together("insert, sixteen at once", keys, value);
    ascending(keys, value);
}

/// Inserts sixteen entries at once.
fn together(name: &str, keys: &[Key], value: &[u8]) {
    let list = SkipList::new(Bytewise);
    timed(name, keys.len(), || {
        for (group, some) in keys.chunks(16).enumerate() {
            let mut entries = Vec::with_capacity(16);
            for (i, key) in some.iter().enumerate() {
                entries.push((&key[..], (group * 16 + i) as u64, value));
            }
            list.insert_many(&entries);
        }
    });
}

fn ascending(keys: &[Key], value: &[u8]) {
    let n = keys.len();
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    together("ascending, sixteen at once", &sorted, value);
    let list = SkipList::new(Bytewise);
    timed("insert ascending", n, || {
        for (i, key) in sorted.iter().enumerate() {
            list.insert(key, i as u64, value);
        }
    });
    let list = SkipList::new(Bytewise);
    let mut hint = Hint::new();
    timed("insert_near ascending", n, || {
        for (i, key) in sorted.iter().enumerate() {
            list.insert_near(&mut hint, key, i as u64, value);
        }
    });
    let list = SkipList::new(Bytewise);
    timed("insert_near random", n, || {
        for (i, key) in keys.iter().enumerate() {
            list.insert_near(&mut hint, key, i as u64, value);
        }
    });
}

fn theirs(keys: &[Key], value: &[u8]) {
    let n = keys.len();
    let map: SkipMap<(Vec<u8>, Reverse<u64>), Vec<u8>> = SkipMap::new();
    timed("insert", n, || {
        for (i, key) in keys.iter().enumerate() {
            map.insert((key.to_vec(), Reverse(i as u64)), value.to_vec());
        }
    });
    let probe: Vec<(usize, Vec<u8>)> = (0..n)
        .map(|i| (mix(i as u64 * 77 + 5) % n as u64) as usize)
        .map(|i| (i, keys[i].to_vec()))
        .collect();
    timed("get", n, || {
        for (_, key) in probe {
            let entry =
                map.lower_bound(std::ops::Bound::Included(&(key, Reverse(u64::MAX)))).unwrap();
            black_box(entry.value()[0]);
        }
    });
    timed("next (key and value)", n, || {
        let mut sum = 0;
        for entry in &map {
            sum += entry.key().0[15] as u64 + entry.value()[50] as u64;
        }
        black_box(sum);
    });
}

fn main() {
    let mut args = std::env::args().skip(1);
    let entries = args.next().map_or(500_000, |arg| arg.parse().unwrap());
    let rounds = args.next().map_or(1, |arg| arg.parse().unwrap());
    let value = [7; 100];
    for shape in ["binary", "number", "decimal"] {
        let keys = keys(shape, entries);
        for _ in 0..rounds {
            println!("{shape} keys, {entries} entries of 16 + 100 bytes");
            println!("  this crate");
            ours(&keys, &value, 2);
            println!("  crossbeam-skiplist");
            theirs(&keys, &value);
        }
    }
}
