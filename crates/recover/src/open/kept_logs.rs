//! Logs of which an open for writing left whole batches out, since they lie behind a gap: bytes
//! that are no record, or sequence numbers that are missing.
//!
//! What was not synced has no promise, and a log gives back a prefix of what was written. A power
//! loss takes sectors in any order, and writers fill their slots in any order; so a few whole
//! batches behind the last record are what such a crash leaves, and no open fails for them. A
//! damaged byte in what was never synced looks the same, and may have nearly all of the log
//! behind it. Nothing tells one from the other: so each of them is reported, and an open for
//! writing, whose next log takes the place of the old ones, keeps a log that has any in `lost/`.
//!
//! That is bounded. Of more than [`KEPT_MAX`] logs that opens have kept, those with the fewest
//! batches go: crash after crash does not push out the one in which there is something to look
//! for. Where what is free is not twice what the log takes, it is not kept, which is reported.
//!
//! A log is linked into `lost/` when all that was taken over of it is in durable tables, and
//! before a manifest without it is in force; its name in the directory goes after that, as every
//! old log's does. There it has a name that is no log's, and nothing reads it again.
//!
//! Owns: which logs are kept, and where. Never does: find a gap (`format/src/log`), or decide what
//! a log gives back (`replay.rs`).

use crate::found::originals::{self, Originals};
use crate::open::undo::MARGIN_BYTES;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windrow_base::{ErrorKind, FileNumber, Result};
use windrow_env::Env;
use windrow_format::names::{self, FileKind};
use windrow_read::left_out::RecordsLeftOut;
use windrow_store::host::Host;
use windrow_store::host::listing::Listing;

/// How many logs that opens have kept stay in `lost/`.
const KEPT_MAX: usize = 8;

/// Between the name of a log in `lost/` and how many batches were left out of it.
const MARK: &str = ".left-out-";

/// Logs that an open for writing keeps.
#[derive(Default)]
pub struct Keep {
    originals: Originals,
    /// Their places in `lost/`, by number.
    places: BTreeMap<FileNumber, PathBuf>,
}

impl Keep {
    /// Has the logs of which something was left out kept, if there is room. All that was taken
    /// over of them is in durable tables.
    ///
    /// # Errors
    /// `Io`; nothing was taken away.
    pub fn link(host: &Host, left_out: &[RecordsLeftOut]) -> Result<Keep> {
        let mut keep = Keep::default();
        for records in left_out {
            let name = names::wal(records.log);
            let bytes = records.to_byte.saturating_mul(2).saturating_add(MARGIN_BYTES);
            if host.env.fs.free_bytes(&host.dir)? < bytes {
                continue;
            }
            let mut one = Originals::default();
            one.add_as(name.clone(), format!("{name}{MARK}{}", records.batches));
            match one.link(&host.env, &host.dir) {
                Ok(()) => keep.take(records.log, one),
                Err(error) if error.kind() == ErrorKind::NoSpace => {}
                Err(error) => return Err(error),
            }
        }
        Ok(keep)
    }

    fn take(&mut self, log: FileNumber, one: Originals) {
        let place = one.places().next().cloned();
        self.places.extend(place.map(|place| (log, place)));
        self.originals.extend(one);
    }

    /// Has the logs that are yet to be moved stay where they are until then.
    pub fn spare(&self, listing: &mut Listing) {
        self.originals.spare(listing);
    }

    /// Moves the logs that could not be linked, has the older ones go that are too many, and
    /// says where each is kept. The manifest in force does without them.
    ///
    /// # Errors
    /// What the file system said.
    pub fn finish(mut self, host: &Host, left_out: &mut [RecordsLeftOut]) -> Result<()> {
        self.originals.finish(&host.env, &host.dir)?;
        for records in left_out {
            records.kept = self.places.get(&records.log).cloned();
        }
        if !self.places.is_empty() {
            self.remove_least(host);
        }
        Ok(())
    }

    /// Removes logs that earlier opens kept, down to [`KEPT_MAX`] with those of this one. One
    /// that cannot be removed stays until the next time.
    fn remove_least(&self, host: &Host) {
        let lost = originals::lost(&host.dir);
        let Ok(there) = host.env.fs.list(&lost) else { return };
        let mut older: Vec<(u64, FileNumber, PathBuf)> = there
            .iter()
            .filter_map(|name| Some((parse(name)?, lost.join(name))))
            .filter(|(_, path)| !self.places.values().any(|kept| kept == path))
            .map(|((log, batches), path)| (batches, log, path))
            .collect();
        older.sort();
        let too_many = (older.len() + self.places.len()).saturating_sub(KEPT_MAX);
        for (_, _, path) in older.iter().take(too_many) {
            let _ = host.env.fs.remove(path);
        }
    }
}

/// Removes the logs that opens have kept, and `lost/` if nothing else is in it: the database
/// goes, and its files with it.
///
/// # Errors
/// `Io`.
pub(crate) fn remove_all(env: &Env, dir: &Path) -> Result<()> {
    let lost = originals::lost(dir);
    if !env.fs.exists(&lost)? {
        return Ok(());
    }
    let (kept, others): (Vec<_>, Vec<_>) =
        env.fs.list(&lost)?.into_iter().partition(|name| parse(name).is_some());
    kept.iter().try_for_each(|name| env.fs.remove(&lost.join(name)))?;
    if others.is_empty() { env.fs.remove_dir(&lost) } else { Ok(()) }
}

/// The log, and how many batches were left out of it, by its name in `lost/`.
fn parse(name: &str) -> Option<(FileNumber, u64)> {
    let (log, batches) = name.split_once(MARK)?;
    let (kind, number) = names::parse(log)?;
    // Another file of the name was there: a copy's number follows.
    let batches = batches.split('.').next()?.parse().ok()?;
    (kind == FileKind::Wal).then_some((number, batches))
}
