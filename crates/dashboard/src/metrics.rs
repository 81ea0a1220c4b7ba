//! Statistics as metrics that Prometheus reads.
//!
//! Owns: their names, kinds and texts. Never does: count.

use std::fmt::Write;
use windrow::stats::Latency;
use windrow::{Db, Stats};

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count that only grows, until the process ends.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Quantiles, with their sum and count.
    Summary,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Summary => "summary",
        }
    }
}

/// A metric with its samples.
#[derive(Clone, Debug)]
struct Family {
    name: String,
    kind: Kind,
    help: String,
    samples: Vec<Sample>,
}

#[derive(Clone, Debug)]
struct Sample {
    /// The name of the metric, or that name with `_sum` or `_count` behind it.
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// Metrics, for the text format of Prometheus or, with the feature `metrics`, for the crate of that name.
///
/// ```
/// use windrow_dashboard::{Kind, Metrics};
/// let mut metrics = Metrics::default();
/// metrics.family("windrow_tables", Kind::Gauge, "Tables.");
/// metrics.sample("windrow_tables", &[("level", "1")], 7.0);
/// assert!(metrics.text().ends_with("windrow_tables{level=\"1\"} 7\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics(Vec<Family>);

impl Metrics {
    /// Begins a metric. Its samples follow.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let (name, help) = (name.to_owned(), help.to_owned());
        self.0.push(Family { name, kind, help, samples: Vec::new() });
    }

    /// Adds a sample of the metric that was begun last, with these names and values of labels. Its
    /// name is the metric's; of a summary also with `_sum` or `_count` behind it.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let own = |(label, of): &(&str, &str)| ((*label).to_owned(), (*of).to_owned());
        let labels = labels.iter().map(own).collect();
        if let Some(family) = self.0.last_mut() {
            family.samples.push(Sample { name: name.to_owned(), labels, value });
        }
    }

    /// Adds a metric with one sample.
    pub fn single(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Returns all metrics in the form that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Family { name, kind, help, samples } in &self.0 {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
            for sample in samples {
                text.push_str(&sample.name);
                for (at, (label, of)) in sample.labels.iter().enumerate() {
                    let begin = if at == 0 { '{' } else { ',' };
                    let of = of.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                    let _ = write!(text, "{begin}{label}=\"{of}\"");
                }
                let end = if sample.labels.is_empty() { "" } else { "}" };
                let _ = writeln!(text, "{end} {}", sample.value);
            }
        }
        text
    }

    /// Hands all metrics to the recorder of the crate `metrics`; each call refreshes them there.
    #[cfg(feature = "metrics")]
    pub fn record(&self) {
        for family in &self.0 {
            for sample in &family.samples {
                let labels: Vec<metrics::Label> = sample
                    .labels
                    .iter()
                    .map(|(label, of)| metrics::Label::new(label.clone(), of.clone()))
                    .collect();
                let name = sample.name.clone();
                // Counts of a summary only grow, and its sums are fractions of seconds.
                match family.kind {
                    Kind::Counter if sample.value.fract() == 0.0 => {
                        metrics::counter!(name, labels).absolute(sample.value as u64);
                    }
                    _ => metrics::gauge!(name, labels).set(sample.value),
                }
            }
        }
    }

    /// Returns the metrics of all that a database counts.
    pub fn of(db: &Db) -> Metrics {
        let stats = db.stats();
        let mut metrics = Metrics::default();
        metrics.family("windrow_build_info", Kind::Gauge, "The version of the library.");
        metrics.sample("windrow_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let is_off = f64::from(u8::from(db.write_error().is_some()));
        metrics.single("windrow_writes_off", Kind::Gauge, "Whether writes are off.", is_off);
        metrics.counters(&stats);
        metrics.gauges(&stats);
        metrics.levels(&stats);
        metrics.stalls(&stats);
        metrics.latencies(&stats);
        metrics.memory(&stats);
        metrics.keyspaces(&stats);
        metrics
    }

    fn counters(&mut self, stats: &Stats) {
        let counters: [(&str, &str, u64); 34] = [
            ("read_gets", "Keys looked up.", stats.gets),
            ("read_gets_found", "Keys that were there.", stats.gets_found),
            (
                "read_gets_memtable",
                "Keys that the active memtable answered.",
                stats.get_hits_memtable,
            ),
            ("read_gets_frozen", "Keys that a frozen memtable answered.", stats.get_hits_frozen),
            ("read_seeks", "Positionings of cursors and iterators.", stats.seeks),
            ("read_entries_scanned", "Entries that scans returned.", stats.entries_scanned),
            ("read_entries_skipped", "Entries that reads passed over.", stats.entries_skipped),
            (
                "read_tombstones_walked",
                "Deleted keys that scans walked over.",
                stats.tombstones_walked,
            ),
            (
                "read_gaps_skipped",
                "Ranges of deleted keys that scans went over at once.",
                stats.gaps_skipped,
            ),
            ("read_blocks", "Blocks read from files.", stats.blocks_read),
            ("read_blocks_bytes", "Bytes of blocks read from files.", stats.blocks_read_bytes),
            ("read_scan_blocks", "Blocks that scans read from files.", stats.scan_blocks_read),
            (
                "read_scan_blocks_bytes",
                "Bytes of blocks that scans read.",
                stats.scan_blocks_read_bytes,
            ),
            ("read_partitions", "Parts of indexes and filters read.", stats.partitions_read),
            ("read_partitions_bytes", "Bytes of those.", stats.partitions_read_bytes),
            ("cache_hits", "Blocks found in the cache.", stats.cache_hits),
            ("cache_misses", "Blocks not found there.", stats.cache_misses),
            ("filter_checks", "Filters asked.", stats.filter_checks),
            ("filter_negatives", "Filters that said no.", stats.filter_negatives),
            ("filter_false_positives", "Filters that were wrong.", stats.filter_false_positives),
            ("table_opens", "Tables opened.", stats.tables_opened),
            ("table_opens_bytes", "Bytes read to open tables.", stats.tables_opened_bytes),
            ("table_deletes", "Tables deleted.", stats.tables_deleted),
            ("write_batches", "Batches committed.", stats.batches),
            ("write_operations", "Operations in batches.", stats.operations),
            ("write_user_bytes", "Bytes of keys and values written.", stats.user_bytes),
            ("wal_bytes", "Bytes appended to write-ahead logs.", stats.wal_bytes),
            ("wal_syncs", "Times a write-ahead log was made durable.", stats.wal_syncs),
            ("flush_memtables", "Memtables flushed.", stats.flushes),
            ("merge_entries_in", "Entries that merges and flushes read.", stats.merge_entries_in),
            ("merge_entries_out", "Entries that they wrote.", stats.merge_entries_out),
            ("merge_chains", "Chains of merges that ended.", stats.chains.count),
            ("merge_chains_bytes", "Bytes that chains of merges wrote.", stats.chains.bytes),
            ("manifest_bytes", "Bytes appended to manifests.", stats.manifest_bytes),
        ];
        for (name, help, value) in counters {
            self.single(&format!("windrow_{name}_total"), Kind::Counter, help, value as f64);
        }
    }

    fn gauges(&mut self, stats: &Stats) {
        let gauges: [(&str, &str, f64); 6] = [
            ("wal_live_bytes", "Bytes of all write-ahead logs.", stats.wal_live_bytes as f64),
            ("read_snapshots_open", "Snapshots alive.", stats.readers_open as f64),
            (
                "changes_kept_bytes",
                "Bytes of logs that are kept for the feed of changes alone.",
                stats.changes_bytes as f64,
            ),
            ("files_waiting", "Files not needed and not removed yet.", stats.files_waiting as f64),
            (
                "write_amplification_ratio",
                "Bytes written for each byte of users.",
                stats.write_amplification(),
            ),
            ("uptime_seconds", "Time since the database was opened.", stats.uptime_us as f64 / 1e6),
        ];
        for (name, help, value) in gauges {
            self.single(&format!("windrow_{name}"), Kind::Gauge, help, value);
        }
    }

    fn levels(&mut self, stats: &Stats) {
        self.family("windrow_level_tables", Kind::Gauge, "Tables of a level, by part.");
        for level in &stats.levels {
            let number = level.level.to_string();
            for (part, count) in
                [("run", level.shape.run_files), ("sst_log", level.shape.log_files)]
            {
                let labels = [("level", number.as_str()), ("part", part)];
                self.sample("windrow_level_tables", &labels, count as f64);
            }
        }
        self.family("windrow_level_bytes", Kind::Gauge, "Bytes of a level's tables.");
        for level in &stats.levels {
            let number = level.level.to_string();
            self.sample("windrow_level_bytes", &[("level", &number)], level.shape.bytes as f64);
        }
        type OfLevel = fn(&windrow::stats::LevelStats) -> u64;
        let counters: [(&str, &str, OfLevel); 6] = [
            ("read_bytes", "Bytes that merges into a level read.", |level| level.read_bytes),
            ("written_bytes", "Bytes that merges wrote to a level.", |level| level.written_bytes),
            ("merges", "Merges into a level, flushes for level 0.", |level| level.merges),
            ("moves", "Tables moved to a level without being read.", |level| level.moves),
            ("drops", "Tables dropped from a level without being read.", |level| level.drops),
            ("get_hits", "Lookups that a level answered.", |level| level.get_hits),
        ];
        for (name, help, of) in counters {
            let name = format!("windrow_level_{name}_total");
            self.family(&name, Kind::Counter, help);
            for level in &stats.levels {
                self.sample(&name, &[("level", &level.level.to_string())], of(level) as f64);
            }
        }
    }

    fn stalls(&mut self, stats: &Stats) {
        self.family(
            "windrow_stall_seconds_total",
            Kind::Counter,
            "Time that writers waited, by cause.",
        );
        for pause in &stats.pauses {
            let seconds = pause.total_us as f64 / 1e6;
            self.sample(
                "windrow_stall_seconds_total",
                &[("cause", pause.reason.as_str())],
                seconds,
            );
        }
        self.family("windrow_stalls_total", Kind::Counter, "Times that a writer waited, by cause.");
        for pause in &stats.pauses {
            self.sample(
                "windrow_stalls_total",
                &[("cause", pause.reason.as_str())],
                pause.count as f64,
            );
        }
    }

    fn latencies(&mut self, stats: &Stats) {
        const NAME: &str = "windrow_operation_seconds";
        self.family(
            NAME,
            Kind::Summary,
            "Time that operations took since the open; one in 64 is timed.",
        );
        for (op, latency) in stats.latencies.iter() {
            for (quantile, percent) in [("0.5", 50.0), ("0.99", 99.0), ("0.999", 99.9)] {
                if let Some(time) = Latency::percentile(latency, percent) {
                    self.sample(NAME, &[("op", op), ("quantile", quantile)], time.as_secs_f64());
                }
            }
            let mean = latency.mean().map_or(0.0, |mean| mean.as_secs_f64());
            let count = latency.count() as f64;
            self.sample(&format!("{NAME}_sum"), &[("op", op)], mean * count);
            self.sample(&format!("{NAME}_count"), &[("op", op)], count);
        }
    }

    fn memory(&mut self, stats: &Stats) {
        let memory = &stats.memory;
        let budget = memory.budget_bytes as f64;
        self.single("windrow_memory_budget_bytes", Kind::Gauge, "The option memory_bytes.", budget);
        self.family("windrow_memory_bytes", Kind::Gauge, "Memory in use, by part.");
        for (part, bytes) in [
            ("memtables", memory.memtables_bytes),
            ("cache", memory.cache_bytes),
            ("readers", memory.readers_bytes),
            ("tables", memory.tables_bytes),
            ("merges", memory.merge_bytes),
            ("transactions", memory.transactions_bytes),
            ("outside", memory.outside_bytes),
        ] {
            self.sample("windrow_memory_bytes", &[("part", part)], bytes as f64);
        }
    }

    fn keyspaces(&mut self, stats: &Stats) {
        self.family("windrow_keyspace_bytes", Kind::Gauge, "Bytes of a keyspace's tables.");
        for keyspace in &stats.keyspaces {
            let bytes: u64 = keyspace.levels.iter().map(|level| level.bytes).sum();
            self.sample("windrow_keyspace_bytes", &[("keyspace", &keyspace.name)], bytes as f64);
        }
        self.family(
            "windrow_keyspace_memtables_bytes",
            Kind::Gauge,
            "Bytes of a keyspace's memtables.",
        );
        for keyspace in &stats.keyspaces {
            let labels = [("keyspace", keyspace.name.as_str())];
            self.sample(
                "windrow_keyspace_memtables_bytes",
                &labels,
                keyspace.memtables_bytes as f64,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_end_their_line() {
        let mut metrics = Metrics::default();
        metrics.family("windrow_x", Kind::Gauge, "X.");
        metrics.sample("windrow_x", &[("a", "1\n\"\\"), ("b", "2")], 0.5);
        let text = metrics.text();
        assert_eq!(text.lines().nth(2), Some("windrow_x{a=\"1\\n\\\"\\\\\",b=\"2\"} 0.5"));
    }

    #[test]
    fn every_counter_of_the_statistics_is_a_metric() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("a", "1").unwrap();
        let metrics = Metrics::of(&db);
        let text = metrics.text();
        for family in &metrics.0 {
            let is_total = family.name.ends_with("_total");
            assert_eq!(is_total, family.kind == Kind::Counter, "{}", family.name);
            assert!(family.name.starts_with("windrow_") && family.help.ends_with('.'));
        }
        assert!(text.contains("windrow_write_operations_total 1\n"), "{text}");
        metrics.record();
    }
}
