//! Models of waiting for a change ([`windrow_store::host::Host`] with its `Progress`), and of the
//! question whether writing is on ([`WriteState`]).
//!
//! Owns: these models. Never does: flush or merge.

use super::{OF_STEPS, model, model_of_database};
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use windrow_base::{Error, ErrorKind};
use windrow_store::host::write_state::WriteState;

#[test]
fn who_waits_for_a_change_hears_of_it() {
    model_of_database(OF_STEPS, |world| {
        let changed = Arc::new(AtomicU64::new(0));
        let of_other = changed.clone();
        let other = world.spawn(move |world| {
            // Another change, and then the awaited one.
            world.database().note_progress();
            of_other.store(1, Relaxed);
            world.database().note_progress();
        });
        world.database().wait_until(|| (changed.load(Relaxed) == 1).then_some(()));
        other.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_change_hears_of_a_failure() {
    model_of_database(OF_STEPS, |world| {
        let other = world.spawn(|world| {
            world.database().set_background_error(&Error::new(ErrorKind::Io, "a flush failed"));
        });
        world.database().wait_until(|| world.database().write_state.check().err());
        assert!(world.db.write_error().is_some(), "writing is off, and nobody knows why");
        other.join().unwrap();
    });
}

/// A writer's sync may fail while the database is closed.
#[test]
fn a_failure_does_not_open_what_is_closed() {
    model(OF_STEPS, || {
        let write_state = Arc::new(WriteState::new(false));
        let closing = write_state.clone();
        let other = loom::thread::spawn(move || closing.close());
        write_state.set_background_error(&Error::new(ErrorKind::Io, "a sync failed"));
        other.join().unwrap();
        assert_eq!(write_state.check_read().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(write_state.check().unwrap_err().kind(), ErrorKind::Closed);
    });
}

/// A look at the state finds that writing is off, with the cause, or on.
#[test]
fn who_asks_while_writing_goes_on_again_is_told_why_it_was_off_or_nothing() {
    model(OF_STEPS, || {
        let write_state = Arc::new(WriteState::new(false));
        write_state.set_background_error(&Error::new(ErrorKind::NoSpace, "full"));
        let resuming = write_state.clone();
        let other = loom::thread::spawn(move || resuming.reset().expect("it can go away"));
        if let Err(error) = write_state.check() {
            assert!(error.message().contains("full"), "{error}");
        }
        other.join().unwrap();
        write_state.check().expect("writing is on");
    });
}
