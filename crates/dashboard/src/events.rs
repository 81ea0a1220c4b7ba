//! The events of a database, as far as the page shows them.
//!
//! Owns: the last events, numbered, and the jobs under way. Never does: keep all events.

use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use windrow::env::{Clock, Env};
use windrow::inspect::JobId;
use windrow::{Event, EventListener};

/// The number of events that are kept.
const KEPT: usize = 200;
/// Shorter stalls are only counted: a writer may have thousands of them in a second.
const STALL_MIN_US: u64 = 10_000;

/// A listener that remembers the last events: give it to `Options::components.listener` before the
/// database is opened.
pub struct Events {
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
}

impl Default for Events {
    fn default() -> Events {
        Events { clock: Env::os(1).clock, inner: Mutex::default() }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// The number of the next event.
    next: u64,
    last: VecDeque<Value>,
    running: BTreeMap<JobId, String>,
}

impl EventListener for Events {
    fn on_event(&self, event: &Event) {
        match event {
            // Each merge makes many tables, and its end says how many.
            Event::TableCreated { .. } | Event::TableDeleted { .. } => return,
            Event::StallBegin { .. } => return,
            Event::StallEnd { duration_us, .. } if *duration_us < STALL_MIN_US => return,
            _ => {}
        }
        let (ms, text) = (self.clock.wall_ms(), event.to_string());
        let mut inner = self.inner.lock();
        match event {
            Event::FlushBegin { job, .. } | Event::MergeBegin { job, .. } => {
                inner.running.insert(*job, text.clone());
            }
            Event::FlushEnd { job, .. } | Event::MergeEnd { job, .. } => {
                inner.running.remove(job);
            }
            _ => {}
        }
        let number = inner.next;
        inner.next += 1;
        if inner.last.len() == KEPT {
            inner.last.pop_front();
        }
        let is_bad = matches!(
            event,
            Event::BackgroundError { .. }
                | Event::CorruptionFound { .. }
                | Event::RecordsLeftOut { .. }
                | Event::FlushEnd { error: Some(_), .. }
                | Event::MergeEnd { error: Some(_), .. }
        );
        inner.last.push_back(json!({ "number": number, "ms": ms, "text": text, "is_bad": is_bad }));
    }
}

impl Events {
    /// Returns the events from number `from` on, and the number of the next one.
    pub(crate) fn since(&self, from: u64) -> (Vec<Value>, u64) {
        let inner = self.inner.lock();
        let first = inner.next - inner.last.len() as u64;
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        (inner.last.iter().skip(skipped).cloned().collect(), inner.next)
    }

    /// Returns the jobs under way.
    pub(crate) fn running(&self) -> Vec<Value> {
        self.inner.lock().running.values().map(|text| json!({ "text": text })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_given_out_once_and_jobs_while_they_run() {
        let events = Events::default();
        let begin =
            Event::FlushBegin { job: 7, keyspace: "a".into(), entries: 1, memtable_bytes: 9 };
        events.on_event(&begin);
        assert_eq!(events.running().len(), 1);
        let (first, next) = events.since(0);
        assert_eq!((first.len(), next), (1, 1));
        for n in 0..3 * KEPT as u64 {
            events.on_event(&Event::Resumed { duration_us: n });
        }
        let (all, next) = events.since(next);
        assert_eq!((all.len(), next), (KEPT, 1 + 3 * KEPT as u64), "the oldest are gone");
        assert!(events.since(next).0.is_empty());
        let reason = windrow::stats::PauseReason::Debt;
        events.on_event(&Event::StallEnd { reason, duration_us: STALL_MIN_US - 1 });
        assert!(events.since(next).0.is_empty(), "a short stall");
        events.on_event(&Event::StallEnd { reason, duration_us: STALL_MIN_US });
        assert_eq!(events.since(next).0.len(), 1);
        let end = Event::FlushEnd {
            job: 7,
            keyspace: "a".into(),
            files: 1,
            written_bytes: 1,
            duration_us: 1,
            error: None,
        };
        events.on_event(&end);
        assert!(events.running().is_empty());
    }
}
