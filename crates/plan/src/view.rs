//! The input of a decision: a version, the busy files and ranges, and plain numbers.
//!
//! Everything a decision depends on is here, so that the same view always
//! gives the same decision.
//!
//! Owns: the settings and their defaults. Never does: read a clock or an option; the caller gives
//! every value.

use crate::busy::Busy;
use crate::tree::Version;
use crate::usage::Use;
use windrow_base::SeqNo;

/// Sizes and limits that policies read. Plain numbers: nothing is derived from them here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSettings {
    /// Size at which a memtable is flushed.
    pub memtable_bytes: u64,
    /// Size at which output files are cut.
    pub file_bytes: u64,
    /// Capacity of level 1.
    pub level_base_bytes: u64,
    /// Depth of level 0 from which writers are slowed.
    pub level0_slowdown: u32,
    /// Depth of level 0 at which writers wait.
    pub level0_stop: u32,
    /// An output file is cut early once it overlaps this many times
    /// `file_bytes` of the level below its own.
    pub overlap_files_max: u32,
    /// How old a file must be before its tombstones are a reason to rewrite it:
    /// younger ones are likely to be merged anyway.
    pub tombstone_grace_ms: u64,
    /// How long entries may lie expired before that is a reason to rewrite
    /// their file. A file is rewritten at most once in this time for that
    /// reason, whatever the spread of its expiries.
    pub expiry_grace_ms: u64,
    /// Bytes rewritten, in hundredths of a byte for each byte put, that one file less over a
    /// point is worth (`dial.rs`).
    pub file_price_percent: u32,
    /// Bytes of all tables over those of the last level, in hundredths, up to which a policy by the
    /// dial collects data above that level; 0 for no ceiling.
    pub space_max_percent: u32,
}

impl Default for PlanSettings {
    fn default() -> PlanSettings {
        PlanSettings {
            memtable_bytes: 64 << 20,
            file_bytes: 8 << 20,
            level_base_bytes: 256 << 20,
            level0_slowdown: 12,
            level0_stop: 20,
            overlap_files_max: 10,
            tombstone_grace_ms: 60_000,
            expiry_grace_ms: 3_600_000,
            file_price_percent: Use::default().file_price_percent(),
            space_max_percent: Use::default().space_max_percent(),
        }
    }
}

/// One moment of a keyspace, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The tree.
    pub version: &'a Version,
    /// The files and ranges that running jobs hold.
    pub busy: &'a Busy,
    /// Sizes and limits.
    pub settings: &'a PlanSettings,
    /// The oldest sequence number that a snapshot reads at; `SEQ_MAX`, or the
    /// newest published one, if there is no snapshot. Entries below it are seen
    /// by every reader.
    pub snapshots_oldest: SeqNo,
    /// Wall clock, ms since 1970: the time by which merges judge expiry, so
    /// that it must never be ahead of theirs.
    pub now_ms: u64,
}
