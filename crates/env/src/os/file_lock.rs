//! The advisory lock that keeps a second opener, in this process or another, out of a database.
//!
//! A writer locks the lock file and the directory by `flock`, which dies with its holder. A reader
//! locks the file or, if there is none (in a copy that is opened for reading), the directory. A
//! register of this process's own locks is asked first: on network file systems `flock` is a lock
//! of the whole process, and closing a second descriptor would drop the first one's lock.
//!
//! Owns: the files and directories that a lock consists of. Never does: wait for a lock, or follow
//! a link.

use super::lock_register::{RegisteredLock, register};
use super::name_at::{NameAt, check_regular, id_of};
use super::retry::retry;
use crate::error::io_error;
use crate::fs::{FileId, FileLock, LockMode};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use windrow_base::{Error, ErrorKind, Result};

/// A writer's lock is on the file and its directory. A reader's is on the file, or on the directory
/// if there is no file, since a reader creates none.
struct OsFileLock {
    locks: Vec<RegisteredLock>,
    /// Whether the first of them is the file's.
    has_file: bool,
}

impl FileLock for OsFileLock {
    fn id(&self) -> Option<FileId> {
        self.locks.first().filter(|_| self.has_file).map(RegisteredLock::file)
    }
}

/// Locks the lock file `place` in the directory `dir`. Both are looked up in a directory that is
/// held open, if the caller has one.
pub(super) fn lock(
    place: NameAt<'_>,
    dir: NameAt<'_>,
    mode: LockMode,
) -> Result<Box<dyn FileLock>> {
    let path = place.path;
    let mut locks = Vec::new();
    // A link is not followed: the pid would be written into its target.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = match mode {
        LockMode::Exclusive => flags | OFlags::RDWR | OFlags::CREATE,
        LockMode::Shared => flags | OFlags::RDONLY,
    };
    let file = lock_one(place, path, flags, mode)?;
    let has_file = file.is_some();
    locks.extend(file);
    if mode == LockMode::Exclusive || !has_file {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match lock_one(dir, path, flags, mode) {
            Ok(dir) => locks.extend(dir),
            Err(error) if error.kind() == ErrorKind::Busy => return Err(error),
            // Network file systems lock no directory: a reader without a lock file has no lock
            // there.
            Err(_) => {}
        }
    }
    if mode == LockMode::Exclusive {
        let written = locks[0].with(write_pid).unwrap_or(Ok(()));
        written.map_err(|errno| io_error("write the lock file", path, errno))?;
    }
    Ok(Box::new(OsFileLock { locks, has_file }))
}

/// Locks a file or directory, on behalf of the lock file at `name`; `None` if it does not exist.
pub(super) fn lock_one(
    place: NameAt<'_>,
    name: &Path,
    flags: OFlags,
    mode: LockMode,
) -> Result<Option<RegisteredLock>> {
    let path = place.path;
    let is_dir = flags.contains(OFlags::DIRECTORY);
    // A directory may be reached by a link; a lock file may not.
    let named = || match is_dir {
        true => place.stat().ok().map(|stat| id_of(&stat)),
        false => place.stamp().ok().flatten().map(|stamp| stamp.id),
    };
    let mut register = register();
    loop {
        if named().is_some_and(|known| register.conflicts(known, mode)) {
            return Err(busy(name, &format!("process {} (this one)", std::process::id())));
        }
        let fd = match place.open(flags) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if mode == LockMode::Shared => return Ok(None),
            Err(Errno::LOOP) => return Err(is_link(path)),
            Err(errno) => return Err(io_error("open the lock file", path, errno)),
        };
        let stat = rustix::fs::fstat(&fd)
            .map_err(|errno| io_error("look at the lock file", path, errno))?;
        if !is_dir {
            check_regular(&stat, "lock the file", path)?;
        }
        take(&fd, name, mode)?;
        let id = id_of(&stat);
        if named() != Some(id) {
            // The database was destroyed between open and lock: this file has lost its name.
            continue;
        }
        return Ok(Some(register.add(fd, id, mode)));
    }
}

fn is_link(path: &Path) -> Error {
    let cause = std::io::Error::new(
        std::io::ErrorKind::InvalidInput,
        "it is a symbolic link, and what it leads to is not the database's: remove the link",
    );
    io_error("lock the file", path, cause)
}

fn take(fd: &OwnedFd, path: &Path, mode: LockMode) -> Result<()> {
    let operation = match mode {
        LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        LockMode::Shared => FlockOperation::NonBlockingLockShared,
    };
    match retry(|| rustix::fs::flock(fd, operation)) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(busy(path, &holder(fd))),
        Err(errno) => Err(io_error("lock the database", path, errno)),
    }
}

/// Describes the lock's holder. The pid in the file is that of the last writer; readers write
/// nothing, so they are tested for first.
fn holder(fd: &OwnedFd) -> String {
    if rustix::fs::flock(fd, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = rustix::fs::flock(fd, FlockOperation::Unlock);
        return "another process, for reading".into();
    }
    let mut text = [0u8; 20];
    let len = rustix::io::pread(fd, &mut text, 0).unwrap_or(0);
    match std::str::from_utf8(&text[..len]).ok().and_then(|t| t.trim().parse::<u32>().ok()) {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

fn busy(path: &Path, holder: &str) -> Error {
    Error::new(ErrorKind::Busy, format!("database is open in {holder}"))
        .with_file(path.display().to_string())
}

fn write_pid(fd: &OwnedFd) -> rustix::io::Result<()> {
    let text = format!("{}\n", std::process::id());
    retry(|| rustix::fs::ftruncate(fd, 0))?;
    retry(|| rustix::io::pwrite(fd, text.as_bytes(), 0)).map(|_| ())
}
