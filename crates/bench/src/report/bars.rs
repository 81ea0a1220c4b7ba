//! Bars of medians: blocks of contenders, a column for each measure, each
//! column on a scale of its own from zero.
//!
//! A bar's whisker goes from the worst to the best round, dots are rounds,
//! and the number is next to it.
//!
//! Owns: the layout of bars. Never does: choose measures (`pictures.rs` does).

use super::axis::Linear;
use super::measure::Measure;
use super::number::{self, number};
use super::results::{PhasePlace, Results};
use super::spread::Spread;
use super::svg::{Anchor, Face, LINE, Svg, cut, width};

/// Height of a contender's row, and of its bar in it.
const ROW: f64 = 22.0;
const BAR: f64 = 13.0;

/// Room between columns and between blocks.
const GAP: f64 = 26.0;

/// Widest that names of contenders may get.
const NAMES_MAX: f64 = 170.0;

/// A place and the figures that are shown there.
pub(crate) struct Block<'a> {
    pub(crate) place: PhasePlace<'a>,
    /// The text next to the place's name.
    pub(crate) remark: String,
    /// The measures by slot; `None` where this place has no value for a figure
    /// that others have.
    pub(crate) columns: Vec<Option<Measure>>,
}

/// The position of a column.
#[derive(Clone, Copy)]
struct Column {
    x: f64,
    y: f64,
    width: f64,
    rows: usize,
}

/// Draws blocks, `across` of them in a row.
pub(crate) fn picture(
    run: &Results,
    title: &str,
    blocks: &[Block<'_>],
    wide: f64,
    across: usize,
) -> String {
    let mut svg = Svg::new(wide);
    let in_line = across.min(blocks.len()).max(1);
    let block_width = (wide - GAP * (in_line as f64 - 1.0)) / in_line as f64;
    let remark = "bar: median, whisker: worst to best round, dots: rounds";
    let mut top = svg.head(title, remark) + LINE;
    for line in blocks.chunks(in_line) {
        let mut bottom = top;
        for (i, block) in line.iter().enumerate() {
            let x = i as f64 * (block_width + GAP);
            bottom = bottom.max(draw_block(&mut svg, run, block, (x, top), block_width));
        }
        top = bottom + GAP;
    }
    svg.finish(top - GAP + 4.0, title)
}

/// Draws a block; returns the height at which it ends.
fn draw_block(svg: &mut Svg, run: &Results, block: &Block<'_>, at: (f64, f64), wide: f64) -> f64 {
    let (left, mut y) = at;
    let title = cut(block.place.phase, Face::Title, wide);
    svg.text((left, y + LINE), Anchor::Start, Face::Title, &title);
    let after = left + width(&title, Face::Title) + 10.0;
    let remark = cut(&block.remark, Face::Small, left + wide - after);
    svg.text((after, y + LINE), Anchor::Start, Face::Small, &remark);
    y += 1.5 * LINE;
    let shown: Vec<usize> = (0..run.contenders.len())
        .filter(|&i| !run.lines(block.place, &run.contenders[i].name).is_empty())
        .collect();
    let name_width = |&i: &usize| width(&run.contenders[i].name, Face::Label);
    let names = shown.iter().map(name_width).fold(0.0, f64::max).min(NAMES_MAX) + 8.0;
    let count = block.columns.len() as f64;
    let column_width = (wide - names - GAP * (count - 1.0)) / count;
    let bars_top = y + 2.0 * LINE + 6.0;
    for (n, &i) in shown.iter().enumerate() {
        let baseline = bars_top + n as f64 * ROW + ROW / 2.0 + 4.0;
        let name = &run.contenders[i].name;
        svg.label((left + names - 8.0, baseline), Anchor::End, names - 8.0, name);
    }
    for (n, measure) in block.columns.iter().enumerate() {
        let Some(measure) = measure else { continue };
        let x = left + names + n as f64 * (column_width + GAP);
        let column = Column { x, y, width: column_width, rows: shown.len() };
        let values: Vec<(usize, Vec<(u32, f64)>)> = shown
            .iter()
            .map(|&i| (i, measure.values(run, block.place, &run.contenders[i].name)))
            .collect();
        draw_column(svg, measure, &values, column);
    }
    bars_top + shown.len() as f64 * ROW + 1.5 * LINE
}

fn draw_column(svg: &mut Svg, measure: &Measure, values: &[(usize, Vec<(u32, f64)>)], at: Column) {
    let heading = cut(&measure.heading(), Face::Label, at.width);
    svg.text((at.x, at.y + LINE), Anchor::Start, Face::Label, &heading);
    svg.text((at.x, at.y + 2.0 * LINE - 1.0), Anchor::Start, Face::Small, measure.direction());
    let spreads: Vec<Option<Spread>> =
        values.iter().map(|(_, v)| Spread::of(v.iter().map(|(_, v)| *v).collect())).collect();
    let texts = words(&spreads, at.width);
    let room = texts.iter().map(|text| width(text, Face::Label)).fold(0.0, f64::max) + 10.0;
    let bar_width = (at.width - room).max(30.0);
    let max = spreads.iter().flatten().map(|s| s.max).fold(0.0, f64::max);
    let axis = Linear::to(max, (bar_width / 55.0).clamp(1.0, 6.0));
    let top = at.y + 2.0 * LINE + 6.0;
    let bottom = top + at.rows as f64 * ROW;
    draw_axis(svg, axis, (at.x, top, bottom), bar_width);
    for (n, ((contender, rounds), spread)) in values.iter().zip(&spreads).enumerate() {
        let middle = top + n as f64 * ROW + ROW / 2.0;
        let x = |value: f64| at.x + axis.place(value) * bar_width;
        let Some(spread) = spread else {
            svg.text((at.x + 6.0, middle + 4.0), Anchor::Start, Face::Small, "not told");
            continue;
        };
        let length = x(spread.median) - at.x;
        svg.rect(at.x, middle - BAR / 2.0, length, BAR, &format!("f{contender}"));
        if rounds.len() > 1 {
            svg.line((x(spread.min), middle), (x(spread.max), middle), "whisker");
            for (round, value) in rounds {
                let words = format!("round {round}: {} {}", number(*value), measure.unit);
                svg.dot((x(*value), middle), 2.0, "round", &words);
            }
        }
        svg.text((x(spread.max) + 6.0, middle + 4.0), Anchor::Start, Face::Label, &texts[n]);
    }
}

/// Returns the texts at the bars: with the range where at least half of the
/// width is left for the bars.
fn words(spreads: &[Option<Spread>], wide: f64) -> Vec<String> {
    let all = |of: &dyn Fn(Spread) -> String| -> Vec<String> {
        spreads.iter().map(|s| s.map_or_else(String::new, of)).collect()
    };
    let long = all(&number::spread);
    if long.iter().all(|text| width(text, Face::Label) < wide * 0.5) {
        return long;
    }
    all(&|s| number(s.median))
}

fn draw_axis(svg: &mut Svg, axis: Linear, (x, top, bottom): (f64, f64, f64), wide: f64) {
    let ticks = axis.ticks();
    let text_of = |tick: f64| if tick == 0.0 { "0".to_owned() } else { number::round(tick) };
    let widest = ticks.iter().map(|t| width(&text_of(*t), Face::Small)).fold(0.0, f64::max);
    // All ticks have a label, or only the ends where labels would touch.
    let is_tight = wide / (ticks.len() as f64 - 1.0) < widest + 8.0;
    for (i, &tick) in ticks.iter().enumerate() {
        let at = x + axis.place(tick) * wide;
        svg.line((at, top), (at, bottom), if i == 0 { "axis" } else { "grid" });
        if !is_tight || i == 0 || i + 1 == ticks.len() {
            svg.text((at, bottom + LINE - 2.0), Anchor::Middle, Face::Small, &text_of(tick));
        }
    }
}
