//! What the kernel and the store say before and after a phase.
//!
//! Owns: the figures that come of the difference. Never does: run anything.

use crate::process::{self, Stopwatch, Traffic, mib};
use crate::store::{Counters, Store};
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

/// What clients did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) ops: u64,
    pub(super) written_bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) is_read_only: bool,
    pub(super) is_synced: bool,
}

impl Meter {
    /// From here on; peak memory too.
    pub(super) fn start(store: &dyn Store) -> Meter {
        process::reset_peak_rss();
        Meter {
            counters: store.counters(),
            traffic: Traffic::now(),
            cpu_s: process::cpu_s(),
            watch: Stopwatch::start(),
        }
    }

    /// Seconds since the start, or since the last lap.
    pub(super) fn lap_s(&mut self) -> f64 {
        self.watch.lap().as_secs_f64()
    }

    /// Sets what came of it.
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
        set("device_read_mib", mib(traffic.read_bytes));
        set("device_written_mib", mib(traffic.written_bytes));
        if done.written_bytes > 0 {
            set("user_written_mib", mib(done.written_bytes));
            set("write_amplification", each(traffic.written_bytes, done.written_bytes));
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
    }
}

/// What the store's own counts come to, as far as it keeps them.
fn told(old: Counters, new: Counters) -> Vec<(&'static str, f64)> {
    let since = |of: fn(&Counters) -> Option<u64>| of(&new)?.checked_sub(of(&old)?);
    let mut told = Vec::new();
    let gets = since(|c| c.gets).filter(|gets| *gets > 0);
    for (name, count) in [
        ("blocks_per_get", since(|c| c.blocks)),
        ("blocks_read_per_get", since(|c| c.blocks_read)),
        ("false_positives_per_get", since(|c| c.filter_false_positives)),
    ] {
        if let (Some(gets), Some(count)) = (gets, count) {
            told.push((name, count as f64 / gets as f64));
        }
    }
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

/// Sets the size of the database, and its share of `live_bytes` if that is known.
pub(super) fn size(dir: &Path, live_bytes: Option<f64>, figures: &mut Figures) {
    let bytes = process::disk_bytes(dir);
    figures.insert("disk_mib".to_owned(), mib(bytes));
    if let Some(live) = live_bytes.filter(|live| *live > 0.0) {
        figures.insert("space_amplification".to_owned(), bytes as f64 / live);
    }
}
