//! Autumn's micro benchmark: T = 2, no filters, no cache, direct I/O.
//!
//! Zhao, Miller, Reznikov, Agrawal, El Abbadi: "Autumn: A Scalable Read
//! Optimized LSM-tree based Key-Value Stores with Fast Point and Range Read
//! Speed", section 4.2.

use super::draws::Draws;
use super::experiment::{
    Branch, Case, Claim, Contender, Experiment, Gets, Goal, Phase, Place, Read, Scale, Work,
};
use super::records::Sizes;

const PLAIN: &str = "c=1";
const PAPER: &str = "c=0.8";
const DEEP: &str = "c=0.4";

pub(super) fn experiment(scale: Scale) -> Experiment {
    let values = scale.of(vec![50], vec![50, 200], vec![50, 100, 200]);
    let orders = [("in random order", Draws::Uniform), ("in key order", Draws::Sequential)];
    let cases = values.iter().flat_map(|&value| orders.map(|order| case(scale, value, order)));
    Experiment {
        name: "autumn",
        title: "Autumn: fewer levels by ratios that grow towards the top (T = 2)",
        notes: vec![
            "Keys are drawn with repetition, as the paper's tool does: 63 % of all exist.".into(),
            "Throughput of a load counts until no merge is due.".into(),
        ],
        cases: cases.collect(),
        rounds: 1,
        shown: &[
            "kops_per_s",
            "put_us_mean",
            "write_amplification",
            "read_us_mean",
            "read_us_p99",
            "device_read_kib_per_op",
            "levels",
            "runs",
        ],
        goals: goals(),
    }
}

fn contenders() -> Vec<Contender> {
    let shape = |shape: &str| format!("leveled shape={shape} filters=none");
    vec![
        Contender::new(PLAIN, shape("leveling(t=2)")),
        Contender::new(PAPER, shape("garnering(t=2,c=0.8)")),
        Contender::new(DEEP, shape("garnering(t=2,c=0.4)")),
        // The paper's formula to the letter: level 1 grows with the tree.
        Contender::new("c=0.8 (Eq. 5)", shape("garnering(t=2,c=0.8,base=growing)")),
    ]
}

fn case(scale: Scale, value_bytes: usize, (name, order): (&str, Draws)) -> Case {
    let count = scale.of(20_000, 2_000_000, 2_000_000);
    let load = Work::Mixed { puts: order, ops: count, gets: Gets::NONE };
    let reads = |name, read, ops| Phase {
        name,
        work: Work::Reads { read, draws: Draws::Uniform, ops, absent: 0.0 },
    };
    let ops = scale.of(500, 6_000, 200_000);
    let branches = match order {
        // The paper reads what was filled in random order.
        Draws::Uniform => vec![Branch {
            name: String::new(),
            phases: vec![
                reads("readrandom", Read::Get, ops),
                reads("seekrandom", Read::Seek(0), ops),
                reads("seek+10", Read::Seek(10), ops),
                reads("seek+100", Read::Seek(100), ops / 2),
            ],
        }],
        _ => Vec::new(),
    };
    Case {
        name: case_name(value_bytes, name),
        sizes: Sizes { count, key_bytes: 16, value_bytes: (value_bytes, value_bytes) },
        regions: 1,
        settings: vec![
            ("memory_bytes", "128MiB".into()),
            ("memtable_bytes", scale.of("64KiB", "4MiB", "4MiB").into()),
            ("file_bytes", scale.of("64KiB", "2MiB", "2MiB").into()),
            ("level_base_bytes", scale.of("100KiB", "10MiB", "10MiB").into()),
            ("cache_bytes", "64KiB".into()),
            // Indexes stay in memory, as the paper's do.
            ("partition_bytes", "1GiB".into()),
        ],
        contenders: contenders(),
        load: vec![Phase { name: "fill", work: load }],
        branches,
    }
}

fn case_name(value_bytes: usize, order: &str) -> String {
    format!("{value_bytes} B values {order}")
}

fn goals() -> Vec<Goal> {
    let goal = |value, phase: &str, figure, ours, claim| Goal {
        at: Place::new(&case_name(value, "in random order"), "", phase),
        figure,
        ours,
        claim,
    };
    let less = |share| Claim::less(PLAIN, share);
    vec![
        goal(50, "readrandom", "read_us_mean", PAPER, less(0.19)),
        goal(50, "seekrandom", "read_us_mean", PAPER, less(0.19)),
        goal(200, "seek+10", "read_us_mean", PAPER, less(0.09)),
        goal(200, "seek+100", "read_us_mean", PAPER, less(0.05)),
        goal(50, "tree", "levels", PAPER, less(0.20)),
        goal(50, "tree", "levels", DEEP, less(0.40)),
    ]
}
