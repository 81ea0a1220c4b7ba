//! The messages to the page, once a second.
//!
//! Owns: the changes since the last time. Never does: send.

use crate::Events;
use crate::trees::trees;
use serde_json::{Value, json};
use std::sync::Arc;
use windrow::Db;
use windrow::stats::Latencies;

/// One message of the stream: its name and its data.
pub(crate) type Message = (&'static str, Arc<str>);

/// The stream of one database.
pub(crate) struct Feed {
    db: Db,
    events: Arc<Events>,
    /// The number of the next event to send.
    next: u64,
    latencies: Latencies,
    tree: Option<Arc<str>>,
}

impl Feed {
    pub(crate) fn new(db: Db, events: Arc<Events>) -> Feed {
        Feed { db, events, next: 0, latencies: Latencies::default(), tree: None }
    }

    /// Returns the whole state, with the last events, for a page that has just
    /// been opened.
    pub(crate) fn whole(&self) -> Vec<Message> {
        let (path, keyspaces) = (json!(self.db.path().display().to_string()), trees(&self.db));
        let (events, _) = self.events.since(0);
        let tick = self.tick(events, &json!({}));
        vec![("path", text(&path)), ("tree", text(&keyspaces)), ("tick", text(&tick))]
    }

    /// Returns the changes since the last step: the tree only if it has
    /// changed.
    pub(crate) fn step(&mut self) -> Vec<Message> {
        let (events, next) = self.events.since(self.next);
        self.next = next;
        let latencies = self.db.stats().latencies;
        let p99: serde_json::Map<String, Value> = latencies
            .since(&self.latencies)
            .iter()
            .map(|(op, of)| {
                (op.to_owned(), json!(of.percentile(99.0).map(|time| time.as_nanos() as u64)))
            })
            .collect();
        self.latencies = latencies;
        let mut messages = Vec::new();
        let tree = text(&trees(&self.db));
        if self.tree.as_ref() != Some(&tree) {
            self.tree = Some(Arc::clone(&tree));
            messages.push(("tree", tree));
        }
        messages.push(("tick", text(&self.tick(events, &json!(p99)))));
        messages
    }

    fn tick(&self, events: Vec<Value>, p99: &Value) -> Value {
        let stats: Value = serde_json::from_str(&self.db.stats().to_json()).unwrap_or_default();
        json!({
            "stats": stats,
            "p99_ns": p99,
            "events": events,
            "running": self.events.running(),
            "write_error": self.db.write_error().map(|error| error.to_string()),
        })
    }
}

fn text(value: &Value) -> Arc<str> {
    value.to_string().into()
}
