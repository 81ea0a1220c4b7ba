//! The commands of README.md, docs/guide and docs/program.md do what the pages say.

use std::path::Path;
use windrow_xtask::readme::{Plan, try_pages};
use windrow_xtask::root;

#[test]
fn what_the_pages_show_is_what_happens() {
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    let mut told = Vec::new();
    let findings =
        try_pages(&root(), program, &Plan::default(), &mut |line| told.push(line)).unwrap();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    // A page whose commands are no longer found would pass as well.
    for page in ["README.md", "docs/program.md"] {
        let begins = format!("{page}: ");
        let line = told.iter().find(|line| line.starts_with(&begins));
        assert!(line.is_some_and(|line| line.contains("commands run")), "{page}: {told:?}");
    }
}
