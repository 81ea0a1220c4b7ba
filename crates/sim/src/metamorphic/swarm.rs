//! Random options: each database of a lockstep draws its own, and draws again whenever it is
//! opened.
//!
//! Owns: which settings vary, and their values. Never does: know what an answer is.

use windrow::Options;
use windrow_env::testing::Rng;
use windrow_testkit::variant::{Ground, POLICIES, VARIANTS};

/// Settings and the values they may have; about half are left as they are.
const CHOICES: &[(&str, &[&str])] = &[
    ("block_bytes", &["256", "1KiB", "4KiB", "16KiB"]),
    ("compression", &["none", "lz4", "none,lz4", "lz4,none"]),
    ("cache_bytes", &["64KiB", "1MiB", "0"]),
    ("readahead_bytes", &["0", "4KiB", "256KiB"]),
    ("hash_index", &["on", "off"]),
    ("partition_bytes", &["4KiB", "16KiB", "512KiB"]),
    ("open_files_max", &["16", "64", "0"]),
    ("verify_on_open", &["on", "off"]),
    ("level0_slowdown_files", &["2", "6", "12"]),
    ("level0_stop_files", &["13", "32"]),
    ("memtable_bytes", &["64KiB", "128KiB", "512KiB"]),
    ("file_bytes", &["64KiB", "128KiB", "1MiB"]),
    ("level_base_bytes", &["4KiB", "64KiB", "256KiB", "0"]),
    ("wal_sync_interval_ms", &["0", "1", "1000"]),
];

/// The options of one database.
#[derive(Debug)]
pub(super) struct Swarm {
    ground: Ground,
    settings: String,
}

impl Swarm {
    pub(super) fn new(ground: Ground) -> Swarm {
        Swarm { ground, settings: String::new() }
    }

    /// Draws new options.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> Options {
        let mut options = VARIANTS[0].options().expect("a valid variant");
        let settings = &mut options.settings;
        for (name, values) in CHOICES {
            if rng.chance(0.5) {
                let value = values[rng.below(values.len() as u64) as usize];
                settings.set(name, value).expect("a value of its range");
            }
        }
        settings.preset = policy(rng);
        if self.ground == Ground::System {
            settings.direct_io = true;
            settings.block_bytes = 4 << 10;
        }
        self.settings = options.settings.to_text();
        options
    }

    /// Draws a policy to change to while the database is open.
    pub(super) fn draw_policy(&mut self, rng: &mut Rng) -> String {
        let policy = policy(rng);
        self.settings += &format!("# then switched to {policy}\n");
        policy
    }

    /// Returns the options in force, for messages.
    pub(super) fn text(&self) -> &str {
        &self.settings
    }
}

fn policy(rng: &mut Rng) -> String {
    POLICIES[rng.below(POLICIES.len() as u64) as usize].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_valid() {
        let mut rng = Rng::new(1);
        let mut swarm = Swarm::new(Ground::Simulated);
        for _ in 0..1_000 {
            swarm.draw(&mut rng).validate().unwrap_or_else(|e| panic!("{e}\n{}", swarm.text()));
        }
    }
}
