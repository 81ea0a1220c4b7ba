//! A run as tables in Markdown, as `docs/benchmarks.md` keeps them.
//!
//! Owns: the Markdown. Never does: leave a row out because Windrow is behind in
//! it.

use super::compare::{self, ComparedRow, Verdict};
use super::measure::Measure;
use super::number::{bytes, number, round, spread, times_spread};
use super::page::summary;
use super::results::{PhasePlace, Results};
use super::{measure, table};
use crate::record::WorkloadLine;
use std::fmt::Write as _;

/// Returns the tables: per workload a row for each chief measure.
pub(crate) fn markdown(run: &Results) -> String {
    let subject = &run.contenders[compare::subject(run)].name;
    let mut text = format!("{}\n", escape(&summary(run)));
    for note in &run.notes {
        let _ = writeln!(text, "\n{}", escape(note));
    }
    for disagreement in &run.disagreements {
        let _ = writeln!(text, "\n**Answers differ:** {}", escape(disagreement));
    }
    let rows = compare::rows(run);
    let _ = writeln!(text, "\n{}\n", escape(&table::tally(subject, &rows)));
    let _ = writeln!(
        text,
        "Medians (min–max). Ratios are taken round by round; more than 1 is good for {}. {}.",
        escape(subject),
        compare::SIGNS
    );
    for workload in &run.workloads {
        let rows: Vec<&ComparedRow<'_>> =
            rows.iter().filter(|row| row.place.workload.name == workload.name).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n### {}: {}\n\n{}\n\n{} records, memory budget {}, {} I/O, {} rounds.\n",
            escape(&workload.name),
            escape(&workload.title),
            escape(&workload.about),
            round(workload.records as f64),
            bytes(workload.memory_bytes),
            if workload.direct_io { "direct" } else { "buffered" },
            run.rounds(workload)
        );
        let names: Vec<String> = run.contenders.iter().map(|c| escape(&c.name)).collect();
        let _ = writeln!(text, "| phase | measure | {} | to best peer |", names.join(" | "));
        let _ = writeln!(text, "|---|---|{}---|", "---:|".repeat(names.len()));
        for row in rows {
            let _ = writeln!(text, "{}", line(run, row));
        }
    }
    for (file, cases) in files_with_cases(run) {
        for contender in &run.contenders {
            text += &by_case(run, file, &cases, &contender.name);
        }
    }
    text
}

/// Returns the files with several cases that were run, and these cases.
fn files_with_cases(run: &Results) -> Vec<(&str, Vec<&WorkloadLine>)> {
    let mut files: Vec<(&str, Vec<&WorkloadLine>)> = Vec::new();
    for workload in &run.workloads {
        let Some((file, _)) = workload.name.split_once(": ") else { continue };
        match files.iter_mut().find(|(known, _)| *known == file) {
            Some((_, cases)) => cases.push(workload),
            None => files.push((file, vec![workload])),
        }
    }
    files.retain(|(_, cases)| cases.len() > 1);
    files
}

/// Returns the measures of a place: those that its phase names, or the chief ones and the costs.
fn shown(run: &Results, place: PhasePlace<'_>) -> Vec<Measure> {
    match place.workload.shown_in.get(place.phase) {
        Some(names) => names.iter().map(|name| Measure::named(name)).collect(),
        None => [measure::chiefs(run, place), measure::costs(run, place)].concat(),
    }
}

/// Returns one contender's medians in all cases of a file: a row for each measure that is shown, and
/// a column for each case. Empty if it ran none of them.
fn by_case(run: &Results, file: &str, cases: &[&WorkloadLine], contender: &str) -> String {
    let places: Vec<PhasePlace<'_>> = cases.iter().flat_map(|case| run.places_of(case)).collect();
    let mut phases: Vec<&str> = Vec::new();
    let names = places.iter().map(|place| place.phase);
    names.for_each(|name| phases.extend((!phases.contains(&name)).then_some(name)));
    let mut rows = String::new();
    for phase in phases {
        let here = || places.iter().filter(|place| place.phase == phase);
        let all = here().flat_map(|&place| shown(run, place));
        let mut measures: Vec<Measure> = Vec::new();
        all.for_each(|measure| measures.extend((!measures.contains(&measure)).then_some(measure)));
        let mut name = escape(phase);
        for measure in measures {
            let value = |case: &&WorkloadLine| {
                let place = here().find(|place| place.workload.name == case.name)?;
                Some(number(measure.spread(run, *place, contender)?.median))
            };
            let values: Vec<Option<String>> = cases.iter().map(value).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let _ = write!(rows, "| {name} | {} |", escape(&measure.heading()));
            for value in values {
                let _ = write!(rows, " {} |", value.as_deref().unwrap_or("-"));
            }
            rows.push('\n');
            // The first row of a phase has its name.
            name.clear();
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let case = |case: &&WorkloadLine| escape(&case.name[file.len() + 2..]);
    let heads: Vec<String> = cases.iter().map(case).collect();
    format!(
        "\n### {}: {} in all cases, medians\n\n| phase | measure | {} |\n|---|---|{}\n{rows}",
        escape(file),
        escape(contender),
        heads.join(" | "),
        "---:|".repeat(heads.len())
    )
}

fn line(run: &Results, row: &ComparedRow<'_>) -> String {
    let drive = measure::drive(run, row.place);
    let phase = match drive.is_empty() {
        true => escape(row.place.phase),
        false => format!("{}, {}", escape(row.place.phase), escape(&drive)),
    };
    let mut text = format!("| {phase} | {} |", escape(&row.measure.heading()));
    for value in &row.values {
        let _ = write!(text, " {} |", value.map_or_else(String::new, spread));
    }
    let ratio = row.ratio().zip(row.best).map(|(ratio, best)| {
        let words = times_spread(ratio.spread);
        let sign = ratio.sign();
        let peer = escape(&run.contenders[best].name);
        // A decided ratio is bold, good or bad; an undecided one is not.
        match ratio.verdict {
            Verdict::Undecided => format!("{words} {sign} ({peer})"),
            _ => format!("**{words} {sign}** ({peer})"),
        }
    });
    let _ = write!(text, " {} |", ratio.unwrap_or_default());
    text
}

/// Escapes the characters that Markdown would interpret.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '<' | '\\' | '~' => escaped.extend(['\\', c]),
            '\n' => escaped.push(' '),
            _ => escaped.push(c),
        }
    }
    escaped
}
