//! Compaction chains: how much merging one job out of level 0 causes.
//!
//! A chain begins with a job that takes from level 0. Every merge of that tree until its picker is
//! idle, or until the next such job, belongs to it: the work that restores the limits of all
//! levels. Its width is the bytes read and written, its length the number of levels merged into:
//! the two figures that vLSM's paper (sections 3 and 6.2) holds against write stalls. With several
//! merges at a time chains overlap; bytes are then the newest chain's.
//!
//! Owns: the chain under way (one per tree) and the figures of those that ended (one per database).
//! Never does: decide anything.

use crate::lock_ranks;
use windrow_env::sync::Mutex;
use windrow_plan::Decision;

/// The chain that a tree is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chain {
    /// Bit n: a merge wrote to level n.
    levels: u64,
    bytes: u64,
    open: bool,
}

impl Chain {
    /// Notes that a decision is about to be run. Returns the chain that it ends.
    pub fn begin(&mut self, decision: &Decision) -> Option<Chain> {
        let from_level0 = match decision {
            Decision::Merge(merge) => merge.inputs.first().is_some_and(|input| input.level == 0),
            Decision::Move(step) => step.from.0 == 0,
            Decision::Idle | Decision::Drop(_) | Decision::Reshape(_) => false,
        };
        if !from_level0 {
            return None;
        }
        let ended = self.end();
        debug_assert_eq!((self.levels, self.bytes), (0, 0), "a chain begins with another's merges");
        self.open = true;
        ended
    }

    /// Adds a merge into `level`, which has read and written this many bytes in all.
    pub fn add(&mut self, level: u32, bytes: u64) {
        if self.open {
            self.levels |= 1 << level.min(63);
            self.bytes += bytes;
        }
        debug_assert!(self.open || self.bytes == 0, "{} bytes of no chain", self.bytes);
    }

    /// Notes that the picker is idle. Returns the chain that this ends.
    pub fn end(&mut self) -> Option<Chain> {
        std::mem::take(self).some_if_open()
    }

    fn some_if_open(self) -> Option<Chain> {
        self.open.then_some(self)
    }
}

/// The steps of each power of two: a figure is at most an eighth low.
const STEPS: usize = 8;

/// Chains that have ended.
#[derive(Debug)]
pub struct Chains(Mutex<EndedChains>);

#[derive(Debug, Default)]
struct EndedChains {
    count: u64,
    bytes: u64,
    bytes_max: u64,
    length_max: u64,
    /// Chains by width.
    widths: Vec<u64>,
}

/// Chains of one database, widths in bytes read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStats {
    /// The number of chains that ended.
    pub count: u64,
    /// The sum of their widths.
    pub bytes: u64,
    /// Median width, rounded down by an eighth at most.
    pub bytes_p50: u64,
    /// Width that one in a hundred exceeds, rounded the same way.
    pub bytes_p99: u64,
    /// The widest.
    pub bytes_max: u64,
    /// The most levels into which one merged.
    pub length_max: u64,
}

impl Default for Chains {
    fn default() -> Chains {
        Chains(Mutex::new(lock_ranks::CHAINS, EndedChains::default()))
    }
}

impl Chains {
    /// Counts a chain that ended.
    pub fn record(&self, chain: Chain) {
        let mut ended = self.0.lock();
        let most = ended.bytes_max.saturating_mul(ended.count);
        debug_assert!(ended.bytes <= most, "{} chains took {} bytes", ended.count, ended.bytes);
        ended.count += 1;
        ended.bytes += chain.bytes;
        ended.bytes_max = ended.bytes_max.max(chain.bytes);
        ended.length_max = ended.length_max.max(chain.levels.count_ones().into());
        debug_assert!(chain.open, "a chain ends that did not begin");
        let bucket = bucket_of(chain.bytes);
        let (from, to) = (bucket_start(bucket), bucket_start(bucket + 1));
        debug_assert!((from..to).contains(&chain.bytes), "{} of {from} to {to}", chain.bytes);
        if ended.widths.len() <= bucket {
            ended.widths.resize(bucket + 1, 0);
        }
        ended.widths[bucket] += 1;
    }

    /// The figures so far.
    pub fn snapshot(&self) -> ChainStats {
        let ended = self.0.lock();
        ChainStats {
            count: ended.count,
            bytes: ended.bytes,
            bytes_p50: ended.percentile(50),
            bytes_p99: ended.percentile(99),
            bytes_max: ended.bytes_max,
            length_max: ended.length_max,
        }
    }
}

impl EndedChains {
    fn percentile(&self, percent: u64) -> u64 {
        let listed = self.widths.iter().sum::<u64>();
        debug_assert_eq!(listed, self.count, "chains by width, and all chains");
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        let reached = |n: &u64| {
            seen += n;
            seen >= rank
        };
        let width = self.widths.iter().position(reached).map_or(0, bucket_start);
        debug_assert!(width <= self.bytes_max, "one in {percent} is wider than {}", self.bytes_max);
        width
    }
}

fn bucket_of(bytes: u64) -> usize {
    if bytes < STEPS as u64 {
        return bytes as usize;
    }
    let power = bytes.ilog2() as usize;
    let step = (bytes >> (power - 3)) as usize - STEPS;
    debug_assert!(step < STEPS, "step {step} of {STEPS} for {bytes}");
    (power - 2) * STEPS + step
}

fn bucket_start(bucket: usize) -> u64 {
    match bucket / STEPS {
        0 => bucket as u64,
        n => ((STEPS + bucket % STEPS) as u64) << (n - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_plan::tree::Part;
    use windrow_plan::{Input, Merge, Reason};

    fn merge(from: u32) -> Decision {
        Decision::Merge(Merge {
            inputs: vec![Input { level: from, part: Part::SstLog, files: Vec::new() }],
            output_level: from + 1,
            output_part: Part::Run,
            output_epoch: 0,
            bounds: (Vec::new(), Vec::new(), false),
            reason: Reason::Manual,
            cursor: None,
        })
    }

    #[test]
    fn a_chain_is_what_follows_a_job_out_of_level_0() {
        let mut chain = Chain::default();
        // Merging before any job out of level 0 belongs to no chain.
        assert!(chain.begin(&merge(1)).is_none());
        chain.add(2, 100);
        assert!(chain.end().is_none());
        assert!(chain.begin(&merge(0)).is_none());
        chain.add(1, 100);
        assert!(chain.begin(&merge(1)).is_none());
        chain.add(2, 50);
        let first = chain.begin(&merge(0)).unwrap();
        assert_eq!((first.bytes, first.levels.count_ones()), (150, 2));
        chain.add(1, 7);
        assert_eq!(chain.end().unwrap().bytes, 7);
        assert!(chain.end().is_none());
    }

    #[test]
    fn percentiles_are_an_eighth_low_at_most() {
        let mut last = 0;
        for bytes in (0..4096).chain((12..63).flat_map(|p| [(1 << p) - 1, 1 << p, 3 << (p - 1)])) {
            let bucket = bucket_of(bytes);
            let start = bucket_start(bucket);
            assert!(start <= bytes && bytes - start <= bytes / 8, "{bytes}: {start}");
            last = last.max(bucket);
        }
        assert!(last < 64 * STEPS);
        let chains = Chains::default();
        for n in 1..=100 {
            chains.record(Chain { levels: 0b110, bytes: n * 1000, open: true });
        }
        let stats = chains.snapshot();
        assert_eq!((stats.count, stats.bytes_max, stats.length_max), (100, 100_000, 2));
        assert!((44_000..=50_000).contains(&stats.bytes_p50), "{stats:?}");
        assert!((87_000..=99_000).contains(&stats.bytes_p99), "{stats:?}");
    }
}
