//! The loop of operations that are tried again after a conflict: how often, and after which pause.
//!
//! Owns: both. Never does: know the operation.

use windrow_recover::handle::Handle;

/// The number of conflicts in a row after which the caller gets the error.
pub(super) const ATTEMPTS_MAX: u32 = 100;

/// The pause after the first conflict; each further one is twice as long.
const PAUSE_NS_MIN: u64 = 2_000;

/// The longest pause.
const PAUSE_NS_MAX: u64 = 5_000_000;

/// Tries until an attempt gives a result; `None` means that a conflict kept it from one. The last
/// attempt is told that it is the last: it gives an error instead.
pub(super) fn retry<T, E>(
    database: &Handle,
    mut attempt: impl FnMut(bool) -> Result<Option<T>, E>,
) -> Result<T, E> {
    let mut number = 0;
    loop {
        number += 1;
        if let Some(done) = attempt(number >= ATTEMPTS_MAX)? {
            return Ok(done);
        }
        pause(database, number);
    }
}

/// Waits until the conflicting writes are visible, since a conflict may be found before they are,
/// and then for a random part of a time that doubles, so that two that conflict do not meet again.
fn pause(database: &Handle, attempt: u32) {
    // Where writing is off, the next attempt reports it.
    let _ = database.pipeline.wait_for_given();
    let env = &database.env;
    if env.jobs.step() {
        return;
    }
    let most = (PAUSE_NS_MIN << attempt.min(20)).min(PAUSE_NS_MAX);
    env.clock.sleep_ns(env.random.next_u64() % most);
}
