//! Directories of the benchmark's databases.
//!
//! Owns: making, copying and removing them. Never does: touch an open database.

#![allow(clippy::disallowed_methods, reason = "files of a benchmark, on the real disk")]

use crate::store::Result;
use std::path::Path;

/// Makes a directory and those above it.
pub(super) fn make_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()).into())
}

/// Removes a directory with its contents, if it exists.
pub(super) fn remove_dir(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {e}", dir.display()).into())
        }
        _ => Ok(()),
    }
}

/// Endings of files that no engine changes once they are written: a copy shares them.
const UNCHANGED: [&str; 2] = ["sst", "ldb"];

/// Copies a closed database, of any engine: every file and directory below `from`. A unit begins
/// only after the copy is synced.
pub(super) fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    make_dir(to)?;
    let named = |e: std::io::Error| format!("{}: {e}", from.display());
    for entry in std::fs::read_dir(from).map_err(named)? {
        let entry = entry.map_err(named)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(named)?.is_dir() {
            copy_dir(&source, &target)?;
        } else if !is_shared(&source, &target) {
            std::fs::copy(&source, &target).map_err(|e| format!("{}: {e}", source.display()))?;
        }
    }
    Ok(())
}

/// Gives a table a second name, where the file system can; returns whether it did. A copy of many
/// gigabytes would take as much room again, and minutes.
fn is_shared(source: &Path, target: &Path) -> bool {
    let ending = source.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| UNCHANGED.contains(&ending))
        && std::fs::hard_link(source, target).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_every_file() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        make_dir(&from.join("below/empty")).unwrap();
        std::fs::write(from.join("a"), b"one").unwrap();
        std::fs::write(from.join("7.sst"), b"table").unwrap();
        std::fs::write(from.join("below/b"), vec![7; 100_000]).unwrap();
        copy_dir(&from, &to).unwrap();
        assert_eq!(std::fs::read(to.join("a")).unwrap(), b"one");
        assert_eq!(std::fs::read(to.join("below/b")).unwrap(), vec![7; 100_000]);
        assert!(to.join("below/empty").is_dir());
        assert_eq!(std::fs::read(to.join("7.sst")).unwrap(), b"table");
        // This file is the copy's own: a write to one is not in the other.
        std::fs::write(to.join("a"), b"two").unwrap();
        assert_eq!(std::fs::read(from.join("a")).unwrap(), b"one");
        let problem = copy_dir(&dir.path().join("none"), &to).unwrap_err().to_string();
        assert!(problem.contains("none"), "{problem}");
        remove_dir(&to).unwrap();
        remove_dir(&to).unwrap();
        assert!(!to.exists());
    }
}
