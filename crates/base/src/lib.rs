//! The words every crate of Windrow uses: keys, sequence numbers, comparators,
//! errors, integer coding and ids.
//!
//! Owns: the internal key and its order, the one error type, varints.
//! Never does: I/O, allocation beyond what a caller asks for, anything that
//! needs an operating system (`no_std` + `alloc`, since `plan` uses it).

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bound;
pub mod coding;
pub mod comparator;
pub mod error;
pub mod ids;
pub mod invariant;
pub mod key;
pub mod mutants;

pub use comparator::{Comparator, KeyOrder};
pub use error::{Error, ErrorKind, Result};
pub use ids::{COUNTER_MAX, Epoch, FileNumber, FileUid, KeyspaceId};
pub use key::{Kind, SeqNo};
