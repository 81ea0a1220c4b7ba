//! The changes that reads make in a tree: files that they have paid for are merged, and
//! `use=measured` follows a mix of reads and writes that shifts.
//!
//! Reads go all over the keys. Their number is given as the cost to them of one more file over
//! every point, in bytes of merging that would take as long.
//!
//! Owns: those two courses, and their figures. Never does: decide.

use crate::figures::{Figures, Meter};
use crate::report::{fixed, markdown};
use crate::setup::Setup;
use crate::simulator::Simulator;
use crate::workload::KeyStream;
use windrow_base::Result;
use windrow_plan::tree::Part;

/// After the updates: the payments of reads by then, in times the data.
pub const PAID: [f64; 8] = [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
/// Times that some keys are looked up, to count files over them.
const LOOKS: u32 = 32;
/// The part of a stretch after which it is measured.
const SETTLED: f64 = 0.1;

/// A tree that is read and no longer written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drained {
    /// The cost to reads by now of one more file over every point, in times the data.
    pub paid: f64,
    /// Files over a point, mean.
    pub files: f64,
    /// Levels that hold a run, level 0 not among them.
    pub runs: u32,
    /// Bytes rewritten since the last update, per byte that lay in level 0 and SST-logs then.
    pub rewritten: f64,
}

/// Updates as long as the set-up says, then only reads.
///
/// # Errors
/// As [`crate::simulate`].
pub fn drain(setup: &Setup) -> Result<Vec<Drained>> {
    let (mut simulator, mut keys) = (Simulator::new(setup), keys_of(setup));
    let rounds = 1.0 + setup.warm_rounds + setup.rounds;
    simulator.update(&mut keys, (rounds * f64::from(setup.keys)) as u64)?;
    let waiting = |simulator: &Simulator| -> u64 {
        let levels = 0..simulator.version.levels.len() as u32;
        levels.map(|n| simulator.version.part_bytes(n, Part::SstLog)).sum()
    };
    let before = waiting(&simulator).max(1);
    let (mut drained, mut written, mut paid) = (Vec::new(), 0, 0.0);
    for to in PAID {
        // In small steps: files that are merged first are not paid for again.
        while paid < to {
            let step = (to - paid).min(to / 8.0);
            simulator.read(step * f64::from(setup.keys));
            written += simulator.settle_reads()?;
            paid += step;
        }
        simulator.meter = Meter::default();
        (0..LOOKS).for_each(|_| simulator.look());
        let runs = |n: &u32| !simulator.version.part(*n, Part::Run).is_empty();
        drained.push(Drained {
            paid: to,
            runs: (1..simulator.version.levels.len() as u32).filter(runs).count() as u32,
            files: simulator.meter.clone().figures(setup.unit_keys).probes_mean,
            rewritten: written as f64 / before as f64,
        });
    }
    Ok(drained)
}

/// A time in which reads cost `price` bytes per byte put, with `rounds` times as many updates as
/// keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// The cost to reads of one more file over every point, in bytes for each byte put.
    pub price: f64,
    /// Updates, as a multiple of the keys.
    pub rounds: f64,
}

/// Returns the cost of a stretch for writes and reads together, in bytes for each byte put.
pub fn cost(stretch: Stretch, figures: &Figures) -> f64 {
    figures.write_amplification + stretch.price * figures.probes_mean
}

/// Runs one stretch after the other. Returns the figures of each, from a tenth of it on.
///
/// # Errors
/// As [`crate::simulate`].
pub fn shift(setup: &Setup, stretches: &[Stretch]) -> Result<Vec<Figures>> {
    let (mut simulator, mut keys) = (Simulator::new(setup), keys_of(setup));
    let updates = |rounds: f64| (rounds * f64::from(setup.keys)) as u64;
    simulator.update(&mut keys, updates(1.0 + setup.warm_rounds))?;
    let mut all = Vec::new();
    for stretch in stretches {
        simulator.read_price = stretch.price;
        simulator.update(&mut keys, updates(stretch.rounds * SETTLED))?;
        simulator.meter = Meter::default();
        simulator.update(&mut keys, updates(stretch.rounds * (1.0 - SETTLED)))?;
        all.push(std::mem::take(&mut simulator.meter).figures(setup.unit_keys));
    }
    Ok(all)
}

fn keys_of(setup: &Setup) -> KeyStream {
    KeyStream::new(setup.workload, setup.keys, setup.seed)
}

/// Prints trees that are only read, by name, as Markdown.
pub fn drain_table(rows: &[(String, Vec<Drained>)]) -> String {
    let mut head = vec!["files over a point (levels with a run): bytes rewritten".to_owned()];
    head.extend(PAID.map(|paid| format!("paid {paid}x")));
    let line = |(name, drained): &(String, Vec<Drained>)| {
        let cell =
            |d: &Drained| format!("{} ({}): {}", fixed(d.files, 2), d.runs, fixed(d.rewritten, 2));
        std::iter::once(name.clone()).chain(drained.iter().map(cell)).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    markdown(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

/// The uses, fixed ones first.
pub const USES: [&str; 4] =
    ["windrow use=writes", "windrow", "windrow use=reads", "windrow use=measured"];

/// A mix that shifts: hardly any reads, then many, as many as writes, and hardly any again.
pub const STRETCHES: [Stretch; 4] = [
    Stretch { price: 0.05, rounds: 4.0 },
    Stretch { price: 10.0, rounds: 4.0 },
    Stretch { price: 1.0, rounds: 4.0 },
    Stretch { price: 0.05, rounds: 4.0 },
];

/// Prints the cost of each stretch under each of [`USES`], as Markdown.
pub fn shift_table(rows: &[(&str, Vec<Figures>)]) -> String {
    let mut head = vec!["bytes written / files over a point / cost".to_owned()];
    head.extend(STRETCHES.map(|stretch| format!("reads at {}", stretch.price)));
    let line = |(name, all): &(&str, Vec<Figures>)| {
        let cell = |(stretch, f): (&Stretch, &Figures)| {
            let (write, files) = (fixed(f.write_amplification, 2), fixed(f.probes_mean, 2));
            format!("{write} / {files} / {}", fixed(cost(*stretch, f), 2))
        };
        std::iter::once((*name).to_owned()).chain(STRETCHES.iter().zip(all).map(cell)).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    markdown(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}
