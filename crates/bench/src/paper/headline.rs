//! The headlines of a paper: the few figures by which its design is judged.
//!
//! Owns: where such a figure is found, and its check. Never does: draw (`report/headlines.rs` does).

#[cfg(test)]
use crate::workload::Workload;
use serde::Deserialize;

/// A figure of one of a paper's experiments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headline {
    /// Its name for readers.
    pub(crate) says: String,
    pub(crate) run: String,
    /// Empty for an experiment without cases.
    #[serde(default)]
    pub(crate) case: String,
    pub(crate) phase: String,
    pub(crate) figure: String,
    /// The contender that is the paper's design.
    pub(crate) theirs: String,
    /// The contender that is the paper's baseline, in our engine.
    pub(crate) baseline: String,
}

impl Headline {
    /// Checks that the experiment, one workload for each case, has what it names.
    #[cfg(test)]
    pub(super) fn check(&self, workloads: &[Workload]) -> Result<(), String> {
        let workload = workloads.iter().find(|workload| workload.case == self.case);
        let workload = workload.ok_or_else(|| format!("no case `{}`", self.case))?;
        if !workload.measured().contains(&self.phase) {
            return Err(format!("no phase `{}` in {}", self.phase, workload.name));
        }
        for name in [&self.theirs, &self.baseline] {
            if !workload.contenders.iter().any(|contender| contender.name == *name) {
                return Err(format!("no contender `{name}` in {}", workload.name));
            }
        }
        Ok(())
    }
}
