//! Channels that clients publish to and subscribe to.
//!
//! Owns: which clients get a message. Never does: keep one for a client that is not connected.

use crate::glob::Pattern;
use crate::peer::Peer;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A client with this many bytes of messages not taken is disconnected.
const INBOX_BYTES_MAX: usize = 32 << 20;

/// A message for one client.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The pattern that matched, if it came by one.
    pub(crate) pattern: Option<Arc<[u8]>>,
    pub(crate) channel: Arc<[u8]>,
    pub(crate) payload: Arc<[u8]>,
}

impl Message {
    fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + 128
    }
}

/// The sending end of a client's messages.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    sender: UnboundedSender<Message>,
    bytes: Arc<AtomicUsize>,
    peer: Arc<Peer>,
}

/// The client's end of its messages.
#[derive(Debug)]
pub(crate) struct Inbox {
    receiver: UnboundedReceiver<Message>,
    bytes: Arc<AtomicUsize>,
}

impl Inbox {
    /// Returns the next message; it waits for ever where none is sent.
    pub(crate) async fn next(&mut self) -> Message {
        match self.receiver.recv().await {
            Some(message) => self.taken(message),
            None => std::future::pending().await,
        }
    }

    /// Returns the next message, if there is one now.
    pub(crate) fn try_next(&mut self) -> Option<Message> {
        self.receiver.try_recv().ok().map(|message| self.taken(message))
    }

    fn taken(&self, message: Message) -> Message {
        self.bytes.fetch_sub(message.bytes(), Ordering::Relaxed);
        message
    }
}

/// Makes both ends of a client's messages.
pub(crate) fn mailbox(peer: &Arc<Peer>) -> (Outlet, Inbox) {
    let (sender, receiver) = unbounded_channel();
    let bytes = Arc::new(AtomicUsize::new(0));
    let outlet = Outlet { sender, bytes: Arc::clone(&bytes), peer: Arc::clone(peer) };
    (outlet, Inbox { receiver, bytes })
}

impl Outlet {
    /// Returns the bytes of messages that the client has not taken.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn send(&self, message: Message) {
        let bytes = message.bytes();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > INBOX_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.peer.end.notify_one();
            return;
        }
        // A client that has just disconnected needs none.
        let _ = self.sender.send(message);
    }
}

type Subscribers = HashMap<Vec<u8>, BTreeMap<u64, Outlet>>;

/// All subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    channels: Mutex<Subscribers>,
    patterns: Mutex<Subscribers>,
}

/// Whether a name is a channel's or a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    Channel,
    Pattern,
}

impl Channels {
    fn of(&self, kind: NameKind) -> &Mutex<Subscribers> {
        match kind {
            NameKind::Channel => &self.channels,
            NameKind::Pattern => &self.patterns,
        }
    }

    pub(crate) fn subscribe(&self, kind: NameKind, name: &[u8], outlet: &Outlet) {
        let mut all = self.of(kind).lock();
        all.entry(name.to_vec()).or_default().insert(outlet.peer.id, outlet.clone());
    }

    pub(crate) fn unsubscribe(&self, kind: NameKind, name: &[u8], client: u64) {
        let mut all = self.of(kind).lock();
        if let Some(of_name) = all.get_mut(name) {
            of_name.remove(&client);
            if of_name.is_empty() {
                all.remove(name);
            }
        }
    }

    /// Sends a message; returns the number of clients that get it.
    pub(crate) fn publish(&self, channel: &[u8], payload: &[u8]) -> usize {
        let (name, payload): (Arc<[u8]>, Arc<[u8]>) = (channel.into(), payload.into());
        let message = Message { pattern: None, channel: name, payload };
        let mut receivers = 0;
        for outlet in self.channels.lock().get(channel).into_iter().flat_map(BTreeMap::values) {
            outlet.send(message.clone());
            receivers += 1;
        }
        for (pattern, outlets) in &*self.patterns.lock() {
            if Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(channel)) {
                let message = Message { pattern: Some((&pattern[..]).into()), ..message.clone() };
                outlets.values().for_each(|outlet| outlet.send(message.clone()));
                receivers += outlets.len();
            }
        }
        receivers
    }

    /// Returns the names of channels that have subscribers.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let mut names: Vec<_> = self.channels.lock().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the number of subscribers of a channel.
    pub(crate) fn len_of(&self, channel: &[u8]) -> usize {
        self.channels.lock().get(channel).map_or(0, BTreeMap::len)
    }

    /// Returns the number of patterns.
    pub(crate) fn patterns_len(&self) -> usize {
        self.patterns.lock().len()
    }
}
