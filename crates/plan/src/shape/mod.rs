//! Level shapes: the capacity of each level.

mod garnering;
mod leveling;

pub use garnering::{Base, Garnering};
pub use leveling::Leveling;
