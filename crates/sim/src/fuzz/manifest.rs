//! A manifest: every record, folded into the trees it tells of, and those
//! written and read once more.

use super::checksums::{self, raw_and_recomputed};
use std::path::Path;
use windrow::testing::refold_manifest;
use windrow_env::testing::env;
use windrow_format::names;
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::DIR;

/// Where the number is in the header: the name that the file goes by.
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
