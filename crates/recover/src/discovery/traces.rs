//! Traces that a repair leaves while it runs, so that one that was cut short begins again and its
//! files are not taken for data.
//!
//! `REPAIR-n` is made durable before a repair writes its first file, and is removed once a manifest
//! without the damaged files is in force. While it is there, no file numbered below `n` has been
//! removed and no write has been acknowledged since. So the files numbered above may be removed:
//! tables and a manifest of the repair, and tables of an open's replay. Counted as data, they would
//! hold merge operands twice, and a manifest that was cut short would replace one that is whole.
//!
//! A trace does not count where the database was opened since: CURRENT then names a manifest above
//! `n`, and there is a log above it, as every open makes one before it acknowledges anything.
//!
//! Rejected: a mark in the tables themselves. Whether such a table counts depends on whether its
//! sources are still there, file by file.
//!
//! Owns: the files `REPAIR-n`. Never does: remove a table or a manifest numbered below `n`.
//! depends on whether its sources are still there, file by file.

use crate::discovery::read_current;
use crate::discovery::remains::remove_ours;
use std::path::Path;
use windrow_base::{FileNumber, Result};
use windrow_env::Env;
use windrow_env::fs::WriteOptions;
use windrow_format::names;
use windrow_store::host::listing::Listing;

/// The number of the repair that was cut short, if there was one. Its files have this number or a
/// higher one.
fn interrupted(env: &Env, dir: &Path, listing: &Listing) -> Option<FileNumber> {
    let in_force = read_current(env, dir).map_or(0, |current| current.manifest_number);
    let opened_through = in_force.max(listing.wals.last().copied().unwrap_or(0));
    listing.repairs.iter().copied().find(|&first| opened_through < first)
}

/// Removes the files that a repair which was cut short has written. Returns its number.
///
/// # Errors
/// The error of the file system.
pub fn forget(env: &Env, dir: &Path, listing: &mut Listing) -> Result<Option<FileNumber>> {
    let Some(first) = interrupted(env, dir, listing) else { return Ok(None) };
    let tables = listing.tables.split_off(&first);
    let manifests = listing.manifests.split_off(&first);
    let temporary = listing.temporary.split_off(&first);
    let names = tables.into_iter().map(names::table);
    let names = names.chain(manifests.into_iter().map(names::manifest));
    for name in names.chain(temporary.into_iter().map(names::temp)) {
        remove_ours(env, dir, &name)?;
    }
    Ok(Some(first))
}

/// Makes the trace of a repair whose files are numbered from `first` on.
///
/// # Errors
/// The error of the file system.
pub fn leave(env: &Env, dir: &Path, first: FileNumber) -> Result<()> {
    env.fs.create(&dir.join(names::repair(first)), WriteOptions::default())?.finish()?;
    env.fs.sync_dir(dir)
}

/// Removes the traces, now that a newer manifest is in force. One that cannot be removed does no
/// harm: the next log shows that the repair is over.
pub fn remove(env: &Env, dir: &Path, listing: &Listing) {
    for &first in &listing.repairs {
        let _ = remove_ours(env, dir, &names::repair(first));
    }
}
