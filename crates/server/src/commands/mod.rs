//! The commands.
//!
//! Owns: one file for each kind of value or subject, and the table of all commands. Never does:
//! talk to a socket.

mod bits;
mod blocking;
pub(crate) mod call;
pub(crate) mod command;
mod connection;
mod deadline;
mod dump;
mod expiry;
mod hashes;
mod keys;
mod lcs;
mod lists;
mod publish;
mod random;
mod scans;
mod score_ranges;
mod score_sums;
mod server;
mod sets;
mod sort;
mod sorted_sets;
mod stream_groups;
mod stream_ids;
mod stream_info;
mod stream_trim;
pub(crate) mod streams;
mod strings;
pub(crate) mod table;
mod transactions;
mod windrow_commands;
