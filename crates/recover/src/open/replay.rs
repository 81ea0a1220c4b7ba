//! Replay: the records of the logs into tables of level 0.
//!
//! The records go to memtables, and from there into tables as soon as the memtables are full, also
//! within a batch: an older version, or a larger budget, accepted batches that this budget cannot
//! hold. A part of a batch is in force only when the whole open is.
//!
//! Owns: the memtables of an open for writing, and of a repair. Never does: judge a record
//! (`log/logs_at_rest.rs`).

use crate::database::Database;
use crate::log::logs_at_rest::{LogsAtRest, Proof, Purpose, Replayed};
use crate::log::memtables::keyspace;
use crate::log::seq_chain::LogBatch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{
    Error, FileNumber, KeyspaceId, Result, SeqNo, check_invariant, debug_invariant,
};
use windrow_env::fs::is_out_of_descriptors;
use windrow_plan::tree::{File, Version};
use windrow_read::memtable::{LIST_BYTES, Memtable, memory_bytes_of};
use windrow_store::jobs::flush::Flushed;
use windrow_store::manifest::folded_manifest::FoldedManifest;
use windrow_store::manifest::state::ManifestState;
use windrow_store::merge::filters::OutputFilters;
use windrow_store::merge::raw_tables::raw_tables;
use windrow_store::tree::Tree;

/// The result that repair has of the logs.
pub struct Salvaged {
    pub(crate) replayed: Replayed,
    /// Logs from which records were not taken over, and why.
    pub(crate) problems: Vec<(FileNumber, Error)>,
    /// The byte up to which each other log is valid.
    pub ends: BTreeMap<FileNumber, u64>,
    pub(crate) raw: RawTables,
}

/// Tables of the entries that are in logs, by keyspace, each with the number of gaps in the logs
/// before it.
pub type RawTables = BTreeMap<KeyspaceId, Vec<(u32, File)>>;

/// A replay under way.
pub struct Replay<'a> {
    logs: LogsAtRest<'a>,
    tables: ReplayTarget<'a>,
}

/// The memtables and tables that the records go to.
struct ReplayTarget<'a> {
    database: &'a Database,
    state: &'a ManifestState,
    purpose: Purpose,
    memtables: BTreeMap<KeyspaceId, Arc<Memtable>>,
    bytes: usize,
    /// The last sequence number that was taken.
    last_seq: SeqNo,
    /// How many gaps a rebuild has passed.
    gaps: u32,
    /// Of a rebuild: tables of the logs' entries, one by one. They are no part of a tree yet.
    raw: RawTables,
    /// The error of a table that could not be written. The entries of the memtables may be lost by
    /// then, so the replay ends. The error says nothing of the log that was being read.
    failed: Option<Error>,
}

impl<'a> Replay<'a> {
    /// A replay of the logs that `state`, folded from `manifest`, names.
    pub(crate) fn of_open(
        database: &'a Database,
        state: &'a ManifestState,
        manifest: Option<FoldedManifest>,
    ) -> Replay<'a> {
        Replay::new(database, state, Purpose::Open(manifest))
    }

    /// A replay for repair.
    pub fn of_repair(database: &'a Database, state: &'a ManifestState) -> Replay<'a> {
        Replay::new(database, state, Purpose::Repair)
    }

    /// A replay for a repair whose manifest is lost.
    pub(crate) fn of_rebuild(
        database: &'a Database,
        state: &'a ManifestState,
        proof: Proof,
    ) -> Replay<'a> {
        Replay::new(database, state, Purpose::Rebuild(proof))
    }

    fn new(database: &'a Database, state: &'a ManifestState, purpose: Purpose) -> Replay<'a> {
        let logs = LogsAtRest::new((&database.env, &database.dir), state, purpose);
        let tables = ReplayTarget {
            database,
            state,
            purpose,
            memtables: BTreeMap::new(),
            bytes: 0,
            last_seq: logs.last_seq(),
            gaps: 0,
            raw: RawTables::new(),
            failed: None,
        };
        Replay { logs, tables }
    }

    /// Replays the logs, oldest first, up to the first damage, or up to a gap that ends them.
    ///
    /// # Errors
    /// The errors of writing a table, and of opening a log, which may be whole.
    pub(crate) fn run_tolerant(mut self, logs: &BTreeMap<FileNumber, PathBuf>) -> Result<Salvaged> {
        for (&number, path) in logs {
            if let Err(error) = self.log(number, path) {
                if let Some(failed) = self.tables.failed.take().or(self.logs.unopened.take()) {
                    return Err(failed);
                }
                self.logs.break_off();
                self.logs.problems.push((number, error));
            }
        }
        let replayed = self.finish()?;
        let Replay { logs: LogsAtRest { problems, ends, .. }, tables } = self;
        Ok(Salvaged { replayed, problems, ends, raw: tables.raw })
    }

    /// Replays the logs, oldest first.
    ///
    /// # Errors
    /// `Corruption` naming log and offset where something synced is damaged.
    pub fn run(mut self, logs: &[(FileNumber, PathBuf)]) -> Result<Replayed> {
        debug_invariant!(R4, logs.is_sorted(), "logs are not replayed oldest first");
        for (number, path) in logs {
            self.log(*number, path)?;
            self.logs.found.wal_files += 1;
        }
        self.finish()
    }

    fn log(&mut self, number: FileNumber, path: &Path) -> Result<()> {
        let Replay { logs, tables } = self;
        logs.read((number, path), &mut |batch, is_behind_gap| tables.take(batch, is_behind_gap))
    }

    fn finish(&mut self) -> Result<Replayed> {
        self.tables.put_away()?;
        let left = self.tables.memtables.len();
        check_invariant!(R3, left == 0, "{left} memtables of a replay are left");
        let stored = self.tables.database.catalog.lock().state().last_seq;
        let mut found = std::mem::take(&mut self.logs.found);
        found.last_seq = self.logs.last_seq().max(stored);
        Ok(found)
    }
}

impl ReplayTarget<'_> {
    fn take(&mut self, batch: LogBatch<'_>, is_behind_gap: bool) -> Result<()> {
        if is_behind_gap {
            self.put_away()?;
            self.gaps += 1;
        }
        if !matches!(self.purpose, Purpose::Open(_)) {
            // If any operation of a batch behind a gap is damaged, none is taken.
            batch.ops.clone().try_for_each(|op| keyspace(self.state, op?.keyspace).map(drop))?;
        }
        let last_seq = batch.next_seq() - 1;
        for (seq, op) in (batch.first_seq..).zip(batch.ops) {
            let op = op?;
            if let Some(memtable) = self.memtable(op.keyspace, seq)? {
                self.bytes += memory_bytes_of(op.kind, op.key.len() + op.value.len());
                memtable.insert(op.kind, seq, op.key, op.value);
            }
            self.last_seq = seq;
            if self.bytes >= self.database.shares.memtable_bytes as usize {
                self.put_away()?;
            }
        }
        debug_assert_eq!(self.last_seq, last_seq, "a batch has another count than it says");
        Ok(())
    }

    /// The memtable for an operation; `None` where its effect is in tables already, or its keyspace
    /// was dropped.
    fn memtable(&mut self, id: KeyspaceId, seq: SeqNo) -> Result<Option<Arc<Memtable>>> {
        let Some(keyspace) = keyspace(self.state, id)? else { return Ok(None) };
        if seq <= keyspace.version.flushed_through {
            return Ok(None);
        }
        debug_invariant!(R3, self.last_seq < seq, "{seq} is replayed after {}", self.last_seq);
        if let Some(memtable) = self.memtables.get(&id) {
            return Ok(Some(memtable.clone()));
        }
        let memtable = Arc::new(self.database.tree(id)?.new_memtable());
        self.memtables.insert(id, memtable.clone());
        self.bytes += LIST_BYTES;
        Ok(Some(memtable))
    }

    /// Empties the memtables. An error of that is no damage of the log that is being read.
    fn put_away(&mut self) -> Result<()> {
        let written = match self.purpose {
            Purpose::Rebuild(_) => self.write_raw(),
            Purpose::Open(_) | Purpose::Repair => self.store(),
        };
        written.inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn write_raw(&mut self) -> Result<()> {
        for (id, memtable) in std::mem::take(&mut self.memtables) {
            let tree = self.database.tree(id)?;
            let files = raw_tables(self.database, &tree, &memtable)?;
            let files = files.into_iter().map(|file| (self.gaps, file));
            self.raw.entry(id).or_default().extend(files);
        }
        self.bytes = 0;
        Ok(())
    }

    /// Writes the entries of the memtables to level 0.
    fn store(&mut self) -> Result<()> {
        let memtables = std::mem::take(&mut self.memtables);
        let last_seq = self.last_seq;
        let mut written = Vec::new();
        for (id, memtable) in memtables {
            let tree = self.database.tree(id)?;
            memtable.freeze(last_seq);
            let flushed = match self.write_level0(&tree, &memtable) {
                // Tables that are written and not finished yet hold some descriptors.
                Err(error) if is_out_of_descriptors(&error) && !written.is_empty() => {
                    self.install(std::mem::take(&mut written), last_seq)?;
                    self.write_level0(&tree, &memtable)
                }
                flushed => flushed,
            };
            written.push((tree, flushed?));
            if written.len() >= self.database.jobs.group_max() {
                self.install(std::mem::take(&mut written), last_seq)?;
            }
        }
        self.install(written, last_seq)?;
        self.bytes = 0;
        let queue = self.database.pipeline.queue();
        queue.set_visible(last_seq.max(queue.visible()));
        Ok(())
    }

    fn write_level0(&self, tree: &Tree, memtable: &Memtable) -> Result<Flushed> {
        let filters = Arc::new(OutputFilters::of_flush(tree, memtable.entries()));
        self.database.jobs.write_level0(tree, memtable, filters)
    }

    /// Makes tables durable, all at once, and adds them to their trees.
    fn install(&self, mut written: Vec<(Arc<Tree>, Flushed)>, last_seq: SeqNo) -> Result<()> {
        let unfinished = written.iter_mut().flat_map(|(_, flushed)| flushed.take_unfinished());
        self.database.jobs.finish_tables(unfinished.collect())?;
        let mut catalog = self.database.catalog.lock();
        for (tree, flushed) in written {
            let edit = |version: &Version| flushed.edit(version, last_seq);
            tree.install(catalog.edit_unlogged(tree.id, edit)?, None);
            let through = tree.version().flushed_through;
            check_invariant!(R3, last_seq <= through, "a replay to {last_seq} is in to {through}");
        }
        Ok(())
    }
}
