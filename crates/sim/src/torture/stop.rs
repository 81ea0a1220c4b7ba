//! Ctrl-C: ends the round, so that mounts and loop devices are released.
//!
//! Owns: the flag. Never does: end the process, which would leave them behind.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Handles the signal. Best effort: without it Ctrl-C ends the process at once.
pub fn install() {
    let _ = ctrlc::set_handler(|| REQUESTED.store(true, Ordering::Relaxed));
}

/// Whether the run should end after this round.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
