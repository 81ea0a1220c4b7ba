//! Misuse, and operations that are repeated too often: the database stays in bounds, reports what
//! is wrong, and opens again.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use windrow::env::Env;
use windrow::{Batch, Comparator, Db, ErrorKind, KeyspaceOptions, Options, WriteSync};
use windrow_env::testing::Stepper;

/// Memtables of 256 KiB.
fn small() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 256 << 10;
    options
}

#[test]
fn a_refused_batch_stays_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let mut batch = Batch::new();
    batch.put(&db, "a", "1");
    batch.put(&db, vec![0; 1 << 16], "too long");
    for _ in 0..2 {
        let error = db.write(&mut batch, WriteSync::No).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(db.get("a").unwrap(), None, "written in part");
    }
    batch.clear();
    batch.put(&db, "a", "1");
    db.write(&mut batch, WriteSync::No).unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// A queue that is trimmed from its front, each time by a range from its very begin: the tombstones
/// are nested. With a cost by the square of their number they would take 40 GB.
#[test]
fn nested_range_deletes_stay_in_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let count = 100_000;
    let end = |i: u32| format!("q{i:08}");
    let check = |db: &Db, trimmed: u32| {
        assert_eq!(db.get(end(trimmed)).unwrap().as_deref(), Some(&b"x"[..]));
        assert_eq!(db.get(end(trimmed - 1)).unwrap(), None);
        let left: Vec<_> = db.iter().map(|item| item.unwrap().0).collect();
        assert_eq!(left, [end(trimmed).into_bytes()], "{trimmed}");
    };
    let db = Db::open(dir.path()).unwrap();
    let mut batch = Batch::new();
    for i in 0..=count {
        batch.put(&db, end(i), "x");
        batch.delete_range(&db, "q", end(i));
        if i % 50 == 0 {
            db.write(&mut batch, WriteSync::No).unwrap();
            batch.clear();
        }
        if i % 10_000 == 9_999 {
            db.write(&mut batch, WriteSync::No).unwrap();
            batch.clear();
            check(&db, i);
        }
    }
    check(&db, count);
    let old = db.snapshot();
    db.delete_range("q", "r").unwrap();
    // All at once, which no flush divides.
    for i in 0..50_000 {
        batch.delete_range(&db, "q", end(i));
    }
    batch.put(&db, end(count + 1), "x");
    db.write(&mut batch, WriteSync::No).unwrap();
    check(&db, count + 1);
    assert_eq!(old.get(end(count)).unwrap().as_deref(), Some(&b"x"[..]));
    drop((old, db));
    let db = Db::open(dir.path()).unwrap();
    check(&db, count + 1);
}

/// A database whose background work runs when it is stepped, in an order drawn from a seed.
fn stepped(dir: &Path) -> (Db, Arc<Stepper>) {
    let jobs = Arc::new(Stepper::new(1));
    let mut options = small();
    options.components.env = Some(Env { jobs: jobs.clone(), ..Env::os(1) });
    (Db::open_with(dir, options).unwrap(), jobs)
}

/// Checks the number of logs once background work has removed those that may go.
fn check_logs(db: &Db, jobs: &Stepper, dir: &Path, most: usize) {
    db.wait_idle().unwrap();
    jobs.run_until_idle();
    let names = Env::os(1).fs.list(dir).unwrap();
    let logs = names.iter().filter(|name| name.ends_with(".wal")).count();
    assert!(logs <= most, "{logs} logs, where {most} would do");
}

/// One entry of an idle keyspace keeps the log it is in; every flush of another keyspace must not
/// add a log of a memtable's size.
#[test]
fn an_idle_keyspace_does_not_pile_up_logs() {
    let dir = tempfile::tempdir().unwrap();
    let (db, jobs) = stepped(dir.path());
    let idle = db.keyspace("idle").unwrap();
    idle.put("a", "1").unwrap();
    for i in 0..100 {
        db.put(format!("{i}"), "1").unwrap();
        db.keyspace("default").unwrap().flush().unwrap();
    }
    check_logs(&db, &jobs, dir.path(), 3);
    // Where much is logged, the idle keyspace is flushed at last.
    for i in 0..100 {
        db.put(format!("{i}"), vec![0; 200_000]).unwrap();
        db.keyspace("default").unwrap().flush().unwrap();
    }
    check_logs(&db, &jobs, dir.path(), 7);
    assert_eq!(idle.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Many keyspaces with equal writes: each memtable that is switched is small.
#[test]
fn many_keyspaces_share_few_logs() {
    let dir = tempfile::tempdir().unwrap();
    let (db, jobs) = stepped(dir.path());
    let keyspaces: Vec<_> = (0..40).map(|i| db.keyspace(&format!("{i}")).unwrap()).collect();
    for i in 0..20_000 {
        keyspaces[i % 40].put(format!("{i}"), vec![0; 100]).unwrap();
        if i % 2_000 == 1_999 {
            check_logs(&db, &jobs, dir.path(), 7);
        }
    }
    for i in 0..20_000 {
        assert!(keyspaces[i % 40].get(format!("{i}")).unwrap().is_some(), "{i}");
    }
}

/// Orders by the first eight bytes, and forgets that a key may be shorter.
struct Careless;

impl Comparator for Careless {
    fn id(&self) -> &str {
        "careless"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a[..8].cmp(&b[..8]).then_with(|| a.cmp(b))
    }
}

#[test]
fn a_comparator_that_panics_in_a_write_hangs_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.components.comparators.push(Arc::new(Careless));
    let db = Db::open_with(dir.path(), options).unwrap();
    let careless =
        KeyspaceOptions { comparator: Some("careless".into()), ..KeyspaceOptions::default() };
    let keyspace = db.keyspace_with("careless", careless).unwrap();
    keyspace.put("long enough", "1").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| keyspace.put("short", "2")));
    assert!(panicked.is_err());
    assert_eq!(db.put("a", "1").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.sync().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(keyspace.get("long enough").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(db.close().is_err());
}
