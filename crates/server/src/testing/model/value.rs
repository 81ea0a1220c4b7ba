//! The values of the model.
//!
//! Owns: their kinds. Never does: use the server's code.

use super::stream::ModelStream;
use crate::testing::reply::ModelReply;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The value of a key.
#[derive(Clone, Debug)]
pub enum ModelValue {
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
    Stream(ModelStream),
}

/// All keys.
pub type Model = BTreeMap<String, ModelValue>;

pub(super) fn wrong_type() -> ModelReply {
    ModelReply::Error(
        "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned(),
    )
}

pub(super) fn int(number: usize) -> ModelReply {
    ModelReply::Int(number as i64)
}
