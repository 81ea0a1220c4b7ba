//! Processes that read a database next to its writer: their leases.
//!
//! A reader holds a lease in the directory for as long as it reads. The lease says how much of the
//! manifest it has read. The writer removes a file only when every live reader has read the record
//! by which the file left the tree, and needs no earlier state. Both sides rest on an order: the
//! reader has its lease before it reads CURRENT, and the writer has the record in the manifest
//! before it looks for leases. So a reader that the writer did not see reads that record.
//!
//! A reader that is stopped would keep every file. So the writer may take a lease away
//! (`cleanup.rs` decides when): it removes the lease's file. The reader finds another file or none
//! in its place, and knows that files it needs may be gone. It looks there after each refresh, and
//! when a file is missing.
//!
//! A reader takes the first place that is free; so all places below its own existed then. The
//! writer alone removes leases, also of readers that are gone, and remembers how many places it has
//! seen. So it finds every lease by asking for one place after the other, even if some are missing.
//! A writer that has just begun lists the directory.
//!
//! Owns: the places of leases, and their contents. Never does: remove another file.

use crate::host::listing::Listing;
use std::path::{Path, PathBuf};
use windrow_base::{Error, ErrorKind, Result, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::{FileSystem, Lease, LeaseState};
use windrow_format::lease;
use windrow_format::log::Length;
use windrow_format::names;

/// Most readers of one directory.
const READERS_MAX: u64 = 4096;

/// A lease that is held, or was.
pub struct ReaderLease {
    lease: Box<dyn Lease>,
    path: PathBuf,
    /// The length of the manifest that it says is read.
    read: Length,
    /// The writer has taken one away that was held before this one.
    was_lost: bool,
}

impl ReaderLease {
    /// Takes the first place that is free. From here on no file is removed.
    ///
    /// # Errors
    /// `Busy` if all are taken; `Io` if no file can be made in the directory.
    pub fn take(env: &Env, dir: &Path) -> Result<ReaderLease> {
        let mut place = 0;
        while place < READERS_MAX {
            let path = path(dir, place);
            let lease = match env.fs.lease(&path) {
                Ok(lease) => lease,
                Err(error) if error.kind() == ErrorKind::Busy => {
                    place += 1;
                    continue;
                }
                Err(error) => return Err(error.context(WHY)),
            };
            // Its last holder may have left another length.
            let read = Length::default();
            lease.write(&lease::encode(read)).map_err(|error| error.context(WHY))?;
            // A place that was busy may have gone since: the writer must not stop looking there.
            if is_first_gap(env, dir, place)? {
                return Ok(ReaderLease { lease, path, read, was_lost: false });
            }
            place = 0;
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("{READERS_MAX} processes read the database in {} already", dir.display()),
        ))
    }

    /// Files that left the tree up to there may be removed.
    ///
    /// # Errors
    /// `Io`; the lease may then say that nothing was read, which keeps everything.
    pub fn let_go_before(&mut self, read: Length) -> Result<()> {
        debug_assert!(self.read <= read, "a reader needs again what it let go");
        if read != self.read {
            self.lease.write(&lease::encode(read))?;
            self.read = read;
        }
        Ok(())
    }

    /// Whether the writer has taken the lease away: the files that it kept may be gone.
    ///
    /// # Errors
    /// `Io` if that cannot be found out.
    pub fn is_lost(&self, fs: &dyn FileSystem) -> Result<bool> {
        let there = fs.stamp(&self.path)?.map(|stamp| stamp.id);
        Ok(there != Some(self.lease.id()))
    }

    /// Takes another lease in the place of one that was taken away.
    ///
    /// # Errors
    /// As [`ReaderLease::take`].
    pub fn renew(&mut self, env: &Env, dir: &Path) -> Result<()> {
        *self = ReaderLease { was_lost: true, ..ReaderLease::take(env, dir)? };
        Ok(())
    }

    /// The error for a reader that misses a file, if a lease that kept the file was taken away.
    pub fn loss(&self, fs: &dyn FileSystem) -> Option<Error> {
        let is_lost = || self.is_lost(fs).unwrap_or(false);
        (self.was_lost || is_lost()).then(|| Error::new(ErrorKind::Closed, LOST))
    }
}

/// The error text for a follower whose moment has lost its files.
pub const LOST: &str = "the follower was too far behind, and the writer has removed files \
    that this state of the database needs (`followers_keep_bytes`): refresh the follower, and \
    read from its `db` again";

/// Whether all places below this one are there.
fn is_first_gap(env: &Env, dir: &Path, place: u64) -> Result<bool> {
    for below in 0..place {
        if !env.fs.exists(&path(dir, below)).map_err(|error| error.context(WHY))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The context of an error that keeps a process from reading.
const WHY: &str = "a process that reads next to a writer needs a lease in the directory, so that \
                   no file is removed under it";

fn path(dir: &Path, place: u64) -> PathBuf {
    dir.join(names::reader(place))
}

/// The processes that read next to this one, by their leases.
#[derive(Debug, Default)]
pub struct Readers {
    /// How many places there may be; `None` before the directory was listed.
    places: Option<u64>,
}

/// A reader that holds its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveReader {
    place: u64,
    /// How much of the manifest it has read.
    pub read: Length,
}

impl Readers {
    /// All readers of this moment.
    ///
    /// # Errors
    /// `Io` if that cannot be found out.
    pub fn live(&mut self, env: &Env, dir: &Path) -> Result<Vec<LiveReader>> {
        let mut live = Vec::new();
        self.each(env, dir, |place, path, state| {
            if state == LeaseState::Live {
                // The reader may be writing to it at this moment.
                let read = env.fs.read_all(path).and_then(|bytes| lease::decode(&bytes));
                let read = read.unwrap_or_default();
                unless_mutant!(ReadersIgnored, live.push(LiveReader { place, read }));
            }
            Ok(())
        })?;
        Ok(live)
    }

    /// Whether a reader that is gone has left its lease.
    pub(crate) fn any_free(&mut self, env: &Env, dir: &Path) -> bool {
        let mut any = false;
        let looked = self.each(env, dir, |_, _, state| {
            any |= state == LeaseState::Free;
            Ok(())
        });
        any && looked.is_ok()
    }

    /// Removes the leases of readers that are gone. Only the writer does.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn remove_free(&mut self, env: &Env, dir: &Path) -> Result<()> {
        self.each(env, dir, |_, path, state| {
            if state == LeaseState::Free {
                // While it is locked, a reader that takes it would see that it is gone.
                let Ok(_taken) = env.fs.lease(path) else { return Ok(()) };
                env.fs.remove(path)?;
            }
            Ok(())
        })
    }

    /// Takes a reader's lease away. Only the writer does.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn void(&self, env: &Env, dir: &Path, reader: LiveReader) -> Result<()> {
        env.fs.remove(&path(dir, reader.place))
    }

    fn each(
        &mut self,
        env: &Env,
        dir: &Path,
        mut at: impl FnMut(u64, &Path, LeaseState) -> Result<()>,
    ) -> Result<()> {
        let mut places = match self.places {
            Some(places) => places,
            None => Listing::read(env, dir)?.readers.last().map_or(0, |last| last + 1),
        };
        for place in 0..READERS_MAX {
            let path = path(dir, place);
            match env.fs.lease_state(&path)? {
                LeaseState::Absent if places <= place => break,
                LeaseState::Absent => continue,
                state => {
                    // Counted before it is removed.
                    places = places.max(place + 1);
                    self.places = Some(places);
                    at(place, &path, state)?;
                }
            }
        }
        self.places = Some(places);
        Ok(())
    }
}

/// # Errors
/// `Busy` if another process reads the database: the caller's next step would ruin the files that
/// it reads; `Io` if that cannot be found out.
pub fn refuse_readers(env: &Env, dir: &Path) -> Result<()> {
    match Readers::default().live(env, dir)?.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "another process reads the database in {} as a follower: close it first",
                dir.display()
            ),
        )),
    }
}
