//! A file system that notices syncs and renames, and can let the process die shortly after one:
//! mistakes of ordering show there.
//!
//! Owns: counting the operations that make data durable. Everything else, dying included, is done
//! by the crash file system inside. Never does: change a result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::Result;
use windrow_env::fs::{
    FileLock, Lease, LeaseState, LockMode, ReadOptions, ReadRequest, Stamp, WriteOptions,
};
use windrow_env::sync::{Mutex, Rank};
use windrow_env::testing::CrashFs;
use windrow_env::{FileSystem, LogFile, ReadFile, WriteFile};

/// A thread that writes a file may hold any lock of the engine.
const PLAN: Rank = Rank::new(Rank::ENVIRONMENT - 1, "the plan of a crash");

/// Counts syncs and renames, and sets the crash.
struct Watch {
    fs: CrashFs,
    /// The number of syncs and renames that are left, and of operations after them until the crash.
    plan: Mutex<Option<(u64, u64)>>,
}

impl Watch {
    /// Counts a sync or rename that has returned.
    fn settled<T>(&self, result: Result<T>) -> Result<T> {
        let mut plan = self.plan.lock();
        match &mut *plan {
            Some((0, then)) => {
                self.fs.crash_at(self.fs.operations() + *then);
                *plan = None;
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        result
    }
}

/// A crash file system that notices syncs and renames. Clones are the same one.
#[derive(Clone)]
pub struct SettleFs {
    inner: Arc<dyn FileSystem>,
    watch: Arc<Watch>,
}

impl SettleFs {
    /// Wraps `inner`.
    pub fn new(inner: CrashFs) -> SettleFs {
        let watch = Arc::new(Watch { fs: inner.clone(), plan: Mutex::new(PLAN, None) });
        SettleFs { inner: Arc::new(inner), watch }
    }

    /// Lets the process die at the `then`-th operation (from 0) after the `count`-th sync or rename
    /// (from 0) from now.
    pub fn crash_after(&self, count: u64, then: u64) {
        *self.watch.plan.lock() = Some((count, then));
    }

    /// Forgets a crash that has not been reached.
    pub fn forget(&self) {
        *self.watch.plan.lock() = None;
    }
}

struct Written {
    inner: Box<dyn WriteFile>,
    watch: Arc<Watch>,
}

impl WriteFile for Written {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.append(bytes)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn sync(&mut self) -> Result<()> {
        let result = self.inner.sync();
        self.watch.settled(result)
    }

    fn finish(&mut self) -> Result<()> {
        let result = self.inner.finish();
        self.watch.settled(result)
    }
}

struct Logged {
    inner: Arc<dyn LogFile>,
    watch: Arc<Watch>,
}

impl LogFile for Logged {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
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
        self.watch.settled(self.inner.sync())
    }
}

impl FileSystem for SettleFs {
    forward_to_inner!();

    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>> {
        let inner = self.inner.anchor(dir)?;
        Ok(Arc::new(SettleFs { inner, watch: Arc::clone(&self.watch) }))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        let inner = self.inner.create(path, options)?;
        Ok(Box::new(Written { inner, watch: Arc::clone(&self.watch) }))
    }

    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>> {
        let inner = self.inner.create_log(path, len_bytes)?;
        Ok(Arc::new(Logged { inner, watch: Arc::clone(&self.watch) }))
    }

    fn open(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn ReadFile>> {
        self.inner.open(path, options)
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        self.inner.read_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.watch.settled(self.inner.rename(from, to))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.watch.settled(self.inner.sync_dir(dir))
    }
}
