//! Scenarios of two writers that both have their places in the log before either has written.
//!
//! Owns: the scenarios, and the watcher that makes writers wait for each other. Never does:
//! leave the outcome to the threads (`tests/shuttle` tries orders).

use super::steps::{ensure, options, text};
use crate::watched_files::{WatchedFs, Watcher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use windrow::{Db, ErrorKind, Options, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Ops, When, env};
use windrow_testkit::world::DIR;

/// Lets the next two writes to a log begin only when both are ready.
struct Meeting {
    expected: AtomicU32,
    together: Barrier,
}

impl Watcher for Meeting {
    fn log_write(&self) {
        let less = |n: u32| n.checked_sub(1);
        if self.expected.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            self.together.wait();
        }
    }
}

/// A device is full for one write while two are under way. The refusal of the other one follows
/// from the first, in whichever order both are told.
pub(super) fn a_failure_of_one_is_that_of_both() -> Result<(), String> {
    let (mut env, handles) = env(1);
    let meeting = Arc::new(Meeting { expected: AtomicU32::new(0), together: Barrier::new(2) });
    env.fs = Arc::new(WatchedFs::new(env.fs.clone(), meeting.clone()));
    let mut options: Options = options(&handles);
    options.components.env = Some(env);
    let db = Db::open_with(DIR, options).map_err(text)?;
    db.put_with("before", "1", WriteSync::Yes).map_err(text)?;
    let full = Fault::new(FaultKind::NoSpace, Ops::WRITE, When::Matching(0)).on_path(".wal");
    handles.fs.inject(full);
    meeting.expected.store(2, Ordering::SeqCst);
    let put = |key: &str| {
        let failed = db.put_with(key, "1", WriteSync::No).err();
        failed.map(|error| error.first_failure().kind())
    };
    let failed = std::thread::scope(|scope| {
        let other = scope.spawn(|| put("a"));
        (put("b"), other.join().expect("a writer"))
    });
    db.resume().map_err(|error| format!("resume: {error}"))?;
    let full = Some(ErrorKind::NoSpace);
    ensure(failed == (full, full), &format!("two writers were refused with {failed:?}"))?;
    db.put_with("after", "1", WriteSync::Yes).map_err(text)?;
    let found = ["before", "a", "b", "after"].map(|key| db.get(key).ok().flatten().is_some());
    ensure(found == [true, false, false, true], &format!("after a resume: {found:?}"))
}
