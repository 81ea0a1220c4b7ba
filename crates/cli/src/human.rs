//! Figures and colours for people.
//!
//! Colour only where standard output is a terminal that has it and NO_COLOR
//! is not set.
//!
//! Owns: the text of a figure, and whether there are colours. Never does: print.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::time::{Duration, UNIX_EPOCH};

/// A whole number with commas: 34,924.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n` and a noun in the right number: "1 file", "2 files", "3 batches", "4 entries".
pub(crate) fn plural(n: u64, noun: &str) -> String {
    let (stem, suffix) = match noun.strip_suffix('y') {
        _ if n == 1 => (noun, ""),
        Some(stem) => (stem, "ies"),
        None if noun.ends_with("ch") => (noun, "es"),
        None => (noun, "s"),
    };
    format!("{} {stem}{suffix}", count(n))
}

/// Bytes in the largest binary unit that leaves a number of one or more.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// The first millisecond of the year 10000, in UTC, since 1970.
const YEAR_10000_MS: u64 = 253_402_300_800_000;

/// A moment in milliseconds since 1970, in UTC: `2026-11-27T13:22:10Z`.
pub(crate) fn utc(ms: u64) -> String {
    // Behind the year 9999 there is no such form: the number is no clock's.
    let moment = UNIX_EPOCH.checked_add(Duration::from_millis(ms)).filter(|_| ms < YEAR_10000_MS);
    moment.map_or_else(|| "-".to_owned(), |m| humantime::format_rfc3339_seconds(m).to_string())
}

/// A length of time with three digits that matter.
pub(crate) fn time(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// How many of `n` went by in a second.
pub(crate) fn per_second(n: u64, duration: Duration) -> u64 {
    (n as f64 / duration.as_secs_f64().max(1e-9)) as u64
}

/// A stopwatch. Figures for people only: nothing is decided by it.
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "the edge measures itself; the engine has its own clock"
    )]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Colours, or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output as it is.
    pub(crate) fn stdout() -> Paint {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        Paint { on: !unwanted && !dumb && io::stdout().is_terminal() }
    }

    /// No colours, whatever the terminal.
    #[cfg(test)]
    pub(crate) fn plain() -> Paint {
        Paint { on: false }
    }

    fn wrap(self, code: &str, text: impl Display) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.wrap("32", text)
    }

    /// One of six colours in turn, for things that are side by side.
    pub(crate) fn nth(self, n: usize, text: impl Display) -> String {
        self.wrap(["36", "34", "35", "33", "32", "96"][n % 6], text)
    }
}

/// Columns of the terminal, of `COLUMNS` where there is none, or 80; at most 120.
pub(crate) fn columns() -> usize {
    let of_terminal = rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0);
    let of_environment = || env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.or_else(of_environment).unwrap_or(80).clamp(40, 120)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(
            (count(0), count(999), count(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!((size(0), size(1023)), ("0 B".into(), "1023 B".into()));
        assert_eq!((size(1024), size(1024 * 1024 - 1)), ("1.0 KiB".into(), "1.0 MiB".into()));
        assert_eq!(utc(1_795_785_730_000), "2026-11-27T13:22:10Z");
        assert_eq!(utc(YEAR_10000_MS - 1), "9999-12-31T23:59:59Z");
        assert_eq!((utc(YEAR_10000_MS), utc(u64::MAX)), ("-".into(), "-".into()));
        assert_eq!(time(Duration::from_nanos(1_234)), "1.23 µs");
        assert_eq!(time(Duration::from_millis(12_345)), "12.3 s");
        assert_eq!((plural(1, "file"), plural(2, "file")), ("1 file".into(), "2 files".into()));
        assert_eq!(
            (plural(1, "entry"), plural(0, "entry")),
            ("1 entry".into(), "0 entries".into())
        );
    }
}
