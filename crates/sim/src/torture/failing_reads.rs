//! The operating system's files, some of them unreadable: while a switch is on, every read of the
//! chosen files fails with EIO, like reads of a device's lost sectors.
//!
//! Every other file is the system's own, with nothing in between, so that it costs the same as
//! without this. Owns: the names and the switch. Never does: fail a write, or change a byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::{Error, ErrorKind, Result};
use windrow_env::fs::{
    FileLock, Lease, LeaseState, LockMode, ReadOptions, ReadRequest, Stamp, WriteOptions,
};
use windrow_env::{FileSystem, LogFile, OsFs, ReadFile, WriteFile};

/// The error that Linux returns for a sector that cannot be read.
const EIO: i32 = 5;

/// The chosen files, shared by everything that was opened.
#[derive(Default)]
struct Chosen {
    names: BTreeSet<String>,
    failing: AtomicBool,
    failures: AtomicU64,
}

impl Chosen {
    fn has(&self, path: &Path) -> bool {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| self.names.contains(name))
    }

    /// # Errors
    /// `Io`, while the switch is on.
    fn check(&self, path: &Path, offset: u64) -> Result<()> {
        if !self.failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        let cause = std::io::Error::from_raw_os_error(EIO);
        Err(Error::new(ErrorKind::Io, format!("cannot read the file: {cause}"))
            .with_file(path.display().to_string())
            .with_offset(offset)
            .with_source(cause))
    }
}

/// The system's files; chosen ones may fail. Clones share the switch.
#[derive(Clone)]
pub struct FailingReads {
    inner: Arc<dyn FileSystem>,
    chosen: Arc<Chosen>,
}

impl FailingReads {
    /// Wraps the system's files. Files of these names are the chosen ones, in any directory. None
    /// of them fails yet.
    pub fn new(names: impl IntoIterator<Item = String>) -> FailingReads {
        let chosen = Chosen { names: names.into_iter().collect(), ..Chosen::default() };
        FailingReads { inner: Arc::new(OsFs::new()), chosen: Arc::new(chosen) }
    }

    /// Turns the switch on or off.
    pub fn fail(&self, on: bool) {
        self.chosen.failing.store(on, Ordering::Relaxed);
    }

    /// Returns the number of reads that have failed.
    pub fn failures(&self) -> u64 {
        self.chosen.failures.load(Ordering::Relaxed)
    }
}

/// An open chosen file.
struct ChosenFile {
    inner: Arc<dyn ReadFile>,
    chosen: Arc<Chosen>,
}

/// Has no `raw_fd`, so that each read of it passes here.
impl ReadFile for ChosenFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.chosen.check(self.inner.path(), offset)?;
        self.inner.read_at(offset, buf)
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

impl FileSystem for FailingReads {
    forward_to_inner!();

    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>> {
        let inner = self.inner.anchor(dir)?;
        Ok(Arc::new(FailingReads { inner, chosen: Arc::clone(&self.chosen) }))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        self.inner.create(path, options)
    }

    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>> {
        self.inner.create_log(path, len_bytes)
    }

    fn finish_all(&self, files: Vec<Box<dyn WriteFile>>) -> Result<()> {
        self.inner.finish_all(files)
    }

    fn open(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn ReadFile>> {
        let inner = self.inner.open(path, options)?;
        if !self.chosen.has(path) {
            return Ok(inner);
        }
        Ok(Arc::new(ChosenFile { inner, chosen: Arc::clone(&self.chosen) }))
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        if self.chosen.has(path) {
            self.chosen.check(path, 0)?;
        }
        self.inner.read_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_env::fs::is_shortage;

    #[test]
    fn chosen_files_fail_while_the_switch_is_on() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["000007.sst", "000008.sst"].map(|name| dir.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, b"bytes").unwrap());
        let fs = FailingReads::new(["000007.sst".to_owned()]);
        // Also through the directory, as the engine reads.
        let anchored = fs.anchor(dir.path()).unwrap();
        let files =
            paths.each_ref().map(|path| anchored.open(path, ReadOptions::default()).unwrap());
        let read_many = || {
            let mut bufs = [[0; 5], [0; 5]];
            let mut requests = Vec::new();
            for (file, buf) in files.iter().zip(&mut bufs) {
                requests.push(ReadRequest { file: &**file, offset: 0, buf, result: Ok(()) });
            }
            anchored.read_many(&mut requests);
            let done = requests.into_iter().map(|request| request.result.is_ok()).collect();
            (done, bufs)
        };
        assert_eq!(read_many(), (vec![true, true], [*b"bytes", *b"bytes"]));
        fs.fail(true);
        assert_eq!(read_many().0, [false, true]);
        let error = files[0].read_at(0, &mut [0; 5]).unwrap_err();
        assert_eq!((error.kind(), is_shortage(&error)), (ErrorKind::Io, false));
        assert_eq!(error.file(), paths[0].to_str());
        assert!(anchored.read_all(&paths[0]).is_err() && anchored.read_all(&paths[1]).is_ok());
        assert_eq!(fs.failures(), 3);
        fs.fail(false);
        assert_eq!(read_many().0, [true, true]);
    }
}
