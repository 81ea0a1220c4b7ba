//! Random trees against a map: flushes, jobs of the policy and of policies that
//! do not exist yet, two at a time, snapshots, range tombstones.
//!
//! `sim.rs` carries decisions out at key granularity; here are the properties:
//! every read through the tree's read order is right at every snapshot, entries
//! of a key never stand out of order (I3, I4), picking ends with every level
//! within its limit (I10), manual compaction ends with nothing superfluous.

mod sim;

use proptest::prelude::*;
use sim::{Entry, Random, Sim};
use windrow_plan::tree::Part;
use windrow_plan::{ManualState, Policy};

/// One step of a history. Numbers choose among what is there, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    Flush {
        entries: Vec<(u8, Entry)>,
        cut: Option<u8>,
    },
    /// A range tombstone from the first key for some length.
    FlushRange {
        entries: Vec<(u8, Entry)>,
        start: u8,
        len: u8,
    },
    Pick,
    Finish(u8),
    /// A job or move that another policy might make: a seed and where it goes.
    Foreign {
        seed: u8,
        to: u8,
    },
    Snapshot,
    Release(u8),
    /// From here on as if under another policy.
    Policy(u8),
}

const POLICIES: [&str; 4] = [
    "leveled shape=leveling(t=3) level0=tiered(k=2)",
    "leveled shape=leveling(t=2) level0=tiered(k=3) pick=leveled(file=round_robin)",
    "leveled shape=leveling(t=4) level0=tiered(k=1)",
    "leveled",
];

fn entries() -> impl Strategy<Value = Vec<(u8, Entry)>> {
    let entry = prop_oneof![3 => any::<u16>().prop_map(Entry::Put), 1 => Just(Entry::Delete)];
    proptest::collection::vec((0u8..64, entry), 1..16)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (entries(), proptest::option::of(0u8..64))
            .prop_map(|(entries, cut)| Step::Flush { entries, cut }),
        1 => (entries(), 0u8..64, 1u8..20)
            .prop_map(|(entries, start, len)| Step::FlushRange { entries, start, len }),
        4 => Just(Step::Pick),
        4 => any::<u8>().prop_map(Step::Finish),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(seed, to)| Step::Foreign { seed, to }),
        1 => Just(Step::Snapshot),
        1 => any::<u8>().prop_map(Step::Release),
        1 => any::<u8>().prop_map(Step::Policy),
    ]
}

fn run(steps: Vec<Step>) {
    let mut sim = Sim::new(Policy::parse(POLICIES[0]).unwrap());
    for step in steps {
        match step {
            Step::Flush { entries, cut } => sim.flush(&entries, None, cut),
            Step::FlushRange { entries, start, len } => {
                sim.flush(&entries, Some((start, start.saturating_add(len))), None);
            }
            Step::Pick => {
                sim.start_pick();
            }
            Step::Finish(which) => sim.finish(which as usize),
            Step::Foreign { seed, to } => sim.start_foreign(seed as usize, to as usize),
            Step::Snapshot => sim.snapshot(),
            Step::Release(which) => sim.release(which as usize),
            Step::Policy(which) => {
                sim.policy = Policy::parse(POLICIES[which as usize % POLICIES.len()]).unwrap();
            }
        }
        sim.check();
    }
    settles(&mut sim);
    compacts(&mut sim);
}

/// Picking comes to an end, and the tree is within its limits then.
fn settles(sim: &mut Sim) {
    let limit = 50 * (sim.version.file_count() + 20);
    for _ in 0..limit {
        if !sim.start_pick() {
            if !sim.is_working() {
                break;
            }
            sim.finish(0);
        }
    }
    assert!(!sim.start_pick() && !sim.is_working(), "picking goes on:\n{}", sim.version);
    sim.check();
    let (version, settings) = (&sim.version, &sim.settings);
    assert!(sim.policy.level0_score(version, settings) < 1.0, "level 0 is deep:\n{version}");
    for level in 1..version.levels.len() as u32 {
        let capacity = sim.policy.capacity(version, settings, level);
        assert!(version.part_bytes(level, Part::Run) <= capacity, "L{level} is full:\n{version}");
        assert!(version.part(level, Part::Log).is_empty(), "log {level} is left:\n{version}");
    }
}

/// A manual compaction without snapshots leaves the live entries and no others.
fn compacts(sim: &mut Sim) {
    sim.release_all();
    let mut state = ManualState::new();
    let mut steps = 0;
    while sim.start_manual(&mut state) {
        sim.finish(0);
        steps += 1;
        assert!(steps < 2000, "manual compaction goes on:\n{}", sim.version);
    }
    assert!(state.is_done());
    sim.check();
    assert_eq!(sim.entries(), sim.live(), "{}", sim.version);
    let deepest = sim.version.deepest();
    assert!(sim.version.files().all(|(level, part, file)| {
        Some(level) == deepest && part == Part::Run && file.tombstones() == 0
    }));
}

/// Six hundred, or `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases: 600, ..config },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_reads_right_and_settles(steps in proptest::collection::vec(step(), 1..120)) {
        run(steps);
    }
}

/// How updates choose their keys.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Uniform,
    /// Zipf with exponent 1, the ranks scattered over the key space.
    Zipf,
    /// Nine of ten in a tenth of the key space.
    Clustered,
}

impl Keys {
    fn draw(self, random: &mut Random, keys: u64) -> u32 {
        let drawn = match self {
            Keys::Uniform => random.below(keys),
            Keys::Zipf => {
                let u = (random.below(1 << 30) + 1) as f64 / (1u64 << 30) as f64;
                Random((keys as f64).powf(u) as u64).below(keys)
            }
            Keys::Clustered if random.below(10) > 0 => keys / 3 + random.below(keys / 10),
            Keys::Clustered => random.below(keys),
        };
        drawn as u32
    }
}

/// Entries written per entry flushed, by updates of a tree of `keys` keys.
fn write_amplification(policy: &str, draw: Keys, keys: u64) -> f64 {
    const BATCH: u64 = 128;
    let mut sim = Sim::new(Policy::parse(policy).unwrap());
    sim.settings.file_bytes = 64;
    sim.settings.memtable_bytes = BATCH;
    sim.settings.level_base_bytes = 4 * BATCH;
    let mut random = Random(7);
    let mut update = |sim: &mut Sim, flushes: u64| {
        for _ in 0..flushes {
            let key = |_| (draw.draw(&mut random, keys), Entry::Put(1));
            sim.flush_keys(&(0..BATCH).map(key).collect::<Vec<_>>());
            while sim.start_pick() {
                sim.finish(0);
            }
        }
    };
    // Fill, then measure the steady state.
    update(&mut sim, 6 * keys / BATCH);
    let (flushed, merged) = (sim.flushed_entries, sim.merged_entries);
    update(&mut sim, 8 * keys / BATCH);
    let (flushed, merged) = (sim.flushed_entries - flushed, sim.merged_entries - merged);
    (flushed + merged) as f64 / flushed as f64
}

/// What the choice of the file is worth; `--nocapture` prints it. These
/// are the figures in `pick/leveled.rs`.
#[test]
fn min_overlap_writes_less_unless_updates_cluster() {
    for (draw, bound) in [(Keys::Uniform, 1.0), (Keys::Zipf, 1.0), (Keys::Clustered, 1.15)] {
        let of = |file: &str| {
            write_amplification(&format!("leveled pick=leveled(file={file})"), draw, 16_000)
        };
        let (overlap, robin) = (of("min_overlap"), of("round_robin"));
        println!("{draw:?}: min_overlap {overlap:.2}, round_robin {robin:.2}");
        assert!(2.0 < overlap && overlap < robin * bound, "{draw:?}: {overlap:.2} {robin:.2}");
    }
}
