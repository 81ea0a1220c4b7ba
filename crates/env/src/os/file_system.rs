//! [`FileSystem`] over system calls.
//!
//! Owns: the process's limit of open files, and the anchors. Never does: keep an open file for
//! itself.

use super::anchors::Anchors;
use super::log_file::OsLogFile;
use super::name_at::NameAt;
use super::read_file::OsReadFile;
use super::retry::retry;
use super::write_file::{OsWriteFile, finish_all};
use super::{directory, file_lock, lease, read_many};
use crate::error::io_error;
use crate::fs::{
    FileLock, Lease, LeaseState, LockMode, ReadFileOptions, ReadRequest, Stamp, WriteOptions,
};
use crate::{FileSystem, LogFile, ReadFile, WriteFile};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result};

/// The limit of descriptors is raised up to this where the hard limit allows.
const OPEN_FILES_WANTED: u64 = 65_536;
/// The least number of descriptors left to the rest of the process, which else gets an eighth.
const OPEN_FILES_RESERVE_MIN: u64 = 32;

/// The operating system's files.
#[derive(Clone, Debug)]
pub struct OsFs {
    map_logs: bool,
    open_files_max: usize,
    anchors: Anchors,
}

impl OsFs {
    /// A file system that writes its logs by `pwrite`. Raises the process's
    /// soft limit of open files.
    pub fn new() -> OsFs {
        OsFs { map_logs: false, open_files_max: raise_open_files(), anchors: Anchors::default() }
    }

    /// Sets whether logs are written through memory mappings, where that is safe against a full
    /// device, instead of `pwrite` (the default). A mapping costs a tenth per record, until the log
    /// is first synced; against it, a file system that shuts down under a writer may end the
    /// process by SIGBUS where `pwrite` would return an error.
    #[must_use]
    pub fn with_mapped_logs(mut self, map: bool) -> OsFs {
        self.map_logs = map;
        self
    }

    /// The place that a path leads to.
    fn place<'a>(&'a self, path: &'a Path) -> NameAt<'a> {
        self.anchors.place(path)
    }
}

impl Default for OsFs {
    fn default() -> OsFs {
        OsFs::new()
    }
}

fn raise_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // A limit that is not given does not matter.
    let hard = limit.maximum.unwrap_or(OPEN_FILES_WANTED);
    let wanted = hard.min(OPEN_FILES_WANTED);
    let mut soft = limit.current.unwrap_or(OPEN_FILES_WANTED);
    if soft < wanted {
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            soft = wanted;
        }
    }
    let soft = soft.min(OPEN_FILES_WANTED);
    soft.saturating_sub((soft / 8).max(OPEN_FILES_RESERVE_MIN)).max(8) as usize
}

impl FileSystem for OsFs {
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        let path = std::path::absolute(path)
            .map_err(|cause| io_error("find the directory of this process for", path, cause))?;
        // Drops a slash at the end, which would make a link at the end be followed.
        Ok(path.components().collect())
    }

    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>> {
        let mut anchored = self.clone();
        anchored.anchors.open(dir)?;
        Ok(Arc::new(anchored))
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        self.place(path).stamp()
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(OsWriteFile::create(self.place(path), options)?))
    }

    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(OsLogFile::create(self.place(path), len_bytes, self.map_logs)?))
    }

    fn finish_all(&self, files: Vec<Box<dyn WriteFile>>) -> Result<()> {
        finish_all(files)
    }

    fn open(&self, path: &Path, options: ReadFileOptions) -> Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(OsReadFile::open(self.place(path), options)?))
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        let file = OsReadFile::open(self.place(path), ReadFileOptions::default())?;
        let len = usize::try_from(file.len())
            .map_err(|_| io_error("read the file", path, Errno::FBIG))?;
        let mut bytes = vec![0; len];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        read_many::read_many(requests);
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        directory::list(self.place(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match self.place(path).stat() {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(io_error("look for the file", path, errno)),
        }
    }

    fn len(&self, path: &Path) -> Result<u64> {
        let stat = self.place(path).stat();
        let stat = stat.map_err(|errno| io_error("look at the file", path, errno))?;
        Ok(stat.st_size as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (self.place(from), self.place(to));
        retry(|| rustix::fs::renameat(old.at, old.name, new.at, new.name))
            .map_err(|errno| io_error(&format!("rename the file to {}", to.display()), from, errno))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.place(path).unlink(AtFlags::empty());
        removed.map_err(|errno| io_error("remove the file", path, errno))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (self.place(from), self.place(to));
        let none = AtFlags::empty();
        match retry(|| rustix::fs::linkat(old.at, old.name, new.at, new.name, none)) {
            Ok(()) => Ok(()),
            Err(errno @ (Errno::PERM | Errno::OPNOTSUPP | Errno::XDEV | Errno::MLINK)) => {
                let cause = std::io::Error::from(errno);
                let message = format!("cannot link the file to {}: {cause}", to.display());
                Err(Error::new(ErrorKind::NotSupported, message)
                    .with_file(from.display().to_string())
                    .with_source(cause))
            }
            Err(errno) => Err(io_error(&format!("link the file to {}", to.display()), from, errno)),
        }
    }

    fn create_dir(&self, dir: &Path) -> Result<()> {
        directory::create(&self.anchors, dir)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let place = self.place(dir);
        // An anchor is removed by its name, if that still belongs to it.
        let by_name = if place.is_anchor() { directory::named(place)? } else { place };
        by_name
            .unlink(AtFlags::REMOVEDIR)
            .map_err(|errno| io_error("remove the directory", dir, errno))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        directory::sync(self.place(dir))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        let dir = directory::parent(path);
        file_lock::lock(self.place(path), self.place(&dir), mode)
    }

    fn lease(&self, path: &Path) -> Result<Box<dyn Lease>> {
        lease::take(self.place(path))
    }

    fn lease_state(&self, path: &Path) -> Result<LeaseState> {
        lease::state(self.place(path))
    }

    fn open_files_max(&self) -> usize {
        self.open_files_max
    }

    fn spare_memory(&self, bytes: u64) -> u64 {
        crate::sys::buffer::spare_memory(bytes)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        let refused = |errno| io_error("ask for free space", dir, errno);
        let place = self.place(dir);
        let stat = match place.is_anchor() {
            true => retry(|| rustix::fs::fstatvfs(place.at)),
            false => retry(|| rustix::fs::statvfs(dir)),
        };
        stat.map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize)).map_err(refused)
    }
}
