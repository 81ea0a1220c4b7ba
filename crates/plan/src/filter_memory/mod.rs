//! Filter memory: bits per key of each file.

mod uniform;

pub use uniform::Uniform;
