//! A snapshot of the statistics for people (a table) and for programs (JSON).
//!
//! Owns: both forms. Never does: count, or derive a figure of its own.

use super::{Latency, LevelShape, MemoryStats, Stats, ratio};
use crate::units::human_bytes;
use std::fmt::{self, Write as _};
use std::time::Duration;

impl Stats {
    fn logs_to_json(&self, json: &mut Json) {
        json.number("wal_live_bytes", self.wal_live_bytes);
        json.number("changes_bytes", self.changes_bytes);
        json.number("changes_begin", self.changes_begin);
    }

    /// The snapshot as one JSON object: counters by their field's name,
    /// `levels`, `pauses`, `keyspaces` and `memory` as below them here.
    pub fn to_json(&self) -> String {
        let mut json = Json::default();
        json.open('{');
        for (name, value) in self.tickers() {
            json.number(name, value);
        }
        self.logs_to_json(&mut json);
        json.number("readers_open", self.readers_open);
        json.number("files_waiting", self.files_waiting);
        json.number("listener_panics", self.listener_panics);
        json.number("uptime_us", self.uptime_us);
        json.fraction("write_amplification", self.write_amplification());
        json.fraction("cache_hit_ratio", self.cache_hit_ratio());
        json.fraction("filter_false_positive_ratio", self.filter_false_positive_ratio());
        self.reads_to_json(&mut json);
        json.list("levels", &self.levels, |json, level| {
            json.number("level", level.level.into());
            json.shape(&level.shape);
            json.number("read_files", level.read_files);
            json.number("read_bytes", level.read_bytes);
            json.number("written_bytes", level.written_bytes);
            json.number("merges", level.merges);
            json.number("moves", level.moves);
            json.number("drops", level.drops);
            json.number("get_hits", level.get_hits);
        });
        json.list("pauses", &self.pauses, |json, pause| {
            json.string("reason", pause.reason.as_str());
            json.number("count", pause.count);
            json.number("total_us", pause.total_us);
            json.number("max_us", pause.max_us);
        });
        json.key("chains");
        json.open('{');
        json.number("count", self.chains.count);
        json.number("bytes", self.chains.bytes);
        json.number("bytes_p50", self.chains.bytes_p50);
        json.number("bytes_p99", self.chains.bytes_p99);
        json.number("bytes_max", self.chains.bytes_max);
        json.number("length_max", self.chains.length_max);
        json.close('}');
        json.list("keyspaces", &self.keyspaces, |json, keyspace| {
            json.string("name", &keyspace.name);
            json.string("policy", &keyspace.policy);
            json.string("measured_use", &keyspace.measured_use);
            json.number("memtables_bytes", keyspace.memtables_bytes);
            json.list("levels", &keyspace.levels, Json::shape);
            json.list("capacities", &keyspace.capacities, |json, bytes| {
                json.number("bytes", *bytes)
            });
            json.list("log_capacities", &keyspace.log_capacities, |json, bytes| {
                json.number("bytes", *bytes)
            });
            json.number("file_price_percent", keyspace.file_price_percent);
        });
        json.key("memory");
        json.open('{');
        json.number("budget_bytes", self.memory.budget_bytes);
        json.number("memtables_bytes", self.memory.memtables_bytes);
        json.number("cache_bytes", self.memory.cache_bytes);
        json.number("readers_bytes", self.memory.readers_bytes);
        json.number("tables_bytes", self.memory.tables_bytes);
        json.number("merge_bytes", self.memory.merge_bytes);
        json.number("transactions_bytes", self.memory.transactions_bytes);
        json.number("outside_bytes", self.memory.outside_bytes);
        json.close('}');
        json.close('}');
        json.out
    }

    fn reads_to_json(&self, json: &mut Json) {
        let ((get_reads, get_bytes), (seek_reads, seek_bytes)) =
            (self.reads_per_get(), self.reads_per_seek());
        json.fraction("blocks_read_per_get", get_reads);
        json.fraction("bytes_read_per_get", get_bytes);
        json.fraction("blocks_read_per_seek", seek_reads);
        json.fraction("bytes_read_per_seek", seek_bytes);
        let latencies: Vec<_> = self.latencies.iter().collect();
        json.list("latencies", &latencies, |json, (name, latency)| {
            json.string("of", name);
            json.number("count", latency.count());
            for (name, time) in times(latency) {
                json.number(&format!("{name}_ns"), time.map_or(0, |time| time.as_nanos() as u64));
            }
        });
    }

    fn fmt_levels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5} {:>5} {:>7} {:>11} {:>9} {:>9} {:>7} {:>11} {:>11} {:>6}",
            "level",
            "run",
            "SST-log",
            "bytes",
            "merges",
            "moves",
            "drops",
            "read",
            "written",
            "hits",
        )?;
        for level in &self.levels {
            writeln!(
                f,
                "{:>5} {:>5} {:>7} {:>11} {:>9} {:>9} {:>7} {:>11} {:>11} {:>5.1}%",
                level.level,
                level.shape.run_files,
                level.shape.log_files,
                human_bytes(level.shape.bytes),
                level.merges,
                level.moves,
                level.drops,
                human_bytes(level.read_bytes),
                human_bytes(level.written_bytes),
                100.0 * ratio(level.get_hits, self.gets_found),
            )?;
        }
        Ok(())
    }

    fn fmt_reads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "gets     {}, {} found ({} in the memtable, {} in frozen ones)",
            self.gets, self.gets_found, self.get_hits_memtable, self.get_hits_frozen,
        )?;
        writeln!(
            f,
            "scans    {} seeks, {} entries returned, {} passed over; {} deleted keys walked over, \
             {} gaps skipped",
            self.seeks,
            self.entries_scanned,
            self.entries_skipped,
            self.tombstones_walked,
            self.gaps_skipped,
        )?;
        writeln!(
            f,
            "blocks   {} read ({}), {:.1}% of look-ups cached",
            self.blocks_read,
            human_bytes(self.blocks_read_bytes),
            100.0 * self.cache_hit_ratio(),
        )?;
        writeln!(
            f,
            "tables   {} opened ({}), {} partitions of indexes and filters read ({})",
            self.tables_opened,
            human_bytes(self.tables_opened_bytes),
            self.partitions_read,
            human_bytes(self.partitions_read_bytes),
        )?;
        for (name, (reads, bytes)) in
            [("get ", self.reads_per_get()), ("seek", self.reads_per_seek())]
        {
            writeln!(f, "  {name}   {reads:.3} reads and {bytes:.0} bytes from files for each")?;
        }
        writeln!(
            f,
            "filters  {} asked, {} said no, {:.3}% false positives",
            self.filter_checks,
            self.filter_negatives,
            100.0 * self.filter_false_positive_ratio(),
        )?;
        Ok(())
    }

    /// In microseconds; kinds without a timed operation are left out.
    fn fmt_latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<15} {:>9}", "time, us", "timed")?;
        for (name, _) in times(&Latency::default()) {
            write!(f, " {name:>9}")?;
        }
        writeln!(f)?;
        for (name, latency) in self.latencies.iter().filter(|(_, latency)| latency.count() > 0) {
            write!(f, "{name:<15} {:>9}", latency.count())?;
            for (_, time) in times(latency) {
                write!(f, " {:>9.1}", time.unwrap_or_default().as_secs_f64() * 1e6)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn fmt_pauses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<15} {:>9} {:>11} {:>9}", "pause", "count", "total ms", "max ms")?;
        for pause in &self.pauses {
            writeln!(
                f,
                "{:<15} {:>9} {:>11.1} {:>9.1}",
                pause.reason.as_str(),
                pause.count,
                pause.total_us as f64 / 1e3,
                pause.max_us as f64 / 1e3,
            )?;
        }
        Ok(())
    }
}

/// The times that are shown, by name.
fn times(latency: &Latency) -> [(&'static str, Option<Duration>); 5] {
    [
        ("mean", latency.mean()),
        ("p50", latency.percentile(50.0)),
        ("p99", latency.percentile(99.0)),
        ("p99.9", latency.percentile(99.9)),
        ("longest", latency.longest()),
    ]
}

impl MemoryStats {
    fn fmt_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "memory   {} of {}: memtables {}, cache {}, readers {}, tables {}, merges {}, \
             transactions {}, the program {}",
            human_bytes(self.used_bytes()),
            human_bytes(self.budget_bytes),
            human_bytes(self.memtables_bytes),
            human_bytes(self.cache_bytes),
            human_bytes(self.readers_bytes),
            human_bytes(self.tables_bytes),
            human_bytes(self.merge_bytes),
            human_bytes(self.transactions_bytes),
            human_bytes(self.outside_bytes),
        )
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "writes   {} batches, {} operations, {} by users; {} to the log, {} syncs; \
             amplification {:.2}",
            self.batches,
            self.operations,
            human_bytes(self.user_bytes),
            human_bytes(self.wal_bytes),
            self.wal_syncs,
            self.write_amplification(),
        )?;
        self.fmt_reads(f)?;
        self.memory.fmt_line(f)?;
        writeln!(
            f,
            "chains   {} of merges out of level 0: p50 {}, p99 {}, most {} over {} levels",
            self.chains.count,
            human_bytes(self.chains.bytes_p50),
            human_bytes(self.chains.bytes_p99),
            human_bytes(self.chains.bytes_max),
            self.chains.length_max,
        )?;
        writeln!(
            f,
            "disk     tables {}, logs {}",
            human_bytes(self.tree_bytes()),
            human_bytes(self.wal_live_bytes),
        )?;
        for keyspace in &self.keyspaces {
            writeln!(f, "policy   {}: {}", keyspace.name, keyspace.policy)?;
            if !keyspace.measured_use.is_empty() {
                writeln!(f, "use      {}: {}", keyspace.name, keyspace.measured_use)?;
            }
        }
        writeln!(f)?;
        self.fmt_levels(f)?;
        writeln!(f)?;
        self.fmt_latencies(f)?;
        writeln!(f)?;
        self.fmt_pauses(f)
    }
}

/// Writes JSON: enough for the snapshot, which has no nulls and no booleans.
#[derive(Default)]
struct Json {
    out: String,
}

impl Json {
    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
    }

    fn comma(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                c if (c as u32) < 0x20 => {
                    let _ = write!(self.out, "\\u{:04x}", c as u32);
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.text(key);
        self.out.push(':');
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        let _ = write!(self.out, "{value}");
    }

    fn fraction(&mut self, key: &str, value: f64) {
        debug_assert!(value.is_finite());
        self.key(key);
        let _ = write!(self.out, "{value:.6}");
    }

    fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.text(value);
    }

    fn shape(&mut self, shape: &LevelShape) {
        self.number("run_files", shape.run_files);
        self.number("log_files", shape.log_files);
        self.number("bytes", shape.bytes);
    }

    fn list<T>(&mut self, key: &str, items: &[T], mut each: impl FnMut(&mut Json, &T)) {
        self.key(key);
        self.open('[');
        for item in items {
            self.comma();
            self.open('{');
            each(self, item);
            self.close('}');
        }
        self.close(']');
    }
}
