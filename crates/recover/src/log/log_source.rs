//! One log of a database: its file, opened, and checked to be the log that is asked for.
//!
//! Owns: that check, and the name in errors. Never does: judge a record.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, FileNumber, FileUid, Result};
use windrow_env::fs::{ReadFileOptions, is_not_found};
use windrow_env::{FileSystem, ReadFile};
use windrow_format::log::{FileHeader, LogKind, LogReader};
use windrow_format::names;
use windrow_store::manifest::state::WalState;

/// A log that will be read.
#[derive(Clone, Debug)]
pub struct LogSource {
    pub number: FileNumber,
    path: PathBuf,
    /// Its identity, where that is known.
    uid: Option<FileUid>,
    /// How much of it was durable, as the manifest says.
    synced_bytes: Option<u64>,
}

impl LogSource {
    /// The log of this number in a directory, as the manifest knows it.
    pub fn of(dir: &Path, number: FileNumber, known: Option<&WalState>) -> LogSource {
        LogSource::at(dir.join(names::wal(number)), number, known)
    }

    /// The log of this number and identity in a directory. Its durable length is not known.
    pub fn of_uid(dir: &Path, number: FileNumber, uid: FileUid) -> LogSource {
        let path = dir.join(names::wal(number));
        LogSource { number, path, uid: Some(uid), synced_bytes: None }
    }

    /// A log at another path.
    pub fn at(path: PathBuf, number: FileNumber, known: Option<&WalState>) -> LogSource {
        let (uid, synced_bytes) = (known.map(|w| w.uid), known.map(|w| w.synced_bytes));
        LogSource { number, path, uid, synced_bytes }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it from its start.
    ///
    /// # Errors
    /// As [`LogSource::reader`]; `Io`.
    pub fn open(&self, fs: &dyn FileSystem) -> Result<LogReader> {
        self.reader(self.file(fs)?)
    }

    /// Opens its file, under the name that it has when it is kept for the feed of changes if the
    /// name of a log is gone: another process may have renamed it since the manifest was read.
    ///
    /// # Errors
    /// `Io`.
    pub fn file(&self, fs: &dyn FileSystem) -> Result<Arc<dyn ReadFile>> {
        let missing = match fs.open(&self.path, ReadFileOptions::default()) {
            Err(error) if is_not_found(&error) => error,
            opened => return opened,
        };
        let kept = self.path.with_file_name(names::changes(self.number));
        match fs.open(&kept, ReadFileOptions::default()) {
            Err(error) if is_not_found(&error) => Err(missing),
            opened => opened,
        }
    }

    /// A reader of it, from its start.
    ///
    /// # Errors
    /// `Corruption` for another log in its place, `NotSupported` for a newer format; `Io`.
    pub fn reader(&self, file: Arc<dyn ReadFile>) -> Result<LogReader> {
        let reader = LogReader::open(file, LogKind::Wal, self.synced_bytes)?;
        let FileHeader { number, uid, .. } = reader.header();
        match *number == self.number && self.uid.is_none_or(|known| known == *uid) {
            true => Ok(reader),
            false => {
                let text = "this is another log than the manifest names";
                Err(self.named(Error::corruption(text)))
            }
        }
    }

    /// Adds the file's path to an error.
    pub fn named(&self, error: Error) -> Error {
        error.with_file(self.path.display().to_string())
    }
}

/// Whether a file with this header is the log of this number.
pub(crate) fn is_log(header: &FileHeader, number: FileNumber, known: Option<&WalState>) -> bool {
    header.number == number && known.is_none_or(|wal| wal.uid == header.uid)
}
