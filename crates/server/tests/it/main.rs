//! The server through its sockets, as clients use it.

#![allow(
    clippy::disallowed_methods,
    reason = "tests play the clients: threads and waits are theirs"
)]

mod client;
mod concurrent;
mod encrypted;
mod hostile;
mod model;
mod power;
mod sessions;
mod streams;
