//! The advisory lock that keeps two processes, or one twice, out of a database.
//!
//! `flock`, which dies with its holder, on the lock file and, for who finds none
//! (a copy that is opened for reading), on the directory. A register of this process's own locks
//! stands before it: on network file systems `flock` is a lock of the whole
//! process, and closing a second descriptor would drop the first one's.

use super::directory;
use super::write_file::retry;
use crate::error::io_error;
use crate::fs::{FileLock, LockMode};
use crate::sync::real::Mutex;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use windrow_base::{Error, ErrorKind, Result};

/// A file, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

struct Held {
    identity: Identity,
    mode: LockMode,
}

/// What this process holds; one entry per guard.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// One descriptor that is locked.
struct Locked {
    fd: OwnedFd,
    identity: Identity,
    mode: LockMode,
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        // Explicit, since a child process may have inherited the descriptor.
        let _ = rustix::fs::flock(&self.fd, FlockOperation::Unlock);
        let place = held.iter().position(|h| h.identity == self.identity && h.mode == self.mode);
        if let Some(place) = place {
            held.swap_remove(place);
        }
    }
}

/// A writer's lock on the file and its directory; a reader's on the file, or
/// on the directory where there is no file, which a reader does not make.
struct OsFileLock(#[allow(dead_code)] Vec<Locked>); // held until it drops

impl FileLock for OsFileLock {}

pub(super) fn lock(path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
    let mut locks = Vec::new();
    let flags = match mode {
        LockMode::Exclusive => OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC,
        LockMode::Shared => OFlags::RDONLY | OFlags::CLOEXEC,
    };
    let file = lock_one(path, path, flags, mode)?;
    let without_file = file.is_none();
    locks.extend(file);
    if mode == LockMode::Exclusive || without_file {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match lock_one(&directory::parent(path), path, flags, mode) {
            Ok(dir) => locks.extend(dir),
            Err(error) if error.kind() == ErrorKind::Busy => return Err(error),
            // Network file systems lock no directory: there a reader without a lock file has none.
            Err(_) => {}
        }
    }
    if mode == LockMode::Exclusive {
        let file = &locks[0].fd;
        write_pid(file).map_err(|errno| io_error("write the lock file", path, errno))?;
    }
    Ok(Box::new(OsFileLock(locks)))
}

/// Locks a file or directory, on behalf of the lock file at `name`; `None` if
/// it is not there.
fn lock_one(path: &Path, name: &Path, flags: OFlags, mode: LockMode) -> Result<Option<Locked>> {
    let mut held = HELD.lock();
    loop {
        let conflict = |h: &Held| h.mode == LockMode::Exclusive || mode == LockMode::Exclusive;
        let known = identity(path).ok();
        if held.iter().any(|h| Some(h.identity) == known && conflict(h)) {
            return Err(busy(name, &format!("process {} (this one)", std::process::id())));
        }
        let fd = match retry(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if mode == LockMode::Shared => return Ok(None),
            Err(errno) => return Err(io_error("open the lock file", path, errno)),
        };
        take(&fd, name, mode)?;
        let stat = rustix::fs::fstat(&fd)
            .map_err(|errno| io_error("look at the lock file", path, errno))?;
        let locked = Identity { device: stat.st_dev, inode: stat.st_ino };
        if identity(path) != Ok(locked) {
            // The database was destroyed between open and lock: this file has no name.
            continue;
        }
        held.push(Held { identity: locked, mode });
        return Ok(Some(Locked { fd, identity: locked, mode }));
    }
}

fn identity(path: &Path) -> rustix::io::Result<Identity> {
    let stat = rustix::fs::stat(path)?;
    Ok(Identity { device: stat.st_dev, inode: stat.st_ino })
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

/// Who holds the lock, in words. The pid in the file is that of the last
/// writer; readers write nothing, so their presence is tried first.
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
