//! The batches of logs, copied into another log.
//!
//! Owns: the order of what is copied: without a gap from the first to the last that the
//! copy is to have. Never does: make a file, or decide which logs there are.

use crate::log::log_source::LogSource;
use crate::log::seq_chain::{LogBatch, LogEntry, SeqChain};
use std::path::Path;
use windrow_base::{Error, FileNumber, Result, SeqNo};
use windrow_env::FileSystem;
use windrow_format::batch::BatchBuf;
use windrow_format::log::{self, Class, FILE_HEADER_BYTES, LogKind, LogPosition};
use windrow_store::manifest::state::WalState;
use windrow_store::write::wal::Wal;

/// Batches that are taken out of logs, one after the other.
pub struct Batches {
    chain: SeqChain,
    batch: BatchBuf,
}

/// A part of a log that is copied.
pub enum Copied<'a> {
    /// The payload of a batch.
    Batch(&'a [u8]),
    /// The time by which the batches before it were written, and none behind it, in ms since 1970.
    Time(u64),
}

/// Takes a part of a log.
pub type TakeCopied<'a> = &'a mut dyn FnMut(Copied<'_>) -> Result<()>;

impl Batches {
    /// None yet; the first one is to have this sequence number.
    pub fn from(first_seq: SeqNo) -> Batches {
        Batches { chain: SeqChain::from(first_seq), batch: BatchBuf::new() }
    }

    /// Hands over the batches of a log, and the times between them, up to byte `end` of it.
    ///
    /// # Errors
    /// `Corruption` where they do not go on from those before; `Io`, `NoSpace`.
    pub fn take(
        &mut self,
        (fs, dir): (&dyn FileSystem, &Path),
        (number, known): (FileNumber, &WalState),
        end: u64,
        to: TakeCopied<'_>,
    ) -> Result<()> {
        let file = LogSource::of(dir, number, Some(known));
        // Read before, up to there: what comes behind is judged by nobody here.
        let mut reader = file.open(fs)?.of_live();
        while let Some(record) = reader.next()? {
            if record.end > end {
                break;
            }
            let located = |error| file.named(error).with_offset(record.offset);
            match self.chain.entry(&record).map_err(located)? {
                LogEntry::Mark(mark) => mark.time_ms.map_or(Ok(()), |ms| to(Copied::Time(ms)))?,
                LogEntry::Batch(batch) => self.hand_over(batch, to).map_err(located)?,
                LogEntry::Gap { batch, .. } => {
                    return Err(located(Error::corruption(format!(
                        "a batch begins with sequence number {}, where {} comes next",
                        batch.first_seq,
                        self.last_seq() + 1
                    ))));
                }
            }
        }
        Ok(())
    }

    /// The last sequence number that was handed over.
    fn last_seq(&self) -> SeqNo {
        self.chain.next_seq().expect("the copy begins somewhere") - 1
    }

    fn hand_over(&mut self, batch: LogBatch<'_>, to: TakeCopied<'_>) -> Result<()> {
        let (first_seq, next_seq) = (batch.first_seq, batch.next_seq());
        self.batch.clear();
        for op in batch.ops {
            let op = op?;
            self.batch.push(op.kind, op.keyspace, op.key, op.value);
        }
        self.batch.set_first_seq(first_seq);
        to(Copied::Batch(self.batch.payload()))?;
        self.chain.go_on_at(next_seq);
        Ok(())
    }

    /// That they went on to `last_seq`.
    ///
    /// # Errors
    /// `Corruption` where they did not.
    pub fn finish(self, last_seq: SeqNo) -> Result<()> {
        match self.last_seq() {
            last if last == last_seq => Ok(()),
            last => Err(Error::corruption(format!(
                "the logs end at sequence number {last}, where {last_seq} was read before"
            ))),
        }
    }
}

/// A log that batches are copied into.
pub struct LogCopy<'a> {
    wal: &'a Wal,
    /// Where the next record goes.
    at: u64,
}

impl LogCopy<'_> {
    /// An empty log.
    pub fn new(wal: &Wal) -> LogCopy<'_> {
        LogCopy { wal, at: FILE_HEADER_BYTES as u64 }
    }

    /// Appends the payload of a batch.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn append(&mut self, payload: &[u8]) -> Result<()> {
        let (framing, uid, offset) = (LogKind::Wal.framing(), self.wal.uid, self.at);
        let place = LogPosition { framing, uid, offset, durable_up_to: 0 };
        let end = offset + place.framed_bytes(payload.len());
        if self.wal.file.reserved_bytes() < end {
            self.wal.file.reserve(end)?;
        }
        log::frame_pieces(payload, Class::Batch, place, |at, piece| {
            self.wal.file.write_at(at, piece)
        })?;
        self.at = end;
        Ok(())
    }

    /// Makes the log durable. Returns its length.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn finish(self) -> Result<u64> {
        self.wal.file.release(self.at);
        self.wal.sync()?;
        Ok(self.at)
    }
}
