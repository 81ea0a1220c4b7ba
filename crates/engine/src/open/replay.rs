//! Replay: the records of the logs back into memtables, and (unless the open
//! is read-only) from there into tables.
//!
//! Sequence numbers are the chain that ties logs together: each record must
//! begin where the one before it ended, across logs. A gap means that the end
//! of a log was lost with the power. Whatever follows it was never promised
//! to anybody, and is dropped, unless a record says that the logs before it
//! were durable when it was written: then something synced is gone, and that
//! is corruption. Marks in the logs say how much of the manifest and of older
//! logs was durable, and the manifest how much of each log: what falls short of
//! that is corruption as well.

use crate::database::Database;
use crate::flush::Flushed;
use crate::manifest::state::{ManifestState, WalState};
use crate::memtable::{LIST_BYTES, Memtable, memory_bytes_of};
use crate::merge::filters::OutputFilters;
use crate::merge::raw::raw_tables;
use crate::open::found::Folded;
use crate::open::logs::{another_log, is_log};
use crate::open::records_left_out::RecordsLeftOut;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{
    Error, FileNumber, KeyspaceId, Result, SeqNo, check_invariant, debug_invariant, unless_mutant,
};
use windrow_env::fs::{ReadOptions, is_out_of_descriptors};
use windrow_format::batch;
use windrow_format::log::{Class, Length, LogKind, Mark, Reader, Record};
use windrow_format::names;
use windrow_plan::tree::{File, Version};

/// What a replay found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) last_seq: SeqNo,
    pub(crate) wal_files: u64,
    pub(crate) batches: u64,
    /// Bytes behind the last valid record that were not written whole.
    pub(crate) torn_bytes: u64,
    /// Whole batches that were not taken over, by log; of a repair, those behind bytes that are
    /// no record.
    pub(crate) left_out: Vec<RecordsLeftOut>,
}

/// What repair has of the logs.
pub(crate) struct Salvaged {
    pub(crate) replayed: Replayed,
    /// Logs of which something was not taken over, and why.
    pub(crate) problems: Vec<(FileNumber, Error)>,
    /// Up to which byte each other log is valid.
    pub(crate) ends: BTreeMap<FileNumber, u64>,
    pub(crate) raw: RawTables,
}

/// What a replay is for: what damage and gaps mean, and where entries go.
enum Mode {
    /// An open: damage of what was synced fails it, and what falls short of what the
    /// logs say of the manifest, where there is one.
    Open(Option<Folded>),
    /// Repair: damage ends the replay instead of failing it.
    Repair,
    /// Repair without a manifest.
    Rebuild(Chains),
}

/// What is found where nothing says with which sequence number the logs begin, or
/// what of them is in tables: chains of records with gaps between them.
struct Chains {
    /// The first record that is there was met: the first chain begins with it.
    begun: bool,
    /// How many gaps were passed.
    gaps: u32,
    /// What says that a gap is no end.
    proof: Proof,
    /// Tables of what the logs hold, entry by entry. They are no part of a tree yet.
    raw: RawTables,
}

/// A replay under way.
pub(crate) struct Replay<'a> {
    database: &'a Database,
    mode: Mode,
    /// Through which sequence number each keyspace's tables reach.
    flushed_through: BTreeMap<KeyspaceId, SeqNo>,
    next_keyspace: u32,
    /// The logs that the manifest names. No other holds records.
    wals: BTreeMap<FileNumber, WalState>,
    /// How far each log that was read is valid.
    ends: BTreeMap<FileNumber, u64>,
    next_seq: SeqNo,
    memtables: BTreeMap<KeyspaceId, Arc<Memtable>>,
    bytes: usize,
    found: Replayed,
    /// A record is missing: everything after it is dropped.
    broken: bool,
    /// Where the last record of the chain ended.
    chain_end: Option<(FileNumber, PathBuf, u64)>,
    /// For repair: logs of which something was not taken over, and why.
    problems: Vec<(FileNumber, Error)>,
    /// What says nothing of the logs: a table could not be written, or a log not
    /// be opened. What the memtables held may be gone by then, so the replay ends.
    failed: Option<Error>,
}

/// Tables of the entries that are in logs, by keyspace; each with the number
/// of gaps in the logs before it.
pub(crate) type RawTables = BTreeMap<KeyspaceId, Vec<(u32, File)>>;

/// What says, without a manifest, that something was written only after all
/// before it was durable: what a gap before it lacks is in tables, then, or was
/// damaged. Without such a proof a gap is the end of what power loss left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proof {
    /// The newest log with a record that says so of all older logs (rule R4).
    pub(crate) log: FileNumber,
    /// The newest sequence number in a table. What is older than a table's
    /// writes is durable before it, or with it.
    pub(crate) seq: SeqNo,
}

impl Proof {
    /// Whether what begins in this log with this sequence number goes on behind a gap.
    fn reaches(self, log: FileNumber, first_seq: SeqNo) -> bool {
        log <= self.log || first_seq <= self.seq + 1
    }
}

impl<'a> Replay<'a> {
    /// A replay of the logs that `state`, folded from `manifest`, asks for.
    pub(crate) fn of_open(
        database: &'a Database,
        state: &ManifestState,
        manifest: Option<Folded>,
    ) -> Replay<'a> {
        Replay::new(database, state, Mode::Open(manifest))
    }

    /// A replay for repair.
    pub(crate) fn of_repair(database: &'a Database, state: &ManifestState) -> Replay<'a> {
        Replay::new(database, state, Mode::Repair)
    }

    /// The same where the manifest is lost.
    pub(crate) fn of_rebuild(
        database: &'a Database,
        state: &ManifestState,
        proof: Proof,
    ) -> Replay<'a> {
        let chains = Chains { begun: false, gaps: 0, proof, raw: RawTables::new() };
        Replay::new(database, state, Mode::Rebuild(chains))
    }

    fn new(database: &'a Database, state: &ManifestState, mode: Mode) -> Replay<'a> {
        let through = state.keyspaces.iter().map(|(id, k)| (*id, k.version.flushed_through));
        Replay {
            database,
            mode,
            flushed_through: through.collect(),
            next_keyspace: state.next_keyspace,
            wals: state.wals.clone(),
            ends: BTreeMap::new(),
            next_seq: state.log_first_seq.max(1),
            memtables: BTreeMap::new(),
            bytes: 0,
            found: Replayed::default(),
            broken: false,
            chain_end: None,
            problems: Vec::new(),
            failed: None,
        }
    }

    /// Replays the logs, oldest first, up to the first damage, or gap that is an end.
    ///
    /// # Errors
    /// What writing a table said, or opening a log, which may be whole.
    pub(crate) fn run_tolerant(mut self, logs: &BTreeMap<FileNumber, PathBuf>) -> Result<Salvaged> {
        for (&number, path) in logs {
            if let Err(error) = self.log(number, path) {
                if let Some(failed) = self.failed {
                    return Err(failed);
                }
                self.broken = true;
                self.problems.push((number, error));
            }
        }
        let replayed = self.finish()?;
        let Replay { problems, ends, mode, .. } = self;
        let raw = match mode {
            Mode::Rebuild(chains) => chains.raw,
            Mode::Open(_) | Mode::Repair => RawTables::new(),
        };
        Ok(Salvaged { replayed, problems, ends, raw })
    }

    /// Replays the logs, oldest first.
    ///
    /// # Errors
    /// `Corruption` naming log and offset where something synced is damaged.
    pub(crate) fn run(mut self, logs: &[(FileNumber, PathBuf)]) -> Result<Replayed> {
        debug_invariant!(R4, logs.is_sorted(), "logs are not replayed oldest first");
        for (number, path) in logs {
            self.log(*number, path)?;
            self.found.wal_files += 1;
        }
        self.finish()
    }

    fn finish(&mut self) -> Result<Replayed> {
        self.put_away()?;
        let left = self.memtables.len();
        check_invariant!(R3, left == 0, "{left} memtables of a replay are left");
        self.found.last_seq = self.next_seq - 1;
        let stored = self.database.catalog.lock().state().last_seq;
        self.found.last_seq = self.found.last_seq.max(stored);
        Ok(std::mem::take(&mut self.found))
    }

    fn log(&mut self, number: FileNumber, path: &Path) -> Result<()> {
        let opened = self.database.env.fs.open(path, ReadOptions::default());
        let file = opened.inspect_err(|error| self.failed = Some(error.clone()))?;
        let known = self.wals.get(&number).copied();
        let synced = known.map(|wal| wal.synced_bytes);
        let mut reader = Reader::open(file, LogKind::Wal, synced)?;
        if !is_log(reader.header(), number, known.as_ref()) {
            return Err(another_log(path));
        }
        let mut left_out = RecordsLeftOut { log: number, ..RecordsLeftOut::default() };
        while let Some(record) = reader.next()? {
            let (class, offset, end) = (record.class, record.offset, record.end);
            let done = match class {
                _ if known.is_none() && matches!(self.mode, Mode::Open(_)) => {
                    Err(Error::corruption("a log holds records, but the manifest does not name it"))
                }
                Class::Batch => {
                    self.pass_gap((number, path, offset), &record)?;
                    self.batch(&record)
                }
                Class::Mark => self.mark(number, record.payload),
                Class::Edit => Err(Error::corruption("an edit of the manifest is in a log")),
            };
            done.map_err(|e| e.with_file(path.display().to_string()).with_offset(offset))?;
            if class == Class::Batch && !self.broken {
                self.chain_end = Some((number, path.to_path_buf(), end));
            } else if class == Class::Batch {
                if left_out.batches == 0 {
                    left_out.from_byte = offset;
                }
                left_out.batches += 1;
            }
        }
        let (end, torn_bytes) = (reader.valid_bytes(), reader.torn().unwrap_or(0));
        self.ends.insert(number, end);
        self.found.torn_bytes += torn_bytes;
        if left_out.batches == 0 {
            left_out.from_byte = end;
        }
        left_out.batches += reader.batches_behind();
        left_out.to_byte = end + torn_bytes;
        if left_out.batches > 0 {
            unless_mutant!(LeftOutUnsaid, self.found.left_out.push(left_out));
        }
        Ok(())
    }

    /// Compares what a log remembers of other files with what was found of them.
    fn mark(&self, log: FileNumber, payload: &[u8]) -> Result<()> {
        let mark = Mark::decode(payload)?;
        let Mode::Open(manifest) = &self.mode else { return Ok(()) };
        if let Some(manifest) = manifest {
            manifest.check(&self.database.dir, mark.manifest, log)?;
        }
        for Length { number, bytes } in mark.logs {
            if let Some(&end) = self.ends.get(&number).filter(|end| **end < bytes) {
                let path = self.database.dir.join(names::wal(number));
                return Err(Error::corruption(format!(
                    "log is valid up to byte {end} only, but log {log} saw {bytes} bytes of it synced"
                ))
                .with_file(path.display().to_string())
                .with_offset(end));
            }
        }
        Ok(())
    }

    fn batch(&mut self, record: &Record<'_>) -> Result<()> {
        let (first_seq, count, ops) = batch::decode(record.payload, record.framing)?;
        if let Mode::Rebuild(chains) = &mut self.mode
            && !std::mem::replace(&mut chains.begun, true)
        {
            self.next_seq = first_seq;
        }
        if first_seq != self.next_seq || self.broken {
            return self.gap(first_seq, record.durable_up_to);
        }
        if !matches!(self.mode, Mode::Open(_)) {
            // What goes on behind a batch that is not sound takes none of it.
            ops.clone().try_for_each(|op| self.flushed_through_of(op?.keyspace).map(drop))?;
        }
        let mut seq = first_seq;
        for op in ops {
            let op = op?;
            if let Some(memtable) = self.memtable(op.keyspace, seq)? {
                self.bytes += memory_bytes_of(op.kind, op.key.len() + op.value.len());
                memtable.insert(op.kind, seq, op.key, op.value);
            }
            seq += 1;
            self.put_away_if_full(seq)?;
        }
        debug_assert_eq!(seq, first_seq + u64::from(count));
        self.next_seq = seq;
        self.found.batches += 1;
        Ok(())
    }

    /// Empties the memtables where they are full, also within a batch: an older
    /// version, or a larger budget, let in batches that this budget cannot hold.
    /// A part of it is in force only when the whole open is.
    fn put_away_if_full(&mut self, next_seq: SeqNo) -> Result<()> {
        if self.bytes < self.database.shares.memtable_bytes as usize || self.is_read_only() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.next_seq, next_seq);
        debug_invariant!(R3, before <= next_seq, "a replay goes from {before} back to {next_seq}");
        let done = self.put_away();
        self.next_seq = before;
        done
    }

    /// For repair without a manifest: goes on behind a gap, if what it lacks is in
    /// tables or was damaged. After power loss a log may be back whose unlink was
    /// not durable, and those between it and the logs in use gone, or without
    /// records. The logs around it are reported all the same: nothing says that
    /// the tables which held what is missing are whole.
    fn pass_gap(
        &mut self,
        (log, path, offset): (FileNumber, &Path, u64),
        record: &Record<'_>,
    ) -> Result<()> {
        let Mode::Rebuild(Chains { begun: true, proof, .. }) = self.mode else { return Ok(()) };
        if self.broken {
            return Ok(());
        }
        let (first_seq, ..) = batch::decode(record.payload, record.framing)?;
        if first_seq <= self.next_seq || !proof.reaches(log, first_seq) {
            return Ok(());
        }
        self.put_away()?;
        let (from, to) = (self.next_seq, first_seq - 1);
        debug_assert!(from <= to, "a gap from {from} to {to}");
        let what = format!("sequence numbers {from} to {to} are in no log: in tables, or lost");
        let around = self.chain_end.take().into_iter().chain([(log, path.to_path_buf(), offset)]);
        for (number, path, at) in around {
            let error = Error::corruption(what.clone()).with_file(path.display().to_string());
            self.problems.push((number, error.with_offset(at)));
        }
        if let Mode::Rebuild(chains) = &mut self.mode {
            chains.gaps += 1;
        }
        self.next_seq = first_seq;
        Ok(())
    }

    /// A record that does not continue the chain.
    fn gap(&mut self, first_seq: SeqNo, durable_up_to: u64) -> Result<()> {
        if first_seq < self.next_seq && !self.broken {
            return Err(Error::corruption(format!(
                "sequence number {first_seq} comes again after {}",
                self.next_seq - 1
            )));
        }
        if !matches!(self.mode, Mode::Open(_)) {
            return Err(Error::corruption(format!(
                "what begins with sequence number {first_seq} was not taken over: {} is missing",
                self.next_seq
            )));
        }
        if durable_up_to > 0 {
            return Err(Error::corruption(format!(
                "the records from sequence number {} to {first_seq} are missing, and were synced",
                self.next_seq
            )));
        }
        self.broken = true;
        Ok(())
    }

    /// The memtable for an operation; `None` where its effect is in tables
    /// already, or its keyspace was dropped.
    fn memtable(&mut self, id: KeyspaceId, seq: SeqNo) -> Result<Option<Arc<Memtable>>> {
        let Some(through) = self.flushed_through_of(id)? else { return Ok(None) };
        if seq <= through {
            return Ok(None);
        }
        debug_invariant!(R3, self.next_seq <= seq, "{seq} is replayed before {}", self.next_seq);
        if let Some(memtable) = self.memtables.get(&id) {
            return Ok(Some(memtable.clone()));
        }
        let memtable = Arc::new(self.database.tree(id)?.new_memtable());
        self.memtables.insert(id, memtable.clone());
        self.bytes += LIST_BYTES;
        Ok(Some(memtable))
    }

    /// Up to where a keyspace is in tables; `None` where it was dropped.
    fn flushed_through_of(&self, id: KeyspaceId) -> Result<Option<SeqNo>> {
        match self.flushed_through.get(&id) {
            None if id.0 >= self.next_keyspace => {
                Err(Error::corruption(format!("keyspace {id} was never made")))
            }
            through => Ok(through.copied()),
        }
    }

    fn is_read_only(&self) -> bool {
        self.database.write_state.check().is_err()
    }

    /// Empties the memtables. What keeps it from that is no damage of the log
    /// that is being read.
    fn put_away(&mut self) -> Result<()> {
        self.write_tables().inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn write_tables(&mut self) -> Result<()> {
        let Mode::Rebuild(chains) = &mut self.mode else { return self.store() };
        for (id, memtable) in std::mem::take(&mut self.memtables) {
            let tree = self.database.tree(id)?;
            let files = raw_tables(self.database, &tree, &memtable)?;
            let files = files.into_iter().map(|file| (chains.gaps, file));
            chains.raw.entry(id).or_default().extend(files);
        }
        self.bytes = 0;
        Ok(())
    }

    /// Puts what is in the memtables where reads find it.
    fn store(&mut self) -> Result<()> {
        let memtables = std::mem::take(&mut self.memtables);
        let last_seq = self.next_seq - 1;
        let mut written = Vec::new();
        for (id, memtable) in memtables {
            let tree = self.database.tree(id)?;
            memtable.freeze(last_seq);
            if self.is_read_only() {
                tree.adopt(memtable);
                continue;
            }
            let flushed = match self.write_level0(&tree, &memtable) {
                // Those that are written and not finished yet hold some.
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

    /// Makes tables durable, all at once, and part of their trees.
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
