//! One client's requests, one after the other.
//!
//! Owns: which request is run, queued or refused, and which reply is dropped; the commands that
//! steer the session itself. Never does: read or write a socket.

use super::execute::{self, CommandGroup, Reached};
use crate::channels::{Inbox, NameKind};
use crate::client::{Client, NAME_EXTRA_BYTES, Queue, Replies};
use crate::commands::call::is;
use crate::commands::command::{
    APART, CONFIRMS, Command, EXCLUSIVE, IN_SUBSCRIPTION, NO_AUTH, NO_MULTI, SESSION, SLOW, WRITE,
};
use crate::commands::streams::Wanted;
use crate::commands::table::{Table, flag_words};
use crate::fault::{Fault, Outcome, fail};
use crate::peer::Peer;
use crate::protocol::number::parse_i64;
use crate::protocol::{Dialect, Reply};
use crate::server_parts::ServerParts;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most bytes of the requests that are queued after `MULTI`.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The server, for its sessions.
#[derive(Debug)]
pub(crate) struct SessionServer {
    pub(crate) shared: ServerParts,
    pub(crate) table: Table,
}

/// One client's session.
pub(crate) struct Session {
    pub(crate) server: Arc<SessionServer>,
    pub(crate) client: Client,
    /// Whether something was written since [`Session::take_written`].
    has_written: bool,
    /// The last command, and its name as the client wrote it: most are repeated.
    last: Option<&'static Command>,
    last_name: Vec<u8>,
}

impl Session {
    /// Makes the session of a client that has just connected; its messages come from the inbox.
    pub(crate) fn new(server: Arc<SessionServer>, peer: Arc<Peer>) -> (Session, Inbox) {
        let is_authenticated = server.shared.config.password.is_none();
        let (client, inbox) = Client::new(peer, is_authenticated);
        let session =
            Session { server, client, has_written: false, last: None, last_name: Vec::new() };
        (session, inbox)
    }

    /// Returns whether a request has written anything since the last call.
    pub(crate) fn take_written(&mut self) -> bool {
        std::mem::take(&mut self.has_written)
    }

    /// Writes the rows that the requests so far have staged, so that their replies may be sent.
    pub(crate) fn write(&mut self, group: &mut CommandGroup<'_>, out: &mut Reply) {
        group.write(&mut self.client, out);
        self.has_written |= group.take_written();
    }

    /// Runs a request after those of `group`, and writes its reply if the client wants one.
    pub(crate) fn run(&mut self, args: &[&[u8]], out: &mut Reply, group: &mut CommandGroup<'_>) {
        let begin = out.len();
        if self.client.replies == Replies::NoneNext {
            self.client.replies = Replies::NoneOnce;
        }
        if let Err(fault) = self.request(args, out, group) {
            out.truncate(begin);
            self.server.shared.counters.failed(&fault.0);
            out.error(&fault.0);
        }
        // Confirmations of subscriptions are messages, and not replies.
        let is_message = |name: &[u8]| {
            let command = self.server.table.find(name);
            command.is_some_and(|command| command.has(CONFIRMS))
        };
        match self.client.replies {
            Replies::All => {}
            _ if is_message(args[0]) => {}
            Replies::None | Replies::NoneNext => out.truncate(begin),
            Replies::NoneOnce => {
                out.truncate(begin);
                self.client.replies = Replies::All;
            }
        }
    }

    /// Runs a command again that found nothing before; returns whether it is done.
    pub(crate) fn run_again(&mut self, args: &[&[u8]], out: &mut Reply) -> bool {
        self.client.blocked = None;
        let begin = out.len();
        self.client.is_woken = true;
        let server = Arc::clone(&self.server);
        let mut group = CommandGroup::new(&server.shared, &server.table);
        let outcome = self.request(args, out, &mut group);
        self.write(&mut group, out);
        self.client.is_woken = false;
        if let Err(fault) = &outcome {
            out.truncate(begin);
            self.server.shared.counters.failed(&fault.0);
            out.error(&fault.0);
        }
        if self.client.blocked.is_some() {
            return false;
        }
        if self.client.replies != Replies::All {
            out.truncate(begin);
        }
        true
    }

    fn request(
        &mut self,
        args: &[&[u8]],
        out: &mut Reply,
        group: &mut CommandGroup<'_>,
    ) -> Outcome {
        let command = match self.admitted(group, args) {
            Ok(command) => command,
            Err(fault) => {
                if let Some(queue) = &mut self.client.queue {
                    queue.is_refused = true;
                }
                return Err(fault);
            }
        };
        let version = if out.dialect == Dialect::Resp3 { 3 } else { 2 };
        group.note(&self.client, command, version);
        if self.client.is_subscribed()
            && out.dialect == Dialect::Resp2
            && !command.has(IN_SUBSCRIPTION)
        {
            let name = command.name;
            return fail(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context"
            ));
        }
        let is_of_queue =
            || matches!(command.name, "exec" | "discard" | "multi" | "watch" | "reset" | "quit");
        if self.client.queue.is_some() && !is_of_queue() {
            return self.queue(args, out);
        }
        // Staged rows that others must see are written first; a command that waits for all locks
        // holds none.
        if command.has(APART) && !group.write(&mut self.client, out) {
            return Ok(());
        }
        if command.has(SESSION) {
            return self.steer(command, args, out);
        }
        if command.has(EXCLUSIVE) {
            let reached = Reached { shared: group.shared, client: &mut self.client, out };
            self.has_written |= execute::exclusively(reached, command, args)?;
            return Ok(());
        }
        let mut run = || group.run((&mut self.client, out), command, args);
        // Other connections of this thread are handed to another one.
        if command.has(SLOW) { tokio::task::block_in_place(run) } else { run() }
    }

    /// Returns the command of a request, if there is one and this client may run it.
    fn admitted(&mut self, group: &CommandGroup<'_>, args: &[&[u8]]) -> Outcome<&'static Command> {
        let Some(command) = self.find(group.table, args[0]) else {
            // A client that has not authenticated is not even told this.
            if !self.client.is_authenticated {
                return fail("NOAUTH Authentication required.");
            }
            return fail(unknown(args));
        };
        let is_refused = if !command.takes(args.len()) {
            let name = command.name;
            Some(format!("ERR wrong number of arguments for '{name}' command").into())
        } else if !self.client.is_authenticated && !command.has(NO_AUTH) {
            Some("NOAUTH Authentication required.".into())
        } else if self.client.queue.is_some() && command.has(NO_MULTI) {
            Some("ERR Command not allowed inside a transaction".into())
        } else if command.has(WRITE) && group.shared.config.is_read_only {
            Some("READONLY You can't write against a read only server.".into())
        } else {
            None
        };
        match is_refused {
            None => Ok(command),
            Some(text) => {
                if let Some(counters) = group.shared.counters.of(command.name) {
                    counters.rejected();
                }
                Err(Fault(text))
            }
        }
    }

    fn find(&mut self, table: &Table, name: &[u8]) -> Option<&'static Command> {
        if self.last.is_some() && self.last_name == name {
            return self.last;
        }
        let command = table.find(name)?;
        self.last = Some(command);
        self.last_name.clear();
        self.last_name.extend_from_slice(name);
        Some(command)
    }

    fn queue(&mut self, args: &[&[u8]], out: &mut Reply) -> Outcome {
        let Some(queue) = &mut self.client.queue else { return Ok(()) };
        queue.bytes += args.iter().map(|arg| arg.len() + 32).sum::<usize>();
        if queue.bytes > QUEUE_BYTES_MAX {
            queue.is_refused = true;
            queue.commands = Vec::new();
            return fail(format!("ERR more than {QUEUE_BYTES_MAX} bytes between MULTI and EXEC"));
        }
        queue.commands.push(args.iter().map(|arg| arg.to_vec()).collect());
        out.simple("QUEUED");
        Ok(())
    }

    /// Runs a command of the session itself.
    fn steer(&mut self, command: &Command, args: &[&[u8]], out: &mut Reply) -> Outcome {
        match command.name {
            "multi" if self.client.queue.is_some() => fail("ERR MULTI calls can not be nested"),
            "multi" => {
                self.client.queue = Some(Queue::default());
                out.ok();
                Ok(())
            }
            "discard" if self.client.queue.is_none() => fail("ERR DISCARD without MULTI"),
            "discard" => {
                self.client.queue = None;
                self.unwatch();
                out.ok();
                Ok(())
            }
            "exec" => self.exec(out),
            "watch" if self.client.queue.is_some() => fail("ERR WATCH inside MULTI is not allowed"),
            "watch" => {
                execute::watch(&self.server.shared, &mut self.client, &args[1..])?;
                out.ok();
                Ok(())
            }
            "unwatch" => {
                self.unwatch();
                out.ok();
                Ok(())
            }
            "reset" => {
                self.reset(out);
                Ok(())
            }
            _ => describe(&self.server.table, args, out),
        }
    }

    fn exec(&mut self, out: &mut Reply) -> Outcome {
        let Some(queue) = self.client.queue.take() else { return fail("ERR EXEC without MULTI") };
        let server = Arc::clone(&self.server);
        let outcome = if queue.is_refused {
            fail("EXECABORT Transaction discarded because of previous errors.")
        } else {
            let reached = Reached { shared: &server.shared, client: &mut self.client, out };
            execute::together(reached, &server.table, &queue.commands)
        };
        self.unwatch();
        self.has_written |= outcome?;
        Ok(())
    }

    /// Forgets all watched keys.
    pub(crate) fn unwatch(&mut self) {
        let watched = &self.server.shared.store.watched;
        for (key, _) in self.client.watching.drain(..) {
            self.client.names_bytes -= key.len() + NAME_EXTRA_BYTES;
            watched.forget(&key, &self.client.written);
        }
        self.client.written.store(false, Ordering::SeqCst);
    }

    /// Ends all subscriptions.
    fn unsubscribe(&mut self) {
        let (channels, id) = (&self.server.shared.channels, self.client.peer.id);
        for name in std::mem::take(&mut self.client.channels) {
            self.client.names_bytes -= name.len() + NAME_EXTRA_BYTES;
            channels.unsubscribe(NameKind::Channel, &name, id);
        }
        for name in std::mem::take(&mut self.client.patterns) {
            self.client.names_bytes -= name.len() + NAME_EXTRA_BYTES;
            channels.unsubscribe(NameKind::Pattern, &name, id);
        }
    }

    /// Resets the client to its state after connecting.
    fn reset(&mut self, out: &mut Reply) {
        self.client.queue = None;
        self.unwatch();
        self.unsubscribe();
        self.client.peer.set_name(b"");
        self.client.replies = Replies::All;
        self.client.is_authenticated = self.server.shared.config.password.is_none();
        out.dialect = Dialect::Resp2;
        out.simple("RESET");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.unwatch();
        self.unsubscribe();
    }
}

fn unknown(args: &[&[u8]]) -> String {
    /// The most bytes of names and arguments that an error repeats.
    const SHOWN: usize = 128;
    let shown = |arg: &[u8]| String::from_utf8_lossy(&arg[..arg.len().min(SHOWN)]).into_owned();
    let mut text = format!("ERR unknown command '{}', with args beginning with: ", shown(args[0]));
    for arg in &args[1..] {
        if text.len() >= 2 * SHOWN {
            break;
        }
        text += &format!("'{}' ", shown(arg));
    }
    text
}

/// Runs `COMMAND`: writes the table, or a part of it.
fn describe(table: &Table, args: &[&[u8]], out: &mut Reply) -> Outcome {
    match &args[1..] {
        [word] if is(word, "COUNT") => out.count(table.all().len()),
        [word] if is(word, "LIST") => {
            let all = table.all();
            out.array(all.len());
            all.iter().for_each(|(name, _)| out.bulk(name));
        }
        [word, ..] if is(word, "DOCS") => out.map(0),
        [word, names @ ..] if is(word, "INFO") && !names.is_empty() => {
            out.array(names.len());
            for name in names {
                match table.find(name) {
                    Some(command) => row(name, command, out),
                    None => out.null_array(),
                }
            }
        }
        [word, request @ ..] if is(word, "GETKEYS") && !request.is_empty() => {
            let command = table.find(request[0]).filter(|command| command.takes(request.len()));
            let Some(command) = command else {
                return fail("ERR Invalid command specified");
            };
            let places = key_places(command, request);
            if places.is_empty() {
                return fail("ERR The command has no key arguments");
            }
            out.array(places.len());
            places.iter().for_each(|place| out.bulk(request[*place]));
        }
        [] => all_rows(table, out),
        [word] if is(word, "INFO") => all_rows(table, out),
        _ => return fail("ERR unknown subcommand of 'command'. Try COUNT, LIST, INFO or GETKEYS."),
    }
    Ok(())
}

/// Returns the places of a request's keys, also where they depend on its arguments.
fn key_places(command: &Command, request: &[&[u8]]) -> Vec<usize> {
    let counted = |at: usize| {
        let count = request.get(at).and_then(|count| parse_i64(count));
        let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        at + 1..(at + 1 + count).min(request.len())
    };
    match command.name {
        "sort" => {
            let last = request.iter().rposition(|word| is(word, "STORE"));
            let target = last.map(|at| at + 1).filter(|at| *at > 2 && *at < request.len());
            [Some(1), target].into_iter().flatten().collect()
        }
        "sort_ro" => vec![1],
        "zunionstore" | "zinterstore" | "zdiffstore" => [1].into_iter().chain(counted(2)).collect(),
        "blmpop" | "bzmpop" => counted(2).collect(),
        "xread" | "xreadgroup" => {
            let wanted = Wanted::parse(request, command.name == "xreadgroup");
            wanted.map_or(Vec::new(), |wanted| wanted.keys.collect())
        }
        "lmpop" | "zmpop" | "sintercard" | "zintercard" | "zunion" | "zinter" | "zdiff" => {
            counted(1).collect()
        }
        _ => command.key_places(request.len()).collect(),
    }
}

fn all_rows(table: &Table, out: &mut Reply) {
    let all = table.all();
    out.array(all.len());
    all.iter().for_each(|(name, command)| row(name, command, out));
}

fn row(name: &[u8], command: &Command, out: &mut Reply) {
    out.array(6);
    out.bulk(name);
    out.int(i64::from(command.arity));
    let words = flag_words(command);
    out.set(words.len());
    words.iter().for_each(|word| out.simple(word));
    let (first, last, step) = command.keys;
    [first, last, step].iter().for_each(|place| out.int(i64::from(*place)));
}
