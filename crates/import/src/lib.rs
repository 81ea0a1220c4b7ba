//! Databases of LevelDB and RocksDB into Windrow, and back into LevelDB.
//!
//! Their libraries are looked for on the machine when they are needed: nothing of them is built or linked. A source
//! is opened as its own programs open it, so that all that is in its log counts.
//!
//! - [`import`]: every column family becomes a keyspace, by one ingestion each, which is there as a whole or not at
//!   all. Run again after it was killed, it passes over those that are complete. In the end both are read again and
//!   compared.
//! - [`export`]: a keyspace becomes a database of LevelDB's, which is read again and compared.
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
//! Owns: the copies. Never does: change a source, but for what its own library does when it opens one.

mod calls;
mod copy;
mod place;
mod sink;
mod source;

pub use calls::Kind;
pub use copy::{Copied, Step, import};
pub use sink::export;
pub use source::Source;
