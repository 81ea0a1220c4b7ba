//! Made-up runs for tests: contenders with speeds, tails, stalls and rounds
//! like those of real ones.
//!
//! Owns: the generator. Never does: appear outside tests.

use crate::data::Draw;
use crate::record::{
    ContenderLine, End, Head, Latency, Line, Machine, PhaseLine, Timeline, WorkloadLine,
};
use std::collections::BTreeMap;

/// Contenders of samples, the most usual first: (name, engine, speed).
const CONTENDERS: [(&str, &str, f64); 9] = [
    ("windrow", "windrow", 1.0),
    ("rocksdb", "rocksdb", 0.6),
    ("leveldb", "leveldb", 0.3),
    ("fjall", "fjall", 0.8),
    ("windrow:leveled", "windrow", 1.04),
    ("rocksdb:pipelined", "rocksdb", 0.66),
    ("windrow:mnemosyne", "windrow", 0.9),
    ("windrow:lazy-leveled,size_ratio=4", "windrow", 0.8),
    ("rocksdb:universal", "rocksdb", 0.5),
];

/// The shape of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) contenders: usize,
    pub(crate) rounds: u32,
    /// All throughputs are multiplied by this, and all latencies divided by it.
    pub(crate) scale: f64,
}

/// (workload, title, phases: (name, kind, kops/s, open loop's rate))
type Shape =
    (&'static str, &'static str, &'static [(&'static str, &'static str, f64, Option<f64>)]);

const WORKLOADS: [Shape; 4] = [
    (
        "db_bench",
        "db_bench's phases in one database",
        &[
            ("fillrandom", "insert", 420.0, None),
            ("overwrite", "put", 300.0, None),
            ("readrandom", "get", 88.0, None),
            ("readmissing", "absent", 900.0, None),
            ("seekrandom-next-100", "scan", 6.4, None),
        ],
    ),
    (
        "ycsb-a",
        "half reads, half updates, scrambled zipfian",
        &[("load", "insert", 380.0, None), ("run", "get", 120.0, None)],
    ),
    (
        "ycsb-a-open",
        "the same at a fixed rate",
        &[("at 20 k/s", "get", 20.0, Some(20_000.0)), ("at 80 %", "update", 16.0, Some(16_000.0))],
    ),
    ("large-values", "values of 16 KiB to 1 MiB", &[("run", "put", 0.9, None)]),
];

impl Sample {
    /// Returns the lines of a run.
    pub(crate) fn lines(self) -> Vec<Line> {
        let mut lines = vec![Line::Run(Box::new(self.head()))];
        for (w, (workload, _, phases)) in WORKLOADS.iter().enumerate() {
            for round in 1..=self.rounds {
                for (c, contender) in CONTENDERS[..self.contenders].iter().enumerate() {
                    for (p, phase) in phases.iter().enumerate() {
                        let seed = ((w * 10 + p) * 100 + c) * 100 + round as usize;
                        let phase = self.phase(workload, *phase, *contender, round, seed as u64);
                        lines.push(Line::Phase(Box::new(phase)));
                    }
                }
            }
        }
        lines.push(Line::End(End { seconds: 1234.0, disagreements: Vec::new() }));
        lines
    }

    fn head(self) -> Head {
        let contender = |(name, engine, _): &(&str, &str, f64)| ContenderLine {
            name: (*name).to_owned(),
            engine: (*engine).to_owned(),
            version: "1.2.3".to_owned(),
            tuning: format!(
                "{engine}'s guide for this budget: a cache of 70 % of it, memtables charged to \
                 the cache, ten filter bits per key & pipelined writes."
            ),
            direct_io: *engine != "leveldb",
        };
        let workload = |(name, title, phases): &Shape| WorkloadLine {
            name: (*name).to_owned(),
            title: (*title).to_owned(),
            family: "sample".to_owned(),
            about: "Made up, to see what a report looks like.".to_owned(),
            rounds: self.rounds,
            records: 10_000_000,
            memory_bytes: 192 << 20,
            direct_io: *name != "large-values",
            shown: Vec::new(),
            shown_in: BTreeMap::new(),
            phases: phases.iter().map(|phase| phase.0.to_owned()).collect(),
        };
        Head {
            version: 1,
            started: "2026-11-20T16:40:00Z".to_owned(),
            command: ["bench", "run", "db_bench", "ycsb-a"].map(str::to_owned).to_vec(),
            seed: 1,
            scale: "reduced".to_owned(),
            overrides: BTreeMap::from([("background_threads".to_owned(), "2".to_owned())]),
            contenders: CONTENDERS[..self.contenders].iter().map(contender).collect(),
            workloads: WORKLOADS.iter().map(workload).collect(),
            machine: Machine {
                cpu: "Xeon, 2.3 GHz".to_owned(),
                cores: 2,
                memory_bytes: 24 << 30,
                kernel: "6.18".to_owned(),
                file_system: "ext4".to_owned(),
            },
        }
    }

    fn phase(
        self,
        workload: &str,
        (phase, kind, kops, rate): (&str, &str, f64, Option<f64>),
        (name, engine, speed): (&str, &str, f64),
        round: u32,
        seed: u64,
    ) -> PhaseLine {
        let mut draw = Draw::new(seed);
        // In scans this made-up Windrow is behind, in filters it is even.
        let speed = match (kind, engine) {
            ("scan", "windrow") => speed * 0.45,
            ("absent", "windrow" | "fjall") => 0.8,
            _ => speed,
        };
        let noise = 0.95 + 0.1 * draw.unit();
        let kops = kops * speed * noise * self.scale;
        let seconds = 40.0;
        let is_write = matches!(kind, "insert" | "put" | "update");
        let timeline = timeline(&mut draw, kops, seconds, is_write && engine == "rocksdb");
        let amplification = if is_write { 4.0 / speed * noise } else { 0.0 };
        let mut figures = BTreeMap::from([
            ("kops_per_s", kops),
            ("seconds", seconds),
            ("cpu_us_per_op", 2000.0 / kops),
            ("peak_rss_mib", 90.0 / speed * noise),
            ("write_amplification", amplification),
            ("space_amplification", 1.0 + 0.2 / speed * noise),
            ("disk_mib", 1300.0 * noise),
            ("open_ms", 12.0 / speed),
            ("stalled_s", timeline.longest_gap_ms / 1000.0),
        ]);
        if kind == "insert" {
            figures.insert("undrained_kops_per_s", kops * 1.3);
        }
        if engine == "windrow" || engine == "rocksdb" {
            figures.insert("read_amplification", 1.0 + 3.0 * draw.unit());
            figures.insert("blocks_per_get", 1.1 * noise);
        }
        let ops = (kops * seconds * 1000.0) as u64;
        let us = 1000.0 / kops;
        let mut latencies = BTreeMap::from([(kind.to_owned(), latency(&mut draw, us, ops))]);
        if workload.starts_with("ycsb-a") && phase != "load" {
            latencies.insert("put".to_owned(), latency(&mut draw, us * 0.2, ops / 2));
        }
        PhaseLine {
            workload: workload.to_owned(),
            phase: phase.to_owned(),
            contender: name.to_owned(),
            round,
            clients: 1,
            ops,
            figures: figures.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            latencies,
            timeline: Some(timeline),
            rate_per_s: rate,
            answers: None,
            contents: None,
            evicted: workload != "large-values" && engine == "leveldb",
            buffered: false,
        }
    }
}

/// Returns a lognormal middle and a tail that grows with every nine.
fn latency(draw: &mut Draw, us: f64, count: u64) -> Latency {
    let heavy = 1.2 + 0.8 * draw.unit();
    let at = |percentile: f64| {
        let nines = -(1.0 - percentile / 100.0).max(1e-7).log10();
        us * (0.4 + 0.5 * percentile / 100.0 + 0.6 * nines.powf(heavy))
    };
    let percentiles = [
        0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
        99.99, 99.999, 100.0,
    ];
    let known = |p: &f64| *p == 100.0 || count as f64 * (100.0 - p) >= 100.0;
    Latency {
        count,
        mean: us,
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p999: at(99.9),
        max: at(100.0),
        curve: percentiles.into_iter().filter(known).map(|p| (p, at(p))).collect(),
    }
}

/// Returns a throughput that jumps; where it stalls, two steps of every ten are
/// zero.
fn timeline(draw: &mut Draw, kops: f64, seconds: f64, stalls: bool) -> Timeline {
    let step = |i: usize| {
        if stalls && matches!(i % 10, 6 | 7) {
            0.0
        } else {
            kops * 1000.0 * (0.6 + 0.8 * draw.unit())
        }
    };
    let mut ops: Vec<u64> = (0..seconds as usize).map(step).map(|ops| ops as u64).collect();
    ops.push((kops * 300.0) as u64);
    Timeline { step_s: 1.0, ops, longest_gap_ms: if stalls { 2140.0 } else { 13.5 } }
}

/// Returns lines as the text of a file.
pub(crate) fn text(lines: &[Line]) -> String {
    let line = |line: &Line| serde_json::to_string(line).unwrap_or_default() + "\n";
    lines.iter().map(line).collect()
}
