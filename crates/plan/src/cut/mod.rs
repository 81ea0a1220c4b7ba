//! Output cut: where the files of a job's output end.

mod by_size;
mod cutter;
mod overlap;

pub use by_size::BySize;
pub use cutter::Cutter;
pub use overlap::Overlap;
