//! Fuzz target: a manifest, every record of it folded into trees, and those written and read once
//! more.
//!
//! Owns: the file for the reader. Never does: fold a record itself; the engine's `refold_manifest`
//! does.

use super::checksums::{self, raw_and_recomputed};
use std::path::Path;
use windrow::testing::refold_manifest;
use windrow_env::testing::env;
use windrow_format::names;
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::DIR;

/// The place of the number in the header: the file's name has the same number.
const NUMBER_AT: usize = 20;

pub(super) fn run(input: &[u8]) -> bool {
    raw_and_recomputed(input, |bytes| checksums::log(bytes), |bytes| read(&bytes))
}

fn read(bytes: &[u8]) -> bool {
    let (env, handles) = env(1);
    let dir = Path::new(DIR);
    let number = bytes.get(NUMBER_AT..).and_then(|b| b.first_chunk::<8>());
    let number = number.map_or(0, |b| u64::from_le_bytes(*b));
    handles.fs.write_file(&dir.join(names::manifest(number)), bytes);
    let components = VARIANTS[0].options().expect("a valid variant").components;
    refold_manifest(&env, dir, number, &components).is_ok()
}
