//! Models of writes, from their slot of the queue to their visibility:
//! [`windrow_store::write::pipeline::Pipeline`] with its queue and segments.
//!
//! Owns: these models. Never does: sync a log of its own (`wal_sync.rs`).

use super::{ModelWorld, OF_MANY, OF_TWO, model_of_database, open};
use windrow_base::{Error, ErrorKind, Result};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When};
use windrow_read::options::WriteSync;

fn put(world: &ModelWorld, key: &str) -> Result<()> {
    world.db.put(key, key)
}

/// Checks that the visible ones of two writes since `before` are there. Returns how many are there.
fn read(world: &ModelWorld, before: u64) -> u64 {
    let visible = world.database().pipeline.visible() - before;
    let there = u64::from(world.has("a")) + u64::from(world.has("b"));
    assert!(visible <= there, "visible, and not there");
    there
}

#[test]
fn what_is_visible_has_been_inserted_and_never_goes_back() {
    model_of_database(OF_TWO, |world| {
        let before = world.database().pipeline.visible();
        let writer = world.spawn(|world| {
            put(world, "a").expect("put");
            assert!(world.has("a"), "one's own write is visible");
        });
        let first = read(world, before);
        assert!(first <= read(world, before), "time ran backwards");
        writer.join().unwrap();
        assert_eq!(read(world, before), 1);
    });
}

#[test]
fn two_writers_are_seen_in_their_order() {
    model_of_database(OF_MANY, |world| {
        let before = world.database().pipeline.visible();
        let writers = ["a", "b"].map(|key| world.spawn(move |world| put(world, key)));
        let first = read(world, before);
        assert!(first <= read(world, before), "time ran backwards");
        writers.into_iter().for_each(|writer| writer.join().unwrap().expect("put"));
        assert_eq!(read(world, before), 2);
    });
}

#[test]
fn whoever_waits_for_a_commit_is_woken() {
    model_of_database(OF_MANY, |world| {
        let writers = ["a", "b"].map(|key| world.spawn(move |world| put(world, key)));
        // Waits for every slot that was given out.
        world.db.sync().expect("sync");
        writers.into_iter().for_each(|writer| writer.join().unwrap().expect("put"));
        assert!(world.has("a") && world.has("b"));
    });
}

#[test]
fn a_failed_append_is_never_visible_and_nobody_waits_for_it() {
    model_of_database(OF_MANY, |world| {
        let fault = Fault::new(FaultKind::Io, Ops::WRITE, When::Matching(0));
        world.handles.fs.inject(fault.on_path(".wal"));
        let writers = ["a", "b"].map(|key| world.spawn(move |world| put(world, key)));
        let waited = world.db.sync();
        let results = writers.map(|writer| writer.join().unwrap());
        assert!(waited.is_ok() || world.db.write_error().is_some(), "{waited:?}");
        for (key, result) in ["a", "b"].into_iter().zip(&results) {
            assert_eq!(world.has(key), result.is_ok(), "{key}: {result:?}");
        }
        let unknown = results.iter().filter_map(|result| result.as_ref().err());
        let unknown = unknown.filter(|error| error.kind() == ErrorKind::OutcomeUnknown);
        let failed: Vec<&Error> = unknown.map(Error::first_failure).collect();
        assert!(!failed.is_empty(), "one append failed: {results:?}");
        assert!(failed.iter().all(|error| error.kind() == ErrorKind::Io), "{results:?}");
    });
}

/// Another failure, of a flush for example, turns writing off while slots are being filled. Writes
/// that are refused stay unseen, and writes that are seen were not refused.
#[test]
fn a_write_is_seen_or_refused_whatever_else_fails() {
    model_of_database(OF_MANY, |world| {
        let writers = ["a", "b"].map(|key| world.spawn(move |world| put(world, key)));
        let error = Error::new(ErrorKind::Io, "a flush failed");
        world.database().set_background_error(&error);
        for (key, writer) in ["a", "b"].into_iter().zip(writers) {
            let written = writer.join().unwrap();
            assert_eq!(world.has(key), written.is_ok(), "{key}: {written:?}");
        }
        assert_eq!(put(world, "c").unwrap_err().kind(), ErrorKind::ReadOnly);
    });
}

#[test]
fn two_who_want_the_next_segment_make_one() {
    model_of_database(OF_TWO, |world| {
        let before = world.files("wal");
        let other = world.spawn(|world| world.segments().prepare());
        assert!(world.segments().prepare().expect("prepare"), "there is room");
        assert!(other.join().unwrap().expect("prepare"), "who waits for it has it");
        assert_eq!(world.files("wal"), before + 1);
        assert!(world.segments().queue.lock().spare.is_some());
    });
}

/// A record without operations: no sequence number waits for its slot.
#[test]
fn a_sync_waits_for_a_mark_that_is_being_written_to_the_log_before() {
    model_of_database(OF_TWO, |world| {
        world.segments().prepare().expect("prepare");
        let other = world.spawn(|world| world.database().pipeline.cross_check_manifest());
        assert!(world.segments().rotate(&mut world.segments().queue.lock()));
        world.db.sync().expect("sync");
        other.join().unwrap().expect("a mark");
    });
}

/// A writer fills its slot of a segment while the log goes on in the next one.
#[test]
fn a_synced_write_behind_a_switch_of_segments_survives_power_loss() {
    model_of_database(OF_MANY, |world| {
        world.segments().prepare().expect("prepare");
        let writer = world.spawn(|world| put(world, "a"));
        assert!(world.segments().rotate(&mut world.segments().queue.lock()));
        world.db.put_with("b", "b", WriteSync::Yes).expect("put");
        writer.join().unwrap().expect("put");
        let fs = world.handles.fs.fork();
        fs.crash(7);
        let after = open(&Handles { fs, ..world.handles.reborn(1) });
        assert!(after.get("b").expect("get").is_some(), "acknowledged, and lost");
    });
}
