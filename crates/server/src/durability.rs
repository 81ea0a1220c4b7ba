//! The moment at which writes are on the device.
//!
//! Owns: the thread that syncs, once for all clients that wait at the same moment. Never does:
//! write.

#![allow(clippy::disallowed_methods, reason = "the server has one thread of its own")]

use crate::config::Durability;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use windrow::Db;

type Synced = Result<(), String>;

/// Makes writes durable as the settings say.
#[derive(Debug)]
pub(crate) struct Syncer {
    durability: Durability,
    inner: Arc<DurabilityInner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct DurabilityInner {
    db: Db,
    state: Mutex<State>,
    changed: Condvar,
    /// Whether something was written since the last sync.
    is_dirty: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<oneshot::Sender<Synced>>,
    is_stopped: bool,
}

impl Syncer {
    /// # Errors
    /// The system's, if it starts no thread.
    pub(crate) fn start(db: Db, durability: Durability) -> std::io::Result<Syncer> {
        let inner = Arc::new(DurabilityInner {
            db,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            is_dirty: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&inner);
        let every = (durability == Durability::EverySecond).then_some(Duration::from_secs(1));
        let thread = std::thread::Builder::new()
            .name("windrow-sync".to_owned())
            .spawn(move || of_thread.run(every))?;
        Ok(Syncer { durability, inner, thread: Mutex::new(Some(thread)) })
    }

    /// Waits until all writes before it are as durable as a reply promises.
    ///
    /// # Errors
    /// Those of the sync, as text.
    pub(crate) async fn settle(&self) -> Synced {
        match self.durability {
            Durability::No => Ok(()),
            Durability::EverySecond => {
                self.inner.is_dirty.store(true, Ordering::Release);
                Ok(())
            }
            Durability::Always => {
                let (sender, receiver) = oneshot::channel();
                {
                    let mut state = self.inner.state.lock();
                    if state.is_stopped {
                        return Err("the server is ending".to_owned());
                    }
                    state.waiting.push(sender);
                }
                self.inner.changed.notify_one();
                receiver.await.unwrap_or_else(|_| Err("the server is ending".to_owned()))
            }
        }
    }

    /// Syncs a last time and ends the thread.
    pub(crate) fn stop(&self) {
        self.inner.state.lock().is_stopped = true;
        self.inner.changed.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread has been reported already, and the database is synced when it
            // closes.
            let _ = thread.join();
        }
    }
}

impl DurabilityInner {
    fn run(&self, every: Option<Duration>) {
        loop {
            let (waiting, is_stopped) = self.next(every);
            let is_due = !waiting.is_empty() || self.is_dirty.swap(false, Ordering::AcqRel);
            if is_due {
                // Writes that come meanwhile are in the next sync.
                let synced = self.db.sync().map_err(|error| error.to_string());
                if let Err(error) = &synced {
                    tracing::error!(error, "the write-ahead log cannot be synced");
                }
                if synced.is_err() && waiting.is_empty() {
                    self.is_dirty.store(true, Ordering::Release);
                }
                for sender in waiting {
                    // A client that has disconnected no longer waits.
                    let _ = sender.send(synced.clone());
                }
            }
            if is_stopped {
                return;
            }
        }
    }

    /// Waits until a sync may be due; returns the clients that wait for it, and whether it is the
    /// last.
    fn next(&self, every: Option<Duration>) -> (Vec<oneshot::Sender<Synced>>, bool) {
        let mut state = self.state.lock();
        match every {
            Some(every) if !state.is_stopped => {
                self.changed.wait_for(&mut state, every);
            }
            _ => {
                while state.waiting.is_empty() && !state.is_stopped {
                    self.changed.wait(&mut state);
                }
            }
        }
        (std::mem::take(&mut state.waiting), state.is_stopped)
    }
}
