//! The handles that keep a database open: every `Db`, `Keyspace`, `Snapshot`, `Iter` and `Cursor`
//! holds one, and the last one that is dropped closes the database.
//!
//! Their count is in `handle_count.rs`. Background jobs are no handles: they hold the database for
//! as long as they run. A filter or listener may own a handle, and drop the last one in the middle
//! of a job, which a close would wait for. The close then runs on a thread of its own.
//!
//! In a child made by `fork` a handle is a copy of its parent's. The threads that it would wait for
//! do not exist there, and locks that others held stay locked. Its writes, removals and unlocks
//! would affect the parent's files. So the child forgets it, and the drop of the last one frees
//! nothing.
//!
//! Owns: when a close runs, and that the directory is freed after it. Never does: a step of a close
//! (`close.rs`).

use crate::close;
use crate::database::Database;
use std::ops::Deref;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::fs::FileLock;
use windrow_store::host::workers::is_working;

/// A handle of an open database.
pub struct Handle(Arc<Database>);

impl Handle {
    /// The first handle of a database whose directory is locked.
    pub fn new(database: Arc<Database>, lock: Box<dyn FileLock>) -> Handle {
        database.handles.begin(lock);
        Handle(database)
    }

    /// Whether two handles are of the same open database.
    #[inline]
    pub fn is_of(&self, other: &Handle) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Closes the database for all handles.
    ///
    /// # Errors
    /// As `Db::close`.
    pub fn close(&self) -> Result<()> {
        self.0.write_state.check_process()?;
        if self.0.workers.is_worked_for_here() {
            return Err(Error::invalid(
                "close was called by a filter or listener in work of the same database, which it \
                 would wait for: drop the handle instead, or close it on another thread",
            ));
        }
        close(&self.0)
    }
}

/// Closes the database, and then frees its directory.
fn close(database: &Database) -> Result<()> {
    // Held throughout: a second close must not free the directory, nor
    // return, while the first still writes to it.
    let mut lock = database.handles.directory();
    let closed = close::close(database);
    *lock = None;
    closed
}

impl Deref for Handle {
    type Target = Database;

    #[inline]
    fn deref(&self) -> &Database {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        self.0.handles.add();
        Handle(self.0.clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.0.write_state.is_of_this_process() {
            // One more count, which is never taken back.
            std::mem::forget(self.0.clone());
        } else if self.0.handles.remove() {
            // Rule R14: a caller that needs the result calls `close`.
            if is_working() {
                let database = self.0.clone();
                self.0.env.jobs.run_apart(Box::new(move || _ = close(&database)));
            } else {
                let _ = close(&self.0);
            }
        }
    }
}
