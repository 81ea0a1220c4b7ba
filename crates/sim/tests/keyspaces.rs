//! Many keyspaces: the memory of an idle one, counted by the allocator. A binary of its own, since
//! the allocator counts for the whole process. `WINDROW_KEYSPACES` is their number (2,000); with
//! `--nocapture` it prints the time of each step, for `docs/reliability.md`.

use peak_alloc::PeakAlloc;
use std::path::Path;
use std::time::Instant;
use windrow::{Db, Options};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most bytes that an idle keyspace with a key may take.
const IDLE_BYTES_MAX: usize = 2 << 10;

fn open(dir: &Path) -> Db {
    let mut options = Options::default();
    options.settings.memory_bytes = 64 << 20;
    Db::open_with(dir, options).expect("it opens")
}

/// Runs one step; prints its time.
#[expect(clippy::disallowed_methods, reason = "what is printed is no verdict")]
fn step<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    println!("{what}: {:.2} s", begin.elapsed().as_secs_f64());
    done
}

#[test]
fn an_idle_keyspace_takes_at_most_two_kib() {
    let count = std::env::var("WINDROW_KEYSPACES").map_or(2000, |n| n.parse().expect("a number"));
    let dir = tempfile::tempdir().expect("a directory");
    let (one, many) = (dir.path().join("one"), dir.path().join("many"));
    let names: Vec<String> = (0..count).map(|n| format!("ks{n:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();

    let db = open(&many);
    let spaces = step("create", || db.create_keyspaces(&names)).expect("they are made");
    for space in &spaces {
        space.put("key", "value").expect("it is written");
    }
    drop(spaces);
    step("close, which writes a table each", || db.close()).expect("it closes");
    drop(db);

    let before = MEMORY.current_usage();
    let db = open(&one);
    db.wait_idle().expect("nothing is due");
    let alone = MEMORY.current_usage() - before;
    db.close().expect("it closes");
    drop(db);

    let before = MEMORY.current_usage();
    let db = step("open", || open(&many));
    db.wait_idle().expect("nothing is due");
    let idle = MEMORY.current_usage().saturating_sub(before + alone) / count;
    println!("{count} keyspaces: {idle} bytes each");
    assert!(idle <= IDLE_BYTES_MAX, "{idle} bytes for an idle keyspace with a key");
    // A flush of all is timed if a number is requested.
    let flushed = if std::env::var_os("WINDROW_KEYSPACES").is_some() { count } else { 200 };
    let spaces = Vec::from_iter(names[..flushed].iter().map(|name| {
        let space = db.open_keyspace(name).expect("open").expect("it is there");
        assert_eq!(space.get("key").expect("read").as_deref(), Some(&b"value"[..]));
        space.put("key", "again").expect("it is written");
        space
    }));
    step("flush", || db.flush()).expect("it flushes");
    for space in &spaces {
        assert_eq!(space.get("key").expect("read").as_deref(), Some(&b"again"[..]));
    }
    drop(spaces);
    db.close().expect("it closes");
}
