//! Windrow's databases as a whole: what lies in a directory, open, close, resume, verify, repair.
//!
//! A part of the key-value store [`windrow`](https://docs.rs/windrow), which re-exports what its
//! users need of it. All else here is inside of Windrow and promises nothing.
//!
//! Owns: the way from the files of a directory to an open database and back. Never does: a step of
//! a write or of a job by itself.

// Users of Windrow get no page for these items; an item's purpose is documented where it is not
// plain.
#![allow(
    missing_docs,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    clippy::should_implement_trait,
    rustdoc::private_intra_doc_links,
    reason = "nothing here is for users of Windrow"
)]

pub mod close;
pub mod database;
pub mod destroy;
pub mod discovery;
pub mod dump;
pub mod handle;
mod kept_changes;
pub mod keyspace_changes;
pub mod log;
pub mod measure;
pub mod open;
pub mod repair;
pub mod resume;
pub mod stored_settings;
pub mod verify;
