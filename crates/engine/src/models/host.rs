//! Waiting for a change ([`crate::host::Host`] with its `Progress`).

use super::{OF_STEPS, model_of_database};
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use windrow_base::{Error, ErrorKind};

#[test]
fn who_waits_for_a_change_hears_of_it() {
    model_of_database(OF_STEPS, |world| {
        let changed = Arc::new(AtomicU64::new(0));
        let of_other = changed.clone();
        let other = world.spawn(move |world| {
            // Something else, and then what is waited for.
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
