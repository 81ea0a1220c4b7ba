//! The entries that policies write, and the tables that a get may have to ask, by updates of a tree
//! at key granularity. `--nocapture` prints the figures of `pick/leveled.rs` and
//! `docs/policies/l2sm.md`.
//!
//! The simulation has no time: it shows the cost of a policy, not its speed.

use crate::sim::{Entry, Random, Sim};
use windrow_plan::Policy;
use windrow_plan::tree::Part;

/// How updates choose their keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    Uniform,
    /// Zipf with exponent 1, the ranks scattered over the key space.
    Zipf,
    /// Nine of ten in a tenth of the key space.
    Clustered,
}

impl Keys {
    pub(crate) fn draw(self, random: &mut Random, keys: u64) -> u32 {
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

/// The sizes of a tree, in entries.
#[derive(Clone, Copy)]
struct Scale {
    keys: u64,
    memtable: u64,
    file: u64,
    base: u64,
    overlap_files_max: u32,
    /// Updates before measuring and while, in multiples of `keys`.
    fill: u64,
    measure: u64,
}

/// The cost of a policy.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Entries written per entry flushed.
    writes: f64,
    /// Tables over a key, on average over keys and time.
    probes: f64,
    /// Bytes of the logs below level 0 over those of the tree.
    logs: f64,
}

fn cost(policy: &str, draw: Keys, scale: Scale) -> Cost {
    cost_by_flush(policy, draw, scale, scale.memtable)
}

/// Returns the cost where each flush has `flush` entries: fewer than a memtable has, if somebody asks
/// for flushes.
fn cost_by_flush(policy: &str, draw: Keys, scale: Scale, flush: u64) -> Cost {
    let mut sim = Sim::new(Policy::parse(policy).unwrap());
    sim.settings.file_bytes = scale.file;
    sim.settings.memtable_bytes = scale.memtable;
    sim.settings.level_base_bytes = scale.base;
    sim.settings.overlap_files_max = scale.overlap_files_max;
    let mut random = Random(7);
    let mut update = |sim: &mut Sim| {
        let key = |_| (draw.draw(&mut random, scale.keys), Entry::Put(1));
        sim.flush_keys(&(0..flush).map(key).collect::<Vec<_>>());
        while sim.start_pick() {
            sim.finish(0);
        }
    };
    for _ in 0..scale.fill * scale.keys / flush {
        update(&mut sim);
    }
    let (flushed, merged) = (sim.flushed_entries, sim.merged_entries);
    let mut look = Random(11);
    let (mut probes, mut logs, mut looks) = (0, 0.0, 0u32);
    for n in 0..scale.measure * scale.keys / flush {
        update(&mut sim);
        if n % 8 == 0 {
            let key = (look.below(scale.keys) as u32).to_be_bytes();
            let over = |f: &windrow_plan::tree::File| f.span().contains(&sim.version.order, &key);
            probes += sim.version.files().filter(|(_, _, f)| over(f)).count();
            let log: u64 = (1..32).map(|n| sim.version.part_bytes(n, Part::SstLog)).sum();
            logs += log as f64 / sim.version.bytes() as f64;
            looks += 1;
        }
    }
    let (flushed, merged) = (sim.flushed_entries - flushed, sim.merged_entries - merged);
    Cost {
        writes: (flushed + merged) as f64 / flushed as f64,
        probes: probes as f64 / looks as f64,
        logs: logs / looks as f64,
    }
}

/// The worth of the choice of the file.
#[test]
fn min_overlap_writes_less_unless_updates_cluster() {
    let scale = Scale {
        keys: 16_000,
        memtable: 128,
        file: 64,
        base: 512,
        overlap_files_max: 4,
        fill: 6,
        measure: 8,
    };
    for (draw, bound) in [(Keys::Uniform, 1.0), (Keys::Zipf, 1.0), (Keys::Clustered, 1.15)] {
        let of =
            |file: &str| cost(&format!("leveled pick=leveled(file={file})"), draw, scale).writes;
        let (overlap, robin) = (of("min_overlap"), of("round_robin"));
        println!("{draw:?}: min_overlap {overlap:.2}, round_robin {robin:.2}");
        assert!(2.0 < overlap && overlap < robin * bound, "{draw:?}: {overlap:.2} {robin:.2}");
    }
}

/// Flushes of a part of a memtable, as backups and checkpoints ask for, over a tree of one level.
/// Without these merges five times as much was written as with whole ones under uniform updates.
#[test]
fn small_flushes_are_merged_with_each_other_first() {
    let scale = Scale {
        keys: 32_000,
        memtable: 1024,
        file: 256,
        base: 64_000,
        overlap_files_max: 4,
        fill: 2,
        measure: 1,
    };
    for draw in [Keys::Uniform, Keys::Zipf] {
        let by = |part: u64| cost_by_flush("windrow", draw, scale, scale.memtable / part);
        let whole = by(1);
        for part in [16, 64] {
            let small = by(part);
            println!("{draw:?}, 1/{part} of a memtable: {small:.2?}, a whole one {whole:.2?}");
            assert!(small.writes < whole.writes * 2.2, "{draw:?} 1/{part}: {small:?} {whole:?}");
            assert!(small.probes < whole.probes + 3.0, "{draw:?} 1/{part}: {small:?} {whole:?}");
        }
    }
}

/// The worth of SST-logs: four levels, SST-logs of the first two of a twentieth of the tree. Writes
/// of `sst_log(closed)` over those of `leveled`.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn logs_save_writes_for_a_few_probes() {
    let scale = Scale {
        keys: 20_000,
        memtable: 16,
        file: 4,
        base: 64,
        overlap_files_max: 10,
        fill: 4,
        measure: 1,
    };
    for (draw, bound) in [(Keys::Uniform, 0.8), (Keys::Zipf, 0.85), (Keys::Clustered, 0.83)] {
        let leveled = cost("leveled", draw, scale);
        let closed = cost("l2sm", draw, scale);
        let ratio = closed.writes / leveled.writes;
        println!("{draw:?}: leveled {leveled:.2?}, closed {closed:.2?}, ratio {ratio:.2}");
        assert!(ratio < bound, "{draw:?}: {leveled:?} {closed:?}");
        assert!(closed.probes < leveled.probes + 4.0 && 0.02 < closed.logs && closed.logs < 0.06);
    }
}
