//! Logs that are kept for the feed of changes: segments whose records are all in tables.
//!
//! A log is kept by the record of the manifest by which it leaves those that recovery replays. It is
//! synced before, since the feed must have after a power loss what the tables have. Then it gets
//! another name, so that no open and no repair takes it for a log to replay. A crash in between
//! leaves it under its old name, and the next open renames it.
//!
//! The kept logs go on from each other without a gap, and the logs in use go on from the last one.
//! The oldest goes first, once they take more than `changes_bytes`, or it is older than
//! `changes_seconds`. They are also the first to go where the device is full (`free_space.rs`). With
//! `changes_bytes` at 0 no log is synced or renamed for it.
//!
//! Rejected: to keep a copy of each batch as it is written, since every write would be written twice.
//!
//! Owns: which logs are kept, and their names. Never does: read one.

use crate::catalog::cleanup::Cleanup;
use crate::host::Host;
use crate::manifest::record::{Field, KeptLog};
use crate::manifest::state::ManifestState;
use crate::write::queue::QueueState;
use crate::write::wal::Wal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windrow_base::{FileNumber, SeqNo};
use windrow_env::sync::Mutex;
use windrow_format::names;
use windrow_read::lock_ranks;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptLimits {
    bytes: u64,
    /// Logs that were kept at this time or before go, in ms since 1970.
    expired_ms: u64,
}

impl KeptLimits {
    /// The limits of the settings, now.
    pub fn of(host: &Host) -> KeptLimits {
        let expired_ms = match host.settings.changes_seconds {
            0 => 0,
            seconds => host.env.clock.wall_ms().saturating_sub(seconds.saturating_mul(1000)),
        };
        KeptLimits { bytes: host.settings.changes_bytes, expired_ms }
    }

    /// Returns the number of the first of these logs to keep; `None` where none is kept. They are in
    /// order, and the log that begins with `next_seq` goes on from the last one.
    fn begin(self, logs: &[(FileNumber, KeptLog)], next_seq: SeqNo) -> Option<FileNumber> {
        let (mut bytes, mut goes_on_at, mut begin) = (0u64, next_seq, None);
        for &(number, log) in logs.iter().rev() {
            bytes = bytes.saturating_add(log.bytes);
            let is_within = bytes <= self.bytes && self.expired_ms < log.kept_ms;
            if !is_within || log.last_seq + 1 != goes_on_at {
                break;
            }
            (goes_on_at, begin) = (log.first_seq, Some(number));
        }
        begin
    }
}

/// A log whose records are all in tables with the record that is about to be written.
pub(super) struct Leaving {
    pub(super) wal: Arc<Wal>,
    first_seq: SeqNo,
    last_seq: SeqNo,
}

impl Leaving {
    fn kept(&self, kept_ms: u64) -> (FileNumber, KeptLog) {
        let Leaving { wal, first_seq, last_seq } = self;
        let (first_seq, last_seq, bytes) = (*first_seq, *last_seq, wal.written());
        (wal.number, KeptLog { uid: wal.uid, first_seq, last_seq, bytes, kept_ms })
    }
}

/// The logs from `from` on and before `below` that have a batch, oldest first.
pub(super) fn leaving(queue: &QueueState, from: FileNumber, below: FileNumber) -> Vec<Leaving> {
    let active = (&queue.wal, queue.wal_first_seq);
    let older = queue.older_wals.iter().map(|(wal, first_seq)| (wal, *first_seq));
    let logs: Vec<_> = older.chain([active]).collect();
    let nexts = logs.iter().skip(1).map(|(_, first_seq)| *first_seq).chain([queue.next_seq]);
    let all = logs.iter().zip(nexts);
    all.filter(|((wal, _), _)| from <= wal.number && wal.number < below)
        .map(|((wal, first_seq), next_seq)| Leaving {
            wal: Arc::clone(wal),
            first_seq: *first_seq,
            last_seq: next_seq - 1,
        })
        .filter(|log| log.first_seq <= log.last_seq)
        .collect()
}

/// Leaves out of a state the kept logs that the log which begins with `next_seq` does not go on
/// from, and those beyond the limits.
pub fn retain(state: &mut ManifestState, limits: KeptLimits, next_seq: SeqNo) {
    let logs: Vec<_> = state.kept.iter().map(|(&number, &log)| (number, log)).collect();
    let begin = limits.begin(&logs, next_seq).unwrap_or(FileNumber::MAX);
    if logs.first().is_some_and(|(number, _)| *number < begin) {
        *Arc::make_mut(&mut state.kept) = logs.into_iter().filter(|(n, _)| begin <= *n).collect();
    }
    state.forget_dropped();
}

/// The files of kept logs.
pub struct KeptLogs {
    host: Arc<Host>,
    cleanup: Arc<Cleanup>,
    /// Those that have the name of a kept log.
    files: Mutex<BTreeSet<FileNumber>>,
}

impl KeptLogs {
    pub(super) fn new(host: Arc<Host>, cleanup: Arc<Cleanup>) -> KeptLogs {
        KeptLogs { host, cleanup, files: Mutex::new(lock_ranks::KEPT_FILES, BTreeSet::new()) }
    }

    /// Whether any are kept from here on.
    pub(super) fn is_on(&self) -> bool {
        self.host.settings.changes_bytes > 0
    }

    /// Whether one may have been kept for long enough.
    pub(super) fn may_expire(&self) -> bool {
        self.host.settings.changes_seconds > 0 && !self.files.lock().is_empty()
    }

    /// Returns the fields that keep logs which leave, and let older ones go. The log that begins with
    /// `next_seq` goes on from the last one. They are durable.
    pub(super) fn fields(
        &self,
        leaving: Vec<Leaving>,
        next_seq: SeqNo,
        state: &ManifestState,
    ) -> Vec<Field> {
        let mut logs: Vec<_> = state.kept.iter().map(|(&number, &log)| (number, log)).collect();
        let (before, kept_ms) = (logs.len(), self.host.env.clock.wall_ms());
        if self.is_on() {
            logs.extend(leaving.iter().map(|log| log.kept(kept_ms)));
        }
        let Some(&(last, _)) = logs.last() else { return Vec::new() };
        let begin = KeptLimits::of(&self.host).begin(&logs, next_seq).unwrap_or(last + 1);
        let new = logs[before..].iter().filter(|(number, _)| begin <= *number);
        let mut fields: Vec<_> = new.map(|&(number, log)| Field::LogKept(number, log)).collect();
        if logs[..before].first().is_some_and(|(number, _)| *number < begin) {
            fields.push(Field::KeptBegin(begin));
        }
        fields
    }

    /// Gives a log that left its other name, if the manifest keeps it, or else has it removed. One
    /// that cannot be renamed is read by its old name, and the next open renames it. The record by
    /// which it left is durable: an older manifest would replay it, by its old name.
    pub fn retire(&self, number: FileNumber, kept: &BTreeMap<FileNumber, KeptLog>) {
        let name = names::wal(number);
        if !kept.contains_key(&number) {
            return self.cleanup.unlink(&name);
        }
        let (fs, dir) = (&self.host.env.fs, &self.host.dir);
        let rename = || fs.rename(&dir.join(&name), &dir.join(names::changes(number)));
        if self.host.place.check().and_then(|()| rename()).is_ok() {
            self.files.lock().insert(number);
        }
    }

    /// Removes the file of a log that the manifest still keeps, to make room for the record by which
    /// it goes. An open finds it missing, as a consumer does.
    pub(super) fn remove_now(&self, number: FileNumber) {
        let (fs, dir) = (&self.host.env.fs, &self.host.dir);
        let names = [names::changes(number), names::wal(number)];
        if self.host.place.check().is_ok() {
            // One that stays is no longer kept, and the next open removes it.
            let removed = names.iter().any(|name| fs.remove(&dir.join(name)).is_ok());
            if removed {
                self.files.lock().remove(&number);
            }
        }
    }

    /// Notes which kept logs an open or a resume has.
    pub fn found(&self, kept: &BTreeMap<FileNumber, KeptLog>) {
        self.files.lock().extend(kept.keys());
    }

    /// Removes the files of logs that the manifest does not keep any more.
    pub fn remove_others(&self, kept: &BTreeMap<FileNumber, KeptLog>) {
        let mut files = self.files.lock();
        let gone: Vec<_> = files.iter().filter(|n| !kept.contains_key(n)).copied().collect();
        files.retain(|number| kept.contains_key(number));
        drop(files);
        gone.into_iter().for_each(|number| self.cleanup.unlink(&names::changes(number)));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn log(first_seq: SeqNo, last_seq: SeqNo, bytes: u64, kept_ms: u64) -> KeptLog {
        KeptLog { uid: 1, first_seq, last_seq, bytes, kept_ms }
    }

    #[test]
    fn the_newest_logs_without_a_gap_are_kept_within_both_limits() {
        let logs = [(3, log(1, 10, 100, 5)), (5, log(11, 20, 100, 6)), (9, log(21, 30, 100, 7))];
        let begin =
            |bytes, expired_ms, next_seq| KeptLimits { bytes, expired_ms }.begin(&logs, next_seq);
        assert_eq!(begin(300, 0, 31), Some(3));
        assert_eq!(begin(299, 0, 31), Some(5));
        assert_eq!(begin(99, 0, 31), None);
        assert_eq!(begin(300, 5, 31), Some(5));
        assert_eq!(begin(300, 7, 31), None);
        assert_eq!(begin(300, 0, 32), None, "the log in use does not go on from the last one");
        let gap = [logs[0], logs[2]];
        let within = KeptLimits { bytes: 300, expired_ms: 0 };
        assert_eq!(within.begin(&gap, 31), Some(9));
    }
}
