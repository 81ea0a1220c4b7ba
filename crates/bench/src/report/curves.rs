//! Curves of latency by percentile: the median of rounds at each percentile,
//! both axes logarithmic, so that tails have room.
//!
//! Owns: the panels of a workload, one for each phase and kind of operation.
//! Never does: interpolate a percentile that was not measured.

use super::axis::{Log, nines};
use super::measure;
use super::number::time_us;
use super::results::{PhasePlace, Results};
use super::spread::Spread;
use super::svg::{Anchor, Face, LINE, Svg, cut, width};
use std::collections::BTreeMap;

/// The number of panels in a row, and the room between them.
const ACROSS: usize = 2;
const GAP: f64 = 30.0;

/// The height of the plotting area; more where many names are next to it.
const HEIGHT: f64 = 190.0;

/// Room for the ticks of the latency axis.
const TICKS: f64 = 52.0;

/// Least distance of two names.
const NAME_STEP: f64 = 14.0;

/// The distance of the maximum from the last percentile, in nines.
const MAX_AFTER: f64 = 0.5;

/// A contender's curve: (nines, microseconds), then the maximum.
struct Curve {
    contender: usize,
    points: Vec<(f64, f64)>,
    max: f64,
}

/// The plotting area of a panel and its scales.
struct CurveArea {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    latency: Log,
    /// The nines at the right end, where maxima are drawn.
    end: f64,
}

impl CurveArea {
    fn at(&self, nines: f64, us: f64) -> (f64, f64) {
        let x = self.x + nines / self.end * self.width;
        (x, self.y + (1.0 - self.latency.place(us)) * self.height)
    }
}

/// Draws the picture of a workload; `None` if no latencies were taken. `ran` is added to its remark.
pub(crate) fn picture(
    run: &Results,
    places: &[PhasePlace<'_>],
    title: &str,
    ran: &str,
    wide: f64,
) -> Option<String> {
    let panels: Vec<(PhasePlace<'_>, String)> = places
        .iter()
        .flat_map(|&place| measure::kinds(run, place).into_iter().map(move |kind| (place, kind)))
        .filter(|(place, kind)| !curves(run, *place, kind).is_empty())
        .collect();
    if panels.is_empty() {
        return None;
    }
    let across = ACROSS.min(panels.len());
    let panel_width = (wide - GAP * (across as f64 - 1.0)) / across as f64;
    let mut svg = Svg::new(wide);
    let semicolon = if ran.is_empty() { "" } else { "; " };
    let remark = "less is better; medians over rounds; logarithmic axes";
    let top = svg.head(title, &format!("{ran}{semicolon}{remark}")) + LINE;
    let height = HEIGHT.max(run.contenders.len() as f64 * NAME_STEP);
    let panel_height = height + 4.5 * LINE;
    for (i, (place, kind)) in panels.iter().enumerate() {
        let x = (i % across) as f64 * (panel_width + GAP);
        let y = top + (i / across) as f64 * (panel_height + 14.0);
        draw_panel(&mut svg, run, *place, kind, [x, y, panel_width, height]);
    }
    let rows = panels.len().div_ceil(across) as f64;
    Some(svg.finish(top + rows * (panel_height + 14.0), title))
}

/// Returns the curves of a kind of operation: medians over rounds of the
/// percentiles that every round has.
fn curves(run: &Results, place: PhasePlace<'_>, kind: &str) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (contender, known) in run.contenders.iter().enumerate() {
        let rounds: Vec<_> = run
            .lines(place, &known.name)
            .into_iter()
            .filter_map(|phase| phase.latencies.get(kind).filter(|l| l.count > 0))
            .collect();
        // Percentiles as thousandths of a percent: whole numbers compare.
        let mut by_percentile: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (percentile, us) in rounds.iter().flat_map(|latency| &latency.curve) {
            by_percentile.entry((percentile * 1e6).round() as u64).or_default().push(*us);
        }
        by_percentile.retain(|_, values| values.len() >= rounds.len());
        let point = |(percentile, values): (u64, Vec<f64>)| {
            Some((nines(percentile as f64 / 1e6)?, Spread::of(values)?.median))
        };
        let points: Vec<(f64, f64)> = by_percentile.into_iter().filter_map(point).collect();
        let max = Spread::of(rounds.iter().map(|latency| latency.max).collect());
        if let (Some(max), false) = (max, points.is_empty()) {
            curves.push(Curve { contender, points, max: max.median });
        }
    }
    curves
}

fn draw_panel(svg: &mut Svg, run: &Results, place: PhasePlace<'_>, kind: &str, at: [f64; 4]) {
    let [left, top, wide, height] = at;
    let curves = curves(run, place, kind);
    let drive = measure::drive(run, place);
    let from = if drive.is_empty() { "" } else { ", from its intended start" };
    let title = format!("{}: {}", place.phase, kind.replace('_', " "));
    let title = cut(&title, Face::Title, wide);
    svg.text((left, top + LINE), Anchor::Start, Face::Title, &title);
    let after = width(&title, Face::Title) + 10.0;
    svg.text(
        (left + after, top + LINE),
        Anchor::Start,
        Face::Small,
        &cut(&drive, Face::Small, wide - after),
    );
    let remark = format!("latency of one operation{from}");
    svg.text((left, top + 2.0 * LINE - 1.0), Anchor::Start, Face::Small, &remark);
    let name_width = |c: &Curve| width(&run.contenders[c.contender].name, Face::Label);
    let names = curves.iter().map(name_width).fold(0.0, f64::max).min(150.0) + 18.0;
    let values = curves.iter().flat_map(|c| c.points.iter().map(|p| p.1).chain([c.max]));
    let last = curves.iter().filter_map(|c| c.points.last()).map(|p| p.0).fold(0.0, f64::max);
    let area = CurveArea {
        x: left + TICKS,
        y: top + 2.0 * LINE + 8.0,
        width: wide - TICKS - names,
        height,
        latency: Log::over(values),
        end: last + MAX_AFTER,
    };
    draw_axes(svg, &area, last);
    for curve in &curves {
        draw_curve(svg, run, curve, &area);
    }
    draw_names(svg, run, &curves, &area, names - 18.0);
}

fn draw_axes(svg: &mut Svg, area: &CurveArea, last: f64) {
    let (left, right) = (area.x, area.x + area.width);
    for tick in area.latency.ticks(8) {
        let (_, y) = area.at(0.0, tick);
        svg.line((left, y), (right, y), "grid");
        svg.text((left - 6.0, y + 4.0), Anchor::End, Face::Small, &time_us(tick));
    }
    let bottom = area.y + area.height;
    let mut taken = f64::NEG_INFINITY;
    let percentiles = [
        (0.0, "0"),
        (50.0, "50"),
        (90.0, "90"),
        (99.0, "99"),
        (99.9, "99.9"),
        (99.99, "99.99"),
        (99.999, "99.999"),
        (99.9999, "99.9999"),
    ];
    let ticks = percentiles.iter().filter_map(|(p, text)| Some((nines(*p)?, *text)));
    let ticks: Vec<(f64, &str)> =
        ticks.filter(|(at, _)| *at <= last + 1e-9).chain([(area.end, "max")]).collect();
    for (i, (nines, text)) in ticks.iter().enumerate() {
        let x = left + nines / area.end * area.width;
        svg.line((x, area.y), (x, bottom), if i == 0 { "axis" } else { "grid" });
        let half = width(text, Face::Small) / 2.0;
        let ends_before_max =
            i + 1 == ticks.len() || x + half + 4.0 < right - width("max", Face::Small) / 2.0;
        if x - half > taken && ends_before_max {
            svg.text((x, bottom + LINE - 2.0), Anchor::Middle, Face::Small, text);
            taken = x + half + 4.0;
        }
    }
    svg.line((left, bottom), (right, bottom), "axis");
    let middle = f64::midpoint(left, right);
    svg.text(
        (middle, bottom + 2.0 * LINE - 4.0),
        Anchor::Middle,
        Face::Small,
        "percentile of operations, %",
    );
}

fn draw_curve(svg: &mut Svg, run: &Results, curve: &Curve, area: &CurveArea) {
    let i = curve.contender;
    let points: Vec<(f64, f64)> =
        curve.points.iter().map(|&(nines, us)| area.at(nines, us)).collect();
    svg.path(&points, &format!("curve s{i}"));
    // Nothing was measured between the last percentile and the maximum.
    let end = area.at(area.end, curve.max);
    if let Some(last) = points.last() {
        svg.line(*last, end, &format!("leader s{i}"));
    }
    let name = &run.contenders[i].name;
    for (p, label) in [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")] {
        let Some(at) = nines(p) else { continue };
        let point = curve.points.iter().find(|(n, _)| (n - at).abs() < 1e-6);
        if let Some(&(nines, us)) = point {
            let words = format!("{name}: {label} {}", time_us(us));
            svg.dot(area.at(nines, us), 2.2, &format!("f{i}"), &words);
        }
    }
    svg.dot(end, 2.6, &format!("f{i}"), &format!("{name}: max {}", time_us(curve.max)));
}

/// Draws the names right of the ends of their curves, moved apart where they
/// would overlap, each with a line to its own end.
fn draw_names(svg: &mut Svg, run: &Results, curves: &[Curve], area: &CurveArea, room: f64) {
    let mut ends: Vec<(f64, usize)> =
        curves.iter().map(|c| (area.at(area.end, c.max).1, c.contender)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = ends.iter().map(|end| end.0).collect();
    let places = apart(&wanted, area.y + 4.0, area.y + area.height);
    let right = area.x + area.width;
    for ((from, contender), y) in ends.iter().zip(places) {
        svg.line((right + 3.0, *from), (right + 14.0, y), &format!("leader s{contender}"));
        let name = &run.contenders[*contender].name;
        svg.label((right + 17.0, y + 4.0), Anchor::Start, room, name);
    }
}

/// Returns rising places moved apart by [`NAME_STEP`], within `from..=to` as
/// far as they have room there.
fn apart(wanted: &[f64], from: f64, to: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for &y in wanted {
        let least = places.last().map_or(from, |last| last + NAME_STEP);
        places.push(y.max(least));
    }
    let mut most = to;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - NAME_STEP;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_inside() {
        let places = apart(&[10.0, 10.0, 11.0, 99.0, 100.0], 0.0, 100.0);
        assert_eq!(places, [10.0, 24.0, 38.0, 86.0, 100.0]);
        let crowded = apart(&[100.0; 4], 0.0, 100.0);
        assert_eq!(crowded, [58.0, 72.0, 86.0, 100.0]);
    }
}
