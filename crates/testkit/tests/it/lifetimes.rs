//! Lifetimes of handles: closing and dropping a database with everything alive
//! (P14), and dropping a keyspace under its readers.

use windrow::{Db, Iter, Keyspace, ReadOptions, Snapshot};
use windrow_base::ErrorKind;
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::World;

fn open(world: &World) -> Db {
    let mut options = VARIANTS[0].options().expect("options");
    options.components.env = Some(world.env());
    Db::open_with(world.dir(), options).expect("open")
}

fn kind<T>(result: windrow_base::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Reads a snapshot of {a: 1, b: 2} in every way.
fn read_snapshot(keyspace: &Keyspace, snapshot: &Snapshot) {
    let values =
        |iter: Iter| -> Vec<Vec<u8>> { iter.map(|item| item.expect("item").1.to_vec()).collect() };
    let both = [b"1".to_vec(), b"2".to_vec()];
    assert_eq!(snapshot.get("a").expect("get").as_deref(), Some(&b"1"[..]));
    assert_eq!(values(snapshot.range(..)), both);
    assert_eq!(values(snapshot.prefix("b")), both[1..]);
    assert_eq!(keyspace.get_at(snapshot, "b").expect("get_at").as_deref(), Some(&b"2"[..]));
    let many = keyspace.multi_get_at(snapshot, &["b", "c"]);
    let many: Vec<_> = many.into_iter().map(|v| v.expect("multi_get_at").is_some()).collect();
    assert_eq!(many, [true, false]);
    assert_eq!(values(keyspace.range_at(snapshot, ..)), both);
    assert_eq!(values(keyspace.prefix_at(snapshot, "")), both);
    let mut cursor = keyspace.cursor_at(snapshot);
    assert!(cursor.seek_last().expect("seek"));
    assert!(cursor.refresh().expect("refresh"));
    assert_eq!(cursor.value(), b"2");
}

/// No reader accepts a snapshot of another database, or of an earlier session
/// of the same one: its sequence numbers differ.
#[test]
fn a_snapshot_of_another_open_database_is_refused() {
    let world = World::new(VARIANTS[0].ground, 1);
    let db = open(&world);
    db.put("a", "1").expect("put");
    db.put("b", "2").expect("put");
    let earlier = db.snapshot();
    drop(db.clone());
    read_snapshot(&db, &earlier);
    db.close().expect("close");
    world.process_died();
    let db = open(&world);
    let keyspace = db.default_keyspace();
    let elsewhere = World::new(VARIANTS[0].ground, 2);
    let other = open(&elsewhere).snapshot();
    read_snapshot(&keyspace, &db.snapshot());
    let refused = Some(ErrorKind::InvalidArgument);
    for foreign in [&earlier, &other] {
        assert_eq!(kind(keyspace.get_at(foreign, "a")), refused);
        let many = keyspace.multi_get_at(foreign, &["a", "b"]);
        assert!(many.len() == 2 && many.into_iter().all(|value| kind(value) == refused));
        let options = || ReadOptions { snapshot: Some(foreign.clone()), ..ReadOptions::default() };
        for mut iter in [
            keyspace.range_at(foreign, ..),
            keyspace.prefix_at(foreign, "a"),
            keyspace.iter_with(options()),
        ] {
            assert_eq!(iter.next_back().map(kind), Some(refused));
            assert!(iter.next().is_none());
        }
        for mut cursor in [keyspace.cursor_at(foreign), db.cursor(options())] {
            assert_eq!(kind(cursor.seek_first()), refused);
            assert_eq!(kind(cursor.refresh()), refused);
            assert_eq!(kind(cursor.seek_last()), refused);
        }
    }
    // The database that it belongs to still reads it.
    assert_eq!(earlier.get("a").expect("get").as_deref(), Some(&b"1"[..]));
}

#[test]
fn closing_leaves_readers_readable_and_refuses_the_rest() {
    for variant in VARIANTS {
        let world = World::new(variant.ground, 1);
        let db = open(&world);
        db.put("a", "1").expect("put");
        db.flush().expect("flush");
        db.put("b", "2").expect("put");
        let snapshot = db.snapshot();
        let keyspace = db.default_keyspace();
        let mut cursor = db.cursor(ReadOptions::default());
        assert!(cursor.seek_first().expect("seek"));
        let mut iter = db.iter();
        assert!(iter.next().is_some());
        db.close().expect("close");
        db.close().expect("close again");
        // Cursors and iterators opened before the close still work.
        assert_eq!(cursor.value(), b"1");
        assert!(cursor.next().expect("next"));
        assert_eq!(cursor.value(), b"2");
        assert_eq!(iter.map(|item| item.expect("item").1.to_vec()).collect::<Vec<_>>(), [b"2"]);
        // So does a snapshot, in every way to read it, and so do its readers.
        read_snapshot(&keyspace, &snapshot);
        // New work is refused.
        assert_eq!(kind(db.get("a")), Some(ErrorKind::Closed));
        assert_eq!(kind(db.put("a", "3")), Some(ErrorKind::Closed));
        assert_eq!(kind(keyspace.get("a")), Some(ErrorKind::Closed));
        assert_eq!(kind(db.flush()), Some(ErrorKind::Closed));
        assert_eq!(kind(db.keyspace("new")), Some(ErrorKind::Closed));
        let first = db.iter().next().expect("an error, not the end of the data");
        assert_eq!(kind(first), Some(ErrorKind::Closed), "{}", variant.name);
        assert_eq!(kind(cursor.refresh()), Some(ErrorKind::Closed));
        let late = db.snapshot();
        assert_eq!(kind(late.get("a")), Some(ErrorKind::Closed), "taken after the close");
        assert_eq!(kind(keyspace.cursor_at(&late).seek_first()), Some(ErrorKind::Closed));
        // The snapshot outlives the handles.
        drop((db, late, cursor));
        read_snapshot(&keyspace, &snapshot);
        drop((keyspace, snapshot));
        world.process_died();
        assert_eq!(open(&world).get("b").expect("get").as_deref(), Some(&b"2"[..]));
    }
}

#[test]
fn dropping_the_last_handle_with_a_cursor_alive_frees_the_directory_with_it() {
    for variant in VARIANTS {
        let world = World::new(variant.ground, 1);
        let db = open(&world);
        db.put("a", "1").expect("put");
        let mut cursor = db.cursor(ReadOptions::default());
        drop(db);
        assert!(cursor.seek("a").expect("seek"), "{}", variant.name);
        assert_eq!(cursor.value(), b"1");
        drop(cursor);
        world.process_died();
        assert_eq!(open(&world).get("a").expect("get").as_deref(), Some(&b"1"[..]));
    }
}

#[test]
fn a_second_open_is_refused_until_the_first_is_closed() {
    for variant in VARIANTS {
        let world = World::new(variant.ground, 1);
        let db = open(&world);
        let mut options = variant.options().expect("options");
        options.components.env = Some(world.env());
        assert_eq!(kind(Db::open_with(world.dir(), options)), Some(ErrorKind::Busy));
        db.close().expect("close");
        world.process_died();
        drop(open(&world));
    }
}
