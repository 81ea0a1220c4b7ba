//! The trees of a database as JSON.
//!
//! Owns: which fields a table has there. Never does: draw.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use windrow::dump::NamedTrees;
use windrow::{Db, TableSearches, Version};

/// Keys are bytes, and so in hexadecimal.
fn hex(key: &[u8]) -> String {
    key.iter().fold(String::with_capacity(2 * key.len()), |mut digits, byte| {
        for nibble in [byte >> 4, byte & 15] {
            digits.extend(char::from_digit(nibble.into(), 16));
        }
        digits
    })
}

/// Each keyspace's levels from 0 on, with the tables of their runs by key, and of their SST-logs, newest first.
///
/// A table has its `number`, `epoch` (of an SST-log), `bytes`, `entries`, `tombstones`, `smallest_hex` and
/// `largest_hex`; `filter_bytes`, `created_ms` (since 1970), `hotness` when it was written, and about how many
/// lookups (`queries`) it has had and answered (`hits`), as far as the policy estimates them.
pub fn trees(db: &Db) -> Value {
    let searches = db.table_searches();
    let searches: HashMap<u64, &TableSearches> =
        searches.iter().map(|of_table| (of_table.file, of_table)).collect();
    let stats = db.stats();
    let trees = db.tree().into_iter().map(|(name, version)| {
        let of_keyspace = stats.keyspaces.iter().find(|keyspace| keyspace.name == name);
        json!({
            "name": name,
            "policy": of_keyspace.map(|keyspace| keyspace.policy.as_str()),
            "measured_use": of_keyspace.map(|keyspace| keyspace.measured_use.as_str()),
            "capacity": of_keyspace.map(|keyspace| keyspace.capacities.as_slice()),
            "levels": levels(&version, &searches),
        })
    });
    trees.collect()
}

/// The levels of a tree, as [`trees`] has them; of lookups nothing is known.
pub fn tree_levels(version: &Version) -> Value {
    levels(version, &HashMap::new())
}

fn levels(version: &Version, searches: &HashMap<u64, &TableSearches>) -> Value {
    let file = |file: &Arc<windrow::File>| {
        let of_table = searches.get(&file.number);
        json!({
            "number": file.number,
            "epoch": file.epoch,
            "bytes": file.bytes,
            "entries": file.entries,
            "tombstones": file.tombstones(),
            "smallest_hex": hex(&file.smallest),
            "largest_hex": hex(&file.largest),
            "filter_bytes": file.filter_bytes,
            "created_ms": file.created_ms,
            "hotness": file.hotness,
            "queries": of_table.map_or(0.0, |of_table| of_table.queries),
            "hits": of_table.map_or(0.0, |of_table| of_table.hits),
        })
    };
    let level = |(number, level): (u32, &Arc<windrow::Level>)| {
        json!({
            "level": number,
            "run": level.run.iter().map(file).collect::<Value>(),
            "sst_log": level.sst_log.iter().map(file).collect::<Value>(),
        })
    };
    (0..).zip(&version.levels).map(level).collect()
}

/// The trees that the manifest of the database in `dir` describes, one after the other: for [`crate::page::of`], as `moments`. Of
/// many, at most twice as many as `count_max`, at even distances.
///
/// # Errors
/// Those of [`windrow::dump::trees`].
pub fn moments(dir: &Path, count_max: usize) -> windrow::Result<Value> {
    let mut all = Vec::new();
    let (mut number, mut step) = (0_usize, 1);
    windrow::dump::trees(dir, &mut |trees| {
        if number.is_multiple_of(step) {
            all.push((number, trees));
        }
        number += 1;
        if all.len() > 2 * count_max.max(1) {
            // Every other one goes.
            step *= 2;
            all.retain(|(number, _)| number.is_multiple_of(step));
        }
        Ok(())
    })?;
    let moment = |(number, trees): &(usize, NamedTrees)| {
        let keyspaces = trees.iter().map(|(name, version)| {
            json!({ "name": name, "policy": null, "levels": tree_levels(version) })
        });
        let text = format!("after change {}", number + 1);
        json!({ "text": text, "keyspaces": keyspaces.collect::<Value>() })
    };
    Ok(all.iter().map(moment).collect())
}

/// All that the page shows of a database at one moment.
pub fn state(db: &Db) -> Value {
    let stats: Value = serde_json::from_str(&db.stats().to_json()).unwrap_or_default();
    json!({
        "path": db.path().display().to_string(),
        "stats": stats,
        "keyspaces": trees(db),
        "write_error": db.write_error().map(|error| error.to_string()),
    })
}
