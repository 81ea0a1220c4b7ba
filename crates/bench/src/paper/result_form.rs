//! The form in which a paper shows a result: the figure, the categories and the
//! contenders.
//!
//! Owns: that form and its checks. Never does: draw (`report/paper.rs` does).

use crate::workload::Scale;
#[cfg(test)]
use crate::workload::Workload;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A picture or a table of one experiment's results.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultForm {
    /// A figure as bars, a group for each category.
    bars: Option<String>,
    /// A figure as lines over the categories.
    lines: Option<String>,
    /// Latencies of this kind of operation by percentile.
    curves: Option<String>,
    /// Throughput over time.
    #[serde(default)]
    timeline: bool,
    /// Figures as the rows of a table.
    #[serde(default)]
    figures: Vec<String>,
    pub(crate) phases: Vec<String>,
    /// The cases; empty for an experiment that has none.
    #[serde(default)]
    pub(crate) cases: Vec<String>,
    /// Names of the categories; their own names if there are none.
    #[serde(default)]
    labels: Labels,
    /// The contenders that are shown, in this order; all if empty.
    #[serde(default)]
    pub(crate) contenders: Vec<String>,
    /// Whether contenders are on the axis, and each category is a series.
    #[serde(default)]
    pub(crate) by_contender: bool,
    /// The titles of the axes.
    #[serde(default)]
    pub(crate) x: String,
    #[serde(default)]
    pub(crate) y: String,
}

/// Names of categories: at every scale, or for each scale by its name, where they tell sizes that the
/// scale changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Labels {
    Same(Vec<String>),
    ByScale(BTreeMap<String, Vec<String>>),
}

impl Default for Labels {
    fn default() -> Labels {
        Labels::Same(Vec::new())
    }
}

impl Labels {
    fn at(&self, scale: Scale) -> &[String] {
        match self {
            Labels::Same(labels) => labels,
            Labels::ByScale(labels) => labels.get(scale.name()).map_or(&[], Vec::as_slice),
        }
    }
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form<'a> {
    Bars(&'a str),
    Lines(&'a str),
    Curves(&'a str),
    Timeline,
    Table(&'a [String]),
}

/// A case and a phase, with their label on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Category<'a> {
    /// Empty where there are no cases.
    pub(crate) case: &'a str,
    pub(crate) phase: &'a str,
    pub(crate) label: String,
}

impl ResultForm {
    /// Returns its form; a result has exactly one.
    pub(crate) fn form(&self) -> Result<Form<'_>, String> {
        let forms = [
            self.bars.as_deref().map(Form::Bars),
            self.lines.as_deref().map(Form::Lines),
            self.curves.as_deref().map(Form::Curves),
            self.timeline.then_some(Form::Timeline),
            (!self.figures.is_empty()).then_some(Form::Table(&self.figures)),
        ];
        let mut asked = forms.into_iter().flatten();
        match (asked.next(), asked.next()) {
            (Some(form), None) => Ok(form),
            _ => Err("has one of `bars`, `lines`, `curves`, `timeline`, `figures`".to_owned()),
        }
    }

    /// Returns the figures that are shown as numbers.
    pub(crate) fn figures(&self) -> Vec<String> {
        match self.form() {
            Ok(Form::Bars(figure) | Form::Lines(figure)) => vec![figure.to_owned()],
            Ok(Form::Curves(kind)) => {
                ["p50", "p99", "p999"].map(|point| format!("{kind}_us_{point}")).to_vec()
            }
            Ok(Form::Timeline) => vec!["kops_per_s".to_owned()],
            Ok(Form::Table(figures)) => figures.to_vec(),
            Err(_) => Vec::new(),
        }
    }

    /// Returns the categories in the order of the axis: cases, each with all
    /// phases.
    pub(crate) fn categories(&self, scale: Scale) -> Vec<Category<'_>> {
        let labels = self.labels.at(scale);
        let cases: Vec<&str> = match self.cases.is_empty() {
            true => vec![""],
            false => self.cases.iter().map(String::as_str).collect(),
        };
        let mut all = Vec::new();
        for (i, &case) in cases.iter().enumerate() {
            for (j, phase) in self.phases.iter().enumerate() {
                let own = match (cases.len(), self.phases.len()) {
                    (1, _) => phase.clone(),
                    (_, 1) => case.to_owned(),
                    _ => format!("{case}, {phase}"),
                };
                let label = labels.get(i * self.phases.len() + j).cloned().unwrap_or(own);
                all.push(Category { case, phase, label });
            }
        }
        all
    }

    /// Checks that the experiment, one workload for each case, has the cases,
    /// phases and contenders that the form names.
    #[cfg(test)]
    pub(super) fn check(&self, workloads: &[Workload]) -> Result<(), String> {
        self.form()?;
        if self.phases.is_empty() {
            return Err("`phases` names none".to_owned());
        }
        for category in self.categories(Scale::Full) {
            let workload = workloads.iter().find(|workload| workload.case == category.case);
            let workload = workload.ok_or_else(|| format!("no case `{}`", category.case))?;
            if !workload.measured().iter().any(|phase| phase == category.phase) {
                return Err(format!("no phase `{}` in {}", category.phase, workload.name));
            }
            let is_here = |name: &&String| workload.contenders.iter().any(|c| c.name == **name);
            if let Some(name) = self.contenders.iter().find(|name| !is_here(name)) {
                return Err(format!("no contender `{name}` in {}", workload.name));
            }
        }
        let categories = self.categories(Scale::Full).len();
        if let Labels::ByScale(labels) = &self.labels
            && let Some(name) = labels.keys().find(|name| Scale::named(name).is_none())
        {
            return Err(format!("labels for `{name}`, which is no scale"));
        }
        for scale in Scale::ALL {
            let labels = self.labels.at(scale).len();
            if labels != 0 && labels != categories {
                return Err(format!("{labels} labels for {categories} categories"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_tell_the_sizes_of_each_scale() {
        let labels = |form: &str, scale| -> Vec<String> {
            let form = format!("bars = \"levels\"\nphases = [\"a\", \"b\"]\n{form}");
            let form: ResultForm = toml::from_str(&form).unwrap();
            form.categories(scale).into_iter().map(|category| category.label).collect()
        };
        let by_scale = "labels = { reduced = [\"1\", \"2\"], full = [\"8\", \"16\"] }";
        assert_eq!(labels(by_scale, Scale::Reduced), ["1", "2"]);
        assert_eq!(labels(by_scale, Scale::Full), ["8", "16"]);
        assert_eq!(labels(by_scale, Scale::Quick), ["a", "b"]);
        assert_eq!(labels("labels = [\"x\", \"y\"]", Scale::Reduced), ["x", "y"]);
        assert_eq!(labels("x = \"t\"", Scale::Reduced), ["a", "b"]);
    }
}
