//! Limits (P15): one below, at, and one above each. A refusal comes before
//! anything is written: the file system has seen no operation, and the contents
//! are unchanged.

use std::time::Duration;
use windrow::settings::{SettingRange, Settings};
use windrow::{Batch, Db, Error, ErrorKind, KeyspaceOptions, Options, WriteSync};
use windrow_base::Result;
use windrow_base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use windrow_env::testing::CrashFs;
use windrow_testkit::variant::{Ground, SMALL_MEMORY_BYTES, VARIANTS};
use windrow_testkit::world::World;

/// Longest name of a keyspace, as documented.
const NAME_BYTES_MAX: usize = 255;

/// Largest batch of the database under test: a quarter of its memory.
const BATCH_BYTES_MAX: usize = SMALL_MEMORY_BYTES as usize / 4;

struct Bench {
    db: Db,
    fs: CrashFs,
}

impl Bench {
    fn new() -> Bench {
        let world = World::new(Ground::Simulated, 1);
        let db = Db::open_with(world.dir(), options(&world)).expect("open");
        db.put("before", "1").expect("put");
        let fs = world.handles().expect("a simulated world").fs.clone();
        Bench { db, fs }
    }

    /// Runs an operation that may break a limit. If refused, it has touched no
    /// file and left no trace, and the database still works.
    fn check<T>(&self, what: &str, allowed: bool, run: impl FnOnce(&Db) -> Result<T>) {
        let before = self.fs.operations();
        let result = run(&self.db).map(drop);
        let operations = self.fs.operations() - before;
        match (allowed, result) {
            (true, Ok(())) => assert!(operations > 0, "{what}: nothing was written"),
            (true, Err(error)) => panic!("{what}: {error}"),
            (false, Ok(())) => panic!("{what}: taken, though over the limit"),
            (false, Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
                assert_eq!(operations, 0, "{what}: refused after something was written");
                assert!(self.db.write_error().is_none(), "{what}: writes are off");
                assert_eq!(self.db.get("before").expect("get").as_deref(), Some(&b"1"[..]));
            }
        }
    }
}

fn options(world: &World) -> Options {
    let mut options = VARIANTS[0].options().expect("options");
    options.components.env = Some(world.env());
    options.default_keyspace.merge_operator = Some("append".to_owned());
    options
}

/// Returns the sizes one below, at and above a limit, and whether each is
/// allowed.
fn around(limit: usize) -> [(usize, bool); 3] {
    [(limit - 1, true), (limit, true), (limit + 1, false)]
}

#[test]
fn keys_in_every_kind_of_write() {
    for (bytes, allowed) in around(KEY_BYTES_MAX) {
        let bench = Bench::new();
        let key = &vec![b'k'; bytes];
        let ttl = Duration::from_secs(1);
        bench.check("put", allowed, |db| db.put(key, "1"));
        bench.check("put_with", allowed, |db| db.put_with(key, "1", WriteSync::Yes));
        bench.check("put_with_ttl", allowed, |db| db.put_with_ttl(key, "1", ttl));
        bench.check("delete", allowed, |db| db.delete(key));
        bench.check("single_delete", allowed, |db| db.single_delete(key));
        bench.check("merge", allowed, |db| db.merge(key, "1"));
        bench.check("delete_range from", allowed, |db| db.delete_range(key, "l"));
        bench.check("delete_range to", allowed, |db| db.delete_range("j", key));
        bench.check("in a batch that else is good", allowed, |db| {
            let mut batch = Batch::new();
            batch.put(db, "good", "1");
            batch.put(db, key, "1");
            batch.put(db, "good too", "1");
            db.write(batch, WriteSync::No)
        });
        let good = bench.db.get("good").expect("get").is_some();
        assert_eq!(good, allowed, "a refused batch is refused whole");
        // Reads of a key that no write could have made find nothing.
        assert!(bench.db.get(vec![b'q'; bytes]).expect("get").is_none());
    }
}

/// A batch of exactly the limit, made of one value or of many.
#[test]
fn bytes_of_a_batch() {
    for (bytes, allowed) in around(BATCH_BYTES_MAX) {
        let bench = Bench::new();
        bench.check("one value", allowed, |db| db.write(batch_of(db, bytes, 1), WriteSync::No));
        bench
            .check("many values", allowed, |db| db.write(batch_of(db, bytes, 100), WriteSync::Yes));
        bench.check("reused", allowed, |db| db.write(&mut batch_of(db, bytes, 3), WriteSync::No));
    }
}

/// Returns `count` puts that take `bytes` in the log.
fn batch_of(db: &Db, bytes: usize, count: usize) -> Batch {
    let mut batch = Batch::new();
    let value = vec![b'v'; bytes / count / 2];
    for i in 1..count {
        batch.put(db, format!("{i:04}"), &value);
    }
    // The last put's overhead, measured by a trial. The length varint of the
    // trial is as long as that of the real value.
    let mut tried = batch.clone();
    let left = bytes - batch.byte_len();
    tried.put(db, "last", vec![b'v'; left - 100]);
    let besides = tried.byte_len() - batch.byte_len() - (left - 100);
    batch.put(db, "last", vec![b'v'; left - besides]);
    assert_eq!(batch.byte_len(), bytes);
    batch
}

/// A value's own limit is above the limit of a batch here. Both refuse, and the
/// value's limit does so before a byte of it is copied.
#[test]
fn bytes_of_a_value() {
    let bench = Bench::new();
    let value = vec![0; VALUE_BYTES_MAX + 1];
    let message = |error: &Error| error.message().to_owned();
    bench.check("a value over its limit", false, |db| {
        db.put("k", &value).inspect_err(|e| assert!(message(e).contains("a value of"), "{e}"))
    });
    let mut batch = Batch::new();
    batch.put(&bench.db, "k", &value);
    batch.merge(&bench.db, "k", &value);
    assert_eq!(batch.len(), 0, "what is over a limit is not copied");
    bench.check("in a batch", false, |db| db.write(batch, WriteSync::No));
}

#[test]
fn names_of_keyspaces() {
    for (bytes, allowed) in around(NAME_BYTES_MAX) {
        let bench = Bench::new();
        let name = "n".repeat(bytes);
        bench.check("a long name", allowed, |db| db.keyspace(&name));
        assert_eq!(bench.db.keyspaces().contains(&name), allowed);
        // Bytes count, not characters.
        let wide = "é".repeat(bytes / 2) + &"n".repeat(bytes % 2);
        bench.check("a name of wide characters", allowed, |db| db.keyspace(&wide));
    }
    let bench = Bench::new();
    bench.check("an empty name", false, |db| db.keyspace(""));
    bench.check("a name of one byte", true, |db| db.keyspace("n"));
    bench.check("a control character", false, |db| db.keyspace("a\nb"));
}

#[test]
fn what_is_not_there_is_refused_before_anything_is_written() {
    let bench = Bench::new();
    let with = |operator: Option<&str>, comparator: Option<&str>| KeyspaceOptions {
        merge_operator: operator.map(str::to_owned),
        comparator: comparator.map(str::to_owned),
        ..KeyspaceOptions::default()
    };
    bench.check("operator", false, |db| db.keyspace_with("a", with(Some("nobody's"), None)));
    bench.check("comparator", false, |db| db.keyspace_with("a", with(None, Some("nobody's"))));
    bench.check("default dropped", false, |db| db.drop_keyspace("default"));
    bench.check("missing dropped", false, |db| db.drop_keyspace("nobody's"));
    bench.check("policy", false, |db| db.set_policy("nobody's"));
    bench.check("an operator made", true, |db| db.keyspace_with("b", with(Some("add"), None)));
    bench.check("other options", false, |db| db.keyspace_with("b", with(Some("max"), None)));
    let plain = bench.db.keyspace("c").expect("keyspace");
    bench.check("a merge without an operator", false, |_| plain.merge("k", "1"));
}

/// Sets each setting one beyond each end of its range, by text and by field.
#[test]
fn every_number_among_the_settings() {
    let mut checked = 0;
    for row in Settings::table() {
        let (min, max, zero) = match row.range {
            SettingRange::Number { min, max } => (min, max, false),
            SettingRange::NumberOrZero { min, max, .. } => (min, max, true),
            _ => continue,
        };
        let set = |value: u64| Settings::default().set(row.name, &value.to_string());
        for value in [min, max] {
            set(value).unwrap_or_else(|e| panic!("{} = {value}: {e}", row.name));
        }
        let below = min.checked_sub(1).filter(|&value| !(zero && value == 0));
        for value in below.into_iter().chain([max + 1]) {
            let error = set(value).expect_err(row.name);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
        checked += 1;
    }
    assert!(checked >= 15, "{checked} settings");
}

/// Options that do not fit are refused before a directory is made or locked.
#[test]
fn an_open_with_bad_options_touches_nothing() {
    let bad: [fn(&mut Settings); 4] = [
        |settings| settings.memory_bytes = 0,
        |settings| settings.block_bytes = u64::MAX,
        |settings| settings.preset = "nobody's".to_owned(),
        |settings| settings.level0_stop_files = settings.level0_slowdown_files,
    ];
    for (i, spoil) in bad.into_iter().enumerate() {
        let world = World::new(Ground::Simulated, 1);
        let mut options = options(&world);
        spoil(&mut options.settings);
        let error = Db::open_with(world.dir(), options).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "case {i}: {error}");
        let fs = &world.handles().expect("a simulated world").fs;
        assert_eq!(fs.operations(), 0, "case {i}");
    }
}
