//! The counters of a server, for programs.
//!
//! Owns: the names of the numbers. Never does: count.

use crate::counters::CommandStats;
use crate::session::dispatch::SessionServer as Served;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The counters of a server since it was started or `CONFIG RESETSTAT`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Clients that are connected.
    pub clients: u64,
    /// Clients that wait for a list, a sorted set or a stream.
    pub clients_waiting: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were refused, since there were too many.
    pub connections_refused: u64,
    /// Requests that were answered by an error.
    pub errors: u64,
    /// Collections that expired and were deleted.
    pub expired: u64,
    /// Bytes of requests and replies under way.
    pub buffer_bytes: u64,
    /// The counters of each command that was called.
    pub commands: Vec<CommandStats>,
}

/// Reads the counters of a server; it may be kept for longer than the server runs.
#[derive(Clone)]
pub struct Watch(Arc<Served>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(served: &Arc<Served>) -> Watch {
        Watch(Arc::clone(served))
    }

    /// Returns the counters as they are now.
    pub fn stats(&self) -> ServerStats {
        let (shared, counters) = (&self.0.shared, &self.0.shared.counters);
        let commands = counters.commands().into_iter().filter(|(_, of)| of.calls() > 0);
        ServerStats {
            clients: shared.clients.len() as u64,
            clients_waiting: shared.store.waiting.len() as u64,
            connections: counters.connections.load(Ordering::Relaxed),
            connections_refused: counters.connections_refused.load(Ordering::Relaxed),
            errors: counters.errors.load(Ordering::Relaxed),
            expired: counters.expired.load(Ordering::Relaxed),
            buffer_bytes: counters.buffer_bytes.load(Ordering::Relaxed) as u64,
            commands: commands.map(|(name, of)| of.stats(name)).collect(),
        }
    }
}
