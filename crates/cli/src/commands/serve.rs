//! `windrow serve`: a database for Redis clients.
//!
//! Owns: its arguments and its messages. Never does: know the protocol.

use crate::args::ServeArgs;
use crate::durability::ServeSync;
use crate::failure::{Failure, Result};
use crate::log;
use crate::stop;
use crate::store::{self, Access};
use std::collections::HashMap;
use std::sync::Arc;
use windrow::Db;
use windrow_dashboard::{Dashboard, Events, Kind, Metrics, Settings};
use windrow_server::{Config, Durability, Server, ServerStats, Tls};

/// Requests and replies have at least this many bytes, however little memory the database has.
const BUFFER_BYTES_MIN: usize = 16 << 20;

pub(crate) fn run(mut args: ServeArgs) -> Result<()> {
    let config = config(&args)?;
    if let Some(dir) = &args.dir {
        std::env::set_current_dir(dir).map_err(|error| {
            Failure::failed(format!("cannot go to the directory {}: {error}", dir.display()))
        })?;
    }
    log::install(args.loglevel, args.log_format, args.logfile.as_deref())?;
    let events = Arc::new(Events::default());
    if args.dashboard.is_some() {
        args.open.listener = Some(Arc::clone(&events));
    }
    store::with(&args.open, Access::Create, |db| {
        let of_memory = usize::try_from(db.stats().memory.budget_bytes / 8).unwrap_or(usize::MAX);
        let buffer_bytes_max = args.buffer_max_bytes.unwrap_or(of_memory.max(BUFFER_BYTES_MIN));
        let config = Config { buffer_bytes_max, ..config };
        let server = Server::start(db.clone(), config)
            .map_err(|error| Failure::failed(error.to_string()))?;
        for address in server.addresses() {
            tracing::info!(database = %args.open.path.display(), %address, "serving");
        }
        let dashboard = dashboard(&args, (db, &server), &events)?;
        server.wait(stop::requested);
        tracing::info!("ending: replies under way are sent, and the database is closed");
        server.stop();
        drop(dashboard);
        Ok(())
    })
}

/// Starts the dashboard of the database and the server, if it is asked for.
fn dashboard(
    args: &ServeArgs,
    (db, server): (&Db, &Server),
    events: &Arc<Events>,
) -> Result<Option<Dashboard>> {
    let Some(address) = args.dashboard else { return Ok(None) };
    let watch = server.watch();
    let settings = Settings {
        address,
        password: args.requirepass.clone(),
        source: Some(Arc::new(move |metrics: &mut Metrics| measure(&watch.stats(), metrics))),
    };
    let dashboard =
        Dashboard::start(db.clone(), Arc::clone(events), settings).map_err(|error| {
            Failure::failed(format!(
                "cannot show the database at {address}: {error}; choose another --dashboard"
            ))
        })?;
    tracing::info!(page = %format_args!("http://{}/", dashboard.address()), "showing");
    Ok(Some(dashboard))
}

/// Adds the server's metrics.
fn measure(stats: &ServerStats, metrics: &mut Metrics) {
    use Kind::{Counter, Gauge};
    for (name, kind, help, value) in [
        ("clients", Gauge, "Clients that are connected.", stats.clients),
        ("clients_waiting", Gauge, "Clients that wait for an element.", stats.clients_waiting),
        ("buffer_bytes", Gauge, "Bytes of requests and replies under way.", stats.buffer_bytes),
        ("connections_total", Counter, "Connections accepted.", stats.connections),
        ("connections_refused_total", Counter, "Connections refused.", stats.connections_refused),
        ("errors_total", Counter, "Requests answered by an error.", stats.errors),
        ("expired_total", Counter, "Collections that expired.", stats.expired),
    ] {
        metrics.single(&format!("windrow_server_{name}"), kind, help, value as f64);
    }
    metrics.family("windrow_server_command_seconds", Kind::Summary, "Time that commands took.");
    for command in &stats.commands {
        let labels = [("command", command.name)];
        metrics.sample("windrow_server_command_seconds_sum", &labels, command.seconds);
        metrics.sample("windrow_server_command_seconds_count", &labels, command.calls as f64);
    }
    metrics.family("windrow_server_command_failures_total", Counter, "Commands that failed.");
    for command in &stats.commands {
        let labels = [("command", command.name)];
        metrics.sample("windrow_server_command_failures_total", &labels, command.failed as f64);
    }
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

/// Returns the port for TLS with its files: the argument parser requires these together.
fn tls(args: &ServeArgs) -> Option<Tls> {
    Some(Tls {
        port: args.tls_port?,
        certificates: args.tls_cert_file.clone()?,
        key: args.tls_key_file.clone()?,
    })
}
