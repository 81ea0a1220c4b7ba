//! The place of an ingested table.
//!
//! All entries of ingested tables are newer than all others of the tree. So a table may go into the
//! run of a level if nothing overlaps it there or above (I3), and no running job may put a table
//! there (I5, I9). Nothing is read or rewritten for that. If no run may take it, it goes to level
//! 0, as the newest epoch.
//!
//! Owns: that choice, and the edit. Never does: give out a sequence number.

use crate::axes::Policy;
use crate::busy::Busy;
use crate::tree::{Edit, File, LEVELS_MAX, Part, Version};
use crate::view::PlanSettings;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{Epoch, Result, SeqNo, check_invariant};

/// Returns the deepest level that tables of `bytes` bytes go to: the last one that is planned for,
/// or the first below it that has room for them.
pub fn deepest_level(
    policy: &Policy,
    version: &Version,
    settings: &PlanSettings,
    bytes: u64,
) -> u32 {
    let mut level = version.planned_levels().min(LEVELS_MAX - 1);
    let is_too_small = |level: u32| {
        let there = version.level(level).map_or(0, |level| level.bytes());
        policy.capacity(version, settings, level) < bytes.saturating_add(there)
    };
    while level + 1 < LEVELS_MAX && is_too_small(level) {
        level += 1;
    }
    level
}

/// Returns the deepest level, down to `deepest`, whose run may take a table now; 0 if none may.
pub fn level_for(version: &Version, busy: &Busy, file: &File, deepest: u32) -> u32 {
    let free = (0..=deepest).take_while(|&level| !is_met(version, file, level));
    let may_take = |level: &u32| *level > 0 && busy.admits(&version.order, file, *level);
    free.filter(may_take).last().unwrap_or(0)
}

/// Whether some table of a level overlaps another one.
fn is_met(version: &Version, file: &File, level: u32) -> bool {
    let meets = |part| version.overlapping_span(level, part, file.span()).next().is_some();
    meets(Part::Run) || meets(Part::SstLog)
}

/// Returns the edit that adds tables, each to its level or above, and gives all their entries one
/// sequence number.
///
/// # Errors
/// `Internal` if a table holds anything but entries without a number.
pub fn edit(current: &Version, files: &[(u32, File)], seq: SeqNo) -> Result<Edit> {
    let epoch = current.next_epoch;
    let mut added = Vec::with_capacity(files.len());
    for (level, file) in files {
        let numbers = (file.seq_min, file.seq_max);
        check_invariant!(I3, numbers == (0, 0), "an ingested table has numbers {numbers:?}");
        // A flush may have come in between.
        let is_free = (0..=*level).all(|level| !is_met(current, file, level));
        let level = if is_free { *level } else { 0 };
        let (part, epoch) = place(level, epoch);
        let given = File { seq_min: seq, seq_max: seq, is_ingested: true, epoch, ..file.clone() };
        added.push((level, part, Arc::new(given)));
    }
    let is_level0 = added.iter().any(|(level, ..)| *level == 0);
    let next_epoch = is_level0.then_some(epoch + 1);
    // No memtable has anything older.
    Ok(Edit { added, next_epoch, flushed_through: Some(seq), ..Edit::default() })
}

fn place(level: u32, epoch: Epoch) -> (Part, Epoch) {
    if level == 0 { (Part::SstLog, epoch) } else { (Part::Run, 0) }
}
