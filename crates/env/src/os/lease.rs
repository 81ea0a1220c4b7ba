//! Leases: files that are locked until their holder drops them or dies.
//!
//! The lock is a `flock` of the file alone, by the register of this process's locks
//! (`lock_register.rs`): it dies with the process, and a forked child holds none.
//!
//! Owns: the lease's lock, and the write of its content. Never does: remove the file, whose next
//! holder may be about to lock it.

use super::file_lock::lock_one;
use super::lock_register::RegisteredLock;
use super::name_at::NameAt;
use super::retry::retry;
use crate::error::io_error;
use crate::fs::{FileId, Lease, LeaseState, LockMode};
use rustix::fs::OFlags;
use std::path::PathBuf;
use windrow_base::{ErrorKind, Result};

struct OsLease {
    locked: RegisteredLock,
    path: PathBuf,
}

impl Lease for OsLease {
    fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = |fd: &_| retry(|| rustix::io::pwrite(fd, bytes, 0));
        // A forked child writes nothing.
        let Some(written) = self.locked.with(write) else { return Ok(()) };
        match written {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(io_error("write the lease", &self.path, rustix::io::Errno::NOSPC)),
            Err(errno) => Err(io_error("write the lease", &self.path, errno)),
        }
    }

    fn id(&self) -> FileId {
        self.locked.file()
    }
}

/// As [`crate::FileSystem::lease`].
pub(super) fn take(place: NameAt<'_>) -> Result<Box<dyn Lease>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::RDWR | OFlags::CREATE;
    let locked = lock_one(place, place.path, flags, LockMode::Exclusive)?;
    let locked = locked.expect("a file that is made if it is absent");
    Ok(Box::new(OsLease { locked, path: place.path.to_path_buf() }))
}

/// As [`crate::FileSystem::lease_state`].
pub(super) fn state(place: NameAt<'_>) -> Result<LeaseState> {
    // Tested without a descriptor, since there may be none left.
    if place.stamp()?.is_none() {
        return Ok(LeaseState::Absent);
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::RDONLY;
    match lock_one(place, place.path, flags, LockMode::Shared) {
        Ok(None) => Ok(LeaseState::Absent),
        Ok(Some(_)) => Ok(LeaseState::Free),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(LeaseState::Live),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::{LeaseState, WriteOptions};
    use crate::sys::fork::in_child;
    use crate::{FileSystem, OsFs};

    #[test]
    fn a_lease_is_held_once_and_its_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("READER-000000");
        let fs = OsFs::new();
        assert_eq!(fs.lease_state(&path).unwrap(), LeaseState::Absent);
        assert!(!path.exists(), "a look makes no file");
        let lease = fs.lease(&path).unwrap();
        lease.write(b"here").unwrap();
        assert_eq!(fs.lease_state(&path).unwrap(), LeaseState::Live);
        assert!(fs.lease(&path).is_err());
        assert_eq!(fs.read_all(&path).unwrap(), b"here");
        assert!(in_child(|| {
            let elsewhere = fs.lease_state(&path).unwrap() == LeaseState::Live;
            elsewhere && fs.lease(&path).is_err()
        }));
        drop(lease);
        assert_eq!(fs.lease_state(&path).unwrap(), LeaseState::Free);
        let again = fs.lease(&path).unwrap();
        assert_eq!(fs.read_all(&path).unwrap(), b"here");
        drop(again);
    }

    #[test]
    fn a_lease_whose_file_was_removed_is_no_more_and_its_place_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("READER-000000");
        let fs = OsFs::new();
        let lost = fs.lease(&path).unwrap();
        fs.remove(&path).unwrap();
        assert_eq!(fs.lease_state(&path).unwrap(), LeaseState::Absent);
        let next = fs.lease(&path).unwrap();
        next.write(b"next").unwrap();
        lost.write(b"lost").unwrap();
        assert_eq!(fs.read_all(&path).unwrap(), b"next");
        let there = fs.stamp(&path).unwrap().map(|stamp| stamp.id);
        assert!(there == Some(next.id()) && there != Some(lost.id()));
        drop(lost);
        assert_eq!(fs.lease_state(&path).unwrap(), LeaseState::Live);
    }

    #[test]
    fn a_lease_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("READER-000000"), dir.path().join("other"));
        let mut file = OsFs::new().create(&other, WriteOptions::default()).unwrap();
        file.append(b"precious").and_then(|()| file.finish()).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(OsFs::new().lease(&path).is_err());
        assert!(OsFs::new().lease_state(&path).is_err());
        assert_eq!(OsFs::new().read_all(&other).unwrap(), b"precious");
    }
}
