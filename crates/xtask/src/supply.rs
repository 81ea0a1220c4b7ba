//! The dependency graph: its licences, banned crates, and sources.
//!
//! Owns: the enforcement of `deny.toml` with nothing but cargo (cargo-deny reads the same file,
//! where it is installed, and also checks advisories). Never does: look at crates that only the
//! peers' benchmark builds.

use crate::findings::Findings;
use cargo_metadata::{Metadata, MetadataCommand, Package, PackageId};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Finds packages under a licence that `deny.toml` does not allow, packages that it bans, and
/// packages from elsewhere than crates.io.
///
/// # Errors
/// If `cargo metadata` fails or `deny.toml` is malformed.
pub fn check(root: &Path) -> Findings {
    let rules = Rules::parse(&std::fs::read_to_string(root.join("deny.toml"))?)?;
    let metadata = metadata(root)?;
    let packages = reachable(&metadata);
    Ok(packages.iter().flat_map(|package| rules.judge(package)).collect())
}

/// Returns the resolved graph. Asks cargo offline first: after a build all packages are local,
/// except perhaps those of the peers' benchmark.
///
/// # Errors
/// If cargo fails both without and with the network.
pub fn metadata(root: &Path) -> Result<Metadata, Box<dyn Error>> {
    let run = |options: &[&str]| {
        let options = options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>();
        MetadataCommand::new().manifest_path(root.join("Cargo.toml")).other_options(options).exec()
    };
    Ok(run(&["--locked", "--offline"]).or_else(|_| run(&["--locked"]))?)
}

/// Returns the default members and all their dependencies, of every kind.
pub fn reachable(metadata: &Metadata) -> Vec<&Package> {
    let nodes: BTreeMap<&PackageId, _> =
        metadata.resolve.iter().flat_map(|r| &r.nodes).map(|node| (&node.id, node)).collect();
    let mut seen: BTreeSet<&PackageId> = BTreeSet::new();
    let mut open: Vec<&PackageId> =
        metadata.workspace_default_packages().iter().map(|package| &package.id).collect();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| &node.dependencies));
        }
    }
    metadata.packages.iter().filter(|package| seen.contains(&package.id)).collect()
}

/// The part of `deny.toml` that is enforced here.
struct Rules {
    allowed: Vec<String>,
    banned: Vec<(String, String)>,
}

impl Rules {
    fn parse(text: &str) -> Result<Rules, Box<dyn Error>> {
        let file: toml::Table = text.parse()?;
        let list = |section: &str, field: &str| {
            let list = file.get(section).and_then(|s| s.get(field)).and_then(|l| l.as_array());
            list.ok_or_else(|| format!("deny.toml: [{section}] has no list `{field}`"))
        };
        let text = |value: &toml::Value| {
            value
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| format!("deny.toml: {value:?} is no text"))
        };
        let allowed = list("licenses", "allow")?.iter().map(text).collect::<Result<_, _>>()?;
        let mut banned = Vec::new();
        for ban in list("bans", "deny")? {
            let field = |name: &str| {
                text(ban.get(name).ok_or_else(|| format!("deny.toml: {ban:?} has no `{name}`"))?)
            };
            banned.push((field("crate")?, field("reason")?));
        }
        Ok(Rules { allowed, banned })
    }

    fn judge(&self, package: &Package) -> Vec<String> {
        let source = package.source.as_ref().map(|source| source.repr.as_str());
        self.judge_fields(&package.name, package.license.as_deref(), source)
            .into_iter()
            .map(|what| format!("{} {}: {what}", package.name, package.version))
            .collect()
    }

    /// Judges one package. `source` is `None` for packages of this workspace (and path dependencies
    /// within it).
    fn judge_fields(&self, name: &str, license: Option<&str>, source: Option<&str>) -> Vec<String> {
        let mut findings = Vec::new();
        if source.is_some_and(|source| source != CRATES_IO) {
            findings.push(format!("comes from {}, not from crates.io", source.unwrap_or_default()));
        }
        if let Some((_, reason)) = self.banned.iter().find(|(banned, _)| banned == name) {
            findings.push(format!("is banned: {reason}"));
        }
        match license.map(|l| spdx::Expression::parse_mode(l, spdx::ParseMode::LAX)) {
            Some(Ok(expression)) if expression.evaluate(|r| self.allows(r)) => {}
            Some(Ok(_)) => findings
                .push(format!("its licence is not allowed: {}", license.unwrap_or_default())),
            Some(Err(error)) => findings.push(format!("its licence cannot be read: {error}")),
            None => findings.push("declares no licence".to_owned()),
        }
        findings
    }

    fn allows(&self, requirement: &spdx::LicenseReq) -> bool {
        let wanted = requirement.to_string();
        self.allowed.contains(&wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]\n\
                         [bans]\ndeny = [{ crate = \"openssl-sys\", reason = \"C\" }]\n";

    fn judged(name: &str, license: Option<&str>, source: Option<&str>) -> usize {
        Rules::parse(RULES).unwrap().judge_fields(name, license, source).len()
    }

    #[test]
    fn licences_are_expressions() {
        assert_eq!(judged("a", Some("MIT"), Some(CRATES_IO)), 0);
        assert_eq!(judged("a", Some("MIT/Apache-2.0"), None), 0);
        assert_eq!(judged("a", Some("GPL-3.0-only OR MIT"), None), 0);
        assert_eq!(judged("a", Some("GPL-3.0-only AND MIT"), None), 1);
        assert_eq!(judged("a", Some("Apache-2.0 WITH LLVM-exception"), None), 1);
        assert_eq!(judged("a", Some("no such"), None), 1);
        assert_eq!(judged("a", None, None), 1);
    }

    #[test]
    fn an_exception_is_allowed_by_its_own_entry() {
        let rules = Rules::parse(&RULES.replace("\"MIT\"", "\"Apache-2.0 WITH LLVM-exception\""));
        let judged = |license| rules.as_ref().unwrap().judge_fields("a", Some(license), None).len();
        assert_eq!(judged("Apache-2.0 WITH LLVM-exception"), 0);
        assert_eq!(judged("Apache-2.0"), 0);
        assert_eq!(judged("MIT"), 1);
    }

    #[test]
    fn sources_and_bans() {
        assert_eq!(judged("a", Some("MIT"), Some("git+https://example.org/a")), 1);
        assert_eq!(judged("openssl-sys", Some("MIT"), Some(CRATES_IO)), 1);
    }

    #[test]
    fn rules_that_are_not_there_are_an_error() {
        assert!(Rules::parse("[licenses]\nallow = []\n").is_err());
        assert!(Rules::parse("[licenses]\nallow = [1]\n[bans]\ndeny = []\n").is_err());
    }
}
