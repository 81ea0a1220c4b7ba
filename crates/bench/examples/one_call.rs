//! A put, and a get from a table, that `cargo run -p windrow-xtask -- path` follows through the
//! engine: each in a function of its own, whose name a profiler finds.

use std::hint::black_box;
use windrow::Db;

#[inline(never)]
fn windrow_path_put(db: &Db) {
    db.put("key 500", "another value").expect("put");
}

#[inline(never)]
fn windrow_path_get(db: &Db) {
    assert!(db.get("older 501").expect("get").is_some());
}

fn main() {
    let directory = tempfile::tempdir().expect("make a directory");
    let db = Db::open(directory.path()).expect("open");
    for key in 0..1000 {
        db.put(format!("older {key}"), "a value").expect("put");
    }
    db.flush().expect("flush");
    // Work that each thread, or each keyspace, does only once is no part of the path.
    for key in 0..1000 {
        db.put(format!("key {key}"), "a value").expect("put");
        db.get(format!("older {key}")).expect("get");
    }
    windrow_path_put(black_box(&db));
    windrow_path_get(black_box(&db));
    db.close().expect("close");
}
