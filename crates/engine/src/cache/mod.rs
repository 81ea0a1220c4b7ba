//! What is kept in memory of the tables: decoded blocks, and open readers.
//!
//! Owns: the two caches and their limits. Never does: decide what to read.

pub(crate) mod block;
pub(crate) mod table;

pub(crate) use block::BlockCache;
pub(crate) use table::{OpenGuard, OpenTable, TableCache, TableHandle};
