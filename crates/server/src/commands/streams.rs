//! Streams: `XADD`, `XRANGE`, `XREAD` and their like.
//!
//! Owns: their arguments and replies. Never does: know a consumer group (`stream_groups.rs` does).

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::stream_ids::{begin, end, id};
use super::stream_trim::{self, Trim};
use crate::client::Blocked;
use crate::data::stream::{Entry, Stream, entries, fields};
use crate::data::stream_id::Id;
use crate::data::view::View;
use crate::fault::{NO_KEY, Outcome, SYNTAX, fail};
use crate::protocol::Reply;
use std::time::Duration;

pub(super) const COMMANDS: &[Command] = &[
    keyed("xadd", -5, WRITE, xadd),
    keyed("xlen", 2, READ, xlen),
    keyed("xrange", -4, READ, |call| xrange(call, false)),
    keyed("xrevrange", -4, READ, |call| xrange(call, true)),
    keyed("xdel", -3, WRITE, xdel),
    keyed("xtrim", -4, WRITE, xtrim),
    keyed("xsetid", -3, WRITE, xsetid),
    // The places of the keys depend on the number of arguments: all are locked.
    keyed_at("xread", -4, READ, (1, -1, 1), xread),
];

/// Writes the fields of an entry.
pub(super) fn put_fields(out: &mut Reply, entry: &[u8]) -> Outcome {
    let fields = fields(entry)?;
    out.array(fields.len());
    fields.iter().for_each(|field| out.bulk(field));
    Ok(())
}

/// Writes an identifier.
pub(super) fn put_id(out: &mut Reply, id: Id) {
    out.bulk(id.to_string().as_bytes());
}

/// Writes entries.
pub(super) fn put_entries(call: &mut Call<'_, '_>, entries: &[Entry]) -> Outcome {
    call.out.array(entries.len());
    for (id, entry) in entries {
        call.out.array(2);
        put_id(call.out, *id);
        put_fields(call.out, entry)?;
        call.check_room()?;
    }
    Ok(())
}

/// Collects entries, at most `count`.
pub(super) fn gather(
    view: &View<'_>,
    entries: impl Iterator<Item = windrow::Result<Entry>>,
    count: usize,
) -> Outcome<Vec<Entry>> {
    let mut gathered = Vec::new();
    for entry in entries.take(count) {
        let (id, entry) = entry?;
        view.keep(entry.len())?;
        gathered.push((id, entry));
    }
    Ok(gathered)
}

/// Returns the identifier of a new entry.
fn new_id(arg: &[u8], stream: &Stream, now_ms: u64) -> Outcome<Id> {
    const NO_MORE: &str =
        "ERR The stream has exhausted the last possible ID, unable to add more items";
    const TOO_SMALL: &str =
        "ERR The ID specified in XADD is equal or smaller than the target stream top item";
    let last = stream.last;
    if arg == b"*" {
        let new = Id { ms: now_ms, seq: 0 };
        return match new > last {
            true => Ok(new),
            false => last.next().map_or_else(|| fail(NO_MORE), Ok),
        };
    }
    if let Some(ms) = Id::parse_open(arg) {
        let first = Id { ms, seq: u64::from(ms == 0) };
        return match last.next() {
            _ if first > last => Ok(first),
            Some(next) if next.ms == ms => Ok(next),
            _ => fail(TOO_SMALL),
        };
    }
    match id(arg, 0)? {
        Id::ZERO => fail("ERR The ID specified in XADD must be greater than 0-0"),
        _ if last == Id::MAX => fail(NO_MORE),
        id if id <= last => fail(TOO_SMALL),
        id => Ok(id),
    }
}

fn xadd(call: &mut Call<'_, '_>) -> Outcome {
    let (mut at, mut creates, mut trim) = (2, true, None);
    loop {
        match call.arg(at)? {
            word if is(word, "NOMKSTREAM") => {
                creates = false;
                at += 1;
            }
            word if is(word, "MAXLEN") || is(word, "MINID") => {
                let (parsed, next) = Trim::parse(call, at, trim)?;
                (trim, at) = (Some(parsed), next);
            }
            _ => break,
        }
    }
    let fields = &call.args[at + 1..];
    if fields.is_empty() || fields.len() % 2 == 1 {
        return call.wrong_number();
    }
    let key = call.key();
    let Some(mut stream) = (match creates {
        true => Some(Stream::load_to_write(&mut call.view, key)?),
        false => Stream::load(&call.view, key)?,
    }) else {
        call.out.null();
        return Ok(());
    };
    let id = new_id(call.args[at], &stream, call.view.now_ms())?;
    stream.add(&mut call.view, key, id, fields)?;
    if let Some(trim) = trim {
        stream_trim::trim(call, &mut stream, &trim)?;
    }
    stream.save(&mut call.view, key)?;
    call.view.note_fresh(key);
    put_id(call.out, id);
    Ok(())
}

fn xlen(call: &mut Call<'_, '_>) -> Outcome {
    let len = Stream::load(&call.view, call.key())?.map_or(0, |stream| stream.len());
    call.out.int(i64::try_from(len).unwrap_or(i64::MAX));
    Ok(())
}

fn xrange(call: &mut Call<'_, '_>, is_reversed: bool) -> Outcome {
    let (first, last) = if is_reversed { (3, 2) } else { (2, 3) };
    let (from, to) = (begin(call.args[first])?, end(call.args[last])?);
    let count = match &call.args[4..] {
        [] => usize::MAX,
        [word, count] if is(word, "COUNT") => usize::try_from(int(count)?).unwrap_or(0),
        _ => return fail(SYNTAX),
    };
    let key = call.key();
    if Stream::load(&call.view, key)?.is_none() {
        call.out.array(0);
        return Ok(());
    }
    let all = entries(&call.view, key, from..=to);
    let found = match is_reversed {
        true => gather(&call.view, all.rev(), count)?,
        false => gather(&call.view, all, count)?,
    };
    put_entries(call, &found)
}

fn xdel(call: &mut Call<'_, '_>) -> Outcome {
    let ids: Vec<Id> = call.args[2..].iter().map(|arg| id(arg, 0)).collect::<Outcome<_>>()?;
    let (key, mut deleted) = (call.key(), 0);
    if let Some(mut stream) = Stream::load(&call.view, key)? {
        for id in ids {
            if stream.delete(&mut call.view, key, id)? {
                stream.max_deleted = stream.max_deleted.max(id);
                deleted += 1;
            }
        }
        if deleted > 0 {
            stream.save(&mut call.view, key)?;
        }
    }
    call.out.int(deleted);
    Ok(())
}

fn xtrim(call: &mut Call<'_, '_>) -> Outcome {
    let (trim, at) = Trim::parse(call, 2, None)?;
    if at != call.args.len() {
        return fail(SYNTAX);
    }
    let (key, mut trimmed) = (call.key(), 0);
    if let Some(mut stream) = Stream::load(&call.view, key)? {
        trimmed = stream_trim::trim(call, &mut stream, &trim)?;
        if trimmed > 0 {
            stream.save(&mut call.view, key)?;
        }
    }
    call.out.int(i64::try_from(trimmed).unwrap_or(i64::MAX));
    Ok(())
}

fn xsetid(call: &mut Call<'_, '_>) -> Outcome {
    let last = id(call.args[2], 0)?;
    let (mut added, mut max_deleted) = (None, None);
    for pair in call.args[3..].chunks(2) {
        match pair {
            [word, number] if is(word, "ENTRIESADDED") => match u64::try_from(int(number)?) {
                Ok(number) => added = Some(number),
                Err(_) => return fail("ERR entries_added must be positive"),
            },
            [word, deleted] if is(word, "MAXDELETEDID") => match id(deleted, 0)? {
                deleted if deleted > last => {
                    return fail(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    );
                }
                deleted => max_deleted = Some(deleted),
            },
            _ => return fail(SYNTAX),
        }
    }
    if added.is_some() != max_deleted.is_some() {
        return fail(SYNTAX);
    }
    let key = call.key();
    let Some(mut stream) = Stream::load(&call.view, key)? else { return fail(NO_KEY) };
    let top = entries(&call.view, key, Id::ZERO..=Id::MAX).next_back().transpose()?;
    if top.is_some_and(|(top, _)| last < top) || last < stream.max_deleted {
        return fail("ERR The ID specified in XSETID is smaller than the target stream top item");
    }
    if added.is_some_and(|added| added < stream.len()) {
        return fail(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        );
    }
    stream.last = last;
    stream.added = added.unwrap_or(stream.added);
    stream.max_deleted = max_deleted.unwrap_or(stream.max_deleted);
    stream.save(&mut call.view, key)?;
    call.out.ok();
    Ok(())
}

// ---- XREAD

/// The options of `XREAD` and `XREADGROUP`, and the places of the keys; the identifiers follow them.
pub(crate) struct Wanted {
    pub(crate) count: usize,
    /// The time to wait, if any; for ever if it is 0.
    pub(crate) block_ms: Option<u64>,
    pub(crate) group: Option<(usize, usize)>,
    pub(crate) acknowledges: bool,
    pub(crate) keys: std::ops::Range<usize>,
}

impl Wanted {
    /// Reads the arguments of `XREADGROUP`, or of `XREAD`.
    ///
    /// # Errors
    /// `syntax error` and its like.
    pub(crate) fn parse(args: &[&[u8]], is_of_group: bool) -> Outcome<Wanted> {
        let mut wanted = Wanted {
            count: usize::MAX,
            block_ms: None,
            group: None,
            acknowledges: false,
            keys: 0..0,
        };
        let mut at = 1;
        while let Some(word) = args.get(at) {
            match word {
                word if is(word, "COUNT") && at + 1 < args.len() => {
                    let count = usize::try_from(int(args[at + 1])?).unwrap_or(0);
                    wanted.count = if count == 0 { usize::MAX } else { count };
                    at += 1;
                }
                word if is(word, "BLOCK") && at + 1 < args.len() => {
                    let time = int(args[at + 1])
                        .or_else(|_| fail("ERR timeout is not an integer or out of range"))?;
                    let Ok(time) = u64::try_from(time) else {
                        return fail("ERR timeout is negative");
                    };
                    wanted.block_ms = Some(time);
                    at += 1;
                }
                word if is(word, "GROUP") && is_of_group && at + 2 < args.len() => {
                    wanted.group = Some((at + 1, at + 2));
                    at += 2;
                }
                word if is(word, "NOACK") && is_of_group => wanted.acknowledges = true,
                word if is(word, "STREAMS") => {
                    let behind = args.len() - at - 1;
                    if behind == 0 || behind % 2 == 1 {
                        let name = if is_of_group { "xreadgroup" } else { "xread" };
                        return fail(format!(
                            "ERR Unbalanced '{name}' list of streams: for each stream key an ID or '$' must be \
                             specified."
                        ));
                    }
                    wanted.keys = at + 1..at + 1 + behind / 2;
                    break;
                }
                _ => return fail(SYNTAX),
            }
            at += 1;
        }
        if wanted.keys.is_empty() {
            return fail(SYNTAX);
        }
        if is_of_group && wanted.group.is_none() {
            return fail("ERR Missing GROUP option for XREADGROUP");
        }
        Ok(wanted)
    }

    /// Returns the places of the identifiers.
    pub(crate) fn ids(&self) -> std::ops::Range<usize> {
        self.keys.end..self.keys.end + self.keys.len()
    }

    /// Has the client wait for the streams, if it asked for that and may; `args` are the arguments
    /// of the next attempt.
    pub(crate) fn block(&self, call: &mut Call<'_, '_>, args: Vec<Vec<u8>>) {
        match self.block_ms {
            Some(time) if !call.view.is_within => {
                let keys = args[self.keys.clone()].to_vec();
                let time = (time > 0).then(|| Duration::from_millis(time));
                call.client.blocked =
                    Some(Blocked { keys, time, is_array: true, args: Some(args), passes_on: true });
            }
            _ => call.out.null_array(),
        }
    }
}

/// Writes the head of several streams' results: for each a key and its entries follow.
pub(super) fn put_streams(out: &mut Reply, streams: usize) {
    match out.dialect {
        crate::protocol::Dialect::Resp2 => out.array(streams),
        crate::protocol::Dialect::Resp3 => out.map(streams),
    }
}

/// Writes the head of one stream's result.
pub(super) fn put_stream(out: &mut Reply, key: &[u8]) {
    if out.dialect == crate::protocol::Dialect::Resp2 {
        out.array(2);
    }
    out.bulk(key);
}

fn xread(call: &mut Call<'_, '_>) -> Outcome {
    let wanted = Wanted::parse(call.args, false)?;
    // `$` means the last entry at the first attempt, also when the command is run again.
    let mut again: Vec<Vec<u8>> = call.args.iter().map(|arg| arg.to_vec()).collect();
    let mut found = Vec::new();
    for (key, at) in wanted.keys.clone().zip(wanted.ids()) {
        let key = call.args[key];
        let stream = call.looked_for(Stream::load(&call.view, key))?;
        let last = stream.map_or(Id::ZERO, |stream| stream.last);
        let after = match call.args[at] {
            b"$" => last,
            b">" => {
                return fail(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
                     <consumer> option.",
                );
            }
            arg => id(arg, 0)?,
        };
        again[at] = after.to_string().into_bytes();
        let Some(next) = after.next().filter(|_| last > after) else { continue };
        let read = gather(&call.view, entries(&call.view, key, next..=Id::MAX), wanted.count)?;
        if !read.is_empty() {
            found.push((key, read));
        }
    }
    if found.is_empty() {
        wanted.block(call, again);
        return Ok(());
    }
    put_streams(call.out, found.len());
    for (key, read) in &found {
        put_stream(call.out, key);
        put_entries(call, read)?;
    }
    Ok(())
}
