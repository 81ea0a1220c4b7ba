//! The ratios to each rival: one row for each chief measure, a dot for the
//! median of rounds and a whisker for their range.
//!
//! Owns: the picture that a reader sees first. Never does: count a ratio that
//! rounds leave open as won.

use super::axis::Log;
use super::compare::{self, ComparedRow, Ratio};
use super::number::{round, times_spread};
use super::results::Results;
use super::svg::{Anchor, Face, LINE, Svg, cut, width};

/// The height of a rival's place in a row, and the least height of a row.
const STEP: f64 = 8.0;
const ROW_MIN: f64 = 22.0;

/// Room for the names of rows at the left and verdicts at the right.
const LEFT: f64 = 310.0;
const RIGHT: f64 = 190.0;

/// The frame and its scale.
struct Frame {
    axis: Log,
    wide: f64,
}

impl Frame {
    fn x(&self, ratio: f64) -> f64 {
        LEFT + self.axis.place(ratio) * (self.wide - LEFT - RIGHT)
    }
}

/// Draws the picture; `None` where there is nothing to compare.
pub(crate) fn picture(run: &Results, wide: f64) -> Option<String> {
    let rivals = compare::rivals(run);
    let all = compare::rows(run);
    let rows: Vec<&ComparedRow<'_>> = all.iter().filter(|row| row.ratio().is_some()).collect();
    if rows.is_empty() {
        return None;
    }
    let subject = &run.contenders[compare::subject(run)].name;
    let title = format!("{subject} to its peers");
    let ratios = rows.iter().flat_map(|row| rivals.iter().filter_map(|&i| row.ratios[i]));
    let ends = ratios.flat_map(|ratio| [ratio.spread.min, ratio.spread.max]);
    // The axis goes equally far to both sides: a distance then means the same
    // on either.
    let furthest = ends.map(|r| r.ln().abs()).fold(2f64.ln(), f64::max).exp() * 1.05;
    let frame = Frame { axis: Log::over([1.0 / furthest, furthest]), wide };
    let row_height = ROW_MIN.max(rivals.len() as f64 * STEP + 6.0);
    let mut svg = Svg::new(wide);
    let top = draw_head(&mut svg, run, &title, &frame, &rivals);
    let bottom = top + rows.len() as f64 * row_height;
    draw_frame(&mut svg, subject, &frame, (top, bottom));
    for (n, row) in rows.iter().enumerate() {
        draw_row(&mut svg, run, row, &rivals, &frame, (top + n as f64 * row_height, row_height));
    }
    Some(svg.finish(bottom + 2.5 * LINE, &title))
}

/// Draws the title and the names of rivals; returns the height at which rows
/// begin.
fn draw_head(svg: &mut Svg, run: &Results, title: &str, frame: &Frame, rivals: &[usize]) -> f64 {
    svg.text((0.0, LINE), Anchor::Start, Face::Title, title);
    let remark = "dot: median ratio of rounds, line: their range";
    svg.text((frame.wide, LINE), Anchor::End, Face::Small, remark);
    let (mut x, mut y) = (0.0, 2.0 * LINE + 6.0);
    for &i in rivals {
        let name = cut(&run.contenders[i].name, Face::Label, 200.0);
        let room = width(&name, Face::Label) + 34.0;
        if x + room > frame.wide {
            (x, y) = (0.0, y + LINE + 2.0);
        }
        svg.dot((x + 5.0, y - 4.0), 5.0, &format!("f{i}"), &name);
        svg.text((x + 14.0, y), Anchor::Start, Face::Label, &name);
        x += room;
    }
    y + 2.0 * LINE + 6.0
}

fn draw_frame(svg: &mut Svg, subject: &str, frame: &Frame, (top, bottom): (f64, f64)) {
    let (left, even, right) = (LEFT, frame.x(1.0), frame.wide - RIGHT);
    svg.rect(left, top, even - left, bottom - top, "bad");
    svg.rect(even, top, right - even, bottom - top, "good");
    let subject = cut(subject, Face::Small, right - even - 60.0);
    svg.text((even - 8.0, top - 8.0), Anchor::End, Face::Small, "◂ a peer is better");
    svg.text(
        (even + 8.0, top - 8.0),
        Anchor::Start,
        Face::Small,
        &format!("{subject} is better ▸"),
    );
    svg.text((right + 12.0, top - 8.0), Anchor::Start, Face::Small, "to the best peer");
    for tick in frame.axis.ticks(11) {
        let x = frame.x(tick);
        svg.line((x, top), (x, bottom), "grid");
        svg.text(
            (x, bottom + LINE - 2.0),
            Anchor::Middle,
            Face::Small,
            &format!("{}×", round(tick)),
        );
    }
    svg.line((even, top - 4.0), (even, bottom + 3.0), "even");
    let words = format!("{subject} is so many times as good (logarithmic)");
    let middle = f64::midpoint(left, right);
    svg.text((middle, bottom + 2.0 * LINE), Anchor::Middle, Face::Small, &words);
}

fn draw_row(
    svg: &mut Svg,
    run: &Results,
    row: &ComparedRow<'_>,
    rivals: &[usize],
    frame: &Frame,
    (top, height): (f64, f64),
) {
    let middle = top + height / 2.0;
    svg.line((0.0, top), (frame.wide, top), "grid");
    let measure = cut(&row.measure.title, Face::Small, 100.0);
    let room = LEFT - 12.0 - width(&measure, Face::Small) - 8.0;
    svg.label((0.0, middle + 4.0), Anchor::Start, room, &row.place.words());
    svg.text((LEFT - 12.0, middle + 4.0), Anchor::End, Face::Small, &measure);
    let measured: Vec<(usize, Ratio)> =
        rivals.iter().filter_map(|&i| Some((i, row.ratios[i]?))).collect();
    let first = middle - (measured.len() as f64 - 1.0) * STEP / 2.0;
    for (n, (i, ratio)) in measured.iter().enumerate() {
        let y = first + n as f64 * STEP;
        let spread = ratio.spread;
        svg.line((frame.x(spread.min), y), (frame.x(spread.max), y), &format!("whole s{i}"));
        let name = &run.contenders[*i].name;
        let words = format!("to {name}: {} {}", times_spread(spread), ratio.sign());
        svg.dot((frame.x(spread.median), y), 4.0, &format!("f{i}"), &words);
    }
    if let Some(ratio) = row.ratio() {
        let right = frame.wide - RIGHT;
        svg.text((right + 12.0, middle + 4.0), Anchor::Start, Face::Label, ratio.sign());
        let words = cut(&times_spread(ratio.spread), Face::Label, RIGHT - 42.0);
        svg.text((right + 42.0, middle + 4.0), Anchor::Start, Face::Label, &words);
    }
}
