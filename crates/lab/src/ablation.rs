//! The worth of each design of the default policy: the default, and the same without one of them
//! or with another value in its place, on data of several sizes.
//!
//! Filter memory is not simulated: a tree of bare keys has no filters.
//!
//! Owns: the cases, the sizes, and the table. Never does: decide which of them the default has.

use crate::figures::Figures;
use crate::fit;
use crate::report::{fixed, markdown};
use crate::setup::Setup;
use crate::simulator::simulate;
use crate::workload::Workload;
use windrow_base::Result;

/// A policy that differs from the default.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The difference, in words.
    pub name: &'static str,
    /// The policy.
    pub policy: &'static str,
}

const fn case(name: &'static str, policy: &'static str) -> Case {
    Case { name, policy }
}

/// The default, then the policies compared with it, then the baseline.
pub const CASES: [Case; 13] = [
    case("windrow", "windrow"),
    case("c = 1: one ratio for all levels", "windrow shape=garnering(t=6.5,c=1,base=last)"),
    case("files cut by overlap", "windrow cut=overlap(f=8)"),
    case("no SST-log", "windrow pick=leveled"),
    case("SST-log of half of what level 1 may hold", "windrow pick=sst_log(columns,share=.5)"),
    case("SST-log of 3 times what level 1 may hold", "windrow pick=sst_log(columns,share=3)"),
    case("no columns: closed sets of the SST-log", "windrow pick=sst_log(closed,share=dial)"),
    case("SST-log on level 1 alone", "windrow pick=sst_log(columns,share=dial,levels=1)"),
    case("SST-logs on three levels", "windrow pick=sst_log(columns,share=dial,levels=3)"),
    case(
        "SST-log filled by HotMap and W",
        "windrow pick=sst_log(paper,share=dial,levels=2,depth=4)",
    ),
    case("level 0 without partitions", "windrow level0=tiered(k=4)"),
    case("capacities from level 1 down", "windrow shape=garnering(t=6.5,c=0.8)"),
    case("leveled", "leveled"),
];

/// Data, in memtables.
pub const MEMTABLES: [u32; 5] = [6, 24, 100, 400, 1000];

/// One case on one size of data.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Which keys are updated.
    pub workload: Workload,
    /// Data, in memtables.
    pub memtables: u32,
    /// The policy, and its difference from the default.
    pub case: Case,
    /// The cost.
    pub figures: Figures,
}

/// Simulates all cases with one workload on data of all sizes, one size after the other.
///
/// # Errors
/// As [`simulate`].
pub fn cells(workload: Workload, unit_keys: u32, seed: u64) -> Result<Vec<Cell>> {
    let of = |(memtables, case): (u32, Case)| {
        let setup = fit::setup(case.policy, workload, memtables, unit_keys)?;
        let figures = simulate(&Setup { seed, ..setup })?;
        Ok(Cell { workload, memtables, case, figures })
    };
    MEMTABLES.into_iter().flat_map(|size| CASES.map(|case| (size, case))).map(of).collect()
}

/// Prints the cells of one workload as Markdown. The default's: bytes written per byte, files over
/// a point, the 99th percentile of chains in units, tables written per memtable. The others': their
/// ratios to the default's.
pub fn table(cells: &[Cell]) -> String {
    let workload = cells.first().map_or("", |cell| cell.workload.name());
    let mut head = vec![format!("{workload}: bytes / files over a point / chains / tables")];
    head.extend(MEMTABLES.map(|memtables| format!("{memtables}x")));
    let line = |case: &Case| {
        let of = |memtables: u32, name: &str| {
            let is_it = |cell: &&Cell| cell.memtables == memtables && cell.case.name == name;
            cells.iter().find(is_it).map(|cell| columns(&cell.figures))
        };
        let cell = |memtables: u32| match (of(memtables, case.name), of(memtables, CASES[0].name)) {
            (Some(own), _) if case.name == CASES[0].name => own
                .iter()
                .zip([2, 1, 0, 0])
                .map(|(f, n)| fixed(*f, n))
                .collect::<Vec<_>>()
                .join(" / "),
            (Some(own), Some(default)) => {
                let over = own.iter().zip(default).map(|(own, default)| own / default);
                over.map(|part| fixed(part, 2)).collect::<Vec<_>>().join(" / ")
            }
            _ => String::new(),
        };
        std::iter::once(case.name.to_owned()).chain(MEMTABLES.map(cell)).collect()
    };
    let lines: Vec<Vec<String>> = CASES.iter().map(line).collect();
    markdown(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

fn columns(figures: &Figures) -> [f64; 4] {
    let Figures { write_amplification, probes_mean, chain_p99, tables_per_flush, .. } = figures;
    [*write_amplification, *probes_mean, *chain_p99, *tables_per_flush]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_case_is_a_policy_of_its_own() {
        let policies = CASES.map(|case| Setup::parse(case.policy).unwrap().policy.to_string());
        assert_eq!(HashSet::from(policies).len(), CASES.len());
        assert_eq!(HashSet::from(CASES.map(|case| case.name)).len(), CASES.len());
    }

    /// The default's figures, and those of the others over them.
    #[test]
    fn the_table_has_a_line_for_each_case() {
        let cell = |(case, write): (Case, f64)| {
            let tables = Figures { write_amplification: write, ..Figures::default() };
            let figures =
                Figures { probes_mean: 2.0, chain_p99: 8.0, tables_per_flush: 4.0, ..tables };
            Cell { workload: Workload::Uniform, memtables: MEMTABLES[0], case, figures }
        };
        let table = table(&[(CASES[0], 5.0), (CASES[1], 6.0)].map(cell));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 2 + CASES.len());
        assert!(lines[2].contains("| 5.00 / 2.0 / 8 / 4 "), "{table}");
        assert!(lines[3].contains("| 1.20 / 1.00 / 1.00 / 1.00 "), "{table}");
    }
}
