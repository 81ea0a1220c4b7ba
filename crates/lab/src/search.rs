//! The best static policy for a size and a workload, found by searching a grid of them.
//!
//! The default preset is told neither. It should write at most a tenth more than the policy of the
//! grid that writes least, of those that leave no more files over a point and take no more space
//! than the preset itself. A *static* policy has fixed values where the preset has its dial: the
//! flushes that a partition gathers (k) and the SST-log's share; and a shape, a level 1 and a
//! number of partitions of its own.
//!
//! The grid has 640 policies. All of them are simulated on demand; else the search goes from three
//! of them along one axis at a time, as long as that gains anything, and simulates about a tenth.
//!
//! Owns: the grid, the way through it, and the table. Never does: change the preset.

use crate::figures::Figures;
use crate::fit;
use crate::report::{fixed, markdown};
use crate::setup::Setup;
use crate::simulator::simulate;
use crate::workload::Workload;
use std::collections::BTreeMap;
use windrow_base::Result;

/// The preset that the search is about.
pub const PRESET: &str = "windrow";
/// Data, in memtables, unless others are asked for.
pub const MEMTABLES: [u32; 5] = [6, 12, 24, 48, 100];
/// Keys of a unit, unless others are asked for.
pub const UNIT_KEYS: u32 = 64;
/// The preset should write at most this many times the bytes of the best static policy.
pub const GOAL: f64 = 1.1;

/// Flushes that a partition gathers.
const GATHERED: [u32; 5] = [2, 3, 4, 6, 8];
/// Bytes of the SST-logs of levels 1 and 2, as a part of the tree.
const LOG_SHARES: [&str; 4] = ["0", "0.05", "0.1", "0.2"];
/// Shapes; those not from the last level up with the units of their level 1.
const SHAPES: [&str; 8] = [
    "leveling(t=10) base=20",
    "leveling(t=10) base=40",
    "leveling(t=10) base=80",
    "leveling(t=7) base=40",
    "leveling(t=7) base=80",
    "leveling(t=10,base=last)",
    "garnering(t=6.5,c=0.8,base=last)",
    "garnering(t=6.5,c=1,base=last)",
];
/// Most partitions of level 0.
const PARTITIONS: [u32; 4] = [1, 16, 32, 64];

/// How many values each axis has.
const AXES: [usize; 4] = [GATHERED.len(), LOG_SHARES.len(), SHAPES.len(), PARTITIONS.len()];
/// Where the search begins: like the preset, like a plain tree, and with a large level 1.
const STARTS: [Point; 3] = [[2, 1, 6, 3], [2, 0, 0, 1], [3, 2, 2, 3]];
/// A file or a tenth of space over those of the preset counts as this many times the bytes written:
/// the search may pass through such policies, and ends at none.
const PENALTY: f64 = 2.0;
/// Figures within this ratio count as equal: they come of random keys.
const SAME: f64 = 1.005;

/// A policy of the grid: which value of each axis.
type Point = [usize; 4];

/// Prints a policy of the grid as text.
fn text([gathered, log, shape, partitions]: Point) -> String {
    let (k, most) = (GATHERED[gathered], PARTITIONS[partitions]);
    let pick = match LOG_SHARES[log] {
        "0" => "leveled(file=min_overlap)".to_owned(),
        share => format!("sst_log(columns,omega={share},levels=2)"),
    };
    format!("{PRESET} level0=partitioned(lanes={most},k={k}) pick={pick} shape={}", SHAPES[shape])
}

/// One size and workload.
#[derive(Clone, Debug)]
pub struct SearchRow {
    /// Which keys are updated.
    pub workload: Workload,
    /// Data, in memtables.
    pub memtables: u32,
    /// Of the preset.
    pub preset: Figures,
    /// The best static policy and its figures; none where each leaves more files over a point
    /// or takes more space than the preset.
    pub best: Option<(String, Figures)>,
    /// Policies that were simulated.
    pub simulated: usize,
}

impl SearchRow {
    /// Bytes that the preset writes over those of the best static policy.
    pub fn ratio(&self) -> Option<f64> {
        let (_, best) = self.best.as_ref()?;
        Some(self.preset.write_amplification / best.write_amplification)
    }
}

/// How a search goes through the grid.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Keys of a unit.
    pub unit_keys: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether every policy of the grid is simulated.
    pub all: bool,
}

/// Searches for one size and workload.
///
/// # Errors
/// As [`simulate`].
pub fn row(workload: Workload, memtables: u32, plan: Plan) -> Result<SearchRow> {
    let of = |policy: &str| {
        let setup = fit::setup(policy, workload, memtables, plan.unit_keys)?;
        simulate(&Setup { seed: plan.seed, ..setup })
    };
    let mut search = PointSearch { preset: of(PRESET)?, of, seen: BTreeMap::new() };
    if plan.all {
        search.everywhere()?;
    } else {
        STARTS.into_iter().try_for_each(|start| search.from(start))?;
    }
    let PointSearch { preset, seen, .. } = search;
    let simulated = seen.len();
    let allowed = seen.into_iter().filter(|(_, figures)| is_allowed(&preset, figures));
    let writes = |(_, figures): &(Point, Figures)| figures.write_amplification;
    let best = allowed.min_by(|a, b| writes(a).total_cmp(&writes(b)));
    let best = best.map(|(point, figures)| (text(point), figures));
    Ok(SearchRow { workload, memtables, preset, best, simulated })
}

fn is_allowed(preset: &Figures, figures: &Figures) -> bool {
    figures.probes_mean <= preset.probes_mean * SAME
        && figures.space_mean <= preset.space_mean * SAME
}

struct PointSearch<F> {
    preset: Figures,
    of: F,
    seen: BTreeMap<Point, Figures>,
}

impl<F: Fn(&str) -> Result<Figures>> PointSearch<F> {
    /// Returns the cost of a policy: the bytes that it writes, and more where it is not allowed.
    fn cost(&mut self, point: Point) -> Result<f64> {
        if !self.seen.contains_key(&point) {
            let figures = (self.of)(&text(point))?;
            self.seen.insert(point, figures);
        }
        let figures = &self.seen[&point];
        let files = (figures.probes_mean - self.preset.probes_mean * SAME).max(0.0);
        let space = (figures.space_mean - self.preset.space_mean * SAME).max(0.0) * 10.0;
        Ok(figures.write_amplification * (1.0 + PENALTY * (files + space)))
    }

    /// The best value of each axis in turn, until no axis has a better one.
    fn from(&mut self, start: Point) -> Result<()> {
        let mut at = start;
        let mut least = self.cost(at)?;
        loop {
            let before = least;
            for axis in 0..AXES.len() {
                for value in 0..AXES[axis] {
                    let mut next = at;
                    next[axis] = value;
                    let cost = self.cost(next)?;
                    if cost < least {
                        (at, least) = (next, cost);
                    }
                }
            }
            if least >= before {
                return Ok(());
            }
        }
    }

    fn everywhere(&mut self) -> Result<()> {
        let count: usize = AXES.iter().product();
        for index in 0..count {
            let mut rest = index;
            let point = AXES.map(|values| {
                let value = rest % values;
                rest /= values;
                value
            });
            self.cost(point)?;
        }
        Ok(())
    }
}

/// The rows as Markdown. Each cell: bytes written per byte / files over a point / space.
pub fn table(rows: &[SearchRow]) -> String {
    let head = ["updates", "data", "windrow", "best static", "writes over those", "which"];
    let cell = |f: &Figures| {
        let (write, files) = (fixed(f.write_amplification, 2), fixed(f.probes_mean, 1));
        format!("{write} / {files} / {}", fixed(f.space_mean, 2))
    };
    let line = |row: &SearchRow| {
        let mut cells = vec![row.workload.name().to_owned(), format!("{}x", row.memtables)];
        cells.push(cell(&row.preset));
        match &row.best {
            None => cells.extend(["none", "-", "-"].map(String::from)),
            Some((policy, figures)) => {
                let ratio = fixed(row.ratio().unwrap_or(0.0), 2);
                let policy = policy.strip_prefix(PRESET).unwrap_or(policy).trim();
                cells.extend([cell(figures), ratio, format!("`{policy}`")]);
            }
        }
        cells
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let mut text = markdown(&head, &lines);
    let above = rows.iter().filter(|row| row.ratio().is_some_and(|ratio| ratio > GOAL)).count();
    let percent = fixed((GOAL - 1.0) * 100.0, 0);
    text += &format!("\n{above} of {} more than {percent} % above the best.\n", rows.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_of_the_grid_is_one() {
        let count: usize = AXES.iter().product();
        let mut search = PointSearch {
            preset: Figures::default(),
            of: |policy: &str| Setup::parse(policy).map(|_| Figures::default()),
            seen: BTreeMap::new(),
        };
        search.everywhere().unwrap();
        assert_eq!(search.seen.len(), count);
    }

    /// Costs that have one least policy, which is not allowed, and one next to it.
    #[test]
    fn a_search_finds_the_best_that_is_allowed() {
        let of = |policy: &str| {
            let at = |words: [&str; 4]| words.iter().position(|word| policy.contains(word));
            let k = GATHERED.iter().position(|k| policy.contains(&format!("k={k})"))).unwrap();
            let log = at(["leveled(", "0.05", "omega=0.1,", "0.2"]).unwrap();
            Ok(Figures {
                write_amplification: 9.0 - k as f64 - log as f64,
                probes_mean: 1.0 + k as f64,
                space_mean: 1.0,
                ..Figures::default()
            })
        };
        let preset = Figures { probes_mean: 3.0, space_mean: 1.0, ..Figures::default() };
        let mut search = PointSearch { preset: preset.clone(), of, seen: BTreeMap::new() };
        search.from(STARTS[1]).unwrap();
        let allowed = search.seen.iter().filter(|(_, figures)| is_allowed(&preset, figures));
        let least = allowed.map(|(_, figures)| figures.write_amplification);
        assert_eq!(least.fold(f64::MAX, f64::min), 9.0 - 2.0 - 3.0);
        assert!(search.seen.len() < 60, "{} simulated", search.seen.len());
    }
}
