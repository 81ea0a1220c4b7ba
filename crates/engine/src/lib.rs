//! Windrow: an embedded, ordered key-value store.
//!
//! An LSM-tree engine in pure Rust, durable and bounded in memory, whose tree is kept in shape
//! by policies that can be exchanged while it runs. For Linux; Rust 1.88 or newer.
//!
//! ```toml
//! [dependencies]
//! windrow = { path = "../windrow/crates/engine" } # "0.1" once it is released
//! ```
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! use windrow::{Batch, Db, WriteSync};
//!
//! let db = Db::open(dir.path())?;
//! db.put("apple", "red")?;
//! assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
//!
//! let users = db.keyspace("users")?;
//! let mut batch = Batch::new();
//! batch.put(&users, "u1", "ada");
//! batch.delete(&db, "apple");
//! db.write(batch, WriteSync::Yes)?; // all or none, on the device
//!
//! db.transact(|tx| {
//!     let visits = tx.get(&users, "visits")?.map_or(0, |visits| visits.len());
//!     tx.put(&users, "visits", vec![b'x'; visits + 1])
//! })?;
//!
//! for entry in users.prefix("u") {
//!     let (key, value) = entry?;
//!     println!("{key:?} = {value:?}");
//! }
//! db.close()?;
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! # What is where
//!
//! | | |
//! |---|---|
//! | [`Db`], [`Keyspace`] | opening, closing; reading and writing one key, in a keyspace or in the default one, to which a `Db` derefs; the calls that read and write in one step ([`Keyspace::update`], [`Keyspace::compare_exchange`], [`Keyspace::pop_first`] and others) |
//! | [`Batch`], [`WriteSync`] | many operations, in any keyspaces, all or none; how durable a write is when it returns |
//! | [`Db::transact`], [`Transaction`], [`TransactionOptions`] | serialisable transactions, optimistic or with locks; [`Db::write_if`] with [`Conditions`] does without |
//! | [`Snapshot`], [`Iter`], [`Cursor`] | one moment of all keyspaces; ranges and prefixes from both ends |
//! | [`Follower`] | reading a database that another process has open |
//! | [`Keyspace::ingest`], [`Ingest`] | sorted data straight into tables |
//! | [`MergeOperator`], [`CompactionFilter`], [`Comparator`] | code of yours in reads and merges; [`Components`] registers it |
//! | [`Options`], [`settings`], [`KeyspaceOptions`] | `memory_bytes`, `preset` and the rest; the options of one keyspace, such as a TTL |
//! | [`Db::changes`], [`changes`] | all committed batches, in order |
//! | [`Db::checkpoint`], [`Db::verify`], [`repair`], [`Db::resume`] | copies, checks, and recovery from a failure |
//! | [`Stats`], [`stats`], [`Event`], [`Db::at_rest`], [`inspect`] | counters of its work, and its contents |
//! | [`Error`], [`ErrorKind`] | the failure, its place, and the remedy |
//!
//! Calls may wait, for a device or for merges; the repository's `docs/guide/async.md` says which,
//! and how async programs call them. The guide (`docs/guide`) has concepts and recipes,
//! `docs/benchmarks.md` figures next to RocksDB, LevelDB and fjall, `docs/reliability.md` every
//! promise with its test. `cargo run --release --bin windrow -- demo` shows it at work.
//!
//! # For readers of the source
//!
//! The engine is four crates: this one is its face, over `windrow-recover` (a database as a whole),
//! `windrow-store` (writes, flushes, merges) and `windrow-read` (reads). Begin with `db.rs`, then
//! `write/commit.rs`, `jobs/flush.rs` and `jobs/merge.rs` of store, `read/get.rs` of read,
//! `open/mod.rs` of recover. None of them decides anything about the tree (`windrow-plan` does) or
//! touches a file or clock itself (`windrow-env` does).
//!
//! Owns: the list of public names, and the calls on a database that only tools need (`inspect`).
//! Never does: define a public type; the modules and the lower crates do.

pub mod backup;
pub mod changes;
mod checkpoint;
mod db;
mod follow;
mod ingest;
mod key_range;
mod keyspace;
#[cfg(all(test, loom))]
mod models;
mod read_options;
mod snapshot;
mod snapshot_reads;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod ttl;

// The code of pages, run as documentation tests; that of README.md is compiled alone, since it
// makes its database where it is started.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/README.md")]
struct Guide;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/async.md")]
struct Async;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/changes.md")]
struct ChangesPage;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/recipes.md")]
struct Recipes;

pub use db::Db;
pub use follow::Follower;
pub use ingest::Ingest;
pub use key_range::KeyRange;
pub use keyspace::Keyspace;
pub use read_options::ReadOptions;
pub use snapshot::Snapshot;
pub use transaction::{
    Conditions, Savepoint, Transaction, TransactionIter, TransactionMode, TransactionOptions,
};
pub use ttl::Ttl;
/// An order of a keyspace's keys other than the bytewise one.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use std::cmp::Ordering;
/// use std::sync::Arc;
/// use windrow::{Comparator, Db, KeyspaceOptions, Options};
///
/// /// Decimal numbers by their size, `9` before `10`; what are none, behind them.
/// struct ByNumber;
///
/// fn number(key: &[u8]) -> Option<u64> {
///     std::str::from_utf8(key).ok()?.parse().ok()
/// }
///
/// impl Comparator for ByNumber {
///     fn id(&self) -> &str {
///         "example.by_number"
///     }
///
///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
///         match (number(a), number(b)) {
///             // `07` and `7` are two keys: equal bytes alone are equal.
///             (Some(x), Some(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
///             (Some(_), None) => Ordering::Less,
///             (None, Some(_)) => Ordering::Greater,
///             (None, None) => a.cmp(b),
///         }
///     }
/// }
///
/// let mut options = Options::default();
/// options.components.comparators.push(Arc::new(ByNumber));
/// let db = Db::open_with(dir.path(), options)?;
/// let by_number =
///     KeyspaceOptions { comparator: Some("example.by_number".into()), ..Default::default() };
/// let orders = db.keyspace_with("orders", by_number)?;
/// for key in ["10", "9", "x", "100"] {
///     orders.put(key, "")?;
/// }
/// let keys: Vec<windrow::Slice> = orders.iter().keys().collect::<Result<_, _>>()?;
/// assert_eq!(keys, ["9", "10", "100", "x"]);
/// # Ok::<(), windrow::Error>(())
/// ```
pub use windrow_base::Comparator;
/// The kind of an error, by which a program decides how to go on.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::ErrorKind;
/// match db.put("key", "value") {
///     Ok(()) => {}
///     Err(error) if error.kind() == ErrorKind::NoSpace => eprintln!("make room: {error}"),
///     Err(error) => eprintln!("{error}"), // names file and offset where it is about one
/// }
/// # assert!(db.contains_key("key")?);
/// # Ok::<(), windrow::Error>(())
/// ```
pub use windrow_base::ErrorKind;
pub use windrow_base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use windrow_base::{Error, Result, SeqNo};
pub use windrow_env as env;
#[doc(inline)]
pub use windrow_read::events::{Event, EventListener};
#[doc(inline)]
pub use windrow_read::operators::{CompactionFilter, FilterDecision, MergeOperator};
#[doc(inline)]
pub use windrow_read::options::{Components, KeyspaceOptions, Options, WriteSync};
#[doc(inline)]
pub use windrow_read::read::cursor::{Cursor, Iter, Keys};
#[doc(inline)]
pub use windrow_read::slice::Slice;
#[doc(inline)]
pub use windrow_read::stats::{KeyspaceStats, Stats};
#[doc(inline)]
pub use windrow_recover::repair::repair;
#[doc(inline)]
pub use windrow_store::write::batch::{Batch, InKeyspace};

/// Looks into a database: its trees, the tables and logs of a directory, the operations of a batch,
/// and the reports of verify, repair, ingestion and recovery.
pub mod inspect {
    pub use crate::ingest::Ingested;
    pub use windrow_base::KeyspaceId;
    pub use windrow_plan::tree::{File, Level, Part, Version};
    #[doc(inline)]
    pub use windrow_read::events::JobId;
    #[doc(inline)]
    pub use windrow_read::records_left_out::RecordsLeftOut;
    #[doc(inline)]
    pub use windrow_recover::dump;
    #[doc(inline)]
    pub use windrow_recover::measure::TableSearches;
    #[doc(inline)]
    pub use windrow_recover::measure::tables_at_rest::{KeyspaceAtRest, TablesAtRest};
    #[doc(inline)]
    pub use windrow_recover::repair::{DamagedLog, DamagedTable, LostRange, RepairReport};
    #[doc(inline)]
    pub use windrow_recover::stored_settings::{StoredKeyspace, StoredSettings};
    #[doc(inline)]
    pub use windrow_recover::verify::VerifyReport;
    #[doc(inline)]
    pub use windrow_store::write::batch::BatchOp;

    use crate::Db;
    use std::sync::Arc;

    /// Each keyspace's name and tree, as it is now.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.put("a", "1")?;
    /// db.flush()?;
    /// for (keyspace, tree) in windrow::inspect::trees(&db) {
    ///     for (level, _, file) in tree.files() {
    ///         println!("{keyspace}: level {level}, table {}: {} bytes", file.number, file.bytes);
    ///     }
    /// }
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn trees(db: &Db) -> Vec<(String, Arc<Version>)> {
        db.database().versions()
    }

    /// How often each table was searched, estimated from a sample of all gets.
    /// Empty unless the policy shares filter memory out by it (`mnemosyne`).
    pub fn table_searches(db: &Db) -> Vec<TableSearches> {
        windrow_recover::measure::table_searches(db.database())
    }
}

/// The settings as tables with names, ranges, units and descriptions, for tools that list or read
/// them. A program sets the fields of [`Options`].
pub mod settings {
    #[doc(inline)]
    pub use windrow_read::options::{KeyspaceSettings, SettingRange, SettingRow, Settings, Unit};
}

/// The parts of [`Stats`] and [`KeyspaceStats`], and counters that a running process writes down.
pub mod stats {
    #[doc(inline)]
    pub use windrow_read::stats::chain::ChainStats;
    #[doc(inline)]
    pub use windrow_read::stats::{
        Latencies, Latency, LevelShape, LevelStats, MemoryStats, PauseReason, PauseStats,
    };
    #[doc(inline)]
    pub use windrow_recover::measure::stats_file::RunningStats;
}
