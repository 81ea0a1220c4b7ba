//! The JSON lines of a run: its head, then a line for each phase of each
//! contender in each round.
//!
//! Owns: the lines' fields, which `runner.rs` writes and reports read. Never
//! does: I/O.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first line.
    Run(Box<Head>),
    /// One phase of one contender in one round.
    Phase(Box<PhaseLine>),
    /// The last line of a run that came to its end.
    End(End),
}

/// The description of a run: its command, its workloads, its contenders and the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Version of these lines; 1.
    pub(crate) version: u32,
    /// UTC, as in `2026-11-20T16:40:00Z`.
    pub(crate) started: String,
    /// The program's arguments.
    pub(crate) command: Vec<String>,
    pub(crate) seed: u64,
    /// `quick`, `reduced` or `full`.
    pub(crate) scale: String,
    /// Memory budget, background threads and so on, where the command overrides the workloads'
    /// values.
    pub(crate) overrides: BTreeMap<String, String>,
    pub(crate) contenders: Vec<ContenderLine>,
    pub(crate) workloads: Vec<WorkloadLine>,
    pub(crate) machine: Machine,
}

/// A store under one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContenderLine {
    /// Its name on the command line: `windrow`, `windrow:leveled`, `rocksdb:pipelined`.
    pub(crate) name: String,
    pub(crate) engine: String,
    pub(crate) version: String,
    /// The settings of its adapter and their reasons.
    pub(crate) tuning: String,
    /// Whether it can bypass the page cache.
    pub(crate) direct_io: bool,
}

/// A workload of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkloadLine {
    pub(crate) name: String,
    pub(crate) title: String,
    /// `db_bench`, `ycsb` ...
    pub(crate) family: String,
    pub(crate) about: String,
    pub(crate) rounds: u32,
    pub(crate) records: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) direct_io: bool,
    /// Names of its phases that are measured, in order.
    pub(crate) phases: Vec<String>,
    /// Figures that its tables show, in place of the usual costs.
    #[serde(default)]
    pub(crate) shown: Vec<String>,
    /// Figures that the tables of single phases show, by the names of these phases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) shown_in: BTreeMap<String, Vec<String>>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
    /// Type of the file system of the databases' directory.
    pub(crate) file_system: String,
}

/// One phase of one contender in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PhaseLine {
    pub(crate) workload: String,
    pub(crate) phase: String,
    pub(crate) contender: String,
    pub(crate) round: u32,
    pub(crate) clients: u32,
    /// Operations done.
    pub(crate) ops: u64,
    /// Figures with their units in their names: `kops_per_s`, `seconds`, `drain_s`,
    /// `cpu_us_per_op`, `peak_rss_mib`, `peak_anonymous_mib`, `device_read_mib`, `device_written_mib`,
    /// `write_amplification`, `read_amplification`, `space_amplification`, `space_while_writing` (a
    /// mean), `space_while_writing_max`, `disk_mib`, `disk_peak_mib`, `open_ms`, `blocks_per_get`,
    /// `blocks_read_per_get`, `false_positives_per_get`, `level1_hits_per_get`, `paused_s`,
    /// `pauses`, `stalled_s`, `open_files`, those of `child/measure.rs` on the tree, and those of
    /// estimates, of backups (`child/backups.rs`) and of consumers (`child/consumers.rs`).
    pub(crate) figures: BTreeMap<String, f64>,
    /// Latencies by the kind of operation.
    pub(crate) latencies: BTreeMap<String, Latency>,
    /// The timeline of closed loops of a second and more, and of open loops.
    pub(crate) timeline: Option<Timeline>,
    /// Operations per second sent, in the open loop.
    pub(crate) rate_per_s: Option<f64>,
    /// The checksum of all answers, where operations have one order.
    pub(crate) answers: Option<String>,
    /// The checksum of the final contents.
    pub(crate) contents: Option<String>,
    /// Whether the workload asked for direct I/O and the store had none: its
    /// files were dropped from the page cache before reads instead.
    pub(crate) evicted: bool,
    /// Whether the workload asked for direct I/O, the store had none, and it
    /// read while it wrote: through the page cache, which no budget bounds.
    #[serde(default)]
    pub(crate) buffered: bool,
}

/// A distribution of latencies, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
    /// (percentile from 0 to 100, microseconds), rising in both.
    pub(crate) curve: Vec<(f64, f64)>,
}

impl Latency {
    /// Returns the latency at a percentile of the curve, or at the next one that the curve has.
    pub(crate) fn at(&self, percentile: f64) -> f64 {
        self.curve.iter().find(|(known, _)| percentile <= *known).map_or(self.max, |(_, us)| *us)
    }
}

/// Operations done over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timeline {
    pub(crate) step_s: f64,
    /// Operations that completed in each step; the last one may be cut short.
    pub(crate) ops: Vec<u64>,
    /// The longest time in which nothing completed, in milliseconds.
    pub(crate) longest_gap_ms: f64,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) seconds: f64,
    /// Answers or contents that differ between contenders; empty if there is no difference.
    pub(crate) disagreements: Vec<String>,
}
