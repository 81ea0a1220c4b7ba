//! A client, apart from its socket.
//!
//! Owns: the state that its earlier commands leave for its later ones. Never does: read or write a
//! socket.

use crate::channels::{Inbox, Outlet, mailbox};
use crate::data::waiting_clients::Served;
use crate::data::watched_keys::Written;
use crate::peer::Peer;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The replies that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    #[default]
    All,
    None,
    /// None to the current command.
    NoneOnce,
    /// None to the next one.
    NoneNext,
}

/// Commands between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    pub(crate) bytes: usize,
    /// Whether one of them was refused: `EXEC` will be, too.
    pub(crate) is_refused: bool,
}

/// A command that found nothing, and waits.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// The keys that it waits for.
    pub(crate) keys: Vec<Vec<u8>>,
    /// The time that it waits; `None`: for ever.
    pub(crate) time: Option<Duration>,
    /// Whether the reply at the end of its time is a null array, not a null byte string.
    pub(crate) is_array: bool,
    /// The arguments with which it is run again, if they are not those that it came with.
    pub(crate) args: Option<Vec<Vec<u8>>>,
    /// Whether one of its keys may have something for the others who wait, though nothing for it.
    pub(crate) passes_on: bool,
}

/// The bytes that a kept name takes beyond its own.
pub(crate) const NAME_EXTRA_BYTES: usize = 128;

/// The private state of a client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) peer: Arc<Peer>,
    /// The sending end of its messages.
    pub(crate) outlet: Outlet,
    /// The channels and the patterns that it subscribes to.
    pub(crate) channels: BTreeSet<Vec<u8>>,
    pub(crate) patterns: BTreeSet<Vec<u8>>,
    pub(crate) is_authenticated: bool,
    pub(crate) replies: Replies,
    /// Whether the connection ends once its replies are sent.
    pub(crate) is_leaving: bool,
    pub(crate) queue: Option<Queue>,
    /// The clients that its writes serve: its reply is sent after theirs.
    pub(crate) served: Vec<Served>,
    /// Set by a command that must be run again once there is something.
    pub(crate) blocked: Option<Blocked>,
    /// Whether the current command is such a command, run again.
    pub(crate) is_woken: bool,
    /// The watched keys, each with the deadline that it had.
    pub(crate) watching: Vec<(Vec<u8>, Option<u64>)>,
    /// The bytes of the watched keys and of the names that are subscribed to.
    pub(crate) names_bytes: usize,
    /// Set once a watched key was written.
    pub(crate) written: Written,
}

impl Client {
    /// Makes a client that has just connected, and its inbox.
    pub(crate) fn new(peer: Arc<Peer>, is_authenticated: bool) -> (Client, Inbox) {
        let (outlet, inbox) = mailbox(&peer);
        let client = Client {
            peer,
            outlet,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            is_authenticated,
            replies: Replies::default(),
            is_leaving: false,
            queue: None,
            served: Vec::new(),
            blocked: None,
            is_woken: false,
            watching: Vec::new(),
            names_bytes: 0,
            written: Written::default(),
        };
        (client, inbox)
    }

    /// Returns the bytes that the server keeps for it between two commands.
    pub(crate) fn bytes(&self) -> usize {
        let queue = self.queue.as_ref().map_or(0, |queue| queue.bytes);
        queue + self.names_bytes + self.outlet.bytes()
    }

    /// Returns whether it has subscriptions.
    pub(crate) fn is_subscribed(&self) -> bool {
        !self.channels.is_empty() || !self.patterns.is_empty()
    }
}
