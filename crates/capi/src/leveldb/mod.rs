//! LevelDB's C interface on Windrow's engine: the 68 functions of its `c.h`, for programs that were built for it.
//!
//! Differences from LevelDB:
//!
//! - A database is a directory of Windrow's. A database of LevelDB is refused; `windrow import` reads it.
//! - Filters, caches and sizes are Windrow's: the caller's filter policy is never called, and the bits of a Bloom
//!   filter are ignored. `write_buffer_size` and the capacity of a cache add up to one budget of memory (`options.rs`).
//! - Snappy is not built in: LZ4 takes its place.
//! - Checksums are verified by every read, whatever the options say.
//!
//! Owns: the translation of LevelDB's calls to the engine's. Never does: anything that LevelDB's functions do not.

pub mod batch;
pub mod callbacks;
pub mod database;
pub mod iterator;
pub mod memory;
pub mod options;
pub mod snapshot;
