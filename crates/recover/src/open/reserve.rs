//! The reserve: a file of reserved space, so that a full device does not keep a database closed. An
//! open that may not find the room it needs gives it up first. One that has room to spare makes it
//! again at its end.
//!
//! Recovery writes before it can delete: tables of the replayed entries, a manifest, a log. The old
//! logs are removed only then. Rejected: giving the reserve up once something has failed, and
//! trying again. By then all logs were replayed in vain, and each step that can fail would need to
//! know of the second try.
//!
//! Owns: the file `RESERVE`. No file refers to it, its name is never synced, and its loss is
//! harmless. Never does: give it up under a running database, except where that is resumed
//! (`resume.rs`).

use crate::discovery::remains::remove_ours;
use crate::open::undo::{MARGIN_BYTES, OpenAttempt};
use windrow_base::Result;
use windrow_format::names;
use windrow_store::host::Host;
use windrow_store::host::listing::Listing;

/// Gives the reserve up where a recovery of these files may lack room. The replayed entries take
/// about as much in tables as they do in logs.
///
/// # Errors
/// `Io`.
pub(super) fn release_if_short(
    host: &Host,
    attempt: &OpenAttempt,
    listing: &Listing,
) -> Result<()> {
    if !listing.reserve {
        return Ok(());
    }
    if attempt.needs_bytes(host, listing) <= host.env.fs.free_bytes(&host.dir)? {
        return Ok(());
    }
    if remove_ours(&host.env, &host.dir, names::RESERVE)?.is_some() {
        return Ok(());
    }
    // Some file systems free blocks only when the removal is durable.
    host.env.fs.sync_dir(&host.dir)
}

/// Makes the reserve that the settings ask for, if there is room for it and for going on in a log
/// of `log_bytes`. One that is there stays as it is, and one that no setting asks for any more is
/// removed. Best effort: a database without one is as sound.
pub(super) fn restore(host: &Host, log_bytes: u64, listing: &Listing) {
    let path = host.dir.join(names::RESERVE);
    let fs = &host.env.fs;
    let wanted = host.settings.reserve_bytes;
    if wanted == 0 && !listing.reserve {
        return;
    }
    let found = fs.exists(&path).unwrap_or(false).then(|| fs.len(&path).unwrap_or(0));
    if found.unwrap_or(0) == wanted {
        return;
    }
    let gone = |left: Option<_>| left.is_none();
    if found.is_some() && !remove_ours(&host.env, &host.dir, names::RESERVE).is_ok_and(gone) {
        return;
    }
    let needed = wanted + log_bytes + MARGIN_BYTES;
    if wanted > 0 && fs.free_bytes(&host.dir).is_ok_and(|free| needed <= free) {
        // Made like a log, by reserving space. No more is wanted of the file.
        let made = fs.create_log(&path, wanted).and_then(|file| file.reserve(wanted));
        if made.is_err() {
            let _ = fs.remove(&path);
        }
    }
}
