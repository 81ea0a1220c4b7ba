//! Settings as text: the `name = value` lines that are stored with the data.
//!
//! Owns: their grammar; printing and parsing are exact inverses.
//! Never does: know a setting by name (`settings.rs` has the table).

use super::settings::Settings;
use std::fmt::Write as _;
use windrow_base::{Error, Result};

impl Settings {
    /// Prints all settings, one `name = value` line each, in the table's order.
    /// [`Settings::from_text`] gives the same settings back.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for row in Settings::table() {
            let _ = writeln!(out, "{} = {}", row.name, row.value(self));
        }
        out
    }

    /// Reads the text of [`Settings::to_text`], or a file written by hand: blank lines and lines
    /// that begin with `#` are skipped, and settings that are not named keep their defaults.
    ///
    /// # Errors
    /// `InvalidArgument` that lists every line that is malformed, names no
    /// setting, names one twice, or gives a value out of its range. Whether
    /// the settings fit together is for [`Settings::validate`].
    pub fn from_text(text: &str) -> Result<Settings> {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                problems.push(format!("line {number} is not `name = value`"));
                continue;
            };
            let name = name.trim();
            if seen.contains(&name) {
                problems.push(format!("line {number} sets {name} again"));
                continue;
            }
            seen.push(name);
            if let Err(error) = settings.set(name, value) {
                problems.push(format!("line {number}: {}", error.message()));
            }
        }
        if problems.is_empty() { Ok(settings) } else { Err(Error::invalid(problems.join("; "))) }
    }

    /// Reads the text of any build. Leaves out lines that this build cannot take, alone or with the
    /// rest, and returns those as well. The settings are valid.
    #[doc(hidden)]
    pub fn from_text_known(text: &str) -> (Settings, Vec<String>) {
        let mut settings = Settings::default();
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        // Two may be right only together (a limit, and a higher one above it):
        // again, until a round brings no more of them in.
        loop {
            let mut left_out = Vec::new();
            let count = lines.len();
            lines.retain(|line| match settings.with_line(line) {
                Ok(with) => {
                    settings = with;
                    false
                }
                Err(why) => {
                    left_out.push(format!("`{}`: {why}", line.trim()));
                    true
                }
            });
            if lines.len() == count {
                return (settings, left_out);
            }
        }
    }

    /// Returns these settings with one `name = value` line on top, if they are valid then.
    fn with_line(&self, line: &str) -> Result<Settings, String> {
        let mut with = self.clone();
        let (name, value) = line.split_once('=').ok_or("not `name = value`")?;
        with.set(name.trim(), value).map_err(|error| error.message().to_owned())?;
        with.validate().map_err(|problems| problems.join("; "))?;
        Ok(with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_build_wrote_is_taken_as_far_as_it_is_known() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("memory_bytes", "1GiB"),
            ("memtable_bytes", "200MiB"),
            ("preset", "leveled"),
            ("level0_slowdown_files", "50"),
            ("level0_stop_files", "60"),
            ("debt_slowdown_bytes", "1GiB"),
            ("debt_stop_bytes", "2GiB"),
        ] {
            settings.set(name, value).unwrap();
        }
        let text = settings.to_text();
        assert_eq!(Settings::from_text_known(&text), (settings.clone(), Vec::new()));
        let newer = format!("{text}of_tomorrow = 7\nzstd_level = 99\nblock_bytes\n")
            .replace("compression = lz4", "compression = of tomorrow");
        let (read, left_out) = Settings::from_text_known(&newer);
        assert_eq!(read, settings);
        assert_eq!(left_out.len(), 4, "{left_out:?}");
        for name in ["of_tomorrow = 7", "zstd_level = 99", "block_bytes", "compression = of"] {
            assert!(left_out.iter().any(|why| why.contains(name)), "{left_out:?}");
        }
        assert_eq!(Settings::from_text_known(""), (Settings::default(), Vec::new()));
    }

    #[test]
    fn text_round_trips_and_lists_all_problems() {
        let mut settings = Settings::default();
        settings.set("memory_bytes", "96MiB").unwrap();
        settings.set("preset", "shape=leveling(t=10) level0=tiered(k=4)").unwrap();
        settings.set("pace_delay_us_max", "2ms").unwrap();
        assert_eq!(Settings::from_text(&settings.to_text()).unwrap(), settings);

        let text = "# by hand\n\nmemory_bytes=64MiB\r\n direct_io = yes \n";
        let read = Settings::from_text(text).unwrap();
        assert_eq!((read.memory_bytes, read.direct_io), (64 << 20, true));

        let bad = "memory_bytes\nno_such = 1\nblock_bytes = 1\nfsync = off\ndirect_io = on\ndirect_io = off\n";
        let message = Settings::from_text(bad).unwrap_err().message().to_owned();
        for line in ["line 1", "line 2", "line 3", "line 4", "line 6"] {
            assert!(message.contains(line), "{message}");
        }
        assert!(!message.contains("line 5"), "{message}");
    }
}
