//! The place where backups are kept: objects by name.
//!
//! Owns: the operations of such a place. Never does: know what is in an object.

use std::io::Read;
use windrow_base::{Error, ErrorKind, Result};

/// An object of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Its whole name, with the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// A place for backups: [`super::BackupDirectory`], or one of your own, for example in an object
/// store. Names are of letters, digits, dots, hyphens and one slash; the part before the slash is a
/// folder.
///
/// Backups and prunes change it, one at a time: see [`BackupTarget::claim`]. Calls that only read
/// (list, verify, restore) are allowed at any time; they fail if the backup is removed meanwhile.
pub trait BackupTarget: Send + Sync {
    /// Stores all of `from` as the object of that name, in place of an earlier one. When this returns
    /// it is durable; if it fails, or the process dies, the object is whole, or as it was before.
    ///
    /// # Errors
    /// Those of the place, and of `from`.
    fn put(&self, name: &str, from: &mut dyn Read) -> Result<()>;

    /// Reads an object.
    ///
    /// # Errors
    /// `Io` if there is none; those of the place.
    fn get(&self, name: &str) -> Result<Box<dyn Read + '_>>;

    /// Lists the objects of a folder, in any order; none if there is no such folder. Every object
    /// whose `put` has returned is among them. A backup relies on what it finds here: the objects
    /// are durable, and a removed one that is not among them stays removed.
    ///
    /// # Errors
    /// Those of the place.
    fn list(&self, folder: &str) -> Result<Vec<StoredObject>>;

    /// Removes an existing object, durably.
    ///
    /// # Errors
    /// Those of the place.
    fn remove(&self, name: &str) -> Result<()>;

    /// Keeps other backups and prunes away until the returned value is dropped. The default does
    /// nothing, and leaves that to the users of the target: a prune next to a backup could remove
    /// objects that the backup is about to name.
    ///
    /// # Errors
    /// `Busy` while another one goes on.
    fn claim(&self) -> Result<Box<dyn Send + '_>> {
        Ok(Box::new(()))
    }
}

/// Unwraps an error that came through the standard library's traits.
pub(super) fn io_error(error: std::io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| {
        Error::new(ErrorKind::Io, "an object of a backup was not read or written")
            .with_source(error)
    })
}

/// Reads a piece; nothing at the end.
///
/// # Errors
/// The errors of the reader.
pub(super) fn read_piece<'a>(from: &mut dyn Read, buf: &'a mut [u8]) -> Result<&'a [u8]> {
    loop {
        match from.read(buf) {
            Ok(len) => return Ok(&buf[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io_error(error)),
        }
    }
}
