//! The connection itself: `PING`, `HELLO`, `CLIENT` and their like.
//!
//! Owns: their arguments and replies. Never does: run another command.

use super::call::{Call, int, is};
use super::command::{Command, IN_SUBSCRIPTION, NO_AUTH, plain};
use super::keys::check_database;
use crate::client::Replies;
use crate::fault::{Outcome, SYNTAX, fail};
use crate::protocol::Dialect;
use subtle::ConstantTimeEq;

pub(super) const COMMANDS: &[Command] = &[
    plain("ping", -1, IN_SUBSCRIPTION, ping),
    plain("echo", 2, 0, echo),
    plain("hello", -1, NO_AUTH, hello),
    plain("auth", -2, NO_AUTH, auth),
    plain("select", 2, 0, select),
    plain("quit", -1, NO_AUTH | IN_SUBSCRIPTION, quit),
    plain("client", -2, 0, client),
];

fn ping(call: &mut Call<'_, '_>) -> Outcome {
    let is_between_messages = call.client.is_subscribed() && call.out.dialect == Dialect::Resp2;
    match call.args {
        [_] | [_, _] if is_between_messages => {
            call.out.array(2);
            call.out.bulk(b"pong");
            call.out.bulk(call.args.get(1).copied().unwrap_or_default());
        }
        [_] => call.out.simple("PONG"),
        [_, text] => call.out.bulk(text),
        _ => return call.wrong_number(),
    }
    Ok(())
}

fn echo(call: &mut Call<'_, '_>) -> Outcome {
    call.out.bulk(call.args[1]);
    Ok(())
}

fn quit(call: &mut Call<'_, '_>) -> Outcome {
    call.client.is_leaving = true;
    call.out.ok();
    Ok(())
}

fn select(call: &mut Call<'_, '_>) -> Outcome {
    check_database(call.int(1)?)?;
    call.out.ok();
    Ok(())
}

fn log_in(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> Outcome {
    let is_right = match &call.shared.config.password {
        // The comparison takes a time that does not tell how many bytes are
        // right.
        Some(right) => password.ct_eq(right.as_bytes()).into(),
        // Redis' default user without a password accepts any password.
        None => true,
    };
    if !is_right || user != b"default" {
        if call.shared.counters.client_lines.allows() {
            let address = call.client.peer.address();
            tracing::warn!(%address, "a client said a wrong password");
        }
        return fail("WRONGPASS invalid username-password pair or user is disabled.");
    }
    call.client.is_authenticated = true;
    Ok(())
}

fn auth(call: &mut Call<'_, '_>) -> Outcome {
    match call.args {
        [_, _] if call.shared.config.password.is_none() => fail(
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
        ),
        [_, password] => log_in(call, b"default", password),
        [_, user, password] => log_in(call, user, password),
        _ => fail(SYNTAX),
    }?;
    call.out.ok();
    Ok(())
}

fn hello(call: &mut Call<'_, '_>) -> Outcome {
    let dialect = match call.args.get(1) {
        None => call.out.dialect,
        Some(version) => match int(version) {
            Ok(2) => Dialect::Resp2,
            Ok(3) => Dialect::Resp3,
            Ok(_) => return fail("NOPROTO unsupported protocol version"),
            Err(_) => return fail("ERR Protocol version is not an integer or out of range"),
        },
    };
    let mut at = 2;
    let mut name = None;
    while let Some(word) = call.args.get(at) {
        if is(word, "AUTH") && at + 2 < call.args.len() {
            log_in(call, call.args[at + 1], call.args[at + 2])?;
            at += 3;
        } else if is(word, "SETNAME") && at + 1 < call.args.len() {
            name = Some(call.args[at + 1]);
            check_name(call.args[at + 1])?;
            at += 2;
        } else {
            let word = String::from_utf8_lossy(word);
            return fail(format!("ERR Syntax error in HELLO option '{word}'"));
        }
    }
    if !call.client.is_authenticated {
        return fail(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        );
    }
    if let Some(name) = name {
        call.client.peer.set_name(name);
    }
    call.out.dialect = dialect;
    let version = if dialect == Dialect::Resp3 { 3 } else { 2 };
    let id = i64::try_from(call.client.peer.id).unwrap_or(i64::MAX);
    let out = &mut *call.out;
    out.map(7);
    let mut text = |name: &str, value: &str| {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    };
    text("server", "redis");
    text("version", super::server::REDIS_VERSION);
    out.bulk(b"proto");
    out.int(version);
    out.bulk(b"id");
    out.int(id);
    let mut text = |name: &str, value: &str| {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    };
    text("mode", "standalone");
    text("role", "master");
    out.bulk(b"modules");
    out.array(0);
    Ok(())
}

/// # Errors
/// A name with characters that would break the lines of `CLIENT LIST`.
fn check_name(name: &[u8]) -> Outcome {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    fail("ERR Client names cannot contain spaces, newlines or special characters.")
}

fn client(call: &mut Call<'_, '_>) -> Outcome {
    let peer = std::sync::Arc::clone(&call.client.peer);
    match &call.args[1..] {
        [word] if is(word, "ID") => call.out.int(i64::try_from(peer.id).unwrap_or(i64::MAX)),
        [word] if is(word, "GETNAME") => {
            let name = peer.name();
            call.out.bulk_or_null((!name.is_empty()).then_some(&name[..]));
        }
        [word, name] if is(word, "SETNAME") => {
            check_name(name)?;
            peer.set_name(name);
            call.out.ok();
        }
        [word, what, value] if is(word, "SETINFO") => {
            check_name(value)?;
            match what {
                what if is(what, "LIB-NAME") => peer.set_library(value),
                what if is(what, "LIB-VER") => peer.set_library_version(value),
                _ => return fail("ERR Unrecognized option"),
            }
            call.out.ok();
        }
        [word] if is(word, "INFO") => call.out.verbatim(&(peer.line() + "\n")),
        [word, rest @ ..] if is(word, "LIST") => list(call, rest)?,
        [word, rest @ ..] if is(word, "KILL") => kill(call, rest)?,
        [word, mode] if is(word, "REPLY") => replies(call, mode)?,
        [word, _] if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => call.out.ok(),
        [word] if is(word, "UNPAUSE") => call.out.ok(),
        [word, id] if is(word, "UNBLOCK") => unblock(call, id, false)?,
        [word, id, how] if is(word, "UNBLOCK") => match how {
            how if is(how, "TIMEOUT") => unblock(call, id, false)?,
            how if is(how, "ERROR") => unblock(call, id, true)?,
            _ => return fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        },
        [word, ..] => {
            let word = String::from_utf8_lossy(word);
            return fail(format!(
                "ERR unknown subcommand '{word}'. Try CLIENT ID, GETNAME, SETNAME, SETINFO, INFO, LIST, \
                 KILL, UNBLOCK or REPLY"
            ));
        }
        [] => return fail(SYNTAX),
    }
    Ok(())
}

fn unblock(call: &mut Call<'_, '_>, id: &[u8], fails: bool) -> Outcome {
    let id = u64::try_from(int(id)?).unwrap_or(0);
    let peer = call.shared.clients.all().into_iter().find(|peer| peer.id == id);
    call.out.one_if(peer.is_some_and(|peer| peer.wait.end(fails)));
    Ok(())
}

fn replies(call: &mut Call<'_, '_>, mode: &[u8]) -> Outcome {
    call.client.replies = match mode {
        mode if is(mode, "ON") => Replies::All,
        mode if is(mode, "OFF") => Replies::None,
        mode if is(mode, "SKIP") => Replies::NoneNext,
        _ => return fail(SYNTAX),
    };
    if call.client.replies == Replies::All {
        call.out.ok();
    }
    Ok(())
}

fn list(call: &mut Call<'_, '_>, rest: &[&[u8]]) -> Outcome {
    let mut wanted = None;
    match rest {
        [] => {}
        [word, kind] if is(word, "TYPE") => {
            if !["NORMAL", "MASTER", "REPLICA", "PUBSUB"].iter().any(|name| is(kind, name)) {
                let kind = String::from_utf8_lossy(kind);
                return fail(format!("ERR Unknown client type '{kind}'"));
            }
            if !is(kind, "NORMAL") {
                wanted = Some(Vec::new());
            }
        }
        [word, ids @ ..] if is(word, "ID") && !ids.is_empty() => {
            let ids = ids.iter().map(|id| int(id).or_else(|_| fail("ERR Invalid client ID")));
            wanted = Some(ids.collect::<Outcome<Vec<_>>>()?);
        }
        _ => return fail(SYNTAX),
    }
    let mut text = String::new();
    for peer in call.shared.clients.all() {
        let id = i64::try_from(peer.id).unwrap_or(i64::MAX);
        if wanted.as_ref().is_none_or(|wanted| wanted.contains(&id)) {
            text += &peer.line();
            text.push('\n');
        }
    }
    call.out.verbatim(&text);
    Ok(())
}

fn kill(call: &mut Call<'_, '_>, rest: &[&[u8]]) -> Outcome {
    let own = call.client.peer.id;
    let mut all = call.shared.clients.all();
    if let [address] = rest {
        let address = String::from_utf8_lossy(address);
        let Some(peer) = all.into_iter().find(|peer| peer.address().to_string() == address) else {
            return fail("ERR No such client");
        };
        end(call, &peer);
        call.out.ok();
        return Ok(());
    }
    if rest.is_empty() || rest.len() % 2 == 1 {
        return fail(SYNTAX);
    }
    let mut spares_itself = true;
    for pair in rest.chunks_exact(2) {
        let value = String::from_utf8_lossy(pair[1]).into_owned();
        match pair[0] {
            word if is(word, "ID") => {
                let Ok(id @ 1..) = int(pair[1]) else {
                    return fail("ERR client-id should be greater than 0");
                };
                all.retain(|peer| i64::try_from(peer.id) == Ok(id));
            }
            word if is(word, "ADDR") => all.retain(|peer| peer.address().to_string() == value),
            word if is(word, "SKIPME") => spares_itself = !value.eq_ignore_ascii_case("no"),
            word if is(word, "TYPE") => {
                all.retain(|_| value.eq_ignore_ascii_case("normal"));
            }
            word if is(word, "USER") => all.retain(|_| value == "default"),
            _ => return fail(SYNTAX),
        }
    }
    all.retain(|peer| !spares_itself || peer.id != own);
    call.out.count(all.len());
    all.iter().for_each(|peer| end(call, peer));
    Ok(())
}

fn end(call: &mut Call<'_, '_>, peer: &crate::peer::Peer) {
    if peer.id == call.client.peer.id {
        call.client.is_leaving = true;
    } else {
        peer.end.notify_one();
    }
}
