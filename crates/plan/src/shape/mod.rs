//! Level shapes: the capacity of each level.

mod leveling;

pub use leveling::Leveling;
