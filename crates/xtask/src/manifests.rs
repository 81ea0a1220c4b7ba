//! What every crate's manifest says alike: minimum Rust version, edition,
//! licence, lints; that no dependency needs a newer Rust than we promise; and
//! that no build has mutants in it but the harness's own.
//!
//! Owns: the check of the promised version without a second toolchain (clippy's
//! `incompatible_msrv` watches the standard library). Never does: build.

use crate::findings::Findings;
use crate::supply;
use cargo_metadata::semver::Version;
use cargo_metadata::{Metadata, Package};
use std::collections::BTreeSet;
use std::path::Path;

/// Fields that a crate takes from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository"];

/// Finds manifests that go their own way, and dependencies that need a newer Rust.
///
/// # Errors
/// If `cargo metadata` fails or a manifest is not TOML.
pub fn check(root: &Path) -> Findings {
    let metadata = supply::metadata(root)?;
    let mut findings = Vec::new();
    for package in metadata.workspace_packages() {
        let text = std::fs::read_to_string(&package.manifest_path)?;
        findings.extend(judge_manifest(&package.name, &text)?);
        findings.extend(judge_mutants(package));
    }
    findings.extend(judge_versions(&metadata));
    Ok(findings)
}

fn judge_manifest(name: &str, text: &str) -> Findings {
    let manifest: toml::Table = text.parse()?;
    let is_inherited = |section: &str, field: Option<&str>| {
        let table = manifest.get(section)?;
        field.map_or(Some(table), |field| table.get(field))?.get("workspace")?.as_bool()
    };
    let mut findings = Vec::new();
    for field in INHERITED {
        if is_inherited("package", Some(field)) != Some(true) {
            findings.push(format!("{name}: `{field}.workspace = true` is missing in [package]"));
        }
    }
    if is_inherited("lints", None) != Some(true) {
        findings.push(format!("{name}: `workspace = true` is missing in [lints]"));
    }
    Ok(findings)
}

/// Finds what would turn the mutants of the engine on: a dependency, or a
/// feature that is not named for them.
fn judge_mutants(package: &Package) -> Vec<String> {
    let is_theirs = |name: &String| name.ends_with("mutants");
    let asking = package.dependencies.iter().filter(|d| d.features.iter().any(is_theirs));
    let asking = asking.map(|dependency| format!("the dependency on {}", dependency.name));
    let other = package
        .features
        .iter()
        .filter(|(name, turns_on)| !is_theirs(name) && turns_on.iter().any(is_theirs));
    let other = other.map(|(name, _)| format!("feature `{name}`"));
    asking.chain(other).map(|what| format!("{}: {what} turns mutants on", package.name)).collect()
}

/// Compares what all packages declare with the lowest that ours promise.
fn judge_versions(metadata: &Metadata) -> Vec<String> {
    let ours: BTreeSet<&Version> =
        metadata.workspace_packages().iter().filter_map(|p| p.rust_version.as_ref()).collect();
    let Some(promised) = ours.first() else {
        return vec!["Cargo.toml: no crate declares a rust-version".to_owned()];
    };
    supply::reachable(metadata)
        .iter()
        .filter_map(|package| judge_version(package, promised))
        .collect()
}

fn judge_version(package: &Package, promised: &Version) -> Option<String> {
    let needs = package.rust_version.as_ref().filter(|needs| needs > &promised)?;
    Some(format!("{} {}: needs Rust {needs}, we promise {promised}", package.name, package.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_goes_its_own_way_is_found() {
        let good = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
                    rust-version.workspace = true\nlicense.workspace = true\n\
                    repository.workspace = true\n[lints]\nworkspace = true\n";
        assert!(judge_manifest("a", good).unwrap().is_empty());
        let own = good.replace("edition.workspace = true", "edition = \"2021\"");
        assert_eq!(judge_manifest("a", &own).unwrap().len(), 1);
        let free = good.replace("[lints]\nworkspace = true\n", "");
        assert!(judge_manifest("a", &free).unwrap()[0].contains("[lints]"));
        assert!(judge_manifest("a", "[package").is_err());
    }
}
