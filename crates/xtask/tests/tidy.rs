//! The workspace's checks on itself, as tests: `cargo test` runs them.

use windrow_xtask::{CHECKS, root};

fn run(name: &str) {
    let (_, check) = CHECKS.iter().find(|(known, _)| *known == name).expect("a check of that name");
    let findings = check(&root()).unwrap_or_else(|error| panic!("{name}: cannot check: {error}"));
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn layers() {
    run("layers");
}

#[test]
fn circles() {
    run("circles");
}

#[test]
fn lengths() {
    run("lengths");
}

#[test]
fn sizes() {
    run("sizes");
}

#[test]
fn statics() {
    run("statics");
}

#[test]
fn face() {
    run("face");
}

#[test]
fn sentences() {
    run("sentences");
}

#[test]
fn words() {
    run("words");
}

#[test]
fn language() {
    run("language");
}

#[test]
fn manifests() {
    run("manifests");
}

#[test]
fn mutants() {
    run("mutants");
}

#[test]
fn type_names() {
    run("type names");
}

#[test]
fn targets() {
    run("targets");
}

#[test]
fn supply() {
    run("supply");
}

#[test]
fn docs() {
    run("docs");
}

#[test]
fn links() {
    run("links");
}

#[test]
fn machines() {
    run("machines");
}

#[test]
fn readme() {
    run("readme");
}

/// A check that is not run here would never be run.
#[test]
fn every_check_is_a_test() {
    let tested = [
        "layers",
        "circles",
        "lengths",
        "sizes",
        "statics",
        "face",
        "words",
        "language",
        "sentences",
        "manifests",
        "mutants",
        "targets",
        "type names",
        "supply",
        "docs",
        "links",
        "machines",
        "readme",
    ];
    assert!(CHECKS.iter().map(|(name, _)| *name).eq(tested));
}
