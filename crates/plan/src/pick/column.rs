//! Columns: the tables of one partition of level 0, in all levels above the last, go into the last
//! level at once.
//!
//! Where the SST-log above the last level is full, some files must go down, and they meet as much
//! of the last level whether few go or many. So a column takes all of its range along: SST-logs and
//! runs, and level 0, whose entries are so spared a merge on the way. The next flushes find a level
//! 1 that is empty there, and their merges are cheap.
//!
//! Bytes written per byte in the lab, with the cheapest closed set (`aggregate.rs`) and with
//! columns: data of 24 memtables 4.53 and 3.87 (uniform updates), 2.45 and 2.32 (zipf); of 100
//! memtables 6.44 and 5.73, 3.76 and 3.52. A comparison of the two at each job, by bytes met per
//! byte that leaves, is worth half of it, since it does not count that a range is empty afterwards.
//! Above a level that is not the last, columns save 1 % and make chains longer by two thirds, since
//! the bytes that they bring soon go further down.
//!
//! A column too large for one job is taken in pieces, from the level with the full SST-log alone:
//! tables of level 0 are as wide as their partition.
//!
//! Owns: the tables of a column, and which column goes first. Never does: say that an SST-log is
//! full.

use super::decide;
use crate::decision::{Decision, Reason};
use crate::tree::closure::{Seat, close};
use crate::tree::{File, Part, Span, Version};
use crate::view::View;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// A job reads at most this many times `bytes_max`: a table across a boundary adds those that it
/// overlaps.
const JOB_BYTES_MAX: u64 = 2;

/// A table of the tree, and where it is.
type SeatedTable<'v> = (Seat, &'v Arc<File>);

/// Tables over one range, to go down together.
struct Column<'v> {
    tables: Vec<SeatedTable<'v>>,
    span: Span<'v>,
    bytes: u64,
    /// Bytes of the last level that the range overlaps.
    below_bytes: u64,
}

/// Returns the column that takes most along for the bytes that it rewrites, of those that can start
/// now and have a part of the SST-log of `level`, which is above the last one. It reads
/// `bytes_max`, or twice that at most.
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
        let fits = closure.bytes() <= bytes_max.saturating_mul(JOB_BYTES_MAX);
        if fits { decide(view, &closure, reason.clone()) } else { None }
    })
}

/// Returns one column for each partition, in key order: the tables of levels 0 to `level` that lie
/// in it whole.
fn columns_of(version: &Version, level: u32) -> Vec<Column<'_>> {
    let parts = (0..=level).flat_map(|n| [(n, Part::Run), (n, Part::SstLog)]);
    let tables = parts.flat_map(|(n, part)| {
        let tables = version.part(n, part).iter().enumerate();
        tables.map(move |(i, file)| ((n, part, i), file))
    });
    divided(version, level, &version.boundaries, tables)
}

/// Divides the tables into one column for each range between the keys: those that lie in it whole.
fn divided<'v, K: AsRef<[u8]>>(
    version: &'v Version,
    level: u32,
    starts: &[K],
    tables: impl Iterator<Item = SeatedTable<'v>>,
) -> Vec<Column<'v>> {
    let order = &version.order;
    let mut ranges: Vec<Vec<SeatedTable<'v>>> = vec![Vec::new(); starts.len() + 1];
    for (seat, file) in tables {
        let at = starts.partition_point(|s| order.compare(s.as_ref(), &file.smallest).is_le());
        if starts.get(at).is_none_or(|end| file.span().ends_before(order, end.as_ref())) {
            ranges[at].push((seat, file));
        }
    }
    ranges.into_iter().filter_map(|tables| Column::new(version, level, tables)).collect()
}

impl<'v> Column<'v> {
    /// `None` of no table.
    fn new(version: &'v Version, level: u32, tables: Vec<SeatedTable<'v>>) -> Option<Column<'v>> {
        let order = &version.order;
        let bytes = tables.iter().fold(0u64, |sum, (_, f)| sum.saturating_add(f.bytes));
        let spans = tables.iter().map(|(_, file)| file.span());
        let span = spans.reduce(|hull, span| hull.hull(order, &span))?;
        let last = version.level(level + 1)?;
        let below_bytes = last.run_bytes_overlapping(order, &span);
        let most = last.part_bytes(Part::Run);
        debug_invariant!(I2, below_bytes <= most, "{below_bytes} bytes of {most} are overlapped");
        Some(Column { tables, span, bytes, below_bytes })
    }

    /// Bytes rewritten per byte that goes down.
    fn cost(&self) -> f64 {
        self.below_bytes as f64 / self.bytes.max(1) as f64
    }

    /// Returns the column if it has `bytes_max` at most, else pieces of it that meet about as much
    /// each.
    fn within(self, version: &'v Version, level: u32, bytes_max: u64) -> Vec<Column<'v>> {
        let all = self.bytes.saturating_add(self.below_bytes);
        if all <= bytes_max {
            return vec![self];
        }
        let Some(last) = version.level(level + 1) else { return Vec::new() };
        let below = &last.run[last.run_overlapping(&version.order, &self.span)];
        let pieces = usize::try_from(all.div_ceil(bytes_max.max(1))).unwrap_or(usize::MAX);
        let chunks = below.chunks(below.len().div_ceil(pieces).max(1)).skip(1);
        let starts: Vec<&[u8]> = chunks.map(|chunk| &*chunk[0].smallest).collect();
        let tables = self.tables.into_iter().filter(|(seat, _)| seat.0 == level);
        divided(version, level, &starts, tables)
    }
}
