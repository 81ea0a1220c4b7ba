//! Imports databases of LevelDB and RocksDB into Windrow, and exports keyspaces to them.
//!
//! The libraries of the two are loaded from the machine when they are needed; neither is built or linked. A source is
//! opened as its own programs open it, so that the records in its log are read too.
//!
//! - [`import`]: every column family becomes a keyspace, by one ingestion each, which appears whole or not at all. An
//!   import that was killed may be run again: it skips the keyspaces that are complete. In the end source and copy are
//!   read again and compared.
//! - [`export`]: a keyspace becomes a database of LevelDB's or RocksDB's, which is read again and compared.
//!
//! ```no_run
//! use windrow_import::{Kind, Source, import};
//! let db = windrow::Db::open("new")?;
//! let source = Source::open(Kind::RocksDb, "old".as_ref())?;
//! for copied in import(&source, &db, &mut |_, _| Ok(()))? {
//!     println!("{}: {} pairs", copied.keyspace, copied.pairs);
//! }
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! Owns: the copies. Never does: change a source, except by the changes that its own library makes at opening.

mod calls;
mod copy;
mod place;
mod sink;
mod source;

pub use calls::Kind;
pub use copy::{Copied, Step, import};
pub use sink::export;
pub use source::Source;
