//! A value as bytes, for another server: `DUMP` and `RESTORE`.
//!
//! Owns: the layout: `WR1`, the letter of the kind, then for each element two byte strings with
//! their lengths (u32, little-endian), and a CRC-32C of all of that (little-endian). A string has
//! one element, whose first part is empty. Never does: read a dump of Redis itself.

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed};
use super::lists::{End, push_all};
use super::sorted_sets::{Scored, replace};
use crate::data::element;
use crate::data::field::Field;
use crate::data::head::{Head, Kind};
use crate::data::score;
use crate::data::space::Space;
use crate::data::stream;
use crate::data::value::{Value, spaces_of};
use crate::data::view::View;
use crate::fault::{Fault, Outcome, SYNTAX, fail};
use windrow::Slice;

const MAGIC: &[u8] = b"WR1";

pub(super) const COMMANDS: &[Command] =
    &[keyed("dump", 2, READ, dump), keyed("restore", -4, WRITE, restore)];

/// The two parts of an element.
type Parts<'p> = (&'p [u8], &'p [u8]);

fn push_part(payload: &mut Vec<u8>, part: &[u8]) {
    let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
    payload.extend_from_slice(&len.to_le_bytes());
    payload.extend_from_slice(part);
}

fn dump(call: &mut Call<'_, '_>) -> Outcome {
    let key = call.key();
    let Some(value) = call.view.value(key)? else {
        call.out.null();
        return Ok(());
    };
    let mut payload = [MAGIC, &[value.kind().letter()]].concat();
    match &value {
        Value::String(string, _) => {
            push_part(&mut payload, b"");
            push_part(&mut payload, string);
        }
        Value::Collection(head) => {
            let Some(space) = spaces_of(head.kind).first() else { return fail(SYNTAX) };
            for row in call.view.rows_of(*space, &element::prefix(key)) {
                let (row, value) = row?;
                let rest = if head.kind == Kind::List { b"" } else { element::rest(key, &row) };
                push_part(&mut payload, rest);
                push_part(&mut payload, &value);
                if payload.len() > call.shared.config.reply_bytes_max {
                    return fail(
                        "ERR the value is longer than reply-max-bytes: copy the database instead",
                    );
                }
            }
        }
    }
    payload.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
    call.out.bulk(&payload);
    Ok(())
}

/// Splits off a part; returns it and the rest.
fn part(bytes: &[u8]) -> Option<Parts<'_>> {
    let (len, behind) = bytes.split_at_checked(4)?;
    behind.split_at_checked(u32::from_le_bytes(len.try_into().ok()?) as usize)
}

/// Returns the kind and the elements of a payload; `None` where it is no payload.
fn parts(payload: &[u8]) -> Option<(Kind, Vec<Parts<'_>>)> {
    let (body, sum) = payload.split_at_checked(payload.len().checked_sub(4)?)?;
    if crc32c::crc32c(body).to_le_bytes() != sum {
        return None;
    }
    let [letter, rest @ ..] = body.strip_prefix(MAGIC)? else { return None };
    let kind = Kind::of_letter(*letter)?;
    let (mut rest, mut elements) = (rest, Vec::new());
    while !rest.is_empty() {
        let (first, behind) = part(rest)?;
        let (second, behind) = part(behind)?;
        elements.push((first, second));
        rest = behind;
    }
    (!elements.is_empty()).then_some((kind, elements))
}

fn restore(call: &mut Call<'_, '_>) -> Outcome {
    let key = call.key();
    let (mut replaces, mut is_absolute, mut at) = (false, false, 4);
    while let Some(word) = call.args.get(at) {
        match word {
            word if is(word, "REPLACE") => replaces = true,
            word if is(word, "ABSTTL") => is_absolute = true,
            word if is(word, "IDLETIME") || is(word, "FREQ") => {
                int(call.arg(at + 1)?)?;
                at += 1;
            }
            _ => return fail(SYNTAX),
        }
        at += 1;
    }
    let Ok(ttl) = u64::try_from(call.int(2)?) else {
        return fail("ERR Invalid TTL value, must be >= 0");
    };
    if !replaces && call.view.exists(key)? {
        return fail("BUSYKEY Target key name already exists.");
    }
    let Some((kind, elements)) = parts(call.args[3]) else {
        return fail(
            "ERR DUMP payload version or checksum are wrong: only what a Windrow server dumped is \
             restored",
        );
    };
    call.view.remove(key)?;
    let begin_ms = if is_absolute { 0 } else { call.view.now_ms() };
    let deadline_ms = (ttl > 0).then(|| begin_ms.saturating_add(ttl));
    if deadline_ms.is_none_or(|deadline_ms| deadline_ms > call.view.now_ms()) {
        rebuild(&mut call.view, key, kind, &elements)?;
        if let Some(value) = call.view.value(key)?
            && deadline_ms.is_some()
        {
            call.view.set_deadline(key, &value, deadline_ms)?;
        }
    }
    call.out.ok();
    Ok(())
}

fn rebuild(view: &mut View<'_>, key: &[u8], kind: Kind, elements: &[Parts<'_>]) -> Outcome {
    let rows = |view: &mut View<'_>, space| {
        let mut head = Head { end: elements.len() as u64, ..Head::new(kind) };
        for (element, value) in elements {
            if kind == Kind::Hash {
                let field = Field::decode(Slice::copy_from(value))?;
                head.next = head.next.max(u64::from(field.order()) + 1);
            }
            view.put_row(space, element::row(key, element), *value)?;
        }
        view.put_head(key, &head)
    };
    match kind {
        Kind::String => view.set_string(key, elements[0].1, None),
        Kind::Hash => rows(view, Space::Hashes),
        Kind::Set => rows(view, Space::Sets),
        Kind::List => {
            let values: Vec<&[u8]> = elements.iter().map(|(_, value)| *value).collect();
            push_all(view, key, End::Right, &values).map(drop)
        }
        Kind::SortedSet => {
            let members = elements.iter().map(|(member, bytes)| {
                score::decode(bytes).map(|score| (member.to_vec(), score)).map_err(Fault::from)
            });
            replace(view, key, &members.collect::<Outcome<Vec<Scored>>>()?)
        }
        Kind::Stream => stream::restore(view, key, elements),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_was_changed_anywhere_is_refused() {
        let mut payload = [MAGIC, b"H"].concat();
        push_part(&mut payload, b"field");
        push_part(&mut payload, b"value");
        payload.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        let (kind, elements) = parts(&payload).unwrap();
        assert_eq!((kind, elements), (Kind::Hash, vec![(&b"field"[..], &b"value"[..])]));
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1;
            assert!(parts(&changed).is_none(), "byte {at}");
            assert!(parts(&payload[..at]).is_none(), "{at} bytes");
        }
    }
}
