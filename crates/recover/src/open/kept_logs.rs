//! Logs from which an open for writing left out whole batches, since they lie behind a gap: bytes
//! that are no record, or sequence numbers that are missing.
//!
//! Writes that were not synced are not promised, and a log gives back a prefix of its writes. A
//! power loss takes sectors in any order, and writers fill their slots in any order. So such a
//! crash may leave a few whole batches behind the last record, and no open fails for them. A
//! damaged byte in the part that was never synced looks the same, and nearly all of the log may be
//! behind it. The two cases cannot be told apart. So each of them is reported, and an open for
//! writing, whose next log replaces the old ones, keeps a log that has such batches in `lost/`.
//!
//! The number of kept logs is bounded. When opens have kept more than [`KEPT_MAX`] logs, those with
//! the fewest batches are removed: repeated crashes do not push out the one with batches to look
//! for. Where free space is less than twice the log's size, the log is not kept, which is reported.
//!
//! A log is linked into `lost/` when all the batches that were taken over are in durable tables,
//! and before a manifest without it is in force. Its name in the directory is removed after that,
//! as every old log's is. In `lost/` its name is no log's, and nothing reads it again.
//!
//! Owns: the choice of the logs that are kept, and their place. Never does: find a gap
//! (`format/src/log`), or decide which records a log gives back (`replay.rs`).

use crate::discovery::originals::{self, Originals};
use crate::open::undo::MARGIN_BYTES;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windrow_base::{ErrorKind, FileNumber, Result};
use windrow_env::Env;
use windrow_format::names::{self, FileKind};
use windrow_read::records_left_out::RecordsLeftOut;
use windrow_store::host::Host;
use windrow_store::host::listing::Listing;

/// The number of logs kept by opens that stay in `lost/`.
const KEPT_MAX: usize = 8;

/// Between the name of a log in `lost/` and the number of batches that were left out.
const MARK: &str = ".left-out-";

/// The logs that an open for writing keeps.
#[derive(Default)]
pub struct Keep {
    originals: Originals,
    /// Their paths in `lost/`, by number.
    places: BTreeMap<FileNumber, PathBuf>,
}

impl Keep {
    /// Links the logs with batches that were left out, if there is room. All batches that were
    /// taken over are in durable tables.
    ///
    /// # Errors
    /// `Io`; nothing was removed.
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

    /// Takes the logs that will be moved out of `listing`, so that none is removed before.
    pub fn spare(&self, listing: &mut Listing) {
        self.originals.spare(listing);
    }

    /// Moves the logs that could not be linked, removes older ones beyond the bound, and sets where
    /// each log is kept. The manifest in force does without them.
    ///
    /// # Errors
    /// The error of the file system.
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

    /// Removes logs that earlier opens kept, down to [`KEPT_MAX`] together with those of this one.
    /// One that cannot be removed stays until the next open.
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

/// Removes the logs that opens have kept, and `lost/` if nothing else is in it, since the database
/// is destroyed with its files.
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

/// Splits a name in `lost/` into the log and the number of batches that were left out.
fn parse(name: &str) -> Option<(FileNumber, u64)> {
    let (log, batches) = name.split_once(MARK)?;
    let (kind, number) = names::parse(log)?;
    // Another file had this name: the number of the copy follows.
    let batches = batches.split('.').next()?.parse().ok()?;
    (kind == FileKind::Wal).then_some((number, batches))
}
