//! Running commands: by themselves, or several as one.
//!
//! Owns: the locks they run under, the rule that a command that fails writes nothing, and their
//! counting. Never does: decide whether one may be run.

use crate::client::{Client, NAME_EXTRA_BYTES};
use crate::clock;
use crate::commands::call::Call;
use crate::commands::command::{APART, Command, SESSION};
use crate::commands::table::Table;
use crate::data::key_locks::KeyGuards;
use crate::data::rows_ahead::RowsAhead;
use crate::data::staged_writes::StagedWrites;
use crate::data::view::View;
use crate::fault::{Fault, Outcome, fail};
use crate::protocol::Reply;
use crate::server_parts::ServerParts;
use std::sync::atomic::Ordering;
use std::time::Instant;
use windrow::Batch;

/// Commands that arrived together are written once they have staged this many bytes.
const BYTES_MAX: usize = 256 << 10;
/// They are also written once they are this many: others may wait for their keys.
const COMMANDS_MAX: usize = 256;

/// The parts of the server that a command reaches.
pub(crate) struct Reached<'a> {
    pub(crate) shared: &'a ServerParts,
    pub(crate) client: &'a mut Client,
    pub(crate) out: &'a mut Reply,
}

/// Calls of one command, one after the other, that are not in its counters yet.
#[derive(Clone, Copy)]
struct Tally {
    command: &'static Command,
    begin: Instant,
    calls: u64,
    failed: u64,
}

/// Commands of one client that arrived together and are written together. They hold the locks of
/// all their keys, which are released when they are written, and before one of them would have to
/// be waited for.
pub(crate) struct CommandGroup<'s> {
    pub(crate) shared: &'s ServerParts,
    pub(crate) table: &'s Table,
    held: KeyGuards<'s>,
    staged: StagedWrites,
    batch: Batch,
    /// Keys whose waiting clients will be woken.
    fresh: Vec<Vec<u8>>,
    /// The place among the unsent replies at which those of unwritten commands begin.
    begin: usize,
    /// The number of those replies.
    commands: usize,
    /// Whether something was written since the last call of [`CommandGroup::take_written`].
    has_written: bool,
    tally: Option<Tally>,
    /// The last command that other clients were shown, and the protocol's version.
    noted: Option<(&'static str, u8)>,
    ahead: RowsAhead,
}

impl<'s> CommandGroup<'s> {
    pub(crate) fn new(shared: &'s ServerParts, table: &'s Table) -> CommandGroup<'s> {
        CommandGroup {
            shared,
            table,
            held: KeyGuards::new(&shared.store.locks),
            staged: StagedWrites::default(),
            batch: Batch::new(),
            fresh: Vec::new(),
            begin: 0,
            commands: 0,
            has_written: false,
            tally: None,
            noted: None,
            ahead: RowsAhead::default(),
        }
    }

    /// Searches for the rows that requests which have arrived will read, as far as these can be
    /// told: up to one that is run apart.
    pub(crate) fn look_ahead<'a, 'r: 'a>(
        &mut self,
        requests: impl Iterator<Item = &'a [&'r [u8]]>,
    ) {
        let (mut last_name, mut last): (&[u8], Option<&'static Command>) = (b"", None);
        for args in requests {
            let Some(name) = args.first() else { continue };
            if *name != last_name {
                (last_name, last) = (name, self.table.find(name));
            }
            let Some(command) = last.filter(|command| command.takes(args.len())) else { break };
            if command.has(APART) {
                break;
            }
            (command.rows)(args, &mut self.ahead);
        }
        self.ahead.search(&self.shared.store.spaces);
    }

    /// Shows other clients which command is run. One that is repeated is shown once.
    pub(crate) fn note(&mut self, client: &Client, command: &'static Command, version: u8) {
        if self.noted != Some((command.name, version)) {
            self.noted = Some((command.name, version));
            client.peer.note(command.name, version);
        }
    }

    /// Runs a command after those before it. If these could not be written, it is not run, and the
    /// client is leaving.
    ///
    /// # Errors
    /// Those of the command.
    pub(crate) fn run(
        &mut self,
        (client, out): (&mut Client, &mut Reply),
        command: &'static Command,
        args: &[&[u8]],
    ) -> Outcome {
        self.begin_tally(command);
        let arg_bytes: usize = args.iter().map(|arg| arg.len()).sum();
        let keys = || command.key_places(args.len()).map(|place| args[place]);
        let mut before = None;
        if arg_bytes <= BYTES_MAX || self.staged.is_empty() {
            before = self.held.try_more(keys());
        }
        if before.is_none() {
            if !self.write(client, out) {
                return Ok(());
            }
            self.held.wait(keys());
            self.begin_tally(command);
        }
        let (reply, is_first) = (out.len(), self.staged.is_empty());
        let view = View::new(&self.shared.store, &mut self.staged);
        let mut call =
            Call { args, view, client: &mut *client, shared: self.shared, out: &mut *out };
        let outcome = run(command, &mut call);
        let mut fresh = call.view.finish();
        self.commands += usize::from(!is_first);
        if outcome.is_ok() && self.staged.own_bytes() > 0 {
            // A large write is a batch of its own, so that no other command fails with it.
            let is_alone = !is_first && self.staged.own_bytes() > BYTES_MAX;
            if is_alone {
                let own = self.staged.split_off();
                if !self.write_staged(client, out) {
                    return Ok(());
                }
                self.staged = own;
            }
            if is_first || is_alone {
                (self.begin, self.commands) = (reply, 1);
            }
            self.fresh.append(&mut fresh);
        } else {
            self.staged.undo();
            self.held.keep(before.unwrap_or(0));
        }
        // A command that waits is counted when it has found something.
        if let Some(tally) = &mut self.tally
            && client.blocked.is_none()
        {
            tally.calls += 1;
            tally.failed += u64::from(outcome.is_err());
        }
        if self.staged.bytes() > BYTES_MAX || self.commands >= COMMANDS_MAX {
            self.write(client, out);
        }
        outcome
    }

    /// Begins to count calls of a command, unless that is the last one: the clock is read once for
    /// all of them.
    fn begin_tally(&mut self, command: &'static Command) {
        if self.tally.is_none_or(|tally| !std::ptr::eq(tally.command, command)) {
            let begin = clock::now();
            self.count(begin);
            self.tally = Some(Tally { command, begin, calls: 0, failed: 0 });
        }
    }

    /// Adds the calls so far to the counters of all clients.
    fn count(&mut self, end: Instant) {
        if let Some(Tally { command, begin, calls, failed }) = self.tally.take()
            && let Some(counters) = self.shared.counters.of(command.name)
        {
            counters.ran(calls, failed, end.saturating_duration_since(begin));
        }
    }

    /// Writes the staged rows. If they cannot be written, none is, and the replies that
    /// acknowledged them are removed: a single one becomes an error, several end the connection.
    /// Returns `false` if it ends.
    fn write_staged(&mut self, client: &mut Client, out: &mut Reply) -> bool {
        if self.staged.is_empty() {
            return true;
        }
        match self.shared.store.write(&mut self.staged, &mut self.batch) {
            Ok(()) => {
                self.has_written = true;
                self.shared.store.wake(&self.fresh, &mut client.served);
                self.fresh.clear();
                true
            }
            Err(error) => {
                if self.shared.counters.write_lines.allows() {
                    tracing::error!(%error, "a write failed");
                }
                self.fresh.clear();
                out.truncate(self.begin);
                out.error(&Fault::from(error).0);
                client.is_leaving |= self.commands > 1;
                self.commands == 1
            }
        }
    }

    /// Writes the staged rows, and releases all locks. Returns `false` if they could not be
    /// written, and the connection ends.
    pub(crate) fn write(&mut self, client: &mut Client, out: &mut Reply) -> bool {
        let is_written = self.write_staged(client, out);
        self.held.release();
        self.commands = 0;
        if self.tally.is_some() {
            self.count(clock::now());
        }
        is_written
    }

    /// Returns whether anything has been written since the last call.
    pub(crate) fn take_written(&mut self) -> bool {
        std::mem::take(&mut self.has_written)
    }
}

/// Runs a command; one that writes too much fails.
fn run(command: &Command, call: &mut Call<'_, '_>) -> Outcome {
    (command.run)(call)?;
    if call.view.is_too_large() {
        return Err(call.view.too_large().into());
    }
    Ok(())
}

/// Runs a command that excludes every other one. Returns whether it wrote.
///
/// # Errors
/// Those of the command, and of a write.
pub(crate) fn exclusively(
    reached: Reached<'_>,
    command: &'static Command,
    args: &[&[u8]],
) -> Outcome<bool> {
    let Reached { shared, client, out } = reached;
    let begin = clock::now();
    let mut staged = StagedWrites::default();
    let outcome = {
        let _guard = shared.store.locks.lock_all();
        let view = View::new(&shared.store, &mut staged);
        let mut call = Call { args, view, client: &mut *client, shared, out };
        match run(command, &mut call) {
            Ok(()) => {
                let fresh = call.view.finish();
                let writes = !staged.is_empty();
                let outcome = shared.store.write(&mut staged, &mut Batch::new());
                shared.store.wake(&fresh, &mut client.served);
                outcome.map(|()| writes).map_err(Fault::from)
            }
            Err(fault) => Err(fault),
        }
    };
    if let Some(counters) = shared.counters.of(command.name) {
        counters.ran(1, u64::from(outcome.is_err()), begin.elapsed());
    }
    outcome
}

/// Runs the commands of `EXEC`: no other client's come in between, and their writes are one batch.
/// If a watched key was written, none is run, and the reply is a null. Returns whether they wrote.
///
/// # Errors
/// Those of a write: nothing was done.
pub(crate) fn together(
    reached: Reached<'_>,
    table: &Table,
    commands: &[Vec<Vec<u8>>],
) -> Outcome<bool> {
    let Reached { shared, client, out } = reached;
    let _guard = shared.store.locks.lock_all();
    let now_ms = clock::wall_ms();
    let has_expired =
        client.watching.iter().any(|(_, deadline)| deadline.is_some_and(|ms| ms <= now_ms));
    if has_expired || client.written.load(Ordering::SeqCst) {
        out.null_array();
        return Ok(false);
    }
    out.array(commands.len());
    let (mut staged, mut fresh) = (StagedWrites::default(), Vec::new());
    for command in commands {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let (begin, reply) = (clock::now(), out.len());
        let Some(command) = table.find(args[0]).filter(|command| !command.has(SESSION)) else {
            out.error("ERR this command cannot be run between MULTI and EXEC");
            continue;
        };
        let mut view = View::new(&shared.store, &mut staged).at(now_ms);
        view.is_within = true;
        let mut call = Call { args: &args, view, client: &mut *client, shared, out: &mut *out };
        let outcome = run(command, &mut call);
        let mut own_fresh = call.view.finish();
        match &outcome {
            Ok(()) => fresh.append(&mut own_fresh),
            Err(fault) => {
                staged.undo();
                out.truncate(reply);
                out.error(&fault.0);
            }
        }
        if let Some(counters) = shared.counters.of(command.name) {
            counters.ran(1, u64::from(outcome.is_err()), begin.elapsed());
        }
        if out.len() > shared.config.reply_bytes_max {
            return fail(
                "ERR the replies of EXEC are longer than reply-max-bytes: nothing was done",
            );
        }
    }
    let writes = !staged.is_empty();
    shared.store.write(&mut staged, &mut Batch::new())?;
    shared.store.wake(&fresh, &mut client.served);
    Ok(writes)
}

/// Has the client notified from now on when one of `keys` is written.
pub(crate) fn watch(shared: &ServerParts, client: &mut Client, keys: &[&[u8]]) -> Outcome {
    /// The most watched keys: more would be a way to fill the server's memory.
    const WATCHED_MAX: usize = 4096;
    for key in keys {
        if client.watching.iter().any(|(watched, _)| watched == key) {
            continue;
        }
        if client.watching.len() == WATCHED_MAX {
            return fail(format!("ERR a client may watch {WATCHED_MAX} keys"));
        }
        let mut held = KeyGuards::new(&shared.store.locks);
        held.wait([*key].into_iter());
        let mut none = StagedWrites::default();
        let value = View::new(&shared.store, &mut none).value(key)?;
        client.names_bytes += key.len() + NAME_EXTRA_BYTES;
        shared.store.watched.watch(key, &client.written);
        client.watching.push((key.to_vec(), value.and_then(|value| value.deadline_ms())));
    }
    Ok(())
}
