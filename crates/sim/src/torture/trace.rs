//! The trace of a directory, which shows whether it was touched: names, inodes, lengths, times of
//! change, and the bytes.
//!
//! Owns: the comparison. Never does: look at when a file was read.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use windrow_env::checksum;

/// Inode, length, modification and change in seconds and ns, checksum of the bytes.
type Look = (u64, u64, (i64, i64), (i64, i64), u32);

/// The traces of a directory and its files.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace(BTreeMap<String, Look>);

/// Takes the trace of a directory.
///
/// # Errors
/// The system's error.
pub fn of(dir: &Path) -> Result<Trace, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    let mut files = BTreeMap::from([(".".to_owned(), look(dir).map_err(failed)?)]);
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, look(&entry.path()).map_err(failed)?);
    }
    Ok(Trace(files))
}

fn look(path: &Path) -> std::io::Result<Look> {
    let meta = std::fs::metadata(path)?;
    let bytes = if meta.is_file() { std::fs::read(path)? } else { Vec::new() };
    let sum = checksum::crc32c(&bytes);
    let modified = (meta.mtime(), meta.mtime_nsec());
    Ok((meta.ino(), meta.len(), modified, (meta.ctime(), meta.ctime_nsec()), sum))
}

/// Returns the names that differ.
pub fn diff(before: &Trace, after: &Trace) -> String {
    let names = before.0.keys().chain(after.0.keys());
    let mut differing: Vec<&str> =
        names.filter(|n| before.0.get(*n) != after.0.get(*n)).map(String::as_str).collect();
    differing.dedup();
    differing.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_name_and_a_time_leave_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, b"one").unwrap();
        let before = of(dir.path()).unwrap();
        assert_eq!(before, of(dir.path()).unwrap());
        std::fs::write(&file, b"two").unwrap();
        assert_eq!(diff(&before, &of(dir.path()).unwrap()), "a");
        let before = of(dir.path()).unwrap();
        std::fs::write(dir.path().join("b"), b"").unwrap();
        std::fs::remove_file(dir.path().join("b")).unwrap();
        assert_eq!(diff(&before, &of(dir.path()).unwrap()), ".");
    }
}
