//! One keyspace's tree: its memtables, its version, and the view that reads pin.
//!
//! Owns: the switch from one view to the next. A view changes in two ways only: a memtable is
//! frozen (under the commit queue's lock), or an edit of the manifest is installed (under the
//! manifest's lock); both take `view_lock`, which orders them. Never reads or writes a file.

pub mod filter_ledger;
pub mod flush_sample;
pub mod keyspace_list;

use crate::host::shortage::{OversizedMerge, Retry};
use crate::manifest::record::KeyspaceRecord;
use crate::tree::filter_ledger::FilterLedger;
use crate::tree::flush_sample::FlushSample;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windrow_base::{Error, ErrorKind, FileNumber, KeyOrder, KeyspaceId, SeqNo};
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow_env::sync::{ArcSwap, ArcSwapOption, Guard, Mutex};
use windrow_plan::busy::Busy;
use windrow_plan::hotness::HotMap;
use windrow_plan::tree::{File, Version};
use windrow_plan::use_measure::UseMeasure;
use windrow_plan::{PlanSettings, Policy};
use windrow_read::lock_ranks;
use windrow_read::memtable::Memtable;
use windrow_read::operators::CompactionFilter;
use windrow_read::options::KeyspaceSettings;
use windrow_read::read::ReadOwner;
use windrow_read::read::statistics::Estimates;
use windrow_read::read::view::{ReadLevel, ReadView};
use windrow_read::stats::chain::Chain;
use windrow_skiplist::ChunkPool;

/// Background work that is under way on a tree.
#[derive(Default)]
pub struct TreeWork {
    pub busy: Busy,
    pub merging: u32,
    /// Manual compactions under way: the picker relieves level 0 and nothing else.
    pub hold: u32,
    /// How many of them wait for a merge to end: no merge begins before it has.
    pub waiting: u32,
    /// The turn, counted over all keyspaces, in which it was last given a merge.
    pub(crate) turn: u64,
    /// The chain of merges that is under way.
    pub chain: Chain,
    /// Notes from one job to the next. An idle keyspace has none.
    pub notes: Option<Box<Notes>>,
}

/// Notes on a tree from one job to the next.
#[derive(Default)]
pub struct Notes {
    /// The use that it is measured to have; made by the first flush if the policy goes by that.
    pub measured: Option<MeasuredUse>,
    /// The last look for tables that range tombstones hide whole; `None` if the next one is due. A
    /// tree without range tombstones gets no look.
    pub(crate) last_look: Option<LastLook>,
    /// The last merge that was begun with less room than it might need.
    pub attempt: OversizedMerge,
    /// When merges that found something run out are tried again.
    pub(crate) merge_retry: Retry,
    /// The damaged part of `busy`: no job takes it until the database is reopened.
    pub damaged: Busy,
    /// The first error that reported damage.
    pub damage: Option<Error>,
}

impl TreeWork {
    /// Why a merge that is due waits for room.
    pub(crate) fn waits_for_room(&self) -> Option<&Error> {
        let notes = self.notes.as_ref()?;
        notes.merge_retry.error().or(notes.attempt.error())
    }

    /// Whether a merge may begin, if one waits to be tried again.
    pub(crate) fn is_merge_due(&self, now_ns: u64) -> bool {
        self.notes.as_ref().is_none_or(|notes| notes.merge_retry.is_due(now_ns))
    }

    /// The damaged files, if there are any.
    pub fn damaged(&self) -> Option<&Busy> {
        self.notes.as_ref().map(|notes| &notes.damaged).filter(|damaged| !damaged.is_empty())
    }

    /// The first error that reported damage.
    pub fn damage(&self) -> Option<&Error> {
        self.notes.as_ref()?.damage.as_ref()
    }

    /// The notes, for a change. Makes them if there are none.
    #[inline]
    pub fn notes(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }
}

/// The measured use of a keyspace.
#[derive(Default)]
pub struct MeasuredUse {
    pub measured: UseMeasure,
    /// Bytes that one more table would have cost reads up to the last flush.
    pub(crate) read_bytes: u64,
}

/// The state at a look for tables that range tombstones hide whole.
pub struct LastLook {
    /// The tables with range tombstones, in read order.
    pub tables: Vec<FileNumber>,
    /// The snapshots that were held.
    pub held: Vec<SeqNo>,
    /// Whether a job had some of the tables that were hidden.
    pub waits: bool,
}

/// State that jobs on a tree share. An idle keyspace has none.
#[derive(Default)]
struct ForJobs {
    filter_ledger: FilterLedger,
    flush_sample: FlushSample,
}

/// More than any snapshot's id.
const NOT_DROPPED: u64 = u64::MAX;

/// A keyspace that is open.
pub struct Tree {
    pub id: KeyspaceId,
    /// Shared with its record.
    pub name: Arc<str>,
    /// Shared with the manifest's state.
    pub record: Arc<KeyspaceRecord>,
    pub filter: Option<Arc<dyn CompactionFilter>>,
    pub policy: ArcSwap<Policy>,
    /// The sizes that the policy reads; they change with it.
    pub sizes: ArcSwap<PlanSettings>,
    /// The keyspace's own settings; most have none, and take no memory for them.
    settings: ArcSwapOption<KeyspaceSettings>,
    /// Whether the settings include a TTL: every put asks.
    has_ttl: AtomicBool,
    pub work: Mutex<TreeWork>,
    pub reads: Arc<ReadOwner>,
    /// How hot keys are; made when a merge first asks for it. Not persisted: each table has its own
    /// hotness.
    pub(crate) hot_map: OnceLock<Box<Mutex<HotMap>>>,
    /// State that jobs share; made by the first.
    for_jobs: OnceLock<Box<ForJobs>>,
    /// Memory of memtables, shared by all keyspaces.
    chunks: Arc<ChunkPool>,
    view: ArcSwap<ReadView>,
    view_lock: Mutex<()>,
    /// The id of the first snapshot that was taken after the keyspace was dropped; until then
    /// [`NOT_DROPPED`].
    unseen_from: AtomicU64,
}

/// The arguments of [`Tree::new`].
pub struct TreeParts<'a> {
    /// Shared with the manifest's state.
    pub record: Arc<KeyspaceRecord>,
    pub order: KeyOrder,
    pub filter: Option<Arc<dyn CompactionFilter>>,
    pub settings: KeyspaceSettings,
    pub policy: Arc<Policy>,
    pub sizes: Arc<PlanSettings>,
    pub version: Arc<Version>,
    /// Frozen memtables a read-only open replayed the logs into, newest first.
    pub frozen: Vec<Arc<Memtable>>,
    pub reads: Arc<ReadOwner>,
    pub chunks: Arc<ChunkPool>,
    /// The levels of an earlier version. The tree shares those that are equal.
    pub before: &'a [Arc<ReadLevel>],
}

impl Tree {
    pub fn new(parts: TreeParts<'_>) -> Tree {
        let TreeParts { record, order, filter, policy, sizes, version, frozen, reads, .. } = parts;
        let TreeParts { chunks, before, settings, .. } = parts;
        let handle = |file: &Arc<File>| reads.tables.handle(file, &order);
        let levels = ReadView::next_levels(before, &version, handle);
        pin_level0(&[], &levels);
        let memtable = Arc::new(Memtable::new(order.clone(), chunks.clone()));
        let view = ReadView::new(memtable, frozen, version, levels);
        Tree {
            id: record.id,
            name: record.name.clone(),
            record,
            filter,
            policy: ArcSwap::new(policy),
            sizes: ArcSwap::new(sizes),
            has_ttl: AtomicBool::new(settings.ttl.is_some()),
            settings: ArcSwapOption::new(unless_empty(settings)),
            work: Mutex::new(lock_ranks::TREE_WORK, TreeWork::default()),
            reads,
            hot_map: OnceLock::new(),
            for_jobs: OnceLock::new(),
            chunks,
            view: ArcSwap::from_pointee(view),
            view_lock: Mutex::new(lock_ranks::VIEW, ()),
            unseen_from: AtomicU64::new(NOT_DROPPED),
        }
    }

    /// Sets the keyspace's own settings; its policy is for `Database::set_policy`.
    pub fn configure(&self, settings: KeyspaceSettings) {
        let has_ttl = settings.ttl.is_some();
        self.settings.store(unless_empty(settings));
        self.has_ttl.store(has_ttl, Ordering::Release);
    }

    /// The keyspace's own settings.
    #[inline]
    pub fn settings(&self) -> KeyspaceSettings {
        self.settings.load().as_deref().cloned().unwrap_or_default()
    }

    /// How long a value is kept if its put does not say.
    #[inline]
    pub fn ttl(&self) -> Option<Duration> {
        self.has_ttl.load(Ordering::Acquire).then(|| self.settings.load().as_ref()?.ttl).flatten()
    }

    /// The current view, borrowed: no reference count is touched.
    #[inline]
    pub fn view(&self) -> Guard<Arc<ReadView>> {
        self.view.load()
    }

    /// The current view, owned.
    pub fn pin(&self) -> Arc<ReadView> {
        self.view.load_full()
    }

    /// The current version.
    pub fn version(&self) -> Arc<Version> {
        self.view().version.clone()
    }

    /// The estimates that reads have made of the tree's files.
    pub fn estimates(&self) -> Estimates {
        Estimates::of(&self.reads.access, &self.view())
    }

    /// The filter memory that running jobs may add.
    pub fn filter_ledger(&self) -> &FilterLedger {
        &self.for_jobs.get_or_init(Box::default).filter_ledger
    }

    /// The sample by which flushes are cut while the version does not show where keys are.
    pub fn flush_sample(&self) -> &FlushSample {
        &self.for_jobs.get_or_init(Box::default).flush_sample
    }

    /// An empty memtable of the keyspace.
    pub fn new_memtable(&self) -> Memtable {
        Memtable::new(self.reads.order.clone(), self.chunks.clone())
    }

    /// Puts a new memtable in place of the active one, which is frozen and returned.
    pub(crate) fn switch_memtable(&self, last_seq: SeqNo) -> Arc<Memtable> {
        let _lock = self.view_lock.lock();
        let old = self.view();
        let frozen_one = old.memtable.clone();
        frozen_one.freeze(last_seq);
        let mut frozen = Vec::with_capacity(old.frozen.len() + 1);
        frozen.push(frozen_one.clone());
        frozen.extend(old.frozen.iter().cloned());
        let memtable = Arc::new(self.new_memtable());
        self.view.store(Arc::new(old.with_memtables(memtable, frozen)));
        frozen_one
    }

    /// Takes over a memtable that a read-only open, or a follower, replayed a log into.
    pub fn adopt(&self, memtable: Arc<Memtable>) {
        let _lock = self.view_lock.lock();
        let old = self.view();
        let frozen = std::iter::once(memtable).chain(old.frozen.iter().cloned()).collect();
        self.view.store(Arc::new(old.with_memtables(old.memtable.clone(), frozen)));
    }

    /// Installs a version, and lets go of the frozen memtable that is in its tables. Files that
    /// left the tree are marked obsolete; they are removed at their last unpin.
    pub fn install(&self, version: Arc<Version>, flushed: Option<&Arc<Memtable>>) {
        let _lock = self.view_lock.lock();
        let old = self.pin();
        self.view.store(Arc::new(self.next_view(&old, version, flushed).installed_after(&old)));
    }

    fn next_view(
        &self,
        old: &ReadView,
        version: Arc<Version>,
        flushed: Option<&Arc<Memtable>>,
    ) -> ReadView {
        let stays = |m: &&Arc<Memtable>| flushed.is_none_or(|gone| !Arc::ptr_eq(m, gone));
        let frozen = old.frozen.iter().filter(stays).cloned().collect();
        let handle = |file: &Arc<File>| self.reads.tables.handle(file, &self.reads.order);
        let levels = ReadView::next_levels(&old.levels, &version, handle);
        pin_level0(&old.levels, &levels);
        ReadView::new(old.memtable.clone(), frozen, version, levels)
    }

    /// Installs a version that holds all published entries, and lets go of every memtable. Returns
    /// those.
    pub fn restart(&self, version: Arc<Version>) -> Vec<Arc<Memtable>> {
        let _lock = self.view_lock.lock();
        let old = self.pin();
        let handle = |file: &Arc<File>| self.reads.tables.handle(file, &self.reads.order);
        let levels = ReadView::next_levels(&old.levels, &version, handle);
        pin_level0(&old.levels, &levels);
        let memtable = Arc::new(self.new_memtable());
        let view = ReadView::new(memtable, Vec::new(), version, levels);
        self.view.store(Arc::new(view.installed_after(&old)));
        old.memtables().cloned().collect()
    }

    /// Marks the keyspace dropped: its handles fail from here on, except for reads in snapshots
    /// with ids below `snapshot`. Nothing leaves its last view, which holds all that those
    /// snapshots see.
    pub fn mark_dropped(&self, snapshot: u64) {
        self.unseen_from.store(snapshot, Ordering::Release);
    }

    /// The error of a handle of a keyspace that was dropped, or that takes the place of one that
    /// was left out.
    pub fn gone(&self) -> Error {
        let is_another = self.reads.order.id() != self.record.comparator;
        if is_another { left_out(&self.record) } else { dropped(&self.name) }
    }

    /// Checks that the keys with a prefix are a range.
    ///
    /// # Errors
    /// `NotSupported` for another order than the bytewise one.
    pub fn check_prefix(&self) -> windrow_base::Result<()> {
        if self.reads.order.is_bytewise() {
            return Ok(());
        }
        Err(Error::not_supported(format!(
            "a prefix is no range of keys in the order of keyspace `{}`: use a range",
            self.name
        )))
    }

    /// Whether a snapshot was taken before the keyspace was dropped.
    #[inline]
    pub fn is_seen_by(&self, snapshot: u64) -> bool {
        snapshot < self.unseen_from.load(Ordering::Acquire)
    }

    /// Whether the keyspace was dropped.
    #[inline]
    pub fn is_dropped(&self) -> bool {
        self.unseen_from.load(Ordering::Acquire) != NOT_DROPPED
    }
}

fn unless_empty(settings: KeyspaceSettings) -> Option<Arc<KeyspaceSettings>> {
    if settings.is_empty() { None } else { Some(Arc::new(settings)) }
}

/// The error of a handle whose keyspace is gone.
pub fn dropped(name: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("keyspace `{name}` was dropped"))
}

/// The error for a keyspace that was left out.
pub fn left_out(record: &KeyspaceRecord) -> Error {
    let KeyspaceRecord { name, comparator, .. } = record;
    Error::invalid(format!(
        "keyspace `{name}` is left out: register its comparator `{comparator}` in \
         Components::comparators and open the database again"
    ))
}

/// Keeps index and filter of level 0's tables in memory (Autumn, section 3.2): they are few and
/// small, and every read asks them.
fn pin_level0(old: &[Arc<ReadLevel>], new: &[Arc<ReadLevel>]) {
    for (levels, pinned) in [(old, false), (new, true)] {
        for file in levels.first().into_iter().flat_map(|level| level.files()) {
            file.table.set_pinned(pinned);
        }
    }
}
