//! A small database on the simulated file system, which modules of these tests share.
//!
//! Owns: its path, and its options. Never does: open it.

use windrow::Options;
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
