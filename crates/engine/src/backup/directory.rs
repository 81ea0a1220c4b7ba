//! A directory of backups.
//!
//! Owns: its lock, and the steps by which a file appears whole or not at all. Never does: know what a
//! backup is.

use super::names::{LOGS, RECORDS, TABLES};
use super::target::{BackupTarget, StoredObject, read_piece};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result, unless_mutant};
use windrow_env::Env;
use windrow_env::fs::{FileLock, LockMode, ReadFile, ReadFileOptions, WriteOptions, is_not_found};
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow_store::host::database_directory::enter;

const LOCK: &str = "LOCK";

/// A file is written under this name with a number, and renamed once it is whole.
const UNFINISHED: &str = "unfinished-";

const FOLDERS: [&str; 3] = [TABLES, RECORDS, LOGS];

const PIECE_BYTES: usize = 1 << 20;

/// A directory that keeps backups. Either one process changes it, or any number of processes read
/// it.
pub struct BackupDirectory {
    env: Env,
    dir: PathBuf,
    _lock: Box<dyn FileLock>,
    is_read_only: bool,
    is_claimed: AtomicBool,
    /// The number of files that were begun.
    begun: AtomicU64,
}

impl std::fmt::Debug for BackupDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackupDirectory({})", self.dir.display())
    }
}

impl BackupDirectory {
    /// Opens a directory of backups, or makes one if nothing is there.
    ///
    /// # Errors
    /// `InvalidArgument` for a directory that holds other files; `Busy` if another process, or another
    /// value here, has it open; `Io`.
    pub fn open(dir: impl AsRef<Path>) -> Result<BackupDirectory> {
        BackupDirectory::open_in(&Env::os(1), dir.as_ref())
    }

    /// Opens a directory of backups to list, verify and restore them. Nothing is written.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not there, or holds something else; `Busy` if somebody has it open
    /// to change it; `Io`.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<BackupDirectory> {
        BackupDirectory::open_read_only_in(&Env::os(1), dir.as_ref())
    }

    /// Opens as [`BackupDirectory::open`] does, in an environment.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn open_in(env: &Env, dir: &Path) -> Result<BackupDirectory> {
        let dir = env.fs.absolute(dir)?;
        if env.fs.exists(&dir)? {
            // Says of a file that it is no directory, which `create_dir` does not.
            enter(env, &dir)?;
        }
        // Also where they exist: a process that was killed may have made names that are not durable.
        env.fs.create_dir(&dir)?;
        let (env, dir) = enter(env, &dir)?;
        check_holds_backups(&env, &dir)?;
        let lock = env.fs.lock(&dir.join(LOCK), LockMode::Exclusive)?;
        for folder in FOLDERS {
            env.fs.create_dir(&dir.join(folder))?;
        }
        // A write that was cut short has left it.
        for name in env.fs.list(&dir)?.iter().filter(|name| is_unfinished(name)) {
            env.fs.remove(&dir.join(name))?;
        }
        env.fs.sync_dir(&dir)?;
        Ok(BackupDirectory::new(env, dir, lock, false))
    }

    /// Opens as [`BackupDirectory::open_read_only`] does, in an environment.
    ///
    /// # Errors
    /// The errors of that call.
    pub fn open_read_only_in(env: &Env, dir: &Path) -> Result<BackupDirectory> {
        if !env.fs.exists(dir)? {
            return Err(Error::invalid(format!("there are no backups in {}", dir.display())));
        }
        let (env, dir) = enter(env, dir)?;
        check_holds_backups(&env, &dir)?;
        let lock = env.fs.lock(&dir.join(LOCK), LockMode::Shared)?;
        Ok(BackupDirectory::new(env, dir, lock, true))
    }

    fn new(env: Env, dir: PathBuf, lock: Box<dyn FileLock>, is_read_only: bool) -> BackupDirectory {
        let (is_claimed, begun) = (AtomicBool::new(false), AtomicU64::new(0));
        BackupDirectory { env, dir, _lock: lock, is_read_only, is_claimed, begun }
    }

    fn check_changes(&self) -> Result<()> {
        if self.is_read_only {
            let text = format!("the backups in {} are open to be read", self.dir.display());
            return Err(Error::new(ErrorKind::ReadOnly, text));
        }
        Ok(())
    }

    /// Makes the name of a file durable. If that fails, the file is removed at once: a later backup
    /// would rely on a name that a loss of power may take.
    fn sync_name(&self, path: &Path) -> Result<()> {
        self.env.fs.sync_dir(folder_of(path)).inspect_err(|_| {
            let _ = self.env.fs.remove(path);
        })
    }

    fn write(&self, path: &Path, from: &mut dyn Read) -> Result<()> {
        let mut file = self.env.fs.create(path, WriteOptions::default())?;
        let mut buf = vec![0; PIECE_BYTES];
        loop {
            match read_piece(from, &mut buf)? {
                [] => return file.finish(),
                piece => file.append(piece)?,
            }
        }
    }
}

/// Whether a file has a name of those that are written, and nobody else's.
fn is_unfinished(name: &str) -> bool {
    let number = name.strip_prefix(UNFINISHED);
    number.is_some_and(|number| number.parse::<u64>().is_ok_and(|n| n.to_string() == number))
}

/// Returns the folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Checks that a directory holds only a target's files, so that no other file is removed.
fn check_holds_backups(env: &Env, dir: &Path) -> Result<()> {
    let is_known = |name: &str| name == LOCK || FOLDERS.contains(&name) || is_unfinished(name);
    match env.fs.list(dir)?.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(other) => Err(Error::invalid(format!(
            "{} holds `{other}`: backups need a directory of their own",
            dir.display()
        ))),
    }
}

impl BackupTarget for BackupDirectory {
    fn put(&self, name: &str, from: &mut dyn Read) -> Result<()> {
        self.check_changes()?;
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let (unfinished, path) =
            (self.dir.join(format!("{UNFINISHED}{number}")), self.dir.join(name));
        let stored = self.write(&unfinished, from);
        if let Err(error) = stored.and_then(|()| self.env.fs.rename(&unfinished, &path)) {
            // On a full device others need its room. If it cannot be removed, the next open does.
            let _ = self.env.fs.remove(&unfinished);
            return Err(error);
        }
        unless_mutant!(BackupNameSync, self.sync_name(&path)?);
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Box<dyn Read + '_>> {
        let file = self.env.fs.open(&self.dir.join(name), ReadFileOptions::default())?;
        Ok(Box::new(FileReading { file, at: 0 }))
    }

    fn list(&self, folder: &str) -> Result<Vec<StoredObject>> {
        let dir = self.dir.join(folder);
        // A directory that was made and never used has no such folder.
        if !self.env.fs.exists(&dir)? {
            return Ok(Vec::new());
        }
        // A backup names the objects that it finds: they must be as durable as its record. One that a
        // killed process stored last may have a name that a loss of power takes, and a record that it
        // removed last may come back.
        if !self.is_read_only {
            unless_mutant!(BackupFoundUnsynced, self.env.fs.sync_dir(&dir)?);
        }
        let stored = |file: String| match self.env.fs.len(&dir.join(&file)) {
            Ok(bytes) => Some(Ok(StoredObject { name: format!("{folder}/{file}"), bytes })),
            // A prune has removed it meanwhile.
            Err(error) if is_not_found(&error) => None,
            Err(error) => Some(Err(error)),
        };
        self.env.fs.list(&dir)?.into_iter().filter_map(stored).collect()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.check_changes()?;
        let path = self.dir.join(name);
        self.env.fs.remove(&path)?;
        self.env.fs.sync_dir(folder_of(&path))
    }

    fn claim(&self) -> Result<Box<dyn Send + '_>> {
        self.check_changes()?;
        if self.is_claimed.swap(true, Ordering::AcqRel) {
            let text = format!("a backup or a prune goes on in {}", self.dir.display());
            return Err(Error::new(ErrorKind::Busy, text));
        }
        Ok(Box::new(DirectoryClaim(&self.is_claimed)))
    }
}

struct DirectoryClaim<'a>(&'a AtomicBool);

impl Drop for DirectoryClaim<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A file that is read from its beginning.
struct FileReading {
    file: Arc<dyn ReadFile>,
    at: u64,
}

impl Read for FileReading {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let left = self.file.len() - self.at;
        let len = left.min(buf.len() as u64) as usize;
        self.file.read_at(self.at, &mut buf[..len]).map_err(std::io::Error::other)?;
        self.at += len as u64;
        Ok(len)
    }
}
