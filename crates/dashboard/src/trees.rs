//! The trees of a database as JSON.
//!
//! Owns: which fields a table has there. Never does: draw.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use windrow::Db;
use windrow::inspect::{self, File, Level, TableSearches, Version};

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
    let searches = inspect::table_searches(db);
    let searches: HashMap<u64, &TableSearches> =
        searches.iter().map(|of_table| (of_table.file, of_table)).collect();
    let stats = db.stats();
    let trees = inspect::trees(db).into_iter().map(|(name, version)| {
        let of_keyspace = stats.keyspaces.iter().find(|keyspace| keyspace.name == name);
        json!({
            "name": name,
            "policy": of_keyspace.map(|keyspace| keyspace.policy.as_str()),
            "measured_use": of_keyspace.map(|keyspace| keyspace.measured_use.as_str()),
            "capacity": of_keyspace.map(|keyspace| keyspace.capacities.as_slice()),
            "log_capacity": of_keyspace.map(|keyspace| keyspace.log_capacities.as_slice()),
            "file_price_percent": of_keyspace.map(|keyspace| keyspace.file_price_percent),
            "levels": levels(&version, &searches),
        })
    });
    trees.collect()
}

/// A table, and what is known of its lookups.
pub(crate) fn table(file: &File, searches: Option<&TableSearches>) -> Value {
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
        "queries": searches.map_or(0.0, |of_table| of_table.queries),
        "hits": searches.map_or(0.0, |of_table| of_table.hits),
    })
}

fn levels(version: &Version, searches: &HashMap<u64, &TableSearches>) -> Value {
    let file = |file: &Arc<File>| table(file, searches.get(&file.number).copied());
    let level = |(number, level): (u32, &Arc<Level>)| {
        json!({
            "level": number,
            "run": level.run.iter().map(file).collect::<Value>(),
            "sst_log": level.sst_log.iter().map(file).collect::<Value>(),
        })
    };
    (0..).zip(&version.levels).map(level).collect()
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
