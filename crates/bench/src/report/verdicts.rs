//! The papers' claims and our results: a line for each claim.
//!
//! Owns: ratios of two contenders round by round, and the test of whether a claim holds. Never
//! does: hide a claim that was missed or not measured.

use super::measure::Measure;
use super::spread::Spread;
use crate::record::PhaseLine;
use crate::workload::{Claim, Goal, Workload};
use std::fmt::Write as _;

/// Returns the claims of these workloads and the results of a run; empty if there are none.
pub(crate) fn verdicts<'a>(
    workloads: impl Iterator<Item = &'a Workload>,
    phases: &[PhaseLine],
) -> String {
    let lines = lines(workloads, phases);
    if lines.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nours / paper\n");
    let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
    let [a, b, c]: [usize; 3] = std::array::from_fn(width);
    for [what, ours, paper, verdict] in &lines {
        let _ = writeln!(text, "  {what:<a$}  {ours:>b$} / {paper:<c$}  {verdict}");
    }
    text
}

/// Returns for each claim its text, our figure, the paper's, and the verdict.
pub(super) fn lines<'a>(
    workloads: impl Iterator<Item = &'a Workload>,
    phases: &[PhaseLine],
) -> Vec<[String; 4]> {
    let of_goal = |workload: &'a Workload, goal: &'a Goal| {
        let lines = goal.ours.iter().filter_map(|ours| line(workload, goal, ours, phases));
        lines.collect::<Vec<_>>()
    };
    let of_workload = |workload: &'a Workload| {
        workload.goals.iter().flat_map(|goal| of_goal(workload, goal)).collect::<Vec<_>>()
    };
    workloads.flat_map(of_workload).collect()
}

fn line(workload: &Workload, goal: &Goal, ours: &str, phases: &[PhaseLine]) -> Option<[String; 4]> {
    let claim = goal.claim()?;
    let name = match &goal.case {
        Some(case) => format!("{}: {case}", workload.file),
        None => workload.name.clone(),
    };
    let measure = Measure::named(&goal.figure);
    let values = |who: &str| -> Vec<(u32, f64)> {
        let here =
            |p: &&PhaseLine| p.workload == name && p.phase == goal.phase && p.contender == who;
        let lines = phases.iter().filter(here);
        lines.filter_map(|p| Some((p.round, measure.value(p)?))).collect()
    };
    let mine = values(ours);
    let (spread, paper, against) = match (claim, goal.than.as_deref()) {
        (Claim::AtLeast(paper) | Claim::AtMost(paper), _) => {
            (Spread::of(mine.iter().map(|(_, value)| *value).collect()), paper, String::new())
        }
        (Claim::Less(paper) | Claim::More(paper), than) => {
            let (than, others) = (than?, values(than?));
            let of_round = |(round, value): &(u32, f64)| {
                let (_, other) = others.iter().find(|(r, _)| r == round)?;
                // Both are zero: they are equal.
                let ratio = if value == other { 1.0 } else { value / other };
                ratio.is_finite().then_some(ratio)
            };
            let engine = |who: &str| workload.contenders.iter().find(|c| c.name == who);
            let is_other = engine(ours).map(|c| &c.engine) != engine(than).map(|c| &c.engine);
            // Another engine differs in more than the policy.
            let mark = if is_other { " (another engine)" } else { "" };
            (
                Spread::of(mine.iter().filter_map(of_round).collect()),
                paper,
                format!(" to {than}{mark}"),
            )
        }
    };
    let shown = |value| if against.is_empty() { format!("{value:.2}") } else { change(value) };
    let row = goal.paper.as_deref().map_or_else(String::new, |row| format!("{row}: "));
    let what = format!("{row}{name}, {}: {} of {ours}{against}", goal.phase, goal.figure);
    let Some(spread) = spread else {
        return Some([what, "-".to_owned(), shown(paper), "not measured".to_owned()]);
    };
    let ours = if spread.min == spread.max {
        shown(spread.median)
    } else {
        format!("{} ({} to {})", shown(spread.median), shown(spread.min), shown(spread.max))
    };
    Some([what, ours, shown(paper), judge(claim, spread.median).to_owned()])
}

/// Returns whether a value supports a claim.
fn judge(claim: Claim, value: f64) -> &'static str {
    let (reached, right_way) = match claim {
        Claim::Less(paper) => (value <= paper, value < 1.0),
        Claim::More(paper) => (value >= paper, value > 1.0),
        Claim::AtLeast(paper) => (value >= paper, false),
        Claim::AtMost(paper) => (value <= paper, false),
    };
    match (reached, right_way) {
        (true, _) => "reached",
        (false, true) => "short of the paper",
        (false, false) => "MISSED",
    }
}

/// Formats a ratio as a change: "-19 %", "+67 %", "1/4.8", "3.2x".
fn change(ratio: f64) -> String {
    if ratio >= 2.5 {
        format!("{ratio:.1}x")
    } else if 0.0 < ratio && ratio <= 0.4 {
        format!("1/{:.1}", 1.0 / ratio)
    } else {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_judged_in_their_direction() {
        for (claim, value, expected) in [
            (Claim::Less(0.81), 0.80, "reached"),
            (Claim::Less(0.81), 0.90, "short of the paper"),
            (Claim::Less(0.81), 1.10, "MISSED"),
            (Claim::More(1.67), 1.70, "reached"),
            (Claim::More(1.67), 1.20, "short of the paper"),
            (Claim::More(1.67), 0.90, "MISSED"),
            (Claim::Less(1.0), 1.1, "MISSED"),
            (Claim::Less(1.0), 0.9, "reached"),
            (Claim::More(1.0), 0.9, "MISSED"),
            (Claim::AtLeast(0.85), 0.9, "reached"),
            (Claim::AtLeast(0.85), 0.8, "MISSED"),
            (Claim::AtMost(0.5), 0.4, "reached"),
            (Claim::AtMost(0.5), 0.6, "MISSED"),
        ] {
            assert_eq!(judge(claim, value), expected, "{claim:?} {value}");
        }
        let words: Vec<String> = [0.81, 1.67, 1.0 / 4.8, 12.5].into_iter().map(change).collect();
        assert_eq!(words, ["-19 %", "+67 %", "1/4.8", "12.5x"]);
    }
}
