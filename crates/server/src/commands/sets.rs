//! Sets: `SADD`, `SINTER` and their like.
//!
//! Owns: their arguments and replies, and the combination of sets. Never does: know how rows are
//! laid out.

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::random;
use crate::data::element;
use crate::data::head::{Head, Kind};
use crate::data::rows::Rows;
use crate::data::rows_ahead::RowsAhead;
use crate::data::space::Space;
use crate::data::view::View;
use crate::fault::{OUT_OF_RANGE, Outcome, SYNTAX, fail};
use std::iter::Peekable;

pub(super) const COMMANDS: &[Command] = &[
    keyed("sadd", -3, WRITE, sadd).reads(members),
    keyed("srem", -3, WRITE, srem).reads(members),
    keyed("sismember", 3, READ, sismember).reads(members),
    keyed("smismember", -3, READ, smismember).reads(members),
    keyed("smembers", 2, READ, |call| reply_combined(call, Operation::Union)),
    keyed("scard", 2, READ, scard),
    keyed("spop", -2, WRITE, spop),
    keyed("srandmember", -2, READ, srandmember),
    keyed_at("smove", 4, WRITE, (1, 2, 1), smove),
    keyed_at("sinter", -2, READ, (1, -1, 1), |call| reply_combined(call, Operation::Inter)),
    keyed_at("sunion", -2, READ, (1, -1, 1), |call| reply_combined(call, Operation::Union)),
    keyed_at("sdiff", -2, READ, (1, -1, 1), |call| reply_combined(call, Operation::Diff)),
    keyed_at("sinterstore", -3, WRITE, (1, -1, 1), |call| store(call, Operation::Inter)),
    keyed_at("sunionstore", -3, WRITE, (1, -1, 1), |call| store(call, Operation::Union)),
    keyed_at("sdiffstore", -3, WRITE, (1, -1, 1), |call| store(call, Operation::Diff)),
    keyed_at("sintercard", -3, READ, (2, -1, 1), sintercard),
];

/// Adds the rows of members.
fn members(args: &[&[u8]], rows: &mut RowsAhead) {
    args[2..].iter().for_each(|member| rows.add_element(Space::Sets, args[1], member));
}

fn has(view: &View<'_>, key: &[u8], head: &Head, member: &[u8]) -> Outcome<bool> {
    Ok(!head.is_empty() && view.has_row(Space::Sets, &element::row(key, member))?)
}

fn sadd(call: &mut Call<'_, '_>) -> Outcome {
    let added = add(&mut call.view, call.args[1], &call.args[2..])?;
    call.out.int(added);
    Ok(())
}

/// Adds members; returns how many are new.
fn add(view: &mut View<'_>, key: &[u8], members: &[&[u8]]) -> Outcome<i64> {
    let mut head = view.collection_to_write(key, Kind::Set)?;
    let mut added = 0;
    for member in members {
        if !has(view, key, &head, member)? {
            view.put_row(Space::Sets, element::row(key, member), b"")?;
            head.end += 1;
            added += 1;
        }
    }
    if added > 0 {
        view.put_head(key, &head)?;
    }
    Ok(added)
}

fn srem(call: &mut Call<'_, '_>) -> Outcome {
    let removed = remove(&mut call.view, call.args[1], &call.args[2..])?;
    call.out.int(removed);
    Ok(())
}

/// Removes members; returns how many were in the set.
fn remove(view: &mut View<'_>, key: &[u8], members: &[&[u8]]) -> Outcome<i64> {
    let Some(mut head) = view.collection(key, Kind::Set)? else { return Ok(0) };
    let mut removed = 0;
    for member in members {
        if has(view, key, &head, member)? {
            view.delete_row(Space::Sets, &element::row(key, member));
            head.end -= 1;
            removed += 1;
        }
    }
    if removed > 0 {
        view.put_head(key, &head)?;
    }
    Ok(removed)
}

fn sismember(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Set)?;
    let is_in = has(&call.view, call.key(), &head, call.args[2])?;
    call.out.one_if(is_in);
    Ok(())
}

fn smismember(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Set)?;
    call.out.array(call.args.len() - 2);
    for member in &call.args[2..] {
        let is_in = has(&call.view, call.key(), &head, member)?;
        call.out.one_if(is_in);
    }
    Ok(())
}

fn scard(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Set)?;
    call.out.int(i64::try_from(head.len()).unwrap_or(i64::MAX));
    Ok(())
}

fn spop(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Set)?;
    let count = match call.args {
        [_, _] => None,
        [_, _, count] => match int(count)? {
            count @ 0.. => Some(count),
            _ => return fail(format!("{OUT_OF_RANGE}, must be positive")),
        },
        _ => return fail(SYNTAX),
    };
    let prefix = element::prefix(call.key());
    let members: Vec<Vec<u8>> =
        random::rows(&call.view, Space::Sets, &prefix, head.len(), count.unwrap_or(1))?
            .iter()
            .map(|(row, _)| element::rest(call.key(), row).to_vec())
            .collect();
    let popped: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
    remove(&mut call.view, call.args[1], &popped)?;
    if count.is_none() {
        call.out.bulk_or_null(popped.first().copied());
        return Ok(());
    }
    call.out.set(popped.len());
    for member in popped {
        call.out.bulk(member);
        call.check_room()?;
    }
    Ok(())
}

fn srandmember(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Set)?;
    let count = match call.args {
        [_, _] => None,
        [_, _, count] => Some(random::count(count, false)?),
        _ => return fail(SYNTAX),
    };
    let prefix = element::prefix(call.key());
    let rows = random::rows(&call.view, Space::Sets, &prefix, head.len(), count.unwrap_or(1))?;
    if count.is_some() {
        call.out.array(rows.len());
    } else if rows.is_empty() {
        call.out.null();
    }
    for (row, _) in rows {
        call.out.bulk(element::rest(call.key(), &row));
        call.check_room()?;
    }
    Ok(())
}

fn smove(call: &mut Call<'_, '_>) -> Outcome {
    let (from, to, member) = (call.args[1], call.args[2], call.args[3]);
    let head = call.view.collection_or_empty(from, Kind::Set)?;
    call.view.collection(to, Kind::Set)?;
    let is_there = has(&call.view, from, &head, member)?;
    if is_there && from != to {
        remove(&mut call.view, from, &[member])?;
        add(&mut call.view, to, &[member])?;
    }
    call.out.one_if(is_there);
    Ok(())
}

// ---- several sets

/// An operation that combines several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Union,
    Inter,
    Diff,
}

/// Passes the members of the combined sets, in their order, to `visit`, which returns whether to go
/// on.
fn combine(
    view: &View<'_>,
    keys: &[&[u8]],
    operation: Operation,
    mut visit: impl FnMut(&[u8]) -> Outcome<bool>,
) -> Outcome {
    let mut heads = Vec::new();
    for key in keys {
        heads.push((*key, view.collection_or_empty(key, Kind::Set)?));
    }
    if operation == Operation::Inter {
        return intersect(view, heads, visit);
    }
    if operation == Operation::Diff && heads[0].1.is_empty() {
        return Ok(());
    }
    // All are in one order: one walk over them together.
    let mut walks: Vec<(&[u8], Peekable<Rows>)> = Vec::new();
    for (key, _) in heads.iter().filter(|(_, head)| !head.is_empty()) {
        walks.push((key, view.rows_of(Space::Sets, &element::prefix(key)).peekable()));
    }
    loop {
        let mut least: Option<Vec<u8>> = None;
        for (key, walk) in &mut walks {
            match walk.peek() {
                Some(Ok((row, _))) => {
                    let member = element::rest(key, row);
                    if least.as_ref().is_none_or(|least| member < &least[..]) {
                        least = Some(member.to_vec());
                    }
                }
                Some(Err(_)) => {
                    if let Some(Err(error)) = walk.next() {
                        return Err(error.into());
                    }
                }
                None => {}
            }
        }
        let Some(least) = least else { return Ok(()) };
        let mut places = Vec::new();
        for (place, (key, walk)) in walks.iter_mut().enumerate() {
            if let Some(Ok((row, _))) = walk.peek()
                && element::rest(key, row) == least
            {
                walk.next();
                places.push(place);
            }
        }
        let is_in = operation == Operation::Union || places == [0];
        if is_in && !visit(&least)? {
            return Ok(());
        }
        if operation == Operation::Diff && walks[0].1.peek().is_none() {
            return Ok(());
        }
    }
}

fn intersect(
    view: &View<'_>,
    mut heads: Vec<(&[u8], Head)>,
    mut visit: impl FnMut(&[u8]) -> Outcome<bool>,
) -> Outcome {
    heads.sort_by_key(|(_, head)| head.len());
    let (least, _) = heads[0];
    if heads[0].1.is_empty() {
        return Ok(());
    }
    for row in view.rows_of(Space::Sets, &element::prefix(least)) {
        let (row, _) = row?;
        let member = element::rest(least, &row);
        let mut is_in_all = true;
        for (key, head) in &heads[1..] {
            is_in_all = is_in_all && has(view, key, head, member)?;
        }
        if is_in_all && !visit(member)? {
            break;
        }
    }
    Ok(())
}

fn reply_combined(call: &mut Call<'_, '_>, operation: Operation) -> Outcome {
    let mut members = Vec::new();
    let (mut bytes, bytes_max) = (0, call.shared.config.reply_bytes_max);
    combine(&call.view, &call.args[1..], operation, |member| {
        bytes += member.len();
        members.push(member.to_vec());
        Ok(bytes <= bytes_max)
    })?;
    call.out.set(members.len());
    for member in &members {
        call.out.bulk(member);
        call.check_room()?;
    }
    // If it ended early, the reply has no room for the members so far.
    if bytes > bytes_max { call.check_room() } else { Ok(()) }
}

fn store(call: &mut Call<'_, '_>, operation: Operation) -> Outcome {
    let target = call.key();
    let mut members = Vec::new();
    combine(&call.view, &call.args[2..], operation, |member| {
        call.view.keep(member.len())?;
        members.push(member.to_vec());
        Ok(true)
    })?;
    call.view.remove(target)?;
    if !members.is_empty() {
        for member in &members {
            call.view.put_row(Space::Sets, element::row(target, member), b"")?;
        }
        let head = Head { end: members.len() as u64, ..Head::new(Kind::Set) };
        call.view.put_head(target, &head)?;
    }
    call.out.count(members.len());
    Ok(())
}

fn sintercard(call: &mut Call<'_, '_>) -> Outcome {
    let (keys, rest) = numbered_keys(call, 1)?;
    let limit = limit(rest)?;
    let mut count = 0;
    combine(&call.view, keys, Operation::Inter, |_| {
        count += 1;
        Ok(count != limit)
    })?;
    call.out.count(count);
    Ok(())
}

/// Reads the most that are counted from the arguments after the keys: all without `LIMIT`, and with
/// 0.
///
/// # Errors
/// `syntax error`, and a negative number.
pub(super) fn limit(rest: &[&[u8]]) -> Outcome<usize> {
    match rest {
        [] => Ok(usize::MAX),
        [word, limit] if is(word, "LIMIT") => match int(limit).map(usize::try_from) {
            Ok(Ok(0)) => Ok(usize::MAX),
            Ok(Ok(limit)) => Ok(limit),
            _ => fail("ERR LIMIT can't be negative"),
        },
        _ => fail(SYNTAX),
    }
}

/// A part of the arguments.
pub(super) type Args<'c> = &'c [&'c [u8]];

/// Returns the keys, whose number is the argument at `place`, and the arguments after them.
///
/// # Errors
/// Fewer arguments than that number.
pub(super) fn numbered_keys<'c>(
    call: &Call<'c, '_>,
    place: usize,
) -> Outcome<(Args<'c>, Args<'c>)> {
    let number = match int(call.arg(place)?).ok().and_then(|number| usize::try_from(number).ok()) {
        Some(number @ 1..) => number,
        _ => return fail("ERR numkeys should be greater than 0"),
    };
    let rest = &call.args[place + 1..];
    if number > rest.len() {
        return fail("ERR Number of keys can't be greater than number of args");
    }
    Ok(rest.split_at(number))
}
