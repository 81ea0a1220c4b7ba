//! Scenarios of two writers that both have their places in the log before either has written.
//!
//! Owns: the scenarios, and the file system that makes writers wait for each other. Never does:
//! leave the outcome to the threads (`tests/shuttle` tries orders).

use super::steps::{ensure, options, text};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use windrow::{Db, ErrorKind, Options, WriteSync};
use windrow_base::Result;
use windrow_env::fs::{
    FileLock, Lease, LeaseState, LockMode, ReadOptions, ReadRequest, Stamp, WriteOptions,
};
use windrow_env::testing::{Fault, FaultKind, Ops, When, env};
use windrow_env::{FileSystem, LogFile, ReadFile, WriteFile};
use windrow_testkit::world::DIR;

/// Lets the next two writes to a log begin only when both are ready.
struct Meeting {
    expected: AtomicU32,
    together: Barrier,
}

impl Meeting {
    fn attend(&self) {
        let less = |n: u32| n.checked_sub(1);
        if self.expected.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            self.together.wait();
        }
    }
}

struct MeetingLog {
    inner: Arc<dyn LogFile>,
    meeting: Arc<Meeting>,
}

impl LogFile for MeetingLog {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.meeting.attend();
        self.inner.write_at(offset, bytes)
    }

    fn reserved_bytes(&self) -> u64 {
        self.inner.reserved_bytes()
    }

    fn reserve(&self, end: u64) -> Result<()> {
        self.inner.reserve(end)
    }

    fn release(&self, end: u64) {
        self.inner.release(end);
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
}

struct MeetingFs {
    inner: Arc<dyn FileSystem>,
    meeting: Arc<Meeting>,
}

impl FileSystem for MeetingFs {
    forward_to_inner!();

    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>> {
        let inner = self.inner.anchor(dir)?;
        Ok(Arc::new(MeetingFs { inner, meeting: Arc::clone(&self.meeting) }))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        self.inner.create(path, options)
    }

    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>> {
        let inner = self.inner.create_log(path, len_bytes)?;
        Ok(Arc::new(MeetingLog { inner, meeting: Arc::clone(&self.meeting) }))
    }

    fn open(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn ReadFile>> {
        self.inner.open(path, options)
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        self.inner.read_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)
    }
}

/// A device is full for one write while two are under way. The refusal of the other one follows
/// from the first, in whichever order both are told.
pub(super) fn a_failure_of_one_is_that_of_both() -> std::result::Result<(), String> {
    let (mut env, handles) = env(1);
    let meeting = Arc::new(Meeting { expected: AtomicU32::new(0), together: Barrier::new(2) });
    env.fs = Arc::new(MeetingFs { inner: env.fs.clone(), meeting: meeting.clone() });
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
