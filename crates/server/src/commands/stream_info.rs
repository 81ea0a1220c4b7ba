//! The state of streams and their groups: `XINFO`.
//!
//! Owns: its replies. Never does: write.

use super::call::{Call, int, is};
use super::command::{Command, READ, keyed_at};
use super::stream_groups::subcommand;
use super::streams::{gather, put_entries, put_fields, put_id};
use crate::data::group::{Delivery, Group, groups};
use crate::data::stream::{Entry, Stream, entries};
use crate::data::stream_id::Id;
use crate::fault::{NO_KEY, Outcome, SYNTAX, fail};
use crate::protocol::Reply;

pub(super) const COMMANDS: &[Command] = &[keyed_at("xinfo", -2, READ, (2, 2, 1), xinfo)];

/// The subcommands, each with its number of arguments.
const OF_XINFO: &[(&str, i32)] = &[("STREAM", -3), ("GROUPS", 3), ("CONSUMERS", 4), ("HELP", 2)];

fn xinfo(call: &mut Call<'_, '_>) -> Outcome {
    let name = subcommand(call, OF_XINFO)?;
    if name == "HELP" {
        call.out.array(1);
        call.out.simple("XINFO STREAM|GROUPS|CONSUMERS <key> [...]");
        return Ok(());
    }
    let Some(stream) = Stream::load(&call.view, call.args[2])? else { return fail(NO_KEY) };
    match name {
        "STREAM" => match &call.args[3..] {
            [] => short(call, &stream),
            [word] if is(word, "FULL") => full(call, &stream, 10),
            [word, of, count] if is(word, "FULL") && is(of, "COUNT") => match int(count)? {
                0 => full(call, &stream, usize::MAX),
                count => full(call, &stream, usize::try_from(count).unwrap_or(10)),
            },
            _ => fail(SYNTAX),
        },
        "GROUPS" => of_groups(call, &stream),
        _ => of_consumers(call),
    }
}

fn put_count(out: &mut Reply, number: u64) {
    out.int(i64::try_from(number).unwrap_or(i64::MAX));
}

fn put_known(out: &mut Reply, number: Option<u64>) {
    match number {
        Some(number) => put_count(out, number),
        None => out.null(),
    }
}

/// Writes the beginning of both forms of `XINFO STREAM`.
fn put_stream(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome {
    let key = call.args[2];
    let node = call.shared.parameters.number("stream-node-max-entries").unwrap_or(0).max(1) as u64;
    // The number of nodes that Redis would have: here entries are not kept in
    // nodes.
    let first = stream.added.saturating_sub(stream.len());
    let nodes = match stream.len() {
        0 => 0,
        _ => stream.added.div_ceil(node) - first / node,
    };
    let first = entries(&call.view, key, Id::ZERO..=Id::MAX).next().transpose()?;
    call.out.bulk(b"length");
    put_count(call.out, stream.len());
    call.out.bulk(b"radix-tree-keys");
    put_count(call.out, nodes);
    call.out.bulk(b"radix-tree-nodes");
    put_count(call.out, nodes + 1);
    call.out.bulk(b"last-generated-id");
    put_id(call.out, stream.last);
    call.out.bulk(b"max-deleted-entry-id");
    put_id(call.out, stream.max_deleted);
    call.out.bulk(b"entries-added");
    put_count(call.out, stream.added);
    call.out.bulk(b"recorded-first-entry-id");
    put_id(call.out, first.map_or(Id::ZERO, |(id, _)| id));
    Ok(())
}

fn short(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome {
    let key = call.args[2];
    call.out.map(10);
    put_stream(call, stream)?;
    call.out.bulk(b"groups");
    let groups = groups(&call.view, key)?.len();
    call.out.count(groups);
    let mut all = entries(&call.view, key, Id::ZERO..=Id::MAX);
    let first = all.next().transpose()?;
    let last = all.next_back().transpose()?.or_else(|| first.clone());
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        call.out.bulk(name.as_bytes());
        put_entry(call.out, entry)?;
    }
    Ok(())
}

fn put_entry(out: &mut Reply, entry: Option<Entry>) -> Outcome {
    let Some((id, entry)) = entry else {
        out.null();
        return Ok(());
    };
    out.array(2);
    put_id(out, id);
    put_fields(out, &entry)
}

fn full(call: &mut Call<'_, '_>, stream: &Stream, count: usize) -> Outcome {
    let key = call.args[2];
    call.out.map(9);
    put_stream(call, stream)?;
    call.out.bulk(b"entries");
    let some = gather(&call.view, entries(&call.view, key, Id::ZERO..=Id::MAX), count)?;
    put_entries(call, &some)?;
    call.out.bulk(b"groups");
    let groups = groups(&call.view, key)?;
    call.out.array(groups.len());
    for group in groups {
        put_group(call, stream, group, count)?;
    }
    Ok(())
}

/// Writes the progress of a group.
fn put_progress(call: &mut Call<'_, '_>, stream: &Stream, group: &Group) -> Outcome {
    let lag = stream.lag(&call.view, call.args[2], group.last, group.read)?;
    call.out.bulk(b"last-delivered-id");
    put_id(call.out, group.last);
    call.out.bulk(b"entries-read");
    put_known(call.out, group.read);
    call.out.bulk(b"lag");
    put_known(call.out, lag);
    Ok(())
}

/// Writes a group with its pending entries, and their consumers.
fn put_group(call: &mut Call<'_, '_>, stream: &Stream, group: Group, count: usize) -> Outcome {
    let key = call.args[2];
    let delivery = Delivery::new(key, group);
    let group = &delivery.group;
    call.out.map(7);
    call.out.bulk(b"name");
    call.out.bulk(&group.name);
    put_progress(call, stream, group)?;
    call.out.bulk(b"pel-count");
    put_count(call.out, group.pending);
    call.out.bulk(b"pending");
    put_pending(call, &delivery, None, count)?;
    call.out.bulk(b"consumers");
    let consumers = group.consumers(&call.view, key)?;
    call.out.array(consumers.len());
    for (name, consumer) in consumers {
        call.out.map(4);
        call.out.bulk(b"name");
        call.out.bulk(&name);
        call.out.bulk(b"seen-time");
        put_count(call.out, consumer.seen_ms);
        call.out.bulk(b"pel-count");
        put_count(call.out, consumer.pending);
        call.out.bulk(b"pending");
        put_pending(call, &delivery, Some(&name), count)?;
    }
    Ok(())
}

fn put_pending(
    call: &mut Call<'_, '_>,
    delivery: &Delivery<'_>,
    consumer: Option<&[u8]>,
    count: usize,
) -> Outcome {
    let ids = delivery.pending_from(&call.view, consumer, Id::ZERO).take(count);
    let mut found = Vec::new();
    for id in ids {
        let id = id?;
        if let Some(pending) = delivery.pending(&call.view, id)? {
            call.view.keep(pending.consumer.len())?;
            found.push((id, pending));
        }
    }
    call.out.array(found.len());
    for (id, pending) in &found {
        call.out.array(if consumer.is_some() { 3 } else { 4 });
        put_id(call.out, *id);
        if consumer.is_none() {
            call.out.bulk(&pending.consumer);
        }
        put_count(call.out, pending.delivered_ms);
        put_count(call.out, pending.deliveries);
        call.check_room()?;
    }
    Ok(())
}

fn of_groups(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome {
    let key = call.args[2];
    let groups = groups(&call.view, key)?;
    call.out.array(groups.len());
    for group in groups {
        let consumers = group.consumers(&call.view, key)?.len();
        call.out.map(6);
        call.out.bulk(b"name");
        call.out.bulk(&group.name);
        call.out.bulk(b"consumers");
        call.out.count(consumers);
        call.out.bulk(b"pending");
        put_count(call.out, group.pending);
        put_progress(call, stream, &group)?;
        call.check_room()?;
    }
    Ok(())
}

fn of_consumers(call: &mut Call<'_, '_>) -> Outcome {
    let (key, name) = (call.args[2], call.args[3]);
    let Some(group) = Group::load(&call.view, key, name)? else {
        return fail(format!(
            "NOGROUP No such consumer group '{}' for key name '{}'",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(key)
        ));
    };
    let consumers = group.consumers(&call.view, key)?;
    call.out.array(consumers.len());
    for (name, consumer) in consumers {
        call.out.map(3);
        call.out.bulk(b"name");
        call.out.bulk(&name);
        call.out.bulk(b"pending");
        put_count(call.out, consumer.pending);
        call.out.bulk(b"idle");
        put_count(call.out, call.view.now_ms().saturating_sub(consumer.seen_ms));
        call.check_room()?;
    }
    Ok(())
}
