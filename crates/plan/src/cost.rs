//! The cost of a version: amplification, computed from its metadata.
//!
//! These are properties of the tree as it is, not of the work that made it: the engine counts the
//! bytes written per byte.
//!
//! Owns: the formulas. Never does: count the bytes that merges wrote.

use crate::tree::level::deepest_point;
use crate::tree::{Part, Version};
use windrow_base::debug_invariant;

/// Amplification of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Sorted runs: one per non-empty run, one per epoch of each SST-log. A full scan merges all of
    /// them.
    pub runs: u32,
    /// Files that cover the deepest point: the most that a get may have to ask.
    pub read_max: u32,
    /// Files over a point, on average over the files' own starting points.
    pub read_mean: f64,
    /// Bytes of the tree over those of its deepest level (its run, or all of it if
    /// there is only an SST-log): at most this much is superseded.
    pub space: f64,
    /// Bytes written per byte flushed if data goes on through the tree in its present proportions:
    /// flush, level 0 into level 1, and for each level below one rewriting with the files that one
    /// overlaps there.
    pub write: f64,
}

impl Cost {
    /// Reads the cost off a version. O(n log n) in its files, but for long
    /// SST-logs, which are scanned.
    pub fn of(version: &Version) -> Cost {
        let order = &version.order;
        let mut runs = 0;
        for level in &version.levels {
            runs += !level.run.is_empty() as u32;
            runs += level.sst_log.chunk_by(|a, b| a.epoch == b.epoch).count() as u32;
        }
        let files = version.files().map(|(_, _, f)| f);
        let read_max = deepest_point(order, files).depth;
        let read_mean = read_mean(version);
        // Tables of one run are disjoint (I1), as are those of one epoch (I4).
        debug_invariant!(I1, read_max <= runs, "{read_max} tables over a point in {runs} runs");
        let most = f64::from(read_max);
        debug_invariant!(I1, read_mean <= most, "{read_mean} tables over a point, {most} at most");
        Cost { runs, read_max, read_mean, space: space(version), write: write(version) }
    }
}

/// Averages over the first keys of all files: each file counts as an equal share of the key space,
/// and asks each level's run and SST-log.
fn read_mean(version: &Version) -> f64 {
    let order = &version.order;
    let (mut points, mut asked) = (0u64, 0u64);
    for (_, _, file) in version.files() {
        points += 1;
        for level in &version.levels {
            let at = level.run.partition_point(|f| f.span().ends_before(order, &file.smallest));
            asked +=
                level.run.get(at).is_some_and(|f| f.span().contains(order, &file.smallest)) as u64;
            asked +=
                level.sst_log.iter().filter(|f| f.span().contains(order, &file.smallest)).count()
                    as u64;
        }
    }
    debug_assert!(asked >= points, "{points} tables are found {asked} times at their first keys");
    if points == 0 { 0.0 } else { asked as f64 / points as f64 }
}

fn space(version: &Version) -> f64 {
    let Some(deepest) = version.deepest() else { return 1.0 };
    let run = version.part_bytes(deepest, Part::Run);
    let base = if run > 0 { run } else { version.part_bytes(deepest, Part::SstLog) };
    debug_assert!(
        base <= version.bytes(),
        "level {deepest} holds {base} bytes, more than the tree"
    );
    version.bytes() as f64 / base.max(1) as f64
}

fn write(version: &Version) -> f64 {
    let Some(deepest) = version.deepest() else { return 1.0 };
    let mut write = 1.0;
    for level in 0..deepest {
        let above = match level {
            0 => version.part_bytes(0, Part::SstLog),
            n => version.part_bytes(n, Part::Run),
        };
        let below = version.part_bytes(level + 1, Part::Run);
        if above > 0 {
            write += 1.0 + below as f64 / above as f64;
        }
    }
    write
}
