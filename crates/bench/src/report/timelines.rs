//! Throughput over time: a strip for each contender, one under the other, on
//! one scale, with a mark at every step in which nothing was done.
//!
//! Rejected: lines in one frame. The throughput of a store that merges jumps,
//! and four such lines over each other hide the differences.
//!
//! Owns: the strips of a workload. Never does: smooth.

use super::axis::Linear;
use super::measure::{self, Measure};
use super::number::{number, round, time_us};
use super::results::{PhasePlace, Results};
use super::spread::Spread;
use super::svg::{Anchor, Face, LINE, Svg, width};
use crate::record::{PhaseLine, Timeline};

/// Height of a strip, and of the line of words above it.
const STRIP: f64 = 52.0;
const ABOVE: f64 = 18.0;

/// Runs with fewer steps than this say nothing over time.
const STEPS_MIN: usize = 4;

/// Room for ticks at the left.
const LEFT: f64 = 62.0;

/// The rounds of one contender.
struct Strip<'a> {
    contender: usize,
    rounds: Vec<(&'a PhaseLine, &'a Timeline)>,
    /// The round whose throughput is the median: it is drawn full.
    middle: usize,
}

/// Draws the picture of a workload; `None` if no phase has a timeline. `ran` is added to its remark.
pub(crate) fn picture(
    run: &Results,
    places: &[PhasePlace<'_>],
    title: &str,
    ran: &str,
    wide: f64,
) -> Option<String> {
    let mut svg = Svg::new(wide);
    let semicolon = if ran.is_empty() { "" } else { "; " };
    let remark = "filled: the median round, thin lines: other rounds; red: nothing was done";
    let top = svg.head(title, &format!("{ran}{semicolon}{remark}")) + LINE;
    let mut y = top;
    for &place in places {
        let strips = strips(run, place);
        if !strips.is_empty() {
            y = draw_place(&mut svg, run, place, &strips, (y, wide)) + LINE;
        }
    }
    (y > top).then(|| svg.finish(y, title))
}

fn strips<'a>(run: &'a Results, place: PhasePlace<'a>) -> Vec<Strip<'a>> {
    let mut strips = Vec::new();
    for (contender, known) in run.contenders.iter().enumerate() {
        let timed = |phase: &'a PhaseLine| {
            let timeline = phase.timeline.as_ref()?;
            (timeline.ops.len() >= STEPS_MIN && timeline.step_s > 0.0).then_some((phase, timeline))
        };
        let rounds: Vec<(&PhaseLine, &Timeline)> =
            run.lines(place, &known.name).into_iter().filter_map(timed).collect();
        let throughput = Measure::figure("kops_per_s");
        let mut order: Vec<usize> = (0..rounds.len()).collect();
        let speed = |&i: &usize| throughput.value(rounds[i].0).unwrap_or(0.0);
        order.sort_by(|a, b| speed(a).total_cmp(&speed(b)));
        if let Some(&middle) = order.get(order.len() / 2) {
            strips.push(Strip { contender, rounds, middle });
        }
    }
    strips
}

/// Returns thousands of operations per second in each whole step. The last step
/// may have been cut short and would look like a stall.
fn rates(timeline: &Timeline) -> Vec<f64> {
    let whole = &timeline.ops[..timeline.ops.len() - 1];
    whole.iter().map(|&ops| ops as f64 / timeline.step_s / 1000.0).collect()
}

fn draw_place(
    svg: &mut Svg,
    run: &Results,
    place: PhasePlace<'_>,
    strips: &[Strip<'_>],
    (top, wide): (f64, f64),
) -> f64 {
    let phase = place.phase;
    svg.text((0.0, top + LINE), Anchor::Start, Face::Title, phase);
    let step = strips[0].rounds[strips[0].middle].1.step_s;
    let drive = measure::drive(run, place);
    let comma = if drive.is_empty() { "" } else { "; " };
    let remark = format!(
        "thousand operations per second, in steps of {}{comma}{drive}",
        time_us(step * 1e6)
    );
    svg.text((width(phase, Face::Title) + 10.0, top + LINE), Anchor::Start, Face::Small, &remark);
    let all = || strips.iter().flat_map(|s| s.rounds.iter().map(|(_, timeline)| *timeline));
    let max = all().flat_map(rates).fold(0.0, f64::max);
    let seconds = all().map(|t| (t.ops.len() - 1) as f64 * t.step_s).fold(0.0, f64::max);
    let scale = Linear::to(max, 6.0);
    let time = Linear::to(seconds, 10.0);
    let plot = wide - LEFT - 10.0;
    let mut y = top + 1.5 * LINE;
    for strip in strips {
        draw_words(svg, run, strip, y, wide);
        y += ABOVE;
        for tick in [0.0, scale.end()] {
            let at = y + (1.0 - scale.place(tick)) * STRIP;
            svg.line((LEFT, at), (LEFT + plot, at), if tick == 0.0 { "axis" } else { "grid" });
            svg.text((LEFT - 6.0, at + 4.0), Anchor::End, Face::Small, &round(tick));
        }
        let x = |s: f64| LEFT + s / time.end() * plot;
        draw_rounds(svg, strip, &x, &|rate| y + (1.0 - scale.place(rate)) * STRIP);
        y += STRIP + 6.0;
    }
    for tick in time.ticks() {
        let x = LEFT + time.place(tick) * plot;
        svg.line((x, y - 6.0), (x, y - 1.0), "axis");
        svg.text((x, y + LINE - 5.0), Anchor::Middle, Face::Small, &round(tick));
    }
    let middle = LEFT + plot / 2.0;
    let words = "seconds since the phase began";
    svg.text((middle, y + 2.0 * LINE - 6.0), Anchor::Middle, Face::Small, words);
    y + 2.0 * LINE
}

/// Draws the contender's name, its throughput, and its longest pause of all
/// rounds.
fn draw_words(svg: &mut Svg, run: &Results, strip: &Strip<'_>, y: f64, wide: f64) {
    let name = &run.contenders[strip.contender].name;
    let baseline = y + ABOVE - 5.0;
    svg.rect(LEFT, baseline - 9.0, 10.0, 10.0, &format!("f{}", strip.contender));
    svg.label((LEFT + 16.0, baseline), Anchor::Start, 400.0, name);
    let gap_ms = strip.rounds.iter().map(|(_, t)| t.longest_gap_ms).fold(0.0, f64::max);
    let median = |name: &str| {
        let measure = Measure::figure(name);
        let values = strip.rounds.iter().filter_map(|(phase, _)| measure.value(phase));
        Spread::of(values.collect()).map(|spread| number(spread.median))
    };
    // Strips end with the last operation. The throughput of a load counts until
    // no merge is due, and would not be that of the strip.
    let speed = match (median("undrained_kops_per_s"), median("kops_per_s")) {
        (Some(sent), Some(all)) => format!("median {sent} kops/s ({all} with merges after), "),
        (_, Some(all)) => format!("median {all} kops/s, "),
        _ => String::new(),
    };
    let words = format!("{speed}longest pause {}", time_us(gap_ms * 1000.0));
    svg.text((wide - 10.0, baseline), Anchor::End, Face::Small, &words);
}

fn draw_rounds(svg: &mut Svg, strip: &Strip<'_>, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
    let i = strip.contender;
    for (n, (_, timeline)) in strip.rounds.iter().enumerate() {
        let rates = rates(timeline);
        let step = timeline.step_s;
        // The curve has steps, not slopes: the course within a step is unknown.
        let points: Vec<(f64, f64)> = rates
            .iter()
            .enumerate()
            .flat_map(|(at, &rate)| {
                let from = at as f64 * step;
                [(x(from), y(rate)), (x(from + step), y(rate))]
            })
            .collect();
        if n != strip.middle {
            svg.path(&points, &format!("thin s{i}"));
            continue;
        }
        let end = x(rates.len() as f64 * step);
        let mut area = points.clone();
        area.extend([(end, y(0.0)), (x(0.0), y(0.0))]);
        svg.area(&area, &format!("soft f{i}"));
        svg.path(&points, &format!("edge s{i}"));
        for (at, _) in rates.iter().enumerate().filter(|(_, rate)| **rate == 0.0) {
            let from = x(at as f64 * step);
            let length = (x((at + 1) as f64 * step) - from).max(1.0);
            svg.rect(from, y(0.0) - 5.0, length, 5.0, "stall");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_no_stall() {
        let timeline = Timeline { step_s: 0.5, ops: vec![1000, 0, 500, 3], longest_gap_ms: 500.0 };
        assert_eq!(rates(&timeline), [2.0, 0.0, 1.0]);
    }
}
