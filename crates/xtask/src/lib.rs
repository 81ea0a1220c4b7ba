//! The workspace's checks on itself, and the documentation it generates.
//!
//! Owns: the checks that a review would otherwise make by hand: layers, circles, lengths, sizes of
//! crates, `unsafe`, statics, mutants, manifests, licences, stale pages, broken links. `cargo test`
//! runs them (`tests/tidy.rs`). Never does: change code, or run in a database.

#![allow(
    clippy::disallowed_methods,
    reason = "reads the source tree, not a database: there is nothing to simulate"
)]

pub mod assertions;
pub mod circles;
pub mod conditions;
pub mod coverage;
pub mod docs;
pub mod face;
pub mod findings;
pub mod language;
pub mod layers;
pub mod lengths;
pub mod links;
pub mod machines;
pub mod manifests;
pub mod mutants;
pub mod path;
pub mod readme;
pub mod repeat;
pub mod same;
pub mod sentences;
pub mod sizes;
pub mod source;
pub mod statics;
pub mod supply;
pub mod targets;
pub mod type_names;
pub mod words;

use findings::Check;
use std::path::PathBuf;

/// All checks, by name.
pub const CHECKS: &[(&str, Check)] = &[
    ("layers", layers::check),
    ("circles", circles::check),
    ("lengths", lengths::check),
    ("sizes", sizes::check),
    ("statics", statics::check),
    ("face", face::check),
    ("words", words::check),
    ("language", language::check),
    ("sentences", sentences::check),
    ("manifests", manifests::check),
    ("mutants", mutants::check),
    ("targets", targets::check),
    ("type names", type_names::check),
    ("supply", supply::check),
    ("docs", docs::check),
    ("links", links::check),
    ("machines", machines::check),
    ("readme", readme::check),
];

/// The root of the workspace that this crate was built in.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}
