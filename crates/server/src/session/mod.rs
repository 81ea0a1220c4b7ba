//! Connections: a client's bytes become commands, and their replies are sent.
//!
//! Owns: the order of both. Never does: know the effect of a command.

pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod execute;
