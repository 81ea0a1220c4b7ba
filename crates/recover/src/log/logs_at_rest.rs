//! Reading logs that no writer appends to: those that an open, or a repair, finds.
//!
//! Records behind a gap were never acknowledged as durable, and are left out. The exception is a
//! record which says that the logs before it were durable when it was written: then something
//! synced is gone, and that is corruption. Marks in the logs say how much of the manifest and of
//! older logs was durable, and the manifest says how much of each log was: a file that is shorter
//! is corruption as well.
//!
//! Owns: these rules, and the account of the findings. Never does: keep the records that it reads.

use super::log_source::LogSource;
use super::seq_chain::{LogBatch, LogEntry, SeqChain};
use std::collections::BTreeMap;
use std::path::Path;
use windrow_base::{Error, FileNumber, Result, SeqNo, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_format::log::{Length, LogRecord, Mark};
use windrow_format::names;
use windrow_read::records_left_out::RecordsLeftOut;
use windrow_store::manifest::folded_manifest::FoldedManifest;
use windrow_store::manifest::state::{ManifestState, WalState};

/// The purpose of a reading, which decides what damage and gaps mean.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// An open. Damage of synced bytes fails it, and so does a manifest, where there is one, that
    /// is shorter than the logs say.
    Open(Option<FoldedManifest>),
    /// Repair: damage ends the reading instead of failing it.
    Repair,
    /// Repair without a manifest: chains of records with gaps between them.
    Rebuild(Proof),
}

/// Proof, without a manifest, that a record was written only after everything before it was
/// durable. The records that are missing in a gap before it are then in tables, or were damaged.
/// Without such a proof a gap is the end of the bytes that a power loss left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proof {
    /// The newest log with a record that says so of all older logs (rule R4).
    pub log: FileNumber,
    /// The newest sequence number in a table. Writes that are older than a table's are durable
    /// before it, or with it.
    pub seq: SeqNo,
}

impl Proof {
    /// Whether a record of this log that begins with this sequence number goes on behind a gap.
    fn reaches(self, log: FileNumber, first_seq: SeqNo) -> bool {
        log <= self.log || first_seq <= self.seq + 1
    }
}

/// The findings of a reading.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    pub last_seq: SeqNo,
    pub(crate) wal_files: u64,
    pub batches: u64,
    /// Bytes behind the last valid record that were not written whole.
    pub(crate) torn_bytes: u64,
    /// Whole batches that were not taken over, by log; of a repair, those behind bytes that are
    /// no record.
    pub left_out: Vec<RecordsLeftOut>,
    /// The part of each log whose batches were taken, without a gap before or in it.
    pub(crate) taken: BTreeMap<FileNumber, TakenPart>,
}

/// The part of a log whose batches were taken over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenPart {
    pub(crate) first_seq: SeqNo,
    pub(crate) last_seq: SeqNo,
    /// The end of the last batch, or of the marks behind it.
    pub(crate) end: u64,
}

/// The meaning of a record.
enum Said<'a> {
    /// A batch that goes on. `true`, in a rebuild only: behind a gap that was passed.
    GoesOn(LogBatch<'a>, bool),
    LeftOut,
    Nothing,
}

/// Logs that are read one after the other, oldest first.
pub struct LogsAtRest<'a> {
    env: &'a Env,
    dir: &'a Path,
    purpose: Purpose,
    /// The logs that the manifest names. No other holds records.
    wals: BTreeMap<FileNumber, WalState>,
    chain: SeqChain,
    /// Where the last record of the chain ended.
    chain_end: Option<(LogSource, u64)>,
    /// How far each log that was read is valid.
    pub ends: BTreeMap<FileNumber, u64>,
    pub found: Replayed,
    /// For repair: logs from which records were not taken over, and why.
    pub(crate) problems: Vec<(FileNumber, Error)>,
    /// The error that kept a log from being opened. The log may be whole.
    pub(crate) unopened: Option<Error>,
}

impl<'a> LogsAtRest<'a> {
    /// The logs that `state` names, none of them read yet.
    pub fn new(
        (env, dir): (&'a Env, &'a Path),
        state: &ManifestState,
        purpose: Purpose,
    ) -> LogsAtRest<'a> {
        let chain = match purpose {
            Purpose::Rebuild(_) => SeqChain::default(),
            Purpose::Open(_) | Purpose::Repair => SeqChain::from(state.log_first_seq.max(1)),
        };
        LogsAtRest {
            env,
            dir,
            purpose,
            wals: state.wals.clone(),
            chain,
            chain_end: None,
            ends: BTreeMap::new(),
            found: Replayed::default(),
            problems: Vec::new(),
            unopened: None,
        }
    }

    /// The last sequence number that was read, or the one before the first, where none was.
    pub fn last_seq(&self) -> SeqNo {
        self.chain.next_seq().unwrap_or(1) - 1
    }

    /// Ends the chain: all later records are left out.
    pub(crate) fn break_off(&mut self) {
        self.chain.break_off();
    }

    /// Passes the batches that go on in a log to `take`; with `true`, a batch behind a gap that a
    /// rebuild passes.
    ///
    /// # Errors
    /// `Corruption` naming log and offset where something synced is damaged; the errors of `take`,
    /// and of opening the log.
    pub fn read(
        &mut self,
        (number, path): (FileNumber, &Path),
        take: &mut dyn FnMut(LogBatch<'_>, bool) -> Result<()>,
    ) -> Result<()> {
        let known = self.wals.get(&number).copied();
        let file = LogSource::at(path.to_path_buf(), number, known.as_ref());
        let opened = self.env.fs.open(path, ReadFileOptions::default());
        let opened = opened.inspect_err(|error| self.unopened = Some(error.clone()))?;
        let mut reader = file.reader(opened)?;
        let is_open = matches!(self.purpose, Purpose::Open(_));
        let mut left_out = RecordsLeftOut::of(number);
        while let Some(record) = reader.next()? {
            let located = |error: Error| file.named(error).with_offset(record.offset);
            if known.is_none() && is_open {
                let text = "a log holds records, but the manifest does not name it";
                return Err(located(Error::corruption(text)));
            }
            match self.judge(&file, &record).map_err(located)? {
                Said::GoesOn(batch, is_behind_gap) => {
                    let (first_seq, next_seq) = (batch.first_seq, batch.next_seq());
                    take(batch, is_behind_gap).map_err(located)?;
                    self.chain.go_on_at(next_seq);
                    self.chain_end = Some((file.clone(), record.end));
                    self.found.batches += 1;
                    let part = TakenPart { first_seq, last_seq: 0, end: 0 };
                    let part = self.found.taken.entry(number).or_insert(part);
                    (part.last_seq, part.end) = (next_seq - 1, record.end);
                }
                Said::LeftOut => {
                    if left_out.batches == 0 {
                        left_out.from_byte = record.offset;
                    }
                    left_out.batches += 1;
                }
                Said::Nothing => {
                    let part = self.found.taken.get_mut(&number);
                    // The time by which its last batch was written.
                    if let Some(part) = part.filter(|_| left_out.batches == 0) {
                        part.end = record.end;
                    }
                }
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

    fn judge<'r>(&mut self, file: &LogSource, record: &LogRecord<'r>) -> Result<Said<'r>> {
        match self.chain.entry(record)? {
            LogEntry::Batch(batch) => Ok(Said::GoesOn(batch, false)),
            LogEntry::Mark(mark) => self.mark(file.number, mark).map(|()| Said::Nothing),
            LogEntry::Gap { batch, proved } => self.gap(file, record, batch, proved),
        }
    }

    /// Compares the lengths of other files in a mark with their valid lengths.
    fn mark(&self, log: FileNumber, mark: Mark) -> Result<()> {
        let Purpose::Open(manifest) = &self.purpose else { return Ok(()) };
        if let Some(manifest) = manifest {
            manifest.check(self.dir, mark.manifest, log)?;
        }
        for Length { number, bytes } in mark.logs {
            if let Some(&end) = self.ends.get(&number).filter(|end| **end < bytes) {
                let path = self.dir.join(names::wal(number));
                return Err(Error::corruption(format!(
                    "log is valid up to byte {end} only, but log {log} saw {bytes} bytes of it synced"
                ))
                .with_file(path.display().to_string())
                .with_offset(end));
            }
        }
        Ok(())
    }

    /// A batch that does not continue the chain.
    fn gap<'r>(
        &mut self,
        file: &LogSource,
        record: &LogRecord<'_>,
        batch: LogBatch<'r>,
        proved: bool,
    ) -> Result<Said<'r>> {
        let (first_seq, next_seq) = (batch.first_seq, self.last_seq() + 1);
        match self.purpose {
            Purpose::Open(_) if proved => Err(Error::corruption(format!(
                "the records from sequence number {next_seq} to {first_seq} are missing, and were \
                 synced"
            ))),
            Purpose::Open(_) => {
                self.chain.break_off();
                Ok(Said::LeftOut)
            }
            Purpose::Rebuild(proof)
                if !self.chain.is_broken() && proof.reaches(file.number, first_seq) =>
            {
                self.pass_gap(file, record.offset, next_seq, first_seq);
                Ok(Said::GoesOn(batch, true))
            }
            Purpose::Repair | Purpose::Rebuild(_) => Err(Error::corruption(format!(
                "what begins with sequence number {first_seq} was not taken over: {next_seq} is \
                 missing"
            ))),
        }
    }

    /// For repair without a manifest: goes on behind a gap, if the missing records are in tables or
    /// were damaged. After power loss a log may be back whose unlink was not durable, while those
    /// between it and the logs in use are gone, or without records. The logs around the gap are
    /// reported in any case: nothing says that the tables with the missing records are whole.
    fn pass_gap(&mut self, file: &LogSource, offset: u64, next_seq: SeqNo, first_seq: SeqNo) {
        let (from, to) = (next_seq, first_seq - 1);
        debug_assert!(from <= to, "a gap from {from} to {to}");
        let what = format!("sequence numbers {from} to {to} are in no log: in tables, or lost");
        let around = self.chain_end.take().into_iter().chain([(file.clone(), offset)]);
        for (file, at) in around {
            let error = file.named(Error::corruption(what.clone())).with_offset(at);
            self.problems.push((file.number, error));
        }
    }
}
