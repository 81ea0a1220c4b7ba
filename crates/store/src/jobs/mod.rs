//! The shared context of flushes, merges and compactions, and the step in which their edits become
//! part of a tree (`catalog/install.rs`) while snapshots come and go.
//!
//! The jobs: `flush`, `merge`, `compact`, `hidden_tables` (tables that range tombstones hide whole)
//! and `read_triggered_merges` (merges that reads have paid for). `failure_policy` judges their
//! failures, and `schedule` says which begins next.
//!
//! Owns: which keyspaces are due, which the jobs' edits change, and up to where memtables may be
//! flushed. Never does: begin a job, or decide its inputs.

pub mod changed_keyspaces;
pub mod compact;
pub mod failure_policy;
pub mod flush;
pub mod hidden_tables;
pub mod merge;
pub mod read_triggered_merges;
pub mod retry_timer;
pub mod schedule;

use crate::catalog::Catalog;
use crate::catalog::cleanup::Cleanup;
use crate::catalog::install::TreeEdit;
use crate::host::Host;
use crate::host::workers::Workers;
use crate::jobs::changed_keyspaces::ChangedKeyspaces;
use crate::manifest::record::Field;
use crate::tree::{Tree, dropped};
use crate::write::pipeline::Pipeline;
use std::collections::HashSet;
use std::sync::Arc;
use windrow_base::{FileNumber, Result, SeqNo, debug_invariant};
use windrow_env::sync::atomic::AtomicU64;
use windrow_plan::tree::{Edit, Version};
use windrow_read::read::view::ReadLevel;
use windrow_read::snapshot_list::DroppedEntries;

/// The outcome of an attempt to install an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    Yes,
    /// No: a snapshot sees entries that the merge dropped.
    Seen,
    /// No: the keyspace was dropped.
    Dropped,
}

/// The shared context of jobs.
pub struct JobContext {
    pub host: Arc<Host>,
    pub workers: Arc<Workers>,
    pub catalog: Arc<Catalog>,
    pub cleanup: Arc<Cleanup>,
    pub pipeline: Arc<Pipeline>,
    /// Keyspaces that must be asked for work.
    pub due: ChangedKeyspaces,
    /// Memtables with newer sequence numbers stay in memory until a checkpoint has taken its state.
    pub flush_through: AtomicU64,
}

impl JobContext {
    pub fn new(
        (host, workers): (Arc<Host>, Arc<Workers>),
        (catalog, cleanup): (Arc<Catalog>, Arc<Cleanup>),
        pipeline: Arc<Pipeline>,
    ) -> Arc<JobContext> {
        let (due, flush_through) = (ChangedKeyspaces::default(), AtomicU64::new(SeqNo::MAX));
        Arc::new(JobContext { host, workers, catalog, cleanup, pipeline, due, flush_through })
    }

    /// Notes a change in a keyspace on which its merges or its pressure depend.
    pub fn note_due(&self, tree: &Tree) {
        self.due.note(&self.pipeline.trees(), tree);
    }

    /// Records an edit of a keyspace's tree, and makes it visible. Tables that it adds, and their
    /// names, are durable already; tables that it removes are unlinked at their last unpin.
    /// `make_edit` gets the version that the edit applies to: epochs are given out under the
    /// manifest's lock.
    ///
    /// # Errors
    /// An error of the manifest, which is a background error. Nothing changed then.
    pub fn install(&self, tree: &Tree, make_edit: impl FnOnce(&Version) -> Edit) -> Result<()> {
        match self.try_install(tree, None, make_edit)? {
            Installed::Yes => Ok(()),
            Installed::Dropped => Err(dropped(&tree.name)),
            Installed::Seen => unreachable!("nothing was taken"),
        }
    }

    /// As [`JobContext::install`], for an edit whose outputs the caller discards if it was not
    /// recorded.
    ///
    /// # Errors
    /// As [`JobContext::install`]. The edit may have been recorded then, or the next open may find
    /// it in the manifest, so outputs stay.
    pub fn try_install(
        &self,
        tree: &Tree,
        taken: Option<DroppedEntries>,
        make_edit: impl FnOnce(&Version) -> Edit,
    ) -> Result<Installed> {
        let mut catalog = self.catalog.lock_to_change()?;
        let Some(before) = catalog.version(tree.id) else {
            return Ok(Installed::Dropped);
        };
        let edit = make_edit(before);
        let removed: HashSet<FileNumber> = edit.obsolete().collect();
        if let Some(taken) = &taken {
            let (since, next) = (taken.since_id, self.host.snapshots.next_id());
            debug_invariant!(I6, since <= next, "a merge knew snapshots up to {since} of {next}");
        }
        let installing = taken.as_ref().map(|taken| self.host.snapshots.raise_barrier(taken));
        if matches!(installing, Some(None)) {
            return Ok(Installed::Seen);
        }
        let expired_ms = taken.map_or(0, |taken| taken.expired_ms);
        let floor = (expired_ms > 0).then_some(Field::TimeFloor(expired_ms));
        let old = tree.pin();
        // If that fails, nothing is installed: a listener that is told of it may take a snapshot.
        let on_failure = || self.host.snapshots.lower_barrier();
        let edit = TreeEdit { tree, edit, flushed: None };
        catalog.install(floor.into_iter().collect(), vec![edit], on_failure)?;
        drop(installing);
        catalog.roll_if_wanted(&self.pipeline.trees())?;
        drop(catalog);
        self.retire_files(&old.levels, &removed);
        drop(old);
        self.note_due(tree);
        self.host.note_progress();
        Ok(Installed::Yes)
    }

    fn retire_files(&self, levels: &[Arc<ReadLevel>], removed: &HashSet<FileNumber>) {
        if removed.is_empty() {
            return;
        }
        let mut found = 0;
        for file in levels.iter().flat_map(|level| level.files()) {
            if removed.contains(&file.file.number) {
                found += 1;
                file.table.mark_obsolete();
            }
        }
        let due = removed.len();
        debug_invariant!(R7, found == due, "{found} of {due} tables that went were in the view");
    }
}
