//! The server itself: `INFO`, `CONFIG` and their like.
//!
//! Owns: their arguments and replies. Never does: count.

use super::call::{Call, is};
use super::command::{ADMIN, Command, NO_MULTI, READ, SLOW, keyed_at, plain};
use crate::clock;
use crate::data::element;
use crate::data::value::{Value, spaces_of};
use crate::fault::{Outcome, SYNTAX, fail};
use crate::glob::Pattern;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// The version of Redis whose commands these are.
pub(super) const REDIS_VERSION: &str = "7.0.15";

pub(super) const COMMANDS: &[Command] = &[
    plain("info", -1, 0, info),
    plain("config", -2, ADMIN, config),
    plain("debug", -2, ADMIN | SLOW, debug),
    plain("time", 1, 0, time),
    plain("lastsave", 1, 0, lastsave),
    plain("save", 1, ADMIN | SLOW | NO_MULTI, save),
    plain("bgsave", -1, ADMIN | SLOW, save),
    plain("slowlog", -2, ADMIN, |call| none_of(call, &["GET", "LEN", "RESET"])),
    plain("latency", -2, ADMIN, |call| none_of(call, &["LATEST", "HISTORY", "HISTOGRAM", "RESET"])),
    plain("function", -2, 0, |call| none_of(call, &["LIST", "FLUSH"])),
    plain("script", -2, 0, |call| none_of(call, &["EXISTS", "FLUSH"])),
    plain("acl", -2, ADMIN, acl),
    plain("wait", 3, 0, wait),
    plain("role", 1, 0, role),
    plain("shutdown", -1, ADMIN | NO_MULTI, shutdown),
    keyed_at("memory", -2, READ | SLOW, (2, 2, 1), memory),
];

/// Returns the sections of `INFO`.
fn sections(call: &Call<'_, '_>) -> Vec<(&'static str, String)> {
    let shared = call.shared;
    let (stats, counters) = (shared.store.db.stats(), &shared.counters);
    let port = shared.addresses.first().map_or(0, |address| address.port());
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let commands: u64 = counters.commands().iter().map(|(_, of)| of.calls()).sum();
    let mut by_command = String::new();
    for (name, of) in counters.commands() {
        if let Some(text) = of.text() {
            let _ = write!(by_command, "cmdstat_{name}:{text}\r\n");
        }
    }
    let mut by_error = String::new();
    for (word, count) in counters.errors_by_word() {
        let _ = write!(by_error, "errorstat_{word}:count={count}\r\n");
    }
    let seconds = shared.since.elapsed().as_secs();
    let memory = stats.memory.used_bytes();
    vec![
        (
            "Server",
            format!(
                "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nwindrow_version:{}\r\n\
                 process_id:{}\r\ntcp_port:{port}\r\nuptime_in_seconds:{seconds}\r\n\
                 uptime_in_days:{}\r\nexecutable:windrow\r\nconfig_file:\r\n",
                env!("CARGO_PKG_VERSION"),
                std::process::id(),
                seconds / 86_400,
            ),
        ),
        (
            "Clients",
            format!(
                "connected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:{}\r\n\
                 client_buffer_bytes:{}\r\n",
                shared.clients.len(),
                shared.config.clients_max,
                shared.store.waiting.len(),
                counters.buffer_bytes.load(Ordering::Relaxed),
            ),
        ),
        (
            "Memory",
            format!("used_memory:{memory}\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"),
        ),
        (
            "Persistence",
            "loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:1\r\n\
             aof_rewrite_in_progress:0\r\n"
                .to_owned(),
        ),
        (
            "Stats",
            format!(
                "total_connections_received:{}\r\ntotal_commands_processed:{commands}\r\n\
                 rejected_connections:{}\r\nexpired_keys:{}\r\ntotal_error_replies:{}\r\n",
                load(&counters.connections),
                load(&counters.connections_refused),
                load(&counters.expired),
                load(&counters.errors),
            ),
        ),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("CPU", String::new()),
        ("Commandstats", by_command),
        ("Errorstats", by_error),
        ("Keyspace", keyspace(call)),
    ]
}

/// Returns an estimate of the number of keys: `INFO` is asked for often, and `DBSIZE` counts.
fn keyspace(call: &Call<'_, '_>) -> String {
    use crate::data::space::Space;
    let spaces = &call.shared.store.spaces;
    let len = |space| spaces.get(space).approximate_len().unwrap_or(0);
    let (strings, heads) = (len(Space::Strings), len(Space::Heads));
    let expires = len(Space::Deadlines);
    match strings + heads {
        0 => String::new(),
        keys => format!("db0:keys={keys},expires={expires},avg_ttl=0\r\n"),
    }
}

fn info(call: &mut Call<'_, '_>) -> Outcome {
    let wanted = &call.args[1..];
    let is_all = |name: &&[u8]| ["all", "everything", "default"].iter().any(|word| is(name, word));
    let mut text = String::new();
    for (name, lines) in sections(call) {
        let is_wanted = match wanted {
            // As in Redis, the costs of commands are only sent if they are asked for.
            [] => name != "Commandstats",
            names => names.iter().any(|wanted| is_all(wanted) || is(wanted, name)),
        };
        if is_wanted {
            let begin = if text.is_empty() { "" } else { "\r\n" };
            let _ = write!(text, "{begin}# {name}\r\n{lines}");
        }
    }
    call.out.verbatim(&text);
    Ok(())
}

fn config(call: &mut Call<'_, '_>) -> Outcome {
    match &call.args[1..] {
        [word, patterns @ ..] if is(word, "GET") && !patterns.is_empty() => {
            let lower: Vec<_> = patterns.iter().map(|text| text.to_ascii_lowercase()).collect();
            let patterns = lower.iter().map(|text| Pattern::new(text));
            let found = call.shared.parameters.matching(&patterns.collect::<Outcome<Vec<_>>>()?);
            call.out.map(found.len());
            for (name, value) in found {
                call.out.bulk(name.as_bytes());
                call.out.bulk(value.as_bytes());
            }
        }
        [word, pairs @ ..] if is(word, "SET") && !pairs.is_empty() && pairs.len() % 2 == 0 => {
            for pair in pairs.chunks_exact(2) {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                let (name, value) = (text(pair[0]).to_ascii_lowercase(), text(pair[1]));
                if !call.shared.parameters.set(&name, &value) {
                    return fail(format!(
                        "ERR CONFIG SET failed (possibly related to argument '{name}') - it is no \
                         number, or only the command line of `windrow serve` sets it"
                    ));
                }
            }
            call.out.ok();
        }
        [word] if is(word, "RESETSTAT") => {
            call.shared.counters.reset();
            call.out.ok();
        }
        [word] if is(word, "REWRITE") => {
            return fail("ERR The server is running without a config file");
        }
        _ => {
            return fail(
                "ERR unknown subcommand or wrong number of arguments for 'config'. Try GET or SET.",
            );
        }
    }
    Ok(())
}

fn debug(call: &mut Call<'_, '_>) -> Outcome {
    match &call.args[1..] {
        [word, seconds] if is(word, "SLEEP") => {
            /// The longest sleep: a longer one would be a way to keep a thread for ever.
            const SECONDS_MAX: f64 = 60.0;
            let seconds = super::call::float(seconds)?.clamp(0.0, SECONDS_MAX);
            clock::sleep(std::time::Duration::from_secs_f64(seconds));
            call.out.ok();
            Ok(())
        }
        [word, ..] => {
            let word = String::from_utf8_lossy(word);
            fail(format!("ERR DEBUG {word} is not known here: only DEBUG SLEEP is"))
        }
        [] => fail(SYNTAX),
    }
}

fn time(call: &mut Call<'_, '_>) -> Outcome {
    let now = clock::since_1970();
    call.out.array(2);
    call.out.bulk(now.as_secs().to_string().as_bytes());
    call.out.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

fn lastsave(call: &mut Call<'_, '_>) -> Outcome {
    call.out.int(i64::try_from(clock::since_1970().as_secs()).unwrap_or(i64::MAX));
    Ok(())
}

/// Syncs the database, where Redis writes a snapshot of everything: both make it durable.
fn save(call: &mut Call<'_, '_>) -> Outcome {
    call.shared.store.db.sync()?;
    if is(call.args[0], "BGSAVE") {
        call.out.simple("Background saving started");
    } else {
        call.out.ok();
    }
    Ok(())
}

/// Answers as a server that has nothing of the kind: programs ask as a matter of course.
fn none_of(call: &mut Call<'_, '_>, words: &[&str]) -> Outcome {
    let word = call.args[1];
    if !words.iter().any(|known| is(word, known)) {
        let (name, word) = (String::from_utf8_lossy(call.args[0]), String::from_utf8_lossy(word));
        return fail(format!("ERR unknown subcommand '{word}' of '{name}'"));
    }
    match word {
        word if is(word, "LEN") => call.out.int(0),
        word if is(word, "FLUSH") || is(word, "RESET") => call.out.ok(),
        word if is(word, "EXISTS") => {
            call.out.array(call.args.len() - 2);
            (2..call.args.len()).for_each(|_| call.out.int(0));
        }
        _ => call.out.array(0),
    }
    Ok(())
}

fn acl(call: &mut Call<'_, '_>) -> Outcome {
    match &call.args[1..] {
        [word] if is(word, "WHOAMI") => {
            call.out.bulk(b"default");
            Ok(())
        }
        _ => fail("ERR there is one user, `default`, whose password is --requirepass"),
    }
}

fn wait(call: &mut Call<'_, '_>) -> Outcome {
    call.int(1)?;
    call.int(2)?;
    call.out.int(0);
    Ok(())
}

fn role(call: &mut Call<'_, '_>) -> Outcome {
    call.out.array(3);
    call.out.bulk(b"master");
    call.out.int(0);
    call.out.array(0);
    Ok(())
}

fn shutdown(call: &mut Call<'_, '_>) -> Outcome {
    call.client.is_leaving = true;
    call.shared.shutdown.notify_one();
    Ok(())
}

fn memory(call: &mut Call<'_, '_>) -> Outcome {
    match &call.args[1..] {
        [word, key] | [word, key, _, _] if is(word, "USAGE") => {
            let Some(value) = call.view.value(key)? else {
                call.out.null();
                return Ok(());
            };
            let mut bytes = 0;
            match &value {
                Value::String(string, _) => bytes += key.len() + string.len(),
                Value::Collection(head) => {
                    for space in spaces_of(head.kind) {
                        for row in call.view.rows_of(*space, &element::prefix(key)) {
                            let (row, value) = row?;
                            bytes += row.len() + value.len();
                        }
                    }
                }
            }
            call.out.count(bytes);
            Ok(())
        }
        [word] if is(word, "DOCTOR") => {
            call.out.verbatim("See WINDROW.STATS.");
            Ok(())
        }
        _ => fail("ERR unknown subcommand of 'memory': MEMORY USAGE is known"),
    }
}
