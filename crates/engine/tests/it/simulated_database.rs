//! A small database on the simulated file system, which modules of these tests share.
//!
//! Owns: its path, its options, and how a keyspace is made. Never does: open it.

use windrow::{Db, KeyspaceOptions, Options};
use windrow_env::testing::Handles;

pub(crate) const DIR: &str = "/db";

/// Options with memtables that a few writes fill.
pub(crate) fn options(handles: &Handles) -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 64 << 10;
    options.components.env = Some(handles.env());
    options
}

/// Makes a keyspace; one whose name begins with `sums` adds its operands.
pub(crate) fn make(db: &Db, name: &str) {
    let merge_operator = name.starts_with("sums").then(|| "add".to_owned());
    let asked = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
    db.keyspace_with(name, asked).unwrap();
}
