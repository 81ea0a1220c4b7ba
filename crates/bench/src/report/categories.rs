//! A figure over categories, as papers draw it: groups of bars, or points that lines join, a series
//! for each contender.
//!
//! Values share a linear axis from zero. Where the least of them would vanish next to the greatest,
//! each category of bars gets an axis of its own, or all get a logarithmic one, which has points: the
//! length of a bar would mean nothing on it. A whisker goes from the least to the greatest round.
//!
//! Owns: the layout of charts. Never does: choose what is drawn, or a colour (`palette.rs` does).

use super::axis::{ValueAxis, is_wide};
use super::labels::Group;
use super::number::{number, round, time_us};
use super::spread::Spread;
use super::svg::{Anchor, Face, LINE, Svg, lines, width};

/// Width of the picture, height of its plotting area, room for the ticks at the left.
const WIDE: f64 = 760.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 58.0;

/// Room for the ticks of a category's own axis.
const OWN_LEFT: f64 = 46.0;

/// Distance of two groups, as a share of a category's width; less where the ticks of each category
/// are between them.
const BETWEEN: f64 = 0.5;
const BETWEEN_APART: f64 = 0.15;

/// Share of a category's width that is left free, also less there; most widths of a bar, and of two
/// points' distance.
const FREE: f64 = 0.22;
const FREE_APART: f64 = 0.06;
const BAR_MAX: f64 = 64.0;
const POINT_STEP_MAX: f64 = 6.0;

/// Room for a number next to its own width: all marks have one, or none has.
const NUMBER_GAP: f64 = 6.0;

/// A contender's values, one for each category.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Option<Spread>>,
}

/// The contents of a chart.
pub(super) struct Chart {
    pub(super) title: String,
    /// The scale, the records and the rounds, in small print.
    pub(super) remark: String,
    pub(super) x: String,
    pub(super) y: String,
    /// Whether values are microseconds, which are written in the unit that suits them.
    pub(super) is_time: bool,
    /// The categories, in groups of those that follow each other.
    pub(super) groups: Vec<Group>,
    pub(super) series: Vec<Series>,
    pub(super) has_lines: bool,
}

/// The marks of a chart's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    Bars,
    /// Bars, on an axis for each category.
    BarsApart,
    Points,
    Lines,
}

/// A category's place, and its axis.
struct Slot {
    left: f64,
    right: f64,
    axis: ValueAxis,
}

impl Slot {
    fn middle(&self) -> f64 {
        f64::midpoint(self.left, self.right)
    }
}

/// The plotting area.
struct Area {
    top: f64,
    slots: Vec<Slot>,
    marks: Marks,
    /// The distance of two series in a category.
    step: f64,
    has_numbers: bool,
}

impl Area {
    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    fn y(&self, category: usize, value: f64) -> f64 {
        self.top + (1.0 - self.slots[category].axis.place(value)) * HEIGHT
    }

    /// Returns the middle of a series' mark in a category.
    fn x(&self, category: usize, series: usize, count: usize) -> f64 {
        let from_middle = series as f64 - (count as f64 - 1.0) / 2.0;
        self.slots[category].middle() + from_middle * self.step
    }
}

impl Chart {
    fn spreads(&self) -> Vec<Spread> {
        self.series.iter().flat_map(|series| series.values.iter().flatten().copied()).collect()
    }

    fn spreads_of(&self, category: usize) -> Vec<Spread> {
        self.series.iter().filter_map(|series| *series.values.get(category)?).collect()
    }

    fn categories(&self) -> usize {
        self.groups.iter().map(|group| group.ticks.len()).sum()
    }

    /// Returns the number of values.
    pub(super) fn count(&self) -> usize {
        self.spreads().len()
    }

    /// Returns the marks that show its values: a line needs two points, and a bar a linear axis.
    pub(super) fn marks(&self) -> Marks {
        if self.has_lines && self.categories() > 1 {
            return Marks::Lines;
        }
        let all_alike = |category| !is_wide(&self.spreads_of(category));
        match is_wide(&self.spreads()) {
            false => Marks::Bars,
            true if (0..self.categories()).all(all_alike) => Marks::BarsApart,
            true => Marks::Points,
        }
    }

    fn text(&self, value: f64) -> String {
        if self.is_time { time_us(value) } else { number(value) }
    }

    fn tick(&self, value: f64) -> String {
        match value {
            0.0 => "0".to_owned(),
            _ if self.is_time => time_us(value),
            _ => round(value),
        }
    }
}

/// Draws the chart as an SVG element without styles.
pub(super) fn picture(chart: &Chart) -> String {
    let mut svg = Svg::new(WIDE);
    let head_end = svg.head(&chart.title, &chart.remark);
    let legend_end = draw_legend(&mut svg, chart, head_end + LINE + 4.0);
    let area = area(chart, legend_end + LINE + 18.0);
    let scale = match area.marks {
        Marks::BarsApart => "; each on a scale of its own",
        _ if area.slots.iter().any(|slot| slot.axis.is_log()) => "; logarithmic",
        _ => "",
    };
    let y = format!("{}{scale}", chart.y);
    svg.text((0.0, legend_end + LINE), Anchor::Start, Face::Small, &y);
    draw_axes(&mut svg, chart, &area);
    match area.marks {
        Marks::Bars | Marks::BarsApart => draw_bars(&mut svg, chart, &area),
        Marks::Points | Marks::Lines => draw_points(&mut svg, chart, &area),
    }
    let end = draw_labels(&mut svg, chart, &area);
    svg.finish(end + 6.0, &chart.title)
}

/// Returns the places of categories.
fn area(chart: &Chart, top: f64) -> Area {
    let marks = chart.marks();
    let common = ValueAxis::over(&chart.spreads(), 5.0);
    let is_apart = marks == Marks::BarsApart;
    let (left, inner) = if is_apart { (0.0, OWN_LEFT) } else { (LEFT, 0.0) };
    let (between, free) = if is_apart { (BETWEEN_APART, FREE_APART) } else { (BETWEEN, FREE) };
    let gaps = chart.groups.len().saturating_sub(1) as f64 * between;
    let wide = (WIDE - left) / (chart.categories().max(1) as f64 + gaps);
    let (mut slots, mut at) = (Vec::new(), left);
    for group in &chart.groups {
        for _ in &group.ticks {
            let own = || ValueAxis::over(&chart.spreads_of(slots.len()), 4.0);
            let axis = if is_apart { own() } else { common };
            slots.push(Slot { left: at + inner, right: at + wide, axis });
            at += wide;
        }
        at += wide * between;
    }
    let room = (wide - inner) * (1.0 - free) / chart.series.len().max(1) as f64;
    let most = if marks == Marks::Lines { POINT_STEP_MAX } else { BAR_MAX };
    let step = room.min(most);
    let widest = chart.spreads().into_iter().map(|s| width(&chart.text(s.median), Face::Small));
    let has_numbers = widest.fold(0.0, f64::max) + NUMBER_GAP <= step;
    Area { top, slots, marks, step, has_numbers }
}

/// Draws the names of series with their colours; returns the height at which they end.
fn draw_legend(svg: &mut Svg, chart: &Chart, top: f64) -> f64 {
    let (mut x, mut y) = (0.0, top);
    for (i, series) in chart.series.iter().enumerate() {
        let room = width(&series.name, Face::Label).min(260.0) + 34.0;
        if x + room > WIDE {
            (x, y) = (0.0, y + LINE + 2.0);
        }
        svg.rect(x, y - 9.0, 10.0, 10.0, &format!("f{i}"));
        svg.label((x + 15.0, y), Anchor::Start, 260.0, &series.name);
        x += room;
    }
    y + 6.0
}

/// Draws the axis of values: one for all, or one for each category.
fn draw_axes(svg: &mut Svg, chart: &Chart, area: &Area) {
    let common = Slot { left: LEFT, right: WIDE, axis: ValueAxis::over(&chart.spreads(), 5.0) };
    let is_apart = area.marks == Marks::BarsApart;
    let axes = if is_apart { area.slots.as_slice() } else { std::slice::from_ref(&common) };
    for slot in axes {
        let y = |value| area.top + (1.0 - slot.axis.place(value)) * HEIGHT;
        for tick in slot.axis.ticks() {
            let class = if tick == 0.0 { "axis" } else { "grid" };
            svg.line((slot.left, y(tick)), (slot.right, y(tick)), class);
            let place = (slot.left - 6.0, y(tick) + 4.0);
            svg.text(place, Anchor::End, Face::Small, &chart.tick(tick));
        }
        if slot.axis.is_log() {
            svg.line((slot.left, area.bottom()), (slot.right, area.bottom()), "axis");
        }
    }
}

/// Draws the names of categories, of their groups, and of the axis; returns the last baseline.
fn draw_labels(svg: &mut Svg, chart: &Chart, area: &Area) -> f64 {
    let (mut slots, mut end) = (area.slots.iter(), area.bottom());
    for group in &chart.groups {
        let members: Vec<&Slot> = slots.by_ref().take(group.ticks.len()).collect();
        for (slot, tick) in members.iter().zip(&group.ticks) {
            let room = slot.right - slot.left - 4.0;
            let mut y = area.bottom();
            for line in lines(tick, Face::Small, room, 2) {
                y += LINE;
                svg.text((slot.middle(), y), Anchor::Middle, Face::Small, &line);
            }
            end = end.max(y);
        }
        let (Some(first), Some(last), false) =
            (members.first(), members.last(), group.name.is_empty())
        else {
            continue;
        };
        let y = area.bottom() + LINE + 6.0;
        svg.line((first.left + 4.0, y), (last.right - 4.0, y), "axis");
        let middle = f64::midpoint(first.left, last.right);
        let names = lines(&group.name, Face::Small, last.right - first.left, 1);
        svg.text((middle, y + LINE - 2.0), Anchor::Middle, Face::Small, &names.concat());
        end = end.max(y + LINE - 2.0);
    }
    if chart.x.is_empty() {
        return end;
    }
    let middle = f64::midpoint(LEFT, WIDE);
    svg.text((middle, end + 1.2 * LINE), Anchor::Middle, Face::Small, &chart.x);
    end + 1.2 * LINE
}

fn draw_whisker(svg: &mut Svg, area: &Area, at: (usize, f64), spread: Spread, class: &str) {
    if spread.max > spread.min {
        let (category, x) = at;
        let ends = [spread.min, spread.max].map(|value| (x, area.y(category, value)));
        svg.line(ends[0], ends[1], class);
    }
}

/// Draws a value's number above its mark, if there is room for all.
fn draw_number(svg: &mut Svg, chart: &Chart, area: &Area, at: (usize, f64), spread: Spread) {
    let text = chart.text(spread.median);
    if area.has_numbers {
        let above = area.y(at.0, spread.max) - if area.marks == Marks::Points { 8.0 } else { 3.0 };
        svg.text((at.1, above), Anchor::Middle, Face::Small, &text);
    }
}

fn draw_bars(svg: &mut Svg, chart: &Chart, area: &Area) {
    for (i, series) in chart.series.iter().enumerate() {
        for (category, spread) in series.values.iter().enumerate() {
            let Some(spread) = spread else { continue };
            let x = area.x(category, i, chart.series.len());
            let y = area.y(category, spread.median);
            let wide = (area.step - 1.0).max(1.0);
            svg.rect(x - wide / 2.0, y, wide, area.bottom() - y, &format!("f{i}"));
            draw_whisker(svg, area, (category, x), *spread, "whisker");
            draw_number(svg, chart, area, (category, x), *spread);
        }
    }
}

/// Draws the points of series, next to each other, so that no whisker hides another; lines join
/// those of a group.
fn draw_points(svg: &mut Svg, chart: &Chart, area: &Area) {
    for (i, series) in chart.series.iter().enumerate() {
        let place = |category: usize, spread: &Spread| {
            (area.x(category, i, chart.series.len()), area.y(category, spread.median))
        };
        let mut values = series.values.iter().enumerate();
        for group in &chart.groups {
            let members = values.by_ref().take(group.ticks.len());
            let told: Vec<(usize, Spread)> =
                members.filter_map(|(n, spread)| Some((n, (*spread)?))).collect();
            if area.marks == Marks::Lines && told.len() > 1 {
                let points: Vec<(f64, f64)> = told.iter().map(|(n, s)| place(*n, s)).collect();
                svg.path(&points, &format!("curve s{i}"));
            }
            for (category, spread) in told {
                let at = place(category, &spread);
                draw_whisker(svg, area, (category, at.0), spread, &format!("whole s{i}"));
                let words = format!("{}: {}", series.name, chart.text(spread.median));
                svg.dot(at, 4.0, &format!("f{i}"), &words);
                if area.marks == Marks::Points {
                    draw_number(svg, chart, area, (category, at.0), spread);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::labels;

    fn chart(has_lines: bool, values: &[&[f64]]) -> Chart {
        let series = |(i, values): (usize, &&[f64])| Series {
            name: format!("s{i}"),
            values: values.iter().map(|v| Spread::of(vec![*v])).collect(),
        };
        let labels: Vec<String> = values[0].iter().map(|v| format!("a{v}")).collect();
        Chart {
            title: "title".to_owned(),
            remark: "remark".to_owned(),
            x: "x".to_owned(),
            y: "y".to_owned(),
            is_time: true,
            groups: labels::of_categories(&labels),
            series: values.iter().enumerate().map(series).collect(),
            has_lines,
        }
    }

    #[test]
    fn the_spread_of_the_values_decides_the_marks() {
        for (has_lines, values, marks, words) in [
            (false, vec![&[1.0, 2.0][..], &[40.0, 50.0]], Marks::Bars, ""),
            (false, vec![&[1.0, 900.0], &[2.0, 1000.0]], Marks::BarsApart, "scale of its own"),
            (false, vec![&[1.0, 900.0], &[900.0, 1.0]], Marks::Points, "logarithmic"),
            (true, vec![&[1.0, 900.0], &[2.0, 1000.0]], Marks::Lines, "logarithmic"),
            (true, vec![&[1.0, 2.0], &[2.0, 3.0]], Marks::Lines, ""),
            // One point is no line.
            (true, vec![&[1.0], &[2.0]], Marks::Bars, ""),
        ] {
            let chart = chart(has_lines, &values);
            assert_eq!(chart.marks(), marks, "{values:?}");
            let svg = picture(&chart);
            assert!(svg.contains(words), "{svg}");
            assert_eq!(svg.matches("curve").count(), if marks == Marks::Lines { 2 } else { 0 });
        }
    }

    #[test]
    fn lines_join_the_members_of_a_group_only() {
        let mut chart = chart(true, &[&[1.0, 2.0, 3.0, 4.0]]);
        let labels = ["a 1", "a 2", "b 1", "b 2"].map(str::to_owned);
        chart.groups = labels::of_categories(&labels);
        assert_eq!(picture(&chart).matches("<polyline").count(), 2);
        chart.groups = labels::of_contenders(&["c=1", "c=2", "d", "e"].map(str::to_owned));
        assert_eq!(picture(&chart).matches("<polyline").count(), 1);
    }
}
