//! What an open database is made of ([`Host`], [`Workers`], [`Catalog`] and what has
//! no owner of its own yet), and the few operations on all of it: which keyspaces
//! there are, and how an edit of a tree is logged and installed.
//!
//! Orders kept here: data before manifest (callers sync tables and their
//! directory first), manifest before visibility, visibility before deletion.
//!
//! Lock order, outermost first: a tree's `work` (never held across I/O),
//! the catalog, the commit queue, a tree's `view_lock`. `pacing` is taken with
//! none of them held. The progress lock is held alone.

use crate::budget::Shares;
use crate::cache::Caches;
use crate::cleanup::Cleanup;
use crate::due::{Due, Loads};
use crate::handles::Handles;
use crate::host::Host;
use crate::manifest::catalog::{Catalog, TreeEdit};
use crate::manifest::record::{Field, KeyspaceRecord};
use crate::mutants;
use crate::options::Settings;
use crate::read::view::ReadLevel;
use crate::retry_timer::RetryTimer;
use crate::snapshots::Taken;
use crate::tree::Tree;
use crate::trees::Trees;
use crate::workers::{Kick, Workers};
use crate::write::pipeline::Pipeline;
use crate::write::segments::Segments;
use crate::write::wal::Wal;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use windrow_base::{Error, ErrorKind, FileNumber, KeyspaceId, Result, SeqNo, mutant};
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::sync::{Guard, Mutex};
use windrow_plan::tree::{Edit, Version};
use windrow_plan::{Policy, Settings as PlanSettings};

/// What came of an edit that was to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    Yes,
    /// No: a snapshot sees what the merge took.
    Seen,
    /// No: the keyspace was dropped.
    Dropped,
}

/// An open database.
pub(crate) struct Core {
    host: Arc<Host>,
    /// For jobs, which keep the database alive while they run.
    pub(crate) me: Weak<Core>,
    pub(crate) workers: Arc<Workers>,
    /// Debt from which writers are slowed, and at which they are slowed most.
    pub(crate) debt_limits: (u64, u64),
    pub(crate) pipeline: Arc<Pipeline>,
    /// Keyspaces that are to be asked what they need.
    pub(crate) due: Due,
    /// Held while the pressure is measured and set.
    pub(crate) pacing: Mutex<Loads>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) caches: Caches,
    pub(crate) cleanup: Arc<Cleanup>,
    /// Keyspaces that a read-only open could not take: see `open/left_out.rs`.
    pub(crate) left_out: Vec<KeyspaceRecord>,
    pub(crate) handles: Handles,
    /// One checkpoint at a time: held from the freeze to the copy of the state.
    pub(crate) checkpointing: Mutex<()>,
    /// Memtables that hold anything later stay in memory until a checkpoint has
    /// taken its state.
    pub(crate) flush_through: AtomicU64,
    /// One resume at a time.
    pub(crate) resuming: Mutex<()>,
    /// A timer looks for work that found something run out.
    pub(crate) retry_timer: RetryTimer,
}

/// What a database is made of; recovery fills it in.
pub(crate) struct CoreParts {
    pub(crate) host: Arc<Host>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) last_seq: SeqNo,
    pub(crate) wal: Arc<Wal>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) caches: Caches,
    pub(crate) cleanup: Arc<Cleanup>,
    /// By id ascending.
    pub(crate) trees: Vec<Arc<Tree>>,
    pub(crate) left_out: Vec<KeyspaceRecord>,
}

impl Deref for Core {
    type Target = Host;

    #[inline]
    fn deref(&self) -> &Host {
        &self.host
    }
}

impl Core {
    pub(crate) fn new(parts: CoreParts) -> Arc<Core> {
        let CoreParts { host, workers, catalog, cleanup, caches, .. } = parts;
        let owners = (host.clone(), catalog.clone(), cleanup.clone());
        let segments = Segments::new(owners, parts.last_seq, parts.wal);
        let running = (host.clone(), workers.clone());
        let pipeline = Pipeline::new(running, caches.clone(), segments, &parts.trees);
        let core = Arc::new_cyclic(|me| Core {
            me: me.clone(),
            workers,
            debt_limits: debt_limits(&host.settings, &host.shares),
            pipeline,
            due: Due::default(),
            pacing: Mutex::default(),
            catalog,
            caches,
            cleanup,
            left_out: parts.left_out,
            handles: Handles::default(),
            checkpointing: Mutex::new(()),
            flush_through: AtomicU64::new(SeqNo::MAX),
            resuming: Mutex::new(()),
            retry_timer: RetryTimer::default(),
            host,
        });
        let scheduler = core.me.clone();
        core.workers.kick_by(move |kick| {
            let Some(core) = scheduler.upgrade() else { return };
            if kick == Kick::RetryNow {
                core.retry_now();
            }
            core.schedule();
        });
        core
    }

    /// The keyspaces that are open.
    #[inline]
    pub(crate) fn trees(&self) -> Guard<Arc<Trees>> {
        self.pipeline.trees()
    }

    /// The keyspace with this id.
    ///
    /// # Errors
    /// `Closed` if it was dropped.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Result<Arc<Tree>> {
        self.pipeline.tree(id)
    }

    /// Logs an edit of a keyspace's tree, and makes it visible. Tables that it
    /// adds, and their names, are durable already; tables that it removes are
    /// unlinked at their last unpin. The edit is made from the version it
    /// applies to: epochs are given out under the manifest's lock.
    ///
    /// # Errors
    /// What the manifest said, which latches the database. Nothing changed then.
    pub(crate) fn install(
        &self,
        tree: &Tree,
        make_edit: impl FnOnce(&Version) -> Edit,
    ) -> Result<()> {
        match self.try_install(tree, None, make_edit)? {
            Installed::Yes => Ok(()),
            Installed::Dropped => Err(dropped(&tree.name)),
            Installed::Seen => unreachable!("nothing was taken"),
        }
    }

    /// As [`Core::install`], where the edit's outputs are to be discarded if
    /// it was not logged.
    ///
    /// # Errors
    /// As [`Core::install`]; the edit may have been logged then, or be found
    /// in the manifest by the next open, so outputs stay.
    pub(crate) fn try_install(
        &self,
        tree: &Tree,
        taken: Option<Taken>,
        make_edit: impl FnOnce(&Version) -> Edit,
    ) -> Result<Installed> {
        let mut catalog = self.catalog.lock_to_change()?;
        let Some(keyspace) = catalog.state().keyspaces.get(&tree.id) else {
            return Ok(Installed::Dropped);
        };
        let before = keyspace.version.clone();
        let edit = make_edit(&before);
        let version = Arc::new(before.apply(&edit)?);
        let removed: HashSet<FileNumber> = edit.obsolete().collect();
        let mut fields = vec![Field::NextFile(self.next_file.load(Ordering::Relaxed))];
        let landing = taken.as_ref().map(|taken| self.snapshots.land(taken));
        if matches!(landing, Some(None)) {
            return Ok(Installed::Seen);
        }
        if let Some(ms) = taken.map(|taken| taken.expired_ms).filter(|&ms| ms > 0) {
            fields.push(Field::TimeFloor(ms));
        }
        // A move costs no sync: lost with the power, the tree is as before it.
        let relocates = fields.len() == 1 && edit.only_relocates();
        let added = mutants::added(&edit);
        let outputs: Vec<FileNumber> = edit.added.iter().map(|(_, _, file)| file.number).collect();
        mutants::before_edit(self, &removed);
        let durable = !relocates && !mutant!(UnlinkUnsyncedEdit);
        let edit = TreeEdit { keyspace: tree.id, edit, version: version.clone() };
        // Nothing lands where that fails: who is told of it may take a snapshot.
        let on_failure = || self.snapshots.end_landing();
        let logged = catalog.append_edits(fields, vec![edit], durable, on_failure);
        logged.inspect_err(|_| {
            mutants::after_failed_edit(self, &added);
            // What was moved is in the tree already; what was written may be named.
            let is_new = |number: &FileNumber| before.files().all(|(_, _, f)| f.number != *number);
            outputs.iter().copied().filter(is_new).for_each(|n| self.cleanup.keep_table(n));
        })?;
        let old = tree.pin();
        tree.install(version, None);
        drop(landing);
        catalog.roll_if_wanted(&self.trees())?;
        drop(catalog);
        mutants::after_edit(self)?;
        self.retire_files(&old.levels, &removed);
        drop(old);
        self.note_due(tree);
        self.note_progress();
        Ok(Installed::Yes)
    }

    fn retire_files(&self, levels: &[Arc<ReadLevel>], removed: &HashSet<FileNumber>) {
        if removed.is_empty() {
            return;
        }
        for file in levels.iter().flat_map(|level| level.files()) {
            if removed.contains(&file.file.number) {
                file.table.mark_obsolete();
                if mutant!(ObsoleteTooSoon) {
                    self.cleanup.unlink_table(file.file.number);
                }
            }
        }
    }

    /// Every keyspace's version as it is now.
    pub(crate) fn versions(&self) -> Vec<(String, Arc<Version>)> {
        self.trees().iter().map(|tree| (tree.name.to_string(), tree.version())).collect()
    }
}

/// The sizes that a keyspace's policies read: the user's, and where those are
/// silent what suits its policy.
pub(crate) fn plan_settings(settings: &Settings, shares: &Shares, policy: &Policy) -> PlanSettings {
    let sizes = policy.sizes(shares.memtable_bytes);
    let or = |asked: u64, suited: u64| if asked == 0 { suited } else { asked };
    PlanSettings {
        memtable_bytes: shares.memtable_bytes,
        file_bytes: or(settings.file_bytes, sizes.file_bytes),
        level_base_bytes: or(settings.level_base_bytes, sizes.level_base_bytes),
        level0_slowdown: settings.level0_slowdown_files,
        level0_stop: settings.level0_stop_files,
        ..PlanSettings::default()
    }
}

/// Where debt begins to slow writers, and where it slows them most.
fn debt_limits(settings: &Settings, shares: &Shares) -> (u64, u64) {
    let base = match settings.level_base_bytes {
        0 => shares.memtable_bytes / 2 * 3,
        bytes => bytes,
    };
    let slowdown = match settings.debt_slowdown_bytes {
        0 => base.saturating_mul(16).max(1 << 30),
        bytes => bytes,
    };
    let stop = match settings.debt_stop_bytes {
        0 => slowdown.saturating_mul(4),
        bytes => bytes,
    };
    (slowdown, stop)
}

/// The error of a handle whose keyspace is gone.
pub(crate) fn dropped(name: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("keyspace `{name}` was dropped"))
}

#[cfg(test)]
mod tests {
    use crate::{Db, Options};
    use std::sync::Arc;

    /// Whatever is still in memory then, and in no table.
    #[test]
    fn nothing_is_left_of_a_database_whose_close_failed() {
        let (env, handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        let db = Db::open_with("db", options).unwrap();
        db.put("key", "value").unwrap();
        let host = Arc::downgrade(&db.core().host);
        handles.fs.crash_at(handles.fs.operations());
        assert!(db.put("key", "value").is_err() || db.flush().is_err());
        assert!(db.close().is_err());
        drop(db);
        handles.jobs.discard();
        assert_eq!(host.strong_count(), 0, "the database holds itself");
    }
}
