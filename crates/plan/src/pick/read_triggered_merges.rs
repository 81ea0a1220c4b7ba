//! Merges that reads have paid for: tables that they keep meeting in vain are merged, once that
//! costs no more than the tables have cost.
//!
//! A table in an SST-log, of level 0 or below, lies over older ones: each get asks its filter, each
//! seek searches it. That cost is counted for each table, in bytes of merging that would have taken
//! as long ([`ReadCosts`]). A merge is picked as soon as the tables that it would spare reads have
//! cost as many bytes as it rewrites. This is the rule of ski rental: renting until the rent has
//! come to the price, and then buying, never costs more than twice the best choice in hindsight.
//! LevelDB's compactions after seeks and Pebble's read-triggered ones rest on the same idea.
//!
//! Two merges are offered. *Down*: all tables over a range in the SST-log go into the next run. It
//! spares reads all of these tables, and rewrites the tables that they overlap there, mostly many
//! times their size. *Together*: the tables over the range become one, where they are. It rewrites
//! them alone, and spares all but one. So tables come together first, and go down if reads go on.
//!
//! Only asked where no other job is due, and for policies whose use sets the price of a file over a
//! point (`dial.rs`): k and the SST-log's share come from the merging that writes afford, and reads
//! add this.
//!
//! Owns: both merges and their price. Never does: count reads.

use super::{decide, merge_of};
use crate::decision::{Decision, Reason};
use crate::tree::Part;
use crate::tree::closure::{Closure, Seat, close};
use crate::view::View;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use windrow_base::{FileNumber, invariant};

/// The cost of each table to reads, in bytes of merging that would have taken as long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCosts(BTreeMap<FileNumber, u64>);

impl ReadCosts {
    /// Whether no table has cost anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cost of a table, in bytes.
    pub fn of(&self, number: FileNumber) -> u64 {
        self.0.get(&number).copied().unwrap_or(0)
    }

    /// The cost to reads of the tables of an SST-log that are in a job.
    fn paid(&self, closure: &Closure<'_>, level: u32) -> u64 {
        let of_log = closure.files().filter(|(n, part, _)| (*n, *part) == (level, Part::SstLog));
        of_log.fold(0, |sum, (_, _, file)| sum.saturating_add(self.of(file.number)))
    }
}

impl FromIterator<(FileNumber, u64)> for ReadCosts {
    fn from_iter<I: IntoIterator<Item = (FileNumber, u64)>>(costs: I) -> ReadCosts {
        ReadCosts(costs.into_iter().filter(|(_, bytes)| *bytes > 0).collect())
    }
}

/// Returns the job that reads have paid for, of the tables that have cost most.
pub(crate) fn pick(view: &View<'_>, costs: &ReadCosts) -> Option<Decision> {
    let mut costly: Vec<(u64, Seat)> = Vec::new();
    for level in 0..view.version.levels.len() as u32 {
        for (i, file) in view.version.part(level, Part::SstLog).iter().enumerate() {
            let cost = costs.of(file.number);
            // No job rewrites less than its tables, so that one of them has cost its size.
            if cost >= file.bytes && !view.busy.is_busy(file.number) {
                costly.push((cost, (level, Part::SstLog, i)));
            }
        }
    }
    costly.sort_by_key(|&(cost, seat)| (Reverse(cost), seat));
    costly
        .into_iter()
        .find_map(|(_, seat)| down(view, costs, seat).or_else(|| together(view, costs, seat)))
}

/// Returns the tables of the same SST-log over this one's range, itself included, in read order.
fn over(view: &View<'_>, (level, part, index): Seat) -> Vec<Seat> {
    let span = view.version.part(level, part)[index].span();
    let over = view.version.overlapping_span(level, part, span);
    over.map(|(i, _)| (level, part, i)).collect()
}

/// Takes all tables over the range into the next run, or from the deepest level's SST-log into its
/// own.
fn down(view: &View<'_>, costs: &ReadCosts, seat: Seat) -> Option<Decision> {
    let level = seat.0;
    let is_deepest = level > 0 && view.version.deepest() == Some(level);
    let to = (if is_deepest { level } else { level + 1 }, Part::Run);
    let closure = close(view.version, over(view, seat), to, |f| !view.busy.is_busy(f.number))?;
    let (cost, bytes) = (costs.paid(&closure, level), closure.bytes());
    if closure.len() > 1 && cost < bytes {
        return None;
    }
    decide(view, &closure, Reason::ReadOften { level, cost, bytes })
}

/// Merges the tables over the range into one, in the SST-log in which they are.
fn together(view: &View<'_>, costs: &ReadCosts, seat: Seat) -> Option<Decision> {
    let (level, part, _) = seat;
    let allow = |f: &crate::tree::File| !view.busy.is_busy(f.number);
    let closure = close(view.version, over(view, seat), (level, part), allow)?;
    let files = closure.len() as u64;
    invariant!(
        I5,
        closure.count(level, part) as u64 == files,
        "a job within an SST-log takes more"
    );
    // One of them is left to be read.
    let spared = costs.paid(&closure, level) as f64 * (1.0 - 1.0 / files as f64);
    let bytes = closure.bytes();
    if files < 2 || spared < bytes as f64 {
        return None;
    }
    merge_of(view, &closure, Reason::ReadOften { level, cost: spared as u64, bytes })
}
