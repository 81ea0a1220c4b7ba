//! The moments of a feed that gives old values: the snapshots that it reads them from.
//!
//! Changes between two neighbouring moments are a window. The old values of a window are read at the
//! moment at its beginning, with the changes of the window that were handed out over it
//! (`old_values.rs`): so windows must be short. No moment can be taken in the past. So a feed has one
//! taken at each step of writing, an eighth of a memtable, however far behind its consumer is.
//!
//! A moment is given back once its window is over, and all of them where the logs that the consumer
//! needs are gone: it gets an error, whenever it comes.
//!
//! Rejected: to keep all versions of keys from the consumer's place on. Each merge would have to know
//! of a second kind of snapshot.
//!
//! Owns: the moments ahead of a consumer. Never does: read a value.

use crate::snapshot::Snapshot;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use windrow_base::{KeyspaceId, SeqNo};
use windrow_env::sync::Mutex;
use windrow_read::lock_ranks;
use windrow_recover::handle::Handle;
use windrow_store::tree::Tree;
use windrow_store::tree::keyspace_list::Trees;
use windrow_store::write::write_steps::StepWatcher;

/// A state of all keyspaces, and the keyspaces of then.
pub(super) struct HeldState {
    pub(super) snapshot: Snapshot,
    trees: Arc<Trees>,
    /// Keyspaces that were there and that nobody has kept since they were dropped.
    pub(super) lost: BTreeSet<KeyspaceId>,
}

impl Drop for HeldState {
    fn drop(&mut self) {
        if !self.snapshot.inner.database.write_state.is_of_this_process() {
            // As a keyspace does: the files of one that was dropped are the parent's to remove.
            std::mem::forget(self.trees.clone());
        }
    }
}

impl HeldState {
    /// The moment of a caller's snapshot. Keyspaces that were dropped since may be missing.
    pub(super) fn of(snapshot: Snapshot) -> HeldState {
        let trees = Arc::clone(&snapshot.inner.database.trees());
        HeldState { snapshot, trees, lost: BTreeSet::new() }
    }

    /// This moment of a database. The list of keyspaces is the one of that moment.
    fn take(database: &Handle) -> HeldState {
        loop {
            let before = Arc::clone(&database.trees());
            let moment = HeldState::of(Snapshot::take(database));
            if Arc::ptr_eq(&before, &moment.trees) {
                return moment;
            }
        }
    }

    /// A keyspace that was there.
    pub(super) fn tree(&self, id: KeyspaceId) -> Option<&Arc<Tree>> {
        self.trees.get(id)
    }
}

/// The moments ahead of a consumer.
pub(super) struct Moments {
    database: Handle,
    ahead: Mutex<Ahead>,
}

#[derive(Default)]
struct Ahead {
    /// Oldest first.
    moments: VecDeque<HeldState>,
    /// The next number that the consumer reads from the logs.
    reads_from: SeqNo,
}

impl Ahead {
    fn take(&mut self, database: &Handle) {
        let moment = HeldState::take(database);
        let last = self.moments.back().map(|last| last.snapshot.seq());
        if last < Some(moment.snapshot.seq()) {
            self.moments.push_back(moment);
        }
    }
}

impl StepWatcher for Moments {
    fn step(&self) {
        let begin = self.database.catalog.retained().begin();
        let mut ahead = self.ahead.lock();
        if begin <= ahead.reads_from {
            return ahead.take(&self.database);
        }
        let gone = std::mem::take(&mut ahead.moments);
        drop(ahead);
        drop(gone);
    }
}

impl Moments {
    /// None yet, for a consumer whose first change is `from`.
    pub(super) fn new(database: Handle, from: SeqNo) -> Moments {
        let ahead = Ahead { moments: VecDeque::new(), reads_from: from };
        Moments { database, ahead: Mutex::new(lock_ranks::FEED_MOMENTS, ahead) }
    }

    /// Notes that the logs were read up to `next_seq`. If no moment is ahead of the consumer, takes
    /// one of this state of the database.
    pub(super) fn look_ahead(&self, next_seq: SeqNo, database: &Handle) {
        let mut ahead = self.ahead.lock();
        ahead.reads_from = next_seq;
        if ahead.moments.is_empty() {
            ahead.take(database);
        }
    }

    /// Notes that the logs were read up to `next_seq`.
    pub(super) fn reads_from(&self, next_seq: SeqNo) {
        self.ahead.lock().reads_from = next_seq;
    }

    /// Gives the last moment that has nothing of number `next_seq` or later.
    pub(super) fn last_before(&self, next_seq: SeqNo) -> Option<HeldState> {
        let mut ahead = self.ahead.lock();
        let count = ahead.moments.partition_point(|moment| moment.snapshot.seq() < next_seq);
        let mut passed: Vec<HeldState> = ahead.moments.drain(..count).collect();
        drop(ahead);
        passed.pop()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::changes::{ChangeOptions, Changes, OldValue, Operation};
    use crate::{Db, Options};
    use windrow_env::Jobs;
    use windrow_env::testing::{Handles, env};

    fn open(changes_bytes: u64) -> (Db, Handles) {
        let (env, handles) = env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.settings.memory_bytes = 8 << 20;
        options.settings.memtable_bytes = 64 << 10;
        options.settings.changes_bytes = changes_bytes;
        (Db::open_with("db", options).unwrap(), handles)
    }

    fn from_now(db: &Db) -> Changes {
        let snapshot = db.snapshot();
        let from = snapshot.seq() + 1;
        let options = ChangeOptions { old_values: Some(snapshot), ..ChangeOptions::default() };
        db.changes(from, options).unwrap()
    }

    fn held(db: &Db) -> usize {
        db.database().snapshots.len()
    }

    /// All of it is several times what old values may take.
    #[test]
    fn a_slow_consumer_holds_a_snapshot_of_each_step_and_little_memory() {
        let (db, handles) = open(1 << 30);
        let mut changes = from_now(&db);
        for round in 0..2 {
            for key in 0..8000u32 {
                db.put(key.to_be_bytes(), vec![round; 600]).unwrap();
            }
            handles.jobs.run_until_idle();
        }
        assert!(held(&db) > 500, "{} snapshots of 1300 steps", held(&db));
        for at in 0..16_000 {
            let change = changes.next().unwrap().unwrap();
            let Operation::Put { old, .. } = &change.operations[0] else { panic!("no put") };
            let is_right = match old {
                OldValue::Absent => at < 8000,
                OldValue::Value(value) => 8000 <= at && *value == [0; 600],
                OldValue::Unknown => false,
            };
            assert!(is_right, "change {at}: {old:?}");
            let held_bytes = db.stats().memory.readers_bytes;
            assert!(held_bytes < 1 << 20, "{held_bytes} bytes are held");
        }
        assert!(changes.next().is_none());
        assert_eq!(held(&db), 1);
        drop(changes);
        assert_eq!(held(&db), 0);
    }

    /// A consumer that never comes again keeps one snapshot, as anybody does who keeps one.
    #[test]
    fn a_consumer_whose_logs_are_gone_has_no_more_snapshots_taken() {
        let (db, handles) = open(64 << 10);
        let mut changes = from_now(&db);
        let mut most = 0;
        for key in 0..2000u32 {
            db.put(key.to_be_bytes(), vec![1; 600]).unwrap();
            handles.jobs.step();
            most = most.max(held(&db));
        }
        assert!(8 < most && held(&db) == 1, "{most} snapshots, then {}", held(&db));
        let error = changes.find_map(Result::err).unwrap();
        assert!(error.message().contains("go on with S + 1"), "{error}");
    }
}
