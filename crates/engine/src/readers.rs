//! Processes that read a database next to its writer: their leases.
//!
//! A reader holds a lease in the directory for as long as it lives, in which it says how
//! much of the manifest it has read. The writer removes a file only when every reader that
//! is alive has read the record by which the file left the tree, and needs no state of
//! before. Both sides rest on an order: the reader has its lease before it reads CURRENT,
//! and the writer has the record in the manifest before it looks for leases. So a reader
//! that the writer did not see reads that record.
//!
//! Owns: the places of leases, and what they say. Never does: remove a file.

use std::path::{Path, PathBuf};
use windrow_base::{Error, ErrorKind, Result, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::{Lease, LeaseState};
use windrow_format::lease;
use windrow_format::log::Length;
use windrow_format::names;

/// Most readers of one directory.
const READERS_MAX: u64 = 4096;

/// A lease that is held.
pub(crate) struct ReaderLease {
    lease: Box<dyn Lease>,
    /// What it says.
    read: Length,
}

impl ReaderLease {
    /// Takes the first place that is free. From here on no file is removed.
    ///
    /// # Errors
    /// `Busy` if all are taken; `Io` where no file can be made in the directory.
    pub(crate) fn take(env: &Env, dir: &Path) -> Result<ReaderLease> {
        for place in 0..READERS_MAX {
            let lease = match env.fs.lease(&path(dir, place)) {
                Ok(lease) => lease,
                Err(error) if error.kind() == ErrorKind::Busy => continue,
                Err(error) => return Err(error.context(WHY)),
            };
            // Its last holder may have left something else.
            let read = Length::default();
            lease.write(&lease::encode(read)).map_err(|error| error.context(WHY))?;
            return Ok(ReaderLease { lease, read });
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("{READERS_MAX} processes read the database in {} already", dir.display()),
        ))
    }

    /// Files that left the tree up to there may be removed.
    ///
    /// # Errors
    /// `Io`; the lease may say that nothing was read then, which keeps everything.
    pub(crate) fn let_go_before(&mut self, read: Length) -> Result<()> {
        debug_assert!(self.read <= read, "a reader needs again what it let go");
        if read != self.read {
            self.lease.write(&lease::encode(read))?;
            self.read = read;
        }
        Ok(())
    }
}

/// What an error that keeps somebody from reading is told with.
const WHY: &str = "a process that reads next to a writer needs a lease in the directory, so that \
                   no file is removed under it";

fn path(dir: &Path, place: u64) -> PathBuf {
    dir.join(names::reader(place))
}

/// How much of the manifest the reader has read that has read least; `None` without
/// readers.
///
/// # Errors
/// `Io` where it cannot be told.
pub(crate) fn oldest(env: &Env, dir: &Path) -> Result<Option<Length>> {
    let mut oldest = None;
    for place in 0..READERS_MAX {
        let path = path(dir, place);
        match env.fs.lease_state(&path)? {
            LeaseState::Absent => break,
            LeaseState::Free => continue,
            LeaseState::Live => {}
        }
        // It may be written to just now.
        let read = env.fs.read_all(&path).and_then(|bytes| lease::decode(&bytes));
        let read = read.unwrap_or_default();
        unless_mutant!(
            ReadersIgnored,
            oldest = Some(oldest.map_or(read, |oldest: Length| oldest.min(read)))
        );
    }
    Ok(oldest)
}

/// # Errors
/// `Busy` if somebody reads the database: what is to be done would ruin what it reads;
/// `Io` where that cannot be told.
pub(crate) fn refuse_readers(env: &Env, dir: &Path) -> Result<()> {
    match oldest(env, dir)? {
        None => Ok(()),
        Some(_) => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "another process reads the database in {} as a follower: close it first",
                dir.display()
            ),
        )),
    }
}
