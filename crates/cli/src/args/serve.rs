//! The arguments of `windrow serve`.
//!
//! Owns: its flags, and the words of its help. Never does: start anything.

use super::open::Open;
use crate::bytes::parse_duration;
use crate::durability::ServeSync;
use crate::log::{LineFormat, Verbosity};
use clap::Args;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const SERVE_HELP: &str = "\
Strings are the plain pairs of the keyspace `default`: what a client SETs, `windrow get` reads. Talk to it
by `redis-cli -p PORT`, or any Redis client. WINDROW.STATS, .TREE, .COMPACT, .CHECKPOINT and .POLICY are
Windrow's own commands.";

/// Redis' flags have their names; those that have no meaning here are taken and do nothing.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Port; 0 for one that is free
    #[arg(long, value_name = "PORT", default_value_t = 6379)]
    pub(crate) port: u16,
    /// Address to listen at, as often as you like; any but loopback ones need --requirepass
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_delimiter = ' ')]
    pub(crate) bind: Vec<IpAddr>,
    /// When a write is on the device: before its reply, within a second, or whenever
    #[arg(long, value_name = "WHEN", visible_alias = "appendfsync", default_value = "everysec")]
    pub(crate) sync: ServeSync,
    /// The password that clients say before anything else
    #[arg(long, value_name = "PASSWORD", env = "WINDROW_REQUIREPASS", hide_env_values = true)]
    pub(crate) requirepass: Option<String>,
    /// A port for TLS as well; 0 for one that is free
    #[arg(long, value_name = "PORT", requires_all = ["tls_cert_file", "tls_key_file"])]
    pub(crate) tls_port: Option<u16>,
    /// The server's certificate and those it was signed by, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// Connections at most
    #[arg(long, value_name = "CLIENTS", default_value_t = 10_000)]
    pub(crate) maxclients: usize,
    /// End connections that say nothing for so long: seconds, or 90s, 5m; 0: never
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0")]
    pub(crate) timeout: Duration,
    /// Give a command another name, or none (''): as often as you like
    #[arg(long, value_names = ["COMMAND", "NAME"], num_args = 2)]
    pub(crate) rename_command: Vec<String>,
    /// Refuse commands that write
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Bytes of one reply at most
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) reply_max_bytes: usize,
    /// Bytes of all requests and replies under way at most; an eighth of the memory if nothing is said
    #[arg(long, value_name = "BYTES")]
    pub(crate) buffer_max_bytes: Option<usize>,
    /// Show the database at this address: a page to watch it, and /metrics for Prometheus; any but loopback
    /// ones need --requirepass, which is asked for
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) dashboard: Option<SocketAddr>,
    /// How much is logged
    #[arg(long, value_name = "LEVEL", default_value = "notice")]
    pub(crate) loglevel: Verbosity,
    /// Where it is logged; standard error if nothing is said
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<PathBuf>,
    /// Lines for people, or an object of JSON on each
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LineFormat,
    /// Go to this directory first: other paths begin there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Taken and not needed: every write is kept
    #[arg(long, hide = true, num_args = 0..)]
    pub(crate) save: Vec<String>,
    #[arg(long, hide = true, value_name = "YES")]
    pub(crate) appendonly: Option<String>,
    #[arg(long, hide = true, value_name = "YES")]
    pub(crate) daemonize: Option<String>,
    #[arg(long, hide = true, value_name = "YES")]
    pub(crate) protected_mode: Option<String>,
}
