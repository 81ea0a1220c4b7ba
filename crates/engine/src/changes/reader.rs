//! Reading the feed: from a sequence number on, through the logs, batch by batch.
//!
//! Each fill opens the log again: it grows, it may have been renamed, and a window of it that was
//! read before may lack records. A fill reads many batches where there are many.
//!
//! Owns: the place of a consumer. Never does: wait, or decide which logs there are.

use super::change::{Change, Operation, ReadChange};
use super::key_filter::KeyFilter;
use super::log_list::{FeedLog, LogList, taken_back};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use windrow_base::{Error, FileNumber, KeyspaceId, Result, SeqNo, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::is_not_found;
use windrow_format::log::{FILE_HEADER_BYTES, LogReader};
use windrow_recover::log::log_source::LogSource;
use windrow_recover::log::seq_chain::{LogBatch, LogEntry, SeqChain};
use windrow_store::manifest::record::DroppedKeyspace;

/// The bytes of a log that a fill reads, unless one batch has more.
const FILL_BYTES: u64 = 256 << 10;

/// Finds the name of a keyspace that is there.
pub(super) type NameOf<'a> = &'a dyn Fn(KeyspaceId) -> Option<Arc<str>>;

/// A consumer's place in the feed.
pub(super) struct FeedReader {
    /// The number that comes next.
    next_seq: SeqNo,
    /// The log that is read, and where; `None`: the number finds it.
    at: Option<(FileNumber, u64)>,
    /// Whether batches before `next_seq` are passed over, as its log was looked for.
    seeks: bool,
    /// Whether nothing was read yet. The first batch may begin before the number that was asked for.
    is_new: bool,
    ready: VecDeque<ReadChange>,
    /// Names of keyspaces; `None` for one that is gone and was not written to lately.
    names: HashMap<KeyspaceId, Option<Arc<str>>>,
    /// Drops that were handed out, or are older than what was asked for.
    dropped: BTreeSet<KeyspaceId>,
    /// `None`: all operations are handed out.
    filter: Option<KeyFilter>,
}

impl FeedReader {
    /// A consumer that begins with `from`. Drops before it are not for this one.
    pub(super) fn new(
        from: SeqNo,
        dropped: &[DroppedKeyspace],
        filter: Option<KeyFilter>,
    ) -> FeedReader {
        let is_before = |drop: &&DroppedKeyspace| drop.seq + 1 < from;
        FeedReader {
            next_seq: from,
            at: None,
            seeks: true,
            is_new: true,
            ready: VecDeque::new(),
            names: HashMap::new(),
            dropped: dropped.iter().filter(is_before).map(|drop| drop.id).collect(),
            filter,
        }
    }

    /// The number of the next operation to be read.
    pub(super) fn next_seq(&self) -> SeqNo {
        self.next_seq
    }

    /// Takes the next change that was read.
    pub(super) fn take(&mut self) -> Option<Change> {
        self.ready.pop_front().map(|read| read.change)
    }

    /// The next change that was read, which is not taken.
    pub(super) fn first(&mut self) -> Option<&mut ReadChange> {
        self.ready.front_mut()
    }

    /// Reads on in the logs. An error is for a later call if there is a change before it.
    ///
    /// # Errors
    /// `InvalidArgument` if they do not have what comes next; `Corruption` of a log; `Io`.
    pub(super) fn fill(
        &mut self,
        place: (&Env, &Path),
        list: &LogList,
        name_of: NameOf<'_>,
    ) -> Result<()> {
        let read = self.read_on(place, list, name_of);
        if self.ready.is_empty() { read } else { Ok(()) }
    }

    fn read_on(
        &mut self,
        (env, dir): (&Env, &Path),
        list: &LogList,
        name_of: NameOf<'_>,
    ) -> Result<()> {
        while self.ready.is_empty() && self.next_seq <= list.through {
            let known = self.at.and_then(|(number, _)| list.find(number));
            let log = match known {
                Some(log) => log,
                None => {
                    let log = list.seek(self.next_seq)?;
                    self.begin(log);
                    self.seeks = true;
                    log
                }
            };
            if self.read((env, dir), log, list, name_of)? {
                continue;
            }
            match list.after(log.number, self.next_seq)? {
                Some(next) => self.begin(next),
                None => break,
            }
        }
        if self.ready.is_empty() || list.through < self.next_seq {
            self.drops_before(SeqNo::MAX, list);
        }
        Ok(())
    }

    fn begin(&mut self, log: FeedLog) {
        self.at = Some((log.number, FILE_HEADER_BYTES as u64));
    }

    /// Reads a part of a log. Returns whether there may be more in it.
    fn read(
        &mut self,
        (env, dir): (&Env, &Path),
        log: FeedLog,
        list: &LogList,
        name_of: NameOf<'_>,
    ) -> Result<bool> {
        let (_, from) = self.at.expect("a log is read from a place");
        let end = log.end.unwrap_or(u64::MAX);
        if end <= from {
            return Ok(false);
        }
        let file = LogSource::of_uid(dir, log.number, log.uid);
        let opened = match file.file(&*env.fs) {
            Ok(opened) => opened,
            // It was removed since the list was made.
            Err(error) if is_not_found(&error) => return Err(list.gone(self.next_seq)),
            Err(error) => return Err(error),
        };
        // It may have another name than that of a log.
        let named = |error: Error| error.with_file(opened.path().display().to_string());
        let mut reader = file.reader(opened.clone())?.of_live().up_to(end).go_on_at(from);
        let more = self.records(&mut reader, (from, end), list, name_of).map_err(named)?;
        let (_, at) = self.at.expect("a log is read from a place");
        if !more && log.end.is_some_and(|end| at < end) && self.next_seq <= list.through {
            let what = format!("the log has no whole record here, and was written up to {end}");
            return Err(named(Error::corruption(what).with_offset(at)));
        }
        Ok(more)
    }

    fn records(
        &mut self,
        reader: &mut LogReader,
        (from, end): (u64, u64),
        list: &LogList,
        name_of: NameOf<'_>,
    ) -> Result<bool> {
        // Without the numbers that come: a record says itself which it has.
        let chain = SeqChain::default();
        while self.next_seq <= list.through {
            let Some(record) = reader.next()? else { return Ok(false) };
            if end < record.end {
                return Ok(false);
            }
            let (offset, record_end) = (record.offset, record.end);
            let located = |error: Error| error.with_offset(offset);
            if let LogEntry::Batch(batch) = chain.entry(&record).map_err(located)? {
                if list.through < batch.next_seq() - 1 {
                    return Ok(false);
                }
                if !self.batch(batch, list, name_of).map_err(located)? {
                    return Ok(false);
                }
            }
            if let Some((_, at)) = &mut self.at {
                *at = record_end;
            }
            if FILL_BYTES <= record_end - from && !self.ready.is_empty() {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Takes a batch. Returns `false`, with nothing done, if records before it are missing.
    fn batch(&mut self, batch: LogBatch<'_>, list: &LogList, name_of: NameOf<'_>) -> Result<bool> {
        let next_seq = batch.next_seq();
        if next_seq <= self.next_seq && self.seeks {
            return Ok(true);
        }
        if self.next_seq < batch.first_seq {
            return if self.seeks { Err(list.gone(self.next_seq)) } else { Ok(false) };
        }
        if batch.first_seq < self.next_seq && !self.is_new {
            return Err(taken_back(self.next_seq, batch.first_seq));
        }
        let mut operations = Vec::with_capacity(batch.count as usize);
        let mut keyspaces = Vec::with_capacity(batch.count as usize);
        for (seq, op) in (batch.first_seq..).zip(batch.ops) {
            let op = op?;
            if self.filter.as_ref().is_some_and(|filter| !filter.sees(&op)) {
                continue;
            }
            let is_late = |drop: &DroppedKeyspace| drop.id == op.keyspace && drop.seq < seq;
            if list.dropped.iter().any(is_late) {
                continue;
            }
            if let Some(name) = self.name(op.keyspace, list, name_of) {
                operations.push(Operation::of(&op, name)?);
                keyspaces.push(op.keyspace);
            }
        }
        self.drops_before(batch.first_seq, list);
        let change = Change { first_seq: batch.first_seq, seq: next_seq - 1, operations };
        if self.filter.is_none() || !keyspaces.is_empty() {
            self.ready.push_back(ReadChange { change, keyspaces });
        }
        (self.next_seq, self.seeks, self.is_new) = (next_seq, false, false);
        Ok(true)
    }

    /// Hands out the drops that came before an operation, and after those that were read.
    fn drops_before(&mut self, seq: SeqNo, list: &LogList) {
        let mut drops: Vec<_> = list.dropped.iter().filter(|drop| drop.seq < seq).collect();
        drops.sort_by_key(|drop| (drop.seq, drop.id));
        for drop in drops {
            let is_seen = self.filter.as_ref().is_none_or(|filter| filter.sees_drop(drop.id));
            if drop.seq < self.next_seq && self.dropped.insert(drop.id) && is_seen {
                let keyspace = drop.name.clone();
                let operations = vec![Operation::KeyspaceDropped { keyspace }];
                let (first_seq, seq) = (self.next_seq, self.next_seq - 1);
                let change = Change { first_seq, seq, operations };
                let read = ReadChange { change, keyspaces: vec![drop.id] };
                unless_mutant!(DropUnfed, self.ready.push_back(read));
            }
        }
    }

    fn name(&mut self, id: KeyspaceId, list: &LogList, name_of: NameOf<'_>) -> Option<Arc<str>> {
        let look = || {
            let was = || list.dropped.iter().find(|drop| drop.id == id);
            name_of(id).or_else(|| was().map(|drop| drop.name.clone()))
        };
        // A copy for this consumer: the count of one that all shared would wander between processors.
        let own = || look().map(|name| Arc::from(&*name));
        self.names.entry(id).or_insert_with(own).clone()
    }
}
