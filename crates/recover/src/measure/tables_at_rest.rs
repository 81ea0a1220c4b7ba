//! The content of a database: entries, tombstones and sizes, by keyspace and level.
//!
//! Counts come from the manifest, and sizes before compression from the properties of tables, which
//! are opened for that.
//!
//! Owns: the types, and their sums. Never does: read a data block.

use crate::database::Database;
use windrow_base::Result;
use windrow_read::read::view::VersionFile;
use windrow_store::tree::Tree;

/// The content of several tables, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TablesAtRest {
    /// Tables.
    pub tables: u64,
    /// Their bytes on disk.
    pub bytes: u64,
    /// Entries of every kind but range tombstones: old versions, tombstones and operands are
    /// among them, so there may be fewer keys.
    pub entries: u64,
    /// Deletes and single deletes among them.
    pub tombstones: u64,
    /// Range tombstones: a deleted range may be several.
    pub range_tombstones: u64,
    /// Entries with an expiry, in the future or past.
    pub expiring_entries: u64,
    /// Bytes of all internal keys before compression: each is a user key, and eight bytes more.
    pub key_bytes: u64,
    /// Bytes of all values before compression.
    pub value_bytes: u64,
    /// Bytes of the data blocks on disk: those keys and values, compressed.
    pub data_bytes: u64,
    /// Bytes of indexes on disk.
    pub index_bytes: u64,
    /// Bytes of filters on disk.
    pub filter_bytes: u64,
}

impl TablesAtRest {
    /// Bytes of keys and values for each byte of the data blocks that they are in: above 1 where
    /// compression and shared prefixes save more than blocks cost. 0 without data blocks.
    pub fn compression_ratio(&self) -> f64 {
        match self.data_bytes {
            0 => 0.0,
            bytes => (self.key_bytes + self.value_bytes) as f64 / bytes as f64,
        }
    }

    /// Adds the content of others.
    pub fn add(&mut self, other: &TablesAtRest) {
        self.tables += other.tables;
        self.bytes += other.bytes;
        self.entries += other.entries;
        self.tombstones += other.tombstones;
        self.range_tombstones += other.range_tombstones;
        self.expiring_entries += other.expiring_entries;
        self.key_bytes += other.key_bytes;
        self.value_bytes += other.value_bytes;
        self.data_bytes += other.data_bytes;
        self.index_bytes += other.index_bytes;
        self.filter_bytes += other.filter_bytes;
    }

    fn add_table(&mut self, database: &Database, file: &VersionFile) -> Result<()> {
        let (open, meta) = (file.open(&database.caches.tables)?, &file.file);
        let properties = open.table.properties();
        self.add(&TablesAtRest {
            tables: 1,
            bytes: meta.bytes,
            entries: meta.entries,
            tombstones: meta.point_tombstones,
            range_tombstones: meta.range_tombstones,
            expiring_entries: meta.expiring_entries,
            key_bytes: properties.raw_key_bytes,
            value_bytes: properties.raw_value_bytes,
            data_bytes: properties.data_bytes,
            index_bytes: properties.index_bytes,
            filter_bytes: properties.filter_bytes,
        });
        Ok(())
    }
}

/// The content of a keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceAtRest {
    /// Its name.
    pub name: String,
    /// Entries in memtables, which are in logs and in no table yet.
    pub memtable_entries: u64,
    /// Bytes of memory that those take.
    pub memtable_bytes: u64,
    /// The tables of each level, from 0 on.
    pub levels: Vec<TablesAtRest>,
}

impl KeyspaceAtRest {
    /// All its tables.
    pub fn tables(&self) -> TablesAtRest {
        self.levels.iter().fold(TablesAtRest::default(), |mut sum, level| {
            sum.add(level);
            sum
        })
    }

    fn of(database: &Database, tree: &Tree) -> Result<KeyspaceAtRest> {
        let view = tree.pin();
        let mut at_rest = KeyspaceAtRest {
            name: tree.name.to_string(),
            memtable_entries: view.memtables().map(|memtable| memtable.entries()).sum(),
            memtable_bytes: view.memtables().map(|m| m.allocated_bytes() as u64).sum(),
            levels: vec![TablesAtRest::default(); view.levels.len()],
        };
        for (level, sum) in view.levels.iter().zip(&mut at_rest.levels) {
            level.files().try_for_each(|file| sum.add_table(database, file))?;
        }
        Ok(at_rest)
    }
}

/// The content of every keyspace.
pub fn at_rest(database: &Database) -> Result<Vec<KeyspaceAtRest>> {
    database.write_state.check_read()?;
    database.trees().iter().map(|tree| KeyspaceAtRest::of(database, tree)).collect()
}
