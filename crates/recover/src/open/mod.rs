//! Opening: from the files of a directory to an open database.
//!
//! lock -> CURRENT -> fold the manifest -> check files -> replay the logs -> tables of the replayed
//! entries -> new manifest -> CURRENT -> remove orphans -> new log. No file that was found is ever
//! appended to (rule R2). The replayed entries are in synced tables before the first
//! acknowledgement (R3), since the page cache may show bytes that the device lacks. The old logs
//! are removed before the new one is made: on a device that is nearly full there is no other room.
//! An open that fails removes the files that it made: `undo.rs`.
//!
//! A read-only open shows a moment, as a follower does (`assemble::show`): the entries of the logs
//! are kept in memory, and nothing at all is written.
//!
//! Owns: the order of an open. Never does: judge a file by itself; the files of this folder do, one
//! question each.

pub mod assemble;
pub mod kept_logs;
pub mod replay;
mod reserve;
pub mod start;
pub mod undo;

use crate::database::Database;
use crate::discovery::own_files::wal_header;
use crate::discovery::remains::refuse_foreign;
use crate::discovery::{check_no_remains, find_manifest, missing, refuse_newer};
use crate::kept_changes;
use crate::log::logs_at_rest::{LogsAtRest, Purpose, Replayed};
use crate::log::memtables::LogMemtables;
use crate::open::assemble::{Sharing, assemble, show};
use crate::open::kept_logs::Keep;
use crate::open::replay::Replay;
use crate::open::start::start_writing;
use crate::open::undo::OpenAttempt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, FileNumber, Result, debug_invariant, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::{FileLock, LockMode};
use windrow_format::names;
use windrow_plan::Policy;
use windrow_read::events::Event;
use windrow_read::fork::refuse_forked;
use windrow_read::options::Options;
use windrow_store::host::database_directory::{DatabaseDirectory, enter};
use windrow_store::host::listing::Listing;
use windrow_store::manifest::folded_manifest::FoldedManifest;
use windrow_store::manifest::state::ManifestState;

/// A database that was opened, and the lock that keeps others out.
pub struct Opened {
    pub database: Arc<Database>,
    pub lock: Box<dyn FileLock>,
}

/// Opens or creates the database in `dir`.
///
/// # Errors
/// Any error that keeps it from being opened. The directory is then as it was, but for files that
/// the next open removes.
pub fn open(dir: &Path, options: Options) -> Result<Opened> {
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
    let place = DatabaseDirectory::new(env, dir, &*lock);
    place.found(found.current.as_ref());
    let database =
        assemble(env.clone(), place, &options, &listing, found, &policy, Sharing::Nothing)?;
    let attempt = OpenAttempt::begin(&database, &database.catalog);
    let replayed = recover(&database, &attempt, &listing, manifest, options.read_only)
        .map_err(|error| attempt.undo(&database, &listing, error))?;
    let is_begun = database.catalog.lock().log().is_some();
    debug_invariant!(R2, is_begun != options.read_only, "an open has a manifest: {is_begun}");
    database.events.send_with(|| Event::Opened {
        wal_files: replayed.wal_files,
        batches: replayed.batches,
        torn_bytes: replayed.torn_bytes + manifest.map_or(0, |manifest| manifest.torn_bytes),
        duration_us: (database.env.clock.monotonic_ns() - begin_ns) / 1000,
    });
    for records in &replayed.left_out {
        database.events.send_with(|| Event::RecordsLeftOut { records: records.clone() });
    }
    let _ = database.records_left_out.set(replayed.left_out);
    Ok(Opened { database, lock })
}

fn may_create(options: &Options) -> bool {
    options.create_if_missing && !options.read_only
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
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    if !may_create && !env.fs.exists(&dir.join(names::CURRENT))? {
        // Not even a lock file where there is no database.
        return Err(missing_or_remains(env, dir));
    }
    env.fs.lock(&dir.join(names::LOCK), mode)
}

/// Why a directory without CURRENT cannot be opened for reading.
pub fn missing_or_remains(env: &Env, dir: &Path) -> Error {
    let remains = || match env.fs.exists(dir)? {
        true => check_no_remains(dir, &Listing::read(env, dir)?),
        false => Ok(()),
    };
    remains().err().unwrap_or_else(|| missing(dir))
}

/// Replays the logs and, unless the open is read-only, begins to write.
fn recover(
    database: &Arc<Database>,
    attempt: &OpenAttempt,
    listing: &Listing,
    manifest: Option<FoldedManifest>,
    read_only: bool,
) -> Result<Replayed> {
    if !read_only {
        reserve::release_if_short(database, attempt, listing)?;
    }
    let mut replayed = replay_logs(database, listing, manifest, read_only)?;
    if database.settings.verify_on_open {
        // Before anything is written: damage must leave the directory as it was.
        crate::verify::verify(database, &mut |_| {})?.into_result()?;
    }
    let (last_seq, through) = (replayed.last_seq, database.catalog.lock().state().last_seq);
    debug_invariant!(R3, through <= last_seq, "tables go on to {through}, logs to {last_seq}");
    if !read_only {
        let keep = Keep::link(database, &replayed.left_out)?;
        let mut listing = listing.clone();
        keep.spare(&mut listing);
        let state = database.catalog.state();
        let kept = kept_changes::of_open(database, &state, &mut listing, &replayed);
        database.catalog.lock().keep_unlogged(kept);
        let listing = &listing;
        start_writing(database, listing, &replayed)?;
        keep.finish(database, &mut replayed.left_out)?;
        let visible = database.pipeline.visible();
        debug_invariant!(Q2, visible == last_seq, "{visible} of {last_seq} is visible");
        reserve::restore(database, database.pipeline.segments.capacity_bytes(), listing);
    }
    Ok(replayed)
}

fn replay_logs(
    database: &Arc<Database>,
    listing: &Listing,
    manifest: Option<FoldedManifest>,
    read_only: bool,
) -> Result<Replayed> {
    let state = database.catalog.state();
    if state.clean_close.is_some() {
        return Ok(Replayed { last_seq: state.last_seq, ..Replayed::default() });
    }
    let mut paths: Vec<(FileNumber, PathBuf)> = Vec::new();
    for &number in listing.wals.range(state.log_number..) {
        let manifest = manifest.as_ref();
        if wal_header(&database.env, &database.dir, number, &state, manifest)?.is_some() {
            paths.push((number, database.dir.join(names::wal(number))));
        }
    }
    match read_only {
        false => Replay::of_open(database, &state, manifest).run(&paths),
        true => show_logs(database, &state, manifest, &paths),
    }
}

/// Keeps the entries of the logs in memory, as a follower does.
fn show_logs(
    database: &Database,
    state: &ManifestState,
    manifest: Option<FoldedManifest>,
    paths: &[(FileNumber, PathBuf)],
) -> Result<Replayed> {
    let purpose = Purpose::Open(manifest);
    let mut logs = LogsAtRest::new((&database.env, &database.dir), state, purpose);
    let chunks = database.caches.read_memory.chunks().clone();
    let mut memtables = LogMemtables::new(chunks, usize::MAX);
    for (number, path) in paths {
        logs.read((*number, path), &mut |batch, _| memtables.take(batch, state))?;
        logs.found.wal_files += 1;
    }
    let last_seq = logs.last_seq().max(state.last_seq);
    show(database, &memtables, last_seq);
    Ok(Replayed { last_seq, ..logs.found })
}
