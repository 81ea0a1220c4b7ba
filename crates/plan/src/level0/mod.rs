//! Level 0: how flushed data waits, and what takes it to level 1.

use crate::busy::Busy;
use crate::tree::level::deepest_point;
use crate::tree::{File, Part, Span, Version};
use alloc::sync::Arc;
use alloc::vec::Vec;

mod fifo;
mod lanes;
mod partitioned;
mod tiered;

pub use fifo::Fifo;
pub use partitioned::Partitioned;
pub use tiered::Tiered;

/// Epochs over the deepest point of level 0, without the files that cannot go
/// down since `damaged` ones are in their way: of level 0 one that is older and
/// overlaps, itself or by others between, or one of level 1.
pub fn depth_beside(version: &Version, damaged: &Busy) -> u32 {
    let order = &version.order;
    let is_damaged = |file: &&Arc<File>| damaged.is_busy(file.number);
    // The ranges over which nothing newer can go, joined where they overlap.
    let mut barred: Vec<Span<'_>> =
        version.part(1, Part::Run).iter().filter(is_damaged).map(|file| file.span()).collect();
    let mut free = Vec::new();
    for file in version.part(0, Part::Log).iter().rev() {
        let mut span = file.span();
        if !is_damaged(&file) && !barred.iter().any(|other| other.overlaps(order, &span)) {
            free.push(file);
            continue;
        }
        barred.retain(|other| {
            let apart = !other.overlaps(order, &span);
            if !apart {
                span = span.hull(order, other);
            }
            apart
        });
        barred.push(span);
    }
    deepest_point(order, free.into_iter()).depth
}
