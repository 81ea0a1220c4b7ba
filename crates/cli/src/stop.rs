//! Ctrl-C: what the first one does; the second leaves at once, which a
//! database survives as it survives any death of its process.
//!
//! A command whose loops look at a flag ([`OnStop::Asks`]) closes its database
//! as at any other end. One that spends its time in a single call of the engine
//! leaves at once ([`OnStop::Leaves`]), but for the stretch in which it has
//! something to close ([`closes`]). Either way the progress bar is gone before a
//! word is said, and the exit code is 130. What has no database open
//! for longer than a moment is left to the system ([`OnStop::System`]).

use crate::failure::{Failure, Result};
use crate::progress;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use windrow::Db;
use windrow::env::sync::{Mutex, Rank};

static STOP: AtomicBool = AtomicBool::new(false);
static OPEN: Mutex<Open> = Mutex::new(Rank::OUTERMOST, Open::Nothing);

/// What the first Ctrl-C does to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnStop {
    /// Sets the flag that the command looks at all the while that it may take.
    Asks,
    /// Ends the program, unless it has something to close.
    Leaves,
    /// What the system does: it ends the program.
    System,
}

/// The database that is closed where a command cannot look at the flag.
enum Open {
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
    // Before anybody says that it stops, or a bar is drawn below that.
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

/// Whether to stop.
pub(crate) fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// A session goes on behind a command that was stopped.
pub(crate) fn forget() {
    STOP.store(false, Ordering::SeqCst);
}

/// Fails with [`Failure::Interrupted`] once Ctrl-C was pressed.
pub(crate) fn check() -> Result<()> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Does `work`, which cannot look at the flag: the first Ctrl-C closes the
/// database, at which the engine ends what `work` waits for.
///
/// # Errors
/// Those of `work`. After Ctrl-C that of the close, or else `Interrupted`.
pub(crate) fn closes<T>(db: &Db, work: impl FnOnce() -> Result<T>) -> Result<T> {
    *OPEN.lock() = Open::ToClose(db.clone());
    let outcome = work();
    let open = std::mem::replace(&mut *OPEN.lock(), Open::Nothing);
    let Open::Closing(closing) = open else { return outcome };
    closing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Err(Failure::Interrupted)
}

/// Closes what there is to close. Returns whether there is something. Not on
/// the thread that hears of Ctrl-C: a second one must be heard meanwhile.
#[allow(clippy::disallowed_methods, reason = "no work of a database: it waits for one to close")]
fn begin_closing() -> bool {
    let mut open = OPEN.lock();
    let Open::ToClose(db) = std::mem::replace(&mut *open, Open::Nothing) else { return false };
    *open = Open::Closing(thread::spawn(move || db.close()));
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
            // What the engine is asked for is refused once it closes.
            while db.compact().is_ok() {}
            Ok(db.compact()?)
        });
        assert!(matches!(stopped, Err(Failure::Interrupted)), "{stopped:?}");
        let again = Db::open(dir.path()).unwrap();
        assert_eq!(again.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
