//! The clock trait. Wall time decides on expiry; monotonic time measures.
//!
//! Owns: the trait. Never does: read a clock (`os`, `testing`).

/// A clock.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970 by the wall clock. May jump either way.
    fn wall_ms(&self) -> u64;

    /// Nanoseconds since some fixed moment; never runs backwards.
    fn monotonic_ns(&self) -> u64;

    /// Waits. In simulation it only advances the clock.
    fn sleep_ns(&self, ns: u64);
}
