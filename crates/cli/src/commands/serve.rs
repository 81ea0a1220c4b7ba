//! `windrow serve`: a database for Redis clients.
//!
//! Owns: its arguments, and what is said of it. Never does: know the protocol.

use crate::args::ServeArgs;
use crate::durability::ServeSync;
use crate::failure::{Failure, Result};
use crate::stop;
use crate::store::{self, Access};
use std::collections::HashMap;
use std::io::{self, Write};
use windrow_server::{Config, Durability, Server, Tls};

/// Requests and replies have so much at least, however little memory the database has.
const BUFFER_BYTES_MIN: usize = 16 << 20;

pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let config = config(args)?;
    store::with(&args.open, Access::Create, |db| {
        let of_memory = usize::try_from(db.stats().memory.budget_bytes / 8).unwrap_or(usize::MAX);
        let buffer_bytes_max = args.buffer_max_bytes.unwrap_or(of_memory.max(BUFFER_BYTES_MIN));
        let config = Config { buffer_bytes_max, ..config };
        let server = Server::start(db.clone(), config)
            .map_err(|error| Failure::failed(error.to_string()))?;
        for address in server.addresses() {
            say(format_args!("serving {} at {address}", args.open.path.display()));
        }
        server.wait(stop::requested);
        say(format_args!("ending: replies under way are sent, and the database is closed"));
        server.stop();
        Ok(())
    })
}

fn say(what: std::fmt::Arguments<'_>) {
    // A log that nobody reads any more is no reason to end.
    let _ = writeln!(io::stderr(), "windrow: {what}");
}

fn config(args: &ServeArgs) -> Result<Config> {
    for (flag, value) in [("daemonize", &args.daemonize), ("appendonly", &args.appendonly)] {
        let wanted = if flag == "daemonize" { "no" } else { "yes" };
        if let Some(value) = value
            && value != wanted
        {
            return Err(Failure::usage(format!("--{flag} {value}: only `{wanted}` is possible")));
        }
    }
    let names = args.rename_command.chunks_exact(2);
    let renamed: HashMap<_, _> = names.map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let config = Config {
        bind: args.bind.clone(),
        port: args.port,
        tls: tls(args),
        durability: match args.sync {
            ServeSync::Always => Durability::Always,
            ServeSync::Everysec => Durability::EverySecond,
            ServeSync::No => Durability::No,
        },
        password: args.requirepass.clone(),
        clients_max: args.maxclients,
        idle_max: (!args.timeout.is_zero()).then_some(args.timeout),
        is_read_only: args.read_only,
        renamed,
        reply_bytes_max: args.reply_max_bytes,
        ..Config::default()
    };
    config.check().map_err(Failure::usage)?;
    Ok(config)
}

/// The port for TLS; its files are there where it is.
fn tls(args: &ServeArgs) -> Option<Tls> {
    Some(Tls {
        port: args.tls_port?,
        certificates: args.tls_cert_file.clone()?,
        key: args.tls_key_file.clone()?,
    })
}
