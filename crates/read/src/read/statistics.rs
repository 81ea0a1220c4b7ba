//! The estimates that reads have made of a tree's files, in the form in which they go into the
//! files' metadata: so they survive a close, and a move of the file.
//!
//! Owns: the estimates of one moment, and the edits that store them. Never does: count queries
//! (`access.rs`), or log an edit.

use crate::read::access::Access;
use crate::read::view::ReadView;
use std::collections::HashMap;
use std::sync::Arc;
use windrow_base::FileNumber;
use windrow_plan::filter_memory::merlin::{self, Estimate};
use windrow_plan::tree::{Edit, File, Version};

/// Estimates of a tree's files at one moment.
#[derive(Default)]
pub struct Estimates {
    known: HashMap<FileNumber, Estimate>,
    /// Queries recorded by then, to which the estimates refer.
    pub queries: u64,
}

impl Estimates {
    /// Returns the estimates of the files of a view.
    pub fn of(access: &Access, view: &ReadView) -> Estimates {
        let mut known = HashMap::new();
        if access.is_on() {
            for file in view.levels.iter().flat_map(|level| level.files()) {
                let record = file.table.record.get().map(|record| &**record);
                if let Some(estimate) = access.estimate(&file.file, record) {
                    known.insert(file.file.number, estimate);
                }
            }
        }
        Estimates { known, queries: access.queries() }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// All of them, by file.
    pub fn iter(&self) -> impl Iterator<Item = (FileNumber, &Estimate)> {
        self.known.iter().map(|(file, estimate)| (*file, estimate))
    }

    /// Returns the estimate of a file.
    pub fn get(&self, file: &File) -> Option<Estimate> {
        self.known.get(&file.number).copied()
    }

    /// Returns the edit that puts them into the metadata of a version's files: each leaves and
    /// comes back to its place.
    pub fn edit(&self, version: &Version) -> Edit {
        let mut edit = Edit::default();
        for (level, part, file) in version.files() {
            if let Some(file_now) = self.stored_with(file) {
                edit.removed.push((level, part, file.number));
                edit.added.push((level, part, file_now));
            }
        }
        edit
    }

    /// Returns the edit, with today's estimates in the metadata of the files that it adds and that
    /// existed before: a move writes the metadata again, and it must not be stale.
    pub fn refresh(&self, mut edit: Edit) -> Edit {
        for (_, _, file) in &mut edit.added {
            if let Some(file_now) = self.stored_with(file) {
                *file = file_now;
            }
        }
        edit
    }

    /// Returns a file with its estimate in its metadata, if there is one.
    fn stored_with(&self, file: &File) -> Option<Arc<File>> {
        let estimate = self.get(file).filter(|_| self.queries > 0)?;
        let statistics = merlin::encode(&estimate, self.queries);
        Some(Arc::new(File { statistics, ..file.clone() }))
    }
}
