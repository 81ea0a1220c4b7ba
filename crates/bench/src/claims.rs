//! README's table of speeds, compared with a run on this machine.
//!
//! Owns: reading README's table, the comparison. Never does: run anything, or judge Windrow by
//! another machine's speed: the ratio to a peer serves instead.

use crate::record::PhaseLine;
use crate::report::{Spread, grid, number};
use std::collections::BTreeMap;

const README: &str = include_str!("../../../README.md");
/// The heading above the table.
const HEADING: &str = "## Speed\n";
/// The share of a claimed ratio by which a measured one may fall short and still count as good.
const TOLERANCE: f64 = 0.1;

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClaimRow {
    /// The workload file.
    pub(crate) workload: String,
    /// Its case, if it has any.
    pub(crate) case: Option<String>,
    pub(crate) phase: String,
    /// Thousands of operations a second, by the engine.
    kops_per_s: BTreeMap<String, f64>,
}

/// Reads README's table.
pub(crate) fn claims() -> Vec<ClaimRow> {
    let table = README.split_once(HEADING).map_or("", |(_, rest)| rest);
    let table = table.split_once("\n## ").map_or(table, |(table, _)| table);
    let mut rows = table.lines().filter(|line| line.starts_with('|')).map(cells);
    let names: Vec<String> = rows.next().unwrap_or_default();
    rows.filter_map(|row| claim(&names, &row)).collect()
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Reads a row that begins with `` `WORKLOAD / PHASE` ``; of a case, `` `FILE: CASE / PHASE` ``.
fn claim(names: &[String], row: &[String]) -> Option<ClaimRow> {
    let place = row.first()?.strip_prefix('`')?.split('`').next()?;
    let (workload, phase) = place.split_once(" / ")?;
    let (workload, case) = match workload.split_once(": ") {
        Some((file, case)) => (file, Some(case.to_owned())),
        None => (workload, None),
    };
    let figure = |cell: &String| cell.replace(',', "").parse::<f64>().ok();
    let named = names.iter().zip(row).skip(1);
    let kops_per_s =
        named.filter_map(|(name, cell)| Some((name.to_lowercase(), figure(cell)?))).collect();
    Some(ClaimRow { workload: workload.to_owned(), case, phase: phase.to_owned(), kops_per_s })
}

impl ClaimRow {
    /// Returns the workload's name in runs.
    fn run_name(&self) -> String {
        match &self.case {
            Some(case) => format!("{}: {case}", self.workload),
            None => self.workload.clone(),
        }
    }

    /// Returns the median of an engine's measured figures.
    fn measured(&self, phases: &[PhaseLine], engine: &str) -> Option<f64> {
        let name = self.run_name();
        let is_it = |line: &&PhaseLine| {
            line.workload == name && line.phase == self.phase && line.contender == engine
        };
        let figures = phases.iter().filter(is_it).filter_map(|line| line.figures.get("kops_per_s"));
        Spread::of(figures.copied().collect()).map(|spread| spread.median)
    }

    /// Returns how many times an engine's figure Windrow's is: as claimed, and as measured.
    fn ratio(&self, phases: &[PhaseLine], engine: &str) -> Option<(f64, f64)> {
        let claimed = self.kops_per_s.get("windrow")? / self.kops_per_s.get(engine)?;
        let measured = self.measured(phases, "windrow")? / self.measured(phases, engine)?;
        Some((claimed, measured))
    }
}

/// Compares the claims with the measured figures, row by row.
pub(crate) fn compared(claims: &[ClaimRow], phases: &[PhaseLine]) -> String {
    let is_measured = |engine: &&String| phases.iter().any(|line| line.contender == **engine);
    let engines: std::collections::BTreeSet<&String> =
        claims.iter().flat_map(|claim| claim.kops_per_s.keys()).filter(is_measured).collect();
    let peers: Vec<&str> = engines.iter().map(|e| e.as_str()).filter(|e| *e != "windrow").collect();
    let mut head: Vec<String> = ["workload / phase", "README", "here"].map(str::to_owned).into();
    head.extend(peers.iter().map(|peer| format!("× {peer}: README, here")));
    let mut rows = vec![head];
    let (mut ratios, mut as_good) = (0, 0);
    for claim in claims {
        let text = |value: Option<f64>| value.map_or("-".to_owned(), number);
        let own = claim.kops_per_s.get("windrow").copied();
        let mut row = vec![
            format!("{} / {}", claim.run_name(), claim.phase),
            text(own),
            text(claim.measured(phases, "windrow")),
        ];
        for peer in &peers {
            let ratio = claim.ratio(phases, peer);
            ratios += u32::from(ratio.is_some());
            let is_as_good = ratio.is_some_and(|(said, here)| here >= said * (1.0 - TOLERANCE));
            as_good += u32::from(is_as_good);
            row.push(ratio.map_or("-".to_owned(), |(said, here)| {
                format!("{}, {}{}", number(said), number(here), if is_as_good { "" } else { " !" })
            }));
        }
        rows.push(row);
    }
    let end = match peers.is_empty() {
        true => "Another machine has other figures: what can be compared is the ratio to a peer, \
                 which `windrow-bench-peers claims` measures, too."
            .to_owned(),
        false => format!(
            "Windrow is as many times as fast as a peer as README says, or at most a tenth less, \
             in {as_good} of {ratios} (the others: !). Rounds decide: --rounds 5 says more than one."
        ),
    };
    format!(
        "\nThousands of operations a second: README's table, and what was measured here\n\
         {}\n{end}\n",
        grid(&rows, 1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Scale, builtin, parse};

    #[test]
    fn every_row_names_a_phase_that_is_measured() {
        let claims = claims();
        assert!(claims.len() >= 10, "{claims:?}");
        for claim in &claims {
            let text = builtin(&claim.workload).unwrap_or_else(|| panic!("{claim:?}"));
            let workloads = parse(&claim.workload, text, Scale::Reduced).unwrap();
            let workload = workloads.iter().find(|workload| workload.name == claim.run_name());
            let phases = workload.unwrap_or_else(|| panic!("{claim:?}")).measured();
            assert!(phases.contains(&claim.phase), "{claim:?}: {phases:?}");
            assert!(claim.kops_per_s["windrow"] > 0.0, "{claim:?}");
            assert!(claim.kops_per_s.len() >= 3, "no peers: {claim:?}");
        }
    }

    #[test]
    fn a_row_is_what_it_says() {
        let names = ["workload / phase", "Windrow", "RocksDB", "fjall", "command"];
        let row = ["`large: 16 KiB / get`: of large values", "1,500", "750", "-", "`run large`"];
        let [names, row] = [names, row].map(|cells| cells.map(str::to_owned));
        let claim = claim(&names, &row).unwrap();
        assert_eq!(claim.run_name(), "large: 16 KiB");
        assert_eq!(claim.phase, "get");
        let figures = [("rocksdb".to_owned(), 750.0), ("windrow".to_owned(), 1500.0)];
        assert_eq!(claim.kops_per_s, figures.into());
        assert!(super::claim(&names, &["words".to_owned()]).is_none());
    }

    #[test]
    fn what_is_measured_is_told_row_by_row() {
        let line = |contender: &str, kops: f64| PhaseLine {
            workload: "fill".to_owned(),
            phase: "fillrandom".to_owned(),
            contender: contender.to_owned(),
            figures: [("kops_per_s".to_owned(), kops)].into(),
            ..PhaseLine::default()
        };
        let figures = [("rocksdb".to_owned(), 200.0), ("windrow".to_owned(), 400.0)].into();
        let claim = ClaimRow {
            workload: "fill".to_owned(),
            case: None,
            phase: "fillrandom".to_owned(),
            kops_per_s: figures,
        };
        let claims = [claim];
        let alone = compared(&claims, &[line("windrow", 300.0)]);
        assert!(alone.contains("fill / fillrandom     400   300\n"), "{alone}");
        assert!(alone.contains("windrow-bench-peers claims"), "{alone}");
        // The median of three rounds counts.
        let ours = [500.0, 100.0, 380.0].map(|kops| line("windrow", kops));
        for (peer, told, count) in
            [(200.0, "2.00, 1.90\n", "1 of 1"), (250.0, "1.52 !\n", "0 of 1")]
        {
            let phases = [&ours[..], &[line("rocksdb", peer)]].concat();
            let text = compared(&claims, &phases);
            assert!(text.contains(told) && text.contains(count), "{text}");
        }
    }
}
