//! Keys with values of any kind: `DEL`, `RENAME`, `KEYS` and their like.
//!
//! Owns: their arguments and replies. Never does: know the contents of a value (`scans.rs` walks
//! keys, `expiry.rs` has deadlines).

use super::call::{Call, is};
use super::command::{Command, EXCLUSIVE, READ, SLOW, WRITE, keyed, keyed_at, plain};
use super::random::{Random, between};
use crate::data::element;
use crate::data::head::{Head, Kind};
use crate::data::keys::keys as all_keys;
use crate::data::space::{SPACES, Space};
use crate::data::value::{Value, deadline_row, spaces_of};
use crate::data::view::View;
use crate::fault::{NO_KEY, Outcome, SYNTAX, fail};
use crate::glob::Pattern;
use std::ops::Bound;

/// Up to this number, keys are counted one by one; of more the reply is an estimate.
const COUNTED_MAX: u64 = 1_000_000;

pub(super) const COMMANDS: &[Command] = &[
    keyed_at("del", -2, WRITE, (1, -1, 1), del),
    keyed_at("unlink", -2, WRITE, (1, -1, 1), del),
    keyed_at("exists", -2, READ, (1, -1, 1), exists),
    keyed_at("touch", -2, READ, (1, -1, 1), exists),
    keyed("type", 2, READ, kind),
    keyed_at("rename", 3, WRITE, (1, 2, 1), |call| rename(call, true)),
    keyed_at("renamenx", 3, WRITE, (1, 2, 1), |call| rename(call, false)),
    keyed_at("copy", -3, WRITE, (1, 2, 1), copy),
    keyed("move", 3, WRITE, move_away),
    plain("keys", 2, READ | SLOW, keys),
    plain("randomkey", 1, READ, randomkey),
    plain("dbsize", 1, READ | SLOW, dbsize),
    plain("flushall", -1, WRITE | EXCLUSIVE, flush),
    plain("flushdb", -1, WRITE | EXCLUSIVE, flush),
    keyed_at("object", -2, READ, (2, 2, 1), object),
];

fn del(call: &mut Call<'_, '_>) -> Outcome {
    let mut deleted = 0;
    for key in &call.args[1..] {
        deleted += i64::from(call.view.remove(key)?);
    }
    call.out.int(deleted);
    Ok(())
}

fn exists(call: &mut Call<'_, '_>) -> Outcome {
    let mut found = 0;
    for key in &call.args[1..] {
        found += i64::from(call.view.exists(key)?);
    }
    call.out.int(found);
    Ok(())
}

fn kind(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.view.value(call.key())?;
    call.out.simple(value.map_or("none", |value| value.kind().name()));
    Ok(())
}

/// Copies the value of `from` to `to`, which has none.
fn copy_value(view: &mut View<'_>, from: &[u8], to: &[u8], value: &Value) -> Outcome {
    let head = match value {
        Value::String(string, deadline_ms) => return view.set_string(to, string, *deadline_ms),
        Value::Collection(head) => head,
    };
    for space in spaces_of(head.kind) {
        let rows: Vec<_> = view
            .gather(view.rows_of(*space, &element::prefix(from)))
            .collect::<windrow::Result<_>>()?;
        for (row, value) in rows {
            view.put_row(*space, element::row(to, element::rest(from, &row)), &value[..])?;
        }
    }
    if let Some(deadline_ms) = head.deadline_ms {
        view.put_row(Space::Deadlines, deadline_row(deadline_ms, to), b"")?;
    }
    view.put_head(to, head)?;
    view.note_fresh(to);
    Ok(())
}

fn rename(call: &mut Call<'_, '_>, replaces: bool) -> Outcome {
    let (from, to) = (call.key(), call.args[2]);
    let Some(value) = call.view.value(from)? else { return fail(NO_KEY) };
    let is_refused = !replaces && call.view.exists(to)?;
    if !is_refused && from != to {
        call.view.remove(to)?;
        copy_value(&mut call.view, from, to, &value)?;
        call.view.remove(from)?;
    }
    match replaces {
        true => call.out.ok(),
        false => call.out.one_if(!is_refused),
    }
    Ok(())
}

fn copy(call: &mut Call<'_, '_>) -> Outcome {
    let (from, to) = (call.key(), call.args[2]);
    let mut replaces = false;
    let mut at = 3;
    while let Some(word) = call.args.get(at) {
        if is(word, "REPLACE") {
            replaces = true;
        } else if is(word, "DB") {
            at += 1;
            check_database(call.int(at)?)?;
        } else {
            return fail(SYNTAX);
        }
        at += 1;
    }
    if from == to {
        return fail("ERR source and destination objects are the same");
    }
    let value = call.view.value(from)?;
    let is_refused = !replaces && call.view.exists(to)?;
    let copied = match value {
        Some(value) if !is_refused => {
            call.view.remove(to)?;
            copy_value(&mut call.view, from, to, &value)?;
            true
        }
        _ => false,
    };
    call.out.one_if(copied);
    Ok(())
}

/// # Errors
/// Any number but 0: there is no other database.
pub(super) fn check_database(number: i64) -> Outcome {
    if number == 0 { Ok(()) } else { fail("ERR DB index is out of range: there is database 0") }
}

fn move_away(call: &mut Call<'_, '_>) -> Outcome {
    check_database(call.int(2)?)?;
    fail("ERR source and destination objects are the same")
}

fn keys(call: &mut Call<'_, '_>) -> Outcome {
    let pattern = Pattern::new(call.args[1])?;
    let prefix = pattern.literal_prefix();
    let (mut found, mut bytes) = (Vec::new(), 0);
    if let Some(key) = pattern.only_key() {
        if call.view.exists(key)? {
            found.push(windrow::Slice::copy_from(key));
        }
    } else {
        for key in all_keys(&call.view, Bound::Included(prefix.to_vec())) {
            let (key, _) = key?;
            if !key.starts_with(prefix) {
                break;
            }
            if pattern.matches(&key) {
                bytes += key.len();
                found.push(key);
            }
            if bytes > call.shared.config.reply_bytes_max {
                // There is no room for more keys.
                break;
            }
        }
    }
    call.out.array(found.len());
    for key in found {
        call.out.bulk(&key);
        call.check_room()?;
    }
    Ok(())
}

/// Replies with a key near a random place between the first and the last key, taken as numbers.
/// Where keys are few, all are equally likely.
fn randomkey(call: &mut Call<'_, '_>) -> Outcome {
    const FEW: usize = 64;
    let mut random = Random::new();
    let mut first = Vec::new();
    for key in all_keys(&call.view, Bound::Unbounded).take(FEW) {
        first.push(key?.0);
    }
    if first.len() < FEW {
        let place = random.below(first.len() as u64) as usize;
        call.out.bulk_or_null(first.get(place).map(|key| &**key));
        return Ok(());
    }
    let mut last = first[0].clone();
    for space in [Space::Strings, Space::Heads] {
        let mut rows = call.view.rows(space, Bound::Unbounded, Bound::Unbounded);
        if let Some(row) = rows.next_back() {
            last = last.max(row?.0);
        }
    }
    let from = between(&first[0], &last);
    let key = match all_keys(&call.view, Bound::Included(from)).next() {
        Some(key) => key?.0,
        None => first[random.below(FEW as u64) as usize].clone(),
    };
    call.out.bulk(&key);
    Ok(())
}

fn dbsize(call: &mut Call<'_, '_>) -> Outcome {
    let mut about = 0;
    for space in [Space::Strings, Space::Heads] {
        about += call.view.store.spaces.get(space).approximate_len()?;
    }
    let mut count = 0;
    for key in all_keys(&call.view, Bound::Unbounded) {
        key?;
        count += 1;
        if count == COUNTED_MAX {
            count = count.max(about);
            break;
        }
    }
    call.out.int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

fn flush(call: &mut Call<'_, '_>) -> Outcome {
    match call.args {
        [_] => {}
        [_, word] if is(word, "SYNC") || is(word, "ASYNC") => {}
        _ => return fail(SYNTAX),
    }
    let view = &mut call.view;
    let store = view.store;
    store.watched.touch_where(|key| view.exists(key).unwrap_or(true));
    for space in SPACES {
        if view.rows(space, Bound::Unbounded, Bound::Unbounded).next().is_some() {
            view.delete_rows(space, b"");
        }
    }
    store.waiting.keys().iter().for_each(|key| view.note_fresh(key));
    call.out.ok();
    Ok(())
}

// ---- OBJECT

/// Returns Redis' name for the way in which it would keep a value. Here all are rows.
fn encoding(value: &Value) -> &'static str {
    /// Redis keeps a collection of up to this number of elements in one piece.
    const SMALL: u64 = 128;
    match value {
        Value::String(string, _) if super::call::int(string).is_ok() => "int",
        Value::String(string, _) if string.len() <= 44 => "embstr",
        Value::String(..) => "raw",
        Value::Collection(Head { kind: Kind::List, .. }) => "quicklist",
        Value::Collection(Head { kind: Kind::Stream, .. }) => "stream",
        Value::Collection(head) if head.len() <= SMALL => "listpack",
        Value::Collection(Head { kind: Kind::SortedSet, .. }) => "skiplist",
        Value::Collection(_) => "hashtable",
    }
}

fn object(call: &mut Call<'_, '_>) -> Outcome {
    let word = call.args[1];
    if is(word, "HELP") {
        call.out.array(1);
        call.out.simple("OBJECT ENCODING|FREQ|IDLETIME|REFCOUNT <key>");
        return Ok(());
    }
    if call.args.len() != 3
        || !["ENCODING", "FREQ", "IDLETIME", "REFCOUNT"].iter().any(|w| is(word, w))
    {
        let word = String::from_utf8_lossy(word);
        return fail(format!(
            "ERR Unknown subcommand or wrong number of arguments for '{word}'. Try OBJECT HELP."
        ));
    }
    let Some(value) = call.view.value(call.args[2])? else {
        call.out.null();
        return Ok(());
    };
    match word {
        word if is(word, "ENCODING") => call.out.bulk(encoding(&value).as_bytes()),
        word if is(word, "REFCOUNT") => call.out.int(1),
        _ => call.out.int(0),
    }
    Ok(())
}
