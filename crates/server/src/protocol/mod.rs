//! The protocol: requests and replies as bytes (RESP2 and RESP3).
//!
//! Owns: the two grammars and their limits. Never does: know a command.

pub(crate) mod inline;
pub(crate) mod number;
pub(crate) mod reply;
pub(crate) mod request;

pub(crate) use reply::{Dialect, Reply};
pub(crate) use request::{Limits, RequestParser};
