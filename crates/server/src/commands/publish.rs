//! Messages between clients: `PUBLISH`, `SUBSCRIBE` and their like.
//!
//! Owns: their arguments and replies. Never does: keep a message.

use super::call::{Call, is};
use super::command::{CONFIRMS, Command, IN_SUBSCRIPTION, SETTLED, plain};
use crate::channels::NameKind::{self, Channel, Pattern as Glob};
use crate::client::NAME_EXTRA_BYTES;
use crate::fault::{Outcome, fail};
use crate::glob::Pattern;

pub(super) const COMMANDS: &[Command] = &[
    plain("publish", 3, SETTLED, publish),
    plain("subscribe", -2, IN_SUBSCRIPTION | CONFIRMS, |call| subscribe(call, Channel)),
    plain("psubscribe", -2, IN_SUBSCRIPTION | CONFIRMS, |call| subscribe(call, Glob)),
    plain("unsubscribe", -1, IN_SUBSCRIPTION | CONFIRMS, |call| unsubscribe(call, Channel)),
    plain("punsubscribe", -1, IN_SUBSCRIPTION | CONFIRMS, |call| unsubscribe(call, Glob)),
    plain("pubsub", -2, 0, pubsub),
];

/// The most subscriptions of a client: more would be a way to fill the server's
/// memory.
const SUBSCRIPTIONS_MAX: usize = 65_536;

fn publish(call: &mut Call<'_, '_>) -> Outcome {
    let receivers = call.shared.channels.publish(call.args[1], call.args[2]);
    call.out.count(receivers);
    Ok(())
}

fn confirm(call: &mut Call<'_, '_>, word: &str, name: Option<&[u8]>) {
    let len = call.client.channels.len() + call.client.patterns.len();
    call.out.push(3);
    call.out.bulk(word.as_bytes());
    call.out.bulk_or_null(name);
    call.out.count(len);
}

fn subscribe(call: &mut Call<'_, '_>, kind: NameKind) -> Outcome {
    for name in &call.args[1..] {
        if call.client.channels.len() + call.client.patterns.len() >= SUBSCRIPTIONS_MAX {
            return fail(format!("ERR a client may have {SUBSCRIPTIONS_MAX} subscriptions"));
        }
        let (names, word) = match kind {
            Channel => (&mut call.client.channels, "subscribe"),
            Glob => {
                Pattern::new(name)?;
                (&mut call.client.patterns, "psubscribe")
            }
        };
        if names.insert(name.to_vec()) {
            call.client.names_bytes += name.len() + NAME_EXTRA_BYTES;
            call.shared.channels.subscribe(kind, name, &call.client.outlet);
        }
        confirm(call, word, Some(name));
    }
    Ok(())
}

fn unsubscribe(call: &mut Call<'_, '_>, kind: NameKind) -> Outcome {
    let (names, word) = match kind {
        Channel => (&call.client.channels, "unsubscribe"),
        Glob => (&call.client.patterns, "punsubscribe"),
    };
    let wanted: Vec<Vec<u8>> = match &call.args[1..] {
        [] => names.iter().cloned().collect(),
        some => some.iter().map(|name| name.to_vec()).collect(),
    };
    if wanted.is_empty() {
        confirm(call, word, None);
    }
    for name in wanted {
        let names = match kind {
            Channel => &mut call.client.channels,
            Glob => &mut call.client.patterns,
        };
        if names.remove(&name) {
            call.client.names_bytes -= name.len() + NAME_EXTRA_BYTES;
            call.shared.channels.unsubscribe(kind, &name, call.client.peer.id);
        }
        confirm(call, word, Some(&name));
    }
    Ok(())
}

fn pubsub(call: &mut Call<'_, '_>) -> Outcome {
    let channels = &call.shared.channels;
    match &call.args[1..] {
        [word] if is(word, "CHANNELS") => {
            let names = channels.names();
            call.out.array(names.len());
            names.iter().for_each(|name| call.out.bulk(name));
        }
        [word, pattern] if is(word, "CHANNELS") => {
            let pattern = Pattern::new(pattern)?;
            let mut names = channels.names();
            names.retain(|name| pattern.matches(name));
            call.out.array(names.len());
            names.iter().for_each(|name| call.out.bulk(name));
        }
        [word, names @ ..] if is(word, "NUMSUB") => {
            call.out.map(names.len());
            for name in names {
                call.out.bulk(name);
                call.out.count(channels.len_of(name));
            }
        }
        [word] if is(word, "NUMPAT") => call.out.count(channels.patterns_len()),
        _ => return fail("ERR unknown subcommand of 'pubsub'. Try CHANNELS, NUMSUB or NUMPAT."),
    }
    Ok(())
}
