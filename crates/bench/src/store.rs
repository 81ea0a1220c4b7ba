//! The trait that a store is benchmarked through.
//!
//! Owns: what a workload may ask. Adapters stand in `store/` and in
//! `bench-peers`. Never does: know a workload.

pub mod windrow;

use std::path::Path;

/// Any store's error.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What every store is opened with; an adapter turns it into its store's own
/// settings as that store's documentation recommends.
#[derive(Clone, Debug)]
pub struct Common {
    /// Memory budget of everything: write buffers, caches, indexes, filters.
    pub memory_bytes: u64,
    /// Threads for flushes and compactions.
    pub background_threads: u32,
    /// Whether tables are read and written past the page cache.
    pub direct_io: bool,
    /// Settings of Windrow beyond these (other stores ignore them).
    pub settings: Vec<(String, String)>,
}

/// A store under measurement, used by one thread. The log is on and not
/// synced per write, nothing is compressed, filters have 10 bits per key.
pub trait Store {
    /// Sets a key.
    ///
    /// # Errors
    /// The store's.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Reads a key's value into `value` (replaced); whether it was there.
    ///
    /// # Errors
    /// The store's.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// By a cursor of its own: to the first key at or after `from`, then
    /// `nexts` further. Returns the entries met and the sum of their bytes' count.
    ///
    /// # Errors
    /// The store's.
    fn scan(&mut self, from: &[u8], nexts: u32) -> Result<(u32, u64)>;

    /// Removes a key.
    ///
    /// # Errors
    /// The store's.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Writes the memtables out and waits until no compaction is due.
    ///
    /// # Errors
    /// The store's.
    fn drain(&mut self) -> Result<()>;

    /// The store's own statistics, for a person.
    fn statistics(&self) -> String;

    /// Closes it.
    ///
    /// # Errors
    /// The store's.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A store that can be opened.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name, as `--engines` takes it.
    pub name: &'static str,
    /// Opens (or makes) a database in a directory.
    pub open: fn(&Path, &Common) -> Result<Box<dyn Store>>,
}
