//! The figures of a simulation: its cost.
//!
//! Work is counted in keys and reported in units of one 8 MB file. A *chain* is the compaction
//! chain of vLSM's authors: all that is read and written from the start of one job on level 0 until
//! the next one, or until every level is within its limit.
//!
//! Owns: the counters that the simulator feeds, and the figures computed from them. Never does:
//! simulate.

use windrow_plan::tree::{Part, Version};
use windrow_plan::{Decision, Merge};

/// The figures of one simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Keys written to tables per update.
    pub write_amplification: f64,
    /// Keys written per update, by the level written to: flushes and merges within level 0, then
    /// level 1 and so on. A log's keys count where they lie.
    pub write_by_level: Vec<f64>,
    /// Sorted runs that a scan merges, mean over flushes: each level's run, and
    /// as many as the deepest point of each log.
    pub runs: f64,
    /// Files over a point, mean over keys and flushes: what a get of an absent
    /// key asks.
    pub probes_mean: f64,
    /// The most files over a looked-up key.
    pub probes_max: u64,
    /// Median length of a chain, in units read and written.
    pub chain_p50: f64,
    /// The 99th percentile of chains.
    pub chain_p99: f64,
    /// The longest chain.
    pub chain_max: f64,
    /// The 99th percentile, over chains, of each one's largest job.
    pub job_p99: f64,
    /// Units that a merge reads and writes: mean.
    pub job_mean: f64,
    /// The largest.
    pub job_max: f64,
    /// Work that one flush brings, in units read and written: mean.
    pub work_mean: f64,
    /// Its 99th percentile over its mean: how uneven the work is.
    pub work_p99_over_mean: f64,
    /// Keys in tables over distinct keys, mean over flushes.
    pub space_mean: f64,
    /// The largest.
    pub space_max: f64,
    /// Deepest level that holds a file, at the end.
    pub levels: u32,
    /// Merges per flush.
    pub merges_per_flush: f64,
    /// Moves per flush: metadata alone.
    pub moves_per_flush: f64,
    /// Tables that are written per flush, the flush's own included.
    pub tables_per_flush: f64,
    /// Tables of the tree, mean over flushes.
    pub tables_mean: f64,
}

/// Counts what happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    updates: u64,
    flushes: u64,
    merges: u64,
    merged: u64,
    job_max: u64,
    moves: u64,
    /// Tables written, and tables of the tree at each flush.
    made: u64,
    tables: u64,
    /// Keys written, by level.
    written: Vec<u64>,
    /// Keys read and written since the last flush.
    work: u64,
    works: Vec<u64>,
    chain: Option<ChainKeys>,
    chains: Vec<ChainKeys>,
    probes: u64,
    probed: u64,
    probes_max: u64,
    runs: u64,
    space: f64,
    space_max: f64,
    levels: u32,
}

/// Keys read and written.
#[derive(Clone, Copy, Debug, Default)]
struct ChainKeys {
    total: u64,
    largest_job: u64,
}

impl Meter {
    /// Counts a flush: a memtable of `updates` became `written` entries of level 0.
    pub(crate) fn flush(&mut self, updates: u64, written: u64) {
        self.updates += updates;
        self.flushes += 1;
        self.write(0, written);
    }

    /// Counts a table that was written.
    pub(crate) fn table(&mut self) {
        self.made += 1;
    }

    fn write(&mut self, level: u32, keys: u64) {
        let level = level as usize;
        if self.written.len() <= level {
            self.written.resize(level + 1, 0);
        }
        self.written[level] += keys;
    }

    /// Counts a decision that is about to run. One that takes from level 0 begins a chain.
    pub(crate) fn decide(&mut self, decision: &Decision) {
        let from_level0 = match decision {
            Decision::Merge(merge) => {
                self.merges += 1;
                merge.inputs.iter().any(|input| input.level == 0)
            }
            Decision::Move(m) => {
                self.moves += 1;
                m.from.0 == 0
            }
            _ => false,
        };
        if from_level0 {
            self.end_chain();
            self.chain = Some(ChainKeys::default());
        }
    }

    /// Counts a merge that read and wrote these numbers of keys.
    pub(crate) fn merge(&mut self, merge: &Merge, read: u64, written: u64) {
        self.write(merge.output_level, written);
        let job = read + written;
        self.work += job;
        self.merged += job;
        self.job_max = self.job_max.max(job);
        let chain = self.chain.get_or_insert_default();
        chain.total += job;
        chain.largest_job = chain.largest_job.max(job);
    }

    fn end_chain(&mut self) {
        self.chains.extend(self.chain.take());
    }

    /// Counts a key that was looked up, and that this number of files may hold.
    pub(crate) fn probe(&mut self, files: u64) {
        self.probed += 1;
        self.probes += files;
        self.probes_max = self.probes_max.max(files);
    }

    /// Counts the tree, once the policy is idle.
    pub(crate) fn settle(&mut self, version: &Version, keys: u32) {
        self.end_chain();
        self.works.push(std::mem::take(&mut self.work));
        let runs = |n: u32| {
            let log_depth = version.level(n).map_or(0, |level| level.sst_log_depth());
            (!version.part(n, Part::Run).is_empty()) as u32 + log_depth
        };
        self.runs += (0..version.levels.len() as u32).map(runs).sum::<u32>() as u64;
        let space = version.bytes() as f64 / keys as f64;
        self.space += space;
        self.space_max = self.space_max.max(space);
        self.levels = version.deepest().unwrap_or(0);
        self.tables += version.files().count() as u64;
    }

    /// Returns the figures so far; `unit_keys` keys are one unit.
    pub(crate) fn figures(self, unit_keys: u32) -> Figures {
        let per = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        let units = |keys: u64| keys as f64 / unit_keys as f64;
        let write_by_level: Vec<f64> =
            self.written.iter().map(|&keys| per(keys as f64, self.updates)).collect();
        let chains = sorted(self.chains.iter().map(|c| c.total));
        let jobs = sorted(self.chains.iter().map(|c| c.largest_job));
        let works = sorted(self.works.iter().copied());
        let work_mean = per(units(works.iter().sum()), self.flushes);
        let work_p99 = units(percentile(&works, 99));
        Figures {
            write_amplification: write_by_level.iter().sum(),
            write_by_level,
            runs: per(self.runs as f64, self.flushes),
            probes_mean: per(self.probes as f64, self.probed),
            probes_max: self.probes_max,
            chain_p50: units(percentile(&chains, 50)),
            chain_p99: units(percentile(&chains, 99)),
            chain_max: units(percentile(&chains, 100)),
            job_p99: units(percentile(&jobs, 99)),
            job_mean: per(units(self.merged), self.merges),
            job_max: units(self.job_max),
            work_mean,
            work_p99_over_mean: if work_mean > 0.0 { work_p99 / work_mean } else { 0.0 },
            space_mean: per(self.space, self.flushes),
            space_max: self.space_max,
            levels: self.levels,
            merges_per_flush: per(self.merges as f64, self.flushes),
            moves_per_flush: per(self.moves as f64, self.flushes),
            tables_per_flush: per(self.made as f64, self.flushes),
            tables_mean: per(self.tables as f64, self.flushes),
        }
    }
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// Returns the smallest value that this percentage of all is not above; 0 of none.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (100, 198));
        assert_eq!(
            (percentile(&values, 100), percentile(&[7], 50), percentile(&[], 99)),
            (200, 7, 0)
        );
    }
}
