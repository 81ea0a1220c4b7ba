//! The source of random numbers.
//!
//! Owns: the trait. Never does: draw (`os`, `testing`).

/// A source of random numbers; seeded in simulation.
pub trait Random: Send + Sync + 'static {
    /// The next number, uniform over u64.
    fn next_u64(&self) -> u64;
}
