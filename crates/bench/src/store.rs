//! The trait that a store is benchmarked through, and the common settings that every store is
//! opened with.
//!
//! Owns: the operations that a workload may ask for. Adapters are in `store/` and in `bench-peers`.
//! Never does: know a workload.

pub mod conformance;
pub mod windrow;

use std::path::Path;

/// Any store's error.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + std::marker::Sync>>;

/// The settings that every store is opened with; an adapter turns them into its store's own
/// settings as that store's documentation recommends.
#[derive(Clone, Debug)]
pub struct Common {
    /// The text after the colon of the contender's name, as in `windrow:leveled`; empty for the
    /// adapter's default.
    pub variant: String,
    /// Memory budget of everything: write buffers, caches, indexes, filters.
    pub memory_bytes: u64,
    /// Threads for flushes and compactions.
    pub background_threads: u32,
    /// Whether tables are read and written past the page cache. A store that cannot do so is opened
    /// as well (`Abilities::direct_io` tells).
    pub direct_io: bool,
    /// Compression of tables.
    pub codec: Codec,
    /// Key spaces that are written to, numbered from 0.
    pub spaces: u32,
    /// Whether [`Store::transact`] will be called.
    pub transactions: bool,
    /// Settings by name. One with a dot is for the engine before the dot;
    /// one without is for Windrow. Others are ignored.
    pub settings: Vec<(String, String)>,
}

impl Common {
    /// Returns the last value given for `ENGINE.NAME` (for Windrow `NAME` alone).
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().rfind(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Compression of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// None, in any store.
    None,
    /// LZ4, in stores that have it.
    Lz4,
}

/// The moment at which a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// When the kernel has it: it survives the death of the process.
    No,
    /// When the device has it: it survives the loss of power.
    Yes,
}

/// One write of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Write<'a> {
    /// Sets a key of a space.
    Put {
        /// The space's number.
        space: u32,
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Removes a key of a space.
    Delete {
        /// The space's number.
        space: u32,
        /// The key.
        key: &'a [u8],
    },
}

/// Called with keys and values that a scan meets.
pub type OnEntry<'a> = &'a mut dyn FnMut(&[u8], &[u8]);

/// Changes the values that a transaction has read, in the order of its keys. It may be called more
/// than once, each time with the values of that attempt.
pub type Change<'a> = &'a mut dyn FnMut(&mut [Vec<u8>]);

/// Called with the place of a key among those asked for, and its value.
pub type OnValue<'a> = &'a mut dyn FnMut(usize, Option<&[u8]>);

/// A store under measurement, used by any number of threads. The log is on;
/// filters have ten bits per key unless the variant says otherwise.
pub trait Store: Send + std::marker::Sync {
    /// Sets a key.
    ///
    /// # Errors
    /// The store's.
    fn put(&self, space: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()>;

    /// Sets a key that vanishes after `seconds`. Called only on a store whose abilities name
    /// expiry.
    ///
    /// # Errors
    /// The store's.
    fn put_for(&self, space: u32, key: &[u8], value: &[u8], seconds: u64) -> Result<()>;

    /// Removes a key, whether or not it exists.
    ///
    /// # Errors
    /// The store's.
    fn delete(&self, space: u32, key: &[u8], sync: Sync) -> Result<()>;

    /// Does all of the writes or none.
    ///
    /// # Errors
    /// The store's.
    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()>;

    /// Reads a key's value into `value` (replaced; empty if absent); returns whether it exists.
    ///
    /// # Errors
    /// The store's.
    fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Reads several keys at once, by the store's own call for that where it has one. `each` is
    /// called once for each place, in order.
    ///
    /// # Errors
    /// The store's.
    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()>;

    /// Scans with a new cursor: to the first key at or after `from`, and `entries` entries on from
    /// there. Returns the number of entries.
    ///
    /// # Errors
    /// The store's.
    fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64>;

    /// Runs a transaction: reads keys (absent ones as empty values), has their values changed, sets
    /// them to that and does the writes of `more`. It repeats all of it after a conflict, and
    /// returns the number of attempts. Called only on a store whose abilities name transactions and
    /// that was opened for them.
    ///
    /// # Errors
    /// The store's.
    fn transact(
        &self,
        _keys: &[(u32, &[u8])],
        _change: Change<'_>,
        _more: &[Write<'_>],
        _sync: Sync,
    ) -> Result<u64> {
        Err("this store has no transactions".into())
    }

    /// Makes all writes so far durable.
    ///
    /// # Errors
    /// The store's.
    fn sync(&self) -> Result<()>;

    /// Writes the memtables out and waits until no compaction is due.
    ///
    /// # Errors
    /// The store's.
    fn drain(&self) -> Result<()>;

    /// Returns the counts since the store was opened, as far as it keeps them.
    fn counters(&self) -> Counters;

    /// Returns the state of its tree, as far as it tells.
    fn tree(&self) -> Tree;

    /// Returns the store's own statistics, as text.
    fn statistics(&self) -> String;

    /// Closes it.
    ///
    /// # Errors
    /// The store's.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The counts of a store since it was opened; `None` where it does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Point reads.
    pub gets: Option<u64>,
    /// Point reads that found their key in a table (not in a memtable).
    pub gets_of_tables: Option<u64>,
    /// Point reads that found their key in level 1.
    pub level1_hits: Option<u64>,
    /// Data blocks read from the cache or from files.
    pub blocks: Option<u64>,
    /// Data blocks read from files.
    pub blocks_read: Option<u64>,
    /// Filters that let a point read into a table that had no such key.
    pub filter_false_positives: Option<u64>,
    /// Bytes of keys and values written by the user.
    pub user_bytes: Option<u64>,
    /// Bytes written to the log.
    pub wal_bytes: Option<u64>,
    /// Bytes of tables written by flushes and compactions.
    pub tables_written_bytes: Option<u64>,
    /// Compactions (flushes not among them).
    pub merges: Option<u64>,
    /// Tables that compactions read.
    pub merged_files: Option<u64>,
    /// Bytes that were written to each of levels 0 to 6.
    pub level_written_bytes: Option<[u64; 7]>,
    /// Files that moved to another level without being rewritten.
    pub moves: Option<u64>,
    /// Time that writers were held up, in microseconds.
    pub paused_us: Option<u64>,
    /// The number of times that writers were held up.
    pub pauses: Option<u64>,
}

/// The shape of a store's tree; `None` where it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tree {
    /// Levels that hold data, level 0 not among them, a mean over key spaces.
    pub levels: Option<f64>,
    /// Levels with files in order, a mean over key spaces.
    pub runs: Option<f64>,
    /// Table files.
    pub files: Option<u64>,
    /// Table files in the SST-logs of all levels.
    pub log_files: Option<u64>,
    /// Bytes of table files.
    pub bytes: Option<u64>,
    /// Bytes merged by one chain of compactions, median and 99th percentile.
    pub chain_bytes: Option<(u64, u64)>,
    /// Most levels that one chain went through.
    pub chain_levels: Option<u64>,
    /// Bits of filters per entry.
    pub filter_bits_per_key: Option<f64>,
    /// Memory of open tables: their indexes and filters as far as they are in memory, and the bounds
    /// of all tables.
    pub open_tables_bytes: Option<u64>,
}

/// The abilities of a store beyond those that the trait requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Tables that bypass the page cache.
    pub direct_io: bool,
    /// Keys that vanish after a time.
    pub expiry: bool,
    /// Codecs beyond none.
    pub lz4: bool,
    /// Transactions.
    pub transactions: bool,
}

/// A store that can be opened.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name, as `--engines` takes it.
    pub name: &'static str,
    /// Its version, of the library that is linked.
    pub version: fn() -> String,
    /// Its abilities.
    pub abilities: Abilities,
    /// Its adapter's settings and why they are fair, a few sentences for the report.
    pub tuning: &'static str,
    /// The words that a variant may be, for messages; empty if any text may be tried.
    pub variants: &'static [&'static str],
    /// Opens a database in a directory, or makes one.
    pub open: fn(&Path, &Common) -> Result<Box<dyn Store>>,
}
