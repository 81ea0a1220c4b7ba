//! Destroy: the removal of a database's files, and of nothing else.
//!
//! It looks first. A directory with another program's files is refused before anything in it is
//! touched, and so is a link, since its own directory is another one.
//!
//! Owns: the order of removal. Never does: remove a file that is not Windrow's.

use crate::discovery::remains::{refuse_foreign, remove_ours};
use crate::measure::stats_file;
use crate::open::kept_logs;
use std::path::Path;
use windrow_base::{Error, Result};
use windrow_env::Env;
use windrow_env::fs::{EntryKind, LockMode};
use windrow_format::names;
use windrow_store::host::database_directory::enter;
use windrow_store::host::listing::Listing;
use windrow_store::host::readers::refuse_readers;

/// Removes the files of the database in `dir`. Files that are not Windrow's
/// stay, and then so does the directory.
pub fn destroy(env: &Env, dir: &Path) -> Result<()> {
    match env.fs.stamp(&env.fs.absolute(dir)?)?.map(|stamp| stamp.kind) {
        None => return Ok(()),
        Some(EntryKind::Directory) => {}
        Some(EntryKind::Link) => {
            return Err(Error::invalid(format!(
                "{} is a symbolic link, and nothing was removed: destroy the directory that it \
                 leads to, then remove the link",
                dir.display()
            )));
        }
        Some(_) => {
            return Err(Error::invalid(format!("{} is no directory", dir.display())));
        }
    }
    let (env, dir) = enter(env, dir)?;
    refuse_foreign(&env, &dir)?;
    let lock = env.fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
    refuse_readers(&env, &dir)?;
    let listing = Listing::read(&env, &dir)?;
    // CURRENT goes last but for the lock: a destroy that is cut short leaves a directory that is
    // still recognised as a database, and can be destroyed again.
    let tables = listing.tables.iter().map(|&n| names::table(n));
    let wals = listing.wals.iter().map(|&n| names::wal(n));
    let changes = listing.changes.iter().map(|&n| names::changes(n));
    let manifests = listing.manifests.iter().map(|&n| names::manifest(n));
    let reserve = listing.reserve.then(|| names::RESERVE.to_owned());
    let temporary = listing.temporary.iter().map(|&n| names::temp(n));
    let repairs = listing.repairs.iter().map(|&n| names::repair(n));
    let readers = listing.readers.iter().map(|&place| names::reader(place));
    let temporary = changes.chain(temporary).chain(repairs).chain(readers);
    for name in tables.chain(wals).chain(temporary).chain(manifests).chain(reserve) {
        remove_ours(&env, &dir, &name)?;
    }
    stats_file::remove(&env, &dir);
    kept_logs::remove_all(&env, &dir)?;
    if listing.current {
        // The directory is a database's, as was checked above, even if CURRENT is damaged.
        env.fs.remove(&dir.join(names::CURRENT))?;
    }
    env.fs.remove(&dir.join(names::LOCK))?;
    env.fs.sync_dir(&dir)?;
    drop(lock);
    if env.fs.list(&dir)?.is_empty() {
        env.fs.remove_dir(&dir)?;
    }
    Ok(())
}
