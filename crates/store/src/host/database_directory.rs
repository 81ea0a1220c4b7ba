//! The place of a database: its directory, which is held open, and the files in it that say that it
//! is still this database's alone.
//!
//! Every path of the database goes through the directory that was opened, not through its name:
//! after a change of the process's directory, or a move of this one, all goes on where it was.
//! Files at the old name belong to something else.
//!
//! A directory may also be deleted, or get the files of a backup, under a running database. Then
//! LOCK is no longer the file that was locked, or CURRENT no longer has its expected contents, and
//! every write goes nowhere or ruins the restored database. So both are checked before a record
//! goes into the manifest, before CURRENT is replaced and a file is removed, where a log is synced
//! for a waiting thread, as time goes by, and at both ends of a close. It costs two system calls
//! each time, and none in a write that is not synced.
//!
//! Rejected: comparing the directory with the one that its name leads to, which cannot tell a move,
//! after which nothing is wrong, from a replacement. Rejected: a look at every write, which would
//! take longer than the write.
//!
//! Owns: the identity of LOCK and the contents of CURRENT. Never does: turn writing off by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result};
use windrow_env::fs::{FileId, FileLock, Stamp};
use windrow_env::sync::Mutex;
use windrow_env::{Env, FileSystem};
use windrow_format::current::Current;
use windrow_format::names;
use windrow_format::owner::{Owner, of_head};
use windrow_read::lock_ranks;

/// Returns the environment in which `dir` is held open, and a path of it that means the same
/// wherever the process goes.
///
/// # Errors
/// `Io` if it is absent or no directory.
pub fn enter(env: &Env, dir: &Path) -> Result<(Env, PathBuf)> {
    let dir = env.fs.absolute(dir)?;
    let fs = env.fs.anchor(&dir)?;
    Ok((Env { fs, ..env.clone() }, dir))
}

/// The contents that CURRENT may have.
#[derive(Default)]
struct ExpectedCurrent {
    /// Its contents: one, or while it is being replaced two. `None` until they are said; empty if
    /// there is no file.
    contents: Option<Vec<Vec<u8>>>,
    /// There was none, and the first one is not known to be there: it may be absent.
    may_be_absent: bool,
    /// Its stamp when its contents were last compared.
    seen: Option<Stamp>,
}

/// The place of an open database.
pub struct DatabaseDirectory {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// The file that is locked, if one is.
    lock: Option<FileId>,
    current: Mutex<ExpectedCurrent>,
}

impl DatabaseDirectory {
    /// The place of an open that has locked it. `env` holds `dir` open.
    pub fn new(env: &Env, dir: &Path, lock: &dyn FileLock) -> Arc<DatabaseDirectory> {
        let (fs, dir) = (env.fs.clone(), dir.to_path_buf());
        let current = Mutex::new(lock_ranks::PLACE, ExpectedCurrent::default());
        Arc::new(DatabaseDirectory { fs, dir, lock: lock.id(), current })
    }

    /// The place of an open that has not locked it, and does not say what CURRENT must contain.
    pub fn unlocked(env: &Env, dir: &Path) -> Arc<DatabaseDirectory> {
        let (fs, dir) = (env.fs.clone(), dir.to_path_buf());
        let current = Mutex::new(lock_ranks::PLACE, ExpectedCurrent::default());
        Arc::new(DatabaseDirectory { fs, dir, lock: None, current })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// From here on CURRENT must be as it was found, or absent.
    pub fn found(&self, current: Option<&Current>) {
        let contents = current.iter().map(|current| current.encode()).collect();
        let mut expected = self.current.lock();
        expected.contents = Some(contents);
        expected.may_be_absent = current.is_none();
    }

    /// From here on CURRENT may be this as well.
    pub(crate) fn replacing(&self, current: &Current) {
        if let Some(contents) = &mut self.current.lock().contents {
            contents.push(current.encode());
        }
    }

    /// From here on CURRENT must be this, and nothing else.
    pub fn replaced(&self, current: &Current) {
        let mut expected = self.current.lock();
        expected.contents = Some(vec![current.encode()]);
        expected.may_be_absent = false;
    }

    /// Whether the files of the database are still where it writes.
    ///
    /// # Errors
    /// `Io` that names the file that was deleted or replaced. A check that could not be made
    /// reports nothing: the next operation on the file will.
    pub fn check(&self) -> Result<()> {
        if let Some(lock) = self.lock {
            let found = self.fs.stamp(&self.dir.join(names::LOCK));
            if let Ok(found) = found
                && found.is_none_or(|found| found.id != lock)
            {
                return Err(self.lost("LOCK", found.is_none(), "is not the file that was locked"));
            }
        }
        self.check_current()
    }

    /// Whether the name of an open file of the database still leads to it, and nobody has cut it.
    ///
    /// # Errors
    /// As [`DatabaseDirectory::check`].
    pub(crate) fn check_file(&self, path: &Path, id: Option<FileId>, bytes: u64) -> Result<()> {
        let Ok(found) = self.fs.stamp(path) else { return Ok(()) };
        match found {
            Some(found) if Some(found.id) == id && bytes <= found.bytes => Ok(()),
            _ => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Err(self.lost(&name, found.is_none(), "is not the file that was written"))
            }
        }
    }

    fn check_current(&self) -> Result<()> {
        let path = self.dir.join(names::CURRENT);
        let mut expected = self.current.lock();
        let ExpectedCurrent { contents: Some(contents), may_be_absent, seen } = &mut *expected
        else {
            return Ok(());
        };
        let Ok(found) = self.fs.stamp(&path) else { return Ok(()) };
        if found.is_some() && found == *seen {
            return Ok(());
        }
        let as_expected = match found {
            None => *may_be_absent,
            Some(_) => match self.fs.read_all(&path) {
                Ok(bytes) if contents.contains(&bytes) => true,
                Ok(bytes) if is_of_another(&bytes) => false,
                // Damage, or half a copy: it does not say whose it is.
                Ok(_) | Err(_) => return Ok(()),
            },
        };
        if !as_expected {
            let what = "was changed by another program";
            return Err(self.lost("CURRENT", found.is_none(), what));
        }
        *seen = found;
        Ok(())
    }

    fn lost(&self, name: &str, absent: bool, replaced: &str) -> Error {
        let what = if absent { "is gone" } else { replaced };
        let message = format!(
            "{name} {what}: the directory was deleted, restored or written to by another program \
             while the database was open in it, and what was written since may be lost with the \
             old files. Nothing more is written: close the database, see what is in the directory \
             now, and open it again"
        );
        Error::new(ErrorKind::Io, message).with_file(self.dir.join(name).display().to_string())
    }
}

/// Whether a CURRENT with other contents than expected was meant to be one.
fn is_of_another(bytes: &[u8]) -> bool {
    match Current::decode(bytes) {
        Ok(_) => true,
        Err(error) => !error.is_corruption() || of_head(bytes) == Owner::LevelDb,
    }
}
