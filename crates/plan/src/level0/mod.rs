//! Level 0: how flushed data waits, and what takes it to level 1.

mod tiered;

pub use tiered::Tiered;
