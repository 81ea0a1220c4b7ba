//! A run as one self-contained HTML page: styles and pictures are in it, and it
//! has no scripts.
//!
//! Its order: the notes on the run, the comparison of the contenders, the
//! set-up, then each workload.
//!
//! Owns: the page. Never does: compute a figure.

use super::compare::{self, ComparedRow, Ratio, Verdict};
use super::measure;
use super::number::{bytes, number, round, spread, time_us};
use super::pictures::{self, Picture};
use super::results::{PhasePlace, Results};
use super::svg::escape;
use super::table;
use crate::record::{Head, WorkloadLine};
use std::fmt::Write as _;

/// The styles of the page, without those of its pictures.
const STYLES: &str = include_str!("page.css");

/// Returns the page. `pictures` are those of each workload, in their order.
pub(crate) fn page(run: &Results, overview: Option<&Picture>, pictures: &[Vec<Picture>]) -> String {
    let title = format!("Windrow bench: {}", summary(run));
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
         <meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{}</title>\n<style>\n{STYLES}{}</style>\n</head>\n<body>\n<main>\n",
        escape(&title),
        pictures::styles(run)
    );
    let _ =
        writeln!(html, "<h1>Windrow bench</h1>\n<p class=\"lead\">{}</p>", escape(&summary(run)));
    html += &warnings(run);
    html += &ratios(run);
    if let Some(picture) = overview {
        html += &figure(picture);
    }
    html += &set_up(run);
    for (workload, pictures) in run.workloads.iter().zip(pictures) {
        html += &section(run, workload, pictures);
    }
    html += "</main>\n</body>\n</html>\n";
    html
}

/// Returns the contenders and the date, in a line.
pub(crate) fn summary(run: &Results) -> String {
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let rounds = run.workloads.iter().map(|w| run.rounds(w)).filter(|n| *n > 0);
    let (least, most) = rounds.fold((usize::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
    let rounds =
        if least == most { count(most, "round") } else { format!("{least} to {most} rounds") };
    let workloads = run.workloads.iter().filter(|w| !run.places_of(w).is_empty()).count();
    let started = run.heads.first().map_or("", |head| head.started.as_str());
    let scale = run.heads.first().map_or("", |head| head.scale.as_str());
    format!(
        "{}, {}, {rounds}, scale {scale}, {started}",
        count(run.contenders.len(), "contender"),
        count(workloads, "workload"),
    )
}

fn warnings(run: &Results) -> String {
    let mut html = String::new();
    if !run.disagreements.is_empty() {
        html += "<div class=\"wrong\" role=\"alert\"><strong>Answers differ: at least one store \
                 gave wrong answers, and its figures count for nothing until that is \
                 explained.</strong><ul>";
        for disagreement in &run.disagreements {
            let _ = write!(html, "<li>{}</li>", escape(disagreement));
        }
        html += "</ul></div>\n";
    }
    if !run.notes.is_empty() {
        html += "<div class=\"note\"><strong>Before you believe a figure</strong><ul>";
        for note in &run.notes {
            let _ = write!(html, "<li>{}</li>", escape(note));
        }
        html += "</ul></div>\n";
    }
    html
}

/// Returns the table of ratios: a row for each chief measure, a column for each
/// rival.
fn ratios(run: &Results) -> String {
    let rows = compare::rows(run);
    let rivals = compare::rivals(run);
    let subject = compare::subject(run);
    let name = escape(&run.contenders[subject].name);
    let mut html = String::from("<h2 id=\"ratios\">Who is better at what</h2>\n");
    if rows.iter().all(|row| row.ratio().is_none()) {
        html += "<p>Only one contender was measured, so there is nothing to compare.</p>\n";
        return html;
    }
    let _ = writeln!(
        html,
        "<p><strong>{}</strong></p>",
        escape(&table::tally(&run.contenders[subject].name, &rows))
    );
    let _ = writeln!(
        html,
        "<p>Each cell says how many times as good {name} is as that contender: more than 1 is \
         good for {name}, for throughput and for latencies alike. Under it is the \
         range of ratios, which are taken round by round. The best contender of another engine is framed. \
         {}.{}</p>",
        escape(compare::SIGNS),
        chance(run)
    );
    let _ = write!(
        html,
        "<div class=\"scroll\"><table>\n<thead><tr><th>workload</th><th>phase</th>\
         <th>measure</th><th>{}{name}</th>",
        swatch(subject)
    );
    for &i in &rivals {
        let _ = write!(html, "<th>to {}{}</th>", swatch(i), breakable(&run.contenders[i].name));
    }
    html += "</tr></thead>\n<tbody>\n";
    let mut last = "";
    for row in &rows {
        let workload = row.place.workload.name.as_str();
        let class = if workload == last { "" } else { " class=\"first\"" };
        let _ = write!(html, "<tr{class}>");
        let link = format!("<a href=\"#{}\">{}</a>", anchor(workload), escape(workload));
        let _ = write!(html, "<th>{}</th>", if workload == last { "" } else { &link });
        last = workload;
        html += &ratio_cells(run, row, subject, &rivals);
        html += "</tr>\n";
    }
    html += "</tbody>\n</table></div>\n";
    html
}

fn ratio_cells(run: &Results, row: &ComparedRow<'_>, subject: usize, rivals: &[usize]) -> String {
    let drive = measure::drive(run, row.place);
    let value = row.values[subject].map_or("–".to_owned(), spread);
    let mut html = format!("<th>{}", escape(row.place.phase));
    if !drive.is_empty() {
        let _ = write!(html, "<br/><small>{}</small>", escape(&drive));
    }
    let _ = write!(html, "</th><td class=\"words\">{}</td>", escape(&row.measure.heading()));
    let _ = write!(html, "<td>{value}</td>");
    for &i in rivals {
        let best = if row.best == Some(i) { " best" } else { "" };
        match row.ratios[i] {
            Some(ratio) => {
                let words = ratio_words(ratio);
                let _ = write!(html, "<td class=\"{}{best}\">{words}</td>", shade(ratio));
            }
            None => html += "<td>–</td>",
        }
    }
    html
}

/// Returns the median with its sign, and the range under it.
fn ratio_words(ratio: Ratio) -> String {
    let [median, min, max] = [ratio.spread.median, ratio.spread.min, ratio.spread.max].map(number);
    let range =
        if min == max { String::new() } else { format!("<br/><small>{min}–{max}</small>") };
    format!("<b>{median}× {}</b>{range}", ratio.sign())
}

/// Returns the colour of a ratio: the further from 1, the deeper.
fn shade(ratio: Ratio) -> String {
    let side = match ratio.verdict {
        Verdict::Ahead => "ahead",
        Verdict::Behind => "behind",
        Verdict::Undecided => return "open".to_owned(),
    };
    let depth = match ratio.spread.median.ln().abs() {
        d if d < 1.2f64.ln() => 1,
        d if d < 2f64.ln() => 2,
        _ => 3,
    };
    format!("{side} d{depth}")
}

/// Returns the chance of a sign with so few rounds.
fn chance(run: &Results) -> String {
    let rounds = run.workloads.iter().map(|w| run.rounds(w)).filter(|n| *n > 1).min();
    match rounds {
        Some(rounds) if rounds < 6 => format!(
            " With {rounds} rounds, two stores that are equal would still get a ▲ or a ▼ in one \
             measure of {}.",
            1u32 << (rounds - 1)
        ),
        _ => String::new(),
    }
}

/// Returns a contender's name, which a narrow column may break after its
/// engine.
fn breakable(name: &str) -> String {
    escape(name).replace(':', ":<wbr/>").replace(',', ",<wbr/>")
}

fn swatch(contender: usize) -> String {
    format!("<i class=\"swatch f{contender}\"></i>")
}

fn anchor(workload: &str) -> String {
    format!("workload-{}", pictures::file_name(workload))
}

/// Returns the set-up: workloads, machine and settings.
fn set_up(run: &Results) -> String {
    let mut html = String::from("<h2 id=\"set-up\">What was run</h2>\n<dl>\n");
    let mut machines: Vec<String> = Vec::new();
    for head in &run.heads {
        let machine = machine(head);
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    for machine in &machines {
        let _ = writeln!(html, "<dt>machine</dt><dd>{}</dd>", escape(machine));
    }
    for head in &run.heads {
        let command = head.command.join(" ");
        let _ = writeln!(html, "<dt>command</dt><dd><code>{}</code></dd>", escape(&command));
        let overrides: Vec<String> =
            head.overrides.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let own = if overrides.is_empty() {
            "as the workloads say".to_owned()
        } else {
            overrides.join(", ")
        };
        let _ = writeln!(
            html,
            "<dt>settings</dt><dd>seed {}, scale {}, started {}; {}</dd>",
            head.seed,
            escape(&head.scale),
            escape(&head.started),
            escape(&own)
        );
    }
    if let Some(seconds) = run.seconds {
        let _ = writeln!(html, "<dt>took</dt><dd>{}</dd>", took(seconds));
    }
    html += "</dl>\n<h3>Contenders</h3>\n<table class=\"contenders\">\n<thead><tr><th>name</th>\
             <th>version</th><th>direct I/O</th><th>how it is set up, and why</th></tr></thead>\n<tbody>\n";
    for (i, contender) in run.contenders.iter().enumerate() {
        let _ = writeln!(
            html,
            "<tr><th>{}{}</th><td class=\"words\">{} {}</td><td class=\"words\">{}</td><td class=\"prose\">{}</td></tr>",
            swatch(i),
            escape(&contender.name),
            escape(&contender.engine),
            escape(&contender.version),
            if contender.direct_io { "yes" } else { "no" },
            escape(&contender.tuning)
        );
    }
    html += "</tbody>\n</table>\n";
    html
}

fn took(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => time_us(s * 1e6),
        s if s < 7200.0 => format!("{} minutes", number(s / 60.0)),
        s => format!("{} hours", number(s / 3600.0)),
    }
}

fn machine(head: &Head) -> String {
    let machine = &head.machine;
    format!(
        "{}, {} cores, {} of memory, Linux {}, databases on {}",
        machine.cpu,
        machine.cores,
        bytes(machine.memory_bytes),
        machine.kernel,
        machine.file_system
    )
}

fn section(run: &Results, workload: &WorkloadLine, pictures: &[Picture]) -> String {
    let places = run.places_of(workload);
    if places.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<section>\n<h2 id=\"{}\">{}: {}</h2>\n<p>{}</p>\n",
        anchor(&workload.name),
        escape(&workload.name),
        escape(&workload.title),
        escape(&workload.about)
    );
    let _ = writeln!(
        html,
        "<p class=\"facts\">{}: {} records, memory budget {}, {} I/O, {} rounds.</p>",
        escape(&workload.family),
        round(workload.records as f64),
        bytes(workload.memory_bytes),
        if workload.direct_io { "direct" } else { "buffered" },
        run.rounds(workload)
    );
    for picture in pictures {
        html += &figure(picture);
    }
    html += "<details><summary>All figures of this workload</summary>\n";
    for &place in &places {
        html += &details(run, place);
    }
    html += "</details>\n</section>\n";
    html
}

/// Returns every figure of a place, of every contender.
fn details(run: &Results, place: PhasePlace<'_>) -> String {
    let drive = measure::drive(run, place);
    let comma = if drive.is_empty() { "" } else { ", " };
    let mut html = format!(
        "<div class=\"scroll\"><table>\n<caption>{}{comma}{}</caption>\n<thead><tr><th>measure</th>",
        escape(place.phase),
        escape(&drive)
    );
    for (i, contender) in run.contenders.iter().enumerate() {
        let _ = write!(html, "<th>{}{}</th>", swatch(i), escape(&contender.name));
    }
    html += "</tr></thead>\n<tbody>\n";
    for measure in measure::all(run, place) {
        let _ = write!(html, "<tr><th>{}</th>", escape(&measure.heading()));
        for contender in &run.contenders {
            let value = measure.spread(run, place, &contender.name);
            let _ = write!(html, "<td>{}</td>", value.map_or("–".to_owned(), spread));
        }
        html += "</tr>\n";
    }
    html += "</tbody>\n</table></div>\n";
    html
}

fn figure(picture: &Picture) -> String {
    format!("<figure id=\"{}\">{}</figure>\n", escape(&picture.name), picture.svg)
}
