//! Ctrl-C: the first one stops the command in one of three ways; the second
//! ends the program at once, which a database survives as it survives any death
//! of its process.
//!
//! A command whose loops check a flag ([`OnStop::Asks`]) closes its database as
//! at any other end. One that spends its time in a single call of the engine
//! leaves at once ([`OnStop::Leaves`]), except while it has something to close
//! ([`closes`]). Either way the progress bar is cleared before a message is
//! printed, and the exit code is 130. A command that has no database open for
//! longer than a moment is left to the system ([`OnStop::System`]).
//!
//! Owns: the flag and the database to close. Never does: open a database.

use crate::failure::{Failure, Result};
use crate::progress;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use windrow::Db;
use windrow::env::sync::{Mutex, Rank};

static STOP: AtomicBool = AtomicBool::new(false);
static OPEN: Mutex<OpenDatabase> = Mutex::new(Rank::OUTERMOST, OpenDatabase::Nothing);

/// The effect of the first Ctrl-C on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnStop {
    /// Sets the flag, which the command checks as long as it runs.
    Asks,
    /// Ends the program, unless it has something to close.
    Leaves,
    /// Ends the program by the system's default.
    System,
}

/// The database that is closed where a command cannot check the flag.
enum OpenDatabase {
    Nothing,
    ToClose(Db),
    Closing(JoinHandle<windrow::Result<()>>),
}

/// Starts to listen for Ctrl-C. Without a handler the default one ends the
/// process, which is safe too.
pub(crate) fn install(on_stop: OnStop) {
    if on_stop != OnStop::System {
        let _ = ctrlc::set_handler(move || pressed(on_stop));
    }
}

fn pressed(on_stop: OnStop) {
    // The bar is cleared before a message that the command stops, or a bar
    // would be drawn below that.
    progress::clear();
    let first = !STOP.swap(true, Ordering::SeqCst);
    let goes_on = first && (begin_closing() || on_stop == OnStop::Asks);
    match (goes_on, first) {
        (true, _) => say("stopping; Ctrl-C again leaves at once"),
        (false, true) => say("stopped"),
        (false, false) => {}
    }
    if !goes_on {
        std::process::exit(130);
    }
}

fn say(what: &str) {
    let mut err = io::stderr();
    if err.is_terminal() {
        let _ = writeln!(err, "\nwindrow: {what}");
    }
}

/// Returns whether the command must stop.
pub(crate) fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Clears the flag: a session goes on after a command that was stopped.
pub(crate) fn forget() {
    STOP.store(false, Ordering::SeqCst);
}

/// Fails with [`Failure::Interrupted`] once Ctrl-C was pressed.
pub(crate) fn check() -> Result<()> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Runs `work`, which cannot check the flag: the first Ctrl-C closes the
/// database, at which the engine ends the call that `work` waits for.
///
/// # Errors
/// Those of `work`. After Ctrl-C that of the close, or else `Interrupted`.
pub(crate) fn closes<T>(db: &Db, work: impl FnOnce() -> Result<T>) -> Result<T> {
    *OPEN.lock() = OpenDatabase::ToClose(db.clone());
    let outcome = work();
    let open = std::mem::replace(&mut *OPEN.lock(), OpenDatabase::Nothing);
    let OpenDatabase::Closing(closing) = open else { return outcome };
    closing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Err(Failure::Interrupted)
}

/// Starts the close, if there is a database to close; returns whether there is.
/// The close has a thread of its own, not the handler's: a second Ctrl-C must
/// be handled meanwhile.
#[allow(clippy::disallowed_methods, reason = "no work of a database: it waits for one to close")]
fn begin_closing() -> bool {
    let mut open = OPEN.lock();
    let OpenDatabase::ToClose(db) = std::mem::replace(&mut *open, OpenDatabase::Nothing) else {
        return false;
    };
    *open = OpenDatabase::Closing(thread::spawn(move || db.close()));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_closes_the_database_under_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("key", "value").unwrap();
        assert!(!begin_closing(), "nothing to close");
        assert_eq!(closes(&db, || Ok(7)).unwrap(), 7);
        assert!(!begin_closing(), "nothing to close any more");
        let stopped = closes(&db, || {
            assert!(begin_closing());
            // The engine refuses calls once it closes.
            while db.compact().is_ok() {}
            Ok(db.compact()?)
        });
        assert!(matches!(stopped, Err(Failure::Interrupted)), "{stopped:?}");
        let again = Db::open(dir.path()).unwrap();
        assert_eq!(again.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
