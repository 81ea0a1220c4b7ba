//! Directories: making them durable, creating them with their parents.

use super::write_file::retry;
use crate::error::io_error;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use windrow_base::Result;

/// Makes a directory's entries durable.
pub(super) fn sync(dir: &Path) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = retry(|| rustix::fs::open(dir, flags, Mode::empty()))
        .map_err(|errno| io_error("open the directory", dir, errno))?;
    rustix::fs::fsync(&fd).map_err(|errno| io_error("sync the directory", dir, errno))
}

/// Creates a directory and its missing parents, outermost first, and syncs
/// the parent of each, so that no crash leaves a child under a lost name.
pub(super) fn create(dir: &Path) -> Result<()> {
    let mut missing: Vec<&Path> = Vec::new();
    let mut at = Some(dir);
    while let Some(path) = at.filter(|path| !path.as_os_str().is_empty()) {
        if path.is_dir() {
            break;
        }
        missing.push(path);
        at = path.parent();
    }
    if missing.is_empty() {
        // It may have been made just before a crash of the process that made
        // it: its name is not known to be durable.
        return sync_found(dir);
    }
    if let Some(found) = at.filter(|path| !path.as_os_str().is_empty()) {
        // So may have been the innermost that is there.
        sync_found(found)?;
    }
    for path in missing.into_iter().rev() {
        match retry(|| rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))) {
            Ok(()) | Err(Errno::EXIST) if path.is_dir() => sync(&parent(path))?,
            Ok(()) => return Err(io_error("create the directory", path, Errno::NOENT)),
            Err(errno) => return Err(io_error("create the directory", path, errno)),
        }
    }
    Ok(())
}

/// Makes the name of a directory durable that somebody made before.
fn sync_found(dir: &Path) -> Result<()> {
    match sync(&parent(dir)) {
        Err(error) if is_refused(&error) => Ok(()),
        result => result,
    }
}

/// The directory that a path is in.
pub(super) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        Some(_) => PathBuf::from("."),
        None => path.to_path_buf(),
    }
}

/// Whether it is the parent of a directory that was not made by us: it may not
/// be opened, or its file system is read-only or does not sync directories.
fn is_refused(error: &windrow_base::Error) -> bool {
    use std::error::Error as _;
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem};
    error.source().and_then(|source| source.downcast_ref::<std::io::Error>()).is_some_and(|cause| {
        matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem | InvalidInput)
    })
}
