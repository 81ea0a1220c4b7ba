//! The measures: titles, units, and the better direction of each.
//!
//! Owns: the words for every figure of `record.rs`, and which of them is the
//! chief one of a phase. Never does: hold a value.

use super::results::{PhasePlace, Results};
use super::spread::Spread;
use crate::record::{Latency, PhaseLine, WorkloadLine};
use std::collections::BTreeMap;

/// The direction in which a value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// A point of a distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Mean,
    P50,
    P90,
    P95,
    P99,
    P999,
    Max,
}

impl Point {
    /// The points that a distribution's tables show.
    pub(crate) const ALL: [Point; 5] =
        [Point::P50, Point::P90, Point::P99, Point::P999, Point::Max];

    fn name(self) -> &'static str {
        match self {
            Point::Mean => "mean",
            Point::P50 => "p50",
            Point::P90 => "p90",
            Point::P95 => "p95",
            Point::P99 => "p99",
            Point::P999 => "p99.9",
            Point::Max => "max",
        }
    }

    fn of(self, latency: &Latency) -> f64 {
        match self {
            Point::Mean => latency.mean,
            Point::P50 => latency.p50,
            Point::P90 => latency.p90,
            Point::P95 => latency.at(95.0),
            Point::P99 => latency.p99,
            Point::P999 => latency.p999,
            Point::Max => latency.max,
        }
    }
}

/// The place of a measure's value in a line.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Figure(String),
    Latency(String, Point),
}

/// A measured quantity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measure {
    /// Its name for readers: `write amplification`, `get p99`.
    pub(crate) title: String,
    /// Unit; `×` for amplifications; empty for counts.
    pub(crate) unit: String,
    pub(crate) better: Better,
    source: Source,
}

/// (name in the lines, title, unit, which way is better)
const KNOWN: [(&str, &str, &str, Better); 50] = [
    ("kops_per_s", "throughput", "kops/s", Better::More),
    ("undrained_kops_per_s", "before it drained", "kops/s", Better::More),
    ("sustainable_per_s", "sustainable rate", "ops/s", Better::More),
    ("saturated_per_s", "back to back", "ops/s", Better::More),
    ("served_share", "served of what was due", "", Better::More),
    ("seconds", "time", "s", Better::Less),
    ("drain_s", "time to drain", "s", Better::Less),
    ("cpu_us_per_op", "CPU per op", "µs", Better::Less),
    ("cpu_s", "CPU", "s", Better::Less),
    ("peak_rss_mib", "peak memory", "MiB", Better::Less),
    ("peak_anonymous_mib", "peak memory without mapped files", "MiB", Better::Less),
    ("open_files", "open files", "", Better::Less),
    ("open_tables_mib", "memory of open tables", "MiB", Better::Less),
    ("disk_mib", "size on disk", "MiB", Better::Less),
    ("disk_peak_mib", "most on disk", "MiB", Better::Less),
    ("open_ms", "time to open", "ms", Better::Less),
    ("io_amplification", "I/O amplification", "×", Better::Less),
    ("write_amplification", "write amplification", "×", Better::Less),
    ("read_amplification", "read amplification", "×", Better::Less),
    ("space_amplification", "space amplification", "×", Better::Less),
    ("space_while_writing", "space while writing", "×", Better::Less),
    ("space_while_writing_max", "most space while writing", "×", Better::Less),
    ("tables_write_amplification", "tables' write amplification", "×", Better::Less),
    ("user_written_mib", "written by the user", "MiB", Better::More),
    ("device_written_mib", "written to device", "MiB", Better::Less),
    ("device_mib", "read and written", "MiB", Better::Less),
    ("involved_files", "tables that merges read", "", Better::Less),
    ("read_us_mean", "a read", "µs", Better::Less),
    ("device_read_mib", "read from device", "MiB", Better::Less),
    ("device_read_kib_per_op", "read from device per op", "KiB", Better::Less),
    ("device_written_kib_per_op", "written to device per op", "KiB", Better::Less),
    ("blocks_per_get", "blocks per get", "", Better::Less),
    ("blocks_read_per_get", "blocks read per get", "", Better::Less),
    ("false_positives_per_get", "false positives per get", "", Better::Less),
    ("level1_hits_per_get", "gets answered by level 1", "", Better::More),
    ("pauses", "times writers were held up", "", Better::Less),
    ("paused_s", "writers held up", "s", Better::Less),
    ("stalled_s", "nothing done for", "s", Better::Less),
    ("longest_gap_ms", "longest time without an answer", "ms", Better::Less),
    ("late_s", "queue left at the end", "s", Better::Less),
    ("backups", "backups", "", Better::More),
    ("backup_meanwhile_mib", "copied meanwhile", "MiB", Better::More),
    ("backup_s", "a backup takes", "s", Better::Less),
    ("backup_mib", "a backup is of", "MiB", Better::Less),
    ("backup_tables", "tables of a backup", "", Better::Less),
    ("backup_copied_mib", "a backup copies", "MiB", Better::Less),
    ("backup_copied_tables", "tables that a backup copies", "", Better::Less),
    ("backup_copied_share", "copied of a backup", "", Better::Less),
    ("backup_copied_per_changed", "copied by changed bytes", "×", Better::Less),
    ("backup_mib_per_s", "copied", "MiB/s", Better::More),
];

impl Measure {
    /// Returns a figure of `record::PhaseLine`. An unknown one has its own name for
    /// a title, and less is taken to be better.
    pub(crate) fn figure(name: &str) -> Measure {
        let source = Source::Figure(name.to_owned());
        match KNOWN.iter().find(|known| known.0 == name) {
            Some(&(_, title, unit, better)) => {
                Measure { title: title.to_owned(), unit: unit.to_owned(), better, source }
            }
            None => Measure {
                title: name.replace('_', " "),
                unit: String::new(),
                better: if name.ends_with("per_s") { Better::More } else { Better::Less },
                source,
            },
        }
    }

    /// Returns a latency of a kind of operation.
    pub(crate) fn latency(kind: &str, point: Point) -> Measure {
        Measure {
            title: format!("{} {}", kind.replace('_', " "), point.name()),
            unit: "µs".to_owned(),
            better: Better::Less,
            source: Source::Latency(kind.to_owned(), point),
        }
    }

    /// Returns a figure, or a latency as `put_us_p99`. A known figure may look like one.
    pub(crate) fn named(name: &str) -> Measure {
        if KNOWN.iter().any(|known| known.0 == name) {
            return Measure::figure(name);
        }
        let points = || Point::ALL.into_iter().chain([Point::Mean, Point::P95]);
        let point = |name: &str| points().find(|p| p.name().replace('.', "") == name);
        match name.split_once("_us_").and_then(|(kind, last)| Some((kind, point(last)?))) {
            Some((kind, point)) => Measure::latency(kind, point),
            None => Measure::figure(name),
        }
    }

    /// Returns the heading: `write amplification, ×`.
    pub(crate) fn heading(&self) -> String {
        if self.unit.is_empty() {
            self.title.clone()
        } else {
            format!("{}, {}", self.title, self.unit)
        }
    }

    /// Returns the direction: `less is better`.
    pub(crate) fn direction(&self) -> &'static str {
        match self.better {
            Better::More => "more is better",
            Better::Less => "less is better",
        }
    }

    /// Returns its value in one line.
    pub(crate) fn value(&self, phase: &PhaseLine) -> Option<f64> {
        let value = match &self.source {
            Source::Figure(name) => *phase.figures.get(name)?,
            Source::Latency(kind, point) => {
                let latency = phase.latencies.get(kind)?;
                (latency.count > 0).then(|| point.of(latency))?
            }
        };
        value.is_finite().then_some(value)
    }

    /// Returns its values over rounds: (round, value).
    pub(crate) fn values(
        &self,
        run: &Results,
        place: PhasePlace<'_>,
        contender: &str,
    ) -> Vec<(u32, f64)> {
        let of_round = |phase: &PhaseLine| Some((phase.round, self.value(phase)?));
        run.lines(place, contender).into_iter().filter_map(of_round).collect()
    }

    /// Returns the spread of its values; `None` if it was not measured.
    pub(crate) fn spread(
        &self,
        run: &Results,
        place: PhasePlace<'_>,
        contender: &str,
    ) -> Option<Spread> {
        Spread::of(self.values(run, place, contender).into_iter().map(|(_, v)| v).collect())
    }

    /// Returns whether any contender has a value that is not zero.
    pub(crate) fn is_told(&self, run: &Results, place: PhasePlace<'_>) -> bool {
        run.at(place).into_iter().any(|phase| self.value(phase).is_some_and(|v| v != 0.0))
    }
}

/// Returns the rates at which operations were sent in the open loop, each once;
/// empty in a closed loop.
pub(crate) fn rates(run: &Results, place: PhasePlace<'_>) -> Vec<f64> {
    let mut rates: Vec<f64> = run.at(place).iter().filter_map(|p| p.rate_per_s).collect();
    rates.sort_by(f64::total_cmp);
    // Rates of one search differ in their last digits.
    rates.dedup_by(|a, b| (*a / *b - 1.0).abs() < 0.01);
    rates
}

/// Returns how a phase was driven, for headings; empty for a closed loop, which
/// is the usual case.
pub(crate) fn drive(run: &Results, place: PhasePlace<'_>) -> String {
    match rates(run, place).as_slice() {
        [] => String::new(),
        [rate] => format!("open loop at {}/s", super::number::number(*rate)),
        _ => "open loop, each at a rate of its own".to_owned(),
    }
}

/// Returns the kinds of operation that make up a hundredth of a phase and more,
/// the most frequent first.
pub(crate) fn kinds(run: &Results, place: PhasePlace<'_>) -> Vec<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, latency) in run.at(place).into_iter().flat_map(|p| &p.latencies) {
        *counts.entry(kind).or_default() += latency.count;
    }
    let all: u64 = counts.values().sum();
    let mut kinds: Vec<(&str, u64)> =
        counts.into_iter().filter(|(_, n)| *n > 0 && n * 100 >= all).collect();
    kinds.sort_by_key(|(kind, n)| (std::cmp::Reverse(*n), *kind));
    kinds.into_iter().map(|(kind, _)| kind.to_owned()).collect()
}

/// Returns the measures that a phase is judged by: throughput where clients
/// wait for the store, the tail of latencies where operations come at a given
/// rate, that rate where it was searched for.
pub(crate) fn chiefs(run: &Results, place: PhasePlace<'_>) -> Vec<Measure> {
    let sustainable = Measure::figure("sustainable_per_s");
    let mut chiefs = if sustainable.is_told(run, place) {
        vec![sustainable]
    } else if rates(run, place).is_empty() {
        vec![Measure::figure("kops_per_s")]
    } else {
        kinds(run, place).iter().map(|kind| Measure::latency(kind, Point::P99)).collect()
    };
    chiefs.retain(|measure| measure.is_told(run, place));
    chiefs
}

/// Returns the costs among the measures, for the second table.
pub(crate) fn costs(run: &Results, place: PhasePlace<'_>) -> Vec<Measure> {
    let chiefs = chiefs(run, place);
    let WorkloadLine { shown, shown_in, .. } = place.workload;
    let shown = shown_in.get(place.phase).unwrap_or(shown);
    if !shown.is_empty() {
        let shown = shown.iter().map(|name| Measure::named(name));
        return shown.filter(|m| m.is_told(run, place) && !chiefs.contains(m)).collect();
    }
    let tail =
        kinds(run, place).into_iter().take(1).map(|kind| Measure::latency(&kind, Point::P99));
    let figures = [
        "write_amplification",
        "space_amplification",
        "space_while_writing",
        "cpu_us_per_op",
        "peak_rss_mib",
        "stalled_s",
    ];
    let costs = tail.chain(figures.into_iter().map(Measure::figure));
    costs.filter(|m| m.is_told(run, place) && !chiefs.contains(m)).collect()
}

/// Returns everything that was measured at a place: figures, the known ones
/// first, then latencies by kind.
pub(crate) fn all(run: &Results, place: PhasePlace<'_>) -> Vec<Measure> {
    let lines = run.at(place);
    let mut names: Vec<&String> = lines.iter().flat_map(|p| p.figures.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let rank = |name: &str| KNOWN.iter().position(|known| known.0 == name).unwrap_or(KNOWN.len());
    names.sort_by_key(|name| rank(name));
    let figures = names.into_iter().map(|name| Measure::figure(name));
    let mut kinds: Vec<&String> = lines.iter().flat_map(|p| p.latencies.keys()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let points = |kind: &String| Point::ALL.map(|point| Measure::latency(kind, point));
    let latencies = kinds.into_iter().flat_map(points);
    let told = |m: &Measure| lines.iter().any(|phase| m.value(phase).is_some());
    figures.chain(latencies).filter(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_latencies_go_by_name() {
        let latency = |count, mean| Latency {
            count,
            mean,
            p99: 9.0,
            curve: vec![(90.0, 2.0), (99.0, 9.0)],
            ..Default::default()
        };
        let mut phase = PhaseLine::default();
        phase.figures.insert("levels".to_owned(), 4.0);
        phase.figures.insert("read_us_mean".to_owned(), 7.0);
        phase.latencies.insert("get".to_owned(), latency(3, 10.0));
        phase.latencies.insert("absent".to_owned(), latency(1, 2.0));
        for (figure, expected) in [
            ("levels", Some(4.0)),
            ("read_us_mean", Some(7.0)),
            ("absent_us_mean", Some(2.0)),
            ("get_us_p99", Some(9.0)),
            ("get_us_p90", Some(0.0)),
            ("get_us_p95", Some(9.0)),
            ("put_us_p99", None),
            ("get_us_p1", None),
            ("runs", None),
        ] {
            assert_eq!(Measure::named(figure).value(&phase), expected, "{figure}");
        }
    }
}
