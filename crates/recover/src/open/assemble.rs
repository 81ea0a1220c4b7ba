//! From a folded manifest to a database with its trees, which takes no writes yet.
//!
//! Owns: the order in which its parts are made. Never does: replay a log, or write.

use crate::database::{Database, DatabaseParts};
use crate::discovery::FoundManifest;
use crate::discovery::own_files::check_files;
use crate::log::memtables::LogMemtables;
use std::sync::Arc;
use windrow_base::{
    Error, ErrorKind, KeyOrder, KeyspaceId, Result, SeqNo, debug_invariant, unless_mutant,
};
use windrow_env::{Env, LogFile, Process};
use windrow_plan::tree::Version;
use windrow_plan::{PlanSettings, Policy};
use windrow_read::budget::Budget;
use windrow_read::cache::{BlockCache, Caches, ReadMemory, TableCache, TableLimits};
use windrow_read::gaps::Gaps;
use windrow_read::options::{Components, KeyspaceOptions, KeyspaceSettings, Options};
use windrow_read::read::ReadOwner;
use windrow_read::read::access::Access;
use windrow_read::read::cost::ReadCost;
use windrow_read::read::view::ReadView;
use windrow_skiplist::ChunkPool;
use windrow_store::catalog::Catalog;
use windrow_store::catalog::cleanup::Cleanup;
use windrow_store::catalog::durable_manifest::DurableManifest;
use windrow_store::host::database_directory::DatabaseDirectory;
use windrow_store::host::listing::Listing;
use windrow_store::host::plan_sizes::plan_settings;
use windrow_store::host::workers::Workers;
use windrow_store::host::{Host, HostSetup};
use windrow_store::manifest::record::KeyspaceRecord;
use windrow_store::manifest::state::{KeyspaceState, ManifestState};
use windrow_store::tree::{Tree, TreeParts};
use windrow_store::write::wal::Wal;

/// The state that a database shares with others of this process.
#[derive(Clone, Copy)]
pub enum Sharing<'a> {
    /// Nothing.
    Nothing,
    /// Its caches, with the databases of the same directory at other moments; the last one before
    /// it, if there is one.
    Moments(Option<&'a Database>),
}

impl<'a> Sharing<'a> {
    fn before(self) -> Option<&'a Database> {
        if let Sharing::Moments(before) = self { before } else { None }
    }
}

/// Builds the database around the folded manifest; it takes no writes yet.
pub fn assemble(
    env: Env,
    place: Arc<DatabaseDirectory>,
    options: &Options,
    listing: &Listing,
    found: FoundManifest,
    policy: &Policy,
    sharing: Sharing<'_>,
) -> Result<Arc<Database>> {
    let shares = Budget::split_for(&options.settings, policy.memtable_bytes_max());
    let host = Host::new(HostSetup {
        env,
        place,
        database_uid: found.database_uid,
        settings: options.settings.clone(),
        shares,
        components: options.components.clone(),
        read_only: options.read_only,
    });
    let (env, dir, settings) = (&host.env, &host.dir, &host.settings);
    let workers = Workers::new(host.clone());
    let durable = Arc::<DurableManifest>::default();
    let cleanup = Cleanup::new(host.clone(), workers.clone(), durable.clone());
    let new = || new_caches(&host, &cleanup);
    let caches = sharing.before().map_or_else(new, |before| before.caches.clone());
    let Caches { tables, blocks, read_memory } = &caches;
    if let Some(manifest) = &found.manifest {
        check_files(env, dir, listing, &found.state, manifest)?;
    }
    listing.check_numbers(dir)?;
    let state = with_numbers(found.state, listing);
    let services = Services {
        host: host.clone(),
        env: Arc::new(env.clone()),
        tables: tables.clone(),
        blocks: blocks.clone(),
        chunks: read_memory.chunks().clone(),
        policy: Arc::new(policy.clone()),
        sizes: Arc::new(plan_settings(settings, &shares, policy)),
    };
    let tree = |keyspace: &KeyspaceState| {
        let id = keyspace.record.id;
        let before = sharing.before().and_then(|before| Some(before.trees().get(id)?.pin()));
        services.tree(keyspace, &options.components, before.as_deref()).map(Arc::new)
    };
    let trees = state.keyspaces.values().map(tree).collect::<Result<Vec<_>>>()?;
    let substitute = services.substitute(&found.left_out)?;
    if substitute.is_none() {
        check_default(&state, &options.default_keyspace)?;
    }
    let last_seq = state.last_seq;
    let ahead = trees.iter().find(|tree| tree.version().flushed_through > last_seq);
    let ahead = ahead.map(|tree| &tree.name);
    debug_invariant!(R3, ahead.is_none(), "tables of {ahead:?} go on behind {last_seq}");
    host.go_on_from(state.next_file, state.time_floor_ms);
    let parts = DatabaseParts {
        last_seq: state.last_seq,
        wal: Arc::new(no_wal()),
        caches,
        is_moment: matches!(sharing, Sharing::Moments(_)),
        catalog: Arc::new(Catalog::new(host.clone(), (cleanup.clone(), durable), state)),
        cleanup,
        trees,
        left_out: found.left_out,
        substitute,
        workers,
        host,
    };
    Ok(Database::new(parts))
}

/// Shows the entries that were read of the logs, up to `last_seq`, in a database that writes no
/// tables of them: a moment of a follower, or one that is opened for reading.
pub fn show(database: &Database, memtables: &LogMemtables, last_seq: SeqNo) {
    for tree in database.trees().iter() {
        memtables.of(tree.id).for_each(|memtable| tree.adopt(memtable.clone()));
    }
    let queue = database.pipeline.queue();
    queue.set_visible(last_seq.max(queue.visible()));
}

/// The state, with file and sequence numbers behind all that are in use.
fn with_numbers(mut state: ManifestState, listing: &Listing) -> ManifestState {
    unless_mutant!(NumberReuse, state.next_file = state.next_file.max(listing.number_max() + 1));
    let flushed = state.keyspaces.values().map(|k| k.version.flushed_through).max();
    state.last_seq =
        state.last_seq.max(state.log_first_seq.saturating_sub(1)).max(flushed.unwrap_or(0));
    state
}

fn new_caches(host: &Host, cleanup: &Arc<Cleanup>) -> Caches {
    let shares = host.shares;
    let blocks = Arc::new(BlockCache::within(
        shares.cache_target_bytes(shares.all_in_use(), 0),
        shares.cache_target_bytes(shares.one_in_use(), 0),
        shares.cache_bytes_max,
    ));
    let env = &host.env;
    let read_memory =
        Arc::new(ReadMemory::new(shares, blocks.clone(), (env.fs.clone(), env.clock.clone())));
    let tables = table_cache(host, (cleanup, &read_memory));
    Caches { tables, blocks, read_memory }
}

fn table_cache(
    host: &Host,
    (cleanup, read_memory): (&Arc<Cleanup>, &Arc<ReadMemory>),
) -> Arc<TableCache> {
    let (obsolete, balance) = (cleanup.clone(), read_memory.clone());
    let files_max = match host.settings.open_files_max {
        0 => host.env.fs.open_files_max(),
        asked => (asked as usize).min(host.env.fs.open_files_max()),
    };
    Arc::new(TableCache::new(
        host.env.fs.clone(),
        &host.dir,
        TableLimits {
            files: files_max,
            bytes: read_memory.tables_limit_bytes().clone(),
            bytes_at_rest: host.shares.tables_limit_bytes(host.shares.at_rest()),
        },
        host.settings.direct_io,
        host.counters.clone(),
        Arc::new(move |number| obsolete.unlink_table(number)),
        Arc::new(move |used| balance.share(used)),
    ))
}

/// Checks that the options for the default keyspace agree with those it was made with.
fn check_default(state: &ManifestState, asked: &KeyspaceOptions) -> Result<()> {
    match state.keyspaces.get(&KeyspaceId::DEFAULT) {
        Some(keyspace) => check_agrees(&keyspace.record, asked),
        None => Err(Error::corruption("the manifest holds no default keyspace")),
    }
}

/// Whether options given for a keyspace that exists agree with it.
///
/// # Errors
/// `InvalidArgument` that names both.
pub(crate) fn check_agrees(record: &KeyspaceRecord, asked: &KeyspaceOptions) -> Result<()> {
    let differs = |what: &str, stored: &str, asked: &str| {
        Error::invalid(format!(
            "keyspace `{}` was made with {what} `{stored}`, not `{asked}`",
            record.name
        ))
    };
    if let Some(asked) = asked.comparator.as_deref().filter(|a| *a != record.comparator) {
        return Err(differs("comparator", &record.comparator, asked));
    }
    let stored = record.merge_operator.as_deref();
    if let Some(asked) = asked.merge_operator.as_deref().filter(|a| Some(*a) != stored) {
        return Err(differs("merge operator", stored.unwrap_or("none"), asked));
    }
    Ok(())
}

/// The services that the trees of a database share, since each byte of a tree counts where there
/// are 10,000.
pub struct Services {
    pub host: Arc<Host>,
    pub env: Arc<Env>,
    pub tables: Arc<TableCache>,
    pub blocks: Arc<BlockCache>,
    pub chunks: Arc<ChunkPool>,
    /// The policy of keyspaces without one of their own.
    pub policy: Arc<Policy>,
    /// The sizes that belong to it.
    pub sizes: Arc<PlanSettings>,
}

impl Services {
    /// Opens a keyspace over its version. `before`: the view that reads of an earlier version have.
    ///
    /// # Errors
    /// `InvalidArgument` for a comparator that is not registered.
    pub fn tree(
        &self,
        keyspace: &KeyspaceState,
        components: &Components,
        before: Option<&ReadView>,
    ) -> Result<Tree> {
        let order = components.key_order(&keyspace.record.comparator)?;
        Ok(self.tree_in(order, keyspace, components, before))
    }

    /// An empty tree in the place of the default keyspace, where that was left out, since every
    /// handle of a database begins with it. Every operation on it fails.
    fn substitute(&self, left_out: &[KeyspaceRecord]) -> Result<Option<Arc<Tree>>> {
        let default = left_out.iter().find(|record| record.id == KeyspaceId::DEFAULT);
        let Some(record) = default else { return Ok(None) };
        let order = KeyOrder::Bytewise;
        let version = Arc::new(Version::empty(order.clone()));
        let keyspace = KeyspaceState::new(record.clone(), version);
        let tree = self.tree_in(order, &keyspace, &Components::default(), None);
        tree.mark_dropped(0); // no snapshot sees anything of it
        Ok(Some(Arc::new(tree)))
    }

    /// The policy of a keyspace with these settings, and its sizes.
    fn policy_of(&self, settings: &KeyspaceSettings) -> (Arc<Policy>, Arc<PlanSettings>) {
        match settings.policy.as_deref().map(Policy::parse) {
            Some(Ok(policy)) => {
                let sizes = plan_settings(&self.host.settings, &self.host.shares, &policy);
                (Arc::new(policy), Arc::new(sizes))
            }
            _ => (self.policy.clone(), self.sizes.clone()),
        }
    }

    fn tree_in(
        &self,
        order: KeyOrder,
        keyspace: &KeyspaceState,
        components: &Components,
        before: Option<&ReadView>,
    ) -> Tree {
        let record = keyspace.record.clone();
        let sorted_by = keyspace.version.order.id();
        debug_invariant!(I1, order.id() == sorted_by, "`{}` is by {sorted_by}", record.name);
        let settings =
            KeyspaceSettings::from_text_known(keyspace.settings.as_deref().unwrap_or(""));
        let (policy, sizes) = self.policy_of(&settings);
        // Without an operator operands stay as they are in flushes and merges, and a read that
        // would have to apply them fails.
        let operator =
            record.merge_operator.as_ref().and_then(|n| components.merge_operator(n).ok());
        let reads = Arc::new(ReadOwner {
            tables: self.tables.clone(),
            blocks: self.blocks.clone(),
            env: self.env.clone(),
            order: order.clone(),
            operator,
            operator_name: record.merge_operator.as_deref().map(Box::from),
            counters: self.host.counters.clone(),
            access: Access::new(policy.query_sample(), &keyspace.version),
            cost: ReadCost::new(policy.merges_for_reads()),
            gaps: Gaps::new(self.host.last_given.clone()),
            process: Process::current(),
        });
        Tree::new(TreeParts {
            filter: components.compaction_filter(&record.name).cloned(),
            record,
            order,
            settings,
            policy,
            sizes,
            version: keyspace.version.clone(),
            frozen: Vec::new(),
            reads,
            chunks: self.chunks.clone(),
            before: before.map_or(&[], |before| &before.levels),
        })
    }
}

/// The log in the queue until the log of this open is made, and for good where the database is
/// read-only. Every write is refused before this log is used.
struct NoLog;

impl LogFile for NoLog {
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        Err(Error::new(ErrorKind::ReadOnly, "the database has no log"))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

fn no_wal() -> Wal {
    Wal::new(0, 0, Arc::new(NoLog), 0)
}
