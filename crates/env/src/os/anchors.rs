//! Resolves paths through directories that are held open.
//!
//! A path under such a directory keeps its meaning from when the directory was opened, through a
//! change of the process's directory and a move or replacement of this one.
//!
//! Owns: anchors, which are the directories held open. Never does: open a file in one.

use super::name_at::NameAt;
use crate::error::io_error;
use rustix::fs::OFlags;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::Result;

/// Directories held open; of two that contain a path, the inner one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Anchors(Vec<Arc<Anchor>>);

impl Anchors {
    /// The place that a path leads to.
    pub(super) fn place<'a>(&'a self, path: &'a Path) -> NameAt<'a> {
        let within = |anchor: &'a Arc<Anchor>| Some((anchor.depth(), anchor.place(path)?));
        let innermost = self.0.iter().filter_map(within).max_by_key(|(depth, _)| *depth);
        innermost.map_or(NameAt::from(path), |(_, place)| place)
    }

    /// Opens one more directory, and holds it open.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(super) fn open(&mut self, dir: &Path) -> Result<()> {
        let anchor = Anchor::open(self.place(dir))?;
        self.0.push(Arc::new(anchor));
        Ok(())
    }
}

/// A directory that is held open.
#[derive(Debug)]
struct Anchor {
    path: PathBuf,
    fd: OwnedFd,
}

impl Anchor {
    fn open(dir: NameAt<'_>) -> Result<Anchor> {
        let fd = dir
            .open(OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|errno| io_error("open the directory", dir.path, errno))?;
        Ok(Anchor { path: dir.path.to_path_buf(), fd })
    }

    /// The place of a path that lies in this directory, or is it.
    fn place<'a>(&'a self, path: &'a Path) -> Option<NameAt<'a>> {
        let name = path.strip_prefix(&self.path).ok()?;
        let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
        Some(NameAt { at: self.fd.as_fd(), name, path })
    }

    fn depth(&self) -> usize {
        self.path.as_os_str().len()
    }
}
