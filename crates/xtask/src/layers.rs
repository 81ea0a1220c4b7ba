//! The dependencies that each crate may have: arrows only point down.
//!
//! Owns: the table of allowed arrows (drawn in ARCHITECTURE.md), and of the crates from outside
//! that the core may use. Never does: look at dev-dependencies; tests may reach anywhere.

use crate::findings::Findings;
use cargo_metadata::{Dependency, DependencyKind, MetadataCommand, Package};
use std::path::Path;

/// The dependencies that one crate may have, for building and running.
struct Layer {
    package: &'static str,
    windrow: &'static [&'static str],
    /// Crates from outside; `None` leaves them to reviewers.
    outside: Option<&'static [&'static str]>,
}

/// The crates below the engine.
const BELOW_ENGINE: &[&str] =
    &["windrow-base", "windrow-env", "windrow-format", "windrow-plan", "windrow-skiplist"];

/// Lowest first. A new arrow is a decision about the architecture: it belongs
/// in ARCHITECTURE.md too.
const LAYERS: &[Layer] = &[
    Layer { package: "windrow-base", windrow: &[], outside: Some(&[]) },
    Layer {
        package: "windrow-env",
        windrow: &["windrow-base"],
        outside: Some(&["arc-swap", "crc32c", "io-uring", "libc", "rustix"]),
    },
    Layer {
        package: "windrow-format",
        windrow: &["windrow-base", "windrow-env"],
        outside: Some(&["lz4_flex", "xxhash-rust", "zstd"]),
    },
    Layer { package: "windrow-skiplist", windrow: &["windrow-env"], outside: Some(&[]) },
    // No I/O below a decision: `libm` is all that `no_std` arithmetic lacks.
    Layer { package: "windrow-plan", windrow: &["windrow-base"], outside: Some(&["libm"]) },
    Layer {
        package: "windrow-lab",
        windrow: &["windrow-base", "windrow-plan"],
        outside: Some(&[]),
    },
    // The engine: each of the four may depend on all that is below it, but only reads use a cache
    // from outside.
    Layer { package: "windrow-read", windrow: BELOW_ENGINE, outside: Some(&["quick_cache"]) },
    Layer {
        package: "windrow-store",
        windrow: &[
            "windrow-base",
            "windrow-env",
            "windrow-format",
            "windrow-plan",
            "windrow-skiplist",
            "windrow-read",
        ],
        outside: Some(&[]),
    },
    Layer {
        package: "windrow-recover",
        windrow: &[
            "windrow-base",
            "windrow-env",
            "windrow-format",
            "windrow-plan",
            "windrow-skiplist",
            "windrow-read",
            "windrow-store",
        ],
        outside: Some(&[]),
    },
    Layer {
        package: "windrow",
        windrow: &[
            "windrow-base",
            "windrow-env",
            "windrow-format",
            "windrow-plan",
            "windrow-skiplist",
            "windrow-read",
            "windrow-store",
            "windrow-recover",
        ],
        outside: Some(&[]),
    },
    Layer { package: "windrow-bench", windrow: &["windrow"], outside: None },
    Layer { package: "windrow-bench-peers", windrow: &["windrow", "windrow-bench"], outside: None },
    Layer { package: "windrow-dashboard", windrow: &["windrow"], outside: None },
    Layer { package: "windrow-server", windrow: &["windrow"], outside: None },
    Layer { package: "windrow-import", windrow: &["windrow"], outside: Some(&["libloading"]) },
    Layer {
        package: "windrow-capi",
        windrow: &["windrow"],
        outside: Some(&["libc", "serde_json"]),
    },
    Layer {
        package: "windrow-cli",
        windrow: &[
            "windrow",
            "windrow-dashboard",
            "windrow-import",
            "windrow-lab",
            "windrow-server",
        ],
        outside: None,
    },
    Layer {
        package: "windrow-testkit",
        windrow: &["windrow", "windrow-base", "windrow-env", "windrow-format", "windrow-plan"],
        outside: None,
    },
    Layer {
        package: "windrow-sim",
        windrow: &[
            "windrow",
            "windrow-base",
            "windrow-env",
            "windrow-format",
            "windrow-plan",
            "windrow-testkit",
        ],
        outside: None,
    },
    Layer { package: "windrow-xtask", windrow: &["windrow", "windrow-lab"], outside: None },
];

/// Finds dependencies that no arrow allows. Reads manifests only: no network.
///
/// # Errors
/// If `cargo metadata` fails.
pub fn check(root: &Path) -> Findings {
    let metadata =
        MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
    Ok(metadata.packages.iter().flat_map(judge).collect())
}

fn judge(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let dependencies: Vec<&str> = package
        .dependencies
        .iter()
        .filter(|d| d.kind != DependencyKind::Development && !is_for_model_checking(d))
        .map(|d| d.name.as_str())
        .collect();
    let Some(layer) = LAYERS.iter().find(|layer| layer.package == name) else {
        return vec![format!("{name}: has no place in the table of layers (xtask/src/layers.rs)")];
    };
    dependencies
        .into_iter()
        .filter(|dependency| !layer.allows(dependency))
        .map(|dependency| format!("{name}: may not depend on {dependency}"))
        .collect()
}

/// Whether only a model checker builds it: such a build is a test.
fn is_for_model_checking(dependency: &Dependency) -> bool {
    dependency
        .target
        .as_ref()
        .is_some_and(|target| matches!(target.to_string().as_str(), "cfg(loom)" | "cfg(shuttle)"))
}

impl Layer {
    fn allows(&self, dependency: &str) -> bool {
        if dependency == "windrow" || dependency.starts_with("windrow-") {
            return self.windrow.contains(&dependency);
        }
        self.outside.is_none_or(|outside| outside.contains(&dependency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(package: &str) -> &'static Layer {
        LAYERS.iter().find(|layer| layer.package == package).unwrap()
    }

    /// The table itself points down: each crate is below those that use it.
    #[test]
    fn the_table_has_no_cycle() {
        for (place, layer) in LAYERS.iter().enumerate() {
            for below in layer.windrow {
                let below_place = LAYERS.iter().position(|l| l.package == *below).unwrap();
                assert!(below_place < place, "{} -> {below}", layer.package);
            }
        }
    }

    #[test]
    fn wrong_arrows_are_refused() {
        assert!(layer("windrow-env").allows("windrow-base"));
        assert!(!layer("windrow-plan").allows("windrow-env"));
        assert!(!layer("windrow-base").allows("serde"));
        assert!(!layer("windrow-bench").allows("windrow-format"));
        assert!(layer("windrow-cli").allows("clap"));
    }
}
