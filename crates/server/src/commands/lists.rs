//! Lists: `LPUSH`, `LRANGE` and their like.
//!
//! Owns: their arguments and replies, and positions. Never does: wait (`blocking.rs` has the
//! commands that do).

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::sets::numbered_keys;
use super::strings::range;
use crate::data::element;
use crate::data::head::{Head, Kind};
use crate::data::space::Space;
use crate::data::view::View;
use crate::fault::{NO_KEY, OUT_OF_RANGE, Outcome, SYNTAX, fail};
use std::ops::{Bound, Range};
use windrow::Slice;

pub(super) const COMMANDS: &[Command] = &[
    keyed("lpush", -3, WRITE, |call| push(call, End::Left, true)),
    keyed("rpush", -3, WRITE, |call| push(call, End::Right, true)),
    keyed("lpushx", -3, WRITE, |call| push(call, End::Left, false)),
    keyed("rpushx", -3, WRITE, |call| push(call, End::Right, false)),
    keyed("lpop", -2, WRITE, |call| pop(call, End::Left)),
    keyed("rpop", -2, WRITE, |call| pop(call, End::Right)),
    keyed("llen", 2, READ, llen),
    keyed("lindex", 3, READ, lindex),
    keyed("lset", 4, WRITE, lset),
    keyed("lrange", 4, READ, lrange),
    keyed("ltrim", 4, WRITE, ltrim),
    keyed("linsert", 5, WRITE, linsert),
    keyed("lrem", 4, WRITE, lrem),
    keyed("lpos", -3, READ, lpos),
    keyed_at("rpoplpush", 3, WRITE, (1, 2, 1), rpoplpush),
    keyed_at("lmove", 5, WRITE, (1, 2, 1), lmove),
    keyed_at("lmpop", -4, WRITE, (2, -1, 1), |call| lmpop(call, 1).map(drop)),
];

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Left,
    Right,
}

impl End {
    /// # Errors
    /// `syntax error` for a word other than `LEFT` and `RIGHT`.
    pub(super) fn of(word: &[u8]) -> Outcome<End> {
        match word {
            word if is(word, "LEFT") => Ok(End::Left),
            word if is(word, "RIGHT") => Ok(End::Right),
            _ => fail(SYNTAX),
        }
    }
}

fn row(key: &[u8], position: u64) -> Vec<u8> {
    element::row(key, &position.to_be_bytes())
}

/// Returns the elements at these positions, from the left.
fn elements(view: &View<'_>, key: &[u8], positions: Range<u64>) -> Outcome<Vec<Slice>> {
    let (from, to) = (row(key, positions.start), row(key, positions.end));
    let rows = view.rows(Space::Lists, Bound::Included(from), Bound::Excluded(to));
    let values = view.gather(rows).map(|row| row.map(|(_, value)| value));
    Ok(values.collect::<windrow::Result<_>>()?)
}

/// Adds elements at an end, one after the other; returns the new length.
pub(super) fn push_all(
    view: &mut View<'_>,
    key: &[u8],
    end: End,
    values: &[&[u8]],
) -> Outcome<u64> {
    let mut head = view.collection_to_write(key, Kind::List)?;
    for value in values {
        let position = match end {
            End::Left => {
                head.first -= 1;
                head.first
            }
            End::Right => {
                head.end += 1;
                head.end - 1
            }
        };
        view.put_row(Space::Lists, row(key, position), *value)?;
    }
    view.put_head(key, &head)?;
    view.note_fresh(key);
    Ok(head.len())
}

/// Takes elements from an end, at most `count`.
pub(super) fn pop_all(
    view: &mut View<'_>,
    key: &[u8],
    end: End,
    count: u64,
) -> Outcome<Vec<Slice>> {
    let Some(mut head) = view.collection(key, Kind::List)? else { return Ok(Vec::new()) };
    let count = count.min(head.len());
    let positions = match end {
        End::Left => head.first..head.first + count,
        End::Right => head.end - count..head.end,
    };
    let mut values = if count == 1 {
        view.row(Space::Lists, &row(key, positions.start))?.into_iter().collect()
    } else {
        elements(view, key, positions.clone())?
    };
    for position in positions {
        view.delete_row(Space::Lists, &row(key, position));
    }
    match end {
        End::Left => head.first += count,
        End::Right => {
            head.end -= count;
            values.reverse();
        }
    }
    if count > 0 {
        view.put_head(key, &head)?;
    }
    Ok(values)
}

fn push(call: &mut Call<'_, '_>, end: End, creates: bool) -> Outcome {
    if !creates && call.view.collection(call.key(), Kind::List)?.is_none() {
        call.out.int(0);
        return Ok(());
    }
    let len = push_all(&mut call.view, call.args[1], end, &call.args[2..])?;
    call.out.int(i64::try_from(len).unwrap_or(i64::MAX));
    Ok(())
}

fn pop(call: &mut Call<'_, '_>, end: End) -> Outcome {
    let count = match call.args {
        [_, _] => None,
        [_, _, count] => match int(count) {
            Ok(count @ 0..) => Some(count as u64),
            _ => return fail(format!("{OUT_OF_RANGE}, must be positive")),
        },
        _ => return call.wrong_number(),
    };
    let is_there = call.view.collection(call.key(), Kind::List)?.is_some();
    if let (Some(_), false) = (count, is_there) {
        call.out.null_array();
        return Ok(());
    }
    let values = pop_all(&mut call.view, call.args[1], end, count.unwrap_or(1))?;
    if count.is_none() {
        call.out.bulk_or_null(values.first().map(|value| &**value));
        return Ok(());
    }
    call.out.array(values.len());
    for value in &values {
        call.out.bulk(value);
        call.check_room()?;
    }
    Ok(())
}

fn llen(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::List)?;
    call.out.int(i64::try_from(head.len()).unwrap_or(i64::MAX));
    Ok(())
}

/// Returns the position of a place, which counts from the right where it is negative.
fn position(head: &Head, place: i64) -> Option<u64> {
    let len = i64::try_from(head.len()).unwrap_or(i64::MAX);
    let place = if place < 0 { place.checked_add(len)? } else { place };
    (0..len).contains(&place).then(|| head.first + place as u64)
}

fn lindex(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::List)?;
    let value = match position(&head, call.int(2)?) {
        Some(position) => call.view.row(Space::Lists, &row(call.key(), position))?,
        None => None,
    };
    call.out.bulk_or_null(value.as_deref());
    Ok(())
}

fn lset(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::List)?;
    if head.is_empty() {
        return fail(NO_KEY);
    }
    let Some(position) = position(&head, call.int(2)?) else {
        return fail("ERR index out of range");
    };
    call.view.store.watched.touch(call.key());
    call.view.put_row(Space::Lists, row(call.key(), position), call.args[3])?;
    call.out.ok();
    Ok(())
}

/// Returns the positions from a first to a last place.
fn positions(head: &Head, first: i64, last: i64) -> Range<u64> {
    let places = range(first, last, usize::try_from(head.len()).unwrap_or(usize::MAX));
    head.first + places.start as u64..head.first + places.end as u64
}

fn lrange(call: &mut Call<'_, '_>) -> Outcome {
    let (first, last) = (call.int(2)?, call.int(3)?);
    let positions = positions(&call.view.collection_or_empty(call.key(), Kind::List)?, first, last);
    call.out.array(usize::try_from(positions.end - positions.start).unwrap_or(usize::MAX));
    if positions.is_empty() {
        return Ok(());
    }
    let key = call.key();
    let (from, to) = (row(key, positions.start), row(key, positions.end));
    let mut followed = 0;
    for row in call.view.rows(Space::Lists, Bound::Included(from), Bound::Excluded(to)) {
        call.out.bulk(&row?.1);
        call.check_room()?;
        followed += 1;
    }
    call.check_count(positions.end - positions.start, followed)
}

fn ltrim(call: &mut Call<'_, '_>) -> Outcome {
    let (first, last) = (call.int(2)?, call.int(3)?);
    let mut head = call.view.collection_or_empty(call.key(), Kind::List)?;
    if !head.is_empty() {
        let kept = positions(&head, first, last);
        if kept.is_empty() {
            call.view.remove_collection(call.key(), &head)?;
        } else {
            for position in (head.first..kept.start).chain(kept.end..head.end) {
                call.view.delete_row(Space::Lists, &row(call.key(), position));
            }
            (head.first, head.end) = (kept.start, kept.end);
            call.view.put_head(call.key(), &head)?;
        }
    }
    call.out.ok();
    Ok(())
}

fn linsert(call: &mut Call<'_, '_>) -> Outcome {
    let is_before = match call.args[2] {
        word if is(word, "BEFORE") => true,
        word if is(word, "AFTER") => false,
        _ => return fail(SYNTAX),
    };
    let (key, mut head) = (call.key(), call.view.collection_or_empty(call.key(), Kind::List)?);
    if head.is_empty() {
        call.out.int(0);
        return Ok(());
    }
    let all = elements(&call.view, key, head.first..head.end)?;
    let Some(place) = all.iter().position(|value| **value == *call.args[3]) else {
        call.out.int(-1);
        return Ok(());
    };
    let place = if is_before { place } else { place + 1 };
    // The side with fewer elements moves by one.
    let (moved, at, by) = if place < all.len() / 2 {
        head.first -= 1;
        (0..place, head.first + place as u64, head.first)
    } else {
        head.end += 1;
        (place..all.len(), head.first + place as u64, head.first + 1)
    };
    for other in moved {
        call.view.put_row(Space::Lists, row(key, by + other as u64), &all[other][..])?;
    }
    call.view.put_row(Space::Lists, row(key, at), call.args[4])?;
    call.view.put_head(key, &head)?;
    call.out.int(i64::try_from(head.len()).unwrap_or(i64::MAX));
    Ok(())
}

fn lrem(call: &mut Call<'_, '_>) -> Outcome {
    let (key, count, mut head) =
        (call.key(), call.int(2)?, call.view.collection_or_empty(call.key(), Kind::List)?);
    let limit = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let all = elements(&call.view, key, head.first..head.end)?;
    let is_it = |place: &usize| *all[*place] == *call.args[3];
    let removed: Vec<usize> = match count < 0 {
        true => (0..all.len()).rev().filter(is_it).take(limit).collect(),
        false => (0..all.len()).filter(is_it).take(limit).collect(),
    };
    if let Some(first) = removed.iter().min().copied() {
        // Elements after the first of them move to the left.
        let gone: std::collections::HashSet<usize> = removed.iter().copied().collect();
        let mut position = head.first + first as u64;
        for place in (first..all.len()).filter(|place| !gone.contains(place)) {
            call.view.put_row(Space::Lists, row(key, position), &all[place][..])?;
            position += 1;
        }
        for position in position..head.end {
            call.view.delete_row(Space::Lists, &row(key, position));
        }
        head.end = position;
        call.view.put_head(key, &head)?;
    }
    call.out.count(removed.len());
    Ok(())
}

fn lpos(call: &mut Call<'_, '_>) -> Outcome {
    let (mut rank, mut count, mut len_max) = (1, None, 0);
    let options = &call.args[3..];
    if options.len() % 2 == 1 {
        return fail(SYNTAX);
    }
    for pair in options.chunks_exact(2) {
        let number = int(pair[1])?;
        match pair[0] {
            word if is(word, "RANK") && number == 0 => {
                return fail(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second \
                     ... or use negative to start from the end of the list",
                );
            }
            word if is(word, "RANK") && number == i64::MIN => {
                return fail(
                    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
                );
            }
            word if is(word, "RANK") => rank = number,
            word if is(word, "COUNT") && number < 0 => return fail("ERR COUNT can't be negative"),
            word if is(word, "COUNT") => count = Some(number),
            word if is(word, "MAXLEN") && number < 0 => {
                return fail("ERR MAXLEN can't be negative");
            }
            word if is(word, "MAXLEN") => len_max = number as usize,
            _ => return fail(SYNTAX),
        }
    }
    let head = call.view.collection_or_empty(call.key(), Kind::List)?;
    let all = elements(&call.view, call.key(), head.first..head.end)?;
    let looked_at = if len_max == 0 { all.len() } else { len_max.min(all.len()) };
    let is_it = |place: &usize| *all[*place] == *call.args[2];
    let skipped = rank.unsigned_abs() as usize - 1;
    let wanted = count.map_or(1, |count| if count == 0 { usize::MAX } else { count as usize });
    let found: Vec<usize> = match rank < 0 {
        true => {
            (0..all.len()).rev().take(looked_at).filter(is_it).skip(skipped).take(wanted).collect()
        }
        false => (0..looked_at).filter(is_it).skip(skipped).take(wanted).collect(),
    };
    match (count, found.first()) {
        (None, Some(place)) => call.out.count(*place),
        (None, None) => call.out.null(),
        (Some(_), _) => {
            call.out.array(found.len());
            found.iter().for_each(|place| call.out.count(*place));
        }
    }
    Ok(())
}

/// Moves an element from an end of one list to an end of another.
pub(super) fn move_one(
    view: &mut View<'_>,
    (from, from_end): (&[u8], End),
    (to, to_end): (&[u8], End),
) -> Outcome<Option<Slice>> {
    view.collection(to, Kind::List)?;
    if from == to {
        return rotate(view, from, from_end, to_end);
    }
    let Some(value) = pop_all(view, from, from_end, 1)?.pop() else { return Ok(None) };
    push_all(view, to, to_end, &[&value])?;
    Ok(Some(value))
}

fn rotate(view: &mut View<'_>, key: &[u8], from: End, to: End) -> Outcome<Option<Slice>> {
    let Some(mut head) = view.collection(key, Kind::List)? else { return Ok(None) };
    let position = if from == End::Left { head.first } else { head.end - 1 };
    let value = view.row(Space::Lists, &row(key, position))?;
    if let Some(value) = &value
        && from != to
    {
        view.delete_row(Space::Lists, &row(key, position));
        let target = match to {
            End::Left => {
                (head.first, head.end) = (head.first - 1, head.end - 1);
                head.first
            }
            End::Right => {
                (head.first, head.end) = (head.first + 1, head.end + 1);
                head.end - 1
            }
        };
        view.put_row(Space::Lists, row(key, target), &value[..])?;
    }
    view.put_head(key, &head)?;
    Ok(value)
}

fn rpoplpush(call: &mut Call<'_, '_>) -> Outcome {
    let (from, to) = ((call.args[1], End::Right), (call.args[2], End::Left));
    let value = move_one(&mut call.view, from, to)?;
    call.out.bulk_or_null(value.as_deref());
    Ok(())
}

fn lmove(call: &mut Call<'_, '_>) -> Outcome {
    let (from_end, to_end) = (End::of(call.args[3])?, End::of(call.args[4])?);
    let value = move_one(&mut call.view, (call.args[1], from_end), (call.args[2], to_end))?;
    call.out.bulk_or_null(value.as_deref());
    Ok(())
}

/// Reads the arguments after the keys of `LMPOP` and its like: an end, and a count.
///
/// # Errors
/// `syntax error`, and a count that is not above 0.
pub(super) fn end_and_count(rest: &[&[u8]]) -> Outcome<(End, u64)> {
    match rest {
        [end] => Ok((End::of(end)?, 1)),
        [end, word, count] if is(word, "COUNT") => match int(count) {
            Ok(count @ 1..) => Ok((End::of(end)?, count as u64)),
            _ => fail("ERR count should be greater than 0"),
        },
        _ => fail(SYNTAX),
    }
}

/// Pops from the first list that has elements; returns whether one had. The number of keys is at
/// `place`.
pub(super) fn lmpop(call: &mut Call<'_, '_>, place: usize) -> Outcome<bool> {
    let (keys, rest) = numbered_keys(call, place)?;
    let (end, count) = end_and_count(rest)?;
    for key in keys {
        let popped = pop_all(&mut call.view, key, end, count);
        let values = call.looked_for(popped)?;
        if !values.is_empty() {
            call.out.array(2);
            call.out.bulk(key);
            call.out.array(values.len());
            for value in &values {
                call.out.bulk(value);
                call.check_room()?;
            }
            return Ok(true);
        }
    }
    call.out.null_array();
    Ok(false)
}
