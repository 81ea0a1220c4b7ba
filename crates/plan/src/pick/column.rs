//! Columns: all that a partition of level 0 has above the last level goes into it at once.
//!
//! Where the SST-log above the last level is full, something has to go down, and meets as much of
//! the last level whether little goes or much. So a column takes all of its range along: SST-logs
//! and runs, and level 0, whose entries are so spared a merge on the way. The next flushes find
//! a level 1 that is empty there, and their merges are cheap.
//!
//! Bytes written per byte in the lab, with the cheapest closed set (`aggregate.rs`) and with columns: data of 24
//! memtables 4.53 and 3.89 (uniform updates), 2.45 and 2.31 (zipf); of 100 memtables 6.44 and 5.76, 3.76
//! and 3.53. A comparison of the two at each job, by bytes met per byte that leaves, is worth half of it: that a
//! range is empty afterwards counts for nothing then. Above a level that is not the last, columns save 1 % and make
//! chains longer by two thirds, since what they bring soon goes further down.
//!
//! A column too large for one job is taken in pieces, from the level with the full SST-log alone: tables of
//! level 0 are as wide as their partition.
//!
//! Owns: what is in a column, and which goes first. Never does: say that an SST-log is full.

use super::decide;
use crate::decision::{Decision, Reason};
use crate::tree::closure::{Seat, close};
use crate::tree::{File, Part, Version};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// A job may take so many times what a column may have: tables across a boundary bring others along.
const JOB_COLUMNS_MAX: u64 = 2;

/// Tables over one range, to go down together.
struct Column<'v> {
    tables: Vec<(Seat, &'v Arc<File>)>,
    bytes: u64,
    /// Bytes of the last level that the range overlaps.
    below_bytes: u64,
}

/// The column that takes most along for what it rewrites, of those that can start now and have a part of
/// the SST-log of `level`, which is above the last one. It reads `bytes_max`, or somewhat more.
pub(super) fn pick(
    view: &View<'_>,
    level: u32,
    bytes_max: u64,
    reason: &Reason,
) -> Option<Decision> {
    let version = view.version;
    let last = version.deepest();
    invariant!(I1, last == Some(level + 1), "columns go from level {level} to level {last:?}");
    if version.boundaries.is_empty() {
        return None;
    }
    let has_log =
        |c: &Column<'_>| c.tables.iter().any(|(s, _)| (s.0, s.1) == (level, Part::SstLog));
    let whole = columns_of(version, level).into_iter();
    let mut columns: Vec<Column<'_>> =
        whole.flat_map(|column| column.within(version, level, bytes_max)).filter(has_log).collect();
    columns.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    columns.into_iter().find_map(|column| {
        let seats = column.tables.iter().map(|(seat, _)| *seat);
        let is_idle = |f: &File| !view.busy.is_busy(f.number);
        let closure = close(version, seats, (level + 1, Part::Run), is_idle)?;
        let fits = closure.bytes() <= bytes_max.saturating_mul(JOB_COLUMNS_MAX);
        if fits { decide(view, &closure, reason.clone()) } else { None }
    })
}

/// One column for each partition, in key order: the tables of levels 0 to `level` that lie in it whole.
fn columns_of(version: &Version, level: u32) -> Vec<Column<'_>> {
    let order = &version.order;
    let mut tables: Vec<Vec<_>> = vec![Vec::new(); version.boundaries.len() + 1];
    let parts = (0..=level).flat_map(|n| [(n, Part::Run), (n, Part::SstLog)]);
    for (n, part) in parts {
        for (i, file) in version.part(n, part).iter().enumerate() {
            let at =
                version.boundaries.partition_point(|b| order.compare(b, &file.smallest).is_le());
            let end = version.boundaries.get(at);
            if end.is_none_or(|end| file.span().ends_before(order, end)) {
                tables[at].push(((n, part, i), file));
            }
        }
    }
    tables.into_iter().filter_map(|tables| Column::new(version, level, tables)).collect()
}

impl<'v> Column<'v> {
    fn new(
        version: &'v Version,
        level: u32,
        tables: Vec<(Seat, &'v Arc<File>)>,
    ) -> Option<Column<'v>> {
        let order = &version.order;
        let bytes = tables.iter().fold(0u64, |sum, (_, f)| sum.saturating_add(f.bytes));
        let spans = tables.iter().map(|(_, file)| file.span());
        let hull = spans.reduce(|hull, span| hull.hull(order, &span))?;
        let last = version.level(level + 1)?;
        let below_bytes = last.run_bytes_overlapping(order, &hull);
        let most = last.part_bytes(Part::Run);
        debug_invariant!(I2, below_bytes <= most, "{below_bytes} bytes of {most} are overlapped");
        Some(Column { tables, bytes, below_bytes })
    }

    /// Bytes rewritten per byte that goes down.
    fn cost(&self) -> f64 {
        self.below_bytes as f64 / self.bytes.max(1) as f64
    }

    /// The column if it has `bytes_max` at most, else pieces of it that meet about as much.
    fn within(self, version: &'v Version, level: u32, bytes_max: u64) -> Vec<Column<'v>> {
        let all = self.bytes.saturating_add(self.below_bytes);
        if all <= bytes_max {
            return vec![self];
        }
        let order = &version.order;
        let spans = self.tables.iter().map(|(_, file)| file.span());
        let hull = spans.reduce(|hull, span| hull.hull(order, &span));
        let Some((hull, last)) = hull.zip(version.level(level + 1)) else { return Vec::new() };
        let below = &last.run[last.run_overlapping(order, &hull)];
        let pieces = usize::try_from(all.div_ceil(bytes_max.max(1))).unwrap_or(usize::MAX);
        let starts: Vec<&[u8]> = below
            .chunks(below.len().div_ceil(pieces).max(1))
            .skip(1)
            .map(|chunk| &*chunk[0].smallest)
            .collect();
        let mut tables: Vec<Vec<_>> = vec![Vec::new(); starts.len() + 1];
        for &(seat, file) in self.tables.iter().filter(|(seat, _)| seat.0 == level) {
            let at = starts.partition_point(|start| order.compare(start, &file.smallest).is_le());
            if starts.get(at).is_none_or(|end| file.span().ends_before(order, end)) {
                tables[at].push((seat, file));
            }
        }
        tables.into_iter().filter_map(|tables| Column::new(version, level, tables)).collect()
    }
}
