//! The description of the machine and the time of a run.
//!
//! Owns: reading the machine's description. Never does: measure.

#![allow(clippy::disallowed_methods, reason = "describes the real machine, for the reader")]

use crate::record::Machine;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Describes this machine; `dir` is the directory of the databases. Unknown
/// values are empty.
pub(crate) fn describe(dir: &Path) -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after_colon = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let memory = after_colon(&read("/proc/meminfo"), "MemTotal");
    let memory_kib: u64 =
        memory.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
    Machine {
        cpu: after_colon(&read("/proc/cpuinfo"), "model name"),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: memory_kib * 1024,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        file_system: file_system(&read("/proc/mounts"), dir),
    }
}

/// Returns the type of the mount with the longest path above `dir`.
fn file_system(mounts: &str, dir: &Path) -> String {
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let fields = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = fields.filter(|(path, _)| dir.starts_with(path));
    above.max_by_key(|(path, _)| path.len()).map_or(String::new(), |(_, kind)| kind.to_owned())
}

/// Returns the time, UTC, as in `2026-11-20T16:40:00Z`.
pub(crate) fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since.as_secs())
}

/// Formats seconds since 1970 as text, by the Gregorian calendar.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if day < length {
            break;
        }
        day -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_192_859, "2026-11-20T16:40:59Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "a / ext4 rw 0 0\nb /proc proc rw 0 0\nc /proc/sys/fs binfmt rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/proc/self")), "proc");
        assert_eq!(file_system(mounts, Path::new("/nowhere")), "ext4");
    }
}
