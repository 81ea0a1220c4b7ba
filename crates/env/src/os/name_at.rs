//! A place: a name, and the directory in which it is looked up.
//!
//! Owns: opening, examining and removing the entry of the name. Never does: choose the directory of
//! a path (`anchors.rs`).

use super::retry::retry;
use crate::error::io_error;
use crate::fs::{EntryKind, FileId, Stamp};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use windrow_base::Result;

/// A name in a directory.
#[derive(Clone, Copy)]
pub(super) struct NameAt<'a> {
    /// The directory.
    pub(super) at: BorrowedFd<'a>,
    /// The name in it, `.` for the directory itself; may have several components.
    pub(super) name: &'a Path,
    /// The path that was given, for messages.
    pub(super) path: &'a Path,
}

impl<'a> From<&'a Path> for NameAt<'a> {
    /// A path relative to the process's current directory.
    fn from(path: &'a Path) -> NameAt<'a> {
        NameAt { at: CWD, name: path, path }
    }
}

impl NameAt<'_> {
    /// Whether this is the directory that is held open.
    pub(super) fn is_anchor(&self) -> bool {
        self.name == Path::new(".") && self.path != self.name
    }

    /// Opens the entry. A created file may be read by all users.
    pub(super) fn open(&self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mode = Mode::from_raw_mode(0o644);
        retry(|| rustix::fs::openat(self.at, self.name, flags | OFlags::CLOEXEC, mode))
    }

    /// The entry's metadata; a link is followed.
    pub(super) fn stat(&self) -> rustix::io::Result<rustix::fs::Stat> {
        retry(|| rustix::fs::statat(self.at, self.name, AtFlags::empty()))
    }

    /// The entry's state; a link is not followed.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>> {
        match retry(|| rustix::fs::statat(self.at, self.name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => Ok(Some(stamp_of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => Ok(None),
            Err(errno) => Err(io_error("look for the file", self.path, errno)),
        }
    }

    pub(super) fn unlink(&self, flags: AtFlags) -> rustix::io::Result<()> {
        retry(|| rustix::fs::unlinkat(self.at, self.name, flags))
    }
}

pub(super) fn id_of(stat: &rustix::fs::Stat) -> FileId {
    FileId { device: stat.st_dev, inode: stat.st_ino }
}

fn stamp_of(stat: &rustix::fs::Stat) -> Stamp {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    };
    let seconds = stat.st_ctime as u64;
    let changed_ns = seconds.wrapping_mul(1_000_000_000).wrapping_add(stat.st_ctime_nsec);
    Stamp { kind, id: id_of(stat), bytes: stat.st_size as u64, changed_ns }
}

/// Refuses an entry that is no regular file.
pub(super) fn check_regular(stat: &rustix::fs::Stat, action: &str, path: &Path) -> Result<()> {
    if FileType::from_raw_mode(stat.st_mode).is_file() {
        return Ok(());
    }
    let cause = std::io::Error::new(
        std::io::ErrorKind::InvalidInput,
        "it is no regular file: move it away, or restore what was there",
    );
    Err(io_error(action, path, cause))
}
