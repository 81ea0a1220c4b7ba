//! The eviction of a store's files from the page cache, for stores that cannot
//! bypass it.
//!
//! The kernel keeps mapped pages: an adapter sees to it that no file is mapped.
//!
//! Owns: the files of one directory. A store's own caches are not touched.
//! Never does: ask for privileges, as dropping all caches of the machine would.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at another store's files, as the kernel keeps them"
)]

use crate::store::Result;
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;

/// The open files of a store that does not change meanwhile.
pub(super) struct Evictor(Vec<File>);

impl Evictor {
    /// Opens the files of `dir` and its directories.
    pub(super) fn new(dir: &Path) -> Result<Evictor> {
        let mut files = Vec::new();
        open_all(dir, &mut files)?;
        Ok(Evictor(files))
    }

    /// Drops the pages of the files that the kernel caches.
    pub(super) fn evict(&self) -> Result<()> {
        self.0.iter().try_for_each(|file| Ok(fadvise(file, 0, None, Advice::DontNeed)?))
    }
}

fn open_all(dir: &Path, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        match path.is_dir() {
            true => open_all(&path, files)?,
            false => files.push(File::open(&path)?),
        }
    }
    Ok(())
}
