//! A change from one version to the next, as a manifest record stores it of a tree.
//!
//! Owns: the list of changes. Never does: apply them (`apply.rs`) or encode them (`codec.rs`).

use super::file::{File, Part};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{Epoch, FileNumber, SeqNo};

/// Changes that take effect together. An absent field changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// Files that leave, with where they were.
    pub removed: Vec<(u32, Part, FileNumber)>,
    /// Files that enter. A number that is also in `removed` is a move (I2).
    pub added: Vec<(u32, Part, Arc<File>)>,
    /// The number of levels that the shape plans for.
    pub shape_levels: Option<u32>,
    /// The epoch that the next file to enter an SST-log gets. Applying also raises
    /// it above every epoch in `added`.
    pub next_epoch: Option<Epoch>,
    /// Boundaries of level 0's partitions, ascending.
    pub boundaries: Option<Arc<[Vec<u8>]>>,
    /// Where round-robin picking goes on, by level.
    pub cursors: Vec<(u32, Option<Vec<u8>>)>,
    /// Every entry with a sequence number up to this one is in a table; never
    /// goes back. Replay of the write-ahead log skips them (I4).
    pub flushed_through: Option<SeqNo>,
}
