//! Parameters that clients set and ask for by `CONFIG`.
//!
//! Owns: their names and values. Parameters that steer Redis and nothing here are remembered, since
//! programs set them and ask for them again. Never does: act on one.

use crate::config::{Config, Durability};
use crate::glob::Pattern;
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// The parameters that programs ask Redis for, with the values of a server that keeps all its data.
const DEFAULTS: &[(&str, &str)] = &[
    ("appendonly", "yes"),
    ("databases", "1"),
    ("hash-max-listpack-entries", "128"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "128"),
    ("hash-max-ziplist-value", "64"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("list-max-ziplist-size", "-2"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("notify-keyspace-events", ""),
    ("proto-max-bulk-len", "536870912"),
    ("save", ""),
    ("set-max-intset-entries", "512"),
    ("slowlog-log-slower-than", "-1"),
    ("slowlog-max-len", "0"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("timeout", "0"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];

/// All parameters.
#[derive(Debug)]
pub(crate) struct Parameters(RwLock<BTreeMap<String, String>>);

impl Parameters {
    pub(crate) fn new(config: &Config) -> Parameters {
        let mut all: BTreeMap<String, String> = DEFAULTS
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let appendfsync = match config.durability {
            Durability::Always => "always",
            Durability::EverySecond => "everysec",
            Durability::No => "no",
        };
        all.insert("appendfsync".to_owned(), appendfsync.to_owned());
        all.insert("maxclients".to_owned(), config.clients_max.to_string());
        all.insert("port".to_owned(), config.port.to_string());
        Parameters(RwLock::new(all))
    }

    /// Returns the parameters whose names match one of the patterns.
    pub(crate) fn matching(&self, patterns: &[Pattern<'_>]) -> Vec<(String, String)> {
        let is_wanted =
            |name: &str| patterns.iter().any(|pattern| pattern.matches(name.as_bytes()));
        let all = self.0.read();
        let found = all.iter().filter(|(name, _)| is_wanted(name));
        found.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns a parameter as a number, if it is one.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.0.read().get(name)?.parse().ok()
    }

    /// Remembers a parameter. Returns `false` for one that only the command line sets, for an
    /// invalid number, or for one more than there is room for.
    pub(crate) fn set(&self, name: &str, value: &str) -> bool {
        const FIXED: &[&str] = &["appendfsync", "maxclients", "port", "databases"];
        const LEN_MAX: usize = 512;
        let mut all = self.0.write();
        let has_room = all.contains_key(name) || all.len() < LEN_MAX;
        if FIXED.contains(&name) {
            return all.get(name).is_some_and(|now| now == value);
        }
        let takes_number =
            DEFAULTS.iter().any(|(known, value)| *known == name && value.parse::<i64>().is_ok());
        if takes_number && !is_number(value) {
            return false;
        }
        if has_room && name.len() + value.len() <= 4096 {
            all.insert(name.to_owned(), value.to_owned());
            return true;
        }
        false
    }
}

/// Returns whether it is a number, perhaps with a unit of memory.
fn is_number(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|unit: char| "kmgb".contains(unit));
    let digits = digits.strip_prefix('-').unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_and_the_command_lines_settings_stay() {
        let parameters = Parameters::new(&Config::default());
        assert!(parameters.set("maxmemory", "100mb") && parameters.set("save", "900 1"));
        assert!(!parameters.set("maxmemory", "bla") && !parameters.set("port", "1"));
        assert!(parameters.set("port", "6379"), "what it is already");
        let all = [Pattern::new(b"maxmemor?").unwrap()];
        assert_eq!(parameters.matching(&all), [("maxmemory".to_owned(), "100mb".to_owned())]);
    }
}
