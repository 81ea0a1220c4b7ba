//! The counts of the kernel and the store before and after a phase.
//!
//! Owns: the figures from their differences. Never does: run anything.

use super::disk::Sizes;
use crate::latency::{ByKind, Latencies};
use crate::process::{self, Stopwatch, Traffic, mib};
use crate::store::{Counters, Store, Tree};
use std::collections::BTreeMap;
use std::path::Path;

/// Figures by name, units in the names.
pub(super) type Figures = BTreeMap<String, f64>;

/// A measurement that has begun.
pub(super) struct Meter {
    counters: Counters,
    traffic: Traffic,
    cpu_s: f64,
    watch: Stopwatch,
}

/// The work that clients did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) ops: u64,
    pub(super) written_bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) is_read_only: bool,
    pub(super) is_synced: bool,
}

impl Meter {
    /// Starts to measure, and resets the peak of memory.
    pub(super) fn start(store: &dyn Store) -> Meter {
        process::reset_peak_rss();
        Meter {
            counters: store.counters(),
            traffic: Traffic::now(),
            cpu_s: process::cpu_s(),
            watch: Stopwatch::start(),
        }
    }

    /// Returns the seconds since the start, or since the last lap.
    pub(super) fn lap_s(&mut self) -> f64 {
        self.watch.lap().as_secs_f64()
    }

    /// Sets the figures of the time since the start.
    pub(super) fn stop(&self, store: &dyn Store, done: Done, figures: &mut Figures) {
        let mut set = |name: &str, value: f64| {
            figures.insert(name.to_owned(), value);
        };
        let each = |sum: u64, of: u64| sum as f64 / of.max(1) as f64;
        let cpu_s = process::cpu_s() - self.cpu_s;
        let traffic = Traffic::now().since(self.traffic);
        set("cpu_s", cpu_s);
        set("cpu_us_per_op", cpu_s * 1e6 / done.ops.max(1) as f64);
        set("peak_rss_mib", mib(process::peak_rss_bytes()));
        set("peak_anonymous_mib", mib(process::peak_anonymous_bytes()));
        set("device_read_mib", mib(traffic.read_bytes));
        set("device_written_mib", mib(traffic.written_bytes));
        set("device_mib", mib(traffic.read_bytes + traffic.written_bytes));
        if done.written_bytes > 0 {
            set("user_written_mib", mib(done.written_bytes));
            set("write_amplification", each(traffic.written_bytes, done.written_bytes));
            let both = traffic.read_bytes + traffic.written_bytes;
            set("io_amplification", each(both, done.written_bytes));
        }
        if done.is_read_only && done.read_bytes > 0 {
            set("read_amplification", each(traffic.read_bytes, done.read_bytes));
        }
        if done.is_read_only {
            set("device_read_kib_per_op", each(traffic.read_bytes, done.ops) / 1024.0);
        }
        if done.is_synced {
            set("device_written_kib_per_op", each(traffic.written_bytes, done.ops) / 1024.0);
        }
        for (name, value) in told(self.counters, store.counters()) {
            set(name, value);
        }
        for (level, bytes) in by_level(self.counters, store.counters()) {
            set(&format!("level{level}_written_mib"), mib(bytes));
        }
    }
}

/// Returns the figures from the store's own counts, as far as it keeps them.
fn told(old: Counters, new: Counters) -> Vec<(&'static str, f64)> {
    let since = |of: fn(&Counters) -> Option<u64>| of(&new)?.checked_sub(of(&old)?);
    let mut told = Vec::new();
    let gets = since(|c| c.gets).filter(|gets| *gets > 0);
    for (name, count) in [
        ("blocks_per_get", since(|c| c.blocks)),
        ("blocks_read_per_get", since(|c| c.blocks_read)),
        ("false_positives_per_get", since(|c| c.filter_false_positives)),
        ("level1_hits_per_get", since(|c| c.level1_hits)),
    ] {
        if let (Some(gets), Some(count)) = (gets, count) {
            told.push((name, count as f64 / gets as f64));
        }
    }
    // A get that finds its key in a table needs one block; each further block was searched in vain.
    // Level 0 and SST-logs are included.
    let wasted = since(|c| c.blocks).zip(since(|c| c.gets_of_tables));
    if let (Some(gets), Some((blocks, found))) = (gets, wasted) {
        told.push(("wasted_blocks_per_get", blocks.saturating_sub(found) as f64 / gets as f64));
    }
    for (name, count) in [
        ("compactions", since(|c| c.merges)),
        ("involved_files", since(|c| c.merged_files)),
        ("moves", since(|c| c.moves)),
        ("pauses", since(|c| c.pauses)),
    ] {
        told.extend(count.map(|count| (name, count as f64)));
    }
    told.extend(since(|c| c.wal_bytes).map(|bytes| ("wal_mib", mib(bytes))));
    if let Some(us) = since(|c| c.paused_us) {
        told.push(("paused_s", us as f64 / 1e6));
    }
    if let (Some(tables), Some(user)) =
        (since(|c| c.tables_written_bytes), since(|c| c.user_bytes).filter(|user| *user > 0))
    {
        told.push(("tables_write_amplification", tables as f64 / user as f64));
    }
    told
}

/// Returns the bytes that each level has got since, for the levels that got any.
fn by_level(old: Counters, new: Counters) -> Vec<(usize, u64)> {
    let Some((old, new)) = old.level_written_bytes.zip(new.level_written_bytes) else {
        return Vec::new();
    };
    let since = old.into_iter().zip(new).map(|(old, new)| new.saturating_sub(old));
    since.enumerate().filter(|(_, bytes)| *bytes > 0).collect()
}

/// Sets the mean of all reads together, whatever their kind.
pub(super) fn reads(latencies: &ByKind, figures: &mut Figures) {
    let reads = latencies.iter().filter(|(kind, _)| !kind.writes());
    let sum = |(s, count), (_, l): (_, &Latencies)| (s + l.sum_s(), count + l.count());
    if let (read_s, reads @ 1..) = reads.fold((0.0, 0), sum) {
        figures.insert("read_us_mean".to_owned(), read_s * 1e6 / reads as f64);
    }
}

/// Sets the shape of the tree, as far as the store tells it. Chains are those of all merges since
/// it was opened.
pub(super) fn tree(tree: Tree, figures: &mut Figures) {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    for (name, value) in [
        ("levels", tree.levels),
        ("runs", tree.runs),
        ("files", count(tree.files)),
        ("log_files", count(tree.log_files)),
        ("tree_mib", tree.bytes.map(mib)),
        ("chain_mib_p50", tree.chain_bytes.map(|(p50, _)| mib(p50))),
        ("chain_mib_p99", tree.chain_bytes.map(|(_, p99)| mib(p99))),
        ("chain_levels", count(tree.chain_levels)),
        ("filter_bits_per_key", tree.filter_bits_per_key),
        ("open_tables_mib", tree.open_tables_bytes.map(mib)),
    ] {
        if let Some(value) = value {
            figures.insert(name.to_owned(), value);
        }
    }
}

/// Sets the disk space of the database while `live_bytes` of it were overwritten: the mean, and the
/// most.
pub(super) fn while_writing(seen: Sizes, live_bytes: f64, figures: &mut Figures) {
    for (name, bytes) in [("", seen.mean()), ("_max", seen.most as f64)] {
        figures.insert(format!("space_while_writing{name}"), bytes / live_bytes);
    }
}

/// Sets the number of the database's files that are open.
pub(super) fn open_files(dir: &Path, figures: &mut Figures) {
    let count = process::open_files(dir).map(|count| count as f64);
    figures.extend(count.map(|count| ("open_files".to_owned(), count)));
}

/// Sets the size of the database, and its share of `live_bytes` if that is known.
pub(super) fn size(dir: &Path, live_bytes: Option<f64>, figures: &mut Figures) {
    let bytes = process::disk_bytes(dir);
    figures.insert("disk_mib".to_owned(), mib(bytes));
    if let Some(live) = live_bytes.filter(|live| *live > 0.0) {
        figures.insert("space_amplification".to_owned(), bytes as f64 / live);
    }
}
