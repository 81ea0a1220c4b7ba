//! The files of a directory that no manifest names: the remains of a database, and files that are
//! not Windrow's at all.
//!
//! A name says little: LevelDB and RocksDB have a CURRENT, manifests and tables of the same names,
//! and any program may have a `000123.tmp`. So the first bytes of the files decide whether a
//! directory is a database's, and no file that begins in another way is removed. A file that stays
//! is reported as an event and changes nothing, since numbers are given out behind those of all
//! names.
//!
//! Owns: the judgement to whom a directory belongs, and the removal of files that no manifest
//! names. Never does: move or change a file.

use std::path::Path;
use windrow_base::{Error, Result, debug_invariant};
use windrow_env::Env;
use windrow_env::fs::{EntryKind, ReadFileOptions, is_not_found};
use windrow_format::names;
use windrow_format::owner::{HEAD_BYTES, Owner, of_head};
use windrow_read::events::Event;
use windrow_store::catalog::Catalog;
use windrow_store::catalog::cleanup::Cleanup;
use windrow_store::host::Host;
use windrow_store::host::listing::Listing;

/// The longest that Windrow writes to a lock file: a pid of 32 bits and a line's end.
const LOCK_BYTES_MAX: u64 = "4294967295\n".len() as u64;

/// The owner of the file; `None` if it is not there. An entry that is no file is not Windrow's.
///
/// # Errors
/// `Io` where it cannot be read.
pub(crate) fn owner_of(env: &Env, path: &Path) -> Result<Option<Owner>> {
    match env.fs.stamp(path)?.map(|stamp| stamp.kind) {
        None => return Ok(None),
        // A link may lead to one of our files, which a user has moved.
        Some(EntryKind::File | EntryKind::Link) => {}
        Some(EntryKind::Directory | EntryKind::Other) => return Ok(Some(Owner::Other)),
    }
    let file = match env.fs.open(path, ReadFileOptions::default()) {
        Ok(file) => file,
        // A link that leads nowhere, or a file that has just gone.
        Err(error) if is_not_found(&error) => return Ok(Some(Owner::Other)),
        Err(error) => return Err(error),
    };
    let mut head = vec![0; HEAD_BYTES.min(file.len() as usize)];
    file.read_at(0, &mut head)?;
    Ok(Some(of_head(&head)))
}

/// Refuses a directory whose files are another program's, before anything in it is touched. A
/// directory without any of a database's names belongs to no program.
///
/// # Errors
/// `InvalidArgument` naming a file; `Io`.
pub fn refuse_foreign(env: &Env, dir: &Path) -> Result<()> {
    let current = owner_of(env, &dir.join(names::CURRENT))?;
    match current {
        Some(Owner::Windrow) => return Ok(()),
        Some(Owner::LevelDb) => {
            let whose = "reads as that of a LevelDB or RocksDB database";
            return Err(foreign(dir, names::CURRENT, whose));
        }
        _ => {}
    }
    let listing = Listing::read(env, dir)?;
    let mut stranger = current.filter(|&o| o == Owner::Other).map(|_| names::CURRENT.to_owned());
    let manifests = listing.manifests.iter().rev().map(|&n| names::manifest(n));
    let wals = listing.wals.iter().rev().map(|&n| names::wal(n));
    let tables = listing.tables.iter().rev().map(|&n| names::table(n));
    for name in manifests.chain(wals).chain(tables) {
        match owner_of(env, &dir.join(&name))? {
            Some(Owner::Windrow) => return Ok(()),
            // A crash at creation may have left it torn.
            Some(Owner::Blank | Owner::Torn) | None => {}
            Some(Owner::LevelDb | Owner::Other) => _ = stranger.get_or_insert(name),
        }
    }
    if current.is_none() && stranger.is_none() && !lock_is_ours(env, dir)? {
        stranger = Some(names::LOCK.to_owned());
    }
    match stranger {
        Some(name) => Err(foreign(dir, &name, "is not of a Windrow database")),
        None => Ok(()),
    }
}

/// Whether a lock file may be Windrow's: it is no longer than a pid's line, or blank. It is never
/// synced, so a power loss may leave a part of the line in it, or any bytes of that length: their
/// content refuses no open.
fn lock_is_ours(env: &Env, dir: &Path) -> Result<bool> {
    let path = dir.join(names::LOCK);
    match env.fs.stamp(&path)?.map(|stamp| stamp.kind) {
        Some(EntryKind::File) => {}
        // The lock itself fails on an entry that is no file.
        _ => return Ok(true),
    }
    match env.fs.len(&path) {
        Ok(bytes) if bytes <= LOCK_BYTES_MAX => return Ok(true),
        Err(error) if !is_not_found(&error) => return Err(error),
        _ => {}
    }
    Ok(matches!(owner_of(env, &path)?, None | Some(Owner::Blank | Owner::Windrow)))
}

fn foreign(dir: &Path, name: &str, whose: &str) -> Error {
    Error::invalid(format!(
        "{} holds another program's files ({name} {whose}), and nothing in it was touched: \
         choose another directory, or move them away",
        dir.display()
    ))
}

/// Removes a file of a database's name. Returns why it stays, if it does: it is not known to be
/// written by Windrow, or it could not be removed.
pub(crate) fn remove_ours(env: &Env, dir: &Path, name: &str) -> Result<Option<Error>> {
    let path = dir.join(name);
    match owner_of(env, &path) {
        Ok(None) => Ok(None),
        Ok(Some(Owner::LevelDb | Owner::Torn | Owner::Other)) => {
            let why = Error::invalid("it is not a file of Windrow's");
            Ok(Some(why.with_file(path.display().to_string())))
        }
        Ok(Some(_)) => env.fs.remove(&path).map(|()| None),
        Err(error) => Err(error),
    }
}

/// Removes the files that were found and are not needed any more. One that cannot be removed is
/// reported, and does not keep the database from opening. Where a follower reads an older state of
/// the database, the files wait.
pub(crate) fn remove_orphans(
    (host, cleanup): (&Host, &Cleanup),
    catalog: &Catalog,
    listing: &Listing,
) {
    let catalog = catalog.lock();
    let live = catalog.state().live_tables();
    let kept = catalog.state().kept.clone();
    let in_force = catalog.log().map(|log| log.number);
    drop(catalog);
    let is_new = in_force.is_none_or(|number| !listing.manifests.contains(&number));
    debug_invariant!(R2, is_new, "manifest {in_force:?} is in force, and was found");
    let orphans = listing.tables.difference(&live).map(|&n| names::table(n));
    // A kept log that could not be renamed is read by its old name.
    let wals = listing.wals.iter().filter(|n| !kept.contains_key(n)).map(|&n| names::wal(n));
    let changes = listing.changes.iter().filter(|n| !kept.contains_key(n));
    let wals = wals.chain(changes.map(|&n| names::changes(n)));
    let manifests = listing.manifests.iter().map(|&n| names::manifest(n));
    let temporary = listing.temporary.iter().map(|&n| names::temp(n));
    cleanup.remove_leases();
    let is_read = in_force.filter(|_| cleanup.is_read_by_older());
    for name in orphans.chain(wals).chain(manifests).chain(temporary) {
        if let Some(manifest) = is_read
            && let Ok(Some(Owner::Windrow)) = owner_of(&host.env, &host.dir.join(&name))
        {
            cleanup.hold(name, manifest);
            continue;
        }
        let left = remove_ours(&host.env, &host.dir, &name);
        if let Some(reason) = left.unwrap_or_else(Some) {
            host.events.send(&Event::OrphanLeft { name, reason });
        }
    }
}
