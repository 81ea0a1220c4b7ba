//! The immutable tree: files, levels, versions, and the edits between them.
//!
//! Owns: the tree as metadata, and the two questions that the invariants turn on: which files a job
//! must take along (`closure`, I5), and which it may not contradict (`older_files`, I6). Never
//! does: choose a job, or open a table.

mod apply;
mod check;
pub mod closure;
pub mod codec;
pub mod edit;
pub mod file;
pub mod level;
pub mod older_files;
pub mod span;
pub mod text;
pub mod version;

pub use edit::Edit;
pub use file::{File, Part, Place};
pub use level::Level;
pub use older_files::{OlderFiles, nothing_older};
pub use span::Span;
pub use version::{LEVELS_MAX, Version};
