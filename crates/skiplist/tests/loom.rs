//! Models of every interleaving of few threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p windrow-skiplist --release --test loom`.
//!
//! Under loom the list is three levels high, draws its window after the first
//! entry (so hints are in play), and marks the bytes of each node, so that
//! reading them without a happens-before edge from the insert fails.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use loom::thread;
use std::cmp::Ordering;
use windrow_skiplist::{Hint, KeyCompare, SkipList};

struct Bytewise;

impl KeyCompare for Bytewise {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn bytewise(&self) -> bool {
        true
    }
}

/// Keys raised by chance alone, to three levels and to two, under trailers 0 and 1
/// (a unit test of the crate holds them to that).
const TALL: [&[u8]; 2] = [b"tall-102", b"tall-12"];

fn keys(list: &SkipList<Bytewise>) -> Vec<(Vec<u8>, u64)> {
    let mut found = Vec::new();
    let mut next = list.seek(b"", u64::MAX);
    while let Some(entry) = next {
        assert_eq!(entry.value(), entry.key());
        found.push((entry.key().to_vec(), entry.trailer()));
        next = match entry.trailer() {
            0 => list.seek(&[entry.key(), &[0]].concat(), u64::MAX),
            trailer => list.seek(entry.key(), trailer - 1),
        };
    }
    found
}

/// Checks all interleavings with at most `preemptions` forced switches.
fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(body);
}

#[test]
fn two_inserts_of_neighbours() {
    model(3, || {
        let list = Arc::new(SkipList::new(Bytewise));
        list.insert(b"m", 0, b"m");
        let other = list.clone();
        let thread = thread::spawn(move || other.insert(TALL[0], 1, TALL[0]));
        list.insert(TALL[1], 1, TALL[1]);
        assert!(list.seek(TALL[1], 1).is_some_and(|entry| entry.key() == TALL[1]));
        thread.join().unwrap();
        assert_eq!(keys(&list), [(b"m".to_vec(), 0), (TALL[0].to_vec(), 1), (TALL[1].to_vec(), 1)]);
    });
}

#[test]
fn a_reader_sees_completed_inserts_and_whole_entries() {
    model(3, || {
        let list = Arc::new(SkipList::new(Bytewise));
        let done = Arc::new(AtomicBool::new(false));
        let (other, other_done) = (list.clone(), done.clone());
        let thread = thread::spawn(move || {
            other.insert(b"b", 1, b"b");
            other.insert(TALL[0], 1, TALL[0]);
            other_done.store(true, Release);
        });
        let was_done = done.load(Acquire);
        let found = list.seek(TALL[0], 1);
        assert!(found.is_some() || !was_done);
        if let Some(entry) = found {
            assert_eq!((entry.key(), entry.value()), (TALL[0], TALL[0]));
            assert!(list.seek(b"b", 1).is_some_and(|entry| entry.key() == b"b"));
        }
        thread.join().unwrap();
        assert_eq!(list.len(), 2);
    });
}

#[test]
fn two_inserts_and_a_reader() {
    model(2, || {
        let list = Arc::new(SkipList::new(Bytewise));
        list.insert(b"m", 0, b"m");
        let writers: Vec<_> = TALL
            .iter()
            .map(|&key| {
                let list = list.clone();
                thread::spawn(move || list.insert(key, 0, key))
            })
            .collect();
        let found = list.seek(b"n", 0);
        assert!(found.is_none_or(|entry| TALL.contains(&entry.key())));
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(keys(&list).len(), 3);
    });
}

#[test]
fn hints_of_two_threads() {
    model(2, || {
        let list = Arc::new(SkipList::new(Bytewise));
        let other = list.clone();
        let thread = thread::spawn(move || {
            let mut hint = Hint::new();
            other.insert_near(&mut hint, b"a", 0, b"a");
            other.insert_near(&mut hint, b"c", 0, b"c");
        });
        let mut hint = Hint::new();
        list.insert_near(&mut hint, b"b", 0, b"b");
        list.insert_near(&mut hint, TALL[0], 0, TALL[0]);
        thread.join().unwrap();
        let keys: Vec<_> = keys(&list).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [&b"a"[..], b"b", b"c", TALL[0]]);
    });
}
