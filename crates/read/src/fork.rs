//! The errors in a child made by `fork`, which may use neither its parent's database nor its
//! threads.
//!
//! Owns: the two errors. Never does: notice a fork (`env/src/sys/process.rs`).

use windrow_base::{Error, ErrorKind, Result};
use windrow_env::{Env, Process};

/// The error of a database in a child of the process that opened it.
#[cold]
pub fn forked(opener: &Process) -> Error {
    Error::new(
        ErrorKind::Closed,
        format!(
            "the database was opened by process {}, and this one is a fork of it: \
             each process has to open a database itself",
            opener.pid()
        ),
    )
}

/// Refuses an environment whose background threads are not in this process: a thread that waited
/// for one of its jobs would wait for ever.
///
/// # Errors
/// `InvalidArgument` in a child of the process that made it.
pub fn refuse_forked(env: &Env) -> Result<()> {
    if env.jobs.is_of_this_process() {
        return Ok(());
    }
    Err(Error::invalid(
        "the environment was made by another process, and this one is a fork of it; its \
         background threads are not here: make one in this process",
    ))
}
