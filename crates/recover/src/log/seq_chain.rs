//! The chain of sequence numbers that ties the records of logs together: each batch begins where
//! the one before it ended, across logs.
//!
//! A gap means that the end of a log is missing: lost with the power, damaged, or not written yet.
//! It is proved that the missing records existed and were durable, where the batch behind the gap
//! says that the logs up to it were synced when it was written.
//!
//! Owns: the meaning of a record, and where the chain goes on. Never does: decide how a reader
//! treats a gap.

use windrow_base::{Error, Result, SeqNo};
use windrow_format::batch::{self, OpIter};
use windrow_format::log::{Class, LogRecord, Mark};

/// A batch of a log.
#[derive(Clone)]
pub struct LogBatch<'a> {
    pub first_seq: SeqNo,
    pub count: u32,
    pub ops: OpIter<'a>,
}

impl LogBatch<'_> {
    /// The sequence number that the next batch begins with.
    pub fn next_seq(&self) -> SeqNo {
        self.first_seq + u64::from(self.count)
    }
}

/// The meaning of a record.
pub enum LogEntry<'a> {
    /// A batch that goes on where the chain ends.
    Batch(LogBatch<'a>),
    /// Lengths of other files that were durable.
    Mark(Mark),
    /// A batch that goes on later: a record before it is missing.
    Gap {
        /// The batch behind the gap.
        batch: LogBatch<'a>,
        /// Whether the missing records were durable when this batch was written.
        proved: bool,
    },
}

/// Where the chain goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeqChain {
    /// `None`: at the first batch that comes.
    next_seq: Option<SeqNo>,
    is_broken: bool,
}

impl SeqChain {
    /// A chain that begins with this sequence number.
    pub fn from(next_seq: SeqNo) -> SeqChain {
        SeqChain { next_seq: Some(next_seq), is_broken: false }
    }

    /// The sequence number that comes next; `None` before the first batch, where no other source
    /// gives it.
    pub fn next_seq(&self) -> Option<SeqNo> {
        self.next_seq
    }

    /// Whether it has ended at a gap.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns the meaning of a record.
    ///
    /// # Errors
    /// `Corruption` for a record that does not belong in a log, and for a sequence number that
    /// comes again.
    pub fn entry<'r>(&self, record: &LogRecord<'r>) -> Result<LogEntry<'r>> {
        match record.class {
            Class::Batch => {}
            Class::Mark => return Mark::decode(record.payload).map(LogEntry::Mark),
            Class::Edit => {
                return Err(Error::corruption("an edit of the manifest is in a log"));
            }
        }
        let (first_seq, count, ops) = batch::decode(record.payload, record.framing)?;
        let batch = LogBatch { first_seq, count, ops };
        let next_seq = self.next_seq.unwrap_or(first_seq);
        if self.is_broken || first_seq > next_seq {
            return Ok(LogEntry::Gap { batch, proved: record.durable_up_to > 0 });
        }
        if first_seq < next_seq {
            let last = next_seq - 1;
            let text = format!("sequence number {first_seq} comes again after {last}");
            return Err(Error::corruption(text));
        }
        Ok(LogEntry::Batch(batch))
    }

    /// Goes on with this sequence number: behind a batch that was taken, a gap that was passed, or
    /// the entries that are in tables.
    pub fn go_on_at(&mut self, next_seq: SeqNo) {
        debug_assert!(self.next_seq <= Some(next_seq), "{self:?} goes back to {next_seq}");
        self.next_seq = Some(next_seq);
    }

    /// Ends it: every later batch is behind a gap.
    pub(crate) fn break_off(&mut self) {
        self.is_broken = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::{KeyspaceId, Kind};
    use windrow_format::batch::BatchBuf;
    use windrow_format::log::LogKind;

    /// Describes the answer of the chain to a batch of two from `first_seq` on.
    fn said(chain: &SeqChain, first_seq: SeqNo, durable_up_to: u64) -> String {
        let mut buf = BatchBuf::new();
        buf.push(Kind::Put, KeyspaceId::DEFAULT, b"a", b"1");
        buf.push(Kind::Put, KeyspaceId::DEFAULT, b"b", b"2");
        buf.set_first_seq(first_seq);
        let (class, framing) = (Class::Batch, LogKind::Wal.framing());
        let payload = buf.payload();
        let record = LogRecord { class, framing, payload, offset: 0, end: 0, durable_up_to };
        match chain.entry(&record) {
            Ok(LogEntry::Batch(batch)) => format!("goes on to {}", batch.next_seq()),
            Ok(LogEntry::Gap { batch, proved }) => format!("{} {proved}", batch.first_seq),
            Ok(LogEntry::Mark(_)) => "mark".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_batch_goes_on_is_behind_a_gap_or_comes_again() {
        let mut chain = SeqChain::default();
        assert_eq!(said(&chain, 7, 0), "goes on to 9");
        chain.go_on_at(9);
        assert_eq!(said(&chain, 9, 0), "goes on to 11");
        assert_eq!(said(&chain, 10, 0), "10 false");
        assert_eq!(said(&chain, 10, 1), "10 true");
        assert!(said(&chain, 8, 0).contains("8 comes again after 8"));
        chain.break_off();
        assert_eq!(said(&chain, 9, 0), "9 false");
        assert_eq!(said(&chain, 1, 1), "1 true");
    }
}
