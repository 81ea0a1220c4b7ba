//! Ctrl-C: the first asks, the second insists.
//!
//! The first sets a flag that every loop of the commands looks at, so that
//! the database is closed as at any other end. The second leaves at once,
//! which a database survives as it survives any death of its process.

use crate::failure::{Failure, Result};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Starts to listen for Ctrl-C. Without a handler the default one ends the
/// process, which is safe too.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        let mut err = io::stderr();
        if err.is_terminal() {
            let _ = writeln!(err, "\nwindrow: stopping; Ctrl-C again leaves at once");
        }
    });
}

/// Whether to stop.
pub(crate) fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Fails with [`Failure::Interrupted`] once Ctrl-C was pressed.
pub(crate) fn check() -> Result<()> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}
