//! Ranges of sorted sets: by place, by score, by member.
//!
//! Owns: the forms of a range, and the walk over it. Never does: change a score.

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::sorted_sets::{Scored, by_score, remove, replace, reply, score_of, score_row, scored};
use super::strings::range;
use crate::data::element;
use crate::data::head::Kind;
use crate::data::rows::Rows;
use crate::data::score;
use crate::data::space::Space;
use crate::data::view::{Gather, View};
use crate::fault::{Outcome, SYNTAX, fail};
use crate::protocol::number::parse_f64;
use std::ops::Bound;

pub(super) const COMMANDS: &[Command] = &[
    keyed("zrange", -4, READ, |call| zrange(call, None)),
    keyed("zrevrange", -4, READ, |call| zrange(call, Some((By::Place, true)))),
    keyed("zrangebyscore", -4, READ, |call| zrange(call, Some((By::Score, false)))),
    keyed("zrevrangebyscore", -4, READ, |call| zrange(call, Some((By::Score, true)))),
    keyed("zrangebylex", -4, READ, |call| zrange(call, Some((By::Member, false)))),
    keyed("zrevrangebylex", -4, READ, |call| zrange(call, Some((By::Member, true)))),
    keyed_at("zrangestore", -5, WRITE, (1, 2, 1), zrangestore),
    keyed("zcount", 4, READ, |call| count(call, By::Score)),
    keyed("zlexcount", 4, READ, |call| count(call, By::Member)),
    keyed("zremrangebyrank", 4, WRITE, |call| remove_range(call, By::Place)),
    keyed("zremrangebyscore", 4, WRITE, |call| remove_range(call, By::Score)),
    keyed("zremrangebylex", 4, WRITE, |call| remove_range(call, By::Member)),
    keyed("zrank", 3, READ, |call| rank(call, false)),
    keyed("zrevrank", 3, READ, |call| rank(call, true)),
];

/// The kind of a range's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Place,
    Score,
    Member,
}

/// A range as it was requested.
#[derive(Clone, Copy, Debug)]
struct Asked<'c> {
    by: By,
    is_reversed: bool,
    first: &'c [u8],
    last: &'c [u8],
    skipped: i64,
    /// The most elements; negative: all.
    limit: i64,
    has_scores: bool,
}

impl<'c> Asked<'c> {
    /// Reads the arguments from `at` on. `fixed`: the kind of the ends, where the command's name
    /// determines it.
    fn of(call: &Call<'c, '_>, at: usize, fixed: Option<(By, bool)>) -> Outcome<Asked<'c>> {
        let (by, is_reversed) = fixed.unwrap_or((By::Place, false));
        let (first, last) = (call.arg(at)?, call.arg(at + 1)?);
        let mut asked =
            Asked { by, is_reversed, first, last, skipped: 0, limit: -1, has_scores: false };
        let (mut has_limit, mut at) = (false, at + 2);
        while let Some(word) = call.args.get(at) {
            match word {
                word if is(word, "WITHSCORES") => asked.has_scores = true,
                word if is(word, "LIMIT") => {
                    (asked.skipped, asked.limit) = (call.int(at + 1)?, call.int(at + 2)?);
                    has_limit = true;
                    at += 2;
                }
                word if is(word, "BYSCORE") && fixed.is_none() => asked.by = By::Score,
                word if is(word, "BYLEX") && fixed.is_none() => asked.by = By::Member,
                word if is(word, "REV") && fixed.is_none() => asked.is_reversed = true,
                _ => return fail(SYNTAX),
            }
            at += 1;
        }
        if has_limit && asked.by == By::Place {
            return fail(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            );
        }
        if asked.has_scores && asked.by == By::Member {
            return fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        }
        Ok(asked)
    }

    /// Returns the ends, the least first.
    fn ends(&self) -> (&'c [u8], &'c [u8]) {
        if self.is_reversed { (self.last, self.first) } else { (self.first, self.last) }
    }
}

/// Reads a score and whether it is in the range itself.
fn score_end(arg: &[u8]) -> Outcome<(f64, bool)> {
    let (text, is_in) = match arg {
        [b'(', text @ ..] => (text, false),
        text => (text, true),
    };
    match parse_f64(text) {
        Some(score) => Ok((score, is_in)),
        None => fail("ERR min or max is not a float"),
    }
}

/// Returns the rows of the scores between two ends; `None` where there can be none.
fn between_scores(
    view: &View<'_>,
    key: &[u8],
    (least, most): (&[u8], &[u8]),
) -> Outcome<Option<Rows>> {
    let ((least, has_least), (most, has_most)) = (score_end(least)?, score_end(most)?);
    // The first row after all rows of a score.
    let behind = |score: f64| (u64::from_be_bytes(score::encode(score)) + 1).to_be_bytes();
    let from = if has_least { score::encode(least) } else { behind(least) };
    let to = if has_most { behind(most) } else { score::encode(most) };
    if from >= to {
        return Ok(None);
    }
    let (from, to) = (element::row(key, &from), element::row(key, &to));
    Ok(Some(view.rows(Space::Scores, Bound::Included(from), Bound::Excluded(to))))
}

/// Returns the rows of the members between two ends; `None` where there can be none.
fn between_members(
    view: &View<'_>,
    key: &[u8],
    (least, most): (&[u8], &[u8]),
) -> Outcome<Option<Rows>> {
    let prefix = element::prefix(key);
    let invalid = || fail("ERR min or max not valid string range item");
    let row = |member: &[u8]| element::row(key, member);
    let from = match least {
        b"-" => Bound::Included(prefix.clone()),
        [b'[', member @ ..] => Bound::Included(row(member)),
        [b'(', member @ ..] => Bound::Excluded(row(member)),
        b"+" => Bound::Included(element::end_of(&prefix)),
        _ => return invalid(),
    };
    let to = match most {
        b"+" => Bound::Excluded(element::end_of(&prefix)),
        [b'[', member @ ..] => Bound::Included(row(member)),
        [b'(', member @ ..] => Bound::Excluded(row(member)),
        b"-" => Bound::Excluded(prefix),
        _ => return invalid(),
    };
    let is_empty = match (&from, &to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
        _ => false,
    };
    if is_empty { Ok(None) } else { Ok(Some(view.rows(Space::Members, from, to))) }
}

/// Returns the members of a range, in the requested order.
fn select(view: &View<'_>, key: &[u8], asked: &Asked<'_>) -> Outcome<Vec<Scored>> {
    let places = match asked.by {
        By::Place => Some((int(asked.first)?, int(asked.last)?)),
        _ => None,
    };
    // Invalid ends are an error, whatever value the key has.
    let rows = match asked.by {
        By::Place => None,
        By::Score => between_scores(view, key, asked.ends())?,
        By::Member => between_members(view, key, asked.ends())?,
    };
    let head = view.collection_or_empty(key, Kind::SortedSet)?;
    if head.is_empty() {
        return Ok(Vec::new());
    }
    if let Some((first, last)) = places {
        let places = range(first, last, usize::try_from(head.len()).unwrap_or(usize::MAX));
        let rows = by_score(view, key);
        return take(rows, asked, places.start, places.len(), |row, _| scored(key, row));
    }
    let (Some(rows), Ok(skipped)) = (rows, usize::try_from(asked.skipped)) else {
        return Ok(Vec::new());
    };
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    take(view.gather(rows), asked, skipped, limit, |row, value| match asked.by {
        By::Member => {
            let member = element::rest(key, row).to_vec();
            Ok((member, score::decode(value)?))
        }
        _ => scored(key, row),
    })
}

fn take(
    mut rows: Gather<'_>,
    asked: &Asked<'_>,
    skipped: usize,
    limit: usize,
    member: impl Fn(&[u8], &[u8]) -> Outcome<Scored>,
) -> Outcome<Vec<Scored>> {
    let (mut found, mut place) = (Vec::new(), 0);
    while found.len() < limit {
        let row = if asked.is_reversed { rows.next_back() } else { rows.next() };
        let Some(row) = row else { break };
        let (row, value) = row?;
        if place >= skipped {
            found.push(member(&row, &value)?);
        }
        place += 1;
    }
    Ok(found)
}

fn zrange(call: &mut Call<'_, '_>, fixed: Option<(By, bool)>) -> Outcome {
    let asked = Asked::of(call, 2, fixed)?;
    let members = select(&call.view, call.key(), &asked)?;
    reply(call, &members, asked.has_scores)
}

fn zrangestore(call: &mut Call<'_, '_>) -> Outcome {
    let asked = Asked::of(call, 3, None)?;
    if asked.has_scores {
        return fail(SYNTAX);
    }
    let members = select(&call.view, call.args[2], &asked)?;
    replace(&mut call.view, call.args[1], &members)?;
    call.out.count(members.len());
    Ok(())
}

fn asked_for<'c>(call: &Call<'c, '_>, by: By) -> Asked<'c> {
    let (first, last) = (call.args[2], call.args[3]);
    Asked { by, is_reversed: false, first, last, skipped: 0, limit: -1, has_scores: false }
}

fn count(call: &mut Call<'_, '_>, by: By) -> Outcome {
    let ends = asked_for(call, by).ends();
    let rows = match by {
        By::Member => between_members(&call.view, call.key(), ends)?,
        _ => between_scores(&call.view, call.key(), ends)?,
    };
    let mut count = 0;
    if !call.view.collection_or_empty(call.key(), Kind::SortedSet)?.is_empty() {
        for row in rows.into_iter().flatten() {
            row?;
            count += 1;
        }
    }
    call.out.int(count);
    Ok(())
}

fn remove_range(call: &mut Call<'_, '_>, by: By) -> Outcome {
    let members = select(&call.view, call.key(), &asked_for(call, by))?;
    remove(&mut call.view, call.args[1], &members)?;
    call.out.count(members.len());
    Ok(())
}

fn rank(call: &mut Call<'_, '_>, is_reversed: bool) -> Outcome {
    let (key, member) = (call.key(), call.args[2]);
    let head = call.view.collection_or_empty(key, Kind::SortedSet)?;
    let Some(score) = score_of(&call.view, key, &head, member)? else {
        call.out.null();
        return Ok(());
    };
    let (row, prefix) = (score_row(key, score, member), element::prefix(key));
    let (from, to) = match is_reversed {
        false => (Bound::Included(prefix), Bound::Excluded(row)),
        true => (Bound::Excluded(row), Bound::Excluded(element::end_of(&prefix))),
    };
    let mut rank = 0;
    for row in call.view.rows(Space::Scores, from, to) {
        row?;
        rank += 1;
    }
    call.out.int(rank);
    Ok(())
}
