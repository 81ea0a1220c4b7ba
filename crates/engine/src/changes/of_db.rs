//! The feed of an open database.
//!
//! Of the logs in use the published part counts, which is all that readers see. A record that was
//! written and not published, after a failure say, never gets into the feed.
//!
//! Owns: the list of logs of an open database. Never does: wait under a lock of writers.

use super::feed::ChangeSource;
use super::log_list::{FeedLog, LogList};
use crate::snapshot::Snapshot;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::task::Waker;
use windrow_base::{FileNumber, KeyspaceId, Result, SeqNo};
use windrow_env::Env;
use windrow_recover::handle::Handle;
use windrow_store::manifest::state::ManifestState;
use windrow_store::tree::left_out;
use windrow_store::write::wal::Wal;
use windrow_store::write::write_steps::StepWatcher;

/// An open database as the source of its changes.
pub(super) struct OfDb {
    database: Handle,
    durable_only: bool,
    /// The state of the list of dropped keyspaces when it was looked at last.
    drops: u64,
    /// The number by which writers wake its consumer.
    listener: u64,
}

impl OfDb {
    pub(super) fn new(database: Handle, durable_only: bool) -> OfDb {
        let listener = database.pipeline.queue().new_listener();
        OfDb { database, durable_only, drops: 0, listener }
    }

    /// The logs in use, up to where they count.
    fn live(&self) -> Vec<FeedLog> {
        let queue = self.database.pipeline.queue().lock();
        let older = queue.older_wals.iter().map(|(wal, first_seq)| (wal, *first_seq));
        let log = |(wal, first_seq): (&Arc<Wal>, SeqNo)| FeedLog {
            number: wal.number,
            uid: wal.uid,
            first_seq: Some(first_seq),
            end: Some(if self.durable_only { wal.durable_up_to() } else { wal.written() }),
        };
        let logs = older.chain([(&queue.wal, queue.wal_first_seq)]).map(log);
        // While an older log is not durable, none of a newer one counts as durable.
        logs.filter(|log| log.end > Some(0)).collect()
    }
}

impl ChangeSource for OfDb {
    fn place(&self) -> (&Env, &Path) {
        (&self.database.env, &self.database.dir)
    }

    fn list(&mut self, next_seq: SeqNo) -> Result<Option<LogList>> {
        let database = &self.database;
        database.write_state.check_read()?;
        // The end first: all up to it is then in the logs, and every drop before it in the list, since
        // a drop takes its number and is recorded under one lock of the catalog.
        let through = database.pipeline.queue().visible();
        let drops = database.catalog.retained().drops();
        if through < next_seq && drops == self.drops {
            return Ok(None);
        }
        // Those in use first: one that leaves them is among the kept ones before.
        let live = self.live();
        let catalog = database.catalog.lock();
        if catalog.log().is_none() {
            if let Some(record) = database.left_out.first() {
                return Err(left_out(record));
            }
            return Ok(Some(of_state(catalog.state(), through, None)));
        }
        let first = live.first().map_or(FileNumber::MAX, |log| log.number);
        let kept = catalog.state().kept.range(..first);
        let logs = kept.map(|(&number, log)| FeedLog::kept(number, log)).chain(live).collect();
        let (begin, dropped) = (catalog.state().changes_begin(), catalog.state().dropped.clone());
        drop(catalog);
        self.drops = drops;
        Ok(Some(LogList { logs, through, begin, dropped }))
    }

    fn name(&self, id: KeyspaceId) -> Option<Arc<str>> {
        self.database.trees().get(id).map(|tree| tree.name.clone())
    }

    fn listen(&self, waker: &Waker) {
        self.database.pipeline.queue().listen(self.listener, waker);
    }

    fn now(&self) -> Handle {
        self.database.clone()
    }

    fn check(&self, snapshot: &Snapshot) -> Result<()> {
        snapshot.check_of(&self.database)
    }

    fn watch(&self, watcher: Weak<dyn StepWatcher>) {
        self.database.pipeline.steps.watch(watcher);
    }
}

impl Drop for OfDb {
    fn drop(&mut self) {
        // In a forked child the lock may be held for good.
        if self.database.write_state.check_process().is_ok() {
            self.database.pipeline.queue().unlisten(self.listener);
        }
    }
}

/// The logs by a manifest's state, of a database that is not written to here: up to `end`, if that
/// is known.
pub(super) fn of_state(
    state: &ManifestState,
    through: SeqNo,
    end: Option<(FileNumber, u64)>,
) -> LogList {
    let kept = state.kept.iter().map(|(&number, log)| FeedLog::kept(number, log));
    let last = end.map_or(FileNumber::MAX, |(number, _)| number);
    let in_force = state.wals.range(state.log_number..).filter(|(number, _)| **number <= last);
    let in_force = in_force.filter(|_| state.clean_close.is_none());
    let live = in_force.map(|(&number, wal)| FeedLog {
        number,
        uid: wal.uid,
        first_seq: (number == state.log_number).then_some(state.log_first_seq),
        end: end.filter(|(last, _)| *last == number).map(|(_, at)| at),
    });
    let logs = kept.chain(live).collect();
    LogList { logs, through, begin: state.changes_begin(), dropped: state.dropped.clone() }
}
