//! A database whose comparators and merge operators are not all registered: operations that do not
//! need them go on, and nothing is put in a wrong order or combined in a wrong way.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use windrow::{Comparator, Db, ErrorKind, Follower, Keyspace};
use windrow::{KeyspaceOptions, MergeOperator, Options};

/// Operands one after the other, each in brackets; they can be combined.
struct Brackets;

impl MergeOperator for Brackets {
    fn name(&self) -> &str {
        "brackets"
    }

    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut all = base.unwrap_or(b"-").to_vec();
        operands.iter().for_each(|operand| all.extend_from_slice(operand));
        Some(all)
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}

struct Reverse;

impl Comparator for Reverse {
    fn id(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn small() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 256 << 10;
    options
}

fn read_only(options: Options) -> Options {
    Options { read_only: true, create_if_missing: false, ..options }
}

fn with_operator() -> Options {
    let mut options = small();
    options.components.merge_operators.push(Arc::new(Brackets));
    options
}

fn with_comparator() -> Options {
    let mut options = small();
    options.components.comparators.push(Arc::new(Reverse));
    options
}

fn sets(db: &Db) -> Keyspace {
    let merge_operator = Some("brackets".into());
    db.keyspace_with("sets", KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() })
        .unwrap()
}

fn text(space: &Keyspace, key: &str) -> Option<String> {
    space.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn operands_stay_as_they_are_until_their_operator_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), with_operator()).unwrap();
    let space = sets(&db);
    db.put("other", "1").unwrap();
    space.put("plain", "value").unwrap();
    for round in 0..3 {
        for key in ["based", "alone", "gone", "covered"] {
            if round == 0 && key == "based" {
                space.put(key, "base").unwrap();
            }
            if round == 1 && key == "gone" {
                space.delete(key).unwrap();
            }
            space.merge(key, format!("[{round}]")).unwrap();
        }
        // In separate tables, and the last in the log.
        if round < 2 {
            db.flush().unwrap();
        }
    }
    db.close().unwrap();
    drop((space, db));
    for options in [read_only(small()), small(), small()] {
        let writes = !options.read_only;
        let db = Db::open_with(dir.path(), options).unwrap();
        let space = db.open_keyspace("sets").unwrap().expect("it is there");
        assert_eq!(text(&db, "other").as_deref(), Some("1"));
        assert_eq!(text(&space, "plain").as_deref(), Some("value"));
        let error = space.get("based").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains("`brackets`"), "{error}");
        assert!(space.iter().any(|item| item.is_err()), "a scan does not pass over it");
        assert!(db.verify().unwrap().is_ok());
        if writes {
            let error = space.merge("based", "[x]").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains("`brackets`"), "{error}");
            space.put("covered", "again").unwrap();
            assert_eq!(text(&space, "covered").as_deref(), Some("again"));
            space.flush().unwrap();
            db.compact().unwrap();
        }
        db.close().unwrap();
    }
    let db = Db::open_with(dir.path(), with_operator()).unwrap();
    let space = sets(&db);
    for (key, value) in [
        ("based", "base[0][1][2]"),
        ("alone", "-[0][1][2]"),
        ("gone", "-[1][2]"),
        ("covered", "again"),
        ("plain", "value"),
    ] {
        assert_eq!(text(&space, key).as_deref(), Some(value), "{key}");
    }
    space.merge("based", "[3]").unwrap();
    db.compact().unwrap();
    assert_eq!(text(&space, "based").as_deref(), Some("base[0][1][2][3]"));
}

#[test]
fn a_repair_needs_the_operator() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), with_operator()).unwrap();
    sets(&db).merge("a", "[0]").unwrap();
    db.close().unwrap();
    drop(db);
    let error = windrow::repair(dir.path(), small()).unwrap_err();
    assert!(error.message().contains("`brackets`"), "{error}");
    windrow::repair(dir.path(), with_operator()).unwrap();
}

/// The files that a killed process leaves: as the kernel has them.
#[allow(clippy::disallowed_methods, reason = "a test copies a directory")]
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_keyspace_of_an_unknown_order_is_left_out_where_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let killed = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), with_comparator()).unwrap();
    let options = KeyspaceOptions { comparator: Some("reverse".into()), ..Default::default() };
    let reversed = db.keyspace_with("reversed", options.clone()).unwrap();
    let dropped = db.keyspace_with("dropped", options).unwrap();
    let fill = |from: u32| {
        for i in from..from + 100 {
            db.put(format!("{i}"), "1").unwrap();
            reversed.put(format!("{i}"), "2").unwrap();
        }
    };
    fill(0);
    dropped.put("a", "1").unwrap();
    db.flush().unwrap();
    db.drop_keyspace("dropped").unwrap();
    fill(100);
    copy(dir.path(), killed.path());
    db.close().unwrap();
    for dir in [dir.path(), killed.path()] {
        let names: Vec<_> = Db::stored_keyspaces(dir).unwrap().expect("a database");
        let needs: Vec<_> = names.iter().map(|k| (&k.name[..], &k.comparator[..])).collect();
        assert_eq!(needs, [("default", "windrow.bytewise"), ("reversed", "reverse")]);
        let error = Db::open_with(dir, small()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("`reverse`"), "{error}");
        let db = Db::open_with(dir, read_only(small())).unwrap();
        assert_eq!(db.keyspaces(), ["default"]);
        assert_eq!(db.keyspaces_left_out(), names[1..]);
        assert_eq!(db.iter().filter(|item| item.is_ok()).count(), 200);
        let error = db.open_keyspace("reversed").unwrap_err();
        assert!(error.message().contains("`reverse`"), "{error}");
        assert!(db.keyspace("reversed").is_err() && db.open_keyspace("dropped").unwrap().is_none());
        assert!(db.verify().unwrap().is_ok());
        db.close().unwrap();
        drop(db);
        let db = Db::open_with(dir, with_comparator()).unwrap();
        let reversed = db.open_keyspace("reversed").unwrap().expect("it is there");
        let keys: Vec<_> = reversed.iter().map(|item| item.unwrap().0).collect();
        assert!(keys.len() == 200 && keys.is_sorted_by(|a, b| a > b), "nothing was lost");
        assert!(db.keyspaces_left_out().is_empty());
    }
}

#[test]
fn a_default_keyspace_of_an_unknown_order_keeps_nobody_from_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let reversed = KeyspaceOptions { comparator: Some("reverse".into()), ..Default::default() };
    let known = Options { default_keyspace: reversed, ..with_comparator() };
    let db = Db::open_with(dir.path(), known.clone()).unwrap();
    let users = db.keyspace("users").unwrap();
    for i in 0..100 {
        db.put(format!("{i}"), "1").unwrap();
        users.put(format!("{i}"), "2").unwrap();
        if i == 50 {
            db.flush().unwrap();
        }
    }
    let check = |db: &Db| {
        assert_eq!(db.keyspaces(), ["users"]);
        let left_out: Vec<_> = db.keyspaces_left_out().into_iter().map(|k| k.name).collect();
        assert_eq!(left_out, ["default"]);
        let users = db.open_keyspace("users").unwrap().expect("its order is known");
        assert_eq!((users.count(..).unwrap(), users.get("99").unwrap().is_some()), (100, true));
        let snapshot = db.snapshot();
        let errors = [
            db.get("1").unwrap_err(),
            db.iter().next().expect("an error").unwrap_err(),
            db.multi_get(&["1"]).remove(0).unwrap_err(),
            db.first().unwrap_err(),
            db.count(..).unwrap_err(),
            db.approximate_len().unwrap_err(),
            db.cursor(windrow::ReadOptions::default()).seek_first().unwrap_err(),
            snapshot.get("1").unwrap_err(),
            snapshot.iter().next().expect("an error").unwrap_err(),
            db.get_at(&snapshot, "1").unwrap_err(),
            db.open_keyspace("default").unwrap_err(),
            db.transaction().unwrap().get(db, "1").unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            let told =
                error.message().contains("`default`") && error.message().contains("`reverse`");
            assert!(told, "{error}");
        }
        assert_eq!(users.get_at(&snapshot, "7").unwrap().as_deref(), Some(&b"2"[..]));
        assert!(db.verify().unwrap().is_ok());
        assert!(windrow::inspect::trees(db).iter().all(|(name, _)| name == "users"));
        assert_eq!(db.stats().keyspaces.len(), 1);
        assert_eq!(db.put("1", "2").unwrap_err().kind(), ErrorKind::ReadOnly);
    };
    let follower = Follower::open_with(dir.path(), small()).unwrap();
    check(&follower.db());
    drop(follower);
    db.close().unwrap();
    drop((users, db));
    let options = small();
    let error = Db::open_with(dir.path(), options.clone()).unwrap_err();
    assert!(error.message().contains("`reverse`"), "{error}");
    let db = Db::open_with(dir.path(), read_only(options)).unwrap();
    check(&db);
    db.close().unwrap();
    drop(db);
    let db = Db::open_with(dir.path(), known).unwrap();
    assert_eq!(db.count(..).unwrap(), 100, "nothing was lost");
}

/// An invalid operand is refused where it is written, not found by readers.
#[test]
fn an_operand_that_is_none_is_refused_by_the_write() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    let merge_operator = Some("add".into());
    let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
    let counters = db.keyspace_with("counters", options).unwrap();
    counters.merge("n", 5i64.to_le_bytes()).unwrap();
    let mut batch = windrow::Batch::new();
    batch.put(&db, "with it", "1");
    batch.merge(&counters, "n", "seven");
    for error in [
        counters.merge("n", "five").unwrap_err(),
        db.write(batch, windrow::WriteSync::No).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("`add`") && error.to_string().contains("\"n\""));
    }
    assert_eq!(db.get("with it").unwrap(), None);
    assert_eq!(counters.get("n").unwrap().as_deref(), Some(&5i64.to_le_bytes()[..]));
}
