//! One contender's database: opened as its case says, asked by record number,
//! and measured.
//!
//! Owns: which figures come of its statistics. Never does: know a paper.

use super::experiment::{Case, Contender, Read};
use super::records::Records;
use crate::process::{self, Stopwatch, Traffic, mib};
use crate::report::Figures;
use crate::store::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::{Db, Keyspace, Options, ReadOptions, Settings, Stats};

/// Every so many gets, the value that came back is compared in full.
const CHECK_EVERY: u64 = 64;

/// An open database of a case.
pub(crate) struct Database {
    pub(crate) contender: Contender,
    pub(crate) db: Db,
    pub(crate) dir: PathBuf,
    pub(crate) records: Arc<Records>,
    regions: Vec<Keyspace>,
}

/// One client of a database, with buffers of its own.
pub(crate) struct Client {
    regions: Vec<Keyspace>,
    records: Arc<Records>,
    key: Vec<u8>,
}

impl Database {
    /// Opens (or makes) the database of `contender` in `dir`.
    pub(crate) fn open(
        dir: &Path,
        case: &Case,
        contender: &Contender,
        overrides: &[(String, String)],
        records: &Arc<Records>,
    ) -> Result<Database> {
        let mut settings = Settings {
            preset: contender.policy.clone(),
            compression: "none".to_owned(),
            // Else the page cache hides what a policy costs.
            direct_io: true,
            ..Settings::default()
        };
        for (name, value) in case.settings.iter().chain(&contender.settings) {
            settings.set(name, value)?;
        }
        for (name, value) in overrides {
            settings.set(name, value)?;
        }
        let db = Db::open_with(dir, Options { settings, ..Options::default() })?;
        let regions = match case.regions {
            1 => vec![db.default_keyspace()],
            n => (0..n)
                .map(|i| db.keyspace(&format!("region{i}")))
                .collect::<windrow::Result<_>>()?,
        };
        Ok(Database {
            contender: contender.clone(),
            db,
            dir: dir.to_owned(),
            records: Arc::clone(records),
            regions,
        })
    }

    /// A client of this database.
    pub(crate) fn client(&self) -> Client {
        Client {
            regions: self.regions.clone(),
            records: Arc::clone(&self.records),
            key: Vec::new(),
        }
    }

    /// Writes the memtables out and waits until no merge is due.
    pub(crate) fn drain(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_idle()?)
    }

    /// What the tree looks like now.
    pub(crate) fn tree_figures(&self) -> Figures {
        let stats = self.db.stats();
        let trees = stats.keyspaces.iter().filter(|k| !k.levels.iter().all(|l| l.bytes == 0));
        let (mut levels, mut runs, mut files, mut log_files, mut trees_seen) = (0, 0, 0, 0, 0);
        for tree in trees {
            trees_seen += 1;
            // Level 0 counts as runs only: what waits there has no level yet.
            levels += tree.levels.iter().skip(1).filter(|l| l.bytes > 0).count();
            runs += tree.levels.iter().filter(|l| l.run_files > 0).count();
            files += tree.levels.iter().map(|l| l.run_files + l.log_files).sum::<u64>();
            log_files += tree.levels.iter().map(|l| l.log_files).sum::<u64>();
        }
        let trees = f64::from(trees_seen.max(1));
        let (mut filter_bytes, mut entries) = (0, 0);
        for (_, version) in self.db.tree() {
            for (_, _, file) in version.files() {
                filter_bytes += file.filter_bytes;
                entries += file.entries;
            }
        }
        let mut figures = Figures::default();
        figures.set("levels", levels as f64 / trees);
        figures.set("runs", runs as f64 / trees);
        figures.set("files", files as f64);
        figures.set("log_files", log_files as f64);
        figures.set("tree_mib", mib(stats.tree_bytes()));
        figures.set("disk_mib", mib(process::disk_bytes(&self.dir)));
        // Of all since the database was opened.
        figures.set("chain_mib_p50", mib(stats.chains.bytes_p50));
        figures.set("chain_mib_p99", mib(stats.chains.bytes_p99));
        figures.set("chain_levels", stats.chains.length_max as f64);
        figures.set("filter_bits_per_key", filter_bytes as f64 * 8.0 / entries.max(1) as f64);
        figures
    }
}

impl Client {
    /// Puts record `number`.
    pub(crate) fn put(&mut self, number: u64) -> Result<()> {
        self.records.key(number, false, &mut self.key);
        let region = &self.regions[number as usize % self.regions.len()];
        Ok(region.put(&self.key, self.records.value(number))?)
    }

    /// Gets record `number`, or the absent key after it; whether it was there.
    pub(crate) fn get(&mut self, number: u64, absent: bool) -> Result<bool> {
        self.records.key(number, absent, &mut self.key);
        let region = &self.regions[number as usize % self.regions.len()];
        let Some(value) = region.get(&self.key)? else { return Ok(false) };
        if absent {
            return Err(format!("a record after {number} was never put").into());
        }
        if number.is_multiple_of(CHECK_EVERY) && *value != *self.records.value(number) {
            return Err(format!("record {number} has a wrong value").into());
        }
        Ok(true)
    }

    /// Seeks to record `number` and does `nexts` steps; whether there was an entry.
    pub(crate) fn seek(&mut self, number: u64, nexts: u32) -> Result<bool> {
        self.records.key(number, false, &mut self.key);
        let region = &self.regions[number as usize % self.regions.len()];
        let mut cursor = region.cursor(ReadOptions::default());
        let mut valid = cursor.seek(&self.key)?;
        let found = valid;
        for _ in 0..nexts {
            if !valid {
                break;
            }
            std::hint::black_box(cursor.value().len());
            valid = cursor.next()?;
        }
        Ok(found)
    }

    /// One read of a kind.
    pub(crate) fn read(&mut self, read: Read, number: u64, absent: bool) -> Result<bool> {
        match read {
            Read::Get => self.get(number, absent),
            Read::Seek(nexts) => self.seek(number, nexts),
        }
    }
}

/// A measurement of one database. Device traffic is the process's, so nothing
/// else may run meanwhile.
pub(crate) struct Meter {
    stats: Stats,
    traffic: Traffic,
    watch: Stopwatch,
}

/// What a database did in measured stretches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) seconds: f64,
    traffic: Traffic,
    gets: u64,
    gets_of_tables: u64,
    blocks: u64,
    user_bytes: u64,
    wal_bytes: u64,
    tables_bytes: u64,
    merges: u64,
    moves: u64,
    paused_us: u64,
}

impl Meter {
    pub(crate) fn start(database: &Database) -> Meter {
        Meter { stats: database.db.stats(), traffic: Traffic::now(), watch: Stopwatch::start() }
    }

    pub(crate) fn stop(mut self, database: &Database) -> Done {
        let seconds = self.watch.lap().as_secs_f64();
        let (old, new) = (&self.stats, database.db.stats());
        let since = |of: fn(&Stats) -> u64| of(&new) - of(old);
        Done {
            seconds,
            traffic: Traffic::now().since(self.traffic),
            gets: since(|s| s.gets),
            gets_of_tables: since(|s| s.gets_found - s.get_hits_memtable - s.get_hits_frozen),
            blocks: since(|s| s.cache_hits + s.cache_misses),
            user_bytes: since(|s| s.user_bytes),
            wal_bytes: since(|s| s.wal_bytes),
            tables_bytes: since(Stats::tables_written_bytes),
            // Into level 0 it is a flush.
            merges: since(|s| s.levels.iter().skip(1).map(|l| l.merges).sum()),
            moves: since(|s| s.levels.iter().map(|l| l.moves).sum()),
            paused_us: since(|s| s.pauses.iter().map(|p| p.total_us).sum()),
        }
    }
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, other: Done) {
        self.seconds += other.seconds;
        self.traffic += other.traffic;
        self.gets += other.gets;
        self.gets_of_tables += other.gets_of_tables;
        self.blocks += other.blocks;
        self.user_bytes += other.user_bytes;
        self.wal_bytes += other.wal_bytes;
        self.tables_bytes += other.tables_bytes;
        self.merges += other.merges;
        self.moves += other.moves;
        self.paused_us += other.paused_us;
    }
}

impl Done {
    /// Figures of `ops` operations.
    pub(crate) fn figures(&self, ops: u64, figures: &mut Figures) {
        let each = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        figures.set("ops", ops as f64);
        figures.set("seconds", self.seconds);
        figures.set("device_read_mib", mib(self.traffic.read_bytes));
        figures.set("device_written_mib", mib(self.traffic.written_bytes));
        figures.set("device_mib", mib(self.traffic.read_bytes + self.traffic.written_bytes));
        figures.set("device_read_kib_per_op", each(self.traffic.read_bytes, ops) / 1024.0);
        if self.user_bytes > 0 {
            figures.set("kops_per_s", ops as f64 / self.seconds / 1000.0);
            figures.set("wal_mib", mib(self.wal_bytes));
            figures.set("write_amplification", each(self.tables_bytes, self.user_bytes));
            figures.set("compactions", self.merges as f64);
            figures.set("moves", self.moves as f64);
            figures.set("paused_s", self.paused_us as f64 / 1e6);
        }
        if self.gets > 0 {
            // A get that finds its key in a table needs one block; each
            // further one was searched in vain. Level 0 and logs included.
            let wasted = self.blocks.saturating_sub(self.gets_of_tables);
            figures.set("wasted_blocks_per_get", each(wasted, self.gets));
        }
    }
}
