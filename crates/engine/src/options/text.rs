//! Settings as text: sizes and durations as people write them, and the
//! `name = value` lines that are stored beside the data.
//!
//! Owns: both grammars; printing and parsing are exact inverses.
//! Never does: know a setting by name (`settings.rs` has the table).

use super::settings::Settings;
use std::fmt::Write as _;
use windrow_base::{Error, Result};

/// Names of a unit and what one of it is, in base units. Looked up without
/// regard to case; printing takes the first exact one from the top.
type Suffixes = &'static [(&'static str, u64)];

const BYTES: Suffixes = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];
const BYTES_PRINTED: usize = 4;

const MICROS: Suffixes = &[
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
    ("m", 60_000_000),
];
const MICROS_PRINTED: usize = 5;

/// Parses `4096`, `64KiB`, `1.5 GiB`, `10MB` (decimal), `8M` (binary).
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_scaled(text, BYTES, 1)
        .map_err(|why| format!("{why}; a size looks like 4096, 64KiB or 1.5GiB"))
}

/// Parses `250` (milliseconds), `10ms`, `1.5s`, `5min`, `1h`.
pub(super) fn parse_millis(text: &str) -> Result<u64, String> {
    let micros = parse_scaled(text, MICROS, 1_000)
        .map_err(|why| format!("{why}; a duration looks like 250ms, 1.5s or 5min"))?;
    if micros % 1_000 != 0 {
        return Err(format!("`{text}` is not a whole number of milliseconds"));
    }
    Ok(micros / 1_000)
}

/// Parses `250` (microseconds), `10us`, `2ms`, `1s`.
pub(super) fn parse_micros(text: &str) -> Result<u64, String> {
    parse_scaled(text, MICROS, 1)
        .map_err(|why| format!("{why}; a duration looks like 250us, 1.5ms or 2s"))
}

/// Parses a whole number; underscores may group its digits.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    parse_scaled(text, &[], 1)
}

/// Exact: the largest binary unit that divides it, else bytes.
pub(super) fn print_bytes(bytes: u64) -> String {
    print_scaled(bytes, &BYTES[..BYTES_PRINTED], "")
}

/// Exact: the largest unit that divides it.
pub(super) fn print_millis(ms: u64) -> String {
    match ms.checked_mul(1_000) {
        Some(us) => print_micros(us),
        None => format!("{ms}ms"),
    }
}

/// Exact: the largest unit that divides it.
pub(super) fn print_micros(us: u64) -> String {
    print_scaled(us, &MICROS[..MICROS_PRINTED], "us")
}

fn print_scaled(value: u64, suffixes: Suffixes, rest: &str) -> String {
    match suffixes.iter().find(|(_, scale)| value != 0 && value.is_multiple_of(*scale)) {
        Some((suffix, scale)) => format!("{}{suffix}", value / scale),
        None if value == 0 => "0".to_owned(),
        None => format!("{value}{rest}"),
    }
}

/// `digits[.digits] [suffix]`, times the suffix's scale (`bare` without one).
/// Integer arithmetic all through: 0.1GiB, which is no whole number of bytes, is refused.
fn parse_scaled(text: &str, suffixes: Suffixes, bare: u64) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a number this setting takes");
    let trimmed = text.trim();
    let number_len =
        trimmed.find(|c: char| !matches!(c, '0'..='9' | '.' | '_')).unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(number_len);
    let suffix = suffix.trim_start();
    let scale = if suffix.is_empty() {
        bare
    } else {
        let found = suffixes.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix));
        found.ok_or_else(bad)?.1
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.replace('_', "");
    let (whole, fraction) = (digits(whole), digits(fraction));
    if whole.is_empty() || fraction.len() > 18 || number.ends_with('.') {
        return Err(bad());
    }
    let whole: u128 = whole.parse::<u64>().map_err(|_| bad())?.into();
    let mut value = whole * u128::from(scale);
    if !fraction.is_empty() {
        let parts = u128::from(fraction.parse::<u64>().map_err(|_| bad())?) * u128::from(scale);
        let unit = 10u128.pow(fraction.len() as u32);
        if parts % unit != 0 {
            return Err(format!("`{text}` is not a whole number of the smallest unit"));
        }
        value += parts / unit;
    }
    u64::try_from(value).map_err(|_| format!("`{text}` is too large"))
}

/// For people: three significant digits, binary units (`1.25 GiB`). Not parsed back.
pub(crate) fn human_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match value {
        _ if unit == 0 => format!("{bytes} B"),
        v if v < 9.995 => format!("{v:.2} {}", units[unit]),
        v if v < 99.95 => format!("{v:.1} {}", units[unit]),
        v => format!("{v:.0} {}", units[unit]),
    }
}

impl Settings {
    /// All settings, one `name = value` line each, in the table's order.
    /// [`Settings::from_text`] gives the same settings back.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for row in Settings::table() {
            let _ = writeln!(out, "{} = {}", row.name, row.value(self));
        }
        out
    }

    /// Reads what [`Settings::to_text`] wrote, or a file written by hand:
    /// blank lines and lines that begin with `#` are skipped, what is not
    /// named keeps its default.
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

    /// Reads what another build may have written: leaves out what this one
    /// cannot take, alone or with the rest, and says what that was. The
    /// settings are valid.
    pub(crate) fn from_text_known(text: &str) -> (Settings, Vec<String>) {
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

    /// These settings with one `name = value` line on top, if they are valid then.
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
    fn sizes_as_people_write_them() {
        for (text, want) in [
            ("0", 0),
            ("4096", 4096),
            ("4_096", 4096),
            ("64KiB", 65_536),
            ("64 kib", 65_536),
            ("1.5GiB", 3 << 29),
            ("8M", 8 << 20),
            ("10MB", 10_000_000),
            ("7B", 7),
            ("16777215TiB", 16_777_215 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(want), "{text}");
        }
        for text in ["", "MiB", "-1", "1.", ".5M", "1e6", "1XiB", "0.1GiB", "16777216TiB", "1 2"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_as_people_write_them() {
        assert_eq!(parse_millis("250"), Ok(250));
        assert_eq!(parse_millis("1.5s"), Ok(1_500));
        assert_eq!(parse_millis("2m"), Ok(120_000));
        assert_eq!(parse_millis("3min"), Ok(180_000));
        assert!(parse_millis("1us").is_err());
        assert_eq!(parse_micros("250"), Ok(250));
        assert_eq!(parse_micros("1ms"), Ok(1_000));
        assert!(parse_micros("1d").is_err());
    }

    #[test]
    fn printing_is_exact() {
        let values = [0, 1, 999, 1_000, 1_024, 1_500, 4_096, 60_000, 3_600_000, (1 << 40) + 1];
        for value in values.into_iter().chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX]) {
            assert_eq!(parse_bytes(&print_bytes(value)), Ok(value));
            assert_eq!(parse_micros(&print_micros(value)), Ok(value));
            if value < u64::MAX / 1_000 {
                assert_eq!(parse_millis(&print_millis(value)), Ok(value));
            }
        }
        assert_eq!(print_bytes(64 << 20), "64MiB");
        assert_eq!(print_millis(120_000), "2min");
        assert_eq!(print_micros(1_500), "1500us");
    }

    #[test]
    fn human_sizes_keep_three_digits() {
        for (bytes, want) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "0.98 KiB"),
            (1_536, "1.50 KiB"),
            (10 << 20, "10.0 MiB"),
            (999 << 20, "999 MiB"),
            (1_023 << 20, "1.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human_bytes(bytes), want);
        }
    }

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
