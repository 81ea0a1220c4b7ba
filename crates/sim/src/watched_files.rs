//! A file system that tells a watcher of some operations: of reads before they happen, which may
//! then fail, of writes to logs, and of syncs and renames once they have returned.
//!
//! Owns: which operations are told. Everything else is done by the file system inside, whose own
//! files are given out where the watcher does not ask for them. Never does: change a result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::Result;
use windrow_env::fs::{
    FileLock, Lease, LeaseState, LockMode, ReadFileOptions, ReadRequest, Stamp, WriteOptions,
};
use windrow_env::{Buffer, FileSystem, LogFile, ReadFile, WriteFile};

/// Is told of operations.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// Whether it is told of reads of this file.
    fn watches_reads(&self, _path: &Path) -> bool {
        false
    }

    /// Whether it is told of writes to logs, and of syncs of any file that is written.
    fn watches_writes(&self) -> bool {
        true
    }

    /// Is told of a read that is about to begin.
    ///
    /// # Errors
    /// The error that it fails with.
    fn read(&self, _path: &Path, _offset: u64) -> Result<()> {
        Ok(())
    }

    /// Is told of a write to a log that is about to begin.
    fn log_write(&self) {}

    /// Is told of a write to a log that has returned.
    fn log_written(&self) {}

    /// Is told of a sync or rename that has returned.
    fn settled(&self) {}
}

/// A watched file system. Clones are the same one.
pub(crate) struct WatchedFs<W> {
    inner: Arc<dyn FileSystem>,
    watcher: Arc<W>,
}

impl<W> Clone for WatchedFs<W> {
    fn clone(&self) -> WatchedFs<W> {
        WatchedFs { inner: self.inner.clone(), watcher: self.watcher.clone() }
    }
}

impl<W: Watcher> WatchedFs<W> {
    /// Wraps a file system.
    pub(crate) fn new(inner: Arc<dyn FileSystem>, watcher: Arc<W>) -> WatchedFs<W> {
        WatchedFs { inner, watcher }
    }

    fn settled<T>(&self, result: Result<T>) -> Result<T> {
        self.watcher.settled();
        result
    }
}

/// A file of the one inside, and the watcher.
struct Watched<F, W> {
    inner: F,
    watcher: Arc<W>,
}

/// Has no `raw_fd`, so that each read of it passes here.
impl<W: Watcher> ReadFile for Watched<Arc<dyn ReadFile>, W> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.watcher.read(self.inner.path(), offset)?;
        self.inner.read_at(offset, buf)
    }

    fn read_pieces_at(&self, offset: u64, pieces: &mut [Buffer]) -> Result<()> {
        self.watcher.read(self.inner.path(), offset)?;
        self.inner.read_pieces_at(offset, pieces)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        self.inner.read_ahead(offset, len);
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn direct_align(&self) -> Option<usize> {
        self.inner.direct_align()
    }
}

impl<W: Watcher> WriteFile for Watched<Box<dyn WriteFile>, W> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.append(bytes)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn sync(&mut self) -> Result<()> {
        let result = self.inner.sync();
        self.watcher.settled();
        result
    }

    fn finish(&mut self) -> Result<()> {
        let result = self.inner.finish();
        self.watcher.settled();
        result
    }
}

impl<W: Watcher> LogFile for Watched<Arc<dyn LogFile>, W> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.watcher.log_write();
        let result = self.inner.write_at(offset, bytes);
        self.watcher.log_written();
        result
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
        let result = self.inner.sync();
        self.watcher.settled();
        result
    }
}

/// Methods that are passed on to the file system inside, as they are.
macro_rules! passed_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            self.inner.$name($($argument),*)
        })*
    };
}

impl<W: Watcher> FileSystem for WatchedFs<W> {
    passed_on! {
        fn absolute(path: &Path) -> Result<PathBuf>;
        fn stamp(path: &Path) -> Result<Option<Stamp>>;
        fn read_many(requests: &mut [ReadRequest<'_>]) -> ();
        fn list(dir: &Path) -> Result<Vec<String>>;
        fn exists(path: &Path) -> Result<bool>;
        fn len(path: &Path) -> Result<u64>;
        fn remove(path: &Path) -> Result<()>;
        fn link(from: &Path, to: &Path) -> Result<()>;
        fn create_dir(dir: &Path) -> Result<()>;
        fn remove_dir(dir: &Path) -> Result<()>;
        fn lock(path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>>;
        fn lease(path: &Path) -> Result<Box<dyn Lease>>;
        fn lease_state(path: &Path) -> Result<LeaseState>;
        fn open_files_max() -> usize;
        fn free_bytes(dir: &Path) -> Result<u64>;
    }

    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>> {
        Ok(Arc::new(WatchedFs { inner: self.inner.anchor(dir)?, ..self.clone() }))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        let inner = self.inner.create(path, options)?;
        if !self.watcher.watches_writes() {
            return Ok(inner);
        }
        Ok(Box::new(Watched { inner, watcher: self.watcher.clone() }))
    }

    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>> {
        let inner = self.inner.create_log(path, len_bytes)?;
        if !self.watcher.watches_writes() {
            return Ok(inner);
        }
        Ok(Arc::new(Watched { inner, watcher: self.watcher.clone() }))
    }

    fn finish_all(&self, files: Vec<Box<dyn WriteFile>>) -> Result<()> {
        if !self.watcher.watches_writes() {
            return self.inner.finish_all(files);
        }
        files.into_iter().try_for_each(|mut file| file.finish())
    }

    fn open(&self, path: &Path, options: ReadFileOptions) -> Result<Arc<dyn ReadFile>> {
        let inner = self.inner.open(path, options)?;
        if !self.watcher.watches_reads(path) {
            return Ok(inner);
        }
        Ok(Arc::new(Watched { inner, watcher: self.watcher.clone() }))
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        if self.watcher.watches_reads(path) {
            self.watcher.read(path, 0)?;
        }
        self.inner.read_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.settled(self.inner.rename(from, to))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.settled(self.inner.sync_dir(dir))
    }
}
