//! A session: a database that stays open from command to command.
//!
//! Owns: how it is open, and which keyspace commands mean. Never does: read a line
//! (`commands/session`).

use std::fmt;
use std::path::{Path, PathBuf};
use windrow::env::sync::{Mutex, Rank};
use windrow::{Db, Follower};

/// An open database, and what lines are about.
pub(crate) struct Session {
    path: PathBuf,
    access: How,
    keyspace: Mutex<String>,
}

/// How a session has the database open.
pub(crate) enum How {
    Open(Db),
    /// Another process may write it: each command sees what was written before it.
    Follows(Follower),
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.path.display())
    }
}

impl Session {
    /// A session on the database in `path`.
    pub(crate) fn new(path: &Path, access: How) -> Session {
        let keyspace = Mutex::new(Rank::OUTERMOST, "default".to_owned());
        Session { path: path.to_path_buf(), access, keyspace }
    }

    /// A session on an open database.
    #[cfg(test)]
    pub(crate) fn of(db: Db, path: &Path) -> Session {
        Session::new(path, How::Open(db))
    }

    /// The database, as it is now or was last read.
    pub(crate) fn db(&self) -> Db {
        match &self.access {
            How::Open(db) => db.clone(),
            How::Follows(follower) => follower.db(),
        }
    }

    /// Where the database is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it reads what another process writes.
    pub(crate) fn is_followed(&self) -> bool {
        matches!(self.access, How::Follows(_))
    }

    /// The keyspace that lines mean which name none.
    pub(crate) fn keyspace(&self) -> String {
        self.keyspace.lock().clone()
    }

    /// From now on they mean this one.
    pub(crate) fn set_keyspace(&self, name: &str) {
        name.clone_into(&mut self.keyspace.lock());
    }

    /// Sees what others have written.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub(crate) fn refresh(&self) -> windrow::Result<()> {
        match &self.access {
            How::Open(_) => Ok(()),
            How::Follows(follower) => Ok(follower.refresh().map(drop)?),
        }
    }
}
