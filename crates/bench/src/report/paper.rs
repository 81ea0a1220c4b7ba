//! Results in the form of a paper: pictures and tables of its rows, with the paper's claims next to
//! our figures.
//!
//! A page about a paper has a place for each row, between the lines `<!-- row: ID -->` and `<!--
//! end -->`; each report rewrites the text between them.
//!
//! Owns: the text of a row. Never does: decide whether a claim holds (`verdicts.rs` does).

use super::categories::{self, Chart, Series};
use super::measure::Measure;
use super::number::{round, spread};
use super::results::{PhasePlace, Results};
use super::{curves, labels, markdown, palette, pictures, svg, timelines, verdicts};
use crate::paper::{By, Category, Form, Paper, ResultForm, Row};
use crate::record::WorkloadLine;
use crate::workload::Scale;
use std::fmt::Write as _;

/// A row's place in a page, and its picture's file.
pub(super) struct Section {
    pub(super) id: String,
    /// Its text in Markdown.
    pub(super) text: String,
    /// The name of its picture's file.
    pub(super) file: String,
    /// The contents of that file; `None` if there is nothing to draw.
    pub(super) picture: Option<String>,
}

/// Returns the sections of all rows of a paper that a run has results of.
///
/// # Errors
/// An experiment that this program cannot read.
pub(super) fn sections(run: &Results, paper: &Paper) -> Result<Vec<Section>, String> {
    let mut all = Vec::new();
    for row in &paper.rows {
        let (By::Run(experiment), Some(shown)) =
            (row.by(), row.picture.as_ref().or(row.table.as_ref()))
        else {
            continue;
        };
        let of = paper.experiment_name(experiment);
        let places = places(run, &of, shown);
        if places.is_empty() {
            continue;
        }
        let told = Told { run, row, shown, places };
        let picture = row.picture.as_ref().and_then(|_| told.picture());
        let picture = picture.map(|(drawn, styles)| svg::file(&drawn, &styles));
        let file = format!("{}-{}.svg", paper.key, row.id);
        let text = told.text(paper, picture.as_ref().map(|_| file.as_str()))?;
        all.push(Section { id: row.id.clone(), text, file, picture });
    }
    Ok(all)
}

/// Returns the categories that a run has results of.
fn places<'a>(
    run: &'a Results,
    experiment: &str,
    shown: &ResultForm,
) -> Vec<(PhasePlace<'a>, String)> {
    let found = |category: Category<'_>| {
        Some((place(run, experiment, category.case, category.phase)?, category.label))
    };
    shown.categories(scale(run)).into_iter().filter_map(found).collect()
}

fn scale(run: &Results) -> Scale {
    let known = run.heads.first().and_then(|head| Scale::named(&head.scale));
    known.unwrap_or(Scale::Full)
}

/// Returns a phase of an experiment's case; `None` if the run has no results of it.
pub(super) fn place<'a>(
    run: &'a Results,
    experiment: &str,
    case: &str,
    phase: &str,
) -> Option<PhasePlace<'a>> {
    let workload = workload(run, experiment, case)?;
    run.places_of(workload).into_iter().find(|place| place.phase == phase)
}

fn workload<'a>(run: &'a Results, experiment: &str, case: &str) -> Option<&'a WorkloadLine> {
    let name =
        if case.is_empty() { experiment.to_owned() } else { format!("{experiment}: {case}") };
    run.workloads.iter().find(|workload| workload.name == name)
}

/// A row with the results that a run has of it.
struct Told<'a> {
    run: &'a Results,
    row: &'a Row,
    shown: &'a ResultForm,
    /// The places, each with its label on the axis.
    places: Vec<(PhasePlace<'a>, String)>,
}

impl Told<'_> {
    /// Returns the contenders that have results here, in the order that the row asks for.
    fn names(&self) -> Vec<&str> {
        let has = |name: &str| {
            self.places.iter().any(|(place, _)| !self.run.lines(*place, name).is_empty())
        };
        let all = self.run.contenders.iter().map(|contender| contender.name.as_str());
        let asked = self.shown.contenders.iter().map(String::as_str);
        let names: Vec<&str> =
            if self.shown.contenders.is_empty() { all.collect() } else { asked.collect() };
        names.into_iter().filter(|name| has(name)).collect()
    }

    /// Returns an SVG element, and the styles that it needs; `None` if a picture would show no more
    /// than one value.
    fn picture(&self) -> Option<(String, String)> {
        let title = format!("{}: {}", self.row.is, self.row.compares);
        let places: Vec<PhasePlace<'_>> = self.places.iter().map(|(place, _)| *place).collect();
        let names = self.names();
        let styles = |series: &mut dyn Iterator<Item = &str>| {
            format!("{}{}", pictures::STYLES, palette::in_papers(series))
        };
        let (figure, has_lines) = match self.shown.form().ok()? {
            Form::Bars(figure) => (figure, false),
            Form::Lines(figure) => (figure, true),
            form @ (Form::Curves(_) | Form::Timeline) => {
                let draw =
                    if form == Form::Timeline { timelines::picture } else { curves::picture };
                let run = self.run.only(&names);
                let svg = draw(&run, &places, &title, &self.ran(), pictures::WIDE)?;
                return Some((svg, styles(&mut names.into_iter())));
            }
            Form::Table(_) => return None,
        };
        let chart = self.chart(title, figure, has_lines);
        let series = &mut chart.series.iter().map(|series| series.name.as_str());
        (chart.count() > 1).then(|| (categories::picture(&chart), styles(series)))
    }

    fn chart(&self, title: String, figure: &str, has_lines: bool) -> Chart {
        let measure = Measure::named(figure);
        let spread = |place: &PhasePlace<'_>, name: &str| measure.spread(self.run, *place, name);
        let names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        let of_contender = |name: &String| Series {
            name: name.clone(),
            values: self.places.iter().map(|(place, _)| spread(place, name)).collect(),
        };
        let of_place = |(place, label): &(PhasePlace<'_>, String)| Series {
            name: label.clone(),
            values: names.iter().map(|name| spread(place, name)).collect(),
        };
        let (groups, series) = match self.shown.by_contender {
            false => {
                let labels: Vec<String> =
                    self.places.iter().map(|(_, label)| label.clone()).collect();
                (labels::of_categories(&labels), names.iter().map(of_contender).collect())
            }
            true => (labels::of_contenders(&names), self.places.iter().map(of_place).collect()),
        };
        let is_time = measure.unit == "µs";
        let unit = if is_time { measure.title.clone() } else { measure.heading() };
        let y = if self.shown.y.is_empty() { unit } else { self.shown.y.clone() };
        Chart {
            title,
            remark: self.ran(),
            x: self.shown.x.clone(),
            y: format!("{y}; {}", measure.direction()),
            is_time,
            groups,
            series,
            has_lines,
        }
    }

    /// Returns the picture's link, the table, and the paper's claims.
    fn text(&self, paper: &Paper, picture: Option<&str>) -> Result<String, String> {
        let title = format!("{}: {}", self.row.is, self.row.compares);
        let mut text = match picture {
            Some(name) => format!("![{title}](pictures/{name})\n\n"),
            // A picture has it in its first line.
            None => format!("*{}*\n\n", markdown::escape(&title)),
        };
        text += &self.occasion();
        let names = self.names();
        let heads: Vec<String> = names.iter().map(|name| markdown::escape(name)).collect();
        let _ = writeln!(
            text,
            "| | | {} |\n|---|---|{}",
            heads.join(" | "),
            "---:|".repeat(names.len())
        );
        for (place, label) in &self.places {
            for figure in self.shown.figures() {
                let measure = Measure::named(&figure);
                let _ = write!(
                    text,
                    "| {} | {} |",
                    markdown::escape(label),
                    markdown::escape(&measure.heading())
                );
                for name in &names {
                    let value = measure.spread(self.run, *place, name);
                    let _ = write!(text, " {} |", value.map_or_else(String::new, spread));
                }
                text.push('\n');
            }
        }
        for line in self.verdicts(paper)? {
            text.push_str(&line);
        }
        Ok(text)
    }

    /// Returns the time, the size and the rounds of the run.
    fn occasion(&self) -> String {
        let Some(head) = self.run.heads.first() else { return String::new() };
        let day = head.started.split('T').next().unwrap_or_default();
        let medians = if self.rounds().1 > 1 { "; medians (least to greatest)" } else { "" };
        format!("Scale {}{medians}.\n\n", self.size(&format!(", {day}")))
    }

    /// Returns what was run, for a picture.
    fn ran(&self) -> String {
        let medians = if self.rounds().1 > 1 { ": medians, least to greatest" } else { "" };
        format!("scale {}{medians}", self.size(""))
    }

    /// Returns the scale, the records and the rounds.
    fn size(&self, day: &str) -> String {
        let scale = self.run.heads.first().map_or("", |head| head.scale.as_str());
        let mut records: Vec<u64> =
            self.places.iter().map(|(place, _)| place.workload.records).collect();
        records.sort_unstable();
        let ends = [records.first(), records.last()].map(|n| n.map_or(0, |n| *n));
        let records = match ends {
            [few, many] if few == many => round(many as f64),
            [few, many] => format!("{} to {}", round(few as f64), round(many as f64)),
        };
        let rounds = match self.rounds() {
            (_, 1) => "one round".to_owned(),
            (few, many) if few == many => format!("{many} rounds"),
            (few, many) => format!("{few} to {many} rounds"),
        };
        format!("{scale}{day}, {records} records, {rounds}")
    }

    /// Returns the least and the greatest number of rounds of a phase: one that is done once has one.
    fn rounds(&self) -> (usize, usize) {
        let of = |(place, _): &(PhasePlace<'_>, String)| {
            self.names().iter().map(|name| self.run.lines(*place, name).len()).max()
        };
        let rounds: Vec<usize> = self.places.iter().filter_map(of).collect();
        let ends = (rounds.iter().min(), rounds.iter().max());
        (ends.0.map_or(0, |n| *n), ends.1.map_or(0, |n| *n))
    }

    /// Returns the paper's claims of this row: theirs, ours, the verdict.
    fn verdicts(&self, paper: &Paper) -> Result<Vec<String>, String> {
        let mut workloads = paper.workloads(scale(self.run))?;
        for workload in &mut workloads {
            workload.goals.retain(|goal| goal.paper.as_deref() == Some(&self.row.is));
        }
        let lines = verdicts::lines(workloads.iter(), &self.run.phases);
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let mut text = vec!["\n| claim | paper | here | |\n|---|---:|---:|---|\n".to_owned()];
        text.extend(lines.iter().map(|[what, ours, theirs, verdict]| {
            let what = what.split_once(": ").map_or(what.as_str(), |(_, rest)| rest);
            format!("| {} | {theirs} | {ours} | {verdict} |\n", markdown::escape(what))
        }));
        Ok(text)
    }
}

/// Returns a page with the sections in their places; other places stay as they are.
///
/// # Errors
/// A place without an end.
pub(super) fn fill(page: &str, sections: &[Section]) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), page);
    while let Some(begin) = rest.find("<!-- row: ") {
        let (before, place) = rest.split_at(begin);
        let (head, body) = place.split_once('\n').unwrap_or((place, ""));
        let id = head.trim_start_matches("<!-- row: ").trim_end_matches(" -->");
        let end = body.find("<!-- end -->");
        let end = end.ok_or_else(|| format!("`{head}` has no `<!-- end -->` after it"))?;
        let (old, after) = body.split_at(end);
        let section = sections.iter().find(|section| section.id == id);
        let new = section.map_or_else(|| old.to_owned(), |section| format!("\n{}\n", section.text));
        let _ = write!(filled, "{before}{head}\n{new}");
        rest = after;
    }
    Ok(filled + rest)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::pictures::Picture;

    /// Returns the pictures of rows of a paper over a made-up run.
    pub(in crate::report) fn pictures_of(run: &Results) -> Vec<Picture> {
        let forms = [
            (
                "db_bench",
                "bars = \"kops_per_s\", phases = [\"fillrandom\", \"overwrite\", \"readrandom\"]",
            ),
            (
                "db_bench",
                "lines = \"get_us_p99\", phases = [\"readrandom\"], labels = [\"50 B\"], x = \"values\"",
            ),
            (
                "db_bench",
                "lines = \"kops_per_s\", phases = [\"fillrandom\", \"overwrite\"], by_contender = true",
            ),
            ("ycsb-a", "curves = \"get\", phases = [\"run\"]"),
            ("ycsb-a", "timeline = true, phases = [\"load\", \"run\"]"),
        ];
        let picture = |(n, (experiment, form)): (usize, (&str, &str))| {
            let row = format!(
                "id = \"fig{n}\"\nis = \"Fig. {n}\"\ncompares = \"c = 1 and .8\"\nrun = \"x\"\npicture = {{ {form} }}"
            );
            let row: Row = toml::from_str(&row).unwrap();
            let shown = row.picture.as_ref().unwrap();
            let places = places(run, experiment, shown);
            assert_eq!(places.len(), shown.phases.len());
            let told = Told { run, row: &row, shown, places };
            let text = told.text(&crate::paper::all()[0], Some("a.svg")).unwrap();
            assert!(text.contains("windrow") && text.contains("](pictures/a.svg)"), "{text}");
            let alone = told.text(&crate::paper::all()[0], None).unwrap();
            assert!(
                alone.starts_with(&format!("*Fig. {n}: ")) && !alone.contains(".svg"),
                "{alone}"
            );
            Some(Picture { name: row.id.clone(), svg: told.picture()?.0 })
        };
        forms.into_iter().enumerate().filter_map(picture).collect()
    }

    #[test]
    fn sections_go_where_their_rows_are() {
        let section = |id: &str, text: &str| Section {
            id: id.to_owned(),
            text: text.to_owned(),
            file: String::new(),
            picture: None,
        };
        let page = "a\n<!-- row: fig1 -->\nold\n<!-- end -->\nb\n<!-- row: fig2 -->\nkept\n<!-- end -->\nc\n";
        let filled = fill(page, &[section("fig1", "new\n")]).unwrap();
        let wanted = page.replace("old\n", "\nnew\n\n");
        assert_eq!(filled, wanted);
        assert_eq!(fill(&filled, &[section("fig1", "new\n")]).unwrap(), wanted, "twice is as once");
        let problem = fill("<!-- row: fig1 -->\n", &[]).unwrap_err();
        assert!(problem.contains("fig1"), "{problem}");
    }
}
