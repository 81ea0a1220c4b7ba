//! Merlin's estimates against the truth, as updates rewrite the tables.
//!
//! Zhu, Wei, Athanassoulis: "Dynamic Workload-Aware BF Tuning via Accurate
//! Statistics Estimation in LSM Trees", section 4.

use super::draws::Draws;
use super::experiment::{
    Branch, Case, Claim, Contender, Experiment, Gets, Goal, Phase, Place, Scale, Work,
};
use super::records::Sizes;

const ENGINE: &str = "merlin";
const AVERAGING: &str = "averaging";
const CASE: &str = "Z = 0.5";
const PHASE: &str = "estimates";

/// Records of the full set-up, to which its sizes belong.
const FULL_RECORDS: u64 = 1_000_000;

const CHECKS: u32 = 25;

pub(super) fn experiment(scale: Scale) -> Experiment {
    let count = scale.of(2_000, 100_000, FULL_RECORDS);
    let checks = scale.of(3, CHECKS, CHECKS);
    let scaled = |full_bytes: u64| (full_bytes * count / FULL_RECORDS).max(64 << 10).to_string();
    let branch = |(name, draws): (&str, Draws)| {
        // As many gets as records, half as many updates, over all checks.
        let (puts, gets) = (count / 2 / u64::from(checks), count / u64::from(checks));
        let work = Work::Estimates { draws, absent: 0.5, checks, puts, gets };
        Branch { name: name.to_owned(), phases: vec![Phase { name: PHASE, work }] }
    };
    let load = Work::Mixed { puts: Draws::Shuffled, ops: count, gets: Gets::NONE };
    let policy = "leveled shape=leveling(t=4) filters=mnemosyne(bits=6)";
    Experiment {
        name: "merlin",
        title: "Merlin: searches in vain of each table, estimated and true",
        notes: vec![
            format!("{checks} checks, a median each; the truth is every get so far, replayed."),
            "Averaging: a new table begins with the mean of those that it replaces.".into(),
        ],
        cases: vec![Case {
            name: CASE.to_owned(),
            sizes: Sizes { count, key_bytes: 16, value_bytes: (1008, 1008) },
            regions: 1,
            settings: vec![
                ("memory_bytes", "128MiB".into()),
                // 64 MB over ten, in proportion to the records.
                ("memtable_bytes", scaled(6_400_000)),
                ("file_bytes", scaled(6_400_000)),
                ("level_base_bytes", scaled(25_600_000)),
                ("partition_bytes", "1GiB".into()),
            ],
            contenders: vec![Contender::new("mnemosyne", policy)],
            load: vec![Phase { name: "load", work: load }],
            branches: [("uniform", Draws::Uniform), ("zipf", Draws::Zipf(0.99))]
                .map(branch)
                .to_vec(),
        }],
        rounds: 1,
        shown: &["cosine", "euclidean", "euclidean_share", "tables"],
        goals: goals(),
    }
}

fn goals() -> Vec<Goal> {
    let goal = |branch, figure, claim| Goal {
        at: Place::new(CASE, branch, PHASE),
        figure,
        ours: ENGINE,
        claim,
    };
    ["uniform", "zipf"]
        .into_iter()
        .flat_map(|branch| {
            [
                goal(branch, "cosine", Claim::Reaches(0.85)),
                goal(branch, "cosine", Claim::more(AVERAGING, 0.9)),
                goal(branch, "euclidean", Claim::times_less(AVERAGING, 2.0)),
            ]
        })
        .collect()
}
