//! The design's own simulation, to compare with.
//!
//! Owns: the figures of its table as they are on the page, and for each row the set-up that
//! simulates it here. Never does: judge a difference; `docs/lab.md` says where the two simulators
//! differ, and why.
//!
//! The page's simulator is not at hand. Its own data is 12 GB in 1,536 files of
//! 8 MB, and the unit here is such a file.

use crate::figures::Figures;
use crate::report::{self, chain, fixed};
use crate::setup::Setup;
use crate::simulator::simulate;
use crate::workload::Workload;
use windrow_base::Result;

/// The page's figures for one design; `None` where it gives none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Page {
    /// Write amplification.
    pub write: f64,
    /// Write amplification by level written to, from level 0; empty if not given.
    pub write_by_level: &'static [f64],
    /// Chain p50 in units.
    pub chain_p50: Option<f64>,
    /// Chain p99 in units.
    pub chain_p99: f64,
    /// Longest chain in units.
    pub chain_max: Option<f64>,
    /// Largest job of a chain, p99, in units.
    pub job_p99: Option<f64>,
    /// Work per flush, p99 over mean.
    pub work_p99_over_mean: Option<f64>,
}

/// A row of the page, and how it is simulated here.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceRow {
    /// The design, as the page names it.
    pub name: &'static str,
    /// Policy and sizes, as [`Setup::parse`] reads them.
    pub setup: &'static str,
    /// Which keys are updated.
    pub workload: Workload,
    /// The page's figures.
    pub page: Page,
}

/// A row with both sides filled in.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The row of the page.
    pub row: EvidenceRow,
    /// The figures that were simulated here.
    pub figures: Figures,
}

const fn full(
    write: f64,
    write_by_level: &'static [f64],
    chain: [f64; 3],
    job_p99: f64,
    work_p99_over_mean: f64,
) -> Page {
    Page {
        write,
        write_by_level,
        chain_p50: Some(chain[0]),
        chain_p99: chain[1],
        chain_max: Some(chain[2]),
        job_p99: Some(job_p99),
        work_p99_over_mean: Some(work_p99_over_mean),
    }
}

const fn short(write: f64, chain_p99: f64) -> Page {
    Page {
        write,
        write_by_level: &[],
        chain_p50: None,
        chain_p99,
        chain_max: None,
        job_p99: None,
        work_p99_over_mean: None,
    }
}

const fn row(
    name: &'static str,
    setup: &'static str,
    workload: Workload,
    page: Page,
) -> EvidenceRow {
    EvidenceRow { name, setup, workload, page }
}

const TIERED: &str = "leveled shape=leveling(t=8) file=8";
// Files end by size alone, however much they overlap below: cut at ten files as
// the store does, level 2 is written 17 times and not 19, and jobs are half as long.
const FIFO: &str =
    "leveled shape=leveling(t=8,phi=32) level0=fifo pick=leveled(grow=1) overlap=1000";
const PARTITIONS_8: &str = "leveled shape=leveling(t=8) level0=partitioned(lanes=8,k=4)";
const PARTITIONS_16: &str = "leveled shape=leveling(t=8) level0=partitioned(lanes=16,k=4)";
const PARTITIONS_32: &str = "leveled shape=leveling(t=8) level0=partitioned(lanes=32,k=4)";
// 32 and 64 files of the 1,536.
const LOG_32: &str = "leveled shape=leveling(t=8) level0=partitioned(lanes=16,k=4) \
                      pick=sst_log(closed,omega=0.0208,levels=1)";
const LOG_64: &str = "leveled shape=leveling(t=8) level0=partitioned(lanes=16,k=4) \
                      pick=sst_log(closed,omega=0.0417,levels=1)";
// Ratios 11.4 and 8, where leveling has 8 and what is left.
const GARNERING: &str = "leveled shape=garnering(t=8,c=0.7) level0=partitioned(lanes=16,k=4)";
const GARNERING_LOG: &str = "leveled shape=garnering(t=8,c=0.7) \
                             level0=partitioned(lanes=16,k=4) \
                             pick=sst_log(closed,omega=0.0208,levels=1)";

use Workload::{Uniform, Zipf};

/// The page's last table, and the line below it.
pub const ROWS: [EvidenceRow; 13] = [
    row(
        "tiered level 0, 64 MB memtable and file",
        TIERED,
        Uniform,
        full(10.6, &[1.0, 2.0, 4.4, 3.2], [647.0, 699.0, 724.0], 125.0, 4.3),
    ),
    row(
        "fifo level 0, 8 MB, L1 64 MB, Phi 32",
        FIFO,
        Uniform,
        full(32.2, &[1.0, 8.9, 19.0, 3.2], [64.0, 72.0, 75.0], 45.0, 1.1),
    ),
    row(
        "partitioned level 0, 8 partitions, k = 4",
        PARTITIONS_8,
        Uniform,
        full(10.5, &[], [80.0, 102.0, 103.0], 18.0, 1.1),
    ),
    row(
        "partitioned level 0, 16 partitions",
        PARTITIONS_16,
        Uniform,
        full(10.4, &[1.0, 1.9, 4.4, 3.2], [40.0, 57.0, 61.0], 11.0, 1.1),
    ),
    row(
        "partitioned level 0, 32 partitions",
        PARTITIONS_32,
        Uniform,
        full(10.3, &[], [20.0, 36.0, 40.0], 10.0, 1.1),
    ),
    row(
        "16 partitions + SST-log on L1, 32 files (2 %)",
        LOG_32,
        Uniform,
        full(8.8, &[1.0, 1.5, 3.3, 3.0], [34.0, 73.0, 101.0], 25.0, 1.3),
    ),
    row(
        "16 partitions + SST-log on L1, 64 files",
        LOG_64,
        Uniform,
        full(7.8, &[], [8.0, 111.0, 134.0], 38.0, 1.7),
    ),
    row(
        "16 partitions, Garnering-like 3 levels",
        GARNERING,
        Uniform,
        full(10.8, &[], [42.0, 62.0, 67.0], 14.0, 1.1),
    ),
    row(
        "16 partitions, 3 levels, SST-log on L1 32 files",
        GARNERING_LOG,
        Uniform,
        full(8.9, &[], [33.0, 82.0, 131.0], 32.0, 1.3),
    ),
    row("zipf: tiered", TIERED, Zipf, short(4.8, 370.0)),
    row("zipf: fifo", FIFO, Zipf, short(19.9, 70.0)),
    row("zipf: 16 partitions", PARTITIONS_16, Zipf, short(4.7, 27.0)),
    row("zipf: 16 partitions + SST-log", LOG_32, Zipf, short(3.7, 51.0)),
];

impl EvidenceRow {
    /// Simulates the row.
    ///
    /// # Errors
    /// As [`simulate`].
    pub fn compare(&self, seed: u64, rounds: f64) -> Result<Compared> {
        let setup = Setup { workload: self.workload, seed, rounds, ..Setup::parse(self.setup)? };
        Ok(Compared { row: *self, figures: simulate(&setup)? })
    }
}

/// Returns how much larger `ours` is than the page's figure, in percent.
pub fn difference(ours: f64, page: f64) -> f64 {
    if page == 0.0 { 0.0 } else { 100.0 * (ours - page) / page }
}

/// Prints the table as Markdown: each cell is `ours (page, difference)`.
pub fn table(rows: &[Compared]) -> String {
    let head = [
        "design",
        "write amp.",
        "by level",
        "chain p50 / p99 / max",
        "differs by",
        "largest job p99",
        "work per flush p99/mean",
    ];
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    report::markdown(&head, &lines)
}

fn line(compared: &Compared) -> Vec<String> {
    let (ours, page) = (&compared.figures, &compared.row.page);
    let percent = |ours: f64, page: f64| format!("{:+.0} %", difference(ours, page));
    let cell = |ours: f64, page: Option<f64>, decimals: usize| match page {
        None => fixed(ours, decimals),
        Some(page) => format!(
            "{} ({}, {})",
            fixed(ours, decimals),
            fixed(page, decimals),
            percent(ours, page)
        ),
    };
    let by_level = match page.write_by_level {
        [] => report::by_level(&ours.write_by_level),
        page => {
            format!("{} ({})", report::by_level(&ours.write_by_level), report::by_level(page))
        }
    };
    let pairs = [
        (ours.chain_p50, page.chain_p50),
        (ours.chain_p99, Some(page.chain_p99)),
        (ours.chain_max, page.chain_max),
    ];
    let given = |value: Option<f64>| value.map_or("-".into(), |v| fixed(v, 0));
    let differs = |(ours, page): (f64, Option<f64>)| page.map_or("-".into(), |p| percent(ours, p));
    vec![
        compared.row.name.to_owned(),
        cell(ours.write_amplification, Some(page.write), 1),
        by_level,
        format!("{} ({})", chain(ours), pairs.map(|(_, page)| given(page)).join(" / ")),
        pairs.map(differs).join(" / "),
        cell(ours.job_p99, page.job_p99, 0),
        cell(ours.work_p99_over_mean, page.work_p99_over_mean, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_set_up() {
        for row in ROWS {
            assert!(Setup::parse(row.setup).is_ok(), "{}", row.name);
            let sum: f64 = row.page.write_by_level.iter().sum();
            assert!(sum == 0.0 || (sum - row.page.write).abs() < 0.2, "{}", row.name);
        }
    }

    #[test]
    fn a_line_shows_both_sides() {
        let figures = Figures {
            write_amplification: 5.28,
            write_by_level: vec![1.0, 4.28],
            chain_p50: 10.0,
            chain_p99: 333.0,
            chain_max: 400.4,
            ..Figures::default()
        };
        let compared = Compared { row: row("x", TIERED, Zipf, short(4.8, 370.0)), figures };
        let table = table(&[compared]);
        let expected =
            "5.3 (4.8, +10 %) | 1.0 / 4.3 | 10 / 333 / 400 (- / 370 / -) | - / -10 % / -";
        assert!(table.contains(expected), "{table}");
    }
}
