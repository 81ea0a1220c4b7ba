//! Output cut: where the files of a job's output end.

mod by_size;

pub use by_size::{BySize, Cutter};
