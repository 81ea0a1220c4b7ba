//! A figure over categories, as papers draw it: groups of bars, or lines, a series for each
//! contender, on one scale from zero.
//!
//! A whisker goes from the least to the greatest round.
//!
//! Owns: the layout and the colours of series. Never does: choose what is drawn.

use super::axis::Linear;
use super::number::{number, round};
use super::spread::Spread;
use super::svg::{Anchor, Face, LINE, Svg, cut, width};
use std::fmt::Write as _;

/// Width of the picture, height of its plotting area, room for the ticks at the left.
const WIDE: f64 = 760.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 58.0;

/// Share of a group's width that is left free.
const FREE: f64 = 0.22;

/// A bar's number is written where bars are at least this wide.
const NUMBERED: f64 = 26.0;

/// Okabe and Ito's hues, and others that differ from them: series of one engine must differ, too.
const HUES: [&str; 14] = [
    "#7f7f7f", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8b5a2b", "#b5a900",
    "#7b4fc9", "#4d4d4d", "#66a61e", "#e7298a", "#a9c4a0", "#b15928",
];

/// The default preset has this colour in every picture.
const OURS: (&str, &str) = ("windrow", "#0072b2");

/// A contender's values, one for each category.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Option<Spread>>,
}

/// The contents of a chart.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: String,
    pub(super) labels: Vec<String>,
    pub(super) series: Vec<Series>,
    pub(super) has_lines: bool,
}

/// The scales of the plotting area.
struct BarArea {
    top: f64,
    axis: Linear,
    group: f64,
}

impl BarArea {
    fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.axis.place(value)) * HEIGHT
    }

    fn middle(&self, category: usize) -> f64 {
        LEFT + (category as f64 + 0.5) * self.group
    }
}

/// Returns the styles of the series of a chart.
pub(super) fn styles(chart: &Chart) -> String {
    let mut css = String::new();
    let mut hues = HUES.into_iter().cycle();
    for (i, series) in chart.series.iter().enumerate() {
        let hue = if series.name == OURS.0 { Some(OURS.1) } else { hues.next() };
        let hue = hue.unwrap_or(OURS.1);
        let _ = writeln!(
            css,
            ".q{i} {{ fill: {hue}; }}\n.l{i} {{ stroke: {hue}; fill: none; stroke-width: 2; }}"
        );
    }
    css
}

/// Draws the chart as an SVG element without styles.
pub(super) fn picture(chart: &Chart) -> String {
    let mut svg = Svg::new(WIDE);
    svg.text((0.0, LINE), Anchor::Start, Face::Title, &cut(&chart.title, Face::Title, WIDE));
    let legend_end = draw_legend(&mut svg, chart, 2.0 * LINE + 4.0);
    svg.text((0.0, legend_end + LINE), Anchor::Start, Face::Small, &chart.y);
    let greatest = chart.series.iter().flat_map(|series| series.values.iter().flatten());
    let axis = Linear::to(greatest.map(|spread| spread.max).fold(0.0, f64::max), 5.0);
    let group = (WIDE - LEFT) / chart.labels.len().max(1) as f64;
    let area = BarArea { top: legend_end + LINE + 18.0, axis, group };
    draw_axes(&mut svg, chart, &area);
    if chart.has_lines {
        draw_lines(&mut svg, chart, &area);
    } else {
        draw_bars(&mut svg, chart, &area);
    }
    svg.finish(area.top + HEIGHT + 3.0 * LINE, &chart.title)
}

/// Draws the names of series with their colours; returns the height at which they end.
fn draw_legend(svg: &mut Svg, chart: &Chart, top: f64) -> f64 {
    let (mut x, mut y) = (0.0, top);
    for (i, series) in chart.series.iter().enumerate() {
        let name = cut(&series.name, Face::Label, 260.0);
        let room = width(&name, Face::Label) + 34.0;
        if x + room > WIDE {
            (x, y) = (0.0, y + LINE + 2.0);
        }
        svg.rect(x, y - 9.0, 10.0, 10.0, &format!("q{i}"));
        svg.text((x + 15.0, y), Anchor::Start, Face::Label, &name);
        x += room;
    }
    y + 6.0
}

fn draw_axes(svg: &mut Svg, chart: &Chart, area: &BarArea) {
    for tick in area.axis.ticks() {
        let y = area.y(tick);
        svg.line((LEFT, y), (WIDE, y), if tick == 0.0 { "axis" } else { "grid" });
        let text = if tick == 0.0 { "0".to_owned() } else { round(tick) };
        svg.text((LEFT - 6.0, y + 4.0), Anchor::End, Face::Small, &text);
    }
    let bottom = area.top + HEIGHT;
    for (category, label) in chart.labels.iter().enumerate() {
        let label = cut(label, Face::Small, area.group - 4.0);
        svg.text((area.middle(category), bottom + LINE), Anchor::Middle, Face::Small, &label);
    }
    let middle = f64::midpoint(LEFT, WIDE);
    svg.text((middle, bottom + 2.2 * LINE), Anchor::Middle, Face::Small, &chart.x);
}

fn draw_whisker(svg: &mut Svg, area: &BarArea, x: f64, spread: Spread) {
    if spread.max > spread.min {
        svg.line((x, area.y(spread.min)), (x, area.y(spread.max)), "whisker");
    }
}

fn draw_bars(svg: &mut Svg, chart: &Chart, area: &BarArea) {
    let wide = area.group * (1.0 - FREE) / chart.series.len().max(1) as f64;
    for (i, series) in chart.series.iter().enumerate() {
        for (category, spread) in series.values.iter().enumerate() {
            let Some(spread) = spread else { continue };
            let left = area.middle(category) - area.group * (1.0 - FREE) / 2.0 + i as f64 * wide;
            let y = area.y(spread.median);
            svg.rect(left, y, (wide - 1.0).max(1.0), area.top + HEIGHT - y, &format!("q{i}"));
            draw_whisker(svg, area, left + wide / 2.0, *spread);
            let text = number(spread.median);
            if wide >= NUMBERED.max(width(&text, Face::Small)) {
                let above = area.y(spread.max) - 3.0;
                svg.text((left + wide / 2.0, above), Anchor::Middle, Face::Small, &text);
            }
        }
    }
}

fn draw_lines(svg: &mut Svg, chart: &Chart, area: &BarArea) {
    for (i, series) in chart.series.iter().enumerate() {
        let told = series.values.iter().enumerate();
        let told: Vec<(usize, Spread)> = told.filter_map(|(n, s)| Some((n, (*s)?))).collect();
        let at = |(n, spread): &(usize, Spread)| (area.middle(*n), area.y(spread.median));
        svg.path(&told.iter().map(at).collect::<Vec<_>>(), &format!("l{i}"));
        for point in &told {
            draw_whisker(svg, area, at(point).0, point.1);
            let words = format!("{}: {}", series.name, number(point.1.median));
            svg.dot(at(point), 3.5, &format!("q{i}"), &words);
        }
    }
}
