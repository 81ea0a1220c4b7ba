//! The operating system's counts for this process and a directory, and the one
//! stopwatch of the benchmarks.
//!
//! Owns: reading `/proc/self` and the time. Never does: interpret a figure.

#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures the real machine: its clock, its /proc, its disk"
)]

use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that this process caused to be read from and written to devices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }
}

impl Traffic {
    /// Returns the traffic so far (zeros where `/proc` is missing).
    pub(crate) fn now() -> Traffic {
        let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        Traffic {
            read_bytes: field(&text, "read_bytes:"),
            written_bytes: field(&text, "write_bytes:"),
        }
    }

    pub(crate) fn since(self, earlier: Traffic) -> Traffic {
        Traffic {
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
        }
    }
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the most memory that this process has held resident, in bytes (0
/// where unknown).
pub(crate) fn peak_rss_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&text, "VmHWM:") * 1024
}

/// Returns the same without the pages of files that are mapped now: those of the program's code, and of tables that
/// a store maps. These are not taken from a budget.
pub(crate) fn peak_anonymous_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&text, "VmHWM:").saturating_sub(field(&text, "RssFile:")) * 1024
}

/// Makes [`peak_rss_bytes`] count from now on (where the kernel allows it).
pub(crate) fn reset_peak_rss() {
    // Some containers refuse this: the peak is then of the whole process.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the processor seconds that all threads of this process have used.
pub(crate) fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which is in parentheses and may hold spaces.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |n: usize| rest.split_whitespace().nth(n).and_then(|t| t.parse::<f64>().ok());
    let total = ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0);
    // USER_HZ is 100 on every Linux that Rust runs on.
    total / 100.0
}

/// Returns the bytes that the files of a directory take on the device.
pub(crate) fn disk_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// Returns the number of files below a directory that this process has open (`None` where `/proc`
/// is missing). A removed file counts for as long as it is open.
pub(crate) fn open_files(dir: &Path) -> Option<usize> {
    let dir = std::fs::canonicalize(dir).ok()?;
    let names = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    // A descriptor may be closed before its name is read, that of this listing for one.
    let files = names.filter_map(|name| std::fs::read_link(name.path()).ok());
    Some(files.filter(|file| *file != dir && file.starts_with(&dir)).count())
}

/// Returns bytes as MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A running stopwatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Returns the time since the start, or since the last lap, and begins a
    /// new lap.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let lap = now - self.0;
        self.0 = now;
        lap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_files_is_counted_alone() {
        let before = peak_anonymous_bytes();
        let held = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = peak_anonymous_bytes();
        // Other tests of this process take and free memory meanwhile.
        assert!(after >= before + (32 << 20), "{before} {after}");
        assert!(after < peak_rss_bytes(), "the program's code is not in it");
        drop(held);
    }

    #[test]
    fn open_files_are_those_of_one_directory() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let open = |path: &Path| std::fs::File::create(path).unwrap();
        let held = [open(&dir.path().join("a")), open(&below.join("b"))];
        let elsewhere = open(&other.path().join("c"));
        let removed = open(&dir.path().join("removed"));
        std::fs::remove_file(dir.path().join("removed")).unwrap();
        assert_eq!(open_files(dir.path()), Some(3));
        drop((removed, elsewhere));
        assert_eq!(open_files(dir.path()), Some(2));
        drop(held);
        assert_eq!(open_files(dir.path()), Some(0));
        assert_eq!(open_files(&dir.path().join("none")), None);
    }
}
