//! Models of resumes and checkpoints of a whole database, concurrent with writers and failures.
//!
//! Owns: these models. Never does: call an owner but through the database.

use super::{ModelWorld, OF_MANY, OF_TWO, model_of_database, open_at};
use crate::{Batch, WriteSync};
use windrow_base::{Error, ErrorKind, Result};

/// Turns writing off by a cause that can go away.
fn turn_off(world: &ModelWorld) {
    let refused = Error::new(ErrorKind::NoSpace, "the device is full");
    world.database().set_background_error(&refused);
}

fn put(world: &ModelWorld, key: &str) -> Result<()> {
    world.db.put(key, key)
}

/// At any step of the resume.
#[test]
fn a_failure_that_stays_keeps_writing_off_through_a_resume() {
    model_of_database(OF_TWO, |world| {
        turn_off(world);
        let other = world.spawn(|world| {
            let panicked = Error::new(ErrorKind::Io, "a job panicked");
            world.database().set_background_error(&panicked);
        });
        let resumed = world.db.resume();
        other.join().unwrap();
        let cause = world.db.write_error().expect("writing is off");
        assert!(cause.message().contains("a job panicked"), "{cause}, resumed: {resumed:?}");
        assert_eq!(put(world, "a").unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(world.db.resume().unwrap_err().kind(), ErrorKind::ReadOnly);
        assert!(world.has("0"), "published before");
    });
}

#[test]
fn two_who_resume_do_it_once() {
    model_of_database(OF_MANY, |world| {
        turn_off(world);
        let other = world.spawn(|world| world.db.resume());
        world.db.resume().expect("resume");
        other.join().unwrap().expect("resume");
        assert_eq!(world.db.stats().resumes, 1);
        put(world, "a").expect("put");
        assert!(world.has("0") && world.has("a"));
    });
}

/// A writer fills its slot while writing goes off and on again.
#[test]
fn a_write_next_to_a_resume_is_done_or_refused_for_ever() {
    model_of_database(OF_MANY, |world| {
        let writer = world.spawn(|world| put(world, "a"));
        turn_off(world);
        world.db.resume().expect("resume");
        let written = writer.join().unwrap();
        assert_eq!(world.has("a"), written.is_ok(), "{written:?}");
        put(world, "b").expect("put");
        assert_eq!(world.has("a"), written.is_ok(), "after the next write: {written:?}");
        let handles = world.handles.reborn(1);
        let handles = windrow_env::testing::Handles { fs: world.handles.fs.fork(), ..handles };
        handles.fs.kill(1);
        let after = open_at("db", &handles);
        let there = |key| after.get(key).expect("get").is_some();
        assert_eq!((there("a"), there("b")), (written.is_ok(), true), "{written:?}");
    });
}

/// A batch to two keyspaces. One of them is flushed while the copy is made (P3).
#[test]
fn a_checkpoint_has_a_batch_whole_or_not_at_all() {
    model_of_database(OF_MANY, |world| {
        let third = world.db.keyspace("third").expect("keyspace");
        let writer = world.spawn(move |world| {
            let mut batch = Batch::new();
            batch.put(&world.db.default_keyspace(), "a", "a");
            batch.put(&third, "a", "a");
            world.db.write(batch, WriteSync::No).expect("write");
            third.flush().expect("flush");
        });
        world.db.checkpoint("copy").expect("checkpoint");
        writer.join().unwrap();
        let copy = open_at("copy", &world.handles.reborn(1));
        let third = copy.keyspace("third").expect("keyspace");
        let there = copy.get("a").expect("get").is_some();
        assert_eq!(third.get("a").expect("get").is_some(), there, "half a batch");
    });
}
