//! Windrow's memory and reads: memtables, caches, gets, scans, settings and counters.
//!
//! A part of the key-value store [`windrow`](https://docs.rs/windrow), which re-exports what its
//! users need of it. All else here is inside of Windrow and promises nothing.
//!
//! Owns: which entries a read sees and in which order places are asked; the settings, the counters,
//! the split of memory, and the order in which the engine's locks are taken. Never does: write a
//! file, or know the work in the background.

// No promise to users, so no page for them; an item's purpose is documented where it is not plain.
#![allow(
    missing_docs,
    clippy::len_without_is_empty,
    clippy::should_implement_trait,
    rustdoc::private_intra_doc_links,
    reason = "nothing here is for users of Windrow"
)]

pub mod budget;
pub mod cache;
pub mod events;
pub mod fork;
pub mod gaps;
pub mod lock_ranks;
pub mod memtable;
pub mod operators;
pub mod options;
pub mod read;
pub mod records_left_out;
pub mod slice;
pub mod snapshot_list;
pub mod stats;
pub mod tombstones;
pub mod units;
