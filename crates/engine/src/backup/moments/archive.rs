//! Storing the changes since an earlier backup.
//!
//! The logs may have less than all of them by now, and one may be damaged. That is no reason to make
//! no backup: it has what goes on from the earlier one, without a gap, and says how far that is.
//!
//! Owns: what is stored. Never does: decide which logs are kept (`write/kept_logs.rs` of store).

use super::super::change_part::{PartBatch, append, not_next};
use super::super::names;
use super::super::pace::CopyPace;
use super::super::record::{ChangePart, ChangesSince, HistoryPlace};
use super::super::sum::Sum;
use super::super::target::BackupTarget;
use std::path::Path;
use windrow_base::{Error, FileNumber, FileUid, Result, SeqNo};
use windrow_env::Env;
use windrow_recover::log::log_copy::{Batches, Copied};
use windrow_store::manifest::record::KeptLog;
use windrow_store::manifest::state::{ManifestState, WalState};

/// A part ends with the batch that fills it.
const PART_BYTES: usize = 4 << 20;

/// A log with changes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ChangeLog {
    number: FileNumber,
    known: WalState,
    /// The sequence number that it begins with, where that is known.
    first_seq: Option<SeqNo>,
    /// The end of the part that counts.
    end: u64,
}

impl ChangeLog {
    /// A log that is written, or that recovery would replay.
    pub(in super::super) fn in_use(
        number: FileNumber,
        uid: FileUid,
        first_seq: Option<SeqNo>,
        end: u64,
    ) -> ChangeLog {
        let known = WalState { uid, bytes: 0, synced_bytes: 0 };
        ChangeLog { number, known, first_seq, end }
    }

    fn kept((&number, log): (&FileNumber, &KeptLog)) -> ChangeLog {
        let known = WalState { uid: log.uid, bytes: 0, synced_bytes: log.bytes };
        ChangeLog { number, known, first_seq: Some(log.first_seq), end: log.bytes }
    }
}

/// The backup that changes go on from, as its record has it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Earlier {
    pub(in super::super) number: u64,
    pub(in super::super) seq: SeqNo,
    pub(in super::super) session: u64,
}

/// The logs of a database at the moment of a backup.
pub(in super::super) struct Archive {
    /// The manifest's state, with what it says of the feed of changes.
    state: ManifestState,
    /// Oldest first.
    logs: Vec<ChangeLog>,
}

/// The parts of a backup's changes.
struct ChangeParts<'a, 'p> {
    target: &'a dyn BackupTarget,
    number: u64,
    pace: &'a mut CopyPace<'p>,
    stored: &'a mut ChangesSince,
    bytes: Vec<u8>,
    /// The last sequence number in `bytes`, or before them.
    last_seq: SeqNo,
    /// The last one that was read.
    read_seq: SeqNo,
    /// The error that is not one of the logs.
    failed: Option<Error>,
}

impl Archive {
    /// The logs that are kept by this state, and those in use.
    pub(in super::super) fn of(state: ManifestState, in_use: Vec<ChangeLog>) -> Archive {
        let first = in_use.first().map_or(FileNumber::MAX, |log| log.number);
        let kept = state.kept.range(..first).map(ChangeLog::kept);
        let logs = kept.chain(in_use).collect();
        Archive { state, logs }
    }

    /// Returns the place of a backup with this last sequence number. Stores the changes since an
    /// earlier one; there are none where the database does not go on from the earlier one, or its
    /// logs do not.
    ///
    /// # Errors
    /// Errors of the target, and of the pace.
    pub(in super::super) fn store(
        &self,
        (env, dir): (&Env, &Path),
        target: &dyn BackupTarget,
        (number, earlier, seq): (u64, Option<Earlier>, SeqNo),
        pace: &mut CopyPace<'_>,
    ) -> Result<HistoryPlace> {
        let goes_on = |earlier: &Earlier| {
            self.state.goes_on_from(earlier.session, earlier.seq) && earlier.seq <= seq
        };
        let mut changes = earlier.filter(goes_on).map(|earlier| ChangesSince {
            since: earlier.number,
            through: earlier.seq,
            parts: Vec::new(),
        });
        if let Some(stored) = &mut changes
            && stored.through < seq
        {
            let begin = |log: &ChangeLog| log.first_seq.is_some_and(|f| f <= stored.through + 1);
            let at = self.logs.iter().rposition(begin);
            let logs = &self.logs[at.unwrap_or(self.logs.len())..];
            let mut parts = ChangeParts::new(target, number, pace, stored);
            // Behind damage, or a log that is gone meanwhile, nothing goes on.
            let _ = parts.read((env, dir), logs, seq);
            parts.failed.take().map_or_else(|| parts.put(), Err)?;
        }
        let session = self.state.sessions.last().map(|session| session.uid);
        let dropped = self.state.dropped.to_vec();
        Ok(HistoryPlace { seq, session, dropped, changes })
    }
}

impl<'a, 'p> ChangeParts<'a, 'p> {
    fn new(
        target: &'a dyn BackupTarget,
        number: u64,
        pace: &'a mut CopyPace<'p>,
        stored: &'a mut ChangesSince,
    ) -> ChangeParts<'a, 'p> {
        let (last_seq, bytes) = (stored.through, Vec::new());
        ChangeParts { target, number, pace, stored, bytes, last_seq, read_seq: 0, failed: None }
    }

    /// Reads logs up to a sequence number. The first one begins early enough.
    fn read(
        &mut self,
        (env, dir): (&Env, &Path),
        logs: &[ChangeLog],
        through: SeqNo,
    ) -> Result<()> {
        let first_seq = logs.first().and_then(|log| log.first_seq);
        let Some(first_seq) = first_seq else { return Ok(()) };
        self.read_seq = first_seq - 1;
        let mut batches = Batches::from(first_seq);
        for log in logs {
            let mut take = |copied: Copied<'_>| self.take(&copied, through);
            batches.take((&*env.fs, dir), (log.number, &log.known), log.end, &mut take)?;
        }
        Ok(())
    }

    /// Takes a part of a log, if it is behind the earlier backup and not behind `through`.
    fn take(&mut self, copied: &Copied<'_>, through: SeqNo) -> Result<()> {
        match copied {
            // Behind a batch that is not in a part it says nothing of those that are.
            Copied::Time(_) if self.read_seq != self.last_seq => return Ok(()),
            Copied::Time(_) => {}
            Copied::Batch(payload) => {
                let batch = PartBatch::of(payload)?;
                self.read_seq = batch.last_seq;
                if batch.last_seq <= self.last_seq || through < batch.last_seq {
                    return Ok(());
                }
                if batch.first_seq != self.last_seq + 1 {
                    return Err(not_next(batch.first_seq, self.last_seq + 1));
                }
                self.last_seq = batch.last_seq;
            }
        }
        append(&mut self.bytes, copied);
        if self.bytes.len() < PART_BYTES { Ok(()) } else { self.put() }
    }

    /// Stores what there is.
    fn put(&mut self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let name = names::change_part(self.number, self.stored.parts.len());
        let paced = self.pace.wait_for(self.bytes.len() as u64);
        let put = paced.and_then(|()| self.target.put(&name, &mut self.bytes.as_slice()));
        put.inspect_err(|error| self.failed = Some(error.clone()))?;
        let part = ChangePart { last_seq: self.last_seq, sum: Sum::of(&self.bytes) };
        self.stored.parts.push(part);
        self.stored.through = self.last_seq;
        self.bytes.clear();
        Ok(())
    }
}
