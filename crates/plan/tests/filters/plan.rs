//! What a job's filters may take of the tree's memory.

use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_plan::Policy;
use windrow_plan::filter_memory::merlin::Estimate;
use windrow_plan::filter_memory::{FilterJob, FilterPlan};
use windrow_plan::tree::{File, Part, Version};

const ENTRIES: u64 = 1 << 20;

const BITS: f64 = 4.0;

/// A tree of one file a level; level 2's filter holds `held` bits for every key of the tree.
fn tree(held: f64) -> Version {
    tree_held_by(2, held)
}

/// As [`tree`], with the filter on another level.
fn tree_held_by(holder: u32, held: f64) -> Version {
    let text = format!(
        "next_epoch 9\nL1.run 4 [a,z] entries={}\nL2.run 3 [a,z] entries={}\nL3.run 2 [a,z] entries={}",
        ENTRIES / 16,
        ENTRIES / 4,
        ENTRIES
    );
    let mut edit = text.parse::<Version>().unwrap().snapshot_edits().remove(0);
    let total: u64 = edit.added.iter().map(|(_, _, file)| file.entries).sum();
    for (level, _, file) in &mut edit.added {
        if *level == holder {
            Arc::make_mut(file).filter_bytes = (held * total as f64 / 8.0) as u64;
        }
    }
    Version::empty(KeyOrder::Bytewise).apply(&edit).unwrap()
}

/// What a job that writes `level` may take.
fn allowance(version: &Version, level: u32) -> u64 {
    plan(version, level).allowance_bytes(0)
}

/// The plan of a job that writes `level`: a flush, or a rewrite of the level's file.
fn plan(version: &Version, level: u32) -> FilterPlan {
    let file = version.part(level, Part::Run).first().cloned();
    let inputs: Vec<_> = file.into_iter().map(|file| (level, Part::Run, file)).collect();
    let job = FilterJob {
        inputs: &inputs,
        output: (level, if level == 0 { Part::SstLog } else { Part::Run }),
        entries: ENTRIES / 64,
        queries: 1 << 20,
        reserved_bits: 0.0,
    };
    // Every file is asked in vain alike.
    let estimate = Estimate { queries: 1e6, hits: 0.0 };
    let policy = Policy::parse(&format!("mnemosyne filters=mnemosyne(bits={BITS})")).unwrap();
    policy.filter_plan(version, &job, Some(estimate), &|_: &File| Some(estimate))
}

/// A flush frees no filter: if merges could fill the memory, the tables that
/// every lookup asks first would get none.
#[test]
fn merges_leave_memory_to_what_is_above_them() {
    let nearly_full = tree(0.9 * BITS);
    assert_eq!(allowance(&nearly_full, 3), 0);
    assert!(allowance(&nearly_full, 1) > 0 && allowance(&nearly_full, 0) > 0);
    // No more than the memory is ever given away.
    let full = tree(1.01 * BITS);
    assert!((0..=3).filter(|&n| n != 2).all(|level| allowance(&full, level) == 0));
    assert!(allowance(&tree(0.5 * BITS), 3) > 0);
}

/// What is kept for the upper levels is not kept a second time once they hold it.
#[test]
fn what_the_upper_levels_hold_is_part_of_what_is_kept_for_them() {
    let memory = BITS * (ENTRIES + ENTRIES / 4 + ENTRIES / 16) as f64 / 8.0;
    let left = |holder| allowance(&tree_held_by(holder, 0.5 * BITS), 3) as f64 / memory;
    // An eighth is kept where level 2 holds the half, a quarter of that for the
    // next flush where level 1 does.
    assert!((left(2) - 0.375).abs() < 0.001, "{}", left(2));
    assert!((left(1) - 0.469).abs() < 0.001, "{}", left(1));
}

/// A job that finds no memory left gives its outputs no filters. That says
/// nothing of those that are there: lookups go on reading them.
#[test]
fn a_job_without_memory_leaves_older_filters_in_use() {
    let full = tree(1.01 * BITS);
    let asked_in_vain = Some(Estimate { queries: 1e6, hits: 0.0 });
    for level in [1, 3] {
        let plan = plan(&full, level);
        assert_eq!(plan.bits(ENTRIES, asked_in_vain), 0.0);
        for (level, part, file) in full.files() {
            assert!(plan.consults(level, part, file, asked_in_vain), "{level}");
        }
    }
}
