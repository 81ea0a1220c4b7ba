//! The figures of an experiment, its tables, and its verdicts.
//!
//! Owns: what is printed, the JSON lines, ratios round by round. Never does:
//! measure, or hide a goal that was missed or not measured.

use super::experiment::{Case, Claim, Contender, Experiment, Goal, Place};
use crate::report::{Figures, Spread};
use crate::store::Result;
use crate::workload::Scale;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// A row of a table: phase, figure, a cell for each contender.
type Row = (String, String, Vec<String>);

/// Whose a figure is: a contender, or an estimate beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    /// As tables call it.
    pub(crate) name: &'a str,
    pub(crate) engine: &'a str,
}

impl<'a> From<&'a Contender> for Who<'a> {
    fn from(contender: &'a Contender) -> Who<'a> {
        Who { name: &contender.name, engine: &contender.engine }
    }
}

/// Figures by place, contender and round.
pub(crate) struct Sheet {
    experiment: String,
    scale: Scale,
    rows: Vec<(Place, String, u32, Figures)>,
    /// Engines by the names of contenders.
    engines: BTreeMap<String, String>,
    json: Option<std::fs::File>,
}

impl Sheet {
    /// An empty sheet, whose figures also go to the end of the file `json`.
    pub(crate) fn new(experiment: &Experiment, scale: Scale, json: Option<&Path>) -> Result<Sheet> {
        let open = |path: &Path| {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|e| format!("{}: {e}", path.display()))
        };
        let json = json.map(open).transpose()?;
        let contenders = experiment.cases.iter().flat_map(|case| &case.contenders);
        let engines = contenders.map(|c| (c.name.clone(), c.engine.clone())).collect();
        Ok(Sheet { experiment: experiment.name.clone(), scale, rows: Vec::new(), engines, json })
    }

    /// Takes figures in.
    pub(crate) fn add(
        &mut self,
        at: &Place,
        who: Who<'_>,
        round: u32,
        figures: Figures,
    ) -> Result<()> {
        if let Some(file) = &mut self.json {
            let line = json!({
                "paper": self.experiment, "scale": self.scale.name(), "case": at.case,
                "branch": at.branch, "phase": at.phase, "engine": who.engine, "policy": who.name,
                "round": round,
                "figures": figures.to_json(),
            });
            writeln!(file, "{line}")?;
        }
        self.rows.push((at.clone(), who.name.to_owned(), round, figures));
        Ok(())
    }

    fn values(&self, at: &Place, who: &str, figure: &str) -> Vec<(u32, f64)> {
        let rows = self.rows.iter().filter(|row| row.0 == *at && row.1 == who);
        rows.filter_map(|(_, _, round, figures)| Some((*round, figures.get(figure)?))).collect()
    }

    fn spread(&self, at: &Place, who: &str, figure: &str) -> Option<Spread> {
        Spread::of(self.values(at, who, figure).iter().map(|(_, v)| *v).collect())
    }

    /// Spread of the figure of `a` over that of `b` in the same round.
    fn ratio(&self, at: &Place, a: &str, b: &str, figure: &str) -> Option<Spread> {
        let others = self.values(at, b, figure);
        let of_round = |(round, value): (u32, f64)| {
            let (_, other) = others.iter().find(|(r, v)| *r == round && *v != 0.0)?;
            Some(value / other)
        };
        Spread::of(self.values(at, a, figure).into_iter().filter_map(of_round).collect())
    }

    /// The table of one case: a row for each phase and figure, a column for
    /// each contender, medians; beside each the ratio to the first.
    pub(crate) fn table(&self, case: &Case, shown: &[String]) -> String {
        let mut places: Vec<&Place> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for (at, who, _, _) in self.rows.iter().filter(|row| row.0.case == case.name) {
            if !places.contains(&at) {
                places.push(at);
            }
            if !names.contains(&who.as_str()) {
                names.push(who);
            }
        }
        let mut rows: Vec<Row> = Vec::new();
        for at in places {
            for figure in shown {
                let cells: Vec<String> =
                    names.iter().map(|who| self.cell(at, who, names[0], figure)).collect();
                if cells.iter().any(|cell| cell != "-") {
                    let place = Place::new("", &at.branch, &at.phase).words();
                    rows.push((place, figure.clone(), cells));
                }
            }
        }
        let mut text = format!("\n{}\n", case.name);
        let heads: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        rows.insert(0, ("phase".to_owned(), "figure".to_owned(), heads));
        let width = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
        let (first, second) = (width(&|r| r.0.len()), width(&|r| r.1.len()));
        for row in &rows {
            let _ = write!(text, "  {:<first$}  {:<second$}", row.0, row.1);
            for (i, cell) in row.2.iter().enumerate() {
                let wide = width(&|r| r.2[i].len());
                let _ = write!(text, "  {cell:>wide$}");
            }
            text.push('\n');
        }
        text
    }

    fn cell(&self, at: &Place, who: &str, first: &str, figure: &str) -> String {
        let Some(spread) = self.spread(at, who, figure) else { return "-".to_owned() };
        let value = number(spread.median);
        match self.ratio(at, who, first, figure) {
            Some(ratio) if who != first => format!("{value} ({:.2}x)", ratio.median),
            _ => value,
        }
    }

    /// What the paper says, and what we got.
    pub(crate) fn verdicts(&self, goals: &[Goal]) -> String {
        let mut text = String::from("\nours / paper\n");
        // A case that all share says nothing.
        let is_one_case = goals.windows(2).all(|pair| pair[0].at.case == pair[1].at.case);
        let rows: Vec<[String; 4]> = goals.iter().map(|g| self.verdict(g, is_one_case)).collect();
        let width = |i: usize| rows.iter().map(|row| row[i].len()).max().unwrap_or(0);
        let widths: [usize; 3] = std::array::from_fn(width);
        for [what, ours, paper, verdict] in &rows {
            let [a, b, c] = widths;
            let _ = writeln!(text, "  {what:<a$}  {ours:>b$} / {paper:<c$}  {verdict}");
        }
        text
    }

    fn verdict(&self, goal: &Goal, is_one_case: bool) -> [String; 4] {
        let (spread, paper) = match &goal.claim {
            Claim::Less { to, paper } | Claim::More { to, paper } => {
                (self.ratio(&goal.at, &goal.ours, to, &goal.figure), *paper)
            }
            Claim::Reaches(paper) => (self.spread(&goal.at, &goal.ours, &goal.figure), *paper),
        };
        let to = goal.claim.to();
        let against = to.map(|to| format!(" to {to}{}", self.other_engine(&goal.ours, to)));
        let against = against.unwrap_or_default();
        let case = if is_one_case { "" } else { &goal.at.case };
        let place = Place::new(case, &goal.at.branch, &goal.at.phase).words();
        let what = format!("{place}: {} of {}{against}", goal.figure, goal.ours);
        let shown = |value: f64| if to.is_some() { change(value) } else { format!("{value:.2}") };
        let Some(spread) = spread else {
            return [what, "-".to_owned(), shown(paper), "not measured".to_owned()];
        };
        let ours = match spread.min == spread.max {
            true => shown(spread.median),
            false => {
                let (min, max) = (shown(spread.min), shown(spread.max));
                format!("{} ({min} to {max})", shown(spread.median))
            }
        };
        let verdict = judge(&goal.claim, spread.median);
        [what, ours, shown(paper), verdict.to_owned()]
    }

    /// A mark on comparisons between two engines, where more differs than the
    /// policy.
    fn other_engine(&self, ours: &str, to: &str) -> &'static str {
        match (self.engines.get(ours), self.engines.get(to)) {
            (Some(a), Some(b)) if a != b => " (another engine)",
            _ => "",
        }
    }
}

/// Whether a value bears a claim out.
fn judge(claim: &Claim, value: f64) -> &'static str {
    let (reached, right_way) = match *claim {
        Claim::Less { paper, .. } => (value <= paper, value < 1.0),
        Claim::More { paper, .. } => (value >= paper, value > 1.0),
        Claim::Reaches(paper) => (value >= paper, false),
    };
    match (reached, right_way) {
        (true, _) => "reached",
        (false, true) => "short of the paper",
        (false, false) => "MISSED",
    }
}

/// A ratio as a change: "-19 %", "+67 %", "1/4.8", "3.2x".
fn change(ratio: f64) -> String {
    if ratio >= 2.5 {
        format!("{ratio:.1}x")
    } else if 0.0 < ratio && ratio <= 0.4 {
        format!("1/{:.1}", 1.0 / ratio)
    } else {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }
}

/// A figure with three or four digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_judged_in_their_direction() {
        for (claim, value, expected) in [
            (Claim::less("b", 0.19), 0.80, "reached"),
            (Claim::less("b", 0.19), 0.90, "short of the paper"),
            (Claim::less("b", 0.19), 1.10, "MISSED"),
            (Claim::more("b", 0.67), 1.70, "reached"),
            (Claim::more("b", 0.67), 1.20, "short of the paper"),
            (Claim::more("b", 0.67), 0.90, "MISSED"),
            (Claim::times_less("b", 4.8), 0.2, "reached"),
            (Claim::less("b", 0.0), 1.1, "MISSED"),
            (Claim::less("b", 0.0), 0.9, "reached"),
            (Claim::more("b", 0.0), 0.9, "MISSED"),
            (Claim::Reaches(0.85), 0.9, "reached"),
            (Claim::Reaches(0.85), 0.8, "MISSED"),
        ] {
            assert_eq!(judge(&claim, value), expected, "{claim:?} {value}");
        }
        let words: Vec<String> = [0.81, 1.67, 1.0 / 4.8, 12.5].into_iter().map(change).collect();
        assert_eq!(words, ["-19 %", "+67 %", "1/4.8", "12.5x"]);
    }
}
