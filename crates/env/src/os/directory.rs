//! Directories: syncing, listing, and creating them with their parents.
//!
//! Owns: the order of creating and syncing. Never does: follow a directory's name to another one
//! that took its place.

use super::anchors::Anchors;
use super::name_at::{NameAt, id_of};
use super::retry::retry;
use crate::error::io_error;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use windrow_base::Result;

/// Makes a directory's entries durable.
pub(super) fn sync(dir: NameAt<'_>) -> Result<()> {
    let failed = |errno| io_error("sync the directory", dir.path, errno);
    if dir.is_anchor() {
        return rustix::fs::fsync(dir.at).map_err(failed);
    }
    let fd = dir
        .open(OFlags::RDONLY | OFlags::DIRECTORY)
        .map_err(|errno| io_error("open the directory", dir.path, errno))?;
    rustix::fs::fsync(&fd).map_err(failed)
}

/// The names of a directory's entries.
pub(super) fn list(dir: NameAt<'_>) -> Result<Vec<String>> {
    let failed = |errno| io_error("list the directory", dir.path, errno);
    let fd = dir.open(OFlags::RDONLY | OFlags::DIRECTORY).map_err(failed)?;
    let mut names = Vec::new();
    for entry in Dir::new(fd).map_err(failed)? {
        // A name that is not UTF-8 is not one of Windrow's.
        if let Ok(name) = entry.map_err(failed)?.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Returns the directory that is held open as a place by its path.
///
/// # Errors
/// `Io` if another directory has that path now.
pub(super) fn named<'a>(dir: NameAt<'a>) -> Result<NameAt<'a>> {
    let by_name = NameAt::from(dir.path);
    match (dir.stat(), by_name.stat()) {
        (Ok(held), Ok(named)) if id_of(&held) == id_of(&named) => Ok(by_name),
        (Err(errno), _) | (_, Err(errno)) => {
            Err(io_error("look at the directory", dir.path, errno))
        }
        _ => Err(io_error("find the directory, which was moved,", dir.path, Errno::NOENT)),
    }
}

/// Creates a directory and its missing parents, outermost first, and syncs
/// the parent of each, so that no crash leaves a child under a lost name.
pub(super) fn create(anchors: &Anchors, dir: &Path) -> Result<()> {
    let mut missing: Vec<&Path> = Vec::new();
    let mut at = Some(dir);
    while let Some(path) = at.filter(|path| !path.as_os_str().is_empty()) {
        if is_dir(anchors.place(path)) {
            break;
        }
        missing.push(path);
        at = path.parent();
    }
    if missing.is_empty() {
        // It may have been created just before a crash of its creator: its name is not known to be
        // durable.
        return sync_found(anchors.place(&parent(dir)));
    }
    if let Some(found) = at.filter(|path| !path.as_os_str().is_empty()) {
        // So may have been the innermost existing directory.
        sync_found(anchors.place(&parent(found)))?;
    }
    for path in missing.into_iter().rev() {
        let NameAt { at, name, .. } = anchors.place(path);
        match retry(|| rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755))) {
            Ok(()) | Err(Errno::EXIST) if is_dir(anchors.place(path)) => {
                sync(anchors.place(&parent(path)))?
            }
            Ok(()) => return Err(io_error("create the directory", path, Errno::NOENT)),
            Err(errno) => return Err(io_error("create the directory", path, errno)),
        }
    }
    Ok(())
}

fn is_dir(place: NameAt<'_>) -> bool {
    place.stat().is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir())
}

/// Syncs the parent of a directory that existed before, where the system allows that.
fn sync_found(parent: NameAt<'_>) -> Result<()> {
    match sync(parent) {
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

/// Whether the parent cannot be synced because it belongs to others: it may not be opened, or its
/// file system is read-only or does not sync directories.
fn is_refused(error: &windrow_base::Error) -> bool {
    use std::error::Error as _;
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem};
    error.source().and_then(|source| source.downcast_ref::<std::io::Error>()).is_some_and(|cause| {
        matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem | InvalidInput)
    })
}
