//! The workload files that come with the program.

/// Name and text of each, in the order in which they are run.
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
    ("large", include_str!("../../workloads/large.toml")),
    ("keyspaces", include_str!("../../workloads/keyspaces.toml")),
    ("openloop", include_str!("../../workloads/openloop.toml")),
];

/// The text of a built-in workload.
pub(crate) fn builtin(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// All their names.
pub(crate) fn names() -> Vec<String> {
    FILES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn all_files_are_workloads() {
        for (name, text) in FILES {
            let workload = Workload::parse(name, text).unwrap();
            assert!(!workload.measured().is_empty(), "{name}");
        }
    }
}
