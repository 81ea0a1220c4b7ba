//! Strings: `GET`, `SET`, `INCR` and their like.
//!
//! Owns: their arguments and replies. Never does: know rows.

use super::call::{Call, float, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::deadline::{MILLISECONDS, SECONDS, Unit};
use crate::data::rows_ahead::RowsAhead;
use crate::data::value::Value;
use crate::fault::{Outcome, SYNTAX, WRONG_TYPE, fail};
use crate::protocol::number::{add_f64, push_i64};

/// The longest string: the longest argument that a client may send.
const STRING_BYTES_MAX: usize = 512 << 20;

pub(super) const COMMANDS: &[Command] = &[
    keyed("get", 2, READ, get).reads(|args, rows| rows.add_string(args[1])),
    keyed("set", -3, WRITE, set).reads(|args, rows| rows.add_head(args[1])),
    keyed("setnx", 3, WRITE, setnx),
    keyed("setex", 4, WRITE, |call| set_with_ttl(call, SECONDS, "setex")),
    keyed("psetex", 4, WRITE, |call| set_with_ttl(call, MILLISECONDS, "psetex")),
    keyed("getset", 3, WRITE, getset),
    keyed("getdel", 2, WRITE, getdel),
    keyed("getex", -2, WRITE, getex),
    keyed_at("mget", -2, READ, (1, -1, 1), mget)
        .reads(|args, rows| args[1..].iter().for_each(|key| rows.add_string(key))),
    keyed_at("mset", -3, WRITE, (1, -1, 2), mset)
        .reads(|args, rows| args[1..].iter().step_by(2).for_each(|key| rows.add_head(key))),
    keyed_at("msetnx", -3, WRITE, (1, -1, 2), msetnx),
    keyed("append", 3, WRITE, append).reads(both),
    keyed("strlen", 2, READ, strlen).reads(|args, rows| rows.add_string(args[1])),
    keyed("setrange", 4, WRITE, setrange),
    keyed("getrange", 4, READ, getrange),
    keyed("substr", 4, READ, getrange),
    keyed("incr", 2, WRITE, |call| add(call, 1)).reads(both),
    keyed("decr", 2, WRITE, |call| add(call, -1)).reads(both),
    keyed("incrby", 3, WRITE, |call| add(call, int(call.args[2])?)).reads(both),
    keyed("decrby", 3, WRITE, decrby).reads(both),
    keyed("incrbyfloat", 3, WRITE, incrbyfloat).reads(both),
];

/// Adds the string and the head of the first key.
fn both(args: &[&[u8]], rows: &mut RowsAhead) {
    rows.add_string(args[1]);
    rows.add_head(args[1]);
}

fn get(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.view.string(call.key())?;
    call.out.bulk_or_null(value.as_deref());
    Ok(())
}

/// The options of `SET`.
#[derive(Default)]
struct SetOptions {
    deadline_ms: Option<u64>,
    keeps_ttl: bool,
    only_if_absent: bool,
    only_if_there: bool,
    gets: bool,
}

impl SetOptions {
    fn of(call: &Call<'_, '_>) -> Outcome<SetOptions> {
        let mut options = SetOptions::default();
        let mut at = 3;
        while let Some(arg) = call.args.get(at) {
            let has_time = options.deadline_ms.is_some() || options.keeps_ttl;
            if is(arg, "NX") && !options.only_if_there {
                options.only_if_absent = true;
            } else if is(arg, "XX") && !options.only_if_absent {
                options.only_if_there = true;
            } else if is(arg, "GET") {
                options.gets = true;
            } else if is(arg, "KEEPTTL") && !has_time {
                options.keeps_ttl = true;
            } else if let Some(unit) = Unit::of_option(arg)
                && !has_time
            {
                at += 1;
                let now_ms = call.view.now_ms();
                options.deadline_ms = Some(unit.deadline_ms(call.arg(at)?, now_ms, "set")?);
            } else {
                return fail(SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn set(call: &mut Call<'_, '_>) -> Outcome {
    let (key, value) = (call.key(), call.args[2]);
    if call.args.len() == 3 {
        call.view.set_string(key, value, None)?;
        call.out.ok();
        return Ok(());
    }
    let mut options = SetOptions::of(call)?;
    let before = match options.gets {
        true => call.view.string(key)?,
        false => None,
    };
    let asks = options.only_if_absent || options.only_if_there;
    let is_refused = asks && call.view.exists(key)? == options.only_if_absent;
    if !is_refused {
        if options.keeps_ttl {
            options.deadline_ms = call.view.value(key)?.and_then(|value| value.deadline_ms());
        }
        call.view.set_string(key, value, options.deadline_ms)?;
    }
    match (options.gets, is_refused) {
        (true, _) => call.out.bulk_or_null(before.as_deref()),
        (false, true) => call.out.null(),
        (false, false) => call.out.ok(),
    }
    Ok(())
}

fn setnx(call: &mut Call<'_, '_>) -> Outcome {
    let is_new = !call.view.exists(call.key())?;
    if is_new {
        call.view.set_string(call.key(), call.args[2], None)?;
    }
    call.out.one_if(is_new);
    Ok(())
}

fn set_with_ttl(call: &mut Call<'_, '_>, unit: Unit, name: &str) -> Outcome {
    let deadline_ms = unit.deadline_ms(call.args[2], call.view.now_ms(), name)?;
    call.view.set_string(call.key(), call.args[3], Some(deadline_ms))?;
    call.out.ok();
    Ok(())
}

fn getset(call: &mut Call<'_, '_>) -> Outcome {
    let before = call.view.string(call.key())?;
    call.view.set_string(call.key(), call.args[2], None)?;
    call.out.bulk_or_null(before.as_deref());
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Outcome {
    let before = call.view.string(call.key())?;
    if before.is_some() {
        call.view.remove(call.key())?;
    }
    call.out.bulk_or_null(before.as_deref());
    Ok(())
}

fn getex(call: &mut Call<'_, '_>) -> Outcome {
    let deadline_ms = match call.args {
        [_, _] => None,
        [_, _, word] if is(word, "PERSIST") => Some(None),
        [_, _, word, number] => match Unit::of_option(word) {
            Some(unit) => Some(Some(unit.deadline_ms(number, call.view.now_ms(), "getex")?)),
            None => return fail(SYNTAX),
        },
        _ => return fail(SYNTAX),
    };
    let (string, before_ms) = call.view.string_until(call.key())?;
    if let (Some(string), Some(deadline_ms)) = (&string, deadline_ms)
        && deadline_ms != before_ms
    {
        let value = Value::String(string.clone(), before_ms);
        call.view.set_deadline(call.key(), &value, deadline_ms)?;
    }
    call.out.bulk_or_null(string.as_deref());
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Outcome {
    call.out.array(call.args.len() - 1);
    for key in &call.args[1..] {
        match call.view.string(key) {
            Ok(value) => call.out.bulk_or_null(value.as_deref()),
            Err(fault) if fault.0 == WRONG_TYPE => call.out.null(),
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

fn mset(call: &mut Call<'_, '_>) -> Outcome {
    set_pairs(call)?;
    call.out.ok();
    Ok(())
}

fn set_pairs(call: &mut Call<'_, '_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return call.wrong_number();
    }
    for pair in call.args[1..].chunks_exact(2) {
        call.view.set_string(pair[0], pair[1], None)?;
    }
    Ok(())
}

fn msetnx(call: &mut Call<'_, '_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return call.wrong_number();
    }
    for key in call.args[1..].iter().step_by(2) {
        if call.view.exists(key)? {
            call.out.int(0);
            return Ok(());
        }
    }
    set_pairs(call)?;
    call.out.int(1);
    Ok(())
}

fn append(call: &mut Call<'_, '_>) -> Outcome {
    let (before, deadline_ms) = call.view.string_until(call.key())?;
    let mut string = before.map(|before| before.to_vec()).unwrap_or_default();
    check_len(string.len(), call.args[2].len())?;
    string.extend_from_slice(call.args[2]);
    call.view.put_string(call.key(), &string, deadline_ms)?;
    call.out.count(string.len());
    Ok(())
}

/// # Errors
/// A string that would be too long.
pub(super) fn check_len(offset: usize, more: usize) -> Outcome {
    if offset.saturating_add(more) > STRING_BYTES_MAX {
        return fail("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    }
    Ok(())
}

fn strlen(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.view.string(call.key())?;
    call.out.count(value.map_or(0, |value| value.len()));
    Ok(())
}

fn setrange(call: &mut Call<'_, '_>) -> Outcome {
    let Ok(offset) = usize::try_from(call.int(2)?) else {
        return fail("ERR offset is out of range");
    };
    let part = call.args[3];
    let (before, deadline_ms) = call.view.string_until(call.key())?;
    let mut string = before.map(|before| before.to_vec()).unwrap_or_default();
    if !part.is_empty() {
        check_len(offset, part.len())?;
        let end = offset + part.len();
        string.resize(string.len().max(end), 0);
        string[offset..end].copy_from_slice(part);
        call.view.put_string(call.key(), &string, deadline_ms)?;
    }
    call.out.count(string.len());
    Ok(())
}

fn getrange(call: &mut Call<'_, '_>) -> Outcome {
    let (begin, end) = (call.int(2)?, call.int(3)?);
    let string = call.view.string(call.key())?.unwrap_or_else(|| windrow::Slice::copy_from(b""));
    let range = range(begin, end, string.len());
    call.out.bulk(&string[range]);
    Ok(())
}

/// Returns the range from a first to a last place, which count from the end where they are
/// negative.
pub(super) fn range(begin: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let len_i64 = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |place: i64| if place < 0 { place.saturating_add(len_i64) } else { place };
    let (begin, end) = (from_end(begin).max(0), from_end(end).min(len_i64 - 1));
    if begin > end || len == 0 { 0..0 } else { begin as usize..end as usize + 1 }
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Outcome {
    let (before, deadline_ms) = call.view.string_until(call.key())?;
    let before = before.map_or(Ok(0), |before| int(&before))?;
    let Some(sum) = before.checked_add(by) else {
        return fail("ERR increment or decrement would overflow");
    };
    let mut text = Vec::with_capacity(20);
    push_i64(&mut text, sum);
    call.view.put_string(call.key(), &text, deadline_ms)?;
    call.out.int(sum);
    Ok(())
}

fn decrby(call: &mut Call<'_, '_>) -> Outcome {
    match call.int(2)?.checked_neg() {
        Some(by) => add(call, by),
        None => fail("ERR decrement would overflow"),
    }
}

fn incrbyfloat(call: &mut Call<'_, '_>) -> Outcome {
    let (before, deadline_ms) = call.view.string_until(call.key())?;
    let text = sum(before.as_deref().unwrap_or(b"0"), call.args[2])?;
    call.view.put_string(call.key(), text.as_bytes(), deadline_ms)?;
    call.out.bulk(text.as_bytes());
    Ok(())
}

/// Returns the sum of two numbers as text.
///
/// # Errors
/// A text that is no number, or a sum that is none.
pub(super) fn sum(a: &[u8], b: &[u8]) -> Outcome<String> {
    float(a)?;
    float(b)?;
    add_f64(a, b).map_or_else(|| fail("ERR increment would produce NaN or Infinity"), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_said_from_either_end() {
        assert_eq!(range(0, -1, 5), 0..5);
        assert_eq!(range(-3, -1, 5), 2..5);
        assert_eq!(range(5, 9, 5), 0..0);
        assert_eq!(range(-100, 100, 5), 0..5);
        assert_eq!(range(3, 1, 5), 0..0);
        assert_eq!(range(0, 0, 0), 0..0);
        assert_eq!(range(i64::MIN, i64::MAX, 2), 0..2);
    }
}
