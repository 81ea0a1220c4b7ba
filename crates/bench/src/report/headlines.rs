//! The papers' headlines in one picture: how many times as good as a paper's design its baseline, the
//! default preset and the peers are, each in that paper's own experiment.
//!
//! Runs are read one by one: they may be of several scales, and contenders of one name have
//! settings of their own in each experiment. A ratio is of two contenders of one run only.
//!
//! Owns: that picture. Never does: choose a headline (`paper.toml` does), or leave one out because
//! the default is behind in it.

use super::axis::Log;
use super::compare;
use super::measure::Measure;
use super::number::{number, round};
use super::paper::place;
use super::results::Results;
use super::spread::Spread;
use super::svg::{self, Anchor, Face, LINE, Svg, width};
use super::{palette, pictures};
use crate::paper::{Headline, Paper};

const WIDE: f64 = 860.0;
const ROW: f64 = 23.0;

/// Room for the names of rows at the left and the default's ratio at the right.
const LEFT: f64 = 300.0;
const RIGHT: f64 = 90.0;

/// The contenders that are shown, each with the name whose colour it has in the other pictures.
const SHOWN: [(&str, &str); 6] = [
    ("windrow (the default)", "windrow"),
    ("it with the others' filters", "windrow (same bits)"),
    ("the paper's design = 1", "vlsm"),
    ("its baseline", "uniform"),
    ("RocksDB", "rocksdb"),
    ("LevelDB", "leveldb"),
];

/// The places in [`SHOWN`] of the default, and of the two that each headline names.
const DEFAULT: usize = 0;
const THEIRS: usize = 2;
const BASELINE: usize = 3;

/// A headline and its ratios to the paper's design, by place in [`SHOWN`].
struct Row<'a> {
    headline: &'a Headline,
    scale: String,
    ratios: Vec<(usize, Spread)>,
}

/// The headlines of a paper that were run.
struct Block<'a> {
    paper: &'a Paper,
    rows: Vec<Row<'a>>,
}

/// Returns the picture as a file; `None` if no run has a headline of these papers.
pub(super) fn picture(runs: &[Results], papers: &[Paper]) -> Option<String> {
    let block = |paper| Block { paper, rows: rows(runs, paper) };
    let mut blocks: Vec<Block<'_>> = papers.iter().map(block).collect();
    blocks.retain(|block| !block.rows.is_empty());
    let of_block = |block: &Block<'_>| {
        block.rows.iter().flat_map(|row| row.ratios.clone()).collect::<Vec<_>>()
    };
    let all: Vec<(usize, Spread)> = blocks.iter().flat_map(of_block).collect();
    let ends = all.iter().flat_map(|(_, spread)| [spread.min, spread.max]);
    // The axis goes equally far to both sides: a distance means the same on either.
    let furthest = ends.map(|ratio| ratio.ln().abs()).reduce(f64::max)?.max(2f64.ln()).exp();
    let axis = Log::over([1.0 / furthest, furthest]);
    let mut shown: Vec<usize> = all.iter().map(|(who, _)| *who).chain([THEIRS]).collect();
    shown.sort_unstable();
    shown.dedup();
    let drawn = draw(&blocks, axis, &shown);
    let styles = palette::in_papers(SHOWN.map(|(_, coloured_as)| coloured_as));
    Some(svg::file(&drawn, &format!("{}{styles}", pictures::STYLES)))
}

/// Returns a paper's headlines that were run, each from the first run that has it.
fn rows<'a>(runs: &[Results], paper: &'a Paper) -> Vec<Row<'a>> {
    let row = |headline: &'a Headline| {
        let of_run = |run: &Results| {
            let ratios = ratios(run, paper, headline);
            let scale = run.heads.first().map_or_else(String::new, |head| head.scale.clone());
            (!ratios.is_empty()).then_some(Row { headline, scale, ratios })
        };
        runs.iter().find_map(of_run)
    };
    paper.headlines.iter().filter_map(row).collect()
}

fn ratios(run: &Results, paper: &Paper, headline: &Headline) -> Vec<(usize, Spread)> {
    let experiment = paper.experiment_name(&headline.run);
    let Some(place) = place(run, &experiment, &headline.case, &headline.phase) else {
        return Vec::new();
    };
    let measure = Measure::named(&headline.figure);
    let values = |name: &str| measure.values(run, place, name);
    let theirs = values(&headline.theirs);
    let ratio = |(who, (_, name)): (usize, (&str, &str))| {
        let name = if who == BASELINE { headline.baseline.as_str() } else { name };
        let ratio = compare::ratio(measure.better, &values(name), &theirs)?;
        (who != THEIRS).then_some((who, ratio.spread))
    };
    SHOWN.into_iter().enumerate().filter_map(ratio).collect()
}

fn draw(blocks: &[Block<'_>], axis: Log, shown: &[usize]) -> String {
    let title = "The papers' experiments: how many times as good as the paper's design";
    let remark = "dot: median of rounds, line: their range";
    let mut svg = Svg::new(WIDE);
    let head_end = svg.head(title, remark);
    let top = draw_legend(&mut svg, shown, head_end + LINE + 6.0) + 2.0 * LINE;
    let rows: usize = blocks.iter().map(|block| block.rows.len() + 1).sum();
    let bottom = top + rows as f64 * ROW;
    let x = |ratio: f64| LEFT + axis.place(ratio) * (WIDE - LEFT - RIGHT);
    draw_frame(&mut svg, axis, &x, (top, bottom));
    let mut y = top;
    for block in blocks {
        svg.line((0.0, y), (WIDE, y), "grid");
        draw_heading(&mut svg, block, y + ROW - 6.0);
        y += ROW;
        for row in &block.rows {
            draw_row(&mut svg, row, &x, y + ROW / 2.0);
            y += ROW;
        }
    }
    svg.finish(bottom + 2.5 * LINE, title)
}

/// Draws the paper's name, with the contender that is its design and the scale of its runs.
fn draw_heading(svg: &mut Svg, block: &Block<'_>, baseline: f64) {
    let name = &block.paper.name;
    svg.text((0.0, baseline), Anchor::Start, Face::Title, name);
    let design = block.rows.first().map_or("", |row| row.headline.theirs.as_str());
    let design = if design.eq_ignore_ascii_case(name) { "" } else { design };
    let mut scales: Vec<&str> = block.rows.iter().map(|row| row.scale.as_str()).collect();
    scales.dedup();
    let comma = if design.is_empty() { "" } else { ", " };
    let words = format!("{design}{comma}scale {}", scales.join(" and "));
    let place = (width(name, Face::Title) + 10.0, baseline);
    svg.text(place, Anchor::Start, Face::Small, &words);
}

/// Returns a ratio in words: `1/32.0` is easier to read than `0.0313`.
fn times(ratio: f64, format: fn(f64) -> String) -> String {
    if ratio < 1.0 { format!("1/{}", format(1.0 / ratio)) } else { format!("{}×", format(ratio)) }
}

/// Draws the names of those shown; returns the last baseline.
fn draw_legend(svg: &mut Svg, shown: &[usize], top: f64) -> f64 {
    let (mut x, mut y) = (0.0, top);
    for &who in shown {
        let name = SHOWN[who].0;
        let room = width(name, Face::Label) + 30.0;
        if x + room > WIDE {
            (x, y) = (0.0, y + LINE + 2.0);
        }
        svg.dot((x + 5.0, y - 4.0), 5.0, &format!("f{who}"), name);
        svg.text((x + 14.0, y), Anchor::Start, Face::Label, name);
        x += room;
    }
    y
}

fn draw_frame(svg: &mut Svg, axis: Log, x: &dyn Fn(f64) -> f64, (top, bottom): (f64, f64)) {
    let (left, even, right) = (LEFT, x(1.0), WIDE - RIGHT);
    svg.rect(left, top, even - left, bottom - top, "bad");
    svg.rect(even, top, right - even, bottom - top, "good");
    svg.text((even - 8.0, top - 8.0), Anchor::End, Face::Small, "◂ worse");
    svg.text((even + 8.0, top - 8.0), Anchor::Start, Face::Small, "better than the paper's ▸");
    svg.text((WIDE, top - 8.0), Anchor::End, Face::Small, "the default");
    for tick in axis.ticks(9) {
        svg.line((x(tick), top), (x(tick), bottom), "grid");
        let place = (x(tick), bottom + LINE - 2.0);
        svg.text(place, Anchor::Middle, Face::Small, &times(tick, round));
    }
    svg.line((even, top - 4.0), (even, bottom + 3.0), &format!("curve s{THEIRS}"));
    let place = (f64::midpoint(left, right), bottom + 2.0 * LINE);
    svg.text(place, Anchor::Middle, Face::Small, "times as good (logarithmic)");
}

fn draw_row(svg: &mut Svg, row: &Row<'_>, x: &dyn Fn(f64) -> f64, middle: f64) {
    svg.line((0.0, middle - ROW / 2.0), (WIDE, middle - ROW / 2.0), "grid");
    svg.label((12.0, middle + 4.0), Anchor::Start, LEFT - 20.0, &row.headline.says);
    // They lie one under the other, so that none hides another; the default is drawn last.
    let step = (ROW - 6.0) / row.ratios.len() as f64;
    let first = middle - (row.ratios.len() as f64 - 1.0) / 2.0 * step;
    for (n, (who, spread)) in row.ratios.iter().enumerate().rev() {
        let y = first + n as f64 * step;
        let ends = [spread.min, spread.max].map(|ratio| (x(ratio), y));
        svg.line(ends[0], ends[1], &format!("whole s{who}"));
        let words = format!("{}: {}", SHOWN[*who].0, times(spread.median, number));
        svg.dot((x(spread.median), y), 4.0, &format!("f{who}"), &words);
    }
    if let Some((_, spread)) = row.ratios.iter().find(|(who, _)| *who == DEFAULT) {
        let words = times(spread.median, number);
        svg.text((WIDE, middle + 4.0), Anchor::End, Face::Label, &words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper;
    use crate::record::Line;
    use crate::report::results::read;
    use crate::report::sample::{Sample, text};

    /// Returns a run of one phase, with these throughputs of contenders in two rounds.
    fn run(workload: &str, scale: &str, values: &[(&str, [f64; 2])]) -> Results {
        let mut lines = Sample { contenders: 1, rounds: 2, scale: 1.0 }.lines();
        let Line::Run(mut head) = lines.remove(0) else { panic!("no head") };
        let mut phase = lines.into_iter().find_map(|line| match line {
            Line::Phase(phase) => Some(phase),
            _ => None,
        });
        let phase = phase.as_mut().unwrap();
        head.scale = scale.to_owned();
        head.workloads.truncate(1);
        head.workloads[0].name = workload.to_owned();
        let known = head.contenders[0].clone();
        head.contenders.clear();
        let mut phases = Vec::new();
        for (name, rounds) in values {
            let mut contender = known.clone();
            contender.name = (*name).to_owned();
            head.contenders.push(contender);
            for (value, round) in rounds.iter().zip(1..) {
                let mut line = phase.clone();
                (line.workload, line.contender) = (workload.to_owned(), (*name).to_owned());
                (line.phase, line.round) = ("p".to_owned(), round);
                line.figures.insert("kops_per_s".to_owned(), *value);
                phases.push(Line::Phase(line));
            }
        }
        let lines: Vec<Line> = [Line::Run(head)].into_iter().chain(phases).collect();
        read(&[("run.jsonl".to_owned(), text(&lines))]).unwrap()
    }

    fn papers() -> Vec<Paper> {
        let headline = |says: &str, run: &str| Headline {
            says: says.to_owned(),
            run: run.to_owned(),
            case: String::new(),
            phase: "p".to_owned(),
            figure: "kops_per_s".to_owned(),
            theirs: "vlsm".to_owned(),
            baseline: "leveled".to_owned(),
        };
        let mut papers = paper::all();
        papers.truncate(1);
        papers[0].headlines =
            ["won", "lost", "not run"].map(|says| headline(says, &says.replace(' ', ""))).to_vec();
        papers
    }

    #[test]
    fn wins_and_losses_are_drawn_from_the_runs_that_have_them() {
        let papers = papers();
        let (won, lost) = (papers[0].experiment_name("won"), papers[0].experiment_name("lost"));
        // The scales differ: such runs cannot be reported together.
        let runs = [
            run(
                &won,
                "full",
                &[("windrow", [8.0, 9.0]), ("vlsm", [2.0, 3.0]), ("leveled", [1.0; 2])],
            ),
            run(
                &lost,
                "reduced",
                &[("windrow", [1.0, 1.0]), ("vlsm", [4.0, 4.0]), ("rocksdb", [8.0; 2])],
            ),
        ];
        let svg = picture(&runs, &papers).unwrap();
        for part in
            [">3.50×<", ">1/4.00<", ">won<", ">lost<", "RocksDB: 2.00×", "its baseline: 1/2.40"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(!svg.contains("not run") && !svg.contains("LevelDB"), "{svg}");
        assert_eq!(picture(&runs[..0], &papers), None);
    }
}
