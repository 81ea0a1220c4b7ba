//! The locks that this process holds, with their descriptors.
//!
//! A child made by `fork` has copies of the descriptors, and a lock is held for as long as any copy
//! is open: a child that outlives its parent would keep others out of the database. So the child
//! closes its copies before it does anything else, which releases no lock of the parent. (Children
//! by `exec` never see the copies. Those by a bare `clone` keep them until they end.)
//!
//! Owns: the descriptors, and the register's own lock across a fork: no other thread of the parent
//! holds it then, so that a child can open databases of its own. Never does: lock a file.

use crate::fs::{FileId, LockMode};
use crate::lock_ranks;
use crate::sync::real::atomic::{AtomicBool, Ordering};
use crate::sync::real::{Mutex, MutexGuard};
use crate::sys::process::at_fork;
use rustix::fs::FlockOperation;
use std::cell::Cell;
use std::os::fd::OwnedFd;

/// A descriptor that is locked.
#[derive(Debug)]
struct Lock {
    id: u64,
    file: FileId,
    mode: LockMode,
    fd: OwnedFd,
}

/// The locks that this process holds, one entry per guard.
#[derive(Debug)]
pub(super) struct Register {
    held: Vec<Lock>,
    next_id: u64,
}

static REGISTER: Mutex<Register> =
    Mutex::new(lock_ranks::LOCKED_FILES, Register { held: Vec::new(), next_id: 0 });

thread_local! {
    /// Taken from before a fork until after it.
    static ACROSS_FORK: Cell<Option<MutexGuard<'static, Register>>> = const { Cell::new(None) };
}

/// Locks the register. Callers hold it while a file is opened and locked, so that no fork happens
/// in between and leaves the child with a lock that no register has.
pub(super) fn register() -> MutexGuard<'static, Register> {
    // Not a `Once`, on which a child would wait if another thread of the parent was in it. If two
    // threads register the handlers, these run twice, and the second time they do nothing.
    static FORKS: AtomicBool = AtomicBool::new(false);
    if !FORKS.load(Ordering::Acquire) {
        // If the system has no memory for three pointers, a child keeps its copies.
        let _ = at_fork(before_fork, after_fork, in_child);
        FORKS.store(true, Ordering::Release);
    }
    REGISTER.lock()
}

impl Register {
    /// Whether the process holds a lock on the file that excludes one of this mode.
    pub(super) fn conflicts(&self, file: FileId, mode: LockMode) -> bool {
        let excludes = |h: &Lock| h.mode == LockMode::Exclusive || mode == LockMode::Exclusive;
        self.held.iter().any(|h| h.file == file && excludes(h))
    }

    /// Takes over a locked descriptor. It is unlocked and closed when the guard drops.
    pub(super) fn add(&mut self, fd: OwnedFd, file: FileId, mode: LockMode) -> RegisteredLock {
        let id = self.next_id;
        self.next_id += 1;
        self.held.push(Lock { id, file, mode, fd });
        RegisteredLock { id, file }
    }
}

/// A lock that is held. A forked child's copy holds nothing.
#[derive(Debug)]
pub(super) struct RegisteredLock {
    id: u64,
    file: FileId,
}

impl RegisteredLock {
    /// The file that is locked.
    pub(super) fn file(&self) -> FileId {
        self.file
    }

    /// Calls `act` with the descriptor; `None` in a forked child.
    pub(super) fn with<T>(&self, act: impl FnOnce(&OwnedFd) -> T) -> Option<T> {
        register().held.iter().find(|held| held.id == self.id).map(|held| act(&held.fd))
    }
}

impl Drop for RegisteredLock {
    fn drop(&mut self) {
        let mut register = register();
        if let Some(place) = register.held.iter().position(|held| held.id == self.id) {
            let held = register.held.swap_remove(place);
            // Explicit, since a child process may have inherited the descriptor.
            let _ = rustix::fs::flock(&held.fd, FlockOperation::Unlock);
        }
    }
}

/// Waits until no thread is in the register. A signal handler that forks while the thread that it
/// interrupted is in the register waits for ever: `fork` is not for signal handlers (POSIX.1-2024;
/// `_Fork` is, and does not run this).
extern "C" fn before_fork() {
    let _ = ACROSS_FORK.try_with(|guard| {
        let held = guard.take().unwrap_or_else(|| REGISTER.lock());
        guard.set(Some(held));
    });
}

extern "C" fn after_fork() {
    let _ = ACROSS_FORK.try_with(|guard| guard.take());
}

extern "C" fn in_child() {
    let _ = ACROSS_FORK.try_with(|guard| {
        if let Some(mut register) = guard.take() {
            // Closes the copies. Allocates nothing, and frees nothing.
            register.held.clear();
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::fs::LockMode;
    use crate::sys::fork::{ForkedChild, in_child};
    use crate::{FileSystem, OsFs};

    /// The parent's lock ends with the parent, even if it leaves children.
    #[test]
    fn a_forked_child_holds_no_lock_and_releases_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let fs = OsFs::new();
        let mut held = Some(fs.lock(&path, LockMode::Exclusive).unwrap());
        let pid = format!("process {}", std::process::id());
        assert!(in_child(|| {
            let refused = |from: &str| match fs.lock(&path, LockMode::Exclusive) {
                Err(error) => error.to_string().contains(from),
                Ok(_) => false,
            };
            // The child's copy of the guard has no effect, dropped or not.
            let before = refused(&pid);
            drop(held.take());
            before && refused(&pid)
        }));
        assert!(fs.lock(&path, LockMode::Exclusive).is_err(), "the child released it");
        let ((wait, go_on), (mut begun, tell)) =
            (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let child = ForkedChild::start(|| {
            std::io::Write::write_all(&mut &tell, &[1]).unwrap();
            let _ = std::io::Read::read(&mut &wait, &mut [0]);
            0
        });
        let child = child.unwrap();
        std::io::Read::read_exact(&mut begun, &mut [0]).unwrap();
        // Closes all of this process's copies, as its death would.
        let stat = rustix::fs::stat(&path).unwrap();
        let dir_stat = rustix::fs::stat(dir.path()).unwrap();
        let inodes = [stat.st_ino, dir_stat.st_ino];
        super::register().held.retain(|held| !inodes.contains(&held.file.inode));
        let again = fs.lock(&path, LockMode::Exclusive);
        std::io::Write::write_all(&mut &go_on, &[1]).unwrap();
        assert!(again.is_ok(), "the child holds it: {:?}", again.err());
        assert_eq!(child.wait().unwrap(), Some(0));
        drop(held);
    }
}
