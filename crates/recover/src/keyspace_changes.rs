//! The upkeep of keyspaces: they are made, dropped, and given another policy.
//!
//! Owns no state: each is a sequence of steps of the owners. Never does: write to one.

use crate::database::Database;
use crate::discovery::keyspaces_left_out;
use crate::discovery::new_keyspace;
use crate::open::assemble::{Services, check_agrees};
use std::collections::HashSet;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, KeyspaceId, Result, unless_mutant};
use windrow_plan::Policy;
use windrow_read::events::Event;
use windrow_read::options::{KeyspaceOptions, KeyspaceSettings};
use windrow_store::catalog::LockedCatalog;
use windrow_store::host::plan_sizes::plan_settings;
use windrow_store::manifest::record::{DEFAULT_KEYSPACE, DroppedKeyspace, Field};
use windrow_store::manifest::state::KeyspaceState;
use windrow_store::tree::{Tree, dropped};
use windrow_store::write::queue::QueueState;

/// The longest name of a keyspace, in bytes.
const NAME_BYTES_MAX: usize = 255;

impl Database {
    // ---- policies

    /// Gives a tree another policy. Jobs that run are finished under the old one. The new policy
    /// takes the tree as they leave it.
    ///
    /// # Errors
    /// `InvalidArgument` that lists what is valid; `Closed`, `ReadOnly`.
    pub fn set_policy(&self, tree: &Tree, text: &str) -> Result<()> {
        let policy = Policy::parse(text)?;
        self.write_state.check()?;
        self.workers.check_open()?;
        if tree.is_dropped() {
            return Err(dropped(&tree.name));
        }
        // A pick between the two stores sees the new sizes under the old
        // policy, which is as good a decision as any.
        tree.sizes.store(Arc::new(plan_settings(&self.settings, &self.shares, &policy)));
        self.events.send_with(|| Event::PolicyChanged {
            keyspace: tree.name.clone(),
            policy: policy.to_string(),
        });
        let learns = policy.learns_from_queries();
        tree.reads.access.set_sample(policy.query_sample());
        tree.reads.cost.set_on(policy.merges_for_reads());
        if !learns {
            // The judgement of the old policy. No job will renew it.
            let view = tree.view();
            let files = view.levels.iter().flat_map(|level| level.files());
            files.for_each(|file| file.table.set_skips_filter(false));
        }
        if let Some(notes) = &mut tree.work.lock().notes {
            notes.measured = None;
        }
        tree.policy.store(Arc::new(policy));
        self.jobs.note_due(tree);
        self.scheduler.schedule();
        Ok(())
    }

    /// Stores settings of its own with a keyspace, and applies them.
    ///
    /// # Errors
    /// `InvalidArgument` that lists what is wrong with them; `Closed`, `ReadOnly`; an error of
    /// storing them.
    pub fn configure(&self, tree: &Tree, settings: KeyspaceSettings) -> Result<()> {
        settings.validate()?;
        self.write_state.check()?;
        let policy = settings.policy.clone();
        let mut catalog = self.catalog.lock_to_change()?;
        self.workers.check_open()?;
        if tree.is_dropped() {
            return Err(dropped(&tree.name));
        }
        let before = tree.settings();
        if before == settings {
            return Ok(());
        }
        let field = Field::KeyspaceSettings(tree.id, settings.to_text());
        self.append(&mut catalog, vec![field])?;
        tree.configure(settings);
        self.shorten_manifest(&mut catalog)?;
        drop(catalog);
        if before.policy == policy {
            return Ok(());
        }
        // The policy that another thread stored meanwhile, if one did.
        let policy = tree.settings().policy;
        self.set_policy(tree, policy.as_deref().unwrap_or(&self.settings.preset))
    }

    /// Stores the given settings with an existing keyspace. Where nothing may be written, its
    /// settings stay.
    pub fn give(&self, tree: &Tree, given: &KeyspaceSettings) -> Result<()> {
        if given.is_empty() || self.write_state.check().is_err() {
            return Ok(());
        }
        self.configure(tree, tree.settings().with(given))
    }

    // ---- keyspaces

    /// The keyspaces of these names; those that are not there are made with
    /// these options, all by one record of the manifest and one of the log.
    pub fn open_or_create_keyspaces(
        &self,
        names: &[&str],
        options: &KeyspaceOptions,
    ) -> Result<Vec<Arc<Tree>>> {
        self.write_state.check_read()?;
        options.settings.validate()?;
        names.iter().try_for_each(|name| keyspaces_left_out::check(&self.left_out, name))?;
        let open = |name: &&str| match self.pipeline.keyspaces.named(name) {
            Some(tree) => check_agrees(&tree.record, options).map(|()| Some(tree)),
            None => check_name(name).map(|()| None),
        };
        let found: Option<Vec<_>> = names.iter().map(open).collect::<Result<_>>()?;
        if let Some(all) = found {
            all.iter().try_for_each(|tree| self.give(tree, &options.settings))?;
            return Ok(all);
        }
        self.shorten_log();
        let mut catalog = self.catalog.lock_to_change()?;
        self.workers.check_open()?;
        let mut fields = Vec::new();
        let mut made = Vec::new();
        let mut next = catalog.state().next_keyspace;
        let mut seen = HashSet::new();
        for name in names.iter().filter(|name| seen.insert(**name)) {
            if open(name)?.is_some() {
                continue;
            }
            let id = KeyspaceId(next);
            let Some(after) = next.checked_add(1) else {
                return Err(Error::invalid("the database has used up its keyspace ids"));
            };
            next = after;
            let record = new_keyspace(id, name, options, &self.components)?;
            // Any records of the log under this id are older than the keyspace: there are none.
            fields.push(Field::KeyspaceCreate(record));
            if !options.settings.is_empty() {
                fields.push(Field::KeyspaceSettings(id, options.settings.to_text()));
            }
            made.push(id);
        }
        if !made.is_empty() {
            fields.push(Field::NextKeyspace(next));
            self.append(&mut catalog, fields)?;
            self.shorten_manifest(&mut catalog)?;
            self.pipeline.cross_check_manifest()?;
        }
        for id in made {
            let tree = Arc::new(self.tree_of(&catalog.state().keyspaces[&id])?);
            self.pipeline.keyspaces.add(&tree);
            self.events.send_with(|| Event::KeyspaceCreated { keyspace: tree.name.clone() });
        }
        drop(catalog);
        let there =
            |name: &&str| self.pipeline.keyspaces.named(name).ok_or_else(|| dropped_named(name));
        let all = names.iter().map(there).collect::<Result<Vec<_>>>()?;
        all.iter().try_for_each(|tree| self.give(tree, &options.settings))?;
        Ok(all)
    }

    /// Logs that keyspaces were made or dropped, and the log from which recovery must replay: where
    /// nothing is written, no other record says so.
    fn append(&self, catalog: &mut LockedCatalog<'_>, mut fields: Vec<Field>) -> Result<()> {
        fields.extend(self.pipeline.segments.log_begin(&[], catalog.state())?);
        catalog.append(fields)
    }

    /// Begins a new manifest if this one has grown, and lets logs go that recovery need not replay.
    fn shorten_manifest(&self, catalog: &mut LockedCatalog<'_>) -> Result<()> {
        catalog.roll_if_wanted(&self.trees())?;
        let state = catalog.state();
        self.pipeline.segments.retire_below(state.log_number, &state.kept)
    }

    /// Goes on in the next log segment if this one has grown. Every make and drop of a keyspace
    /// writes to it, and perhaps no memtable ever gets full.
    fn shorten_log(&self) {
        let is_long = |queue: &QueueState| queue.wal_offset >= self.shares.memtable_bytes / 2;
        let segments = &self.pipeline.segments;
        if !is_long(&segments.queue.lock()) {
            return;
        }
        let Ok(_underway) = self.workers.begin() else { return };
        // An error of making a log is reported by the operation that needs it.
        if segments.prepare().is_err() {
            return;
        }
        let mut queue = segments.queue.lock();
        if is_long(&queue) && segments.rotate(&mut queue) {
            queue.freeze_pinning();
        }
        drop(queue);
        self.scheduler.schedule();
    }

    fn tree_of(&self, keyspace: &KeyspaceState) -> Result<Tree> {
        let default = self.tree(KeyspaceId::DEFAULT)?;
        let policy = default.policy.load_full();
        // The default's sizes, unless its policy is being changed: policy and sizes belong
        // together.
        let sizes = plan_settings(&self.settings, &self.shares, &policy);
        let theirs = default.sizes.load_full();
        let sizes = if *theirs == sizes { theirs } else { Arc::new(sizes) };
        let services = Services {
            host: self.host.clone(),
            env: default.reads.env.clone(),
            tables: self.caches.tables.clone(),
            blocks: self.caches.blocks.clone(),
            chunks: self.caches.read_memory.chunks().clone(),
            policy,
            sizes,
        };
        services.tree(keyspace, &self.components, None)
    }

    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Err(Error::invalid("the default keyspace cannot be dropped"));
        }
        self.write_state.check()?;
        let Some(tree) = self.pipeline.keyspaces.named(name) else {
            return Err(Error::invalid(format!("there is no keyspace `{name}`")));
        };
        self.shorten_log();
        // The drop is durable in the manifest before the log's mark of it is. Earlier writes must
        // not be lost where the drop is not (P2), so the log is synced first. This needs no lock on
        // the manifest, which writers that are not visible yet may need.
        unless_mutant!(DropUnsynced, self.pipeline.segments.sync_if_more_than(0)?);
        let mut catalog = self.catalog.lock_to_change()?;
        self.workers.check_open()?;
        if tree.is_dropped() {
            return Err(dropped(&tree.name));
        }
        // With the catalog locked: the feed of changes hands out no later write before the drop.
        let seq = self.pipeline.queue().lock().last_seq();
        let order = Some((tree.record.comparator.clone(), tree.record.merge_operator.clone()));
        let dropped = DroppedKeyspace { id: tree.id, seq, name: tree.name.clone(), order };
        let fields = std::iter::once(Field::KeyspaceDrop(tree.id)).chain(dropped.fields());
        self.append(&mut catalog, fields.collect())?;
        // The feed of changes and the next open know of the drop from here on, so that no failure
        // stops it: one is reported when it is done.
        let shortened = self.shorten_manifest(&mut catalog);
        let noted = shortened.and_then(|()| self.pipeline.cross_check_manifest());
        let (view, last_seq) = self.pipeline.drop_tree(&tree);
        drop(catalog);
        self.pipeline.queue().wake_listeners();
        // A handle, snapshot or iterator may keep the memtables. Wait for writers that still write
        // to them, so that all of it counts. Where writing is off, there is no wait.
        let _ = self.pipeline.queue().wait_visible(last_seq, &self.write_state);
        view.memtables().for_each(|memtable| self.pipeline.retire(memtable));
        for file in view.levels.iter().flat_map(|level| level.files()) {
            file.table.mark_obsolete();
        }
        self.events.send_with(|| Event::KeyspaceDropped { keyspace: tree.name.clone() });
        self.jobs.note_due(&tree);
        self.note_progress();
        noted
    }
}

fn dropped_named(name: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("keyspace `{name}` was dropped meanwhile"))
}

pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::invalid(format!(
            "a keyspace's name has 1 to {NAME_BYTES_MAX} bytes, not {}",
            name.len()
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid("a keyspace's name must not hold control characters"));
    }
    Ok(())
}
