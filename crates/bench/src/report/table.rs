//! A run as tables for a terminal of 120 columns.
//!
//! A column for each contender; where they are too many for that, a row for
//! each, so that no line has to be folded.
//!
//! Owns: the layout. Never does: choose what is compared.

use super::compare::{self, ComparedRow, Ratio};
use super::measure;
use super::number::{number, spread, times_spread};
use super::results::{PhasePlace, Results, Run};
use crate::record::WorkloadLine;
use std::fmt::Write as _;

/// Columns of a terminal.
const COLUMNS: usize = 120;

/// Returns the tables of a run that has just been made.
pub(crate) fn table(run: &Run) -> String {
    tables(&Results::of(run))
}

/// Returns the tables: per workload its chief measures and its costs, then the reservations about
/// the figures.
pub(crate) fn tables(run: &Results) -> String {
    let mut text = String::new();
    for workload in &run.workloads {
        let places = run.places_of(workload);
        if places.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}", heading(run, workload));
        let wide = wide(run, &places);
        if wide.lines().all(|line| line.chars().count() <= COLUMNS) {
            text += &wide;
        } else {
            text += &tall(run, &places);
        }
    }
    text.push('\n');
    text += &closing(run);
    text
}

fn heading(run: &Results, workload: &WorkloadLine) -> String {
    let rounds = run.rounds(workload);
    let title = &workload.title;
    let plural = if rounds == 1 { "" } else { "s" };
    format!("{}: {title} ({rounds} round{plural}; median, (min–max))", workload.name)
}

/// Returns a row for each measure, a column for each contender.
fn wide(run: &Results, places: &[PhasePlace<'_>]) -> String {
    let names: Vec<String> = run.contenders.iter().map(|c| c.name.clone()).collect();
    let head = |last: &str| {
        let first = ["phase".to_owned(), String::new()].into_iter();
        let last = (!last.is_empty()).then(|| last.to_owned());
        first.chain(names.iter().cloned()).chain(last).collect::<Vec<_>>()
    };
    let subject = &run.contenders[compare::subject(run)].name;
    let compared = match compare::rivals(run).is_empty() {
        true => String::new(),
        false => format!("{subject} to best peer"),
    };
    let mut chief = vec![head(&compared)];
    let mut costs = vec![head("")];
    for &place in places {
        for row in compare::rows_at(run, place) {
            let mut cells = vec![place.phase.to_owned(), row.measure.heading()];
            cells.extend(row.values.iter().map(|value| value.map_or("-".to_owned(), spread)));
            cells.push(row.ratio().map_or_else(String::new, verdict));
            chief.push(cells);
        }
        for measure in measure::costs(run, place) {
            let mut cells = vec![place.phase.to_owned(), measure.heading()];
            let median = |name: &String| measure.spread(run, place, name).map(|s| number(s.median));
            cells.extend(names.iter().map(|name| median(name).unwrap_or_else(|| "-".to_owned())));
            costs.push(cells);
        }
    }
    let mut text = grid(&chief, 2);
    if costs.len() > 1 {
        let _ = write!(text, "\n  what it cost (medians)\n{}", grid(&costs, 2));
    }
    text
}

/// Returns a block for each place, a row for each contender.
fn tall(run: &Results, places: &[PhasePlace<'_>]) -> String {
    let mut text = String::new();
    let subject = &run.contenders[compare::subject(run)].name;
    for &place in places {
        let rows = compare::rows_at(run, place);
        let mut head = vec![place.phase.to_owned()];
        for row in &rows {
            head.push(row.measure.heading());
            head.push(format!("{subject} is"));
        }
        // Two measures with their ratios fill the line; one leaves room.
        let costs = if rows.len() > 1 { Vec::new() } else { measure::costs(run, place) };
        head.extend(costs.iter().map(|m| short(&m.heading())));
        let mut grid_rows = vec![head];
        for (i, contender) in run.contenders.iter().enumerate() {
            let mut cells = vec![contender.name.clone()];
            for row in &rows {
                cells.push(row.values[i].map_or("-".to_owned(), spread));
                cells.push(row.ratios[i].map_or_else(String::new, verdict));
            }
            for measure in &costs {
                let spread = measure.spread(run, place, &contender.name);
                cells.push(spread.map_or("-".to_owned(), |s| number(s.median)));
            }
            grid_rows.push(cells);
        }
        text += &fitted(grid_rows);
        text.push('\n');
    }
    text
}

/// Shortens headings for the tall table's narrow columns.
fn short(heading: &str) -> String {
    heading
        .replace("write amplification, ×", "write ×")
        .replace("space amplification, ×", "space ×")
        .replace("peak memory", "memory")
        .replace("nothing done for", "stalled")
}

/// Returns the grid, without the last columns where it would be too wide.
fn fitted(mut rows: Vec<Vec<String>>) -> String {
    loop {
        let text = grid(&rows, 1);
        let fits = text.lines().all(|line| line.chars().count() <= COLUMNS);
        if fits || rows[0].len() <= 3 {
            return text;
        }
        rows.iter_mut().for_each(|row| {
            row.pop();
        });
    }
}

/// Formats `2.36× (2.28–2.47) ▲`.
pub(crate) fn verdict(ratio: Ratio) -> String {
    format!("{} {:<2}", times_spread(ratio.spread), ratio.sign())
}

/// Aligns columns; the first `left` flush left, the others right. A first cell that repeats the one
/// above is left empty.
pub(crate) fn grid(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length = |row: &Vec<String>, i: usize| row.get(i).map_or(0, |cell| cell.chars().count());
    let width = |i: usize| rows.iter().map(|row| length(row, i)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            let repeats = i == 0 && at > 0 && rows[at - 1].first() == Some(cell);
            let cell = if repeats { "" } else { cell };
            let wide = widths[i];
            let _ = match i < left {
                true => write!(line, "  {cell:<wide$}"),
                false => write!(line, "  {cell:>wide$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn closing(run: &Results) -> String {
    let mut text = String::new();
    let rows = compare::rows(run);
    let (ahead, behind, undecided) = compare::tally(&rows);
    if ahead + behind + undecided > 0 {
        let subject = &run.contenders[compare::subject(run)].name;
        let _ = writeln!(text, "{}", tally(subject, &rows));
        let _ = writeln!(text, "Ratios: more than 1 is good for {subject}. {}.", compare::SIGNS);
    }
    for disagreement in &run.disagreements {
        let _ = writeln!(text, "ANSWERS DIFFER: {disagreement}");
    }
    for note in &run.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

/// Returns `windrow against the best peer: ahead in 3 of 5 measures, behind in 1, undecided in 1.`
pub(crate) fn tally(subject: &str, rows: &[ComparedRow<'_>]) -> String {
    let (ahead, behind, undecided) = compare::tally(rows);
    let all = ahead + behind + undecided;
    format!(
        "{subject} against the best peer: ahead in {ahead} of {all}, behind in {behind}, \
         undecided in {undecided}."
    )
}
