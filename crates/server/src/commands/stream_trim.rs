//! Trimming streams: the options of `XTRIM` and `XADD`.
//!
//! Redis keeps entries in nodes of `stream-node-max-entries`, and trims whole nodes where `~` lets
//! it. Here are no nodes, and `~` leaves the same entries where none were deleted one by one.
//!
//! Owns: the choice of the entries that are trimmed. Never does: reply.

use super::call::{Call, int, is};
use super::stream_ids::id;
use crate::data::stream::{Stream, entries};
use crate::data::stream_id::Id;
use crate::fault::{Outcome, SYNTAX, fail};

/// The bound beyond which entries are trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// The most entries.
    Len(u64),
    /// The least identifier.
    Id(Id),
}

/// The options of a trim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trim {
    bound: Bound,
    /// Whether only whole nodes are trimmed.
    is_about: bool,
    /// The most entries that are deleted.
    limit: Option<u64>,
}

impl Trim {
    /// Reads the option at a place; returns the place of the next one, too. `before` is an option
    /// that was read already.
    ///
    /// # Errors
    /// `syntax error` and its like.
    pub(super) fn parse(
        call: &Call<'_, '_>,
        at: usize,
        before: Option<Trim>,
    ) -> Outcome<(Trim, usize)> {
        if before.is_some() {
            return fail(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            );
        }
        let is_len = match call.arg(at)? {
            word if is(word, "MAXLEN") => true,
            word if is(word, "MINID") => false,
            _ => return fail(SYNTAX),
        };
        let mark = call.arg(at + 1)?;
        let is_about = mark == b"~";
        let at = if is_about || mark == b"=" { at + 2 } else { at + 1 };
        let bound = match is_len {
            true => match u64::try_from(call.int(at)?) {
                Ok(len) => Bound::Len(len),
                Err(_) => return fail("ERR The MAXLEN argument must be >= 0."),
            },
            false => Bound::Id(id(call.arg(at)?, 0)?),
        };
        let trim = Trim { bound, is_about, limit: None };
        match &call.args[at + 1..] {
            [word, limit, ..] if is(word, "LIMIT") => {
                if !is_about {
                    return fail(
                        "ERR syntax error, LIMIT cannot be used without the special ~ option",
                    );
                }
                match u64::try_from(int(limit)?) {
                    Ok(0) => Ok((Trim { limit: Some(u64::MAX), ..trim }, at + 3)),
                    Ok(limit) => Ok((Trim { limit: Some(limit), ..trim }, at + 3)),
                    Err(_) => fail("ERR The LIMIT argument must be >= 0."),
                }
            }
            _ => Ok((trim, at + 1)),
        }
    }
}

/// Deletes the oldest entries beyond the bound; returns their number.
pub(super) fn trim(call: &mut Call<'_, '_>, stream: &mut Stream, trim: &Trim) -> Outcome<u64> {
    /// The most entries that are looked at together.
    const NODE_MAX: u64 = 4096;
    let key = call.key();
    if !trim.is_about && trim.bound == Bound::Len(0) {
        let len = stream.len();
        stream.clear(&mut call.view, key);
        return Ok(len);
    }
    let node = call.shared.parameters.number("stream-node-max-entries");
    let node = match node.and_then(|node| u64::try_from(node).ok()) {
        Some(node @ 1..=NODE_MAX) => node,
        _ => NODE_MAX,
    };
    let limit = match trim.is_about {
        true => trim.limit.unwrap_or(100 * node),
        false => u64::MAX,
    };
    let first = stream.added.saturating_sub(stream.len());
    // Most calls that add an entry find nothing to trim, and then read no entry.
    let (mut all, mut trimmed) = (None, 0);
    while stream.len() > 0 {
        let step = match trim.is_about {
            true => (node - (first + trimmed) % node).min(stream.len()),
            false => 1,
        };
        if trimmed + step > limit {
            break;
        }
        if let Bound::Len(len) = trim.bound
            && stream.len() < len + step
        {
            break;
        }
        let all = all.get_or_insert_with(|| entries(&call.view, key, Id::ZERO..=Id::MAX));
        let of_step = all.take(usize::try_from(step).unwrap_or(usize::MAX));
        let of_step = of_step.map(|entry| entry.map(|(id, _)| id));
        let of_step: Vec<Id> = of_step.collect::<windrow::Result<_>>()?;
        if let Bound::Id(least) = trim.bound
            && of_step.last().is_none_or(|last| *last >= least)
        {
            break;
        }
        for id in &of_step {
            stream.delete(&mut call.view, key, *id)?;
        }
        trimmed += of_step.len() as u64;
        if of_step.is_empty() {
            break;
        }
    }
    Ok(trimmed)
}
