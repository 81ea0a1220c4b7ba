//! The parts of a server that all connections share.
//!
//! Owns: the parts of the server. Never does: anything with them.

use crate::channels::Channels;
use crate::clock;
use crate::config::Config;
use crate::counters::Counters;
use crate::data::positions::Positions;
use crate::data::store::Store;
use crate::parameters::Parameters;
use crate::peer::Clients;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::sync::Notify;
use windrow::{Db, Result};

/// A server's parts.
#[derive(Debug)]
pub(crate) struct ServerParts {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) positions: Positions,
    pub(crate) clients: Clients,
    pub(crate) channels: Channels,
    pub(crate) counters: Counters,
    pub(crate) parameters: Parameters,
    /// The addresses that it listens on.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) since: Instant,
    /// Notified when a client asks the server to end.
    pub(crate) shutdown: Notify,
}

impl ServerParts {
    /// # Errors
    /// Those of making the keyspaces of values.
    pub(crate) fn new(
        db: Db,
        config: Config,
        addresses: Vec<SocketAddr>,
        commands: impl Iterator<Item = &'static str>,
    ) -> Result<ServerParts> {
        Ok(ServerParts {
            store: Store::new(db)?,
            positions: Positions::new(),
            clients: Clients::default(),
            channels: Channels::default(),
            counters: Counters::new(commands),
            parameters: Parameters::new(&config),
            addresses,
            config,
            since: clock::now(),
            shutdown: Notify::new(),
        })
    }
}
