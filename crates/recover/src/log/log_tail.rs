//! The write-ahead log of a database that another process has open, as far as it was read, and the
//! memtables of the entries that are in no table yet.
//!
//! The manifest is read before the log. The entries that it says are in tables were published
//! before, and so are in the log that is read now. Reading ends where the chain of sequence numbers
//! does: at the first record that is missing, which a writer is about to write. It also ends where
//! later records came after more of the manifest than was read: behind a mark that says so, and
//! before an ingestion that is not in the manifest as it was read. So no write is shown without the
//! ingestion, or the keyspace made or dropped, that came before it. No record from there on was
//! published when the manifest was read.
//!
//! Owns: the place where reading a live log stops. Never does: read the manifest.

use crate::log::growing_log::{GrowingLog, Took};
use crate::log::log_source::LogSource;
use crate::log::memtables::LogMemtables;
use crate::log::seq_chain::{LogBatch, LogEntry, SeqChain};
use std::path::Path;
use std::sync::Arc;
use windrow_base::{FileNumber, Kind, Result, SeqNo, unless_mutant};
use windrow_env::Env;
use windrow_format::batch::Op;
use windrow_format::log::{Length, LogRecord, Mark};
use windrow_skiplist::ChunkPool;
use windrow_store::manifest::state::{ManifestState, WalState};

/// The size at which the next memtable begins. It bounds the part that is copied by `let_go`.
const MEMTABLE_BYTES: usize = 4 << 20;

/// How often reading is tried again for records that must be there, as another log says.
const TRIES: u32 = 3;

/// The log, up to where it was read.
pub struct LogTail {
    /// The log that is read, and where reading it ended.
    log: FileNumber,
    at: u64,
    chain: SeqChain,
    pub memtables: LogMemtables,
}

/// How far the log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// As far as it goes.
    All,
    /// Up to a record of a keyspace that only a longer part of the manifest can know.
    UntilManifest,
    /// Up to a mark, which says that the manifest has at least this length. Less of it was read.
    UntilLength(Length),
}

/// Why reading a log stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// A record before it is missing.
    Gap,
    /// It writes to a keyspace that is not known.
    UnknownKeyspace,
    /// Its tables are not in the manifest yet.
    Ingestion,
    /// A mark says that the manifest was this long before the later records.
    Manifest(Length),
}

/// The manifest, as far as it was read.
#[derive(Clone, Copy)]
pub struct KnownManifest<'a> {
    pub state: &'a ManifestState,
    pub length: Length,
}

impl KnownManifest<'_> {
    /// Whether the part that was read is shorter than the part that was durable at a mark.
    fn is_before(&self, seen: Length) -> bool {
        (self.length.number, self.length.bytes) < (seen.number, seen.bytes)
    }
}

impl LogTail {
    /// A tail that has read nothing of the logs that `state` names.
    pub fn new(state: &ManifestState, chunks: Arc<ChunkPool>) -> LogTail {
        let chain = SeqChain::from(state.log_first_seq.max(1));
        LogTail { log: 0, at: 0, chain, memtables: LogMemtables::new(chunks, MEMTABLE_BYTES) }
    }

    /// The last sequence number that was read.
    pub fn last_seq(&self) -> SeqNo {
        self.next_seq() - 1
    }

    fn next_seq(&self) -> SeqNo {
        self.chain.next_seq().expect("it began with the first of the logs")
    }

    /// The last log that was read, and how far.
    pub fn end(&self) -> Option<(FileNumber, u64)> {
        (self.log > 0).then_some((self.log, self.at))
    }

    /// Releases the entries that are in tables by now, and reads the records that are there.
    ///
    /// # Errors
    /// `Corruption` where durable bytes are damaged; `Io`. Then drop the tail: it is incomplete.
    pub fn go_on(&mut self, env: &Env, dir: &Path, known: KnownManifest<'_>) -> Result<Read> {
        let state = known.state;
        unless_mutant!(FollowedTwice, self.memtables.let_go(state));
        if state.clean_close.is_some() {
            self.chain.go_on_at(self.next_seq().max(state.last_seq + 1));
            return Ok(Read::All);
        }
        // Missing records before it are in tables: their log is out of force.
        self.chain.go_on_at(self.next_seq().max(state.log_first_seq));
        let mut tries = 0;
        loop {
            match self.read_logs(env, dir, known, tries > 0)? {
                Some(Stopped::Manifest(length)) => return Ok(Read::UntilLength(length)),
                Some(Stopped::UnknownKeyspace) => return Ok(Read::UntilManifest),
                Some(Stopped::Gap) if tries < TRIES => tries += 1,
                _ => return Ok(Read::All),
            }
        }
    }

    /// Reads the logs, from the one that was read last. `is_promised`: a later log goes on behind a
    /// gap.
    fn read_logs(
        &mut self,
        env: &Env,
        dir: &Path,
        known: KnownManifest<'_>,
        is_promised: bool,
    ) -> Result<Option<Stopped>> {
        let state = known.state;
        let mut promised = is_promised;
        for (&number, wal) in state.wals.range(self.log.max(state.log_number)..) {
            let (at, before) = (if number == self.log { self.at } else { 0 }, self.next_seq());
            let (end, stopped) = self.read_log(env, dir, known, (number, wal, at), promised)?;
            // A log that was made ahead may have marks while the log before it is appended to.
            if number == self.log || before < self.next_seq() {
                (self.log, self.at) = (number, end);
            }
            if stopped.is_some() {
                return Ok(stopped);
            }
            promised = false;
        }
        Ok(None)
    }

    fn read_log(
        &mut self,
        env: &Env,
        dir: &Path,
        known: KnownManifest<'_>,
        (number, wal, at): (FileNumber, &WalState, u64),
        is_promised: bool,
    ) -> Result<(u64, Option<Stopped>)> {
        let file = LogSource::of(dir, number, Some(wal));
        let open = || file.open(&*env.fs);
        let mut stopped = None;
        let mut tail = GrowingLog { open: &open, at };
        let mut take = |record: &LogRecord<'_>| {
            stopped = match self.chain.entry(record)? {
                LogEntry::Mark(Mark { manifest: seen, .. }) => {
                    known.is_before(seen).then_some(Stopped::Manifest(seen))
                }
                LogEntry::Gap { .. } => Some(Stopped::Gap),
                LogEntry::Batch(batch) => self.batch(batch, known.state)?,
            };
            Ok(if stopped.is_some() { Took::Nothing } else { Took::It })
        };
        let mut read = tail.read(&mut take);
        if matches!(read, Ok(true)) && (is_promised || tail.at < wal.synced_bytes) {
            read = tail.read_promised(&mut take);
        }
        let end = tail.at;
        read.map_err(|error| file.named(error))?;
        Ok((end, stopped))
    }

    /// Takes a batch whole, or says why not.
    fn batch(&mut self, batch: LogBatch<'_>, state: &ManifestState) -> Result<Option<Stopped>> {
        // All operations are checked before any is taken.
        for op in batch.ops.clone() {
            let op = op?;
            if op.keyspace.0 >= state.next_keyspace {
                return Ok(Some(Stopped::UnknownKeyspace));
            }
            let keyspace = state.keyspaces.get(&op.keyspace);
            let lacks = keyspace.is_some_and(|k| k.version.flushed_through < batch.first_seq);
            if lacks && is_ingestion(&op) {
                return Ok(Some(Stopped::Ingestion));
            }
        }
        let next_seq = batch.next_seq();
        self.memtables.take(batch, state)?;
        self.chain.go_on_at(next_seq);
        Ok(None)
    }
}

/// Whether the log has only the place of an operation: see `Pipeline::ingest`.
fn is_ingestion(op: &Op<'_>) -> bool {
    op.kind == Kind::RangeDelete && op.key == op.value
}
