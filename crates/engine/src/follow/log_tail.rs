//! The write-ahead log of a database that another process has open, as far as it was
//! read, and the memtables that hold what is in no table yet.
//!
//! The manifest is read before the log. What it says is in tables was published before,
//! and so is in the log where that is read now. The chain of sequence numbers says where
//! reading ends: at the first record that is missing, which a writer is about to write. It
//! ends as well where what follows came after more of the manifest than was read: behind a mark
//! that says so, and before an ingestion that is not in it. So nothing is shown without the
//! ingestion, or the keyspace made or dropped, that came before it. Nothing from there on was
//! published when the manifest was read.
//!
//! A memtable is filled on while earlier moments are read: they see the sequence numbers
//! of their own only. What is in tables is let go: a memtable at once, and one of which
//! a part is in tables is made again without that. An operand that was found in both would
//! count twice.
//!
//! Owns: the order of records, and what of them is kept. Never does: read the manifest.

use super::tail::{Tail, Took};
use crate::manifest::state::{ManifestState, WalState};
use crate::memtable::Memtable;
use crate::open::logs::{another_log, is_log};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use windrow_base::key::{Kind, trailer_kind, trailer_seq};
use windrow_base::{Error, FileNumber, KeyOrder, KeyspaceId, Result, SeqNo, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::ReadOptions;
use windrow_format::batch::{self, Op};
use windrow_format::log::{Class, Length, LogKind, Mark, Reader, Record};
use windrow_format::names;
use windrow_skiplist::ChunkPool;

/// A memtable is left for the next one at this size: what is made again is small.
const MEMTABLE_BYTES: usize = 4 << 20;

/// How often records are looked for that another log says must be there.
const TRIES: u32 = 3;

/// The log, up to where it was read.
pub(super) struct LogTail {
    /// The log that is read, and where reading it ended.
    log: FileNumber,
    at: u64,
    next_seq: SeqNo,
    keyspaces: BTreeMap<KeyspaceId, Vec<Filled>>,
    chunks: Arc<ChunkPool>,
}

/// A memtable, and what of the log is in it.
struct Filled {
    memtable: Arc<Memtable>,
    first_seq: SeqNo,
    last_seq: SeqNo,
}

/// How far the log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// As far as it goes.
    All,
    /// Up to a record of which the manifest says more by now.
    UntilManifest,
    /// Up to a mark: the manifest is so long at the least, and was read less far.
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
    /// A mark says that the manifest was this long before what follows.
    Manifest(Length),
}

/// The manifest, as far as it was read.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) state: &'a ManifestState,
    pub(super) length: Length,
}

impl Known<'_> {
    /// Whether less was read than was durable when a mark was made.
    fn is_before(&self, seen: Length) -> bool {
        (self.length.number, self.length.bytes) < (seen.number, seen.bytes)
    }
}

impl LogTail {
    /// Nothing was read of the logs that `state` names.
    pub(super) fn new(state: &ManifestState, chunks: Arc<ChunkPool>) -> LogTail {
        let next_seq = state.log_first_seq.max(1);
        LogTail { log: 0, at: 0, next_seq, keyspaces: BTreeMap::new(), chunks }
    }

    /// The last sequence number that was read.
    pub(super) fn last_seq(&self) -> SeqNo {
        self.next_seq - 1
    }

    /// The last log that was read, and how far.
    pub(super) fn end(&self) -> Option<(FileNumber, u64)> {
        (self.log > 0).then_some((self.log, self.at))
    }

    /// The memtables of a keyspace, oldest first.
    pub(super) fn memtables(&self, id: KeyspaceId) -> impl Iterator<Item = &Arc<Memtable>> {
        self.keyspaces.get(&id).into_iter().flatten().map(|filled| &filled.memtable)
    }

    /// Lets go of what is in tables by now, and reads the records that are there.
    ///
    /// # Errors
    /// `Corruption` where what is durable is damaged; `Io`. What was read is of no use then.
    pub(super) fn go_on(&mut self, env: &Env, dir: &Path, known: Known<'_>) -> Result<Read> {
        let state = known.state;
        unless_mutant!(FollowedTwice, self.let_go(state));
        if state.clean_close.is_some() {
            self.next_seq = self.next_seq.max(state.last_seq + 1);
            return Ok(Read::All);
        }
        // What is missing before it is in tables: its log is out of force.
        self.next_seq = self.next_seq.max(state.log_first_seq);
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

    /// Reads the logs from the one on that was read last. `is_promised`: a later log goes
    /// on behind a gap.
    fn read_logs(
        &mut self,
        env: &Env,
        dir: &Path,
        known: Known<'_>,
        is_promised: bool,
    ) -> Result<Option<Stopped>> {
        let state = known.state;
        let mut promised = is_promised;
        for (&number, wal) in state.wals.range(self.log.max(state.log_number)..) {
            let (at, before) = (if number == self.log { self.at } else { 0 }, self.next_seq);
            let (end, stopped) = self.read_log(env, dir, known, (number, wal, at), promised)?;
            // One that was made ahead may have marks, while the one before is written to.
            if number == self.log || before < self.next_seq {
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
        known: Known<'_>,
        (number, wal, at): (FileNumber, &WalState, u64),
        is_promised: bool,
    ) -> Result<(u64, Option<Stopped>)> {
        let path = dir.join(names::wal(number));
        let open = || {
            let file = env.fs.open(&path, ReadOptions::default())?;
            let reader = Reader::open(file, LogKind::Wal, Some(wal.synced_bytes))?;
            match is_log(reader.header(), number, Some(wal)) {
                true => Ok(reader),
                false => Err(another_log(&path)),
            }
        };
        let mut stopped = None;
        let mut tail = Tail { open: &open, at };
        let mut take = |record: &Record<'_>| match record.class {
            Class::Mark => {
                let seen = Mark::decode(record.payload)?.manifest;
                stopped = known.is_before(seen).then_some(Stopped::Manifest(seen));
                Ok(if stopped.is_some() { Took::Nothing } else { Took::It })
            }
            Class::Edit => Err(Error::corruption("an edit of the manifest is in a log")),
            Class::Batch => {
                stopped = self.batch(record, known.state)?;
                Ok(if stopped.is_some() { Took::Nothing } else { Took::It })
            }
        };
        let mut read = tail.read(&mut take);
        if matches!(read, Ok(true)) && (is_promised || tail.at < wal.synced_bytes) {
            read = tail.read_promised(&mut take);
        }
        let end = tail.at;
        read.map_err(|error| error.with_file(path.display().to_string()))?;
        Ok((end, stopped))
    }

    /// Takes a batch whole, or says why not.
    fn batch(&mut self, record: &Record<'_>, state: &ManifestState) -> Result<Option<Stopped>> {
        let (first_seq, count, ops) = batch::decode(record.payload, record.framing)?;
        if first_seq < self.next_seq {
            return Err(Error::corruption(format!(
                "sequence number {first_seq} comes again after {}",
                self.next_seq - 1
            )));
        }
        if first_seq > self.next_seq {
            return Ok(Some(Stopped::Gap));
        }
        // All of it is looked at before any of it is taken.
        for op in ops.clone() {
            let op = op?;
            if op.keyspace.0 >= state.next_keyspace {
                return Ok(Some(Stopped::UnknownKeyspace));
            }
            let keyspace = state.keyspaces.get(&op.keyspace);
            let lacks = keyspace.is_some_and(|k| k.version.flushed_through < first_seq);
            if lacks && is_ingestion(&op) {
                return Ok(Some(Stopped::Ingestion));
            }
        }
        for (seq, op) in (first_seq..).zip(ops) {
            let op = op?;
            let Some(keyspace) = state.keyspaces.get(&op.keyspace) else { continue };
            if seq > keyspace.version.flushed_through {
                let memtable = self.memtable(op.keyspace, &keyspace.version.order, seq);
                memtable.insert(op.kind, seq, op.key, op.value);
            }
        }
        self.next_seq = first_seq + u64::from(count);
        Ok(None)
    }

    /// The memtable for the next entry of a keyspace.
    fn memtable(&mut self, id: KeyspaceId, order: &KeyOrder, seq: SeqNo) -> &Memtable {
        let list = self.keyspaces.entry(id).or_default();
        let has_room = |last: &Filled| last.memtable.allocated_bytes() < MEMTABLE_BYTES;
        if !list.last().is_some_and(has_room) {
            let memtable = Arc::new(Memtable::new(order.clone(), self.chunks.clone()));
            list.push(Filled { memtable, first_seq: seq, last_seq: seq });
        }
        let last = list.last_mut().expect("there is one with room");
        last.last_seq = seq;
        last.memtable.freeze(seq);
        &last.memtable
    }

    /// Lets go of what is in tables, and of keyspaces that were dropped.
    fn let_go(&mut self, state: &ManifestState) {
        let chunks = &self.chunks;
        self.keyspaces.retain(|id, list| {
            let Some(keyspace) = state.keyspaces.get(id) else { return false };
            let through = keyspace.version.flushed_through;
            list.retain(|filled| through < filled.last_seq);
            for filled in list.iter_mut().filter(|filled| filled.first_seq <= through) {
                *filled = filled.without(through, &keyspace.version.order, chunks);
            }
            !list.is_empty()
        });
    }
}

/// Whether all that the log has of an operation is its place: see `Pipeline::ingest`.
fn is_ingestion(op: &Op<'_>) -> bool {
    op.kind == Kind::RangeDelete && op.key == op.value
}

impl Filled {
    /// A memtable of what comes after `through`.
    fn without(&self, through: SeqNo, order: &KeyOrder, chunks: &Arc<ChunkPool>) -> Filled {
        let kept = Memtable::new(order.clone(), chunks.clone());
        if let Some(mut cursor) = self.memtable.cursor() {
            cursor.seek_first();
            while cursor.valid() {
                let seq = trailer_seq(cursor.trailer());
                if seq > through {
                    let kind = Kind::from_u8(trailer_kind(cursor.trailer()));
                    let kind = kind.expect("an entry that was inserted with its kind");
                    kept.insert(kind, seq, cursor.key(), cursor.value());
                }
                cursor.next();
            }
        }
        for chunk in &*self.memtable.tombstones() {
            for (start, end, seq) in chunk.tombstones().filter(|(_, _, seq)| *seq > through) {
                kept.insert(Kind::RangeDelete, seq, start, end);
            }
        }
        kept.freeze(self.last_seq);
        Filled { memtable: Arc::new(kept), first_seq: through + 1, last_seq: self.last_seq }
    }
}
