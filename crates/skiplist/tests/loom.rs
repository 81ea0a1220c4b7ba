//! Models of every interleaving of a few threads: `RUSTFLAGS="--cfg loom" cargo test -p
//! windrow-skiplist --test loom --target-dir target/loom`. `LOOM_MAX_PREEMPTIONS=3` tries more of
//! them, in minutes.
//!
//! Under loom the list is three levels high, draws its window after the first
//! entry (so hints are in play), and marks the bytes of each node, so that
//! reading them without a happens-before edge from the insert fails.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use loom::thread;
use std::cmp::Ordering;
use windrow_skiplist::{ChunkPool, Hint, KeyCompare, SkipList};

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

/// Checks all interleavings with at most `preemptions` forced switches, unless
/// `LOOM_MAX_PREEMPTIONS` says another number.
fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 100_000;
    builder.check(body);
}

#[test]
fn two_inserts_of_neighbours() {
    model(2, || {
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
    model(2, || {
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

/// One thread searches for both its entries before it inserts the first.
#[test]
fn two_inserts_at_once_and_another() {
    model(1, || {
        let list = Arc::new(SkipList::new(Bytewise));
        list.insert(b"m", 0, b"m");
        let other = list.clone();
        let thread = thread::spawn(move || {
            other.insert_many(&[(TALL[0], 1, TALL[0]), (b"a", 1, b"a")]);
        });
        list.insert(TALL[1], 1, TALL[1]);
        list.seek_many(&[TALL[1], b"m"], 1, |place, found| {
            assert!(found.is_some_and(|entry| entry.key() == [TALL[1], b"m"][place]));
        });
        thread.join().unwrap();
        let short = [(b"a".to_vec(), 1), (b"m".to_vec(), 0)];
        let tall = TALL.map(|key| (key.to_vec(), 1));
        assert_eq!(keys(&list), [&short[..], &tall].concat());
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

/// A reader that sees the hint of a new node and the link to the old one would skip the old one.
#[test]
fn a_hint_is_never_newer_than_its_link() {
    model(2, || {
        let list = Arc::new(SkipList::new(Bytewise));
        list.insert(TALL[1], 0, TALL[1]);
        let other = list.clone();
        let thread = thread::spawn(move || other.insert(TALL[0], 0, TALL[0]));
        // An operation at which loom may switch before the search begins.
        assert!(list.len() <= 2);
        let found = list.seek(b"tall-11", 0);
        assert!(found.is_some_and(|entry| entry.key() == TALL[1]));
        thread.join().unwrap();
    });
}

/// A hint made under half a window would mislead searches for ever.
#[test]
fn a_window_is_seen_whole() {
    model(2, || {
        let list = Arc::new(SkipList::new(Bytewise));
        let other = list.clone();
        let thread = thread::spawn(move || other.insert(b"a-long-prefix-1", 0, b""));
        assert!(list.len() <= 1);
        list.insert(TALL[0], 0, TALL[0]);
        thread.join().unwrap();
        let found = list.seek(b"tall-101", 0);
        assert!(found.is_some_and(|entry| entry.key() == TALL[0]));
    });
}

/// Under loom the first chunk has room for two short nodes.
#[test]
fn two_threads_at_the_end_of_a_chunk() {
    model(2, || {
        let list = Arc::new(SkipList::new(Bytewise));
        let before = list.allocated_bytes();
        list.insert(b"a", 0, b"a");
        let other = list.clone();
        let thread = thread::spawn(move || {
            other.insert(b"b", 0, b"b");
            other.insert(b"d", 0, b"d");
        });
        list.insert(b"c", 0, b"c");
        thread.join().unwrap();
        assert!(before < list.allocated_bytes(), "no chunk was added");
        let keys: Vec<_> = keys(&list).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"a", b"b", b"c", b"d"]);
    });
}

#[test]
fn hints_of_two_threads() {
    model(1, || {
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

/// Under loom the first chunk of tall nodes is of full size, so that a list is made from the pool.
#[test]
fn lists_pass_chunks_on() {
    fn use_a_list(pool: &std::sync::Arc<ChunkPool>, trailer: u64) {
        let list = SkipList::with_pool(Bytewise, pool.clone());
        list.insert(TALL[0], trailer, TALL[0]);
        assert_eq!(keys(&list), [(TALL[0].to_vec(), trailer)]);
    }
    model(2, || {
        let pool = std::sync::Arc::new(ChunkPool::new(4 << 10));
        use_a_list(&pool, 0);
        assert_eq!((pool.held_bytes(), pool.taken()), (4 << 10, 1));
        let other = pool.clone();
        let thread = thread::spawn(move || use_a_list(&other, 1));
        use_a_list(&pool, 0);
        pool.keep_within(0);
        thread.join().unwrap();
        pool.keep_within(0);
        assert_eq!((pool.held_bytes(), pool.taken()), (0, 3));
    });
}
