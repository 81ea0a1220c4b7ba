//! An open database: its owners, from [`Host`] to [`Scheduler`], and what is done to
//! all of it. Never does: a step of a write, of a job or of an open by itself.
//!
//! In which order locks are taken: `lock_ranks.rs`.

use crate::handles::Handles;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use windrow_base::{KeyspaceId, Result, SeqNo};
use windrow_env::sync::{Guard, Mutex};
use windrow_plan::tree::Version;
use windrow_read::cache::Caches;
use windrow_read::left_out::RecordsLeftOut;
use windrow_read::lock_ranks;
use windrow_store::catalog::Catalog;
use windrow_store::catalog::cleanup::Cleanup;
use windrow_store::host::Host;
use windrow_store::host::workers::Workers;
use windrow_store::jobs::Jobs;
use windrow_store::jobs::schedule::Scheduler;
use windrow_store::manifest::record::KeyspaceRecord;
use windrow_store::tree::Tree;
use windrow_store::tree::trees::Trees;
use windrow_store::write::pipeline::Pipeline;
use windrow_store::write::segments::Segments;
use windrow_store::write::wal::Wal;

/// An open database.
pub(crate) struct Database {
    pub(crate) host: Arc<Host>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) caches: Caches,
    pub(crate) cleanup: Arc<Cleanup>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) scheduler: Arc<Scheduler>,
    /// Keyspaces that a read-only open could not take: see `open/left_out.rs`.
    pub(crate) left_out: Vec<KeyspaceRecord>,
    /// Whole batches of logs that its open did not take over.
    pub(crate) records_left_out: OnceLock<Vec<RecordsLeftOut>>,
    /// In the place of the default keyspace, where that is among them.
    pub(crate) substitute: Option<Arc<Tree>>,
    /// One of several of the same directory, whose caches it shares: see `follow`.
    pub(crate) is_moment: bool,
    pub(crate) handles: Handles,
    /// One checkpoint at a time: held from the freeze to the copy of the state.
    pub(crate) checkpointing: Mutex<()>,
    /// One resume at a time.
    pub(crate) resuming: Mutex<()>,
}

/// What a database is made of; recovery fills it in.
pub(crate) struct DatabaseParts {
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
    pub(crate) substitute: Option<Arc<Tree>>,
    /// It shares the caches of another one.
    pub(crate) is_moment: bool,
}

impl Deref for Database {
    type Target = Host;

    #[inline]
    fn deref(&self) -> &Host {
        &self.host
    }
}

impl Database {
    pub(crate) fn new(parts: DatabaseParts) -> Arc<Database> {
        let DatabaseParts { host, workers, catalog, cleanup, caches, .. } = parts;
        let owners = (host.clone(), catalog.clone(), cleanup.clone());
        let segments = Segments::new(owners, parts.last_seq, parts.wal);
        let running = (host.clone(), workers.clone());
        let pipeline = Pipeline::new(running, caches.clone(), segments, &parts.trees);
        let running = (host.clone(), workers.clone());
        let jobs = Jobs::new(running, (catalog.clone(), cleanup.clone()), pipeline.clone());
        Arc::new(Database {
            host,
            workers,
            pipeline,
            catalog,
            caches,
            cleanup,
            scheduler: Scheduler::new(jobs.clone()),
            jobs,
            left_out: parts.left_out,
            records_left_out: OnceLock::new(),
            substitute: parts.substitute,
            is_moment: parts.is_moment,
            handles: Handles::default(),
            checkpointing: Mutex::new(lock_ranks::CHECKPOINTING, ()),
            resuming: Mutex::new(lock_ranks::RESUMING, ()),
        })
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
        match &self.substitute {
            Some(tree) if tree.id == id => Ok(tree.clone()),
            _ => self.pipeline.tree(id),
        }
    }

    /// Every keyspace's version as it is now.
    pub(crate) fn versions(&self) -> Vec<(String, Arc<Version>)> {
        self.trees().iter().map(|tree| (tree.name.to_string(), tree.version())).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Db;
    use std::sync::Arc;

    /// Whatever is still in memory then, and in no table.
    #[test]
    fn nothing_is_left_of_a_database_whose_close_failed() {
        let (db, handles) = Db::in_memory();
        db.put("key", "value").unwrap();
        let host = Arc::downgrade(&db.database().host);
        handles.fs.crash_at(handles.fs.operations());
        assert!(db.put("key", "value").is_err() || db.flush().is_err());
        assert!(db.close().is_err());
        drop(db);
        handles.jobs.discard();
        assert_eq!(host.strong_count(), 0, "the database holds itself");
    }
}
