//! A change from one version to the next: what a manifest record says of a tree.
//!
//! Owns the list of changes. Applying them is [`Version::apply`]; their bytes
//! are `codec.rs`.

use super::file::{File, Part};
use super::version::Version;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{Epoch, FileNumber, SeqNo};

/// Changes that take effect together. An absent field changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// Files that leave, with where they stood.
    pub removed: Vec<(u32, Part, FileNumber)>,
    /// Files that enter. A number that is also in `removed` is a move (I2).
    pub added: Vec<(u32, Part, Arc<File>)>,
    /// The number of levels that the shape plans for.
    pub shape_levels: Option<u32>,
    /// The epoch that the next file to enter a log gets. Applying also raises
    /// it above every epoch in `added`.
    pub next_epoch: Option<Epoch>,
    /// Boundaries of level 0's lanes, ascending.
    pub lanes: Option<Arc<[Vec<u8>]>>,
    /// Where round-robin picking goes on, by level.
    pub cursors: Vec<(u32, Option<Vec<u8>>)>,
    /// Every entry with a sequence number up to this one is in a table; never
    /// goes back. Replay of the log skips them (I4).
    pub flushed_through: Option<SeqNo>,
}

impl Edit {
    /// The edit that installs a flushed memtable: `files` (one memtable cut in
    /// disjoint pieces, or none if all of it was elided) enter level 0 with
    /// the next epoch, and everything up to `through` is in tables.
    ///
    /// Build it against the version it will be applied to, in the order in
    /// which the memtables were frozen (I4).
    pub fn flush(current: &Version, files: Vec<File>, through: SeqNo) -> Edit {
        let epoch = current.next_epoch;
        Edit {
            added: files
                .into_iter()
                .map(|f| (0, Part::Log, Arc::new(File { epoch, ..f })))
                .collect(),
            next_epoch: Some(epoch + 1),
            flushed_through: Some(through.max(current.flushed_through)),
            ..Edit::default()
        }
    }

    /// Whether the edit changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    /// Whether no file comes or goes: files change their places, or their
    /// metadata, or L changes.
    pub fn only_relocates(&self) -> bool {
        let mut gone: Vec<FileNumber> = self.removed.iter().map(|r| r.2).collect();
        let mut added: Vec<FileNumber> = self.added.iter().map(|a| a.2.number).collect();
        gone.sort_unstable();
        added.sort_unstable();
        gone == added && self.flushed_through.is_none()
    }

    /// Numbers of the files whose data goes with this edit: removed and not
    /// added again. What a move takes and puts back stays on disk (I2).
    pub fn obsolete(&self) -> impl Iterator<Item = FileNumber> + '_ {
        let kept = |n: FileNumber| self.added.iter().any(|(_, _, f)| f.number == n);
        self.removed.iter().map(|r| r.2).filter(move |&n| !kept(n))
    }
}
