//! The records of another database's logs, copied into a log of one's own.
//!
//! Owns: the order of what is copied: without a gap from the first to the last that the
//! copy is to have. Never does: make a file, or decide which logs there are.

use std::path::Path;
use windrow_base::{Error, FileNumber, Result, SeqNo};
use windrow_env::FileSystem;
use windrow_format::batch::BatchBuf;
use windrow_format::log::{self, Class, FILE_HEADER_BYTES, LogKind, Place};
use windrow_recover::log::chain::{Batch, Chain, Entry};
use windrow_recover::log::file::LogFile;
use windrow_store::manifest::state::WalState;
use windrow_store::write::wal::Wal;

/// A log that records are copied into.
pub(crate) struct LogCopy<'a> {
    wal: &'a Wal,
    /// Where the next record goes.
    at: u64,
    chain: Chain,
    batch: BatchBuf,
}

impl LogCopy<'_> {
    /// An empty log, whose first record is to have this sequence number.
    pub(crate) fn new(wal: &Wal, first_seq: SeqNo) -> LogCopy<'_> {
        let (at, chain) = (FILE_HEADER_BYTES as u64, Chain::from(first_seq));
        LogCopy { wal, at, chain, batch: BatchBuf::new() }
    }

    /// Appends the batches of a log, up to byte `end` of it.
    ///
    /// # Errors
    /// `Corruption` where they do not go on from those before; `Io`, `NoSpace`.
    pub(crate) fn take(
        &mut self,
        (fs, dir): (&dyn FileSystem, &Path),
        (number, known): (FileNumber, &WalState),
        end: u64,
    ) -> Result<()> {
        let file = LogFile::of(dir, number, Some(known));
        // Read before, up to there: what comes behind is judged by nobody here.
        let mut reader = file.open(fs)?.of_live();
        while let Some(record) = reader.next()? {
            if record.end > end {
                break;
            }
            let located = |error| file.named(error).with_offset(record.offset);
            match self.chain.entry(&record).map_err(located)? {
                Entry::Mark(_) => {}
                Entry::Batch(batch) => self.append(batch).map_err(located)?,
                Entry::Gap { batch, .. } => {
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

    fn last_seq(&self) -> SeqNo {
        self.chain.next_seq().expect("the copy begins somewhere") - 1
    }

    fn append(&mut self, batch: Batch<'_>) -> Result<()> {
        let (first_seq, next_seq) = (batch.first_seq, batch.next_seq());
        self.batch.clear();
        for op in batch.ops {
            let op = op?;
            self.batch.push(op.kind, op.keyspace, op.key, op.value);
        }
        self.batch.set_first_seq(first_seq);
        let payload = self.batch.payload();
        let (framing, uid, offset) = (LogKind::Wal.framing(), self.wal.uid, self.at);
        let place = Place { framing, uid, offset, durable_up_to: 0 };
        let end = offset + place.framed_bytes(payload.len());
        if self.wal.file.reserved_bytes() < end {
            self.wal.file.reserve(end)?;
        }
        log::frame_pieces(payload, Class::Batch, place, |at, piece| {
            self.wal.file.write_at(at, piece)
        })?;
        self.at = end;
        self.chain.go_on_at(next_seq);
        Ok(())
    }

    /// Makes the log durable, which must go on to `last_seq`. Returns its length.
    ///
    /// # Errors
    /// `Corruption` where it does not; what the file system said.
    pub(crate) fn finish(self, last_seq: SeqNo) -> Result<u64> {
        let last = self.last_seq();
        if last != last_seq {
            return Err(Error::corruption(format!(
                "the logs end at sequence number {last}, where {last_seq} was read before"
            )));
        }
        self.wal.file.release(self.at);
        self.wal.sync()?;
        Ok(self.at)
    }
}
