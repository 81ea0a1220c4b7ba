//! How the composition fits data of any size: each use of `windrow` next to `leveled`.
//!
//! All contenders have one memtable of 8 units; `leveled` has a level 1 of four memtables.
//!
//! Owns: the sizes and workloads of that comparison, and its table. Never does: judge the figures.

use crate::figures::Figures;
use crate::report::{fixed, markdown};
use crate::setup::Setup;
use crate::simulator::simulate;
use crate::workload::Workload;
use windrow_base::Result;

/// Data, in memtables.
pub const MEMTABLES: [u32; 6] = [6, 12, 24, 48, 100, 400];
/// The policies; the others are compared with the first.
pub const POLICIES: [&str; 4] = ["leveled", "windrow", "windrow use=writes", "windrow use=reads"];
/// Units of a memtable, of every policy here.
const MEMTABLE_UNITS: u32 = 8;
/// Updates before measuring, in times the keys.
const WARM_ROUNDS: f64 = 2.0;

/// Returns the set-up of a policy on data of this number of memtables, in its steady state. Small
/// trees are measured for longer: a flush is a larger part of them.
///
/// # Errors
/// As [`Setup::parse`].
pub fn setup(policy: &str, workload: Workload, memtables: u32, unit_keys: u32) -> Result<Setup> {
    let keys = memtables.saturating_mul(MEMTABLE_UNITS).saturating_mul(unit_keys);
    let rounds = match memtables {
        0..20 => 6.0,
        20..60 => 4.0,
        _ => 2.0,
    };
    let setup = Setup::parse(policy)?;
    Ok(Setup { keys, unit_keys, workload, rounds, warm_rounds: WARM_ROUNDS, ..setup })
}

/// One size and workload: the figures of each of [`POLICIES`].
#[derive(Clone, Debug)]
pub struct FitRow {
    /// Which keys are updated.
    pub workload: Workload,
    /// Data, in memtables.
    pub memtables: u32,
    /// By policy.
    pub figures: Vec<Figures>,
}

/// Simulates all policies on one size and workload.
///
/// # Errors
/// As [`simulate`].
pub fn row(workload: Workload, memtables: u32, unit_keys: u32, seed: u64) -> Result<FitRow> {
    let of = |policy: &&str| {
        let setup = setup(policy, workload, memtables, unit_keys)?;
        simulate(&Setup { seed, ..setup })
    };
    let figures = POLICIES.iter().map(of).collect::<Result<_>>()?;
    Ok(FitRow { workload, memtables, figures })
}

/// Prints the rows as Markdown: bytes written per byte (over those of `leveled`), files over a
/// point, space, and the 99th percentile of chains in units.
pub fn table(rows: &[FitRow]) -> String {
    let mut head = vec!["updates", "data"];
    head.extend(POLICIES);
    let line = |row: &FitRow| {
        let mut cells = vec![row.workload.name().to_owned(), format!("{}x", row.memtables)];
        let first = row.figures[0].write_amplification;
        cells.extend(row.figures.iter().enumerate().map(|(i, figures)| cell(figures, i, first)));
        cells
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    markdown(&head, &lines)
}

fn cell(figures: &Figures, index: usize, first: f64) -> String {
    let write = fixed(figures.write_amplification, 2);
    let part = match index {
        0 => String::new(),
        _ => format!(" ({})", fixed(figures.write_amplification / first.max(f64::MIN_POSITIVE), 2)),
    };
    let (files, space) = (fixed(figures.probes_mean, 1), fixed(figures.space_mean, 2));
    format!("{write}{part} / {files} / {space} / {}", fixed(figures.chain_p99, 0))
}
