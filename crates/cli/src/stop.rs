//! Ctrl-C: the first asks, the second insists.
//!
//! The first sets a flag that the loops of a command look at, so that the
//! database is closed as at any other end. The second leaves at once, which a
//! database survives as it survives any death of its process. A command
//! without such a loop ([`crate::args::Command::looks_at_stop`]) is left to
//! the system, whose first Ctrl-C ends it: a flag that nobody looks at would
//! have it run to its end.

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
