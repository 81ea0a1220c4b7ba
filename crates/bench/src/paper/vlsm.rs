//! vLSM's tail latencies in the open loop, by regions.
//!
//! "vLSM: Low tail latency and I/O amplification in LSM-based KV stores",
//! sections 5 and 6.

use super::draws::Draws;
use super::experiment::{
    Branch, Case, Claim, Contender, Experiment, Gets, Goal, OpenLoop, Phase, Place, Scale, Work,
};
use super::records::Sizes;

const BASELINE: &str = "leveled";
const PAPER: &str = "vlsm";
const OURS: &str = "windrow";
const LOAD: &str = "load";
const RUN_A: &str = "run A";

pub(super) fn experiment(scale: Scale) -> Experiment {
    let regions = scale.of(vec![2], vec![1], vec![1, 4]);
    Experiment {
        name: "vlsm",
        title: "vLSM: short compaction chains, latencies in the open loop",
        notes: vec![
            "Latency counts from the intended start, at a share of what the slowest sustains."
                .into(),
            "An idle client sleeps: its wake-up (about 60 us) is in every percentile.".into(),
            "Stalled: time in slots of 10 ms in which nothing completed.".into(),
        ],
        cases: regions.into_iter().map(|n| case(scale, n)).collect(),
        rounds: 1,
        shown: &[
            "kops_per_s",
            "served_share",
            "put_us_p50",
            "put_us_p99",
            "put_us_p999",
            "get_us_p50",
            "get_us_p99",
            "get_us_p999",
            "stalled_ms",
            "write_amplification",
            "chain_mib_p99",
            "levels",
        ],
        goals: goals(scale),
    }
}

/// The baseline and Windrow keep the memtable of the baseline; vLSM ties its
/// own to the size of its tables.
fn contenders(scale: Scale) -> Vec<Contender> {
    let sized = |name, policy: &str, memtable: &str, file: &str, base: &str| Contender {
        settings: vec![
            ("memtable_bytes", memtable.into()),
            ("file_bytes", file.into()),
            ("level_base_bytes", base.into()),
        ],
        ..Contender::new(name, policy)
    };
    let (large, small) = scale.of(("256KiB", "64KiB"), ("4MiB", "512KiB"), ("4MiB", "512KiB"));
    let (base, tiny) = scale.of(("1MiB", "256KiB"), ("16MiB", "4MiB"), ("16MiB", "4MiB"));
    vec![
        sized(BASELINE, "leveled shape=leveling(t=8)", large, large, base),
        sized(PAPER, "vlsm", small, small, tiny),
        sized(OURS, "windrow", large, small, base),
    ]
}

fn case(scale: Scale, regions: u32) -> Case {
    let count = scale.of(5_000, 800_000, 5_500_000);
    let open_loop = |name, share| Phase {
        name,
        work: Work::OpenLoop(OpenLoop {
            puts: Draws::Uniform,
            gets: Gets { draws: Draws::Uniform, share, absent: 0.0 },
            threads: 4,
            search_s: scale.of(0.2, 6.0, 60.0),
            window_s: scale.of(0.2, 8.0, 60.0),
            windows: scale.of(1, 2, 5),
            loads_percent: match share > 0.0 {
                true => vec![80],
                false => scale.of(vec![60], vec![60, 80, 95], vec![60, 80, 95]),
            },
        }),
    };
    let fill = Work::Mixed { puts: Draws::Shuffled, ops: count, gets: Gets::NONE };
    Case {
        name: case_name(regions),
        sizes: Sizes { count, key_bytes: 24, value_bytes: (176, 176) },
        regions,
        settings: vec![
            ("memory_bytes", "96MiB".into()),
            ("cache_bytes", scale.of("1MiB", "8MiB", "32MiB").into()),
        ],
        contenders: contenders(scale),
        load: vec![Phase { name: "fill", work: fill }],
        branches: vec![Branch {
            name: String::new(),
            phases: vec![open_loop(LOAD, 0.0), open_loop(RUN_A, 0.5)],
        }],
    }
}

fn case_name(regions: u32) -> String {
    if regions == 1 { "1 region".to_owned() } else { format!("{regions} regions") }
}

fn goals(scale: Scale) -> Vec<Goal> {
    let case = case_name(scale.of(2, 1, 4));
    let mut goals = Vec::new();
    for ours in [PAPER, OURS] {
        let mut goal = |phase: &str, figure, claim| {
            goals.push(Goal { at: Place::new(&case, "", phase), figure, ours, claim });
        };
        goal("load at 95 %", "put_us_p99", Claim::times_less(BASELINE, 4.8));
        goal("load at 95 %", "stalled_ms", Claim::less(BASELINE, 0.60));
        goal("run A at 80 %", "get_us_p99", Claim::times_less(BASELINE, 12.5));
        // "The same I/O amplification."
        goal("load at 80 %", "write_amplification", Claim::less(BASELINE, 0.0));
        goal("tree", "chain_mib_p99", Claim::times_less(BASELINE, 20.0));
    }
    goals
}
