//! The logs from which the feed can be read at one moment.
//!
//! Owns: their order, and where reading begins and goes on. Never does: read one.

use std::sync::Arc;
use windrow_base::{Error, FileNumber, FileUid, Result, SeqNo};
use windrow_store::manifest::record::{DroppedKeyspace, KeptLog};

/// A log of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FeedLog {
    pub(super) number: FileNumber,
    pub(super) uid: FileUid,
    /// The sequence number of its first operation, or of the one that comes first; `None` where only
    /// the log itself says so.
    pub(super) first_seq: Option<SeqNo>,
    /// The end of the part that counts; `None`: as far as it has whole batches that go on.
    pub(super) end: Option<u64>,
}

impl FeedLog {
    pub(super) fn kept(number: FileNumber, log: &KeptLog) -> FeedLog {
        let KeptLog { uid, first_seq, bytes, .. } = *log;
        FeedLog { number, uid, first_seq: Some(first_seq), end: Some(bytes) }
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct LogList {
    /// Oldest first.
    pub(super) logs: Vec<FeedLog>,
    /// The last sequence number that may be handed out.
    pub(super) through: SeqNo,
    /// The first sequence number that they have.
    pub(super) begin: SeqNo,
    pub(super) dropped: Arc<Vec<DroppedKeyspace>>,
}

impl LogList {
    /// The log of this number; `None` if it is gone.
    pub(super) fn find(&self, number: FileNumber) -> Option<FeedLog> {
        self.logs.iter().find(|log| log.number == number).copied()
    }

    /// The log in which reading begins for an operation.
    ///
    /// # Errors
    /// `InvalidArgument` if none of the logs has it.
    pub(super) fn seek(&self, seq: SeqNo) -> Result<FeedLog> {
        let begins = |log: &&FeedLog| log.first_seq.is_some_and(|first| first <= seq);
        self.logs.iter().rev().find(begins).copied().ok_or_else(|| self.gone(seq))
    }

    /// The log with which reading goes on behind the end of another, before operation `next_seq`;
    /// `None` if there is none yet.
    ///
    /// # Errors
    /// `InvalidArgument` if the next log begins behind that operation, or before it: then the
    /// database has taken back what was read.
    pub(super) fn after(&self, number: FileNumber, next_seq: SeqNo) -> Result<Option<FeedLog>> {
        let Some(next) = self.logs.iter().find(|log| number < log.number) else { return Ok(None) };
        match next.first_seq {
            Some(first) if first < next_seq => Err(taken_back(next_seq, first)),
            Some(first) if next_seq < first => Err(self.gone(next_seq)),
            _ => Ok(Some(*next)),
        }
    }

    /// The error for an operation that no log has any more.
    pub(super) fn gone(&self, seq: SeqNo) -> Error {
        Error::invalid(format!(
            "the feed of changes has nothing before sequence number {}, and {seq} is asked for: copy \
             the database (a snapshot or checkpoint at a number S), and go on with S + 1; \
             `changes_bytes` says how much is kept",
            self.begin
        ))
    }
}

/// The error of a consumer that has read writes which the database does not have any more.
pub(super) fn taken_back(next_seq: SeqNo, now: SeqNo) -> Error {
    Error::invalid(format!(
        "sequence number {next_seq} comes next for this consumer, and the database goes on with \
         {now}: it lost writes that were not durable, or is a copy of an earlier state; copy the \
         database (a snapshot or checkpoint at a number S), and go on with S + 1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(logs: &[(FileNumber, Option<SeqNo>)]) -> LogList {
        let log =
            |&(number, first_seq)| FeedLog { number, uid: number, first_seq, end: Some(1 << 20) };
        LogList { logs: logs.iter().map(log).collect(), begin: 10, ..LogList::default() }
    }

    #[test]
    fn reading_begins_in_the_last_log_that_begins_early_enough() {
        let list = list(&[(3, Some(10)), (5, Some(20)), (8, Some(20)), (9, Some(31))]);
        assert_eq!(list.seek(19).unwrap().number, 3);
        assert_eq!(list.seek(20).unwrap().number, 8, "log 5 is empty");
        assert_eq!(list.seek(99).unwrap().number, 9);
        let error = list.seek(9).unwrap_err();
        assert!(error.message().contains("nothing before sequence number 10, and 9 is asked for"));
    }

    #[test]
    fn reading_goes_on_without_a_gap_or_not_at_all() {
        let list = list(&[(3, Some(10)), (5, Some(20)), (8, None)]);
        assert_eq!(list.after(3, 20).unwrap().unwrap().number, 5);
        assert_eq!(list.after(5, 77).unwrap().unwrap().number, 8);
        assert_eq!(list.after(8, 77).unwrap(), None);
        assert!(list.after(3, 19).unwrap_err().message().contains("is asked for"));
        assert!(list.after(3, 21).unwrap_err().message().contains("goes on with 20"));
    }
}
