//! Filter memory: bits per key of each file.

pub mod aimed;
pub mod budget;
pub mod curve;
pub mod merlin;
pub mod solver;

mod mnemosyne;
mod monkey;
mod uniform;

pub use budget::{FilterJob, FilterPlan};
pub use mnemosyne::Mnemosyne;
pub use monkey::Monkey;
pub use uniform::Uniform;
