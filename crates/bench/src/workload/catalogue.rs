//! The workload files that come with the program.
//!
//! Owns: the list of the files. Never does: parse one.

/// The name and text of each, in the order in which they run.
const FILES: &[(&str, &str)] = &[
    ("fill", include_str!("../../workloads/fill.toml")),
    ("fill4", include_str!("../../workloads/fill4.toml")),
    ("fillseq", include_str!("../../workloads/fillseq.toml")),
    ("fillsync", include_str!("../../workloads/fillsync.toml")),
    ("synced", include_str!("../../workloads/synced.toml")),
    ("cached", include_str!("../../workloads/cached.toml")),
    ("disk", include_str!("../../workloads/disk.toml")),
    ("readwhilewriting", include_str!("../../workloads/readwhilewriting.toml")),
    ("mixgraph", include_str!("../../workloads/mixgraph.toml")),
    ("ycsb", include_str!("../../workloads/ycsb.toml")),
    ("skewed_latest", include_str!("../../workloads/skewed_latest.toml")),
    ("clustered", include_str!("../../workloads/clustered.toml")),
    ("timeseries", include_str!("../../workloads/timeseries.toml")),
    ("queue", include_str!("../../workloads/queue.toml")),
    ("reopen", include_str!("../../workloads/reopen.toml")),
    ("large", include_str!("../../workloads/large.toml")),
    ("transactions", include_str!("../../workloads/transactions.toml")),
    ("keyspaces", include_str!("../../workloads/keyspaces.toml")),
    ("openloop", include_str!("../../workloads/openloop.toml")),
    ("steady", include_str!("../../workloads/steady.toml")),
];

/// Files that need tens of gigabytes, or have contenders of their own, and run by their names only.
const BY_NAME: &[(&str, &str)] = &[
    ("growth", include_str!("../../workloads/growth.toml")),
    ("instance", include_str!("../../workloads/instance.toml")),
    ("backups", include_str!("../../workloads/backups.toml")),
    ("changes", include_str!("../../workloads/changes.toml")),
    ("ablation", include_str!("../../workloads/ablation.toml")),
    ("goals", include_str!("../../workloads/goals.toml")),
    ("matrix", include_str!("../../workloads/matrix.toml")),
];

/// Returns the text of a built-in workload.
pub(crate) fn builtin(name: &str) -> Option<&'static str> {
    FILES.iter().chain(BY_NAME).find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// Returns the names of the workloads that `quick` and `full` run.
pub(crate) fn names() -> Vec<String> {
    FILES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Returns the names of the workloads that run by name only.
pub(crate) fn by_name() -> Vec<String> {
    BY_NAME.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Scale, parse};

    #[test]
    fn all_files_are_workloads() {
        for (name, text) in FILES.iter().chain(BY_NAME) {
            for scale in Scale::ALL {
                for workload in parse(name, text, scale).unwrap() {
                    assert!(!workload.measured().is_empty(), "{name}");
                }
            }
        }
    }
}
