//! A client, apart from its socket.
//!
//! Owns: what its earlier commands mean for its later ones. Never does: read or write a socket.

use crate::channels::{Inbox, Outlet, mailbox};
use crate::data::waiting::Served;
use crate::data::watched::Written;
use crate::peer::Peer;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Which replies a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    #[default]
    All,
    None,
    /// None to the command at hand.
    NoneOnce,
    /// None to the next one.
    NoneNext,
}

/// Commands between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    pub(crate) bytes: usize,
    /// One of them was refused: `EXEC` will be, too.
    pub(crate) is_refused: bool,
}

/// A command that found nothing, and waits.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// The keys that it waits for.
    pub(crate) keys: Vec<Vec<u8>>,
    /// For how long; `None`: for ever.
    pub(crate) time: Option<Duration>,
    /// At the end of its time it is told of a missing array, not of a missing byte string.
    pub(crate) is_array: bool,
    /// The arguments with which it is run again, where they are not those it came with.
    pub(crate) args: Option<Vec<Vec<u8>>>,
    /// One of its keys has something, and nothing for it: others who wait may find something.
    pub(crate) passes_on: bool,
}

/// A name that is kept takes so much beyond its own bytes.
pub(crate) const NAME_EXTRA_BYTES: usize = 128;

/// A client, for itself.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) peer: Arc<Peer>,
    /// Where its messages go.
    pub(crate) outlet: Outlet,
    /// The channels and the patterns that it subscribes to.
    pub(crate) channels: BTreeSet<Vec<u8>>,
    pub(crate) patterns: BTreeSet<Vec<u8>>,
    pub(crate) is_authenticated: bool,
    pub(crate) replies: Replies,
    /// The connection ends once its replies are sent.
    pub(crate) is_leaving: bool,
    pub(crate) queue: Option<Queue>,
    /// Clients that its writes serve: its reply is sent once they have been.
    pub(crate) served: Vec<Served>,
    /// Set by a command that is to be run again once there is something.
    pub(crate) blocked: Option<Blocked>,
    /// The command at hand is such a one, run again.
    pub(crate) is_woken: bool,
    /// Keys that are watched, with the deadline that each had.
    pub(crate) watching: Vec<(Vec<u8>, Option<u64>)>,
    /// Bytes of the keys that are watched and of the names that are subscribed to.
    pub(crate) names_bytes: usize,
    /// Set once one of them was written.
    pub(crate) written: Written,
}

impl Client {
    /// A client that has just connected, and where it finds its messages.
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

    /// Bytes that the server keeps for it between two commands.
    pub(crate) fn bytes(&self) -> usize {
        let queue = self.queue.as_ref().map_or(0, |queue| queue.bytes);
        queue + self.names_bytes + self.outlet.bytes()
    }

    /// Whether it has subscriptions.
    pub(crate) fn is_subscribed(&self) -> bool {
        !self.channels.is_empty() || !self.patterns.is_empty()
    }
}
