//! Sizes, durations and counts as people write them.
//!
//! Owns: their grammar; printing and parsing are exact inverses. Never does: know the unit of a
//! setting (`settings.rs` has the table).

/// Names of a unit, each with its size in base units. Looked up without regard to case; printing
/// takes the first exact one from the top.
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
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_scaled(text, BYTES, 1)
        .map_err(|why| format!("{why}; a size looks like 4096, 64KiB or 1.5GiB"))
}

/// Parses `250` (milliseconds), `10ms`, `1.5s`, `5min`, `1h`.
pub(crate) fn parse_millis(text: &str) -> Result<u64, String> {
    let micros = parse_scaled(text, MICROS, 1_000)
        .map_err(|why| format!("{why}; a duration looks like 250ms, 1.5s or 5min"))?;
    if micros % 1_000 != 0 {
        return Err(format!("`{text}` is not a whole number of milliseconds"));
    }
    Ok(micros / 1_000)
}

/// Parses `250` (microseconds), `10us`, `2ms`, `1s`.
pub(crate) fn parse_micros(text: &str) -> Result<u64, String> {
    parse_scaled(text, MICROS, 1)
        .map_err(|why| format!("{why}; a duration looks like 250us, 1.5ms or 2s"))
}

/// Parses a whole number; underscores may group its digits.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    parse_scaled(text, &[], 1)
}

/// Prints exactly: in the largest binary unit that divides it, else in bytes.
pub(crate) fn print_bytes(bytes: u64) -> String {
    print_scaled(bytes, &BYTES[..BYTES_PRINTED], "")
}

/// Prints exactly: in the largest unit that divides it.
pub(crate) fn print_millis(ms: u64) -> String {
    match ms.checked_mul(1_000) {
        Some(us) => print_micros(us),
        None => format!("{ms}ms"),
    }
}

/// Prints exactly: in the largest unit that divides it.
pub(crate) fn print_micros(us: u64) -> String {
    print_scaled(us, &MICROS[..MICROS_PRINTED], "us")
}

fn print_scaled(value: u64, suffixes: Suffixes, rest: &str) -> String {
    match suffixes.iter().find(|(_, scale)| value != 0 && value.is_multiple_of(*scale)) {
        Some((suffix, scale)) => format!("{}{suffix}", value / scale),
        None if value == 0 => "0".to_owned(),
        None => format!("{value}{rest}"),
    }
}

/// Parses `digits[.digits] [suffix]`, times the suffix's scale (`bare` without one). Integer
/// arithmetic all through: 0.1GiB, which is no whole number of bytes, is refused.
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

/// Prints for people: three significant digits, binary units (`1.25 GiB`). Not parsed back.
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
}
