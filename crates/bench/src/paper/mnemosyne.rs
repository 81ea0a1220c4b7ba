//! Mnemosyne's block reads in vain and latencies, by filter memory.
//!
//! Zhu, Wei, Athanassoulis: "Dynamic Workload-Aware BF Tuning via Accurate
//! Statistics Estimation in LSM Trees", section 5.

use super::draws::Draws;
use super::experiment::{
    Branch, Case, Claim, Contender, Experiment, Gets, Goal, Phase, Place, Read, Scale, Work,
};
use super::records::Sizes;

const UNIFORM: &str = "uniform";
const MONKEY: &str = "monkey";
const PAPER: &str = "mnemosyne";

/// Records of the full set-up, to which its sizes belong.
const FULL_RECORDS: u64 = 2_600_000;

pub(super) fn experiment(scale: Scale) -> Experiment {
    let bits = scale.of(vec![2], vec![2], vec![2, 4, 6]);
    Experiment {
        name: "mnemosyne",
        title: "Mnemosyne: filter memory where searches are in vain (T = 4)",
        notes: vec![
            "Load, then three gets to each update, then gets alone, which are measured.".into(),
            "Wasted blocks: blocks a get looked into beyond the one that had its key.".into(),
            "Z: the share of gets whose key does not exist.".into(),
        ],
        cases: bits.into_iter().map(|bits| case(scale, bits)).collect(),
        rounds: 1,
        shown: &[
            "wasted_blocks_per_get",
            "read_us_mean",
            "read_us_p99",
            "kops_per_s",
            "filter_bits_per_key",
        ],
        goals: goals(),
    }
}

/// What gets ask for: a name, their keys, the share of absent ones.
const QUERIES: [(&str, Draws, f64); 6] = [
    ("uniform Z=0", Draws::Uniform, 0.0),
    ("uniform Z=0.5", Draws::Uniform, 0.5),
    ("uniform Z=1", Draws::Uniform, 1.0),
    ("zipf Z=0", Draws::Zipf(0.99), 0.0),
    ("normal Z=0", Draws::Normal(0.05), 0.0),
    ("normal Z=1", Draws::Normal(0.05), 1.0),
];

fn case(scale: Scale, bits: u32) -> Case {
    let count = scale.of(4_000, 200_000, FULL_RECORDS);
    let sizes = Sizes { count, key_bytes: 128, value_bytes: (384, 384) };
    // The paper's sizes over eight, in proportion to the records.
    let scaled = |full_bytes: u64| (full_bytes * count / FULL_RECORDS).max(64 << 10).to_string();
    let branch = |(name, draws, absent): (&str, Draws, f64)| {
        let gets = Gets { draws, share: 0.75, absent };
        let mixed = Work::Mixed { puts: Draws::Uniform, ops: count * 4 / 3, gets };
        let ops = scale.of(400, 20_000, 500_000);
        let reads = Work::Reads { read: Read::Get, draws, ops, absent };
        let phases =
            vec![Phase { name: "mixed", work: mixed }, Phase { name: "gets", work: reads }];
        Branch { name: name.to_owned(), phases }
    };
    let contender = |name| {
        Contender::new(name, format!("leveled shape=leveling(t=4) filters={name}(bits={bits})"))
    };
    let load = Work::Mixed { puts: Draws::Shuffled, ops: count, gets: Gets::NONE };
    Case {
        name: case_name(bits),
        settings: vec![
            ("memory_bytes", scale.of("64MiB", "64MiB", "256MiB").into()),
            ("memtable_bytes", scaled(8 << 20)),
            ("file_bytes", scaled(8 << 20)),
            ("level_base_bytes", scaled(32 << 20)),
            ("block_bytes", "16KiB".into()),
            ("cache_bytes", (sizes.bytes() / 50).max(64 << 10).to_string()),
            ("partition_bytes", "1GiB".into()),
        ],
        sizes,
        regions: 1,
        contenders: [UNIFORM, MONKEY, PAPER].map(contender).to_vec(),
        load: vec![Phase { name: "load", work: load }],
        branches: QUERIES.into_iter().take(scale.of(3, 6, 6)).map(branch).collect(),
    }
}

fn case_name(bits: u32) -> String {
    format!("{bits} bits per key")
}

fn goals() -> Vec<Goal> {
    let goal = |branch: &str, phase: &str, figure, claim| Goal {
        at: Place::new(&case_name(2), branch, phase),
        figure,
        ours: PAPER,
        claim,
    };
    vec![
        goal("uniform Z=0", "gets", "read_us_mean", Claim::times_less(UNIFORM, 2.0)),
        goal("uniform Z=0", "gets", "read_us_mean", Claim::less(MONKEY, 0.15)),
        goal("zipf Z=0", "gets", "read_us_mean", Claim::less(MONKEY, 0.145)),
        // Where all else is alike, the three meet: no loss is what is asked.
        goal("uniform Z=1", "gets", "wasted_blocks_per_get", Claim::less(MONKEY, 0.0)),
        goal("uniform Z=0", "mixed", "kops_per_s", Claim::more(UNIFORM, 0.0)),
    ]
}
