//! Scenarios of the promises of policies (S1, F1 to F3, H1): a broken one only costs, so that no
//! answer of the database shows it.
//!
//! Owns: the scenarios. Never does: look at anything but a tree's metadata and a policy's own
//! figures.

use super::steps::{ensure, text};
use std::sync::Arc;
use windrow::{Db, inspect};
use windrow_env::testing::env;
use windrow_plan::hotness::{HotMap, LAYERS};
use windrow_plan::tree::Version;
use windrow_testkit::variant::options_of;
use windrow_testkit::world::DIR;

/// Keys of the databases, each written once.
const KEYS: u64 = 3_000;
const VALUE_BYTES: usize = 100;

/// Capacity of level 1, and the ratio between the sizes of adjacent levels.
const LEVEL_BASE_BYTES: u64 = 16 << 10;
const RATIO: u64 = 3;

/// Filter bits per key, and the share of them that filters may take in addition: a filter is a
/// whole number of lines of 64 bytes.
const BITS: u64 = 4;
const ROUNDING_PERCENT: u64 = 25;

/// Returns the tree of an idle database of some policy, filled in no order.
fn filled(policy: &str) -> Result<Arc<Version>, String> {
    let (_, handles) = env(1);
    let base = LEVEL_BASE_BYTES.to_string();
    let settings = [("preset", policy), ("level_base_bytes", &base), ("file_bytes", "64KiB")];
    let mut options = options_of(settings.into_iter()).map_err(text)?;
    options.components.env = Some(handles.env());
    let db = Db::open_with(DIR, options).map_err(text)?;
    for n in 0..KEYS {
        let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        db.put(key, [n as u8; VALUE_BYTES]).map_err(text)?;
    }
    db.flush().and_then(|()| db.wait_idle()).map_err(text)?;
    let (_, version) = inspect::trees(&db).into_iter().next().ok_or("no keyspace")?;
    Ok(version)
}

/// A level is begun when the one above is over its capacity, which grows by level.
pub(super) fn a_tree_is_no_deeper_than_its_shape() -> Result<(), String> {
    let version = filled(&format!("leveled shape=leveling(t={RATIO})"))?;
    let deepest = version.deepest().unwrap_or(0);
    let above = LEVEL_BASE_BYTES * RATIO.pow(deepest.saturating_sub(2));
    let bytes = version.bytes();
    ensure(deepest > 1, "the tree has one level, and shows nothing")?;
    let what = format!("{bytes} bytes reach level {deepest}, and level above holds {above}");
    ensure(above <= bytes, &what)
}

/// All filters of a tree together have at most the bits per key of its policy.
pub(super) fn filters_keep_to_their_memory() -> Result<(), String> {
    for policy in ["monkey", "mnemosyne"] {
        let policy = format!("leveled shape=leveling(t={RATIO}) filters={policy}(bits={BITS})");
        let version = filled(&policy)?;
        let entries: u64 = version.files().map(|(_, _, file)| file.entries).sum();
        let taken = 8 * version.files().map(|(_, _, file)| file.filter_bytes).sum::<u64>();
        let most = entries * BITS * (100 + ROUNDING_PERCENT) / 100;
        ensure(taken > 0, "the tree has no filters, and shows nothing")?;
        let what = format!("{policy}: filters take {taken} bits, of {entries} keys");
        ensure(taken <= most, &what)?;
    }
    Ok(())
}

/// A HotMap keeps its number of layers after any number of updates, in the same memory.
pub(super) fn a_hot_map_keeps_its_layers() -> Result<(), String> {
    let mut map = HotMap::new(0);
    let begin_bytes = map.memory_bytes();
    for n in 0..10_000_u64 {
        map.observe(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let known = map.layers_known(0);
        ensure(known <= LAYERS as u32, &format!("{known} layers know a key"))?;
        map.observe(0);
    }
    let bytes = map.memory_bytes();
    ensure(bytes == begin_bytes, &format!("it took {begin_bytes} bytes and now {bytes}"))
}
