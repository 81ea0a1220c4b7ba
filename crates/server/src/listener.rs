//! The sockets on which clients connect.
//!
//! Owns: the sockets that it listens on, the threads that connections run on, and the end of both.
//! Never does: read a client's bytes.

use crate::commands::table::Table;
use crate::config::Config;
use crate::durability::Syncer;
use crate::server_parts::ServerParts;
use crate::session::connection::Connection;
use crate::session::dispatch::SessionServer as Served;
use crate::stats::Watch;
use crate::sweeper;
use crate::tls;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use windrow::Db;

/// Commands wait for the device on the threads that they run on, so one is not enough. More threads
/// than processors cost more in switches than they save in waits (8 for 2 processors: .6 of the
/// rate).
const THREADS_MIN: usize = 2;
/// The interval of the search for expired collections.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// The longest time that a server that ends waits for the replies under way.
const END_TIME_MAX: Duration = Duration::from_secs(10);
/// The memory of a server without clients: the process of one that has just started has .8 MB of
/// its own.
const OWN_BYTES: u64 = 1 << 20;
/// The step in which the engine is told the size of buffers.
const OUTSIDE_STEP_BYTES: u64 = 256 << 10;
/// The pause after a connection could not be accepted: there may be no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The reason why a server does not start.
#[derive(Debug)]
pub enum StartError {
    /// A wrong setting, with a sentence that says what to change.
    Config(String),
    /// An address at which it cannot listen.
    Listen(SocketAddr, io::Error),
    /// No threads, or no runtime for them.
    Threads(io::Error),
    /// The keyspaces that values are kept in cannot be made.
    Database(windrow::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Config(what) => f.write_str(what),
            StartError::Listen(address, error) => {
                write!(f, "cannot listen at {address}: {error}; choose another --port or --bind")
            }
            StartError::Threads(error) => write!(f, "cannot start the server's threads: {error}"),
            StartError::Database(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running server.
///
/// It is stopped when it is dropped.
///
/// # Panics
/// Stopping it waits, as [`Server::wait`] does: on a thread of an async runtime both panic. Call
/// them where waiting is allowed (`tokio::task::spawn_blocking`).
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    served: Arc<Served>,
    syncer: Arc<Syncer>,
}

impl Server {
    /// Listens, and serves clients, on threads of its own. The database must stay open until it
    /// stops, and is the caller's to close.
    ///
    /// # Errors
    /// [`StartError`]: of settings, addresses, threads or the database.
    pub fn start(db: Db, config: Config) -> Result<Server, StartError> {
        config.check().map_err(StartError::Config)?;
        let config = Config { clients_max: clients_max(config.clients_max), ..config };
        let table = Table::new(&config.renamed).map_err(StartError::Config)?;
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        listen(&config.bind, config.port, None, (&mut listeners, &mut addresses))?;
        if let Some(tls) = &config.tls {
            let acceptor = tls::acceptor(tls).map_err(StartError::Config)?;
            listen(&config.bind, tls.port, Some(&acceptor), (&mut listeners, &mut addresses))?;
        }
        let shared = ServerParts::new(db.clone(), config, addresses, Table::names())
            .map_err(StartError::Database)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(THREADS_MIN))
            .thread_name("windrow-serve")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let durability = shared.config.durability;
        let syncer = Arc::new(Syncer::start(db, durability).map_err(StartError::Threads)?);
        let served = Arc::new(Served { shared, table });
        let (stop, stopped) = watch::channel(false);
        let server = Server { runtime: Some(runtime), stop, served, syncer };
        server.spawn(listeners, &stopped).map_err(StartError::Threads)?;
        Ok(server)
    }

    fn spawn(&self, listeners: Vec<Listener>, stopped: &watch::Receiver<bool>) -> io::Result<()> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let _here = runtime.enter();
        for (listener, acceptor) in listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (served, syncer) = (Arc::clone(&self.served), Arc::clone(&self.syncer));
            runtime.spawn(accept((listener, acceptor), served, syncer, stopped.clone()));
        }
        runtime.spawn(sweep(Arc::clone(&self.served), stopped.clone()));
        Ok(())
    }

    /// Returns the addresses that it listens on: those without TLS, then those with it.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.served.shared.addresses
    }

    /// Returns its counters, which can be read while it runs and afterwards.
    pub fn watch(&self) -> Watch {
        Watch::new(&self.served)
    }

    /// Waits until a client sends `SHUTDOWN`, the process gets SIGTERM, or `is_over`, which is
    /// called ten times a second, returns true.
    pub fn wait(&self, mut is_over: impl FnMut() -> bool) {
        const EVERY: Duration = Duration::from_millis(100);
        let Some(runtime) = &self.runtime else { return };
        runtime.block_on(async {
            let shutdown = self.served.shared.shutdown.notified();
            tokio::pin!(shutdown);
            // Without a handler the signal ends the process at once, which loses no synced write.
            let mut terminated = signal(SignalKind::terminate()).ok();
            while !is_over() {
                let signal = async {
                    match &mut terminated {
                        Some(terminated) => terminated.recv().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = &mut shutdown => return,
                    _ = signal => return,
                    () = tokio::time::sleep(EVERY) => {}
                }
            }
        });
    }

    /// Stops it: no client is accepted any more, replies under way are sent, and the writes that
    /// they acknowledge are synced.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // There may be no receiver left.
        let _ = self.stop.send(true);
        runtime.block_on(async {
            let all_gone = async {
                while self.served.shared.clients.len() > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            // Clients that do not take their replies are dropped.
            let _ = tokio::time::timeout(END_TIME_MAX, all_gone).await;
        });
        self.syncer.stop();
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A socket to listen on, with the encryption of its connections.
type Listener = (TcpListener, Option<TlsAcceptor>);

/// Listens on a port of all addresses.
fn listen(
    bind: &[IpAddr],
    mut port: u16,
    acceptor: Option<&TlsAcceptor>,
    (listeners, addresses): (&mut Vec<Listener>, &mut Vec<SocketAddr>),
) -> Result<(), StartError> {
    for address in bind {
        let address = SocketAddr::new(*address, port);
        let open = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = open().map_err(|error| StartError::Listen(address, error))?;
        // A free port that was found at the first address is used for the others, too.
        port = address.port();
        addresses.push(address);
        listeners.push((listener, acceptor.cloned()));
    }
    Ok(())
}

/// Returns the number of connections: as many as asked for, or as descriptors allow. More
/// descriptors are asked of the system, and the engine keeps seven eighths of those that there were
/// when it opened.
fn clients_max(asked: usize) -> usize {
    /// Descriptors for the listening sockets, the runtime and other files of the program.
    const KEPT: u64 = 16;
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current else { return asked };
    let wanted = soft.saturating_add(asked as u64 + KEPT);
    let wanted = limit.maximum.map_or(wanted, |hard| wanted.min(hard));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    let soft_now = if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { soft };
    let free = (soft_now - soft + soft / 8).saturating_sub(KEPT).max(1);
    asked.min(usize::try_from(free).unwrap_or(usize::MAX))
}

async fn accept(
    (listener, acceptor): (tokio::net::TcpListener, Option<TlsAcceptor>),
    served: Arc<Served>,
    syncer: Arc<Syncer>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => admit((stream, acceptor.as_ref()), &served, &syncer, &stopped),
            // There may be no descriptor left: others are closed by and by.
            Err(error) => {
                if served.shared.counters.client_lines.allows() {
                    tracing::warn!(%error, "cannot accept a connection");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn admit(
    (mut stream, acceptor): (TcpStream, Option<&TlsAcceptor>),
    served: &Arc<Served>,
    syncer: &Arc<Syncer>,
    stopped: &watch::Receiver<bool>,
) {
    let shared = &served.shared;
    let (Ok(address), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    if shared.clients.len() >= shared.config.clients_max {
        shared.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
        if shared.counters.client_lines.allows() {
            let maxclients = shared.config.clients_max;
            tracing::warn!(%address, maxclients, "refused a connection: there are as many as may be");
        }
        tokio::spawn(async move {
            // The connection is refused, whether or not the client gets the reason.
            let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
        });
        return;
    }
    shared.counters.connections.fetch_add(1, Ordering::Relaxed);
    // Without this, replies are later, but correct.
    let _ = stream.set_nodelay(true);
    let peer = shared.clients.add(address, local);
    let (served, syncer, stopped) = (Arc::clone(served), Arc::clone(syncer), stopped.clone());
    let Some(acceptor) = acceptor.cloned() else {
        let mut connection = Connection::new(served, syncer, stopped, (stream, peer));
        tokio::spawn(async move { connection.run().await });
        return;
    };
    tokio::spawn(async move {
        let time = served.shared.config.request_time_max;
        match tokio::time::timeout(time, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                Connection::new(served, syncer, stopped, (stream, peer)).run().await;
            }
            // A client that does not speak TLS cannot be sent an error.
            Ok(Err(error)) => {
                tracing::debug!(%address, %error, "a client did not agree on TLS");
                served.shared.clients.remove(peer.id);
            }
            Err(_) => served.shared.clients.remove(peer.id),
        }
    });
}

async fn sweep(served: Arc<Served>, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP_EVERY) => {}
            _ = stopped.changed() => return,
        }
        let shared = &served.shared;
        let buffers = shared.counters.buffer_bytes.load(Ordering::Relaxed) as u64;
        // The size is rounded to steps, since each change resizes the cache.
        shared
            .store
            .db
            .set_outside_memory(OWN_BYTES + buffers.next_multiple_of(OUTSIDE_STEP_BYTES));
        // If the database cannot be written now, the next sweep tries again.
        let mut after = None;
        while let Ok((deleted, last)) = sweeper::sweep(&served.shared.store, after) {
            served.shared.counters.expired.fetch_add(deleted, Ordering::Relaxed);
            after = last;
            if after.is_none() || *stopped.borrow() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}
