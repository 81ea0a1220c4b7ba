//! Commands that wait until a list or a sorted set has an element.
//!
//! Owns: the keys that each waits for, and the time. Never does: wait: the connection does, and
//! runs the command again when there is something.

use super::call::{Call, float};
use super::command::{Command, WRITE, keyed_at};
use super::lists::{self, End, lmpop, move_one, pop_all};
use super::sets::numbered_keys;
use super::sorted_sets::{self, Edge};
use crate::client::Blocked;
use crate::data::head::Kind;
use crate::fault::{Outcome, fail};

pub(super) const COMMANDS: &[Command] = &[
    keyed_at("blpop", -3, WRITE, (1, -2, 1), |call| blpop(call, End::Left)),
    keyed_at("brpop", -3, WRITE, (1, -2, 1), |call| blpop(call, End::Right)),
    keyed_at("blmove", 6, WRITE, (1, 2, 1), blmove),
    keyed_at("brpoplpush", 4, WRITE, (1, 2, 1), brpoplpush),
    keyed_at("blmpop", -5, WRITE, (3, -1, 1), blmpop),
    keyed_at("bzpopmin", -3, WRITE, (1, -2, 1), |call| bzpop(call, Edge::Min)),
    keyed_at("bzpopmax", -3, WRITE, (1, -2, 1), |call| bzpop(call, Edge::Max)),
    keyed_at("bzmpop", -5, WRITE, (3, -1, 1), bzmpop),
];

/// Reads the time of a wait: for ever if it is 0.
fn time(arg: &[u8]) -> Outcome<Option<std::time::Duration>> {
    let Some(seconds) = float(arg).ok().filter(|seconds| seconds.is_finite()) else {
        return fail("ERR timeout is not a float or out of range");
    };
    if seconds < 0.0 {
        return fail("ERR timeout is negative");
    }
    match std::time::Duration::try_from_secs_f64(seconds) {
        Ok(time) if time.as_secs() < 1 << 40 => Ok((seconds > 0.0).then_some(time)),
        _ => fail("ERR timeout is out of range"),
    }
}

/// Has the client wait for `keys`, which have nothing yet; where it may not wait, replies so.
fn block(call: &mut Call<'_, '_>, keys: &[&[u8]], arg: &[u8], is_array: bool) -> Outcome {
    let time = time(arg)?;
    if call.view.is_within {
        match is_array {
            true => call.out.null_array(),
            false => call.out.null(),
        }
        return Ok(());
    }
    let mut passes_on = false;
    for key in keys {
        passes_on |= call.view.exists(key)?;
    }
    let keys = keys.iter().map(|key| key.to_vec()).collect();
    call.client.blocked = Some(Blocked { keys, time, is_array, args: None, passes_on });
    Ok(())
}

fn blpop(call: &mut Call<'_, '_>, end: End) -> Outcome {
    let (keys, timeout) = (&call.args[1..call.args.len() - 1], call.args[call.args.len() - 1]);
    time(timeout)?;
    for key in keys {
        let popped = pop_all(&mut call.view, key, end, 1);
        if let Some(value) = call.looked_for(popped)?.pop() {
            call.out.array(2);
            call.out.bulk(key);
            call.out.bulk(&value);
            return Ok(());
        }
    }
    block(call, keys, timeout, true)
}

fn blmove(call: &mut Call<'_, '_>) -> Outcome {
    let (from_end, to_end) = (End::of(call.args[3])?, End::of(call.args[4])?);
    move_or_block(call, from_end, to_end, call.args[5])
}

fn brpoplpush(call: &mut Call<'_, '_>) -> Outcome {
    move_or_block(call, End::Right, End::Left, call.args[3])
}

fn move_or_block(call: &mut Call<'_, '_>, from_end: End, to_end: End, timeout: &[u8]) -> Outcome {
    time(timeout)?;
    let (from, to) = (call.args[1], call.args[2]);
    // The other list's kind is checked once there is something to move.
    let list = call.looked_for(call.view.collection(from, Kind::List))?;
    let moved = match list.is_some() {
        true => move_one(&mut call.view, (from, from_end), (to, to_end))?,
        false => None,
    };
    match moved {
        Some(value) => {
            call.out.bulk(&value);
            Ok(())
        }
        None => block(call, &[from], timeout, false),
    }
}

fn blmpop(call: &mut Call<'_, '_>) -> Outcome {
    time(call.args[1])?;
    let begin = call.out.len();
    if lmpop(call, 2)? {
        return Ok(());
    }
    call.out.truncate(begin);
    let (keys, rest) = numbered_keys(call, 2)?;
    lists::end_and_count(rest)?;
    block(call, keys, call.args[1], true)
}

fn bzpop(call: &mut Call<'_, '_>, edge: Edge) -> Outcome {
    let (keys, timeout) = (&call.args[1..call.args.len() - 1], call.args[call.args.len() - 1]);
    time(timeout)?;
    for key in keys {
        let popped = sorted_sets::pop(&mut call.view, key, edge, 1);
        if let Some((member, score)) = call.looked_for(popped)?.pop() {
            call.out.array(3);
            call.out.bulk(key);
            call.out.bulk(&member);
            call.out.double(score);
            return Ok(());
        }
    }
    block(call, keys, timeout, true)
}

fn bzmpop(call: &mut Call<'_, '_>) -> Outcome {
    time(call.args[1])?;
    let begin = call.out.len();
    if sorted_sets::zmpop(call, 2)? {
        return Ok(());
    }
    call.out.truncate(begin);
    let (keys, _) = numbered_keys(call, 2)?;
    block(call, keys, call.args[1], true)
}
