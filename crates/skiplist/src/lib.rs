//! The memtable's ordered map: a skiplist in an arena.
//!
//! Any number of threads insert and read at the same time without a lock. No entry is ever removed:
//! entries live as long as the list, so there are no epochs, no reference counts per node and no
//! allocation but the arena's chunks. Order is by key, ascending, then by trailer, descending, so
//! that the newest version of a key comes first.
//!
//! It is fast because a search reads few cache lines: see `list.rs` for the hints that decide most
//! comparisons without touching the other node.
//!
//! | file | holds |
//! |---|---|
//! | `list.rs` | [`SkipList`], search and insert |
//! | `together.rs` | searches for several keys, and inserts of several entries, at once |
//! | `cursor.rs` | [`ListCursor`], the owned iterator |
//! | `window.rs` | the eight bytes of a key that hints compare |
//! | `node.rs` | the layout of an entry |
//! | `arena.rs` | the memory |
//! | `chunk.rs` | a piece of it |
//! | `pool.rs` | [`ChunkPool`], memory that lists leave to the next ones |
//! | `sync.rs` | atomics, or loom's |
//!
//! Owns: the entries and their order. Never does: interpret a trailer, or look into a value.

mod arena;
mod chunk;
mod cursor;
mod list;
mod node;
mod pool;
mod sync;
mod together;
mod window;

pub use cursor::ListCursor;
pub use list::{Entry, Hint, KeyCompare, SkipList};
pub use pool::ChunkPool;
