//! System calls that a signal interrupted.
//!
//! Owns: trying them again. Never does: retry a failure of any other kind, or a sync.

use rustix::io::Errno;

/// Runs a system call again when a signal interrupted it. Not for syncs.
pub(super) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
