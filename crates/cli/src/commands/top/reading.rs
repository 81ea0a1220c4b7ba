//! A reading of a running database's statistics, and the difference of two.
//!
//! Owns: which of the counters are shown, and rates. Never does: I/O.

use serde::Deserialize;

/// The statistics that the process wrote at one time. A counter that its version does not know is
/// 0.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reading {
    pub(super) uptime_us: u64,
    pub(super) gets: u64,
    pub(super) gets_found: u64,
    pub(super) seeks: u64,
    pub(super) entries_scanned: u64,
    pub(super) operations: u64,
    pub(super) batches: u64,
    pub(super) user_bytes: u64,
    pub(super) wal_bytes: u64,
    pub(super) wal_syncs: u64,
    pub(super) wal_live_bytes: u64,
    pub(super) flushes: u64,
    pub(super) blocks_read: u64,
    pub(super) blocks_read_bytes: u64,
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
    pub(super) filter_checks: u64,
    pub(super) filter_false_positives: u64,
    pub(super) files_waiting: u64,
    pub(super) changes_bytes: u64,
    pub(super) readers_open: u64,
    pub(super) levels: Vec<Level>,
    pub(super) pauses: Vec<Pause>,
    pub(super) latencies: Vec<Latency>,
    pub(super) memory: Memory,
}

/// A level, over all keyspaces.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Level {
    pub(super) level: u64,
    pub(super) run_files: u64,
    pub(super) log_files: u64,
    pub(super) bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) merges: u64,
}

/// Pauses of writers for one reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pause {
    pub(super) reason: String,
    pub(super) count: u64,
    pub(super) total_us: u64,
}

/// The latencies of operations since the database was opened.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latency {
    pub(super) of: String,
    pub(super) count: u64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    #[serde(rename = "p99.9_ns")]
    pub(super) p999_ns: u64,
    pub(super) longest_ns: u64,
}

/// Memory in use.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    pub(super) budget_bytes: u64,
    pub(super) memtables_bytes: u64,
    pub(super) cache_bytes: u64,
    pub(super) tables_bytes: u64,
    pub(super) merge_bytes: u64,
    pub(super) readers_bytes: u64,
    pub(super) transactions_bytes: u64,
    pub(super) outside_bytes: u64,
}

impl Memory {
    pub(super) fn used_bytes(&self) -> u64 {
        sum([
            self.memtables_bytes,
            self.cache_bytes,
            self.tables_bytes,
            self.merge_bytes,
            self.readers_bytes,
            self.transactions_bytes,
            self.outside_bytes,
        ])
    }
}

/// The time between two readings of one process; or since it opened the database.
pub(super) struct Span<'a> {
    before: Option<&'a Reading>,
    pub(super) now: &'a Reading,
    pub(super) seconds: f64,
}

impl<'a> Span<'a> {
    /// Makes a span. `before` counts if the same process wrote it, and earlier.
    pub(super) fn new(before: Option<&'a Reading>, now: &'a Reading) -> Span<'a> {
        let before = before.filter(|before| before.uptime_us < now.uptime_us);
        let since_us = before.map_or(0, |before| before.uptime_us);
        Span { before, now, seconds: ((now.uptime_us - since_us) as f64 / 1e6).max(1e-6) }
    }

    /// Returns whether it is the whole time since the database was opened.
    pub(super) fn is_whole(&self) -> bool {
        self.before.is_none()
    }

    /// Returns the growth of a counter.
    pub(super) fn grown(&self, counter: impl Fn(&Reading) -> u64) -> u64 {
        counter(self.now).saturating_sub(self.before.map_or(0, counter))
    }

    /// Returns the growth of a counter per second.
    pub(super) fn rate(&self, counter: impl Fn(&Reading) -> u64) -> f64 {
        self.grown(counter) as f64 / self.seconds
    }

    /// Returns one counter's growth as a share of another's; `None` where that has not grown.
    pub(super) fn share(
        &self,
        part: impl Fn(&Reading) -> u64,
        whole: impl Fn(&Reading) -> u64,
    ) -> Option<f64> {
        let whole = self.grown(whole);
        (whole > 0).then(|| self.grown(part) as f64 / whole as f64)
    }
}

/// Adds figures of a file that anybody may have written: they may overflow.
pub(super) fn sum(figures: impl IntoIterator<Item = u64>) -> u64 {
    figures.into_iter().fold(0, u64::saturating_add)
}

/// Returns the bytes that flushes and merges wrote.
pub(super) fn tables_written(reading: &Reading) -> u64 {
    sum(reading.levels.iter().map(|level| level.written_bytes))
}

/// Returns a figure of the level of this number, 0 where there was none.
pub(super) fn of_level(number: u64, figure: impl Fn(&Level) -> u64) -> impl Fn(&Reading) -> u64 {
    move |reading| sum(reading.levels.iter().filter(|l| l.level == number).map(&figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_of_the_time_between() {
        let reading = |uptime_us, gets, gets_found| Reading {
            uptime_us,
            gets,
            gets_found,
            ..Reading::default()
        };
        let (first, second) = (reading(1_000_000, 100, 50), reading(3_000_000, 300, 200));
        let span = Span::new(Some(&first), &second);
        assert_eq!((span.rate(|r| r.gets), span.is_whole()), (100.0, false));
        assert_eq!(span.share(|r| r.gets_found, |r| r.gets), Some(0.75));
        assert_eq!(span.share(|r| r.gets_found, |r| r.seeks), None);
        let alone = Span::new(None, &first);
        assert_eq!((alone.rate(|r| r.gets), alone.is_whole()), (100.0, true));
        // Another process has opened the database since: it counts from 0.
        let reopened = Span::new(Some(&second), &first);
        assert_eq!((reopened.grown(|r| r.gets), reopened.is_whole()), (100, true));
    }

    #[test]
    fn what_a_database_writes_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let db = windrow::Db::open(dir.path()).unwrap();
        db.put("key", "value").unwrap();
        db.get("key").unwrap();
        db.flush().unwrap();
        let reading: Reading = serde_json::from_str(&db.stats().to_json()).unwrap();
        assert_eq!((reading.gets, reading.gets_found, reading.operations), (1, 1, 1));
        assert!(reading.uptime_us > 0 && reading.wal_bytes > 0 && reading.flushes == 1);
        assert!(reading.levels.iter().any(|of| of.run_files + of.log_files == 1));
        assert!(tables_written(&reading) > 0);
        assert_eq!(of_level(0, |of| of.written_bytes)(&reading), tables_written(&reading));
        assert!(reading.pauses.len() >= 4 && reading.pauses[0].reason == "memtables_full");
        let of = |name: &str| reading.latencies.iter().find(|latency| latency.of == name).cloned();
        assert!(of("get").is_some_and(|get| get.longest_ns >= get.p50_ns));
        assert_eq!(reading.memory.budget_bytes, db.stats().memory.budget_bytes);
        assert!(reading.memory.used_bytes() > 0);
    }
}
