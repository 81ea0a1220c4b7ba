//! The resident memory of a program that embeds the library: the engine asks nothing of the C
//! library's allocator, and the memory still stays within the budget and a seventh of it.
//!
//! A process of its own, since resident memory is counted by process. The soak is asked for by name
//! and takes ten minutes:
//!
//!     cargo test --release -p windrow --test resident -- --ignored --nocapture

#![allow(clippy::print_stdout, reason = "the soak tells its figures")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "plain threads and clocks")]
#![cfg(target_os = "linux")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use windrow::{Db, Options};

const MEMORY_BYTES: u64 = 64 << 20;
const VALUE_BYTES: usize = 16 << 10;
const ENTRIES: u64 = 10_800;
const GETS: u64 = 40_000;
const SOAK: Duration = Duration::from_secs(600);

/// Lets one test run at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The resident bytes of this process, as the system counts them: all, and those of no file.
fn resident_bytes() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    (bytes("VmRSS:"), bytes("RssAnon:"))
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Puts a value that no codec makes smaller.
fn put(db: &Db, number: u64, value_bytes: usize) {
    let mut state = number + 1;
    let words = (0..value_bytes.div_ceil(8)).flat_map(|_| next(&mut state).to_le_bytes());
    let value: Vec<u8> = words.take(value_bytes).collect();
    db.put(key(number), value).unwrap();
}

type Work<'a> = Box<dyn Fn() + Send + 'a>;

/// The most resident bytes while `works` run, each on a thread of its own.
fn most_resident(name: &str, db: &Db, works: Vec<Work<'_>>) -> u64 {
    let (mut most, mut anonymous, mut counted) = (0, 0, 0);
    std::thread::scope(|threads| {
        let threads: Vec<_> = works.into_iter().map(|work| threads.spawn(work)).collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
            let resident = resident_bytes();
            (most, anonymous) = (most.max(resident.0), anonymous.max(resident.1));
            counted = counted.max(db.stats().memory.used_bytes());
        }
    });
    let part = |bytes: u64| bytes as f64 / MEMORY_BYTES as f64;
    println!(
        "{name}: of the budget {:.3} resident at most, {:.3} of it in no file; {:.3} counted",
        part(most),
        part(anonymous),
        part(counted)
    );
    most
}

fn loaded(dir: &tempfile::TempDir) -> Db {
    let mut options = Options::default();
    options.settings.memory_bytes = MEMORY_BYTES;
    let db = Db::open_with(dir.path(), options).unwrap();
    let load: Work<'_> = Box::new(|| (0..ENTRIES).for_each(|number| put(&db, number, VALUE_BYTES)));
    most_resident("load", &db, vec![load]);
    db
}

fn check(most: u64) {
    let limit = MEMORY_BYTES / 100 * 115;
    assert!(most <= limit, "{most} bytes were resident, over {limit}");
}

/// Each reader fills blocks on a thread of its own. Others evict them.
#[test]
fn many_readers_stay_within_the_budget() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let db = loaded(&dir);
    for readers in [2, 8, 16] {
        let read = |seed: u64| -> Work<'_> {
            let db = &db;
            Box::new(move || {
                let mut state = seed + 1;
                for _ in 0..GETS / readers {
                    assert!(db.get(key(next(&mut state) % ENTRIES)).unwrap().is_some());
                }
            })
        };
        check(most_resident("read", &db, (0..readers).map(read).collect()));
    }
}

#[test]
#[ignore = "ten minutes"]
fn a_soak_stays_within_the_budget() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let db = loaded(&dir);
    let ends = &AtomicBool::new(false);
    let begin = Instant::now();
    let until_the_end = |seed: u64, step: fn(&Db, &mut u64)| -> Work<'_> {
        let db = &db;
        Box::new(move || {
            let mut state = seed + 1;
            while !ends.load(Ordering::Relaxed) {
                step(db, &mut state);
                ends.fetch_or(begin.elapsed() >= SOAK, Ordering::Relaxed);
            }
        })
    };
    let read = |seed| {
        until_the_end(seed, |db, state| {
            assert!(db.get(key(next(state) % ENTRIES)).unwrap().is_some());
        })
    };
    let write = until_the_end(100, |db, state| {
        let value_bytes = 1 + next(state) as usize % VALUE_BYTES;
        put(db, next(state) % ENTRIES, value_bytes);
    });
    let scan = until_the_end(200, |db, state| {
        let from = key(next(state));
        assert!(db.range(from..).take(100).all(|entry| entry.is_ok()));
    });
    check(most_resident("soak", &db, (0..8).map(read).chain([write, scan]).collect()));
}
