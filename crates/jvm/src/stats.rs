//! Statistics.
//!
//! Owns: the conversion of a tree of statistics to rows. Never does: count.

use crate::database::DATABASES;
use crate::edge::native;
use crate::failure::Failure;
use jni_sys::{jlong, jobject, jobjectArray, jstring};
use serde_json::Value;

native! {
    /// Returns the statistics as JSON, or as a table for people.
    Java_org_windrow_Native_stats(env, _owner: jobject, database: jlong, json: bool) -> jstring {
        let stats = DATABASES.get(database)?.db.stats();
        env.new_string(&if json { stats.to_json() } else { stats.to_string() })
    }
}

native! {
    /// Returns the statistics as alternating names and numbers: `memory.cache_bytes`,
    /// `levels.0.bytes`.
    Java_org_windrow_Native_statsRows(env, _owner: jobject, database: jlong) -> jobjectArray {
        let database = DATABASES.get(database)?;
        let json = database.db.stats().to_json();
        let stats: Value = serde_json::from_str(&json)
            .map_err(|error| Failure::internal(format!("the statistics are no JSON: {error}")))?;
        let mut rows = Vec::new();
        add_rows(&mut rows, "", &stats);
        database.work.rows(&mut rows);
        env.new_strings(&rows)
    }
}

/// Adds the rows of a value. Array elements that have a name are called by it, others by their
/// index.
fn add_rows(rows: &mut Vec<String>, name: &str, value: &Value) {
    let below =
        |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    match value {
        Value::Number(number) => rows.extend([name.to_owned(), number.to_string()]),
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| add_rows(rows, &below(field), value));
        }
        Value::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                let named =
                    ["name", "reason", "of"].iter().find_map(|key| element.get(key)?.as_str());
                add_rows(rows, &below(named.unwrap_or(&place.to_string())), element);
            }
        }
        _ => {}
    }
}
