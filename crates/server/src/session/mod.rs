//! Connections: what a client sends becomes commands, and their replies are sent.
//!
//! Owns: the order of both. Never does: know what a command does.

pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod execute;
