//! Windrow's owners: the host, the catalog, the commit queue, merges, and the jobs that run them.
//!
//! A part of the key-value store [`windrow`](https://docs.rs/windrow), which re-exports what its
//! users need of it. All else here is inside of Windrow and promises nothing.
//!
//! Owns: writes, flushes and merges of a database that is open. Never does: open or close one, or
//! decide what is merged (`windrow-plan` does).

// No promise to users, so no page for them; an item's purpose is documented where it is not plain.
#![allow(
    missing_docs,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    clippy::should_implement_trait,
    rustdoc::private_intra_doc_links,
    reason = "nothing here is for users of Windrow"
)]

pub mod catalog;
pub mod host;
pub mod jobs;
pub mod manifest;
pub mod merge;
pub mod tree;
pub mod write;
