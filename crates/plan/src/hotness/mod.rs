//! The measures of how disruptive a file is (L2SM): how often its keys are updated, and how wide a
//! range its few keys span.
//!
//! Owns: both measures, and their combination. Never does: pick a file by them.

mod hotmap;
mod sparseness;
mod weight;

pub use hotmap::{GROWTH_MAX, HotMap, LAYER_BITS, LAYERS};
pub use sparseness::{shared_prefix, sparseness};
pub use weight::{combine, weights};
