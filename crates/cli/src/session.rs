//! A session: a database that stays open from command to command.
//!
//! Owns: the open database, and the keyspace that commands use. Never does:
//! read a line (`commands/session`).

use std::fmt;
use std::path::{Path, PathBuf};
use windrow::env::sync::{Mutex, Rank};
use windrow::{Db, Follower};

/// An open database, and the keyspace of its lines.
pub(crate) struct Session {
    path: PathBuf,
    access: How,
    keyspace: Mutex<String>,
}

/// The form in which a session has the database open.
pub(crate) enum How {
    Open(Db),
    /// As a follower: another process may write it, and each command sees the
    /// writes before it.
    Follows(Follower),
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.path.display())
    }
}

impl Session {
    /// Makes a session on the database in `path`.
    pub(crate) fn new(path: &Path, access: How) -> Session {
        let keyspace = Mutex::new(Rank::OUTERMOST, "default".to_owned());
        Session { path: path.to_path_buf(), access, keyspace }
    }

    /// Makes a session on an open database.
    #[cfg(test)]
    pub(crate) fn of(db: Db, path: &Path) -> Session {
        Session::new(path, How::Open(db))
    }

    /// Returns the database, as it is now or was last read.
    pub(crate) fn db(&self) -> Db {
        match &self.access {
            How::Open(db) => db.clone(),
            How::Follows(follower) => follower.db(),
        }
    }

    /// Returns the directory of the database.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it reads another process's writes.
    pub(crate) fn is_followed(&self) -> bool {
        matches!(self.access, How::Follows(_))
    }

    /// Returns the keyspace of lines that name none.
    pub(crate) fn keyspace(&self) -> String {
        self.keyspace.lock().clone()
    }

    /// Sets the keyspace of lines that name none.
    pub(crate) fn set_keyspace(&self, name: &str) {
        name.clone_into(&mut self.keyspace.lock());
    }

    /// Reads the writes of other processes.
    ///
    /// # Errors
    /// Those of reading the database.
    pub(crate) fn refresh(&self) -> windrow::Result<()> {
        match &self.access {
            How::Open(_) => Ok(()),
            How::Follows(follower) => Ok(follower.refresh().map(drop)?),
        }
    }
}
