//! A mirror of a database on another machine.
//!
//! The source's side ([`source::serve`]) sends the feed of changes of a database over TCP. The mirror's
//! side ([`mirror::follow`]) keeps a second database: a copy of one moment first, which is a checkpoint
//! sent file by file, then every batch behind it. Each batch is one write of the mirror, and the number
//! that comes next is part of the same write. So either side may end at any time, and the mirror goes on
//! with the number that it has.
//!
//! Nothing here elects a writer, and nothing may write to the mirror but its feed.

#![allow(clippy::disallowed_methods, reason = "an example has no environment but the system's")]

pub mod frame;
pub mod mirror;
pub mod source;

/// A failure, in words for people.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
