//! Counts of a database's work in the background, from its events: the engine's statistics have no times of flushes
//! and merges, and Kafka's users know metrics of these.
//!
//! Owns: the counts. Never does: pass an event on before it is counted.

use crate::callbacks::JavaListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Event, EventListener};

/// Jobs of one kind.
#[derive(Default)]
struct Jobs {
    begun: AtomicU64,
    ended: AtomicU64,
    total_us: AtomicU64,
    max_us: AtomicU64,
    /// The duration of the shortest job plus 1; 0 before the first job ends.
    min_us_and_1: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
}

impl Jobs {
    fn begin(&self, bytes: u64) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn end(&self, us: u64, bytes: u64) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(us, Ordering::Relaxed);
        self.max_us.fetch_max(us, Ordering::Relaxed);
        let _ = self.min_us_and_1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |min| {
            (min == 0 || us < min).then_some(us + 1)
        });
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn rows(&self, kind: &str, rows: &mut Vec<String>) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let ended = get(&self.ended);
        for (name, value) in [
            ("count", ended),
            ("running", get(&self.begun).saturating_sub(ended)),
            ("total_us", get(&self.total_us)),
            ("max_us", get(&self.max_us)),
            ("min_us", get(&self.min_us_and_1).saturating_sub(1)),
            ("read_bytes", get(&self.read_bytes)),
            ("written_bytes", get(&self.written_bytes)),
        ] {
            rows.extend([format!("work.{kind}.{name}"), value.to_string()]);
        }
    }
}

/// The work of one database, and the Java listener that receives the events after it.
#[derive(Default)]
pub(crate) struct Work {
    flushes: Jobs,
    merges: Jobs,
    errors: AtomicU64,
    listener: OnceLock<JavaListener>,
}

impl Work {
    pub(crate) fn set_listener(&self, listener: JavaListener) {
        // The options in Java hold one listener at most.
        let _ = self.listener.set(listener);
    }

    /// Appends alternating names and numbers.
    pub(crate) fn rows(&self, rows: &mut Vec<String>) {
        self.flushes.rows("flush", rows);
        self.merges.rows("merge", rows);
        let errors = self.errors.load(Ordering::Relaxed);
        rows.extend(["work.errors".to_owned(), errors.to_string()]);
    }
}

impl EventListener for Work {
    fn on_event(&self, event: &Event) {
        match event {
            Event::FlushBegin { memtable_bytes, .. } => self.flushes.begin(*memtable_bytes),
            Event::FlushEnd { duration_us, written_bytes, .. } => {
                self.flushes.end(*duration_us, *written_bytes);
            }
            Event::MergeBegin { input_bytes, .. } => self.merges.begin(*input_bytes),
            Event::MergeEnd { duration_us, written_bytes, .. } => {
                self.merges.end(*duration_us, *written_bytes);
            }
            Event::BackgroundError { .. } | Event::CorruptionFound { .. } => {
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        if let Some(listener) = self.listener.get() {
            listener.on_event(event);
        }
    }
}
