//! An open database: its owners, from [`Host`] to [`Scheduler`], and the calls that go to all of
//! them. The order in which locks are taken: `lock_ranks.rs`.
//!
//! Owns: the set of these owners. Never does: a step of a write, of a job or of an open by itself.

pub mod handle_count;

use crate::database::handle_count::HandleCount;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use windrow_base::{KeyspaceId, Result, SeqNo};
use windrow_env::sync::{Guard, Mutex};
use windrow_plan::tree::Version;
use windrow_read::cache::Caches;
use windrow_read::lock_ranks;
use windrow_read::records_left_out::RecordsLeftOut;
use windrow_store::catalog::Catalog;
use windrow_store::catalog::cleanup::Cleanup;
use windrow_store::host::Host;
use windrow_store::host::workers::Workers;
use windrow_store::jobs::JobContext;
use windrow_store::jobs::schedule::Scheduler;
use windrow_store::manifest::record::KeyspaceRecord;
use windrow_store::tree::Tree;
use windrow_store::tree::keyspace_list::Trees;
use windrow_store::write::pipeline::Pipeline;
use windrow_store::write::segments::Segments;
use windrow_store::write::wal::Wal;

/// An open database.
pub struct Database {
    pub host: Arc<Host>,
    pub workers: Arc<Workers>,
    pub pipeline: Arc<Pipeline>,
    pub catalog: Arc<Catalog>,
    pub caches: Caches,
    pub cleanup: Arc<Cleanup>,
    pub jobs: Arc<JobContext>,
    pub scheduler: Arc<Scheduler>,
    /// Keyspaces that a read-only open could not open: see `discovery/keyspaces_left_out.rs`.
    pub left_out: Vec<KeyspaceRecord>,
    /// Whole batches of logs that its open did not take over.
    pub records_left_out: OnceLock<Vec<RecordsLeftOut>>,
    /// Takes the place of the default keyspace, where that is among `left_out`.
    pub(crate) substitute: Option<Arc<Tree>>,
    /// Whether it is one of several moments of a follower, which share its caches: see `follow`.
    pub(crate) is_moment: bool,
    pub handles: HandleCount,
    /// One checkpoint at a time: held from the freeze to the copy of the state.
    pub checkpointing: Mutex<()>,
    /// One resume at a time.
    pub resuming: Mutex<()>,
}

/// The parts that recovery makes a database from.
pub struct DatabaseParts {
    pub host: Arc<Host>,
    pub workers: Arc<Workers>,
    pub last_seq: SeqNo,
    pub wal: Arc<Wal>,
    pub catalog: Arc<Catalog>,
    pub caches: Caches,
    pub cleanup: Arc<Cleanup>,
    /// By id ascending.
    pub trees: Vec<Arc<Tree>>,
    pub left_out: Vec<KeyspaceRecord>,
    pub(crate) substitute: Option<Arc<Tree>>,
    /// Whether it shares the caches of another database.
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
    pub fn new(parts: DatabaseParts) -> Arc<Database> {
        let DatabaseParts { host, workers, catalog, cleanup, caches, .. } = parts;
        let owners = (host.clone(), catalog.clone(), cleanup.clone());
        let segments = Segments::new(owners, parts.last_seq, parts.wal);
        let running = (host.clone(), workers.clone());
        let pipeline = Pipeline::new(running, caches.clone(), segments, &parts.trees);
        let running = (host.clone(), workers.clone());
        let jobs = JobContext::new(running, (catalog.clone(), cleanup.clone()), pipeline.clone());
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
            handles: HandleCount::default(),
            checkpointing: Mutex::new(lock_ranks::CHECKPOINTING, ()),
            resuming: Mutex::new(lock_ranks::RESUMING, ()),
        })
    }

    /// The keyspaces that are open.
    #[inline]
    pub fn trees(&self) -> Guard<Arc<Trees>> {
        self.pipeline.trees()
    }

    /// The keyspace with this id.
    ///
    /// # Errors
    /// `Closed` if it was dropped.
    #[inline]
    pub fn tree(&self, id: KeyspaceId) -> Result<Arc<Tree>> {
        match &self.substitute {
            Some(tree) if tree.id == id => Ok(tree.clone()),
            _ => self.pipeline.tree(id),
        }
    }

    /// Every keyspace's version as it is now.
    pub fn versions(&self) -> Vec<(String, Arc<Version>)> {
        self.trees().iter().map(|tree| (tree.name.to_string(), tree.version())).collect()
    }
}
