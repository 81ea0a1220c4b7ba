//! The pictures of a run.
//!
//! Owns: the choice of pictures, their names and their order. Never does: draw,
//! or choose a figure that no contender has.

use super::bars::{self, Block};
use super::measure::{self, Measure};
use super::results::{PhasePlace, Results};
use super::{curves, palette, ratios, svg, timelines};
use crate::record::WorkloadLine;

/// Width of every picture.
pub(super) const WIDE: f64 = 960.0;

/// The styles of all pictures, without colours.
pub(super) const STYLES: &str = include_str!("svg.css");

/// A picture.
pub(crate) struct Picture {
    /// Its file's name, without `.svg`.
    pub(crate) name: String,
    /// An SVG element without styles, for a page that has them.
    pub(crate) svg: String,
}

/// Returns the styles that pictures of a run need around them.
pub(crate) fn styles(run: &Results) -> String {
    format!("{STYLES}{}", palette::styles(&run.contenders))
}

/// Returns a picture as a file of its own.
pub(crate) fn file(run: &Results, picture: &Picture) -> String {
    svg::file(&picture.svg, &styles(run))
}

/// Draws the subject's ratios to its rivals.
pub(crate) fn overview(run: &Results) -> Option<Picture> {
    let svg = ratios::picture(run, WIDE)?;
    Some(Picture { name: "ratios".to_owned(), svg })
}

/// Returns the pictures of one workload.
pub(crate) fn of(run: &Results, workload: &WorkloadLine) -> Vec<Picture> {
    let places = run.places_of(workload);
    let title = |what: &str| format!("{}: {what}", workload.name);
    let bars = |what: &str, figures: &[&str], across: usize| {
        let blocks = blocks(run, &places, figures);
        (!blocks.is_empty()).then(|| bars::picture(run, &title(what), &blocks, WIDE, across))
    };
    let throughput = ["kops_per_s", "sustainable_per_s"];
    let amplification = ["write_amplification", "read_amplification", "space_amplification"];
    let resources = ["cpu_us_per_op", "peak_rss_mib", "disk_mib", "open_ms"];
    let all = [
        ("throughput", bars("throughput", &throughput, 2)),
        ("latency", curves::picture(run, &places, &title("latency"), "", WIDE)),
        ("timeline", timelines::picture(run, &places, &title("throughput over time"), "", WIDE)),
        ("amplification", bars("amplification", &amplification, 1)),
        ("resources", bars("processor, memory, disk", &resources, 1)),
    ];
    let named = |(what, svg): (&str, Option<String>)| {
        let name = format!("{}-{what}", file_name(&workload.name));
        svg.map(|svg| Picture { name, svg })
    };
    all.into_iter().filter_map(named).collect()
}

/// Returns a block for each place that has any of the figures; a figure that no
/// place has gets no column.
fn blocks<'a>(run: &Results, places: &[PhasePlace<'a>], figures: &[&str]) -> Vec<Block<'a>> {
    let told = |measure: &Measure| places.iter().any(|&place| measure.is_told(run, place));
    let measures: Vec<Measure> =
        figures.iter().map(|name| Measure::figure(name)).filter(told).collect();
    let block = |&place: &PhasePlace<'a>| {
        let column = |m: &Measure| m.is_told(run, place).then(|| m.clone());
        let columns: Vec<Option<Measure>> = measures.iter().map(column).collect();
        let remark = measure::drive(run, place);
        columns.iter().any(Option::is_some).then_some(Block { place, remark, columns })
    };
    places.iter().filter_map(block).collect()
}

/// Returns a name that every file system takes.
pub(crate) fn file_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    name.chars().map(kept).collect::<String>().trim_start_matches('.').to_owned()
}
