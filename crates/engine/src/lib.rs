//! Windrow: an embedded, ordered key-value store.
//!
//! An LSM-tree engine in pure Rust: durable, bounded in memory, with
//! keyspaces, atomic batches, snapshots, iterators both ways, merge
//! operators, range deletes and expiry.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! let db = windrow::Db::open(dir.path())?;
//! db.put("apple", "red")?;
//! assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
//!
//! let users = db.keyspace("users")?;
//! let mut batch = windrow::Batch::new();
//! batch.put(&users, "u1", "ada");
//! batch.delete(&db, "apple");
//! db.write(batch, windrow::WriteSync::Yes)?;
//!
//! for item in users.prefix("u") {
//!     let (key, value) = item?;
//!     println!("{key:?} = {value:?}");
//! }
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! Where to begin reading: `db.rs`, then `write/commit.rs`, `read/get.rs`,
//! `flush.rs`, `merge/run.rs`, `open/mod.rs`. This crate decides nothing
//! about the tree (`windrow-plan` does) and touches no file or clock itself
//! (`windrow-env` does).

mod at_rest;
mod budget;
mod cache;
mod chain;
mod checkpoint;
mod cleanup;
mod close;
mod compact;
mod covered;
mod database;
mod db;
mod destroy;
mod due;
pub mod dump;
mod events;
mod flush;
mod flush_sample;
mod follow;
mod for_reads;
mod gaps;
mod gate;
mod handle;
mod handles;
mod host;
mod ingest;
mod jobs;
mod key_range;
mod keyspace;
mod lineage;
mod lock_ranks;
mod log;
mod log_copy;
mod manifest;
mod measure;
mod memtable;
mod merge;
#[cfg(all(test, loom))]
mod models;
mod open;
mod operators;
mod options;
mod pace;
mod place;
mod plan_sizes;
mod progress;
mod read;
mod readers;
mod repair;
mod resume;
mod retry_timer;
mod schedule;
mod shortage;
mod slice;
mod snapshot;
mod snapshot_reads;
mod snapshots;
mod stats;
mod stats_file;
mod stored;
#[cfg(feature = "testing")]
pub mod testing;
mod tombstones;
mod transaction;
mod tree;
mod trees;
mod trouble;
mod ttl;
mod upkeep;
mod verify;
mod workers;
mod write;
mod write_state;

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
#[doc = include_str!("../../../docs/guide/recipes.md")]
struct Recipes;

pub use at_rest::{KeyspaceAtRest, TablesAtRest};
pub use chain::ChainStats;
pub use db::Db;
pub use events::{Event, EventListener, JobId};
pub use follow::Follower;
pub use ingest::{Ingest, Ingested};
pub use key_range::KeyRange;
pub use keyspace::Keyspace;
pub use log::left_out::RecordsLeftOut;
pub use measure::TableSearches;
pub use operators::{CompactionFilter, FilterDecision, MergeOperator};
pub use options::{
    Components, KeyspaceOptions, KeyspaceSettings, Options, ReadOptions, SettingRange, SettingRow,
    Settings, Unit, WriteSync,
};
pub use read::cursor::{Cursor, Iter, Keys};
pub use repair::{DamagedLog, DamagedTable, LostRange, RepairReport, repair};
pub use slice::Slice;
pub use snapshot::Snapshot;
pub use stats::{
    KeyspaceStats, Latencies, Latency, LevelShape, LevelStats, MemoryStats, PauseReason,
    PauseStats, Stats,
};
pub use stats_file::RunningStats;
pub use stored::{StoredKeyspace, StoredSettings};
pub use transaction::{
    Conditions, Savepoint, Transaction, TransactionIter, TransactionMode, TransactionOptions,
};
pub use ttl::Ttl;
pub use verify::VerifyReport;
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
/// What to do about an error.
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
pub use windrow_base::{Error, KeyspaceId, Result, SeqNo};
pub use windrow_env as env;
pub use windrow_plan::tree::Version;
pub use write::batch::{Batch, BatchOp, InKeyspace};
