//! The settings of the server.
//!
//! Owns: the settings, their defaults and their bounds. Never does: read a command line.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// The moment at which a write is on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Before its reply: no acknowledged write is lost. Clients that wait at the same moment share
    /// one sync.
    Always,
    /// Within a second: a loss of power loses at most the last second's writes. The end of the
    /// process alone loses none.
    #[default]
    EverySecond,
    /// Whenever the operating system or the engine writes it.
    No,
}

/// A port at which connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The port; 0 for a free one.
    pub port: u16,
    /// A file in PEM: the server's certificate, then those of its signers.
    pub certificates: PathBuf,
    /// A file in PEM: the certificate's private key.
    pub key: PathBuf,
}

/// The settings of a server.
///
/// ```
/// use windrow_server::{Config, Durability};
/// let config = Config { port: 0, durability: Durability::Always, ..Config::default() };
/// assert!(config.bind.iter().all(|address| address.is_loopback()));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses that it listens at (default: 127.0.0.1). An address that is not loopback needs
    /// a password.
    pub bind: Vec<IpAddr>,
    /// The port (default: 6379); 0 for a free one.
    pub port: u16,
    /// A port for TLS as well (default: none).
    pub tls: Option<Tls>,
    /// When a write is on the device (default: within a second).
    pub durability: Durability,
    /// The password that clients must send first (default: none).
    pub password: Option<String>,
    /// The most connections (default: 10,000); fewer where the process may open fewer files.
    pub clients_max: usize,
    /// The time after which a silent connection is closed (default: never).
    pub idle_max: Option<Duration>,
    /// The time that a client has to complete a request, or to authenticate if it must (default: 30
    /// s).
    pub request_time_max: Duration,
    /// Whether commands that write are refused (default: no).
    pub is_read_only: bool,
    /// New names of commands; an empty one removes a command.
    pub renamed: HashMap<String, String>,
    /// The most arguments of one request (default: 1,048,576).
    pub args_max: usize,
    /// The most bytes of one argument (default: 512 MiB). Memory is taken as they arrive.
    pub arg_bytes_max: usize,
    /// The most bytes of one reply (default: 64 MiB).
    pub reply_bytes_max: usize,
    /// The most bytes of all requests and replies that are under way, of all clients (default: 256
    /// MiB). A client that needs more is disconnected.
    pub buffer_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bind: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            port: 6379,
            tls: None,
            durability: Durability::default(),
            password: None,
            clients_max: 10_000,
            idle_max: None,
            request_time_max: Duration::from_secs(30),
            is_read_only: false,
            renamed: HashMap::new(),
            args_max: 1 << 20,
            arg_bytes_max: 512 << 20,
            reply_bytes_max: 64 << 20,
            buffer_bytes_max: 256 << 20,
        }
    }
}

impl Config {
    /// Checks whether a server can run with these settings.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        if self.bind.is_empty() {
            return Err("the server listens nowhere: give an address to --bind".to_owned());
        }
        let public = self.bind.iter().find(|address| !address.is_loopback());
        if let Some(public) = public
            && self.password.is_none()
        {
            return Err(format!(
                "whoever reaches {public} could read and write everything: set a password by \
                 --requirepass, or listen at 127.0.0.1"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_listens_to_the_world_without_a_password() {
        let public = Config { bind: vec![Ipv4Addr::UNSPECIFIED.into()], ..Config::default() };
        assert!(public.check().unwrap_err().contains("--requirepass"));
        let guarded = Config { password: Some("x".to_owned()), ..public };
        assert_eq!(guarded.check(), Ok(()));
        assert_eq!(Config::default().check(), Ok(()));
        assert!(Config { bind: Vec::new(), ..Config::default() }.check().is_err());
    }
}
