//! Random trees against a map: flushes, jobs of the policy and of policies that
//! do not exist yet, two at a time, snapshots, range tombstones.
//!
//! `sim.rs` runs decisions at key granularity, `measure.rs` counts the entries that they write;
//! here are the properties: every read through the tree's read order is right at every snapshot,
//! entries of a key are never out of order (I3, I4), picking ends with every level within its limit
//! (I10), manual compaction ends with nothing superfluous.

mod chains;
mod loads;
mod measure;
mod sim;

use proptest::prelude::*;
use sim::{Entry, Sim};
use windrow_plan::axes::Picker;
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
    /// A merge that reads have paid for, where files have cost this many hundredths of their size.
    PickForReads(u16),
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

const POLICIES: &[&str] = &[
    "leveled shape=leveling(t=3) level0=tiered(k=2)",
    "leveled shape=leveling(t=2) level0=tiered(k=3) pick=leveled(file=round_robin)",
    "leveled shape=leveling(t=4) level0=tiered(k=1)",
    "l2sm shape=leveling(t=2) level0=tiered(k=1) pick=sst_log(closed,omega=0.2,levels=3,depth=3)",
    "l2sm shape=leveling(t=2) level0=tiered(k=2) pick=sst_log(paper,omega=0.3)",
    "l2sm shape=leveling(t=3) level0=tiered(k=2) pick=sst_log(closed,levels=1,depth=1)",
    "leveled",
    "leveled shape=garnering(t=2,c=0.6) level0=tiered(k=2)",
    "leveled shape=garnering(t=2,c=0.8,base=growing) level0=fifo",
    "leveled level0=partitioned(lanes=4,k=3,depth=5) cut=overlap(f=2)",
    "leveled shape=garnering(t=3,c=0.7) level0=partitioned(lanes=8,k=2,depth=3) cut=overlap(f=1)",
    "leveled shape=leveling(t=3,phi=6) level0=fifo cut=overlap(f=2,max_bytes=4,min_bytes=1)",
    "leveled shape=leveling(t=2) level0=partitioned(lanes=16,k=1,depth=1)",
    "windrow shape=garnering(t=2,c=0.7) level0=partitioned(lanes=4,k=2,depth=4) \
     pick=sst_log(closed,omega=0.2,levels=2,depth=3) cut=overlap(f=2)",
    "windrow shape=garnering(t=2,c=0.5,base=growing) level0=fifo pick=sst_log(paper,omega=0.2)",
    "leveled shape=leveling(t=2,base=last) level0=tiered(k=2)",
    "windrow shape=garnering(t=2,c=0.8,base=last) level0=partitioned(lanes=4,k=dial,depth=4) \
     pick=sst_log(closed,share=dial,levels=2,depth=3) cut=overlap(f=2)",
    "windrow use=writes shape=garnering(t=3,c=1,base=last) pick=sst_log(closed,share=2,ratio=0.2,levels=2)",
    "windrow shape=garnering(t=2,c=1,base=last) level0=partitioned(lanes=4,k=2,depth=4) \
     pick=sst_log(columns,share=.5,levels=2,depth=3)",
    "windrow shape=leveling(t=3) level0=tiered(k=2) pick=sst_log(columns,omega=0.2,depth=2)",
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
        2 => any::<u16>().prop_map(Step::PickForReads),
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
            Step::PickForReads(cost) => {
                sim.start_for_reads(cost);
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
        // The limit of a log is part of the policy; for most it is nothing.
        let log = version.level(level).unwrap();
        let limit = sim.policy.log_limit(version, settings, level);
        assert!(log.part_bytes(Part::SstLog) <= limit, "log {level} is full:\n{version}");
        if let Picker::SstLog(sst_log) = &sim.policy.picker {
            assert!(log.sst_log_depth() <= sst_log.depth, "log {level} is deep:\n{version}");
        }
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

/// L follows the data up and down again, and what is read stays right.
#[test]
fn a_garnering_tree_grows_and_shrinks() {
    let shapes = [
        "garnering(t=2,c=0.6)",
        "garnering(t=2,c=0.8,base=growing)",
        "garnering(t=2,c=0.8,base=last)",
        "leveling(t=2,base=last)",
    ];
    for shape in shapes {
        let policy = format!("leveled shape={shape} level0=tiered(k=2)");
        let mut sim = Sim::new(Policy::parse(&policy).unwrap());
        (sim.settings.level_base_bytes, sim.settings.file_bytes) = (4, 4);
        let (mut most, mut levels, mut changes) = (0, 1, 0);
        for entry in [Entry::Put(1), Entry::Delete] {
            for start in 0..8 {
                let keys = (0..8).map(|i| (start * 8 + i, entry));
                sim.flush(&keys.collect::<Vec<_>>(), None, None);
                settles(&mut sim);
                let now = sim.version.shape_levels;
                changes += now.abs_diff(levels);
                (most, levels) = (most.max(now), now);
            }
        }
        sim.flush(&[(1, Entry::Put(2))], None, None);
        settles(&mut sim);
        assert!(most >= 3, "it has not grown: {most}");
        assert_eq!(sim.version.shape_levels, 1, "it has not shrunk:\n{}", sim.version);
        // Up and down once, and not to and fro.
        changes += levels.abs_diff(1);
        assert_eq!(changes, 2 * (most - 1), "{shape}");
    }
}
