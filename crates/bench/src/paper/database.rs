//! One contender's database: opened as its case says, asked by record number,
//! and measured.
//!
//! Owns: which figures come of its counters. Never does: know a paper, or
//! invent a figure that its engine does not tell.

use super::experiment::{Case, Contender, Read, Setting};
use super::records::Records;
use crate::process::{self, Stopwatch, Traffic, mib};
use crate::report::Figures;
use crate::store::{self, Codec, Common, Counters, Engine, Result, Store, Sync};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::{Db, Settings};

/// Every so many gets, the value that came back is compared in full.
const CHECK_EVERY: u64 = 64;

/// An open database of a case.
pub(super) struct Database {
    pub(super) contender: Contender,
    pub(super) dir: PathBuf,
    pub(super) records: Arc<Records>,
    regions: u32,
    /// The same database as `store`, where a phase looks into its tables.
    windrow: Option<Db>,
    store: Box<dyn Store>,
}

/// What a client has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    puts: u64,
    /// Bytes of keys and values put.
    put_bytes: u64,
    gets: u64,
}

impl Asked {
    #[cfg(test)]
    pub(super) fn put_bytes(self) -> u64 {
        self.put_bytes
    }
}

impl std::ops::AddAssign for Asked {
    fn add_assign(&mut self, other: Asked) {
        self.puts += other.puts;
        self.put_bytes += other.put_bytes;
        self.gets += other.gets;
    }
}

/// One client of a database, with buffers of its own.
pub(super) struct Client<'a> {
    database: &'a Database,
    key: Vec<u8>,
    value: Vec<u8>,
    asked: Asked,
}

/// What a contender is opened with.
fn common(case: &Case, contender: &Contender, overrides: &[Setting]) -> Result<Common> {
    // Else the page cache hides what a policy costs.
    let mut shared = Settings { direct_io: true, ..Settings::default() };
    let plain = case.settings.iter().chain(overrides).filter(|(name, _)| !name.contains('.'));
    for (name, value) in plain {
        shared.set(name, value)?;
    }
    let settings = case.settings.iter().chain(&contender.settings).chain(overrides);
    Ok(Common {
        variant: contender.variant.clone(),
        memory_bytes: shared.memory_bytes,
        background_threads: shared.background_threads,
        direct_io: shared.direct_io,
        codec: Codec::None,
        spaces: case.regions,
        settings: settings.cloned().collect(),
    })
}

impl Database {
    /// Opens (or makes) the database of `contender` in `dir`.
    pub(super) fn open(
        engines: &[Engine],
        dir: &Path,
        (case, contender): (&Case, &Contender),
        overrides: &[Setting],
        records: &Arc<Records>,
    ) -> Result<Database> {
        let common = common(case, contender, overrides)?;
        let name = &contender.engine;
        let (windrow, store) = if case.estimates() {
            let db = Db::open_with(dir, store::windrow::options(&common)?)?;
            (Some(db.clone()), store::windrow::over(db, common.spaces)?)
        } else {
            let engine = engines.iter().find(|engine| engine.name == *name);
            let engine = engine.ok_or_else(|| format!("no engine `{name}` in this program"))?;
            (None, (engine.open)(dir, &common)?)
        };
        Ok(Database {
            contender: contender.clone(),
            dir: dir.to_owned(),
            records: Arc::clone(records),
            regions: case.regions.max(1),
            windrow,
            store,
        })
    }

    /// A client of this database.
    pub(super) fn client(&self) -> Client<'_> {
        Client { database: self, key: Vec::new(), value: Vec::new(), asked: Asked::default() }
    }

    /// Windrow's own view of it, in a case whose phases need that.
    pub(super) fn windrow(&self) -> Result<&Db> {
        self.windrow.as_ref().ok_or_else(|| "only Windrow estimates searches".into())
    }

    /// Bytes of keys and values that the engine says were put.
    #[cfg(test)]
    pub(super) fn user_bytes(&self) -> Option<u64> {
        self.store.counters().user_bytes
    }

    /// Writes the memtables out and waits until no merge is due.
    pub(super) fn drain(&self) -> Result<()> {
        self.store.drain()
    }

    /// Closes it; its files can be copied then.
    pub(super) fn close(self) -> Result<()> {
        drop(self.windrow);
        self.store.close()
    }

    /// What the tree looks like now.
    pub(super) fn tree_figures(&self) -> Figures {
        let tree = self.store.tree();
        let mut figures = Figures::default();
        let mut told = |name: &str, value: Option<f64>| {
            if let Some(value) = value {
                figures.set(name, value);
            }
        };
        told("levels", tree.levels);
        told("runs", tree.runs);
        told("files", tree.files.map(|files| files as f64));
        told("log_files", tree.log_files.map(|files| files as f64));
        told("tree_mib", tree.bytes.map(mib));
        told("disk_mib", Some(mib(process::disk_bytes(&self.dir))));
        // Of all since the database was opened.
        told("chain_mib_p50", tree.chain_bytes.map(|(p50, _)| mib(p50)));
        told("chain_mib_p99", tree.chain_bytes.map(|(_, p99)| mib(p99)));
        told("chain_levels", tree.chain_levels.map(|levels| levels as f64));
        told("filter_bits_per_key", tree.filter_bits_per_key);
        figures
    }
}

impl Client<'_> {
    /// What was asked for since the last call.
    pub(super) fn take_asked(&mut self) -> Asked {
        std::mem::take(&mut self.asked)
    }

    /// The space that record `number` is in; its key is now in `key`.
    fn find(&mut self, number: u64, absent: bool) -> u32 {
        self.database.records.key(number, absent, &mut self.key);
        (number % u64::from(self.database.regions)) as u32
    }

    /// Puts record `number`.
    pub(super) fn put(&mut self, number: u64) -> Result<()> {
        let space = self.find(number, false);
        let value = self.database.records.value(number);
        self.asked.puts += 1;
        self.asked.put_bytes += (self.key.len() + value.len()) as u64;
        self.database.store.put(space, &self.key, value, Sync::No)
    }

    /// Gets record `number`, or the absent key after it; whether it was there.
    pub(super) fn get(&mut self, number: u64, absent: bool) -> Result<bool> {
        let space = self.find(number, absent);
        self.asked.gets += 1;
        if !self.database.store.get(space, &self.key, &mut self.value)? {
            return Ok(false);
        }
        if absent {
            return Err(format!("a record after {number} was never put").into());
        }
        let records = &self.database.records;
        if number.is_multiple_of(CHECK_EVERY) && self.value != records.value(number) {
            return Err(format!("record {number} has a wrong value").into());
        }
        Ok(true)
    }

    /// Seeks to record `number` and does `nexts` steps; whether there was an entry.
    pub(super) fn seek(&mut self, number: u64, nexts: u32) -> Result<bool> {
        let space = self.find(number, false);
        let mut seen = 0;
        let mut look = |key: &[u8], value: &[u8]| seen += key.len() + value.len();
        let entries = u64::from(nexts) + 1;
        let met = self.database.store.scan(space, &self.key, entries, &mut look)?;
        std::hint::black_box(seen);
        Ok(met > 0)
    }

    /// One read of a kind.
    pub(super) fn read(&mut self, read: Read, number: u64, absent: bool) -> Result<bool> {
        match read {
            Read::Get => self.get(number, absent),
            Read::Seek(nexts) => self.seek(number, nexts),
        }
    }
}

/// A measurement of one database. Device traffic is the process's, so nothing
/// else may run meanwhile.
pub(super) struct Meter {
    counters: Counters,
    traffic: Traffic,
    watch: Stopwatch,
}

/// What a database did in a measured stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) seconds: f64,
    traffic: Traffic,
    asked: Asked,
    gets_of_tables: Option<u64>,
    blocks: Option<u64>,
    wal_bytes: Option<u64>,
    tables_bytes: Option<u64>,
    merges: Option<u64>,
    moves: Option<u64>,
    paused_us: Option<u64>,
}

impl Meter {
    pub(super) fn start(database: &Database) -> Meter {
        let counters = database.store.counters();
        Meter { counters, traffic: Traffic::now(), watch: Stopwatch::start() }
    }

    /// Ends the stretch, in which clients asked for so much.
    pub(super) fn stop(mut self, database: &Database, asked: Asked) -> Done {
        let seconds = self.watch.lap().as_secs_f64();
        let (old, new) = (&self.counters, database.store.counters());
        let since = |of: fn(&Counters) -> Option<u64>| Some(of(&new)?.saturating_sub(of(old)?));
        Done {
            seconds,
            traffic: Traffic::now().since(self.traffic),
            asked,
            gets_of_tables: since(|c| c.gets_of_tables),
            blocks: since(|c| c.blocks),
            wal_bytes: since(|c| c.wal_bytes),
            tables_bytes: since(|c| c.tables_written_bytes),
            merges: since(|c| c.merges),
            moves: since(|c| c.moves),
            paused_us: since(|c| c.paused_us),
        }
    }
}

impl Done {
    /// This stretch and another of the same database.
    pub(super) fn and(mut self, other: Done) -> Done {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        self.seconds += other.seconds;
        self.traffic += other.traffic;
        self.asked += other.asked;
        self.gets_of_tables = sum(self.gets_of_tables, other.gets_of_tables);
        self.blocks = sum(self.blocks, other.blocks);
        self.wal_bytes = sum(self.wal_bytes, other.wal_bytes);
        self.tables_bytes = sum(self.tables_bytes, other.tables_bytes);
        self.merges = sum(self.merges, other.merges);
        self.moves = sum(self.moves, other.moves);
        self.paused_us = sum(self.paused_us, other.paused_us);
        self
    }

    /// Figures of `ops` operations. What the engine does not count is left out.
    pub(super) fn figures(&self, ops: u64, figures: &mut Figures) {
        let each = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        let (read, written) = (self.traffic.read_bytes, self.traffic.written_bytes);
        figures.set("ops", ops as f64);
        figures.set("seconds", self.seconds);
        figures.set("device_read_mib", mib(read));
        figures.set("device_written_mib", mib(written));
        figures.set("device_mib", mib(read + written));
        figures.set("device_read_kib_per_op", each(read, ops) / 1024.0);
        let mut told = |name: &str, value: Option<f64>| {
            if let Some(value) = value {
                figures.set(name, value);
            }
        };
        if self.asked.puts > 0 {
            told("kops_per_s", Some(ops as f64 / self.seconds / 1000.0));
            told("wal_mib", self.wal_bytes.map(mib));
            let amplification = self.tables_bytes.map(|bytes| each(bytes, self.asked.put_bytes));
            told("write_amplification", amplification);
            told("compactions", self.merges.map(|merges| merges as f64));
            told("moves", self.moves.map(|moves| moves as f64));
            told("paused_s", self.paused_us.map(|us| us as f64 / 1e6));
        }
        if self.asked.gets > 0 {
            // A get that finds its key in a table needs one block; each
            // further one was searched in vain. Level 0 and logs included.
            let wasted = self.blocks.zip(self.gets_of_tables);
            let wasted = wasted.map(|(blocks, found)| blocks.saturating_sub(found));
            told("wasted_blocks_per_get", wasted.map(|blocks| each(blocks, self.asked.gets)));
        }
    }
}
