//! The server without sockets, and a model of it: for tests and fuzzers.
//!
//! Owns: what any bytes and any sessions are checked against. Never does: serve.

pub mod model;
pub mod reply;

mod requests;
mod sessions;

pub use requests::check_requests;
pub use sessions::{check_commands, check_session};
