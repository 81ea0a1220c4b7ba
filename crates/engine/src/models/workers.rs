//! Models of the work that a close waits for ([`windrow_store::host::workers::Workers`],
//! `close.rs`).
//!
//! Owns: these models. Never does: touch a real file: `Files` are atomics.

use super::{OF_MANY, OF_STEPS, model_of_database, open};
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windrow_env::jobs::Urgency;

/// The files that a job changes, and whether it did (the records of the test).
#[derive(Default)]
struct Files {
    value: AtomicU64,
    touched: AtomicBool,
    closed: AtomicBool,
    /// Touched after the close: a panic in a job would be contained, and reported to nobody.
    late: AtomicBool,
}

impl Files {
    fn touch(&self) {
        self.value.store(1, Relaxed);
        self.touched.store(true, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            self.late.store(true, Ordering::SeqCst);
        }
    }

    /// No work is in progress any more.
    fn close(&self) {
        let touched = self.touched.load(Ordering::SeqCst);
        assert_eq!(self.value.load(Relaxed) == 1, touched, "work that the close does not see");
        self.closed.store(true, Ordering::SeqCst);
    }

    /// All threads that could touch the files are done.
    fn check(&self) {
        assert!(!self.late.load(Ordering::SeqCst), "work after the close");
    }
}

#[test]
fn what_began_is_seen_by_who_waits_for_its_end() {
    model_of_database(OF_STEPS, |world| {
        let files = Arc::new(Files::default());
        let others = [0, 1].map(|_| {
            let files = files.clone();
            world.spawn(move |world| {
                if let Ok(_underway) = world.database().workers.begin() {
                    files.touch();
                }
            })
        });
        let workers = &world.database().workers;
        assert!(!workers.gate.close());
        workers.wait_quiet();
        files.close();
        others.into_iter().for_each(|other| other.join().unwrap());
        files.check();
    });
}

#[test]
fn a_close_waits_for_writers_and_jobs_and_nothing_comes_after() {
    model_of_database(OF_MANY, |world| {
        let files = Arc::new(Files::default());
        let writer = world.spawn(|world| world.db.put("a", "a"));
        let of_job = files.clone();
        let job = world.spawn(move |world| {
            if let Ok(underway) = world.database().workers.begin() {
                underway.submit(Urgency::Normal, move || of_job.touch());
            }
        });
        world.db.close().expect("close");
        files.close();
        let again = open(&world.handles.reborn(1));
        let written = writer.join().unwrap();
        job.join().unwrap();
        // Runs the jobs that are still queued.
        world.handles.jobs.run_until_idle();
        files.check();
        let there = again.get("a").expect("get").is_some();
        assert_eq!(there, written.is_ok(), "{written:?}");
    });
}
