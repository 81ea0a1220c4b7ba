//! The trace of a directory, which shows whether it was touched: paths, kinds, targets of links,
//! lengths and sums of bytes; and, where it is asked for, inodes and times of change.
//!
//! Owns: the comparison. Never does: look at when a file was read.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use windrow_env::checksum;

/// Each path, and the words for it.
pub type Trace = BTreeMap<PathBuf, String>;

/// Takes the trace of a directory and all below; nothing if there is none.
///
/// # Errors
/// The system's error.
pub fn of(dir: &Path, with_times: bool) -> Result<Trace, String> {
    let mut trace = Trace::new();
    look(dir, with_times, &mut trace).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(trace)
}

fn look(path: &Path, with_times: bool, trace: &mut Trace) -> std::io::Result<()> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let kind = meta.file_type();
    let mut seen = if kind.is_dir() {
        for entry in std::fs::read_dir(path)? {
            look(&entry?.path(), with_times, trace)?;
        }
        "a directory".to_owned()
    } else if kind.is_symlink() {
        format!("a link to {}", std::fs::read_link(path)?.display())
    } else if kind.is_fifo() {
        "a pipe".to_owned()
    } else {
        let bytes = std::fs::read(path)?;
        format!("{} bytes, {:08x}", bytes.len(), checksum::crc32c(&bytes))
    };
    if with_times {
        let (modified, changed) =
            ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        seen += &format!(", inode {}, {modified:?}, {changed:?}", meta.ino());
    }
    trace.insert(path.to_owned(), seen);
    Ok(())
}

/// Returns the paths that differ.
pub fn diff(before: &Trace, after: &Trace) -> String {
    let mut paths: Vec<&PathBuf> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| before.get(*path) != after.get(*path));
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_name_and_a_time_leave_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, b"one").unwrap();
        let look = || of(dir.path(), true).unwrap();
        let before = look();
        assert_eq!(before, look());
        std::fs::write(&file, b"two").unwrap();
        assert_eq!(diff(&before, &look()), file.display().to_string());
        let before = (look(), of(dir.path(), false).unwrap());
        std::fs::write(dir.path().join("b"), b"").unwrap();
        std::fs::remove_file(dir.path().join("b")).unwrap();
        assert_eq!(diff(&before.0, &look()), dir.path().display().to_string());
        assert_eq!(before.1, of(dir.path(), false).unwrap(), "only the times tell");
    }
}
