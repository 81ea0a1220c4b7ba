//! Opening: from what lies in a directory to an open database.
//!
//! lock -> CURRENT -> fold the manifest -> check files -> replay the logs ->
//! tables for what was replayed -> new manifest -> CURRENT -> remove orphans
//! -> new log. Nothing found at open is ever appended to (rule R2), and
//! what was replayed is in synced tables before the first acknowledgement
//! (R3), since the page cache may show bytes that the device lacks. The old
//! logs go before the new one comes: on a device that is nearly full their
//! room is the room there is. What an open that fails takes back: `undo.rs`.
//!
//! A read-only open stops after the replay and keeps it in memory; it writes
//! nothing at all.

use crate::budget::Budget;
use crate::cache::{BlockCache, ReadMemory, TableCache};
use crate::cleanup::Cleanup;
use crate::core::{Core, CoreParts, plan_settings};
use crate::events::Event;
use crate::host::{Ground, Host};
use crate::latch::refuse_forked;
use crate::left_out::{self, LeftOut};
use crate::listing::Listing;
use crate::manifest::catalog::Catalog;
use crate::manifest::record::{KeyspaceRecord, Record};
use crate::manifest::state::{KeyspaceState, ManifestState, WalState};
use crate::options::{Components, KeyspaceOptions, Options};
use crate::place::{Place, enter};
use crate::read::ReadOwner;
use crate::read::access::Access;
use crate::remains::refuse_foreign;
use crate::repair::traces;
use crate::replay::{Replay, Replayed};
use crate::stats::Counters;
use crate::tree::{Tree, TreeParts};
use crate::undo::Attempt;
use crate::workers::Workers;
use crate::write::wal::Wal;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::{
    Error, ErrorKind, FileNumber, FileUid, KeyspaceId, Result, mutant, unless_mutant,
};
use windrow_env::fs::{FileLock, LockMode, ReadOptions};
use windrow_env::{Env, LogFile, Process};
use windrow_format::current::Current;
use windrow_format::log::{Class, FileHeader, Length, LogKind, Reader};
use windrow_format::names;
use windrow_plan::{Policy, Settings as PlanSettings};
use windrow_skiplist::ChunkPool;

/// How often an idle database looks for work, in ms.
const IDLE_LOOK_MS: u64 = 30_000;

/// Name of the keyspace that every database has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// A database that was opened, and the lock that keeps others out.
pub(crate) struct Opened {
    pub(crate) core: Arc<Core>,
    pub(crate) lock: Box<dyn FileLock>,
}

/// Opens or creates the database in `dir`.
///
/// # Errors
/// Whatever keeps it from being opened; the directory is then as it was, but
/// for files that the next open removes.
pub(crate) fn open(dir: &Path, options: Options) -> Result<Opened> {
    options.validate()?;
    let Options { components, settings, .. } = &options;
    let env = components.env_or_os(settings);
    refuse_forked(&env)?;
    let begin_ns = env.clock.monotonic_ns();
    let dir = &env.fs.absolute(dir)?;
    if !env.fs.exists(dir)? {
        make_dir(&env, dir, &options)?;
    }
    let (env, dir) = &enter(&env, dir)?;
    unless_mutant!(NewerLocked, refuse_newer(env, dir)?);
    refuse_foreign(env, dir)?;
    let lock = take_lock(env, dir, &options)?;
    let listing = Listing::read(env, dir)?;
    let found = find_manifest(env, dir, &listing, &options)?;
    let policy = Policy::parse(&settings.preset).map_err(|e| e.context("setting `preset`"))?;
    let manifest = found.manifest;
    let place = Place::new(env, dir, &*lock);
    place.found(found.current.as_ref());
    let core = assemble(env.clone(), place, &options, &listing, found, &policy)?;
    let attempt = core.begin_attempt();
    let replayed = core
        .recover(&attempt, &listing, manifest, options.read_only)
        .map_err(|error| core.undo(&attempt, &listing, error))?;
    core.events.send_with(|| Event::Opened {
        wal_files: replayed.wal_files,
        batches: replayed.batches,
        torn_bytes: replayed.torn_bytes + manifest.map_or(0, |manifest| manifest.torn_bytes),
        duration_us: (core.env.clock.monotonic_ns() - begin_ns) / 1000,
    });
    Ok(Opened { core, lock })
}

/// Refuses a directory of a newer format before even the lock file is touched.
///
/// # Errors
/// `NotSupported`. What else CURRENT may be is judged later, under the lock.
pub(crate) fn refuse_newer(env: &Env, dir: &Path) -> Result<()> {
    if !env.fs.exists(&dir.join(names::CURRENT))? {
        return Ok(());
    }
    match read_current(env, dir) {
        Err(error) if error.kind() == ErrorKind::NotSupported => Err(error),
        _ => Ok(()),
    }
}

fn may_create(options: &Options) -> bool {
    options.create_if_missing && (!options.read_only || mutant!(ReadOnlyCreates))
}

/// Makes the directory where that is asked for.
fn make_dir(env: &Env, dir: &Path, options: &Options) -> Result<()> {
    if may_create(options) { env.fs.create_dir(dir) } else { Err(missing(dir)) }
}

/// Makes the name of the directory durable, where it may be new, and locks it.
fn take_lock(env: &Env, dir: &Path, options: &Options) -> Result<Box<dyn FileLock>> {
    let may_create = may_create(options);
    if may_create {
        env.fs.create_dir(dir)?;
    }
    let shared = options.read_only && !mutant!(ReadOnlyLocks);
    let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
    if !may_create && !env.fs.exists(&dir.join(names::CURRENT))? {
        // Not even a lock file where there is no database.
        let listing = Listing::read(env, dir)?;
        check_no_remains(dir, &listing)?;
        return Err(missing(dir));
    }
    if mutant!(LockIgnored) {
        return env.fs.lock(&dir.join(env.random.next_u64().to_string()), mode);
    }
    env.fs.lock(&dir.join(names::LOCK), mode)
}

fn missing(dir: &Path) -> Error {
    Error::invalid(format!(
        "there is no database in {}: check the path, or open it for writing to create one",
        dir.display()
    ))
}

/// Rule R1: CURRENT is durable before any log or table, so without it they
/// are the remains of a database and not a new one.
fn check_no_remains(dir: &Path, listing: &Listing) -> Result<()> {
    if listing.tables.is_empty() && listing.wals.is_empty() || mutant!(CurrentMissing) {
        return Ok(());
    }
    Err(Error::corruption("CURRENT is missing beside logs or tables: try `repair`")
        .with_file(dir.join(names::CURRENT).display().to_string()))
}

/// The manifest that was found, folded.
pub(crate) struct Found {
    pub(crate) state: ManifestState,
    pub(crate) database_uid: u64,
    /// The manifest it was folded from; `None` for a state to be checked
    /// against no file (a database that is made now, or repaired).
    pub(crate) manifest: Option<Folded>,
    /// Keyspaces that are there and not in `state`.
    pub(crate) left_out: Vec<KeyspaceRecord>,
    /// CURRENT, where it was believed.
    pub(crate) current: Option<Current>,
}

/// A manifest that was read to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folded {
    /// Its identity.
    pub(crate) uid: FileUid,
    /// How far it is valid.
    pub(crate) valid: Length,
    /// Bytes behind that which were not written whole.
    pub(crate) torn_bytes: u64,
}

impl Folded {
    /// Compares it with what a log remembers of the manifest in force.
    ///
    /// # Errors
    /// `Corruption` naming the manifest, or CURRENT where that names an older one.
    pub(crate) fn check(&self, dir: &Path, seen: Length, log: FileNumber) -> Result<()> {
        let (valid, what) = (self.valid, format!("log {log} saw"));
        let (name, what, offset) = if seen.number > valid.number {
            let what = format!("{what} manifest {} in force, not {}", seen.number, valid.number);
            (names::CURRENT.to_owned(), what, 0)
        } else if seen.number == valid.number && seen.bytes > valid.bytes {
            let what = format!(
                "the manifest ends at {}, but {what} {} bytes of it synced",
                valid.bytes, seen.bytes
            );
            (names::manifest(valid.number), what, valid.bytes)
        } else {
            return Ok(());
        };
        if mutant!(ManifestWitness) {
            return Ok(());
        }
        let file = dir.join(name).display().to_string();
        Err(Error::corruption(what).with_file(file).with_offset(offset))
    }
}

fn find_manifest(env: &Env, dir: &Path, listing: &Listing, options: &Options) -> Result<Found> {
    if listing.current {
        if options.error_if_exists {
            return Err(Error::invalid(format!(
                "a database exists in {}: open it without error_if_exists",
                dir.display()
            )));
        }
        return read_manifest(env, dir, &options.components, options.read_only);
    }
    check_no_remains(dir, listing)?;
    if !options.create_if_missing || options.read_only {
        return Err(missing(dir));
    }
    let record = new_keyspace(
        KeyspaceId::DEFAULT,
        DEFAULT_KEYSPACE,
        &options.default_keyspace,
        &options.components,
    )?;
    let mut state = ManifestState::default();
    let first = ManifestState::new_database(record, options.settings.to_text());
    state.apply(&first, &|id| options.components.key_order(id))?;
    let database_uid = env.random.next_u64();
    let (manifest, current, left_out) = (None, None, Vec::new());
    Ok(Found { state, database_uid, manifest, current, left_out })
}

/// The record of a keyspace that is made with `options`.
///
/// # Errors
/// `InvalidArgument` for a comparator or operator that is not there.
pub(crate) fn new_keyspace(
    id: KeyspaceId,
    name: &str,
    options: &KeyspaceOptions,
    components: &Components,
) -> Result<KeyspaceRecord> {
    let comparator = options.comparator.clone().unwrap_or_else(|| BYTEWISE_ID.to_owned());
    components.key_order(&comparator)?;
    if let Some(operator) = &options.merge_operator {
        components.merge_operator(operator)?;
    }
    let merge_operator = options.merge_operator.clone();
    Ok(KeyspaceRecord { id, name: name.to_owned(), comparator, merge_operator })
}

/// Reads CURRENT, before anything is written, and folds the manifest it names.
fn read_manifest(env: &Env, dir: &Path, components: &Components, read_only: bool) -> Result<Found> {
    let current = read_current(env, dir)?;
    let mut state = ManifestState::default();
    let mut left_out = LeftOut::default();
    let order_of = |id: &str| components.key_order(id).map_err(left_out::needed);
    let (number, uid) = (current.manifest_number, Some(current.manifest_uid));
    let folded = fold_manifest(env, dir, number, uid, |record| match read_only {
        true => state.apply(&left_out.filter(record, components), &order_of),
        false => state.apply(record, &order_of),
    })?;
    let (database_uid, manifest) = (current.database_uid, Some(folded));
    let left_out = left_out.into_records();
    Ok(Found { state, database_uid, manifest, current: Some(current), left_out })
}

/// Reads CURRENT.
///
/// # Errors
/// `Corruption` naming it, `NotSupported` for a newer format.
pub(crate) fn read_current(env: &Env, dir: &Path) -> Result<Current> {
    let path = dir.join(names::CURRENT);
    let named = |e: Error| e.with_file(path.display().to_string());
    Current::decode(&env.fs.read_all(&path)?).map_err(named)
}

/// Passes each record of a manifest to `fold`. `uid`: its identity, where that is known.
///
/// # Errors
/// `Corruption` naming the file and the record's offset.
pub(crate) fn fold_manifest(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    uid: Option<FileUid>,
    mut fold: impl FnMut(&Record) -> Result<()>,
) -> Result<Folded> {
    let path = dir.join(names::manifest(number));
    let named = |e: Error| e.with_file(path.display().to_string());
    let file = match env.fs.open(&path, ReadOptions::default()) {
        Ok(file) => file,
        Err(e) if windrow_env::fs::is_not_found(&e) => {
            return Err(named(Error::corruption("CURRENT names a manifest that is missing")));
        }
        Err(e) => return Err(e),
    };
    let mut reader = Reader::open(file, LogKind::Manifest, None)?;
    let header = reader.header().clone();
    if header.number != number || uid.is_some_and(|uid| header.uid != uid) {
        return Err(named(Error::corruption(
            "another manifest stands where the one that CURRENT names should",
        )));
    }
    let mut records = 0;
    while let Some(record) = reader.next()? {
        let at = record.offset;
        let located = |e: Error| named(e.with_offset(at));
        if record.class != Class::Edit {
            return Err(located(Error::corruption("a record in the manifest is not an edit")));
        }
        Record::decode(record.payload).and_then(|r| fold(&r)).map_err(located)?;
        records += 1;
    }
    if records == 0 {
        return Err(named(Error::corruption("the manifest holds no record")));
    }
    let valid = Length { number, bytes: reader.valid_bytes() };
    Ok(Folded { uid: header.uid, valid, torn_bytes: reader.torn().unwrap_or(0) })
}

/// Builds the database around the folded manifest; it takes no writes yet.
pub(crate) fn assemble(
    env: Env,
    place: Arc<Place>,
    options: &Options,
    listing: &Listing,
    found: Found,
    policy: &Policy,
) -> Result<Arc<Core>> {
    let shares = Budget::split_for(&options.settings, policy.memtable_bytes_max());
    let host = Host::new(Ground {
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
    let cleanup = Cleanup::new(host.clone(), workers.clone());
    let blocks = Arc::new(BlockCache::within(
        shares.cache_target_bytes(shares.frozen_bytes_max(), 0),
        shares.cache_target_bytes(0, 0),
        shares.cache_bytes_max,
    ));
    let read_memory = Arc::new(ReadMemory::new(shares, blocks.clone()));
    let tables = table_cache(&host, (&cleanup, &read_memory));
    if let Some(manifest) = &found.manifest {
        check_files(&env, dir, listing, &found.state, manifest)?;
    }
    let mut state = found.state;
    listing.check_numbers(dir)?;
    if !mutant!(NumberReuse) {
        state.next_file = state.next_file.max(listing.number_max() + 1);
    }
    let flushed = state.keyspaces.values().map(|k| k.version.flushed_through).max();
    state.last_seq =
        state.last_seq.max(state.log_first_seq.saturating_sub(1)).max(flushed.unwrap_or(0));
    // All keyspaces share them: each of 10,000 counts.
    let sizes = plan_settings(&settings, &shares, policy);
    let steering = (Arc::new(policy.clone()), Arc::new(sizes));
    let read_env = Arc::new(env.clone());
    let trees = state
        .keyspaces
        .values()
        .map(|keyspace| {
            let shared = (&read_env, &tables, &blocks, read_memory.chunks(), &host.counters);
            Ok(Arc::new(build_tree(keyspace, &options.components, &steering, shared)?))
        })
        .collect::<Result<Vec<_>>>()?;
    check_default(&state, &found.left_out, &options.default_keyspace)?;
    host.go_on_from(state.next_file, state.time_floor_ms);
    let parts = CoreParts {
        last_seq: state.last_seq,
        wal: Arc::new(no_wal()),
        tables,
        blocks,
        read_memory,
        catalog: Catalog::new(host.clone(), cleanup.clone(), state),
        cleanup,
        trees,
        left_out: found.left_out,
        workers,
        host,
    };
    Ok(Core::new(parts))
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
        files_max,
        host.shares.tables_limit_bytes(0),
        host.settings.direct_io,
        Arc::new(move |number| obsolete.unlink_table(number)),
        Arc::new(move |used| balance.opened(used)),
    ))
}

/// What the default keyspace is asked to be must be what it was made as.
fn check_default(
    state: &ManifestState,
    left_out: &[KeyspaceRecord],
    asked: &KeyspaceOptions,
) -> Result<()> {
    if let Some(record) = left_out.iter().find(|record| record.id == KeyspaceId::DEFAULT) {
        return Err(left_out::refused(record));
    }
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

type Shared<'a> =
    (&'a Arc<Env>, &'a Arc<TableCache>, &'a Arc<BlockCache>, &'a Arc<ChunkPool>, &'a Arc<Counters>);

/// Opens a keyspace over its version.
pub(crate) fn build_tree(
    keyspace: &KeyspaceState,
    components: &Components,
    (policy, sizes): &(Arc<Policy>, Arc<PlanSettings>),
    (env, tables, blocks, chunks, counters): Shared<'_>,
) -> Result<Tree> {
    let record = keyspace.record.clone();
    let order = components.key_order(&record.comparator)?;
    // Without it operands stay as they are, whatever is flushed or merged, and
    // a read that would have to apply them errs.
    let operator = record.merge_operator.as_ref().and_then(|n| components.merge_operator(n).ok());
    let reads = Arc::new(ReadOwner {
        tables: tables.clone(),
        blocks: blocks.clone(),
        env: env.clone(),
        order: order.clone(),
        operator: operator.clone(),
        operator_name: record.merge_operator.clone(),
        counters: counters.clone(),
        access: Access::new(policy.learns_from_queries(), &keyspace.version),
        process: Process::current(),
    });
    Ok(Tree::new(TreeParts {
        filter: components.compaction_filter(&record.name).cloned(),
        record,
        order,
        operator,
        policy: policy.clone(),
        sizes: sizes.clone(),
        version: keyspace.version.clone(),
        frozen: Vec::new(),
        reads,
        chunks: chunks.clone(),
    }))
}

/// Checks that what the manifest names is there and not shorter than it was,
/// and that the manifest is as long as the logs remember it (rules R4, R11).
fn check_files(
    env: &Env,
    dir: &Path,
    listing: &Listing,
    state: &ManifestState,
    manifest: &Folded,
) -> Result<()> {
    let bad = |name: String, what: String| {
        Err(Error::corruption(what).with_file(dir.join(name).display().to_string()))
    };
    for keyspace in state.keyspaces.values() {
        for (_, _, file) in keyspace.version.files() {
            let name = names::table(file.number);
            if !listing.tables.contains(&file.number) {
                if mutant!(MissingTable) {
                    continue;
                }
                return bad(name, "a table that the manifest names is missing".into());
            }
            let bytes = env.fs.len(&dir.join(&name))?;
            if bytes != file.bytes {
                let what = format!("the table is {bytes} bytes long, not {}", file.bytes);
                return bad(name, what);
            }
        }
    }
    if let Some((wal, bytes)) = state.clean_close {
        let name = names::wal(wal);
        if !listing.wals.contains(&wal) {
            return bad(name, "the log that a clean close left is missing".into());
        }
        let found = env.fs.len(&dir.join(&name))?;
        if found != bytes {
            return bad(name, format!("a clean close left {bytes} bytes here, not {found}"));
        }
    }
    for (&number, wal) in &state.wals {
        let name = names::wal(number);
        if !listing.wals.contains(&number) {
            if mutant!(MissingLog) {
                continue;
            }
            return bad(name, "a log that the manifest names is missing".into());
        }
        let bytes = env.fs.len(&dir.join(&name))?;
        if bytes < wal.bytes {
            return bad(
                name,
                format!("the log is {bytes} bytes long, and was made with {}", wal.bytes),
            );
        }
    }
    for &wal in listing.wals.range(state.log_number..) {
        if let Some(header) = wal_header(env, dir, wal, state, Some(manifest))? {
            let (number, bytes) = (header.manifest_number, header.manifest_durable_bytes);
            manifest.check(dir, Length { number, bytes }, wal)?;
        }
    }
    Ok(())
}

/// The header of a log; `None` where the log was never known to be complete.
fn wal_header(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    state: &ManifestState,
    manifest: Option<&Folded>,
) -> Result<Option<FileHeader>> {
    let path = dir.join(names::wal(number));
    let file = env.fs.open(&path, ReadOptions::default())?;
    let known = state.wals.get(&number);
    match Reader::open(file, LogKind::Wal, None) {
        Ok(reader) if is_log(reader.header(), number, known) => {
            let header = reader.header().clone();
            let is_own = known.is_some() || is_own(env, dir, &header, manifest)?;
            Ok(is_own.then_some(header))
        }
        // Its header was never synced, so no record can be in it: what stands
        // there is torn, or what an older log left on the same sectors.
        Ok(_) if known.is_none() => Ok(None),
        Ok(_) => Err(another_log(&path)),
        Err(e) if known.is_none() && e.kind() == ErrorKind::Corruption => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a file with this header is the log of this number.
pub(crate) fn is_log(header: &FileHeader, number: FileNumber, known: Option<&WalState>) -> bool {
    header.number == number && known.is_none_or(|wal| wal.uid == header.uid || mutant!(LogUid))
}

/// Whether a log that the manifest does not name is this database's, of this
/// life: another's may stand on the same sectors, complete, where a new log of
/// its number was never synced. It is where the manifest that it was made
/// beside is in force or, since CURRENT may be an older one, is there.
pub(crate) fn is_own(
    env: &Env,
    dir: &Path,
    header: &FileHeader,
    manifest: Option<&Folded>,
) -> Result<bool> {
    let Some(manifest) = manifest.filter(|_| !mutant!(ForeignLog)) else { return Ok(true) };
    match header.manifest_number.cmp(&manifest.valid.number) {
        Ordering::Equal => Ok(header.manifest_uid == manifest.uid),
        Ordering::Greater => {
            Ok(manifest_uid(env, dir, header.manifest_number)? == Some(header.manifest_uid))
        }
        // One that is gone: nothing can be compared.
        Ordering::Less => Ok(true),
    }
}

/// The uid of a manifest; `None` where none can be read.
fn manifest_uid(env: &Env, dir: &Path, number: FileNumber) -> Result<Option<FileUid>> {
    let opened = env
        .fs
        .open(&dir.join(names::manifest(number)), ReadOptions::default())
        .and_then(|file| Reader::open(file, LogKind::Manifest, None));
    match opened {
        Ok(reader) => Ok(Some(reader.header().uid)),
        Err(e) if e.is_corruption() || windrow_env::fs::is_not_found(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The error where it is not.
pub(crate) fn another_log(path: &Path) -> Error {
    Error::corruption("another log stands here than the manifest names")
        .with_file(path.display().to_string())
}

impl Core {
    /// Replays the logs and, unless the open is read-only, begins to write.
    fn recover(
        &self,
        attempt: &Attempt,
        listing: &Listing,
        manifest: Option<Folded>,
        read_only: bool,
    ) -> Result<Replayed> {
        if !read_only {
            self.release_reserve_if_short(attempt, listing)?;
        }
        let replayed = self.replay_logs(listing, manifest)?;
        if self.settings.verify_on_open {
            // Before anything is written: damage must leave the directory as it was.
            crate::verify::verify(self, &mut |_| {})?.into_result()?;
        }
        if !read_only {
            self.start_writing(listing, &replayed)?;
            self.restore_reserve(listing);
        }
        Ok(replayed)
    }

    fn replay_logs(&self, listing: &Listing, manifest: Option<Folded>) -> Result<Replayed> {
        let state = self.catalog.state();
        if state.clean_close.is_some() {
            return Ok(Replayed { last_seq: state.last_seq, ..Replayed::default() });
        }
        let mut paths: Vec<(FileNumber, PathBuf)> = Vec::new();
        for &number in listing.wals.range(state.log_number..) {
            let manifest = manifest.as_ref();
            if wal_header(&self.env, &self.dir, number, &state, manifest)?.is_some() {
                paths.push((number, self.dir.join(names::wal(number))));
            }
        }
        Replay::new(self, &state, manifest).run(&paths)
    }

    /// Makes what was replayed durable, starts a new manifest and a new log,
    /// and removes what neither names.
    ///
    /// # Errors
    /// `ReadOnly` where the replay kept what it found in memory, or a sync of its
    /// tables failed: a manifest would name less than the logs hold. `Io`, `NoSpace`.
    pub(crate) fn start_writing(&self, listing: &Listing, replayed: &Replayed) -> Result<()> {
        self.latch.check()?;
        if mutant!(OrphansBeforeManifest) {
            self.remove_orphans(listing);
        }
        let last_seq = replayed.last_seq;
        let begun = self.catalog.begin(self.catalog.state(), last_seq)?;
        self.catalog.lock().adopt(begun);
        traces::remove(&self.env, &self.dir, listing);
        self.remove_orphans(listing);
        let wal = self.first_wal(&mut self.catalog.lock())?;
        self.begin_log(if mutant!(SeqAnew) { 0 } else { last_seq }, Arc::new(wal));
        self.cleanup.arm();
        self.start_timers();
        self.note_all_due();
        self.schedule();
        Ok(())
    }

    /// Work that only time brings: entries that expire in an idle database, and
    /// the sync of the log, as often as the settings ask.
    fn start_timers(&self) {
        let core = self.me.clone();
        let look = move || {
            let core = core.upgrade();
            let look = |core: &Core| core.schedule_if_open() && core.watch_place().is_ok();
            core.is_some_and(|core| core.workers.contain(|| look(&core)).unwrap_or(false))
        };
        self.env.jobs.every(IDLE_LOOK_MS, Arc::new(look));
        let interval_ms = self.settings.wal_sync_interval_ms;
        if interval_ms == 0 {
            return;
        }
        let core = self.me.clone();
        let sync = move || match core.upgrade() {
            Some(core) => {
                // It goes on where writing is off: that may end.
                core.workers.contain(|| core.sync_wal());
                !core.workers.gate.is_closing()
            }
            None => false,
        };
        self.env.jobs.every(interval_ms, Arc::new(sync));
    }
}

/// Stands in the queue until the log of this open is made, and for good where
/// the database is read-only: the latch refuses every write before it is asked.
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
