//! The server without sockets, and a model of it: for tests and fuzzers.
//!
//! Owns: the checks for any bytes and any sessions. Never does: serve.

pub mod model;
pub mod reply;

mod requests;
mod sessions;

pub use requests::check_requests;
pub use sessions::{check_commands, check_session};
