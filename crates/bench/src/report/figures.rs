//! Named numbers of one measurement, with their units in their names.
//!
//! Owns: their names and their JSON. Never does: compare them.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Named figures of one run. Units are in the names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    pub(crate) fn set(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub(crate) fn to_json(&self) -> Value {
        let rounded = |v: f64| json!((v * 1000.0).round() / 1000.0);
        let fields: Map<String, Value> =
            self.0.iter().map(|(name, v)| (name.clone(), rounded(*v))).collect();
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_to_the_thousandth() {
        let mut figures = Figures::default();
        figures.set("x", 1.23456);
        figures.set("y", 2.0);
        assert_eq!(figures.to_json().to_string(), r#"{"x":1.235,"y":2.0}"#);
        assert_eq!((figures.get("x"), figures.get("z")), (Some(1.23456), None));
    }
}
