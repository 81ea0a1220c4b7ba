//! A server on a [`windrow::Db`] that speaks the Redis protocol.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! use std::io::{Read, Write};
//! use windrow::Db;
//! use windrow_server::{Config, Server};
//!
//! let db = Db::open(dir.path())?;
//! let server = Server::start(db.clone(), Config { port: 0, ..Config::default() })?;
//!
//! let mut client = std::net::TcpStream::connect(server.addresses()[0])?;
//! client.write_all(b"SET apple red\r\n")?;
//! let mut reply = [0; 5];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"+OK\r\n");
//!
//! // A string is a plain pair of the default keyspace.
//! assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
//! server.stop();
//! db.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: start and stop. Never does: open or close the database.

mod channels;
mod client;
mod clock;
mod commands;
mod config;
mod counters;
mod data;
mod durability;
mod fault;
mod glob;
mod listener;
mod parameters;
mod peer;
mod protocol;
mod server_parts;
mod session;
mod stats;
mod sweeper;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;

pub use config::{Config, Durability, Tls};
pub use counters::CommandStats;
pub use listener::{Server, StartError};
pub use stats::{ServerStats, Watch};
