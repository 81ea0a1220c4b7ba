//! How far changes go up to a moment, as they are read one after the other.
//!
//! Owns: which batches are part of a moment. Never does: choose a backup.

use super::super::change_part::{Item, PartBatch, not_next};
use std::collections::BTreeMap;
use windrow_base::{KeyspaceId, Kind, Result, SeqNo};

/// A moment in the history of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// Behind the write with this sequence number. A batch that ends behind it is not part of the
    /// moment, and neither is the drop of a keyspace that came right behind it.
    Seq(SeqNo),
    /// This time, in ms since 1970, by the clock of the machine that wrote. Nothing later is part of
    /// it. The log remembers the time once a second: writes of the second before the moment, or before
    /// a crash, may be left out.
    Time(u64),
}

/// The changes up to a moment.
#[derive(Default)]
pub(super) struct Found {
    /// The last sequence number that was read.
    pub(super) read_seq: SeqNo,
    /// The first write to each keyspace.
    pub(super) used: BTreeMap<KeyspaceId, SeqNo>,
    pub(super) ingested: Vec<(KeyspaceId, SeqNo)>,
}

/// How far the changes go up to a moment.
pub(super) struct Reached {
    to: Moment,
    /// The last sequence number that is part of it for certain.
    settled: (SeqNo, u64),
    /// Whether a later one was seen.
    is_over: bool,
    batches: u64,
}

impl Reached {
    pub(super) fn new(to: Moment, base_seq: SeqNo) -> Reached {
        Reached { to, settled: (base_seq, 0), is_over: false, batches: 0 }
    }

    /// Whether no more changes are needed, with those up to `read_seq`.
    pub(super) fn is_over(&self, read_seq: SeqNo) -> bool {
        self.is_over || matches!(self.to, Moment::Seq(seq) if seq <= read_seq)
    }

    /// Takes an item. Returns whether more is needed.
    pub(super) fn take(&mut self, item: Item<'_>, found: &mut Found) -> Result<bool> {
        match item {
            Item::Time(ms) => {
                if let Moment::Time(to_ms) = self.to {
                    self.is_over = to_ms < ms;
                    if !self.is_over {
                        self.settled = (found.read_seq, self.batches);
                    }
                }
            }
            Item::Batch(batch) => {
                // The database had it in another session already, or a follower's backup has it.
                if batch.last_seq <= found.read_seq {
                    return Ok(true);
                }
                if batch.first_seq != found.read_seq + 1 {
                    return Err(not_next(batch.first_seq, found.read_seq + 1));
                }
                if matches!(self.to, Moment::Seq(seq) if seq < batch.last_seq) {
                    self.is_over = true;
                    return Ok(false);
                }
                self.batch(batch, found)?;
            }
        }
        Ok(!self.is_over)
    }

    fn batch(&mut self, batch: PartBatch<'_>, found: &mut Found) -> Result<()> {
        found.read_seq = batch.last_seq;
        self.batches += 1;
        for (seq, op) in (batch.first_seq..).zip(batch.ops) {
            let op = op?;
            found.used.entry(op.keyspace).or_insert(seq);
            // No batch has an empty range: see `Pipeline::ingest`.
            if op.kind == Kind::RangeDelete && op.key == op.value {
                found.ingested.push((op.keyspace, seq));
            }
        }
        if matches!(self.to, Moment::Seq(_)) {
            self.settled = (batch.last_seq, self.batches);
        }
        Ok(())
    }

    /// The sequence number of the moment, if the changes go on to it. `made_ms`: the time at which
    /// the last backup was made, which has nothing else.
    pub(super) fn end(&self, made_ms: Option<u64>, found: &Found) -> Option<(SeqNo, u64)> {
        let is_reached = match self.to {
            Moment::Seq(_) => self.is_over(found.read_seq),
            Moment::Time(to_ms) => self.is_over || made_ms.is_some_and(|ms| to_ms < ms),
        };
        is_reached.then_some(self.settled)
    }
}
