//! What outlives what: closing and dropping a database with everything alive
//! (P14), and dropping a keyspace under its readers.

use windrow::{Db, ReadOptions};
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

#[test]
fn closing_leaves_iterators_readable_and_refuses_the_rest() {
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
        // Alive before: still there.
        assert_eq!(cursor.value(), b"1");
        assert!(cursor.next().expect("next"));
        assert_eq!(cursor.value(), b"2");
        assert_eq!(iter.map(|item| item.expect("item").1.to_vec()).collect::<Vec<_>>(), [b"2"]);
        // New work: refused.
        assert_eq!(kind(db.get("a")), Some(ErrorKind::Closed));
        assert_eq!(kind(db.put("a", "3")), Some(ErrorKind::Closed));
        assert_eq!(kind(keyspace.get("a")), Some(ErrorKind::Closed));
        assert_eq!(kind(db.flush()), Some(ErrorKind::Closed));
        assert_eq!(kind(db.keyspace("new")), Some(ErrorKind::Closed));
        let first = db.iter().next().expect("an error, not the end of the data");
        assert_eq!(kind(first), Some(ErrorKind::Closed), "{}", variant.name);
        drop((db, keyspace, snapshot));
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
