//! Level 0: how flushed data waits, and what takes it to level 1.

mod fifo;
mod lanes;
mod partitioned;
mod tiered;

pub use fifo::Fifo;
pub use partitioned::Partitioned;
pub use tiered::Tiered;
