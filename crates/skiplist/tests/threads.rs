//! Many threads at once: an inserted entry is there, in order, for every thread that searches
//! afterwards.
#![cfg(not(loom))]

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::thread;
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

const WRITERS: u64 = if cfg!(miri) { 2 } else { 4 };
const PER_WRITER: u64 = if cfg!(miri) { 130 } else { 30_000 };

/// Scattered, so that writers meet; the writer and number can be read back.
fn key(writer: u64, number: u64, shape: u64) -> Vec<u8> {
    let place = match shape {
        0 => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
        1 => number,
        _ => u64::MAX - number,
    };
    [&b"k"[..], &place.to_be_bytes(), &writer.to_be_bytes(), &number.to_be_bytes()].concat()
}

fn check_entry(cursor: &ListCursor<Bytewise>, shape: u64) {
    let entry = cursor.key();
    let writer = u64::from_be_bytes(entry[9..17].try_into().unwrap());
    let number = u64::from_be_bytes(entry[17..25].try_into().unwrap());
    assert_eq!(entry, key(writer, number, shape));
    assert_eq!(cursor.trailer(), number);
    assert_eq!(cursor.value(), &entry.repeat(number as usize % 4)[..]);
}

/// One pass over the whole list, both ways by turns: strictly in order, every entry whole.
fn scan(cursor: &mut ListCursor<Bytewise>, shape: u64) -> u64 {
    let (mut count, mut last) = (0, Vec::new());
    cursor.seek_first();
    while cursor.valid() {
        assert!(last.as_slice() < cursor.key());
        check_entry(cursor, shape);
        last.clear();
        last.extend_from_slice(cursor.key());
        count += 1;
        cursor.next();
    }
    cursor.seek_last();
    for _ in 0..100 {
        if !cursor.valid() {
            break;
        }
        last.clear();
        last.extend_from_slice(cursor.key());
        check_entry(cursor, shape);
        cursor.prev();
        assert!(!cursor.valid() || cursor.key() < last.as_slice());
    }
    count
}

/// The way in which a thread inserts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    Near,
    Together,
}

/// Inserts the entries of a writer.
fn insert_all(list: &SkipList<Bytewise>, done: &AtomicU64, (writer, shape): (u64, u64), way: Way) {
    let (mut hint, mut number) = (Hint::new(), 0);
    while number < PER_WRITER {
        let count = if way == Way::Together { 1 + number % 20 } else { 1 };
        let numbers = number..(number + count).min(PER_WRITER);
        number = numbers.end;
        let new: Vec<_> = numbers
            .map(|number| {
                let key = key(writer, number, shape);
                let value = key.repeat(number as usize % 4);
                (key, number, value)
            })
            .collect();
        let new: Vec<(&[u8], u64, &[u8])> =
            new.iter().map(|(key, number, value)| (&key[..], *number, &value[..])).collect();
        match way {
            Way::Alone => list.insert(new[0].0, new[0].1, new[0].2),
            Way::Near => {
                list.insert_near(&mut hint, new[0].0, new[0].1, new[0].2);
            }
            Way::Together => list.insert_many(&new),
        }
        done.store(number, Release);
    }
}

fn run(shape: u64, way: Way) {
    let list = Arc::new(SkipList::new(Bytewise));
    let done: [AtomicU64; WRITERS as usize] = Default::default();
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (list, done) = (&list, &done);
                scope.spawn(move || {
                    insert_all(list, &done[writer as usize], (writer, shape), way);
                })
            })
            .collect();
        let (list, done, finished) = (&list, &done, &finished);
        scope.spawn(move || {
            let mut cursor = ListCursor::new(list.clone());
            while !finished.load(Acquire) {
                let before: u64 = done.iter().map(|count| count.load(Acquire)).sum();
                let seen = scan(&mut cursor, shape);
                assert!(before <= seen && seen <= WRITERS * PER_WRITER);
            }
        });
        scope.spawn(move || {
            let mut turn = 0u64;
            while !finished.load(Acquire) {
                turn += 1;
                let writer = turn % WRITERS;
                let count = done[writer as usize].load(Acquire);
                // The newest entry, and an old one.
                for number in [count.checked_sub(1), Some(turn * 77 % count.max(1))] {
                    let Some(number) = number.filter(|&number| number < count) else { continue };
                    let key = key(writer, number, shape);
                    let found = list.seek(&key, number).expect("a completed insert is visible");
                    assert_eq!((found.key(), found.trailer()), (&key[..], number));
                    list.seek_many(&[&key, b"", &key], number, |place, found| {
                        let found = found.expect("an entry at or after each");
                        assert!(found.key() == key || place == 1);
                    });
                    let mut cursor = ListCursor::new(list.clone());
                    cursor.seek(&key, u64::MAX);
                    assert_eq!(cursor.key(), key);
                    cursor.seek_before(&key, number);
                    assert!(!cursor.valid() || cursor.key() < &key[..]);
                }
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        finished.store(true, Release);
    });
    assert_eq!(list.len() as u64, WRITERS * PER_WRITER);
    assert_eq!(scan(&mut ListCursor::new(list.clone()), shape), WRITERS * PER_WRITER);
    for writer in 0..WRITERS {
        for number in 0..PER_WRITER {
            let key = key(writer, number, shape);
            assert_eq!(list.seek(&key, number).expect("inserted").key(), key);
        }
    }
}

#[test]
fn inserts_and_reads_at_once_scattered() {
    run(0, Way::Alone);
}

#[test]
fn inserts_and_reads_at_once_at_the_end() {
    run(1, Way::Alone);
}

#[test]
fn inserts_and_reads_at_once_at_the_start() {
    run(2, Way::Alone);
}

#[test]
fn inserts_near_hints_and_reads_at_once() {
    for shape in 0..3 {
        run(shape, Way::Near);
    }
}

#[test]
fn inserts_of_several_entries_and_reads_at_once() {
    for shape in 0..3 {
        run(shape, Way::Together);
    }
}
