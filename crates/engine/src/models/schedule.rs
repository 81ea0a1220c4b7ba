//! Models of the start of jobs ([`windrow_store::jobs::schedule::Scheduler`]), and of the timer of
//! those that wait.
//!
//! Owns: these models. Never does: choose a job.

use super::{OF_MANY, OF_STEPS, OF_TWO, model, model_of_database};
use loom::sync::{Arc as LoomArc, Mutex as LoomMutex};
use loom::thread;
use windrow_store::jobs::retry_timer::RetryTimer;

#[test]
fn two_who_want_work_begun_begin_it_once() {
    model_of_database(OF_TWO, |world| {
        world.segments().queue.lock().freeze_all();
        let other = world.spawn(|world| world.database().scheduler.schedule());
        world.database().scheduler.schedule();
        other.join().unwrap();
        world.handles.jobs.run_until_idle();
        assert_eq!((world.handles.jobs.panics(), world.db.stats().flushes), (0, 1));
        assert_eq!(world.files("sst"), 1, "a memtable was flushed twice");
    });
}

/// Each thread runs jobs while it waits, its own or the other's.
#[test]
fn two_who_wait_for_a_flush_have_one() {
    model_of_database(OF_MANY, |world| {
        let other = world.spawn(|world| world.db.flush());
        world.db.flush().expect("flush");
        other.join().unwrap().expect("flush");
        assert_eq!(world.files("sst"), 1, "a memtable was flushed twice");
    });
}

/// Jobs that will be tried again. One of them fails while the timer ends.
#[test]
fn a_job_that_waits_has_a_timer_that_looks_for_it() {
    model(OF_STEPS, || {
        let shared = LoomArc::new((RetryTimer::default(), LoomMutex::new(false)));
        let waits = |shared: &(RetryTimer, LoomMutex<bool>)| *shared.1.lock().unwrap();
        assert!(shared.0.begin());
        let job = {
            let shared = shared.clone();
            thread::spawn(move || {
                *shared.1.lock().unwrap() = true;
                shared.0.begin()
            })
        };
        let goes_on = shared.0.goes_on(|| waits(&shared));
        let started = job.join().unwrap();
        assert!(goes_on || started, "a job waits, and no timer looks for it");
        assert!(!goes_on || !started, "two timers look for it");
    });
}
