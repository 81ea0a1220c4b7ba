//! A run as tables in Markdown, as `docs/benchmarks.md` keeps them.
//!
//! Owns: the Markdown. Never does: leave a row out because Windrow is behind in
//! it.

use super::compare::{self, ComparedRow, Verdict};
use super::number::{bytes, round, spread, times_spread};
use super::page::summary;
use super::results::Results;
use super::{measure, table};
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
    text
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
