//! The operating system's files, some of them unreadable: while a switch is on, every read of the
//! chosen files fails with EIO, like reads of a device's lost sectors.
//!
//! Every other file is the system's own, with nothing in between, so that it costs the same as
//! without this. Owns: the names and the switch. Never does: fail a write, or change a byte.

use crate::watched_files::{WatchedFs, Watcher};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::{Error, ErrorKind, Result};
use windrow_env::{FileSystem, OsFs};

/// The error that Linux returns for a sector that cannot be read.
const EIO: i32 = 5;

/// The chosen files, shared by everything that was opened.
#[derive(Default)]
struct Chosen {
    names: BTreeSet<String>,
    failing: AtomicBool,
    failures: AtomicU64,
}

impl Watcher for Chosen {
    fn watches_reads(&self, path: &Path) -> bool {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| self.names.contains(name))
    }

    fn watches_writes(&self) -> bool {
        false
    }

    /// # Errors
    /// `Io`, while the switch is on.
    fn read(&self, path: &Path, offset: u64) -> Result<()> {
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

/// The switch of the chosen files.
pub struct FailingReads(Arc<Chosen>);

impl FailingReads {
    /// Chooses the files of these names, in any directory. None of them fails yet.
    pub fn new(names: impl IntoIterator<Item = String>) -> FailingReads {
        let names = names.into_iter().collect();
        FailingReads(Arc::new(Chosen { names, ..Chosen::default() }))
    }

    /// Returns the system's files; reads of the chosen ones may fail.
    pub fn files(&self) -> Arc<dyn FileSystem> {
        Arc::new(WatchedFs::new(Arc::new(OsFs::new()), self.0.clone()))
    }

    /// Turns the switch on or off.
    pub fn fail(&self, on: bool) {
        self.0.failing.store(on, Ordering::Relaxed);
    }

    /// Returns the number of reads that have failed.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_env::fs::{ReadFileOptions, ReadRequest, is_shortage};

    #[test]
    fn chosen_files_fail_while_the_switch_is_on() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["000007.sst", "000008.sst"].map(|name| dir.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, b"bytes").unwrap());
        let fs = FailingReads::new(["000007.sst".to_owned()]);
        // Also through the directory, as the engine reads.
        let anchored = fs.files().anchor(dir.path()).unwrap();
        let files =
            paths.each_ref().map(|path| anchored.open(path, ReadFileOptions::default()).unwrap());
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
