//! Sorted sets: `ZADD`, `ZPOPMIN` and their like.
//!
//! Owns: members and scores, one by one. Never does: walk ranges (`score_ranges.rs`) or combine sets
//! (`score_sums.rs`).

use super::call::{Call, float, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::random;
use super::sets::numbered_keys;
use crate::data::element;
use crate::data::head::{Head, Kind};
use crate::data::rows_ahead::RowsAhead;
use crate::data::score;
use crate::data::space::Space;
use crate::data::view::{Gather, View};
use crate::fault::{OUT_OF_RANGE, Outcome, SYNTAX, fail};
use crate::protocol::{Dialect, Reply};
use std::collections::HashSet;

pub(super) const COMMANDS: &[Command] = &[
    keyed("zadd", -4, WRITE, zadd).reads(|args, rows| {
        let pairs = AddOptions::of(&args[2..]).map_or(&[][..], |(_, pairs)| pairs);
        members(args[1], pairs[pairs.len().min(1)..].iter().step_by(2), rows);
    }),
    keyed("zincrby", 4, WRITE, zincrby)
        .reads(|args, rows| members(args[1], args[3..].iter(), rows)),
    keyed("zrem", -3, WRITE, zrem).reads(|args, rows| members(args[1], args[2..].iter(), rows)),
    keyed("zscore", 3, READ, zscore).reads(|args, rows| members(args[1], args[2..].iter(), rows)),
    keyed("zmscore", -3, READ, zmscore),
    keyed("zcard", 2, READ, zcard),
    keyed("zpopmin", -2, WRITE, |call| zpop(call, Edge::Min)),
    keyed("zpopmax", -2, WRITE, |call| zpop(call, Edge::Max)),
    keyed_at("zmpop", -4, WRITE, (2, -1, 1), |call| zmpop(call, 1).map(drop)),
    keyed("zrandmember", -2, READ, zrandmember),
];

/// Adds the rows of members of the sorted set `key`.
fn members<'a>(key: &[u8], members: impl Iterator<Item = &'a &'a [u8]>, rows: &mut RowsAhead) {
    members.for_each(|member| rows.add_element(Space::Members, key, member));
}

/// A member and its score.
pub(super) type Scored = (Vec<u8>, f64);

/// An end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Min,
    Max,
}

/// Returns the row of a member among the scores.
pub(super) fn score_row(key: &[u8], score: f64, member: &[u8]) -> Vec<u8> {
    let mut row = element::row(key, &score::encode(score));
    row.extend_from_slice(member);
    row
}

/// Returns a member's score.
pub(super) fn score_of(
    view: &View<'_>,
    key: &[u8],
    head: &Head,
    member: &[u8],
) -> Outcome<Option<f64>> {
    if head.is_empty() {
        return Ok(None);
    }
    let row = view.row(Space::Members, &element::row(key, member))?;
    Ok(row.map(|row| score::decode(&row)).transpose()?)
}

/// Gives a member a score in place of its present one, if any.
pub(super) fn put(
    view: &mut View<'_>,
    key: &[u8],
    member: &[u8],
    before: Option<f64>,
    score: f64,
) -> Outcome {
    if let Some(before) = before {
        view.delete_row(Space::Scores, &score_row(key, before, member));
    }
    view.put_row(Space::Members, element::row(key, member), score::encode(score))?;
    Ok(view.put_row(Space::Scores, score_row(key, score, member), b"")?)
}

/// Removes members that exist, with their scores.
pub(super) fn remove(view: &mut View<'_>, key: &[u8], members: &[Scored]) -> Outcome {
    let Some(mut head) = view.collection(key, Kind::SortedSet)? else { return Ok(()) };
    if members.is_empty() {
        return Ok(());
    }
    for (member, score) in members {
        view.delete_row(Space::Members, &element::row(key, member));
        view.delete_row(Space::Scores, &score_row(key, *score, member));
    }
    head.end -= members.len() as u64;
    view.put_head(key, &head)
}

/// Replaces the value of `key` by a sorted set of these members. No member may be given twice.
pub(super) fn replace(view: &mut View<'_>, key: &[u8], members: &[Scored]) -> Outcome {
    view.remove(key)?;
    if members.is_empty() {
        return Ok(());
    }
    for (member, score) in members {
        put(view, key, member, None, *score)?;
    }
    let head = Head { end: members.len() as u64, ..Head::new(Kind::SortedSet) };
    view.put_head(key, &head)?;
    view.note_fresh(key);
    Ok(())
}

/// Returns the member and the score of a row among the scores.
///
/// # Errors
/// A row without a score.
pub(super) fn scored(key: &[u8], row: &[u8]) -> Outcome<Scored> {
    let rest = element::rest(key, row);
    let score = score::decode(rest)?;
    Ok((rest.get(8..).unwrap_or_default().to_vec(), score))
}

/// Returns all rows of the scores, from the least on.
pub(super) fn by_score<'v>(view: &'v View<'_>, key: &[u8]) -> Gather<'v> {
    view.gather(view.rows_of(Space::Scores, &element::prefix(key)))
}

/// Writes the head of an array of members; returns whether each has its score in an array of both.
pub(super) fn begin(out: &mut Reply, len: usize, has_scores: bool) -> bool {
    let is_nested = has_scores && out.dialect == Dialect::Resp3;
    out.array(if has_scores && !is_nested { 2 * len } else { len });
    is_nested
}

/// Writes an array of members, with their scores or without.
pub(super) fn reply(call: &mut Call<'_, '_>, members: &[Scored], has_scores: bool) -> Outcome {
    let is_nested = begin(call.out, members.len(), has_scores);
    for (member, score) in members {
        if is_nested {
            call.out.array(2);
        }
        call.out.bulk(member);
        if has_scores {
            call.out.double(*score);
        }
        call.check_room()?;
    }
    Ok(())
}

// ---- ZADD

/// The options of `ZADD`.
#[derive(Clone, Copy, Default)]
struct AddOptions {
    if_new: bool,
    if_there: bool,
    if_greater: bool,
    if_less: bool,
    counts_changes: bool,
    adds_to_score: bool,
}

impl AddOptions {
    /// Reads the options; returns the arguments after them, too.
    fn of<'c>(args: &'c [&'c [u8]]) -> Outcome<(AddOptions, &'c [&'c [u8]])> {
        let mut options = AddOptions::default();
        let mut rest = args;
        while let [word, others @ ..] = rest {
            match word {
                word if is(word, "NX") => options.if_new = true,
                word if is(word, "XX") => options.if_there = true,
                word if is(word, "GT") => options.if_greater = true,
                word if is(word, "LT") => options.if_less = true,
                word if is(word, "CH") => options.counts_changes = true,
                word if is(word, "INCR") => options.adds_to_score = true,
                _ => break,
            }
            rest = others;
        }
        if rest.is_empty() || rest.len() % 2 == 1 {
            return fail(SYNTAX);
        }
        if options.if_new && options.if_there {
            return fail("ERR XX and NX options at the same time are not compatible");
        }
        let bounds = [options.if_greater, options.if_less, options.if_new];
        if bounds.iter().filter(|is_set| **is_set).count() > 1 {
            return fail("ERR GT, LT, and/or NX options at the same time are not compatible");
        }
        if options.adds_to_score && rest.len() > 2 {
            return fail("ERR INCR option supports a single increment-element pair");
        }
        Ok((options, rest))
    }

    fn allow(&self, before: Option<f64>, score: f64) -> bool {
        match before {
            None => !self.if_there,
            Some(before) => {
                !self.if_new
                    && (!self.if_greater || score > before)
                    && (!self.if_less || score < before)
            }
        }
    }
}

fn zadd(call: &mut Call<'_, '_>) -> Outcome {
    let (options, pairs) = AddOptions::of(&call.args[2..])?;
    add(call, options, pairs)
}

fn zincrby(call: &mut Call<'_, '_>) -> Outcome {
    let options = AddOptions { adds_to_score: true, ..AddOptions::default() };
    add(call, options, &call.args[2..])
}

fn add(call: &mut Call<'_, '_>, options: AddOptions, pairs: &[&[u8]]) -> Outcome {
    let key = call.key();
    let mut scores = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        scores.push((float(pair[0])?, pair[1]));
    }
    let mut head = call.view.collection_to_write(key, Kind::SortedSet)?;
    let (mut added, mut changed, mut result) = (0_u64, 0_u64, None);
    for (score, member) in scores {
        let before = score_of(&call.view, key, &head, member)?;
        let score = match (options.adds_to_score, before) {
            (true, Some(before)) => before + score,
            _ => score,
        };
        if score.is_nan() {
            return fail("ERR resulting score is not a number (NaN)");
        }
        if !options.allow(before, score) {
            continue;
        }
        result = Some(score);
        if before != Some(score) {
            put(&mut call.view, key, member, before, score)?;
            changed += 1;
        }
        if before.is_none() {
            added += 1;
            head.end += 1;
        }
    }
    if changed > 0 {
        call.view.put_head(key, &head)?;
        call.view.note_fresh(key);
    }
    match (options.adds_to_score, result) {
        (true, Some(score)) => call.out.double(score),
        (true, None) => call.out.null(),
        (false, _) => {
            let count = if options.counts_changes { changed } else { added };
            call.out.int(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
    Ok(())
}

// ---- one by one

fn zrem(call: &mut Call<'_, '_>) -> Outcome {
    let (key, mut removed, mut seen) = (call.key(), Vec::new(), HashSet::new());
    let head = call.view.collection_or_empty(key, Kind::SortedSet)?;
    for member in call.args[2..].iter().filter(|member| seen.insert(**member)) {
        if let Some(score) = score_of(&call.view, key, &head, member)? {
            removed.push((member.to_vec(), score));
        }
    }
    remove(&mut call.view, key, &removed)?;
    call.out.count(removed.len());
    Ok(())
}

fn zscore(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::SortedSet)?;
    match score_of(&call.view, call.key(), &head, call.args[2])? {
        Some(score) => call.out.double(score),
        None => call.out.null(),
    }
    Ok(())
}

fn zmscore(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::SortedSet)?;
    call.out.array(call.args.len() - 2);
    for member in &call.args[2..] {
        match score_of(&call.view, call.key(), &head, member)? {
            Some(score) => call.out.double(score),
            None => call.out.null(),
        }
    }
    Ok(())
}

fn zcard(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::SortedSet)?;
    call.out.int(i64::try_from(head.len()).unwrap_or(i64::MAX));
    Ok(())
}

/// Takes members from an edge, at most `count`.
pub(super) fn pop(view: &mut View<'_>, key: &[u8], edge: Edge, count: u64) -> Outcome<Vec<Scored>> {
    let head = view.collection_or_empty(key, Kind::SortedSet)?;
    let count = usize::try_from(count.min(head.len())).unwrap_or(usize::MAX);
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut popped = Vec::with_capacity(count.min(1024));
    let mut rows = by_score(view, key);
    while popped.len() < count {
        let row = if edge == Edge::Min { rows.next() } else { rows.next_back() };
        let Some(row) = row else { break };
        popped.push(scored(key, &row?.0)?);
    }
    remove(view, key, &popped)?;
    Ok(popped)
}

fn zpop(call: &mut Call<'_, '_>, edge: Edge) -> Outcome {
    let count = match call.args {
        [_, _] => None,
        [_, _, count] => match int(count)? {
            count @ 0.. => Some(count as u64),
            _ => return fail(format!("{OUT_OF_RANGE}, must be positive")),
        },
        _ => return fail(SYNTAX),
    };
    let popped = pop(&mut call.view, call.args[1], edge, count.unwrap_or(1))?;
    if count.is_some() {
        return reply(call, &popped, true);
    }
    // Without a count both dialects have one flat array.
    call.out.array(2 * popped.len());
    for (member, score) in &popped {
        call.out.bulk(member);
        call.out.double(*score);
    }
    Ok(())
}

/// Pops from the first sorted set that has members; returns whether one had. The number of keys is
/// at `place`.
pub(super) fn zmpop(call: &mut Call<'_, '_>, place: usize) -> Outcome<bool> {
    let (keys, rest) = numbered_keys(call, place)?;
    let edge = match rest.first() {
        Some(word) if is(word, "MIN") => Edge::Min,
        Some(word) if is(word, "MAX") => Edge::Max,
        _ => return fail(SYNTAX),
    };
    let count = match &rest[1..] {
        [] => 1,
        [word, count] if is(word, "COUNT") => match int(count) {
            Ok(count @ 1..) => count as u64,
            _ => return fail("ERR count should be greater than 0"),
        },
        _ => return fail(SYNTAX),
    };
    for key in keys {
        let popped = pop(&mut call.view, key, edge, count);
        let popped = call.looked_for(popped)?;
        if !popped.is_empty() {
            call.out.array(2);
            call.out.bulk(key);
            call.out.array(popped.len());
            for (member, score) in &popped {
                call.out.array(2);
                call.out.bulk(member);
                call.out.double(*score);
                call.check_room()?;
            }
            return Ok(true);
        }
    }
    call.out.null_array();
    Ok(false)
}

fn zrandmember(call: &mut Call<'_, '_>) -> Outcome {
    let has_scores = match call.args {
        [_, _] | [_, _, _] => false,
        [_, _, _, word] if is(word, "WITHSCORES") => true,
        _ => return fail(SYNTAX),
    };
    let (key, head) = (call.key(), call.view.collection_or_empty(call.key(), Kind::SortedSet)?);
    let prefix = element::prefix(key);
    let count = match call.args.get(2) {
        Some(count) => Some(random::count(count, has_scores)?),
        None => None,
    };
    let rows = random::rows(&call.view, Space::Scores, &prefix, head.len(), count.unwrap_or(1))?;
    let members = rows.iter().map(|(row, _)| scored(key, row)).collect::<Outcome<Vec<_>>>()?;
    if count.is_some() {
        return reply(call, &members, has_scores);
    }
    call.out.bulk_or_null(members.first().map(|(member, _)| &member[..]));
    Ok(())
}
