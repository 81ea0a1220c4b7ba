//! Identifiers of stream entries as arguments.
//!
//! Owns: their forms. Never does: know a command.

use crate::data::stream_id::Id;
use crate::fault::{Outcome, fail};

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

/// An identifier; one that is a moment alone has this number.
///
/// # Errors
/// That it is none.
pub(super) fn id(arg: &[u8], seq: u64) -> Outcome<Id> {
    Id::parse(arg, seq).map_or_else(|| fail(INVALID_ID), Ok)
}

/// An end of a range: an identifier, a moment, `-` or `+`.
///
/// # Errors
/// That it is none.
pub(super) fn bound(arg: &[u8], seq: u64) -> Outcome<Id> {
    match arg {
        b"-" => Ok(Id::ZERO),
        b"+" => Ok(Id::MAX),
        arg => id(arg, seq),
    }
}

/// The begin of a range, which `(` excludes from it.
///
/// # Errors
/// That it is none, and that there is nothing behind it.
pub(super) fn begin(arg: &[u8]) -> Outcome<Id> {
    match arg {
        [b'(', rest @ ..] => match id(rest, 0)?.next() {
            Some(next) => Ok(next),
            None => fail("ERR invalid start ID for the interval"),
        },
        arg => bound(arg, 0),
    }
}

/// The end of a range, which `(` excludes from it.
///
/// # Errors
/// That it is none, and that there is nothing before it.
pub(super) fn end(arg: &[u8]) -> Outcome<Id> {
    match arg {
        [b'(', rest @ ..] => match id(rest, u64::MAX)?.before() {
            Some(before) => Ok(before),
            None => fail("ERR invalid end ID for the interval"),
        },
        arg => bound(arg, u64::MAX),
    }
}
