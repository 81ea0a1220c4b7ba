//! Models of keyspaces that are made and dropped ([`windrow_store::catalog::Catalog`]).
//!
//! Owns: these models. Never does: edit the manifest by itself.

use super::{ModelWorld, OF_MANY, OF_TWO, model_of_database};
use windrow_base::ErrorKind;

/// Bytes of memtables that are in no table.
fn unflushed_bytes(world: &ModelWorld) -> usize {
    world.segments().queue.lock().unflushed.bytes()
}

#[test]
fn two_who_make_a_keyspace_have_the_same() {
    model_of_database(OF_TWO, |world| {
        let other = world.spawn(|world| world.db.keyspace("third").expect("keyspace").id());
        let id = world.db.keyspace("third").expect("keyspace").id();
        assert_eq!(other.join().unwrap(), id, "two keyspaces of one name");
        assert_eq!(world.database().catalog.state().keyspaces.len(), 2);
    });
}

#[test]
fn a_write_to_a_keyspace_that_is_dropped_is_done_or_refused_and_counts_for_nothing() {
    model_of_database(OF_TWO, |world| {
        let third = world.db.keyspace("third").expect("keyspace");
        third.put("a", "a").expect("put");
        let other = world.spawn(|world| world.db.drop_keyspace("third"));
        if let Err(error) = third.put("b", "b") {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        }
        other.join().unwrap().expect("drop");
        world.db.flush().expect("flush");
        assert_eq!(unflushed_bytes(world), 0, "bytes that no flush will write");
    });
}

#[test]
fn a_flush_of_all_ends_while_a_keyspace_is_dropped() {
    model_of_database(OF_MANY, |world| {
        let third = world.db.keyspace("third").expect("keyspace");
        third.put("a", "a").expect("put");
        let other = world.spawn(|world| world.db.drop_keyspace("third"));
        world.db.flush().expect("flush");
        other.join().unwrap().expect("drop");
        assert_eq!(unflushed_bytes(world), 0, "bytes that no flush will write");
    });
}
