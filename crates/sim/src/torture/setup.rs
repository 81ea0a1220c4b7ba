//! The options of a session's open: settings drawn from a seed, in the form of a worker's
//! arguments.
//!
//! Owns: which settings are drawn, all small, so that a few hundred batches make several levels.
//! Never does: draw a setting that an existing database cannot be switched to.

use windrow::Options;
use windrow::settings::Settings;
use windrow_env::testing::Rng;
use windrow_testkit::variant::POLICIES;

/// A reserve that is enough for every recovery of these small databases.
const RESERVE: &str = "4MiB";

/// Settings, as text.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Each is `name=value`.
    pub settings: Vec<String>,
}

impl Setup {
    /// Draws a setup; `preset` is a preset's text or `all`.
    pub fn draw(rng: &mut Rng, preset: &str) -> Setup {
        let preset = match preset {
            "all" => POLICIES[rng.below(POLICIES.len() as u64) as usize],
            one => one,
        };
        let mut pick = |name: &str, values: &[&str]| {
            format!("{name}={}", values[rng.below(values.len() as u64) as usize])
        };
        let settings = vec![
            format!("preset={preset}"),
            "memory_bytes=8MiB".into(),
            "file_bytes=64KiB".into(),
            pick("memtable_bytes", &["64KiB", "64KiB", "256KiB"]),
            pick("level_base_bytes", &["4KiB", "64KiB", "128KiB"]),
            pick("block_bytes", &["256", "1KiB", "4KiB"]),
            pick("compression", &["none", "lz4", "none,lz4"]),
            pick("partition_bytes", &["4KiB", "512KiB"]),
            pick("hash_index", &["on", "off"]),
            pick("direct_io", &["off", "off", "on"]),
            pick("map_logs", &["on", "on", "off"]),
            pick("background_threads", &["1", "2", "3"]),
            pick("wal_sync_interval_ms", &["0", "0", "1", "20"]),
            pick("reserve_bytes", &["0", RESERVE]),
            pick("verify_on_open", &["off", "off", "off", "on"]),
        ];
        Setup { settings }
    }

    /// Whether the database must open on a full device.
    pub fn has_reserve(&self) -> bool {
        self.settings.iter().any(|setting| setting.ends_with(RESERVE))
    }

    /// Whether a failing device must show as an error, never as a signal.
    pub fn is_unmapped(&self) -> bool {
        self.settings.iter().any(|setting| setting == "map_logs=off")
    }

    /// Returns the options for an open.
    ///
    /// # Errors
    /// A setting that is unknown or out of range.
    pub fn options(&self) -> Result<Options, String> {
        let mut settings = Settings::default();
        for setting in &self.settings {
            let (name, value) = setting.split_once('=').ok_or("a setting is `name=value`")?;
            settings.set(name, value).map_err(|e| e.to_string())?;
        }
        Ok(Options { settings, ..Options::default() })
    }
}

/// Returns the options of an open that makes no database and needs little memory.
///
/// # Errors
/// A setting that this build does not know.
pub(super) fn small_options() -> Result<Options, String> {
    let setup = Setup { settings: vec!["memory_bytes=8MiB".into(), "memtable_bytes=64KiB".into()] };
    let mut options = setup.options()?;
    options.create_if_missing = false;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_drawn_is_valid() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let setup = Setup::draw(&mut rng, "all");
            setup.options().unwrap().validate().unwrap_or_else(|e| panic!("{setup:?}: {e}"));
        }
    }
}
