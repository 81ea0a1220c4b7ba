//! The settings that a workload's stores are opened with.
//!
//! Owns: the form of settings in a file. Never does: know what a setting means.

use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

/// A setting's name and value. A name with a dot is for the engine before the
/// dot, one without is Windrow's.
pub(crate) type Setting = (String, String);

/// The settings of every store of the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StoreSettings {
    pub(crate) memory_mib: u64,
    pub(crate) direct_io: bool,
    /// Settings in addition to those of the command line, which have
    /// precedence.
    #[serde(deserialize_with = "settings")]
    pub(crate) settings: Vec<Setting>,
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        StoreSettings { memory_mib: 192, direct_io: false, settings: Vec::new() }
    }
}

/// Settings: `NAME = VALUE` of Windrow, `ENGINE.NAME = VALUE` of another.
pub(super) fn settings<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Setting>, D::Error> {
    let mut settings = Vec::new();
    flatten("", Table::deserialize(from)?, &mut settings).map_err(serde::de::Error::custom)?;
    Ok(settings)
}

fn flatten(before: &str, table: Table, settings: &mut Vec<Setting>) -> Result<(), String> {
    for (name, value) in table {
        let name = format!("{before}{name}");
        let text = match value {
            Value::Table(own) => {
                flatten(&format!("{name}."), own, settings)?;
                continue;
            }
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(is) => is.to_string(),
            _ => return Err(format!("`{name}` is not a setting's value")),
        };
        settings.push((name, text));
    }
    Ok(())
}
