//! LevelDB behind the `Store` trait, through the C library.
//!
//! LevelDB has no key spaces: they are prefixes of four bytes, and with one
//! space there is no prefix. Memory: LevelDB maps the first thousand table
//! files and, without compression, reads blocks where they are mapped. Neither
//! the block cache nor any limit of its own bounds that. Those pages are the
//! page cache's, and count as resident as well.
//!
//! Nor has it direct I/O: where that is asked for, the adapter keeps it from
//! mapping. LevelDB then reads into its cache, which the budget does bound, and
//! the page cache can be emptied of those files.
//!
//! Owns: its settings for a memory budget, and the test of whether it is quiet.
//! Never does: call C (`api.rs` does).

mod api;

use crate::settings::Settings;
use crate::wait;
use api::{Batch, Config, Database};
use std::borrow::Cow;
use std::path::Path;
use windrow_bench::store::{Abilities, Common, Counters, Engine, OnEntry, OnValue, Result};
use windrow_bench::store::{Store, Sync, Tree, Write};

/// LevelDB.
pub(crate) const ENGINE: Engine = Engine {
    name: "leveldb",
    version: api::version,
    abilities: Abilities { direct_io: false, expiry: false, lz4: false, transactions: false },
    tuning: "Write buffer of a quarter of the budget (larger is faster, its header says; two may \
             be in use), block cache of a third, the rest for indexes, filters and the \
             allocator. Bloom filters of ten bits per key, blocks of 4 KiB, files of 2 MiB as by \
             default. It has one background thread whatever is asked, no direct I/O, no expiry, \
             and verifies no checksums when it reads (its default). It maps its first thousand \
             files into memory and reads there past its cache: the budget does not bound that, \
             and resident memory shows it. Where direct I/O is asked for it maps none. Key spaces are prefixes of four bytes, several gets a \
             loop. Linked as the system's library.",
    variants: &[],
    open,
};

const NAMES: &[&str] =
    &["block_bytes", "cache_bytes", "file_bytes", "filter_bits", "memtable_bytes", "open_files"];

/// One file handle for each 2 MiB of data, as the header says: enough for 40
/// GB. The process's limit on them is reached before that.
const OPEN_FILES: i32 = 20_000;

struct LevelDb {
    db: Database,
    /// Whether the number of its space precedes each key.
    prefixed: bool,
}

/// Returns the configuration that LevelDB is opened with.
fn config(common: &Common) -> Result<Config> {
    let settings = Settings::new(&ENGINE, NAMES, common)?;
    let memory = common.memory_bytes;
    Ok(Config {
        write_buffer_bytes: settings.bytes("memtable_bytes", memory / 4)? as usize,
        cache_bytes: settings.bytes("cache_bytes", memory / 3)? as usize,
        block_bytes: settings.bytes("block_bytes", 4096)? as usize,
        file_bytes: settings.bytes("file_bytes", 2 << 20)? as usize,
        open_files: settings.number("open_files", OPEN_FILES)?,
        filter_bits: settings.number("filter_bits", 10)?,
    })
}

fn open(dir: &Path, common: &Common) -> Result<Box<dyn Store>> {
    if common.direct_io {
        api::map_nothing();
    }
    let db = Database::open(dir, &config(common)?)?;
    Ok(Box::new(LevelDb { db, prefixed: common.spaces > 1 }))
}

impl LevelDb {
    /// Returns a key as it is stored.
    fn key<'a>(&self, space: u32, key: &'a [u8]) -> Cow<'a, [u8]> {
        if self.prefixed { [&space.to_be_bytes(), key].concat().into() } else { key.into() }
    }

    fn levels(&self) -> Result<Levels> {
        let text = self.db.property(c"leveldb.sstables").ok_or("leveldb: no list of tables")?;
        Ok(Levels::parse(&text))
    }
}

impl Store for LevelDb {
    fn put(&self, space: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
        self.db.put(&self.key(space, key), value, sync == Sync::Yes)
    }

    fn put_for(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<()> {
        Err("leveldb has no expiry".into())
    }

    fn delete(&self, space: u32, key: &[u8], sync: Sync) -> Result<()> {
        self.db.delete(&self.key(space, key), sync == Sync::Yes)
    }

    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
        let mut batch = Batch::new()?;
        for write in writes {
            match *write {
                Write::Put { space, key, value } => batch.put(&self.key(space, key), value),
                Write::Delete { space, key } => batch.delete(&self.key(space, key)),
            }
        }
        self.db.write(&batch, sync == Sync::Yes)
    }

    fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.db.get(&self.key(space, key), value)
    }

    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
        let mut value = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            let found = self.db.get(&self.key(space, key), &mut value)?;
            each(i, found.then_some(value.as_slice()));
        }
        Ok(())
    }

    fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
        let prefix = space.to_be_bytes();
        let prefix: &[u8] = if self.prefixed { &prefix } else { &[] };
        let mut cursor = self.db.cursor()?;
        cursor.seek(&self.key(space, from));
        let mut met = 0;
        while met < entries
            && let Some((key, value)) = cursor.entry()
            && let Some(key) = key.strip_prefix(prefix)
        {
            each(key, value);
            met += 1;
            if met < entries {
                cursor.next();
            }
        }
        cursor.status()?;
        Ok(met)
    }

    fn sync(&self) -> Result<()> {
        // A synced write syncs the log up to it; this one has an empty batch.
        self.db.write(&Batch::new()?, true)
    }

    /// LevelDB has neither a flush nor a wait. A compaction of the range of the
    /// empty key, which no workload writes, flushes the memtable and moves no
    /// table. After it no compaction is due once no level scores 1, by the
    /// sizes that its doc/impl.md gives. (Compactions that it starts after many
    /// futile seeks are not foreseen.)
    fn drain(&self) -> Result<()> {
        self.db.compact_range(b"", b"");
        wait::until(1, || Ok(self.levels()?.quiet()))
    }

    fn counters(&self) -> Counters {
        // Precise to a megabyte: LevelDB counts bytes and prints megabytes.
        let stats = self.db.property(c"leveldb.stats").unwrap_or_default();
        Counters { tables_written_bytes: written_bytes(&stats), ..Counters::default() }
    }

    fn tree(&self) -> Tree {
        self.levels().map(|levels| levels.tree()).unwrap_or_default()
    }

    fn statistics(&self) -> String {
        self.db.property(c"leveldb.stats").unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Adds up the last column, `Write(MB)`, of the table by level.
fn written_bytes(stats: &str) -> Option<u64> {
    let (_, rows) = stats.split_once("Write(MB)")?;
    let rows = rows.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let written = rows.filter_map(|row| row.get(5)?.parse::<u64>().ok());
    Some(written.sum::<u64>() << 20)
}

/// Files and bytes of each level.
#[derive(Debug, Default, PartialEq)]
struct Levels(Vec<(u64, u64)>);

impl Levels {
    /// Reads lines of `--- level 1 ---`, each followed by its files' lines,
    /// ` 17:2048['a' .. 'd']`: a number, the bytes, the keys.
    fn parse(text: &str) -> Levels {
        let mut levels = Levels::default();
        for line in text.lines() {
            if line.starts_with("--- level ") {
                levels.0.push((0, 0));
            } else if let Some((head, _)) = line.split_once('[')
                && let Some((_, bytes)) = head.split_once(':')
                && let (Ok(bytes), Some(level)) = (bytes.parse::<u64>(), levels.0.last_mut())
            {
                level.0 += 1;
                level.1 += bytes;
            }
        }
        levels
    }

    /// Whether no level is over its size: four files in level 0, 10 MiB in
    /// level 1, ten times as much in each further one but the last.
    fn quiet(&self) -> bool {
        let mut limit = 10 << 20;
        self.0.iter().take(self.0.len().saturating_sub(1)).enumerate().all(
            |(level, &(files, bytes))| {
                if level == 0 {
                    return files < 4;
                }
                let quiet = bytes < limit;
                limit *= 10;
                quiet
            },
        )
    }

    fn tree(&self) -> Tree {
        let held = self.0.iter().skip(1).filter(|&&(files, _)| files > 0).count() as f64;
        Tree {
            levels: Some(held),
            // Level 0's files overlap.
            runs: Some(held),
            files: Some(self.0.iter().map(|level| level.0).sum()),
            bytes: Some(self.0.iter().map(|level| level.1).sum()),
            ..Tree::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_from_the_list_of_tables() {
        let text = "--- level 0 ---\n 9:700['a:5[' @ 9 : 1 .. 'b' @ 7 : 1]\n\
                    --- level 1 ---\n 7:300['a' @ 1 : 1 .. 'c' @ 2 : 1]\n 8:50['d' .. 'e']\n\
                    --- level 2 ---\n";
        assert_eq!(Levels::parse(text), Levels(vec![(1, 700), (2, 350), (0, 0)]));
        let tree = Levels::parse(text).tree();
        assert_eq!((tree.levels, tree.files, tree.bytes), (Some(1.0), Some(3), Some(1050)));
    }

    #[test]
    fn quiet_means_that_no_level_is_due() {
        let quiet = |levels: &[(u64, u64)]| Levels(levels.to_vec()).quiet();
        let mib = 1 << 20;
        assert!(quiet(&[(3, 900 * mib), (5, 10 * mib - 1), (50, 100 * mib - 1), (0, 0)]));
        assert!(!quiet(&[(4, 1), (0, 0), (0, 0)]));
        assert!(!quiet(&[(0, 0), (5, 10 * mib), (0, 0)]));
        assert!(!quiet(&[(0, 0), (0, 0), (50, 100 * mib), (0, 0)]));
        // The last level has no limit.
        assert!(quiet(&[(0, 0), (0, 0), (50, 100 * mib)]));
    }

    #[test]
    fn written_bytes_are_the_last_column() {
        let stats = "                               Compactions\n\
                     Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
                     --------------------------------------------------\n  \
                     0        2       45         1        0        90\n  \
                     1        5       10         2      100        95\n";
        assert_eq!(written_bytes(stats), Some(185 << 20));
        assert_eq!(written_bytes(""), None);
    }
}
