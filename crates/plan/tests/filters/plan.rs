//! The part of the tree's memory that a job's filters may take.

use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_plan::Policy;
use windrow_plan::filter_memory::merlin::Estimate;
use windrow_plan::filter_memory::{ExpectedLevel, FilterJob, FilterPlan};
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

/// Bytes that a job that writes `level` may take.
fn allowance(version: &Version, level: u32, entries: u64) -> u64 {
    plan(version, level, 0.0).allowance_bytes(entries)
}

/// Bytes that it may take where all memory moves by its price.
fn paper_allowance(version: &Version, level: u32) -> u64 {
    plan_of("", version, level, 0.0).allowance_bytes(0)
}

/// The plan of a job that writes `level`: a flush, or a rewrite of the level's file.
fn plan(version: &Version, level: u32, reserved_bits: f64) -> FilterPlan {
    plan_of(",stays=0.97", version, level, reserved_bits)
}

fn plan_of(more: &str, version: &Version, level: u32, reserved_bits: f64) -> FilterPlan {
    let filters = format!("mnemosyne(bits={BITS}{more})");
    plan_within(&filters, version, level, reserved_bits, f64::INFINITY)
}

/// The plan of a policy where there is memory for `bits_max` bits per key.
fn plan_within(
    filters: &str,
    version: &Version,
    level: u32,
    reserved_bits: f64,
    bits_max: f64,
) -> FilterPlan {
    plan_expecting(&[], filters, version, level, (reserved_bits, bits_max))
}

/// That plan where the levels are expected to have these sizes.
fn plan_expecting(
    expected: &[ExpectedLevel],
    filters: &str,
    version: &Version,
    level: u32,
    (reserved_bits, bits_max): (f64, f64),
) -> FilterPlan {
    let file = version.part(level, Part::Run).first().cloned();
    let inputs: Vec<_> = file.into_iter().map(|file| (level, Part::Run, file)).collect();
    let job = FilterJob {
        inputs: &inputs,
        output: (level, if level == 0 { Part::SstLog } else { Part::Run }),
        entries: ENTRIES / 64,
        expected,
        queries: 1 << 20,
        reserved_bits,
        bits_max,
    };
    // Every file is asked in vain alike.
    let estimate = Estimate { queries: 1e6, hits: 0.0 };
    let policy = Policy::parse(&format!("mnemosyne filters={filters}")).unwrap();
    policy.filter_plan(version, &job, Some(estimate), &|_: &File| Some(estimate))
}

/// A flush frees no filter: if merges could fill the memory, the tables that
/// every lookup asks first would get none.
#[test]
fn merges_leave_memory_to_what_is_above_them() {
    let nearly_full = tree(0.9 * BITS);
    assert_eq!(paper_allowance(&nearly_full, 3), 0);
    assert!(paper_allowance(&nearly_full, 1) > 0 && paper_allowance(&nearly_full, 0) > 0);
    // No more than the memory is ever given away.
    let full = tree(1.01 * BITS);
    assert!((0..=3).filter(|&n| n != 2).all(|level| paper_allowance(&full, level) == 0));
    assert!(paper_allowance(&tree(0.5 * BITS), 3) > 0);
}

/// Memory kept for the upper levels is not kept a second time once they hold it.
#[test]
fn what_the_upper_levels_hold_is_part_of_what_is_kept_for_them() {
    let memory = BITS * (ENTRIES + ENTRIES / 4 + ENTRIES / 16) as f64;
    // Of a half of the memory: a filter no longer than its price, and other jobs.
    let left = |holder| {
        let plan = plan_of("", &tree_held_by(holder, 0.1 * BITS), 3, 0.4 * memory);
        plan.allowance_bytes(0) as f64 * 8.0 / memory
    };
    // An eighth is kept where level 2 holds the tenth, a quarter of that for the
    // next flush where level 1 does.
    assert!((left(2) - 0.375).abs() < 0.001, "{}", left(2));
    assert!((left(1) - 0.469).abs() < 0.001, "{}", left(1));
}

/// Filters that are longer than they would be now stay until their tables are rewritten. Jobs until
/// then have less at their price, each alike: the first ones leave the others theirs.
#[test]
fn longer_filters_of_before_cost_every_job_alike() {
    let in_vain = Some(Estimate { queries: 1e6, hits: 0.0 });
    let memory = BITS * (ENTRIES + ENTRIES / 4 + ENTRIES / 16) as f64;
    let plan_of = |held, level| plan_of("", &tree_held_by(3, held * BITS), level, 0.0);
    let bits =
        |held: f64, level: u32| plan_of(held, level).bits(ENTRIES >> (2 * (3 - level)), in_vain);
    let took = |held, level: u32| bits(held, level) * (ENTRIES >> (2 * (3 - level))) as f64;
    for level in [1, 2] {
        assert_eq!(bits(0.0, level), bits(0.3, level), "a short one costs nothing");
        assert!(bits(0.8, level) < bits(0.0, level) - 1.0 && bits(0.8, level) > 1.0);
    }
    // Together they take what the long one leaves, but for what is kept for flushes and level 1.
    let left = memory * (1.0 - 0.125 / 4.0) - 0.8 * memory;
    let both = took(0.8, 1) + took(0.8, 2);
    assert!(both <= left && both > 0.8 * left, "{both} bits of {left}");
}

/// A job on a full memory has most of what its inputs had, and does not make up for all that is kept,
/// whether other jobs hold the memory or longer filters.
#[test]
fn a_job_has_most_of_its_inputs_memory_again() {
    let memory = BITS * (ENTRIES + ENTRIES / 4 + ENTRIES / 16) as f64 / 8.0;
    let mut edit = tree_held_by(1, 0.0155 * BITS).snapshot_edits().remove(0);
    let (_, _, last) = edit.added.iter_mut().find(|(level, ..)| *level == 3).unwrap();
    Arc::make_mut(last).filter_bytes = (0.9845 * memory) as u64;
    let held = Version::empty(KeyOrder::Bytewise).apply(&edit).unwrap();
    let in_vain = Some(Estimate { queries: 1e6, hits: 0.0 });
    assert!(plan_of("", &held, 1, 0.0).bits(ENTRIES / 16, in_vain) >= 1.0);
    for (held, again) in [(0.05, 0.05 * 0.875), (0.06, 0.06 * 0.875)] {
        let plan = plan_of("", &tree_held_by(1, held * BITS), 1, (1.0 - held) * memory * 8.0);
        let got = plan.allowance_bytes(0) as f64 / memory;
        assert!((got - again).abs() < 0.001, "{got} of {held}");
    }
}

/// A file that took nine tenths of the memory for itself leaves every job the floor of its outputs,
/// or what there is.
#[test]
fn a_job_has_its_floor_whatever_others_hold() {
    let total = ENTRIES + ENTRIES / 4 + ENTRIES / 16;
    let nearly_full = tree(0.9 * BITS);
    let floor = |entries: u64| 0.97 * BITS * entries as f64 / 8.0;
    for (level, entries) in [(0, ENTRIES / 64), (1, ENTRIES / 16)] {
        let got = allowance(&nearly_full, level, entries) as f64;
        assert!((got / floor(entries) - 1.0).abs() < 0.01, "{level}: {got} of {}", floor(entries));
    }
    let unheld = 0.4 * BITS * total as f64 / 8.0;
    let got = allowance(&tree(0.6 * BITS), 3, ENTRIES) as f64;
    assert!((got / unheld - 1.0).abs() < 0.01, "{got} of {unheld}");
    // No more than the memory is ever given away.
    let full = tree(1.05 * BITS);
    assert!(
        [(0, ENTRIES / 64), (1, ENTRIES / 16), (3, ENTRIES)]
            .into_iter()
            .all(|(level, entries)| allowance(&full, level, entries) == 0)
    );
}

/// Between levels only the pool moves: 3 % of the memory, to the first that draws. A second job
/// finds it as the first one, which still runs, leaves it.
#[test]
fn the_pool_is_drawn_once() {
    let pool = 0.03 * BITS * (ENTRIES + ENTRIES / 4 + ENTRIES / 16) as f64;
    let empty = tree(0.0);
    let floor = 0.97 * BITS * (ENTRIES / 16) as f64;
    let first = plan(&empty, 1, 0.0);
    let bits = |plan: &FilterPlan| plan.allowance_bytes(ENTRIES / 16) as f64 * 8.0;
    assert!(bits(&first) > 1.1 * floor && bits(&first) < floor + pool, "{}", bits(&first));
    assert!((first.growth_bits - (bits(&first) - floor)).abs() < 0.01 * floor);
    let second = plan(&empty, 1, pool);
    assert!((bits(&second) / floor - 1.0).abs() < 0.01, "{}", bits(&second));
}

/// The first tables of a job leave the floor to those that come after them.
#[test]
fn the_last_table_of_a_job_has_its_floor() {
    let job = plan(&tree(0.0), 3, 0.0);
    let rest = job.allowance_bytes(ENTRIES) - job.allowance_bytes(ENTRIES / 2);
    let floor = 0.97 * BITS * (ENTRIES / 2) as f64 / 8.0;
    assert!((rest as f64 / floor - 1.0).abs() < 0.01, "{rest} of {floor}");
}

/// A job that finds no memory left gives its outputs no filters. That says
/// nothing of those that are there: lookups go on reading them.
#[test]
fn a_job_without_memory_leaves_older_filters_in_use() {
    let full = tree(1.05 * BITS);
    let asked_in_vain = Some(Estimate { queries: 1e6, hits: 0.0 });
    for level in [1, 3] {
        let plan = plan(&full, level, 0.0);
        assert_eq!(plan.bits(ENTRIES, asked_in_vain), 0.0);
        for (level, part, file) in full.files() {
            assert!(plan.consults(level, part, file, asked_in_vain), "{level}");
        }
    }
}

/// Where memory lacks, new filters are shorter; those of before, which are longer, leave them
/// theirs. Where a part of the memory stays with its level, small levels have longer filters
/// nevertheless.
#[test]
fn filters_have_fewer_bits_where_memory_lacks() {
    let in_vain = Some(Estimate { queries: 1e6, hits: 0.0 });
    let expected = [(0, 1.0), (1, 4.0), (3, 64.0)];
    let expected = expected.map(|(level, bytes)| ExpectedLevel { level, bytes, tables: 1.0 });
    for filters in ["uniform(bits=4)", "monkey(bits=4)", "mnemosyne(bits=4,stays=0.97)"] {
        let (empty, held) = (tree(0.0), tree(0.9 * BITS));
        for level in [0, 1, 3] {
            let bits = |version, most| {
                let plan = plan_expecting(&expected, filters, version, level, (0.0, most));
                let entries = [ENTRIES / 64, ENTRIES / 16, 0, ENTRIES][level as usize];
                assert!(plan.bits_at_first() <= most && plan.bits_at_least(100) <= most);
                (
                    plan.bits(entries, in_vain),
                    plan.allowance_bytes(entries) as f64 * 8.0 / entries as f64,
                )
            };
            let (all, _) = bits(&empty, f64::INFINITY);
            assert_eq!(bits(&empty, BITS).0, all, "{filters} {level}");
            let (half, allowed) = bits(&empty, BITS / 2.0);
            assert!(allowed >= half, "{filters} {level}: {allowed} for {half}");
            assert!(half < all - 1.0, "{filters} {level}: {half} of {all}");
            let has_more = half > BITS + 1.0;
            assert!(has_more || level == 3 || !filters.contains("stays"), "{level}: {half} bits");
            if level < 3 {
                let (next_to_held, allowed) = bits(&held, BITS / 2.0);
                assert!(
                    next_to_held >= 0.9 * half.min(BITS / 2.0),
                    "{filters} {level}: {next_to_held} of {half}"
                );
                assert!(allowed >= next_to_held, "{filters} {level}: {allowed}");
            }
            assert_eq!(bits(&empty, 0.0).0, 0.0, "{filters} {level}");
        }
    }
}

/// A tree of two levels with a level 0 of these files, all without filters.
fn partitioned(level0: &str, boundaries: &str) -> Version {
    let text =
        format!("{boundaries}\nnext_epoch 9\n{level0}L1.run 1 [a,z] entries={ENTRIES} seq=1-1\n");
    text.trim_start().parse::<Version>().unwrap()
}

/// Bits of the output of a merge of level 1, before any query was recorded.
fn bits_of_level1(version: &Version) -> f64 {
    let file = version.part(1, Part::Run)[0].clone();
    let inputs = [(1, Part::Run, file)];
    let job = FilterJob {
        inputs: &inputs,
        output: (1, Part::Run),
        entries: 0,
        expected: &[],
        queries: 0,
        reserved_bits: 0.0,
        bits_max: f64::INFINITY,
    };
    let policy = Policy::parse("windrow filters=mnemosyne(bits=10,stays=0.97)").unwrap();
    policy.filter_plan(version, &job, None, &|_: &File| None).bits(ENTRIES, None)
}

/// Partitions are merged down one by one. The pieces of a flush that are left cover as much of the
/// key space as before: as if they were a whole flush, they would take the last level's bits.
#[test]
fn what_is_left_of_a_flush_is_asked_no_more_than_before() {
    let piece = |epoch: u64| {
        format!("L0.sst_log 1{epoch} [a,f] epoch={epoch} entries=65536 seq=1{epoch}-1{epoch}\n")
    };
    let pieces: String = (1..8).rev().map(piece).collect();
    let (whole, one_of_four) = (partitioned(&pieces, ""), partitioned(&pieces, "boundaries g n t"));
    let policy = Policy::parse("windrow filters=monkey(bits=10)").unwrap();
    let bits = |version: &Version| {
        let inputs = [(1, Part::Run, version.part(1, Part::Run)[0].clone())];
        let job = FilterJob {
            inputs: &inputs,
            output: (1, Part::Run),
            entries: 0,
            expected: &[],
            queries: 0,
            reserved_bits: 0.0,
            bits_max: f64::INFINITY,
        };
        policy.filter_plan(version, &job, None, &|_: &File| None).bits(ENTRIES, None)
    };
    let (whole, one_of_four) = (bits(&whole), bits(&one_of_four));
    assert!(one_of_four > whole + 0.5, "{one_of_four} and {whole} bits");
}

/// Files above the last level go again, and take their filters along: as long as no query shows
/// which lookups are in vain, the last level is not short of bits then.
#[test]
fn the_deepest_level_has_its_bits_before_anything_is_learnt() {
    let flush = |epoch: u64| {
        format!("L0.sst_log 1{epoch} [a,z] epoch={epoch} entries=65536 seq=1{epoch}-1{epoch}\n")
    };
    let flushes: String = (1..8).rev().map(flush).collect();
    for level0 in ["", &flushes] {
        let bits = bits_of_level1(&partitioned(level0, ""));
        assert!(bits > 9.69, "{bits} bits");
    }
}
