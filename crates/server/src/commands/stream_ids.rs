//! Identifiers of stream entries as arguments.
//!
//! Owns: their forms. Never does: know a command.

use crate::data::stream_id::Id;
use crate::fault::{Outcome, fail};

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

/// Reads an identifier; a moment alone gets the number `seq`.
///
/// # Errors
/// A text that is no identifier.
pub(super) fn id(arg: &[u8], seq: u64) -> Outcome<Id> {
    Id::parse(arg, seq).map_or_else(|| fail(INVALID_ID), Ok)
}

/// Reads an end of a range: an identifier, a moment, `-` or `+`.
///
/// # Errors
/// A text that is none of these.
pub(super) fn bound(arg: &[u8], seq: u64) -> Outcome<Id> {
    match arg {
        b"-" => Ok(Id::ZERO),
        b"+" => Ok(Id::MAX),
        arg => id(arg, seq),
    }
}

/// Reads the beginning of a range, which `(` excludes from it.
///
/// # Errors
/// An invalid text, and an excluded identifier that has no next.
pub(super) fn begin(arg: &[u8]) -> Outcome<Id> {
    match arg {
        [b'(', rest @ ..] => match id(rest, 0)?.next() {
            Some(next) => Ok(next),
            None => fail("ERR invalid start ID for the interval"),
        },
        arg => bound(arg, 0),
    }
}

/// Reads the end of a range, which `(` excludes from it.
///
/// # Errors
/// An invalid text, and an excluded identifier that has none before it.
pub(super) fn end(arg: &[u8]) -> Outcome<Id> {
    match arg {
        [b'(', rest @ ..] => match id(rest, u64::MAX)?.before() {
            Some(before) => Ok(before),
            None => fail("ERR invalid end ID for the interval"),
        },
        arg => bound(arg, u64::MAX),
    }
}
