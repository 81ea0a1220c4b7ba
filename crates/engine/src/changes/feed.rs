//! The feed as a consumer has it: the next change now, within a time, or by a waker.
//!
//! Owns: the wait of a consumer. Never does: read a log (`reader.rs`).

use super::change::Change;
use super::key_filter::KeyFilter;
use super::log_list::LogList;
use super::old_values::OldValues;
use super::reader::FeedReader;
use crate::snapshot::Snapshot;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use windrow_base::{Error, KeyspaceId, Result, SeqNo};
use windrow_env::Env;
use windrow_env::sync::{Condvar, Mutex};
use windrow_read::lock_ranks;
use windrow_recover::handle::Handle;
use windrow_store::write::write_steps::StepWatcher;

/// The least time between two looks at the log by a consumer that waits for changes and gets some each
/// time. One that keeps up with a busy writer would else look for each batch, and be woken for it.
const PACE_NS: u64 = 1_000_000;

/// How the feed of changes is read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChangeOptions {
    /// Hands out only changes that are on the device: for a consumer whose own state outlives a
    /// power loss, which takes writes without sync. Such writes come once something syncs the log:
    /// a synced write, [`crate::Db::sync`], the setting `wal_sync_interval_ms`, or the end of a log
    /// that is kept.
    pub durable_only: bool,
    /// Gives each key's value before the change with it ([`OldValue`](super::OldValue)). They are
    /// found by this snapshot, which must be the state before the first change: of number S for a
    /// feed from S + 1 on. From then on the feed takes snapshots itself, and holds one at least. So a
    /// feed with old values ends with the process; the next one begins with a snapshot again.
    pub old_values: Option<Snapshot>,
}

/// A database from which changes are read.
pub(super) trait ChangeSource: Send {
    fn place(&self) -> (&Env, &Path);

    /// The logs now; `None` where nothing has come since a consumer read all before `next_seq`.
    fn list(&mut self, next_seq: SeqNo) -> Result<Option<LogList>>;

    /// The name of a keyspace that is there.
    fn name(&self, id: KeyspaceId) -> Option<Arc<str>>;

    /// Has `waker` woken when something may have come.
    fn listen(&self, waker: &Waker);

    /// The database as it is now, or as it was read last.
    fn now(&self) -> Handle;

    /// Checks that a snapshot is of this database.
    fn check(&self, snapshot: &Snapshot) -> Result<()>;

    /// Has `watcher` told of each step of writing, where it can.
    fn watch(&self, watcher: Weak<dyn StepWatcher>);
}

/// The feed of changes from a sequence number on: see [`crate::Db::changes`].
///
/// As an iterator it gives the changes that are there now, and ends for the time being when all of
/// them were taken; more may follow. An error loses no change: the next call tries again.
pub struct Changes {
    source: Box<dyn ChangeSource>,
    reader: FeedReader,
    old: Option<OldValues>,
    /// Behind the last change that was taken.
    next_seq: SeqNo,
    /// Whether the last look at the log left some of it unread.
    has_more: bool,
    /// When a wait ended with all that there was.
    found_ns: Option<u64>,
}

impl Changes {
    /// A feed from `from` on. Fails now where the logs do not have that number.
    pub(super) fn new(
        mut source: Box<dyn ChangeSource>,
        from: SeqNo,
        snapshot: Option<Snapshot>,
    ) -> Result<Changes> {
        let from = from.max(1);
        if let Some(snapshot) = &snapshot {
            source.check(snapshot)?;
            check_seq(snapshot.seq(), from)?;
        }
        let list = source.list(0)?.unwrap_or_default();
        if list.through + 1 < from {
            return Err(super::log_list::taken_back(from, list.through + 1));
        }
        if from < list.begin {
            return Err(list.gone(from));
        }
        let old = snapshot.map(|snapshot| OldValues::new(snapshot, from, &list.dropped));
        if let Some(old) = &old {
            let watcher: Arc<dyn StepWatcher> = old.ahead().clone();
            source.watch(Arc::downgrade(&watcher));
        }
        let mut reader = FeedReader::new(from, &list.dropped, None);
        reader.fill(source.place(), &list, &|id| source.name(id))?;
        let (next_seq, has_more) = (from, reader.next_seq() <= list.through);
        let mut changes = Changes { source, reader, old, next_seq, has_more, found_ns: None };
        changes.look_ahead();
        Ok(changes)
    }

    /// A feed of what is written from now on and passes a filter.
    pub(super) fn watch(mut source: Box<dyn ChangeSource>, filter: KeyFilter) -> Result<Changes> {
        let list = source.list(0)?.unwrap_or_default();
        let next_seq = list.through + 1;
        let reader = FeedReader::new(next_seq, &list.dropped, Some(filter));
        Ok(Changes { source, reader, old: None, next_seq, has_more: false, found_ns: None })
    }

    /// The sequence number with which another consumer would go on behind the changes that were
    /// taken. (Of a watch: no change of its keys lies between the last one and a later number.)
    pub fn next_seq(&self) -> SeqNo {
        self.next_seq
    }

    /// Takes the next change, if there is one now. It waits for no change, only for reads of the device, and
    /// for a record of the manifest (of a flush, a merge, a drop) that is being written at that moment.
    ///
    /// # Errors
    /// `InvalidArgument` if the database does not have the next change any more, or never will: the
    /// message says how to go on. `Corruption` naming log and offset; `Io`; `Closed`.
    pub fn try_next(&mut self) -> Result<Option<Change>> {
        if let Some(change) = self.take()? {
            return Ok(Some(change));
        }
        if let Some(list) = self.source.list(self.reader.next_seq())? {
            let source = &self.source;
            self.reader.fill(source.place(), &list, &|id| source.name(id))?;
            self.has_more = self.reader.next_seq() <= list.through;
        }
        self.look_ahead();
        self.take()
    }

    /// Takes the next change, and waits for it for at most `timeout`. `None` if none came.
    ///
    /// A change that comes after others may wait for a millisecond, so that several are read at once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use std::time::Duration;
    /// let mut changes = db.changes(1, Default::default())?;
    /// db.put("apple", "red")?;
    /// assert_eq!(changes.next_within(Duration::from_secs(1))?.unwrap().seq, 1);
    /// assert!(changes.next_within(Duration::from_millis(1))?.is_none());
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Changes::try_next`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Change>> {
        if let Some(change) = self.take()? {
            return Ok(Some(change));
        }
        let env = self.source.place().0.clone();
        let bell = Arc::new(Bell::new());
        let waker = Waker::from(bell.clone());
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = env.clock.monotonic_ns();
        let until_ns = now_ns.saturating_add(timeout_ns);
        let next_ns = self.found_ns.map_or(0, |found_ns| found_ns + PACE_NS);
        env.clock.sleep_ns(next_ns.min(until_ns).saturating_sub(now_ns));
        loop {
            if let Some(change) = self.look(&waker)? {
                self.found_ns = (!self.has_more).then(|| env.clock.monotonic_ns());
                return Ok(Some(change));
            }
            let left_ns = until_ns.saturating_sub(env.clock.monotonic_ns());
            if left_ns == 0 {
                return Ok(None);
            }
            if !env.jobs.step() && bell.wait(left_ns) {
                return self.try_next();
            }
        }
    }

    /// Takes the next change, or has the task woken when it may be there: for async programs, which
    /// need no thread for it. It does read the log on the calling thread.
    ///
    /// # Errors
    /// As [`Changes::try_next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Change>> {
        match self.look(context.waker()) {
            Ok(Some(change)) => Poll::Ready(Ok(change)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Takes the next change. Else `waker` is woken when there may be one.
    fn look(&mut self, waker: &Waker) -> Result<Option<Change>> {
        if let Some(change) = self.try_next()? {
            return Ok(Some(change));
        }
        self.source.listen(waker);
        // It may have come in between, and wake nobody.
        self.try_next()
    }

    fn take(&mut self) -> Result<Option<Change>> {
        let Changes { source, reader, old, next_seq, .. } = self;
        if let Some(old) = old {
            old.go_on(*next_seq);
            if let Some(first) = reader.first() {
                old.find(first, &|| source.now())?;
            }
        }
        let change = reader.take();
        if let Some(change) = &change {
            *next_seq = change.seq + 1;
        }
        Ok(change)
    }

    fn look_ahead(&mut self) {
        let Changes { source, reader, old, .. } = self;
        if let Some(old) = old {
            let is_ready = reader.first().is_some();
            old.look_ahead((reader.next_seq(), is_ready), || source.now());
        }
    }
}

impl Iterator for Changes {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        self.try_next().transpose()
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Changes(from {})", self.next_seq)
    }
}

/// Checks that a snapshot is the state before a feed.
fn check_seq(seq: SeqNo, from: SeqNo) -> Result<()> {
    if seq + 1 == from {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "old values of the changes from {from} on need a snapshot with sequence number {}, and this \
         one has {seq}: ask for the changes from {} on",
        from - 1,
        seq + 1
    )))
}

/// Wakes a thread that waits for a change.
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn new() -> Bell {
        Bell { rung: Mutex::new(lock_ranks::FEED_BELL, false), changed: Condvar::new() }
    }

    /// Waits until it rings, for at most this long. Returns whether the time is over.
    fn wait(&self, ns: u64) -> bool {
        let mut rung = self.rung.lock();
        let timed_out = !*rung && self.changed.wait_ns(&mut rung, ns);
        // It may have rung at the last moment.
        let is_over = timed_out && !*rung;
        *rung = false;
        is_over
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        *self.rung.lock() = true;
        self.changed.notify_all();
    }
}
