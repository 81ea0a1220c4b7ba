//! Hashes: `HSET`, `HGETALL` and their like.
//!
//! Owns: their arguments and replies. Never does: know how rows are laid out.

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed};
use super::random;
use super::strings::sum;
use crate::data::element;
use crate::data::field::Field;
use crate::data::head::{Head, Kind};
use crate::data::rows_ahead::RowsAhead;
use crate::data::space::Space;
use crate::fault::{Fault, NOT_FLOAT, Outcome, SYNTAX, fail};
use crate::protocol::Dialect;
use crate::protocol::number::push_i64;
use windrow::Slice;

pub(super) const COMMANDS: &[Command] = &[
    keyed("hset", -4, WRITE, |call| hset(call, true)).reads(|args, rows| fields(args, 2, rows)),
    keyed("hmset", -4, WRITE, |call| hset(call, false)).reads(|args, rows| fields(args, 2, rows)),
    keyed("hsetnx", 4, WRITE, hsetnx).reads(|args, rows| fields(args, 2, rows)),
    keyed("hget", 3, READ, hget).reads(|args, rows| fields(args, 1, rows)),
    keyed("hmget", -3, READ, hmget).reads(|args, rows| fields(args, 1, rows)),
    keyed("hgetall", 2, READ, |call| list(call, true, true)),
    keyed("hkeys", 2, READ, |call| list(call, true, false)),
    keyed("hvals", 2, READ, |call| list(call, false, true)),
    keyed("hdel", -3, WRITE, hdel).reads(|args, rows| fields(args, 1, rows)),
    keyed("hexists", 3, READ, hexists).reads(|args, rows| fields(args, 1, rows)),
    keyed("hlen", 2, READ, hlen),
    keyed("hstrlen", 3, READ, hstrlen),
    keyed("hincrby", 4, WRITE, hincrby).reads(|args, rows| fields(args, 2, rows)),
    keyed("hincrbyfloat", 4, WRITE, hincrbyfloat),
    keyed("hrandfield", -2, READ, hrandfield),
];

/// Larger hashes are listed in the order of their fields' bytes, others in the order in which
/// fields were added.
const ORDERED_FIELDS_MAX: u64 = 512;
const ORDERED_BYTES_MAX: usize = 1 << 20;

/// Adds the rows of fields: each has `each` arguments.
fn fields(args: &[&[u8]], each: usize, rows: &mut RowsAhead) {
    for field in args[2..].iter().step_by(each) {
        rows.add_element(Space::Hashes, args[1], field);
    }
}

/// Returns a field's value; `head` may be that of an empty hash.
fn field(call: &Call<'_, '_>, head: &Head, field: &[u8]) -> Outcome<Option<Field>> {
    if head.is_empty() {
        return Ok(None);
    }
    let row = call.view.row(Space::Hashes, &element::row(call.key(), field))?;
    Ok(row.map(Field::decode).transpose()?)
}

/// Sets a field; returns whether it is new.
fn set(call: &mut Call<'_, '_>, head: &mut Head, name: &[u8], value: &[u8]) -> Outcome<bool> {
    let before = field(call, head, name)?;
    let order = before.as_ref().map_or(head.next as u32, Field::order);
    if before.is_none() {
        head.end += 1;
        head.next += 1;
    }
    let row = Field::encode(value, order);
    call.view.put_row(Space::Hashes, element::row(call.key(), name), row)?;
    Ok(before.is_none())
}

fn hset(call: &mut Call<'_, '_>, counts: bool) -> Outcome {
    if call.args.len() % 2 == 1 {
        return call.wrong_number();
    }
    let mut head = call.view.collection_to_write(call.key(), Kind::Hash)?;
    let mut added = 0;
    for pair in call.args[2..].chunks_exact(2) {
        added += i64::from(set(call, &mut head, pair[0], pair[1])?);
    }
    if added > 0 {
        call.view.put_head(call.key(), &head)?;
    } else {
        call.view.store.watched.touch(call.key());
    }
    match counts {
        true => call.out.int(added),
        false => call.out.ok(),
    }
    Ok(())
}

fn hsetnx(call: &mut Call<'_, '_>) -> Outcome {
    let mut head = call.view.collection_to_write(call.key(), Kind::Hash)?;
    let is_new = field(call, &head, call.args[2])?.is_none();
    if is_new {
        set(call, &mut head, call.args[2], call.args[3])?;
        call.view.put_head(call.key(), &head)?;
    }
    call.out.one_if(is_new);
    Ok(())
}

fn hget(call: &mut Call<'_, '_>) -> Outcome {
    let value = field(call, &call.view.collection_or_empty(call.key(), Kind::Hash)?, call.args[2])?;
    call.out.bulk_or_null(value.as_deref());
    Ok(())
}

fn hmget(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Hash)?;
    call.out.array(call.args.len() - 2);
    for name in &call.args[2..] {
        let value = field(call, &head, name)?;
        call.out.bulk_or_null(value.as_deref());
        call.check_room()?;
    }
    Ok(())
}

/// Returns the rows of a small hash in the order in which its fields were added; `None` for a large
/// one.
fn in_order(call: &Call<'_, '_>, head: &Head) -> Outcome<Option<Vec<(Slice, Field)>>> {
    if head.len() > ORDERED_FIELDS_MAX {
        return Ok(None);
    }
    let (mut all, mut bytes) = (Vec::new(), 0);
    for row in call.view.rows_of(Space::Hashes, &element::prefix(call.key())) {
        let (row, value) = row?;
        bytes += row.len() + value.len();
        if bytes > ORDERED_BYTES_MAX {
            return Ok(None);
        }
        all.push((row, Field::decode(value)?));
    }
    all.sort_by_key(|(_, field)| field.order());
    Ok(Some(all))
}

fn list(call: &mut Call<'_, '_>, names: bool, values: bool) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Hash)?;
    let len = usize::try_from(head.len()).unwrap_or(usize::MAX);
    match names && values {
        true => call.out.map(len),
        false => call.out.array(len),
    }
    if head.is_empty() {
        return Ok(());
    }
    let key = call.key();
    let put = |call: &mut Call<'_, '_>, row: &[u8], value: &Field| {
        if names {
            call.out.bulk(element::rest(key, row));
        }
        if values {
            call.out.bulk(value);
        }
        call.check_room()
    };
    let mut followed = 0;
    if let Some(all) = in_order(call, &head)? {
        for (row, value) in &all {
            put(call, row, value)?;
            followed += 1;
        }
    } else {
        for row in call.view.rows_of(Space::Hashes, &element::prefix(key)) {
            let (row, value) = row?;
            put(call, &row, &Field::decode(value)?)?;
            followed += 1;
        }
    }
    call.check_count(head.len(), followed)
}

fn hdel(call: &mut Call<'_, '_>) -> Outcome {
    let mut deleted = 0;
    if let Some(mut head) = call.view.collection(call.key(), Kind::Hash)? {
        for name in &call.args[2..] {
            if field(call, &head, name)?.is_some() {
                call.view.delete_row(Space::Hashes, &element::row(call.key(), name));
                head.end -= 1;
                deleted += 1;
            }
        }
        if deleted > 0 {
            call.view.put_head(call.key(), &head)?;
        }
    }
    call.out.int(deleted);
    Ok(())
}

fn hexists(call: &mut Call<'_, '_>) -> Outcome {
    let value = field(call, &call.view.collection_or_empty(call.key(), Kind::Hash)?, call.args[2])?;
    call.out.one_if(value.is_some());
    Ok(())
}

fn hlen(call: &mut Call<'_, '_>) -> Outcome {
    let head = call.view.collection_or_empty(call.key(), Kind::Hash)?;
    call.out.int(i64::try_from(head.len()).unwrap_or(i64::MAX));
    Ok(())
}

fn hstrlen(call: &mut Call<'_, '_>) -> Outcome {
    let value = field(call, &call.view.collection_or_empty(call.key(), Kind::Hash)?, call.args[2])?;
    call.out.count(value.map_or(0, |value| value.len()));
    Ok(())
}

fn hincrby(call: &mut Call<'_, '_>) -> Outcome {
    let by = call.int(3)?;
    let mut head = call.view.collection_to_write(call.key(), Kind::Hash)?;
    let before = match field(call, &head, call.args[2])? {
        Some(before) => {
            int(&before).map_err(|_| Fault("ERR hash value is not an integer".into()))?
        }
        None => 0,
    };
    let Some(sum) = before.checked_add(by) else {
        return fail("ERR increment or decrement would overflow");
    };
    let mut text = Vec::with_capacity(20);
    push_i64(&mut text, sum);
    set(call, &mut head, call.args[2], &text)?;
    call.view.put_head(call.key(), &head)?;
    call.out.int(sum);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_, '_>) -> Outcome {
    let by = call.float(3)?;
    if !by.is_finite() {
        return fail("ERR value is NaN or Infinity");
    }
    let mut head = call.view.collection_to_write(call.key(), Kind::Hash)?;
    let before = field(call, &head, call.args[2])?;
    let text = sum(before.as_deref().unwrap_or(b"0"), call.args[3]).map_err(|fault| {
        if fault.0 == NOT_FLOAT { Fault("ERR hash value is not a float".into()) } else { fault }
    })?;
    set(call, &mut head, call.args[2], text.as_bytes())?;
    call.view.put_head(call.key(), &head)?;
    call.out.bulk(text.as_bytes());
    Ok(())
}

fn hrandfield(call: &mut Call<'_, '_>) -> Outcome {
    let has_values = match call.args {
        [_, _] | [_, _, _] => false,
        [_, _, _, word] if is(word, "WITHVALUES") => true,
        _ => return fail(SYNTAX),
    };
    let head = call.view.collection_or_empty(call.key(), Kind::Hash)?;
    let prefix = element::prefix(call.key());
    if call.args.len() == 2 {
        let chosen = random::rows(&call.view, Space::Hashes, &prefix, head.len(), 1)?;
        let name = chosen.first().map(|(row, _)| element::rest(call.key(), row).to_vec());
        call.out.bulk_or_null(name.as_deref());
        return Ok(());
    }
    let count = random::count(call.args[2], has_values)?;
    let chosen = random::rows(&call.view, Space::Hashes, &prefix, head.len(), count)?;
    let is_nested = has_values && call.out.dialect == Dialect::Resp3;
    call.out.array(if has_values && !is_nested { 2 * chosen.len() } else { chosen.len() });
    for (row, value) in &chosen {
        if is_nested {
            call.out.array(2);
        }
        call.out.bulk(element::rest(call.key(), row));
        if has_values {
            call.out.bulk(&Field::decode(value.clone())?);
        }
        call.check_room()?;
    }
    Ok(())
}
