//! The fields that every crate's manifest has alike: minimum Rust version, edition, licence, lints.
//! Published crates need more fields, and licence files. No dependency may need a newer Rust than
//! we promise, and no build but the harness's own may have mutants in it.
//!
//! Owns: the check of the promised version without a second toolchain (clippy's `incompatible_msrv`
//! watches the standard library). Never does: build.

use crate::findings::Findings;
use crate::supply;
use cargo_metadata::semver::{Version, VersionReq};
use cargo_metadata::{DependencyKind, Metadata, Package};
use std::collections::BTreeSet;
use std::path::Path;

/// Fields that a crate takes from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

/// Crates that are published, in the order of their dependencies. All others have
/// `publish.workspace = true`, which is `false`.
const PUBLISHED: &[&str] = &[
    "windrow-base",
    "windrow-env",
    "windrow-skiplist",
    "windrow-format",
    "windrow-plan",
    "windrow-read",
    "windrow-store",
    "windrow-recover",
    "windrow",
    "windrow-lab",
    "windrow-dashboard",
    "windrow-import",
    "windrow-server",
    "windrow-cli",
];

/// Files that the directory of a published crate must have.
const LICENCES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Finds manifests that deviate, and dependencies that need a newer Rust.
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
        findings.extend(judge_publication(package));
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

/// Finds faults that keep a crate from being published, or that let an unpublished one be.
fn judge_publication(package: &Package) -> Vec<String> {
    let place = |name: &str| PUBLISHED.iter().position(|known| *known == name);
    let name = package.name.as_str();
    let Some(own) = place(name) else {
        let is_kept = package.publish.as_ref().is_some_and(Vec::is_empty);
        let what = "is not among those that are published: `publish.workspace = true` is missing";
        return if is_kept { Vec::new() } else { vec![format!("{name}: {what}")] };
    };
    let mut lacks = Vec::new();
    let mut needs = |has: bool, what: &str| {
        if !has {
            lacks.push(format!("{name}: {what}"));
        }
    };
    needs(package.publish.is_none(), "is to be published, and says `publish`");
    needs(package.description.is_some(), "has no `description`");
    needs((1..=5).contains(&package.keywords.len()), "has not one to five `keywords`");
    needs(!package.categories.is_empty(), "has no `categories`");
    let dir = package.manifest_path.with_file_name("");
    let readme = package.readme.as_ref();
    needs(readme.is_some_and(|file| dir.join(file).exists()), "has no `readme` that is there");
    for file in LICENCES {
        needs(dir.join(file).exists(), &format!("has no {file} in its directory"));
    }
    for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
        let has_version = dependency.req != VersionReq::STAR;
        // A dev-dependency without a version is left out of the published manifest.
        if dependency.kind == DependencyKind::Development && !has_version {
            continue;
        }
        let (at, other) = (place(&dependency.name), &dependency.name);
        needs(at.is_some_and(|at| at < own), &format!("{other} is not published before it"));
        needs(has_version, &format!("{other} has no `version`"));
    }
    lacks
}

/// Finds a dependency that would turn the mutants of the engine on, or a feature that does so
/// without being named for them.
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

/// Compares the versions that all packages declare with the lowest that ours promise.
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
                    [lints]\nworkspace = true\n";
        assert!(judge_manifest("a", good).unwrap().is_empty());
        let own = good.replace("edition.workspace = true", "edition = \"2021\"");
        assert_eq!(judge_manifest("a", &own).unwrap().len(), 1);
        let free = good.replace("[lints]\nworkspace = true\n", "");
        assert!(judge_manifest("a", &free).unwrap()[0].contains("[lints]"));
        assert!(judge_manifest("a", "[package").is_err());
    }

    /// Removes the required parts of a published crate, one at a time.
    #[test]
    fn what_a_published_crate_lacks_is_found() {
        let metadata =
            supply::metadata(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        let package = |name: &str| {
            let found = metadata.packages.iter().find(|package| package.name == name);
            found.unwrap().clone()
        };
        type Change = fn(&mut Package);
        let changes: [(Change, &str); 8] = [
            (|p| p.publish = Some(Vec::new()), "says `publish`"),
            (|p| p.description = None, "`description`"),
            (|p| p.keywords.clear(), "`keywords`"),
            (|p| p.categories.clear(), "`categories`"),
            (|p| p.readme = Some("none.md".into()), "`readme`"),
            (|p| p.manifest_path = "/none/Cargo.toml".into(), "LICENSE-MIT"),
            (|p| p.dependencies[0].req = VersionReq::STAR, "`version`"),
            (|p| p.dependencies[0].name = "windrow-cli".to_owned(), "not published before"),
        ];
        for name in PUBLISHED {
            let whole = package(name);
            assert_eq!(judge_publication(&whole), Vec::<String>::new());
            for (change, part) in changes {
                let mut package = whole.clone();
                package
                    .dependencies
                    .retain(|d| d.path.is_some() && d.kind == DependencyKind::Normal);
                let is_of_dependencies = part == "`version`" || part == "not published before";
                if is_of_dependencies && package.dependencies.is_empty() {
                    continue;
                }
                change(&mut package);
                let found = judge_publication(&package).join("; ");
                assert!(found.contains(part), "{name}, {part}: {found}");
            }
        }
        let mut kept = package("windrow-sim");
        assert_eq!(judge_publication(&kept), Vec::<String>::new());
        kept.publish = None;
        assert_eq!(judge_publication(&kept).len(), 1);
    }
}
