//! Clients as other clients see them: `CLIENT LIST`.
//!
//! Owns: their names and numbers, and the list of all. Never does: know a client's own state.

use crate::clock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// The part of a client that others see.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: u64,
    address: SocketAddr,
    local: SocketAddr,
    since: Instant,
    shown: Mutex<Shown>,
    /// Notified when the connection must end.
    pub(crate) end: Notify,
    pub(crate) wait: Wait,
}

/// A client's wait for a list, a sorted set or a stream, which others may end.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    is_waiting: AtomicBool,
    is_failed: AtomicBool,
    ended: Notify,
}

impl Wait {
    pub(crate) fn set(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::SeqCst);
    }

    /// Ends the wait, as if its time were over, or with an error; returns whether there was one.
    pub(crate) fn end(&self, fails: bool) -> bool {
        let was_waiting = self.is_waiting.swap(false, Ordering::SeqCst);
        if was_waiting {
            self.is_failed.store(fails, Ordering::SeqCst);
            self.ended.notify_one();
        }
        was_waiting
    }

    /// Waits until another client has ended it; returns whether with an error.
    pub(crate) async fn ended(&self) -> bool {
        self.ended.notified().await;
        self.is_failed.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
struct Shown {
    name: Vec<u8>,
    library: Vec<u8>,
    library_version: Vec<u8>,
    last_command: &'static str,
    last_used: Instant,
    version: u8,
}

impl Peer {
    pub(crate) fn name(&self) -> Vec<u8> {
        self.shown.lock().name.clone()
    }

    pub(crate) fn set_name(&self, name: &[u8]) {
        self.shown.lock().name = name.to_vec();
    }

    pub(crate) fn set_library(&self, name: &[u8]) {
        self.shown.lock().library = name.to_vec();
    }

    pub(crate) fn set_library_version(&self, version: &[u8]) {
        self.shown.lock().library_version = version.to_vec();
    }

    /// Notes the beginning of a command.
    pub(crate) fn note(&self, command: &'static str, version: u8) {
        let mut shown = self.shown.lock();
        (shown.last_command, shown.version) = (command, version);
        shown.last_used = clock::now();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a line of `CLIENT LIST`.
    pub(crate) fn line(&self) -> String {
        let shown = self.shown.lock();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut line = String::new();
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags=N db=0 sub=0 psub=0 ssub=0 \
             multi=-1 cmd={} user=default resp={} lib-name={} lib-ver={}",
            self.id,
            self.address,
            self.local,
            text(&shown.name),
            self.since.elapsed().as_secs(),
            shown.last_used.elapsed().as_secs(),
            shown.last_command,
            shown.version,
            text(&shown.library),
            text(&shown.library_version),
        );
        line
    }
}

/// All clients.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    next: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Peer>>>,
}

impl Clients {
    /// Adds a client that has just connected.
    pub(crate) fn add(&self, address: SocketAddr, local: SocketAddr) -> Arc<Peer> {
        let now = clock::now();
        let peer = Arc::new(Peer {
            id: self.next.fetch_add(1, Ordering::Relaxed) + 1,
            address,
            local,
            since: now,
            shown: Mutex::new(Shown {
                name: Vec::new(),
                library: Vec::new(),
                library_version: Vec::new(),
                last_command: "NULL",
                last_used: now,
                version: 2,
            }),
            end: Notify::new(),
            wait: Wait::default(),
        });
        self.all.lock().insert(peer.id, Arc::clone(&peer));
        peer
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// Returns all clients, by age.
    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.all.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }
}
