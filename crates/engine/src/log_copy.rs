//! The records of another database's logs, copied into a log of one's own.
//!
//! Owns: the order of what is copied: without a gap from the first to the last that the
//! copy is to have. Never does: make a file, or decide which logs there are.

use crate::manifest::state::WalState;
use crate::open::logs::{another_log, is_log};
use crate::write::wal::Wal;
use std::path::Path;
use windrow_base::{Error, FileNumber, Result, SeqNo};
use windrow_env::FileSystem;
use windrow_env::fs::ReadOptions;
use windrow_format::batch::{self, BatchBuf};
use windrow_format::log::{self, Class, FILE_HEADER_BYTES, LogKind, Place, Reader, Record};
use windrow_format::names;

/// A log that records are copied into.
pub(crate) struct LogCopy<'a> {
    wal: &'a Wal,
    /// Where the next record goes.
    at: u64,
    next_seq: SeqNo,
    batch: BatchBuf,
}

impl LogCopy<'_> {
    /// An empty log, whose first record is to have this sequence number.
    pub(crate) fn new(wal: &Wal, first_seq: SeqNo) -> LogCopy<'_> {
        LogCopy { wal, at: FILE_HEADER_BYTES as u64, next_seq: first_seq, batch: BatchBuf::new() }
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
        let path = dir.join(names::wal(number));
        let file = fs.open(&path, ReadOptions::default())?;
        // Read before, up to there: what comes behind is judged by nobody here.
        let mut reader = Reader::open(file, LogKind::Wal, None)?.of_live();
        if !is_log(reader.header(), number, Some(known)) {
            return Err(another_log(&path));
        }
        while let Some(record) = reader.next()? {
            if record.end > end {
                break;
            }
            if record.class == Class::Batch {
                let named = |e: Error| e.with_file(path.display().to_string());
                self.append(&record).map_err(|e| named(e).with_offset(record.offset))?;
            }
        }
        Ok(())
    }

    fn append(&mut self, record: &Record<'_>) -> Result<()> {
        let (first_seq, count, ops) = batch::decode(record.payload, record.framing)?;
        if first_seq != self.next_seq {
            let next = self.next_seq;
            return Err(Error::corruption(format!(
                "a batch begins with sequence number {first_seq}, where {next} comes next"
            )));
        }
        self.batch.clear();
        for op in ops {
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
        self.next_seq = first_seq + u64::from(count);
        Ok(())
    }

    /// Makes the log durable, which must go on to `last_seq`. Returns its length.
    ///
    /// # Errors
    /// `Corruption` where it does not; what the file system said.
    pub(crate) fn finish(self, last_seq: SeqNo) -> Result<u64> {
        let last = self.next_seq - 1;
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
