//! The values of the model.
//!
//! Owns: their kinds. Never does: use the server's code.

use super::stream::Stream;
use crate::testing::reply::Reply;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The value of a key.
#[derive(Clone, Debug)]
pub enum Value {
    /// Bytes.
    String(String),
    /// Fields with values, in the order in which they were added.
    Hash(Vec<(String, String)>),
    /// Members.
    Set(BTreeSet<String>),
    /// Elements.
    List(VecDeque<String>),
    /// Members with scores.
    Sorted(BTreeMap<String, i64>),
    /// Entries.
    Stream(Stream),
}

/// All keys.
pub type Model = BTreeMap<String, Value>;

pub(super) fn wrong_type() -> Reply {
    Reply::Error("WRONGTYPE Operation against a key holding the wrong kind of value".to_owned())
}

pub(super) fn int(number: usize) -> Reply {
    Reply::Int(number as i64)
}
