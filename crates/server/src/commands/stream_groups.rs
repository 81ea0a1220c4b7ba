//! Consumer groups: `XGROUP`, `XREADGROUP`, `XACK`, `XCLAIM` and their like.
//!
//! Owns: their arguments and replies. Never does: know how groups are laid out.

use super::call::{Call, int, is};
use super::command::{Command, WRITE, keyed, keyed_at};
use super::stream_ids::{begin, bound, end, id};
use super::streams::{Wanted, gather, put_entries, put_fields, put_id, put_stream, put_streams};
use crate::data::group::{Delivery, Group, Pending};
use crate::data::stream::{Entry, Stream, entries, entry};
use crate::data::stream_id::Id;
use crate::fault::{Outcome, SYNTAX, WRONG_TYPE, fail};
use std::ops::Range;

pub(super) const COMMANDS: &[Command] = &[
    keyed_at("xgroup", -2, WRITE, (2, 2, 1), xgroup),
    keyed_at("xreadgroup", -7, WRITE, (1, -1, 1), xreadgroup),
    keyed("xack", -4, WRITE, xack),
    keyed("xpending", -3, super::command::READ, xpending),
    keyed("xclaim", -6, WRITE, xclaim),
    keyed("xautoclaim", -6, WRITE, xautoclaim),
];

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Returns the group of the arguments that a command begins with: a key and a name.
///
/// # Errors
/// `NOGROUP` where there is none.
fn delivery<'k>(call: &Call<'k, '_>) -> Outcome<(Stream, Delivery<'k>)> {
    let (key, name) = (call.args[1], call.args[2]);
    let group = match Stream::load(&call.view, key)? {
        Some(stream) => Group::load(&call.view, key, name)?.map(|group| (stream, group)),
        None => None,
    };
    match group {
        Some((stream, group)) => Ok((stream, Delivery::new(key, group))),
        None => {
            fail(format!("NOGROUP No such key '{}' or consumer group '{}'", text(key), text(name)))
        }
    }
}

// ---- XGROUP

/// The subcommands, each with its number of arguments, as in the table of commands.
const OF_XGROUP: &[(&str, i32)] = &[
    ("CREATE", -5),
    ("SETID", -5),
    ("DESTROY", 4),
    ("CREATECONSUMER", 5),
    ("DELCONSUMER", 5),
    ("HELP", 2),
];

/// Finds a subcommand by its word, and checks the number of arguments.
///
/// # Errors
/// An unknown subcommand, or a wrong number of arguments.
pub(super) fn subcommand(
    call: &Call<'_, '_>,
    known: &[(&'static str, i32)],
) -> Outcome<&'static str> {
    let (command, word) = (text(call.args[0]), text(call.args[1]));
    let Some((name, arity)) = known.iter().find(|(name, _)| is(call.args[1], name)) else {
        return fail(format!(
            "ERR unknown subcommand '{word}'. Try {} HELP.",
            command.to_ascii_uppercase()
        ));
    };
    let (args, least) = (call.args.len(), arity.unsigned_abs() as usize);
    if (*arity < 0 && args >= least) || args == least {
        return Ok(name);
    }
    let name = format!("{command}|{name}").to_ascii_lowercase();
    fail(format!("ERR wrong number of arguments for '{name}' command"))
}

fn xgroup(call: &mut Call<'_, '_>) -> Outcome {
    let name = subcommand(call, OF_XGROUP)?;
    if name == "HELP" {
        call.out.array(1);
        call.out
            .simple("XGROUP CREATE|SETID|DESTROY|CREATECONSUMER|DELCONSUMER <key> <group> [...]");
        return Ok(());
    }
    let key = call.args[2];
    let stream = Stream::load(&call.view, key)?;
    if name == "CREATE" {
        return create(call, stream);
    }
    let Some(stream) = stream else {
        return fail(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
             the MKSTREAM option to create an empty stream automatically.",
        );
    };
    let Some(group) = Group::load(&call.view, key, call.args[3])? else {
        if name == "DESTROY" {
            call.out.int(0);
            return Ok(());
        }
        return fail(format!(
            "NOGROUP No such consumer group '{}' for key name '{}'",
            text(call.args[3]),
            text(key)
        ));
    };
    change(call, name, &stream, group)
}

/// Reads the arguments of `XGROUP CREATE` and `SETID` after the group: the identifier at which it
/// begins, the number of entries read before, and whether the stream is made.
fn position(call: &Call<'_, '_>, last: Id) -> Outcome<(Id, Option<u64>, bool)> {
    let begin = match call.args[4] {
        b"$" => last,
        arg => bound(arg, 0)?,
    };
    let (mut read, mut makes) = (None, false);
    let mut at = 5;
    while let Some(word) = call.args.get(at) {
        match word {
            word if is(word, "MKSTREAM") && is(call.args[1], "CREATE") => makes = true,
            word if is(word, "ENTRIESREAD") => {
                at += 1;
                read = match call.int(at)? {
                    -1 => None,
                    number @ 0.. => Some(number as u64),
                    _ => return fail("ERR value for ENTRIESREAD must be positive or -1"),
                };
            }
            _ => return fail(SYNTAX),
        }
        at += 1;
    }
    Ok((begin, read, makes))
}

fn create(call: &mut Call<'_, '_>, stream: Option<Stream>) -> Outcome {
    let (key, name) = (call.args[2], call.args[3]);
    let last = stream.map_or(Id::ZERO, |stream| stream.last);
    let (begin, read, makes) = position(call, last)?;
    if stream.is_none() {
        if !makes {
            return fail(
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
                 use the MKSTREAM option to create an empty stream automatically.",
            );
        }
        Stream::load_to_write(&mut call.view, key)?.save(&mut call.view, key)?;
    }
    if Group::load(&call.view, key, name)?.is_some() {
        return fail("BUSYGROUP Consumer Group name already exists");
    }
    Delivery::new(key, Group::new(name, begin, read)).save(&mut call.view)?;
    call.out.ok();
    Ok(())
}

fn change(call: &mut Call<'_, '_>, name: &str, stream: &Stream, mut group: Group) -> Outcome {
    let key = call.args[2];
    match name {
        "SETID" => {
            (group.last, group.read, _) = position(call, stream.last)?;
            Delivery::new(key, group).save(&mut call.view)?;
            call.out.ok();
        }
        "DESTROY" => {
            group.delete(&mut call.view, key);
            call.view.store.watched.touch(key);
            // Its waiting consumers get an error.
            call.view.note_fresh(key);
            call.out.int(1);
        }
        "CREATECONSUMER" => {
            let mut delivery = Delivery::new(key, group);
            let is_new = !delivery.has_consumer(&call.view, call.args[4])?;
            if is_new {
                delivery.see(&call.view, call.args[4])?;
                delivery.save(&mut call.view)?;
            }
            call.out.one_if(is_new);
        }
        _ => {
            let mut delivery = Delivery::new(key, group);
            let deleted = delivery.delete_consumer(&mut call.view, call.args[4])?;
            delivery.save(&mut call.view)?;
            call.out.int(i64::try_from(deleted).unwrap_or(i64::MAX));
        }
    }
    Ok(())
}

// ---- XREADGROUP

/// The entries that a consumer finds in a stream.
enum Found {
    /// New entries.
    New(Vec<Entry>),
    /// Entries that are pending with it, without fields if they were deleted.
    Old(Vec<(Id, Option<windrow::Slice>)>),
}

/// Checks that there is a group of that name at each key that `XREADGROUP` reads.
fn check_groups(call: &Call<'_, '_>, keys: Range<usize>, name: &[u8]) -> Outcome {
    for key in &call.args[keys] {
        let stream = match Stream::load(&call.view, key) {
            Err(fault) if call.client.is_woken && fault.0 == WRONG_TYPE => None,
            stream => stream?,
        };
        if stream.is_none() && call.client.is_woken {
            return fail("UNBLOCKED the stream key no longer exists");
        }
        if stream.is_none() || Group::load(&call.view, key, name)?.is_none() {
            return fail(format!(
                "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
                text(key),
                text(name)
            ));
        }
    }
    Ok(())
}

fn xreadgroup(call: &mut Call<'_, '_>) -> Outcome {
    let wanted = Wanted::parse(call.args, true)?;
    let Some((name, consumer)) = wanted.group else { return fail(SYNTAX) };
    let (name, consumer) = (call.args[name], call.args[consumer]);
    let mut afters = Vec::new();
    for at in wanted.ids() {
        afters.push(match call.args[at] {
            b">" => None,
            b"$" => {
                return fail(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
                     this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID \
                     would just return an empty result set.",
                );
            }
            arg => Some(id(arg, 0)?),
        });
    }
    check_groups(call, wanted.keys.clone(), name)?;
    let mut found = Vec::new();
    for (key, after) in wanted.keys.clone().zip(afters) {
        let key = call.args[key];
        // The groups are loaded one by one: a stream that is named twice is read twice, and gives
        // different entries.
        let (Some(stream), Some(group)) =
            (Stream::load(&call.view, key)?, Group::load(&call.view, key, name)?)
        else {
            continue;
        };
        let mut delivery = Delivery::new(key, group);
        let of_stream = match after {
            None => {
                let new = read_new(call, key, &stream, &mut delivery, &wanted, consumer)?;
                if new.is_empty() {
                    continue;
                }
                Found::New(new)
            }
            Some(after) => {
                Found::Old(read_old(call, key, &mut delivery, after, (wanted.count, consumer))?)
            }
        };
        delivery.see(&call.view, consumer)?;
        delivery.save(&mut call.view)?;
        found.push((key, of_stream));
    }
    if found.is_empty() {
        let again = call.args.iter().map(|arg| arg.to_vec()).collect();
        wanted.block(call, again);
        return Ok(());
    }
    put_streams(call.out, found.len());
    for (key, of_stream) in &found {
        put_stream(call.out, key);
        match of_stream {
            Found::New(new) => put_entries(call, new)?,
            Found::Old(old) => put_old(call, old)?,
        }
    }
    Ok(())
}

fn put_old(call: &mut Call<'_, '_>, old: &[(Id, Option<windrow::Slice>)]) -> Outcome {
    call.out.array(old.len());
    for (id, entry) in old {
        call.out.array(2);
        put_id(call.out, *id);
        match entry {
            Some(entry) => put_fields(call.out, entry)?,
            None => call.out.null_array(),
        }
        call.check_room()?;
    }
    Ok(())
}

/// Delivers entries that no consumer of the group has got.
fn read_new(
    call: &mut Call<'_, '_>,
    key: &[u8],
    stream: &Stream,
    delivery: &mut Delivery<'_>,
    wanted: &Wanted,
    consumer: &[u8],
) -> Outcome<Vec<Entry>> {
    let next = delivery.group.last.next().filter(|_| stream.last > delivery.group.last);
    let Some(next) = next else { return Ok(Vec::new()) };
    let new = gather(&call.view, entries(&call.view, key, next..=Id::MAX), wanted.count)?;
    let now_ms = call.view.now_ms();
    for (id, _) in &new {
        let group = &mut delivery.group;
        group.read = match group.read {
            Some(read) if !stream.has_gap(*id) => Some(read.saturating_add(1)),
            read if stream.added == 0 => read,
            _ => stream.read_up_to(&call.view, key, *id)?,
        };
        group.last = *id;
        if !wanted.acknowledges {
            let consumer = consumer.to_vec();
            let pending = Pending { delivered_ms: now_ms, deliveries: 1, consumer };
            delivery.assign(&mut call.view, *id, &pending)?;
        }
    }
    Ok(new)
}

/// Delivers entries again that are pending with the consumer.
fn read_old(
    call: &mut Call<'_, '_>,
    key: &[u8],
    delivery: &mut Delivery<'_>,
    after: Id,
    (count, consumer): (usize, &[u8]),
) -> Outcome<Vec<(Id, Option<windrow::Slice>)>> {
    let Some(from) = after.next() else { return Ok(Vec::new()) };
    let mut old = Vec::new();
    for id in delivery.pending_from(&call.view, Some(consumer), from).take(count) {
        let id = id?;
        let entry = entry(&call.view, key, id)?;
        call.view.keep(entry.as_ref().map_or(0, |entry| entry.len()))?;
        if entry.is_some()
            && let Some(mut pending) = delivery.pending(&call.view, id)?
        {
            pending.delivered_ms = call.view.now_ms();
            pending.deliveries = pending.deliveries.saturating_add(1);
            delivery.assign(&mut call.view, id, &pending)?;
        }
        old.push((id, entry));
    }
    Ok(old)
}

// ---- pending entries

fn xack(call: &mut Call<'_, '_>) -> Outcome {
    let ids: Vec<Id> = call.args[3..].iter().map(|arg| id(arg, 0)).collect::<Outcome<_>>()?;
    let (key, name) = (call.args[1], call.args[2]);
    let group = match Stream::load(&call.view, key)? {
        Some(_) => Group::load(&call.view, key, name)?,
        None => None,
    };
    let mut acknowledged = 0;
    if let Some(group) = group {
        let mut delivery = Delivery::new(key, group);
        for id in ids {
            acknowledged += i64::from(delivery.acknowledge(&mut call.view, id)?);
        }
        if acknowledged > 0 {
            delivery.save(&mut call.view)?;
        }
    }
    call.out.int(acknowledged);
    Ok(())
}

fn xpending(call: &mut Call<'_, '_>) -> Outcome {
    let mut rest = &call.args[3..];
    let mut idle_least_ms = 0;
    if let [word, least, behind @ ..] = rest
        && is(word, "IDLE")
    {
        idle_least_ms = u64::try_from(int(least)?).unwrap_or(0);
        rest = behind;
        if rest.is_empty() {
            return fail(SYNTAX);
        }
    }
    let (from, to, count, consumer) = match rest {
        [] => return summary(call),
        [from, to, count] => (from, to, count, None),
        [from, to, count, consumer] => (from, to, count, Some(*consumer)),
        _ => return fail(SYNTAX),
    };
    let (from, to) = (begin(from)?, end(to)?);
    let count = usize::try_from(int(count)?).unwrap_or(0);
    let (_, delivery) = delivery(call)?;
    let mut found = Vec::new();
    for id in delivery.pending_from(&call.view, consumer, from) {
        let id = id?;
        if id > to || found.len() == count {
            break;
        }
        let Some(pending) = delivery.pending(&call.view, id)? else { continue };
        if pending.idle_ms(call.view.now_ms()) >= idle_least_ms {
            call.view.keep(pending.consumer.len())?;
            found.push((id, pending));
        }
    }
    call.out.array(found.len());
    for (id, pending) in &found {
        call.out.array(4);
        put_id(call.out, *id);
        call.out.bulk(&pending.consumer);
        let idle_ms = pending.idle_ms(call.view.now_ms());
        call.out.int(i64::try_from(idle_ms).unwrap_or(i64::MAX));
        call.out.int(i64::try_from(pending.deliveries).unwrap_or(i64::MAX));
        call.check_room()?;
    }
    Ok(())
}

/// Replies with the number of pending entries, the first and the last, and the number of each
/// consumer.
fn summary(call: &mut Call<'_, '_>) -> Outcome {
    let (_, delivery) = delivery(call)?;
    let mut all = delivery.pending_from(&call.view, None, Id::ZERO);
    let first = all.next().transpose()?;
    let last = all.next_back().transpose()?.or(first);
    let consumers = delivery.group.consumers(&call.view, call.key())?;
    let consumers: Vec<_> =
        consumers.into_iter().filter(|(_, consumer)| consumer.pending > 0).collect();
    call.out.array(4);
    call.out.int(i64::try_from(delivery.group.pending).unwrap_or(i64::MAX));
    let (Some(first), Some(last)) = (first, last) else {
        call.out.null();
        call.out.null();
        call.out.null_array();
        return Ok(());
    };
    put_id(call.out, first);
    put_id(call.out, last);
    call.out.array(consumers.len());
    for (name, consumer) in &consumers {
        call.out.array(2);
        call.out.bulk(name);
        call.out.bulk(consumer.pending.to_string().as_bytes());
        call.check_room()?;
    }
    Ok(())
}

/// The options with which `XCLAIM` gives an entry to another consumer.
#[derive(Default)]
struct Claim {
    delivered_ms: u64,
    deliveries: Option<u64>,
    /// Whether it is given even if it is pending with no consumer.
    is_forced: bool,
    /// Whether the reply has no fields, and this is no delivery.
    only_ids: bool,
    last: Option<Id>,
}

impl Claim {
    fn parse(call: &Call<'_, '_>, mut at: usize) -> Outcome<Claim> {
        let now_ms = call.view.now_ms();
        let mut claim = Claim { delivered_ms: now_ms, ..Claim::default() };
        while let Some(word) = call.args.get(at) {
            match word {
                word if is(word, "FORCE") => claim.is_forced = true,
                word if is(word, "JUSTID") => claim.only_ids = true,
                word if is(word, "IDLE") => {
                    at += 1;
                    let idle_ms = u64::try_from(call.int(at)?).unwrap_or(0);
                    claim.delivered_ms = now_ms.saturating_sub(idle_ms);
                }
                word if is(word, "TIME") => {
                    at += 1;
                    let time_ms = u64::try_from(call.int(at)?).unwrap_or(now_ms);
                    claim.delivered_ms = time_ms.min(now_ms);
                }
                word if is(word, "RETRYCOUNT") => {
                    at += 1;
                    claim.deliveries = u64::try_from(call.int(at)?).ok();
                }
                word if is(word, "LASTID") => {
                    at += 1;
                    claim.last = Some(id(call.arg(at)?, 0)?);
                }
                word => {
                    return fail(format!("ERR Unrecognized XCLAIM option '{}'", text(word)));
                }
            }
            at += 1;
        }
        Ok(claim)
    }

    /// Gives a pending entry to a consumer.
    fn give(
        &self,
        call: &mut Call<'_, '_>,
        delivery: &mut Delivery<'_>,
        id: Id,
        before: Option<&Pending>,
    ) -> Outcome {
        let before = before.map_or(0, |pending| pending.deliveries);
        let by_one = before.saturating_add(u64::from(!self.only_ids));
        let deliveries = self.deliveries.unwrap_or(by_one);
        let consumer = call.args[3].to_vec();
        let pending = Pending { delivered_ms: self.delivered_ms, deliveries, consumer };
        delivery.assign(&mut call.view, id, &pending)
    }
}

fn xclaim(call: &mut Call<'_, '_>) -> Outcome {
    let idle_least_ms = least(call)?;
    let (_, mut delivery) = delivery(call)?;
    let ids = call.args[5..].iter().map_while(|arg| Id::parse(arg, 0));
    let ids: Vec<Id> = ids.collect();
    if ids.is_empty() {
        return id(call.args[5], 0).map(drop);
    }
    let claim = Claim::parse(call, 5 + ids.len())?;
    if let Some(last) = claim.last {
        delivery.group.last = delivery.group.last.max(last);
    }
    let key = call.key();
    let mut claimed = Vec::new();
    delivery.see(&call.view, call.args[3])?;
    for id in ids {
        let pending = delivery.pending(&call.view, id)?;
        let Some(entry) = entry(&call.view, key, id)? else {
            // The entry was deleted: no consumer can process it.
            delivery.acknowledge(&mut call.view, id)?;
            continue;
        };
        let is_due = match &pending {
            Some(pending) => pending.idle_ms(call.view.now_ms()) >= idle_least_ms,
            None => claim.is_forced,
        };
        if is_due {
            claim.give(call, &mut delivery, id, pending.as_ref())?;
            call.view.keep(entry.len())?;
            claimed.push((id, entry));
        }
    }
    delivery.save(&mut call.view)?;
    put_claimed(call, &claimed, claim.only_ids)
}

/// Reads the least time for which a claimed entry must have been idle.
fn least(call: &Call<'_, '_>) -> Outcome<u64> {
    match call.int(4) {
        Ok(least) => Ok(u64::try_from(least).unwrap_or(0)),
        Err(_) => fail("ERR Invalid min-idle-time argument for XCLAIM"),
    }
}

fn put_claimed(call: &mut Call<'_, '_>, claimed: &[Entry], only_ids: bool) -> Outcome {
    if !only_ids {
        return put_entries(call, claimed);
    }
    call.out.array(claimed.len());
    claimed.iter().for_each(|(id, _)| put_id(call.out, *id));
    Ok(())
}

fn xautoclaim(call: &mut Call<'_, '_>) -> Outcome {
    /// The number of pending entries that are looked at for each entry that is asked for.
    const LOOKED_AT: usize = 10;
    let idle_least_ms = least(call)?;
    let from = begin(call.args[5])?;
    let (mut count, mut claim) =
        (100, Claim { delivered_ms: call.view.now_ms(), ..Claim::default() });
    let mut at = 6;
    while let Some(word) = call.args.get(at) {
        match word {
            word if is(word, "JUSTID") => claim.only_ids = true,
            word if is(word, "COUNT") => {
                at += 1;
                count = match usize::try_from(call.int(at)?) {
                    Ok(count @ 1..) if count <= usize::MAX / 32 => count,
                    _ => return fail("ERR COUNT must be > 0"),
                };
            }
            _ => return fail(SYNTAX),
        }
        at += 1;
    }
    let (_, mut delivery) = delivery(call)?;
    let key = call.key();
    delivery.see(&call.view, call.args[3])?;
    let (mut claimed, mut deleted) = (Vec::new(), Vec::new());
    let mut ids = delivery.pending_from(&call.view, None, from);
    for id in ids.by_ref().take(count.saturating_mul(LOOKED_AT)) {
        let id = id?;
        let Some(pending) = delivery.pending(&call.view, id)? else { continue };
        match entry(&call.view, key, id)? {
            None => {
                delivery.acknowledge(&mut call.view, id)?;
                deleted.push(id);
            }
            Some(entry) if pending.idle_ms(call.view.now_ms()) >= idle_least_ms => {
                claim.give(call, &mut delivery, id, Some(&pending))?;
                call.view.keep(entry.len())?;
                claimed.push((id, entry));
            }
            Some(_) => {}
        }
        if claimed.len() + deleted.len() == count {
            break;
        }
    }
    let next = ids.next().transpose()?.unwrap_or(Id::ZERO);
    delivery.save(&mut call.view)?;
    call.out.array(3);
    put_id(call.out, next);
    put_claimed(call, &claimed, claim.only_ids)?;
    call.out.array(deleted.len());
    deleted.iter().for_each(|id| put_id(call.out, *id));
    Ok(())
}
