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

/// Lets the next two writes to a log begin only when both are ready, and the second one only when
/// the first one has returned. Begun while the first one fails, it might succeed, and rightly so
/// where its place in the log is the earlier one.
struct Meeting {
    to_begin: AtomicU32,
    to_end: AtomicU32,
    ready: Barrier,
    first_returned: Barrier,
}

impl Meeting {
    fn new() -> Meeting {
        Meeting {
            to_begin: AtomicU32::new(0),
            to_end: AtomicU32::new(0),
            ready: Barrier::new(2),
            first_returned: Barrier::new(2),
        }
    }

    /// Has the next two writes meet.
    fn arrange(&self) {
        self.to_end.store(1, Ordering::SeqCst);
        self.to_begin.store(2, Ordering::SeqCst);
    }
}

/// Whether something is left of a count, which is one less then.
fn took_one(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

impl Watcher for Meeting {
    fn log_write(&self) {
        if took_one(&self.to_begin) && !self.ready.wait().is_leader() {
            self.first_returned.wait();
        }
    }

    fn log_written(&self) {
        if took_one(&self.to_end) {
            self.first_returned.wait();
        }
    }
}

/// A device is full for one write while two are under way. The refusal of the other one follows
/// from the first, in whichever order both are told.
pub(super) fn a_failure_of_one_is_that_of_both() -> Result<(), String> {
    let (mut env, handles) = env(1);
    let meeting = Arc::new(Meeting::new());
    env.fs = Arc::new(WatchedFs::new(env.fs.clone(), meeting.clone()));
    let mut options: Options = options(&handles);
    options.components.env = Some(env);
    let db = Db::open_with(DIR, options).map_err(text)?;
    db.put_with("before", "1", WriteSync::Yes).map_err(text)?;
    let full = Fault::new(FaultKind::NoSpace, Ops::WRITE, When::Matching(0)).on_path(".wal");
    handles.fs.inject(full);
    meeting.arrange();
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
