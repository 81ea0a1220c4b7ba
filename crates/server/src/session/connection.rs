//! One connection: bytes in, commands, bytes out.
//!
//! Owns: the times of its reads and writes, its waits, and its memory. Never does: run a command.

use super::dispatch::{Session, SessionServer};
use super::execute::CommandGroup;
use crate::channels::{Inbox, Message};
use crate::client::Blocked;
use crate::data::waiting_clients::Ticket;
use crate::durability::Syncer;
use crate::peer::Peer;
use crate::protocol::{Dialect, Limits, Reply, RequestParser};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

/// Replies are sent once they have this many bytes, even before all requests have run.
const SEND_BYTES: usize = 64 << 10;
/// The number of bytes that are read at once grows with earlier reads: clients that send little
/// cost little.
const READ_BYTES_MIN: usize = 1 << 10;
const READ_BYTES_MAX: usize = 16 << 10;
/// The most requests that are parsed before the first of them is run.
const AHEAD_MAX: usize = 32;
/// A request of up to this many arguments reads one row, or none that its arguments tell.
const ONE_ROW_ARGS_MAX: usize = 4;
/// Every client may have this many bytes under way, however many all have.
const OWN_BYTES: usize = 128 << 10;
/// A client that takes nothing of its replies for this time is dropped.
const SEND_TIME_MAX: Duration = Duration::from_secs(60);

/// The longest time that a reply waits for the clients that its command has served.
const SERVED_TIME_MAX: Duration = Duration::from_millis(100);

/// The next step of a connection.
enum NextStep {
    /// Waits for more bytes.
    Read,
    /// Goes on with the bytes that have arrived.
    Run,
    /// Waits for the keys of a command, which are among these arguments.
    Wait(Vec<Vec<u8>>),
}

/// A connection under way.
pub(crate) struct Connection<S> {
    stream: S,
    session: Session,
    inbox: Inbox,
    syncer: Arc<Syncer>,
    stopped: watch::Receiver<bool>,
    parser: RequestParser,
    input: Vec<u8>,
    /// The number of bytes that are read at once now.
    read_bytes: usize,
    /// The number of bytes of `input` that have been run.
    done: usize,
    out: Reply,
    /// The bytes of the buffers that are counted.
    counted: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(
        server: Arc<SessionServer>,
        syncer: Arc<Syncer>,
        stopped: watch::Receiver<bool>,
        (stream, peer): (S, Arc<Peer>),
    ) -> Connection<S> {
        let (session, inbox) = Session::new(server, peer);
        Connection {
            stream,
            session,
            inbox,
            syncer,
            stopped,
            parser: RequestParser::default(),
            input: Vec::new(),
            read_bytes: READ_BYTES_MIN,
            done: 0,
            out: Reply::new(Dialect::Resp2),
            counted: 0,
        }
    }

    /// Serves it until either side ends it.
    pub(crate) async fn run(&mut self) {
        let peer = Arc::clone(&self.session.client.peer);
        tracing::debug!(client = peer.id, address = %peer.address(), "a client has come");
        // A client that has disconnected cannot be sent an error.
        match self.serve().await {
            Ok(()) => tracing::debug!(client = peer.id, "a client has gone"),
            Err(error) => tracing::debug!(client = peer.id, %error, "a client was lost"),
        }
    }

    async fn serve(&mut self) -> io::Result<()> {
        loop {
            self.run_requests().await?;
            if self.session.client.is_leaving || *self.stopped.borrow() {
                return self.stream.shutdown().await;
            }
            if !self.read().await? {
                return Ok(());
            }
        }
    }

    fn limits(&self) -> Limits {
        let config = &self.session.server.shared.config;
        let limit = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        Limits {
            args_max: limit(config.args_max),
            arg_bytes_max: limit(config.arg_bytes_max),
            is_stranger: !self.session.client.is_authenticated,
        }
    }

    /// Runs all requests that have arrived, and sends their replies.
    async fn run_requests(&mut self) -> io::Result<()> {
        loop {
            let next = self.run_arrived();
            self.count();
            self.send().await?;
            match next {
                NextStep::Read => break,
                NextStep::Run => {}
                NextStep::Wait(args) => self.wait(&args).await?,
            }
        }
        self.input.drain(..self.done);
        self.done = 0;
        if self.input.is_empty() {
            self.input.shrink_to(self.read_bytes);
        }
        self.count();
        Ok(())
    }

    /// Runs requests that have arrived, up to one that waits, or until the replies have
    /// [`SEND_BYTES`]. Then it writes all their staged rows.
    fn run_arrived(&mut self) -> NextStep {
        let server = Arc::clone(&self.session.server);
        let mut group = CommandGroup::new(&server.shared, &server.table);
        let next = loop {
            if let Some(next) = self.run_some(&mut group) {
                break next;
            }
        };
        self.session.write(&mut group, &mut self.out);
        next
    }

    /// Runs the next requests; returns the next step, unless more have arrived.
    fn run_some(&mut self, group: &mut CommandGroup<'_>) -> Option<NextStep> {
        let (begin, client) = (self.done, &self.session.client);
        // The limits are others after authentication.
        let most = if client.is_authenticated { AHEAD_MAX } else { 1 };
        let looks_ahead = client.is_authenticated && client.queue.is_none();
        let limits = self.limits();
        let arrived = self.parser.advance_all(&self.input[begin..], limits, most);
        let args = arrived.args(&self.input[begin..]);
        if looks_ahead && args.len() > ONE_ROW_ARGS_MAX {
            group.look_ahead(arrived.requests(&args).map(|(args, _)| args));
        }
        for (args, end) in arrived.requests(&args) {
            if self.session.client.is_leaving || self.out.len() >= SEND_BYTES {
                // The rest is parsed again, if it is run.
                self.parser.reset();
                return Some(match self.session.client.is_leaving {
                    true => NextStep::Read,
                    false => NextStep::Run,
                });
            }
            if !args.is_empty() {
                self.session.run(args, &mut self.out, group);
            }
            self.done = begin + end;
            if let Some(blocked) = &mut self.session.client.blocked {
                let own = || args.iter().map(|arg| arg.to_vec()).collect();
                let args = blocked.args.take().unwrap_or_else(own);
                self.parser.reset();
                return Some(NextStep::Wait(args));
            }
        }
        if self.session.client.is_leaving {
            return Some(NextStep::Read);
        }
        if let Some(wrong) = arrived.wrong {
            self.session.write(group, &mut self.out);
            self.out.error(&format!("ERR Protocol error: {}", wrong.0));
            self.session.client.is_leaving = true;
            return Some(NextStep::Read);
        }
        arrived.is_all.then_some(NextStep::Read)
    }

    /// Waits until a command finds something, or its time is over.
    async fn wait(&mut self, args: &[Vec<u8>]) -> io::Result<()> {
        let Some(blocked) = self.session.client.blocked.take() else { return Ok(()) };
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let server = Arc::clone(&self.session.server);
        let ticket = server.shared.store.waiting.wait(&blocked.keys);
        let peer = Arc::clone(&self.session.client.peer);
        let far = Duration::from_secs(1 << 30);
        let end = tokio::time::sleep(blocked.time.unwrap_or(far));
        tokio::pin!(end);
        peer.wait.set(true);
        let outcome = self.woken_or_over(&args, &blocked, &ticket, (&peer, end)).await;
        peer.wait.set(false);
        self.session.client.blocked = None;
        outcome
    }

    async fn woken_or_over(
        &mut self,
        args: &[&[u8]],
        blocked: &Blocked,
        ticket: &Ticket<'_>,
        (peer, mut end): (&Peer, Pin<&mut tokio::time::Sleep>),
    ) -> io::Result<()> {
        loop {
            // Something may have come before the ticket was taken.
            let has_found = self.session.run_again(args, &mut self.out);
            let passes_on =
                self.session.client.blocked.take().is_none_or(|blocked| blocked.passes_on);
            let served = std::mem::take(&mut self.session.client.served);
            if passes_on {
                ticket.pass_on(&served);
            }
            drop(served);
            if has_found {
                return Ok(());
            }
            let woken = ticket.woken();
            tokio::pin!(woken);
            loop {
                // Requests that come meanwhile are run afterwards: they are buffered, hence the
                // limit.
                let has_room = self.input.len() - self.done < OWN_BYTES;
                tokio::select! {
                    served = &mut woken => {
                        self.session.client.served = served;
                        break;
                    }
                    fails = peer.wait.ended() => {
                        match (fails, blocked.is_array) {
                            (true, _) => {
                                self.out.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
                            }
                            (false, true) => self.out.null_array(),
                            (false, false) => self.out.null(),
                        }
                        return Ok(());
                    }
                    () = &mut end => {
                        match blocked.is_array {
                            true => self.out.null_array(),
                            false => self.out.null(),
                        }
                        return Ok(());
                    }
                    () = peer.end.notified() => return Err(io::ErrorKind::ConnectionAborted.into()),
                    _ = self.stopped.changed() => return Err(io::ErrorKind::ConnectionAborted.into()),
                    bytes = self.stream.read_buf(&mut self.input), if has_room => {
                        if bytes? == 0 {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                }
            }
        }
    }

    /// Sends the replies, once their writes are as durable as the settings demand.
    async fn send(&mut self) -> io::Result<()> {
        if self.session.take_written()
            && let Err(why) = self.syncer.settle().await
        {
            // None of these replies may be sent: the writes that they acknowledge may be lost.
            self.out.clear();
            self.out.error(&format!("MISCONF the write-ahead log cannot be synced: {why}"));
            self.session.client.is_leaving = true;
        }
        for served in std::mem::take(&mut self.session.client.served) {
            // Only the order depends on it: no client waits long for a slow one.
            let _ = timeout(SERVED_TIME_MAX, served.all()).await;
        }
        let mut sent = 0;
        while sent < self.out.len() {
            let rest = &self.out.bytes()[sent..];
            // A client that takes them at once, as almost all do, needs no timer.
            let at_once = poll_fn(|context| {
                Poll::Ready(Pin::new(&mut self.stream).poll_write(context, rest))
            });
            let written = match at_once.await {
                Poll::Ready(written) => written?,
                Poll::Pending => {
                    let write = self.stream.write(rest);
                    timeout(SEND_TIME_MAX, write).await.map_err(io::Error::from)??
                }
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            sent += written;
        }
        self.out.clear();
        self.count();
        Ok(())
    }

    /// Reads more of a request; returns `false` where there is no more.
    async fn read(&mut self) -> io::Result<bool> {
        let config = &self.session.server.shared.config;
        let is_begun = self.parser.is_begun() || !self.input.is_empty();
        let time = match is_begun || !self.session.client.is_authenticated {
            true => Some(config.request_time_max),
            false => config.idle_max,
        };
        // At most as much again as has arrived, never as much as was only declared.
        let expected = self.parser.bytes_expected().saturating_sub(self.input.len());
        self.input.reserve(expected.clamp(self.read_bytes, self.input.len().max(READ_BYTES_MAX)));
        self.count();
        if self.has_too_much() {
            self.out.error(
                "ERR all clients together have more under way than buffer-bytes-max: try again later, \
                 or in smaller parts",
            );
            self.session.client.is_leaving = true;
            self.send().await?;
            return Ok(false);
        }
        let before = self.input.len();
        let has_come = self.arrives(time).await;
        self.read_bytes = match self.input.len() - before {
            bytes if bytes >= self.read_bytes => (2 * self.read_bytes).min(READ_BYTES_MAX),
            bytes if bytes < self.read_bytes / 4 => (self.read_bytes / 2).max(READ_BYTES_MIN),
            _ => self.read_bytes,
        };
        has_come
    }

    /// Waits until bytes or messages come; returns `false` where there are no more, or the time is
    /// over.
    async fn arrives(&mut self, time: Option<Duration>) -> io::Result<bool> {
        let peer = Arc::clone(&self.session.client.peer);
        let (out, inbox) = (&mut self.out, &mut self.inbox);
        let read = async {
            tokio::select! {
                message = inbox.next() => {
                    tell(out, &message);
                    while out.len() < SEND_BYTES && let Some(message) = inbox.try_next() {
                        tell(out, &message);
                    }
                    Ok(true)
                }
                bytes = self.stream.read_buf(&mut self.input) => bytes.map(|bytes| bytes > 0),
                () = peer.end.notified() => Ok(false),
                _ = self.stopped.changed() => Ok(false),
            }
        };
        match time {
            None => read.await,
            Some(time) => timeout(time, read).await.unwrap_or(Ok(false)),
        }
    }

    /// Counts the bytes of the buffers.
    fn count(&mut self) {
        let bytes = self.input.capacity() + self.out.capacity() + self.session.client.bytes();
        let all = &self.session.server.shared.counters.buffer_bytes;
        if bytes >= self.counted {
            all.fetch_add(bytes - self.counted, Ordering::Relaxed);
        } else {
            all.fetch_sub(self.counted - bytes, Ordering::Relaxed);
        }
        self.counted = bytes;
    }

    fn has_too_much(&self) -> bool {
        let shared = &self.session.server.shared;
        self.counted > OWN_BYTES
            && shared.counters.buffer_bytes.load(Ordering::Relaxed) > shared.config.buffer_bytes_max
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        let shared = &self.session.server.shared;
        shared.counters.buffer_bytes.fetch_sub(self.counted, Ordering::Relaxed);
        shared.clients.remove(self.session.client.peer.id);
    }
}

/// Writes a message of a subscription.
fn tell(out: &mut Reply, message: &Message) {
    match &message.pattern {
        None => {
            out.push(3);
            out.bulk(b"message");
        }
        Some(pattern) => {
            out.push(4);
            out.bulk(b"pmessage");
            out.bulk(pattern);
        }
    }
    out.bulk(&message.channel);
    out.bulk(&message.payload);
}
