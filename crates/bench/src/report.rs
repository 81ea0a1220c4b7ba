//! Figures of a run, their medians over rounds, and ratios between engines.
//!
//! Owns: JSON lines on stdout, a table on stderr. Never does: measure.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Named figures of one run. Units are in the names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    pub(crate) fn set(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub(crate) fn to_json(&self) -> Value {
        let rounded = |v: f64| json!((v * 1000.0).round() / 1000.0);
        let fields: Map<String, Value> =
            self.0.iter().map(|(name, v)| (name.clone(), rounded(*v))).collect();
        Value::Object(fields)
    }

    /// Reads what [`Figures::to_json`] wrote; `None` if it is something else.
    pub(crate) fn from_json(line: &str) -> Option<Figures> {
        let value: Value = serde_json::from_str(line).ok()?;
        let fields = value.as_object()?.iter();
        let figures = fields.map(|(name, v)| Some((name.clone(), v.as_f64()?)));
        Some(Figures(figures.collect::<Option<_>>()?))
    }
}

/// The middle and the ends of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of no values.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Spread { median, min, max })
    }

    fn to_json(self) -> Value {
        let rounded = |v: f64| (v * 1000.0).round() / 1000.0;
        json!({"median": rounded(self.median), "min": rounded(self.min), "max": rounded(self.max)})
    }
}

/// All runs of one phase: (engine, round) -> figures.
#[derive(Default)]
pub(crate) struct Report {
    runs: Vec<(String, u32, Figures)>,
}

impl Report {
    /// Takes a run in and prints it.
    pub(crate) fn add(&mut self, phase: &str, engine: &str, round: u32, figures: Figures) {
        let line = json!({
            "phase": phase, "engine": engine, "round": round, "figures": figures.to_json(),
        });
        println!("{line}");
        self.runs.push((engine.to_owned(), round, figures));
    }

    fn values(&self, engine: &str, figure: &str) -> Vec<(u32, f64)> {
        let runs = self.runs.iter().filter(|(name, _, _)| name == engine);
        runs.filter_map(|(_, round, f)| Some((*round, *f.0.get(figure)?))).collect()
    }

    /// Prints medians, and the first engine's value over each other's, taken per round.
    pub(crate) fn summarise(&self, phase: &str, engines: &[String]) {
        let mut names: Vec<&String> = self.runs.iter().flat_map(|(_, _, f)| f.0.keys()).collect();
        names.sort();
        names.dedup();
        for figure in names {
            let mut line = Map::new();
            let mut text = format!("{:<30}", format!("{phase}.{figure}"));
            line.insert("summary".to_owned(), json!(phase));
            line.insert("figure".to_owned(), json!(figure));
            for (i, engine) in engines.iter().enumerate() {
                let values = self.values(engine, figure);
                let Some(spread) = Spread::of(values.iter().map(|(_, v)| *v).collect()) else {
                    continue;
                };
                line.insert(engine.clone(), spread.to_json());
                text += &format!(
                    " {engine} {:.2} ({:.2}-{:.2})",
                    spread.median, spread.min, spread.max
                );
                if i == 0 {
                    continue;
                }
                let ratio = self.ratio(&engines[0], engine, figure);
                if let Some(ratio) = ratio {
                    line.insert(format!("{}/{engine}", engines[0]), ratio.to_json());
                    text +=
                        &format!(" ratio {:.2} ({:.2}-{:.2})", ratio.median, ratio.min, ratio.max);
                }
            }
            println!("{}", Value::Object(line));
            eprintln!("{text}");
        }
    }

    /// Spread of `figure` of `a` over that of `b` in the same round.
    fn ratio(&self, a: &str, b: &str, figure: &str) -> Option<Spread> {
        let others = self.values(b, figure);
        let of_round = |(round, value): (u32, f64)| {
            let (_, other) = others.iter().find(|(r, v)| *r == round && *v != 0.0)?;
            Some(value / other)
        };
        Spread::of(self.values(a, figure).into_iter().filter_map(of_round).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_per_round() {
        let mut report = Report::default();
        for (round, a, b) in [(1, 10.0, 5.0), (2, 30.0, 10.0), (3, 20.0, 20.0)] {
            for (engine, value) in [("a", a), ("b", b)] {
                let mut figures = Figures::default();
                figures.set("x", value);
                report.add("p", engine, round, figures);
            }
        }
        let ratio = report.ratio("a", "b", "x");
        assert_eq!(ratio, Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of(vec![4.0, 1.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn figures_round_trip() {
        let mut figures = Figures::default();
        figures.set("x", 1.5);
        assert_eq!(Figures::from_json(&figures.to_json().to_string()), Some(figures));
        assert_eq!(Figures::from_json("progress"), None);
    }
}
