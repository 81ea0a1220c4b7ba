//! Filters of a job's outputs: how many bits per key each gets, and the statistics that it inherits
//! from its inputs.
//!
//! The policy makes a plan when the job begins. The plan is asked table by table, when a table's
//! entries and range are known (a large table's first partition of the filter is written before
//! that, by the facts known then). Memory is accounted by the bytes that are really written. Jobs
//! run side by side: the memory that one may still add is reserved in the tree's ledger while it
//! runs.
//!
//! Owns: the estimates handed over at a merge. Never does: decide (`windrow_plan::filter_memory`),
//! or count queries (`read/access.rs`).

use crate::tree::Tree;
use crate::tree::filter_ledger::Reservation;
use std::collections::HashMap;
use std::sync::Arc;
use windrow_base::FileNumber;
use windrow_base::key::push_internal;
use windrow_format::block::BLOCK_TRAILER_BYTES;
use windrow_format::filter::{LINE_BYTES, filter_bytes};
use windrow_plan::Merge;
use windrow_plan::filter_memory::merlin::{self, Estimate, InputStatistics};
use windrow_plan::filter_memory::{FilterJob, FilterPlan, query_estimate};
use windrow_plan::tree::{File, Part, Place, Version};
use windrow_read::cache::TableCache;
use windrow_read::read::statistics::Estimates;
use windrow_read::read::view::{SortedRun, VersionFile};

/// An input that hands its queries down.
struct EstimatedInput {
    file: VersionFile,
    place: Place,
    estimate: Estimate,
}

/// Decides the filters of one job's outputs.
pub struct OutputFilters {
    plan: FilterPlan,
    /// Queries recorded when the job began, to which estimates refer.
    queries: u64,
    learns: bool,
    version: Arc<Version>,
    estimates: Estimates,
    /// Empty for a flush.
    inputs: Vec<EstimatedInput>,
    is_flush: bool,
    tables: Arc<TableCache>,
    _reserved: Option<Reservation>,
}

/// A table in the making, as its filter sees it.
pub struct TableSoFar<'a> {
    /// Its first key and its end; `None` at the ends of the job.
    pub lower: Option<&'a [u8]>,
    pub upper: Option<&'a [u8]>,
    /// Entries in it, and of all of the job so far, those included.
    pub entries: u64,
    pub(crate) job_entries: u64,
    /// Keys whose filter is not written, the most pieces in which it may be written, and the bytes
    /// of the job's filters that are written.
    pub(crate) pending_keys: usize,
    pub pieces: u64,
    pub(crate) written_bytes: u64,
}

impl OutputFilters {
    /// Makes filters with the same bits for every output.
    fn fixed(bits: f64, tree: &Tree) -> OutputFilters {
        OutputFilters {
            plan: FilterPlan::fixed(bits),
            queries: 0,
            learns: false,
            version: tree.version(),
            estimates: Estimates::default(),
            inputs: Vec::new(),
            is_flush: false,
            tables: tree.reads.tables.clone(),
            _reserved: None,
        }
    }

    /// Whether bits are decided table by table.
    pub(crate) fn decides_late(&self) -> bool {
        self.plan.decides_late()
    }

    /// The queries that the table will have had, as far as anything is known.
    fn inherited(&self, table: &TableSoFar<'_>) -> Option<Estimate> {
        if !self.learns {
            return None;
        }
        if self.is_flush {
            let known = |file: &File| self.estimates.get(file);
            let range = (table.lower, table.upper);
            let estimate =
                query_estimate::flushed(&self.version, range, table.entries, self.queries, &known);
            return (!self.estimates.is_empty()).then_some(estimate);
        }
        let inputs: Vec<InputStatistics> = self
            .inputs
            .iter()
            .map(|input| InputStatistics {
                place: input.place,
                share: self.share(&input.file, table.lower, table.upper),
                estimate: input.estimate,
            })
            .collect();
        (!inputs.is_empty()).then(|| merlin::propagate(&inputs))
    }

    /// The share of an input's entries in `[lower, upper)`, about: bytes of data, to a block, by
    /// its index. Zero if it cannot be opened any more.
    fn share(&self, input: &VersionFile, lower: Option<&[u8]>, upper: Option<&[u8]>) -> f64 {
        let (file, order) = (&input.file, &self.version.order);
        let ends_before = |upper: &[u8]| order.compare(upper, &file.smallest).is_le();
        let begins_after = |lower: &[u8]| order.compare(lower, &file.largest).is_gt();
        if upper.is_some_and(ends_before) || lower.is_some_and(begins_after) {
            return 0.0;
        }
        let Ok(open) = self.tables.open(&input.table) else {
            return 0.0;
        };
        let mut internal = Vec::new();
        let mut before = |key: &[u8], trailer: u64| {
            internal.clear();
            push_internal(&mut internal, key, trailer);
            open.table.data_bytes_before(&internal) as f64
        };
        // The oldest version of the last key is after every separator.
        let end = before(&file.largest, 0).max(1.0);
        let from = lower.map_or(0.0, |key| before(key, u64::MAX));
        let to = upper.map_or(end, |key| before(key, u64::MAX));
        ((to - from) / end).clamp(0.0, 1.0)
    }

    /// Bits per key for the filters that the table has still to write.
    pub fn bits(&self, table: &TableSoFar<'_>) -> f64 {
        let wanted = self.plan.bits(table.entries, self.inherited(table));
        if !self.decides_late() {
            return wanted;
        }
        let left = self.plan.allowance_bytes(table.job_entries).saturating_sub(table.written_bytes);
        let fitting = fitting_bits(wanted, table.pending_keys, table.pieces, left);
        fitting.max(self.plan.bits_at_least(table.entries))
    }

    /// Bits per key to begin a table with.
    pub(crate) fn bits_at_first(&self) -> f64 {
        self.plan.bits_at_first()
    }

    /// Returns the statistics for the finished table's metadata.
    pub(crate) fn statistics(&self, table: &TableSoFar<'_>) -> Vec<u8> {
        let known = self.inherited(table).filter(|_| self.queries > 0);
        known.map_or_else(Vec::new, |estimate| merlin::encode(&estimate, self.queries))
    }
}

/// Most bits per key up to `wanted` whose filter over `keys` takes at most `left_bytes` of the
/// file, in this many pieces; 0 if a bit per key does not fit.
fn fitting_bits(wanted: f64, keys: usize, pieces: u64, left_bytes: u64) -> f64 {
    if keys == 0 {
        return wanted;
    }
    let on_disk = |bits| (filter_bytes(keys, bits) + BLOCK_TRAILER_BYTES) as u64;
    let over = on_disk(1e-9) - LINE_BYTES as u64;
    let left_bytes = left_bytes.saturating_sub((pieces - 1) * (over + LINE_BYTES as u64));
    if on_disk(wanted) <= left_bytes {
        return wanted;
    }
    let lines = left_bytes.saturating_sub(over) / LINE_BYTES as u64;
    // A hair less, or the product with the keys may round up to one line more.
    let bits = lines as f64 * (LINE_BYTES * 8) as f64 / keys as f64 * (1.0 - 1e-9);
    if bits < 1.0 { 0.0 } else { bits.min(wanted) }
}

impl OutputFilters {
    /// Makes the filters of a flush of `entries` entries.
    pub fn of_flush(tree: &Tree, entries: u64) -> OutputFilters {
        OutputFilters::plan(tree, &[], (0, Part::SstLog), entries)
    }

    /// Makes the filters of a merge; `runs` are its inputs, open.
    pub(crate) fn of_merge(tree: &Tree, merge: &Merge, runs: &[Arc<SortedRun>]) -> OutputFilters {
        let inputs: Vec<(u32, Part, Arc<File>)> =
            merge.files().map(|(level, part, file)| (level, part, file.clone())).collect();
        let output = (merge.output_level, merge.output_part);
        let mut filters = OutputFilters::plan(tree, &inputs, output, 0);
        if filters.learns {
            let places: HashMap<FileNumber, Place> = inputs
                .iter()
                .map(|(n, part, file)| (file.number, place(*n, *part, file)))
                .collect();
            for file in runs.iter().flat_map(|run| &run.files) {
                let estimate = filters.estimates.get(&file.file);
                if let Some((estimate, &place)) = estimate.zip(places.get(&file.file.number)) {
                    filters.inputs.push(EstimatedInput { file: file.clone(), place, estimate });
                }
            }
        }
        filters
    }

    /// Makes the filters of tables that are repaired: the policy's mean, as there is no tree yet in
    /// which to share out the memory.
    pub fn of_repair(tree: &Tree) -> OutputFilters {
        let bits = match tree.reads.order.equality_is_bytewise() {
            true => tree.policy.load().filter_bits_mean(),
            false => 0.0,
        };
        OutputFilters::fixed(bits, tree)
    }

    fn plan(
        tree: &Tree,
        inputs: &[(u32, Part, Arc<File>)],
        output: (u32, Part),
        entries: u64,
    ) -> OutputFilters {
        let policy = tree.policy.load();
        if !tree.reads.order.equality_is_bytewise() {
            return OutputFilters::fixed(0.0, tree);
        }
        // The ledger before the version: a job leaves it after its edit is in, so that its filters
        // are counted in one of the two. And planned under the lock: two jobs must not both take
        // the memory that is left.
        let planning = tree.filter_ledger().plan();
        let reserved_bits = planning.reserved_bits();
        let version = tree.version();
        let estimates = tree.estimates();
        let queries = estimates.queries;
        let known = |file: &File| estimates.get(file);
        let is_flush = inputs.is_empty();
        let fresh = (is_flush && !estimates.is_empty())
            .then(|| query_estimate::flushed(&version, (None, None), entries, queries, &known));
        let bits_max = tree.reads.tables.filter_bits_max();
        let expected = &policy.expected_levels(&version, &tree.sizes.load());
        let job = FilterJob { inputs, output, entries, expected, queries, reserved_bits, bits_max };
        let plan = policy.filter_plan(&version, &job, fresh, &known);
        let reserved = planning.reserve(plan.growth_bits);
        if policy.learns_from_queries() {
            mark_skipped(tree, &plan, &estimates);
        }
        OutputFilters {
            plan,
            queries,
            learns: policy.learns_from_queries(),
            version,
            estimates,
            inputs: Vec::new(),
            is_flush,
            tables: tree.reads.tables.clone(),
            _reserved: Some(reserved),
        }
    }
}

/// Tells every file whether its filter pays for being read (Mnemosyne, section
/// 4.2.3). Whole filters are in memory with the open table and are always
/// asked; the flag saves the reading of partitions' filters.
fn mark_skipped(tree: &Tree, plan: &FilterPlan, estimates: &Estimates) {
    for (number, level) in (0..).zip(&tree.view().levels) {
        let run = level.run.iter().flat_map(|run| &run.files).map(|file| (Part::Run, file));
        let log = level.sst_log.iter().flat_map(|run| &run.files).map(|file| (Part::SstLog, file));
        for (part, file) in run.chain(log) {
            let consults = plan.consults(number, part, &file.file, estimates.get(&file.file));
            file.table.set_skips_filter(!consults);
        }
    }
}

fn place(level: u32, part: Part, file: &File) -> Place {
    match part {
        Part::Run => Place::run(level),
        Part::SstLog => Place::sst_log(level, file.epoch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_cut_down_to_what_fits() {
        let on_disk = |keys, bits| (filter_bytes(keys, bits) + BLOCK_TRAILER_BYTES) as u64;
        for keys in [1usize, 50, 51, 1000, 1225, 33_333] {
            for wanted in [1.0, 3.7, 10.0, 24.0] {
                for left in [0, 60, 80, 100, 500, 649, 1300, 40_000, 1 << 20] {
                    let bits = fitting_bits(wanted, keys, 1, left);
                    assert!(bits == 0.0 || (1.0..=wanted).contains(&bits));
                    assert!(bits == 0.0 || on_disk(keys, bits) <= left, "{keys} {wanted} {left}");
                    // No line that would fit is left out.
                    let more = (bits + 513.0 / keys as f64).max(1.0);
                    assert!(bits == wanted || more > wanted || on_disk(keys, more) > left);
                }
            }
        }
    }
}
