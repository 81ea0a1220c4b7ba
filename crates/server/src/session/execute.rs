//! Running commands: by themselves, or several as one.
//!
//! Owns: the locks they run under, and that a command that fails writes nothing. Never does: decide
//! whether one may be run.

use crate::client::Client;
use crate::clock;
use crate::commands::call::Call;
use crate::commands::command::{Command, EXCLUSIVE, SESSION};
use crate::commands::table::Table;
use crate::data::view::View;
use crate::fault::{Outcome, fail};
use crate::protocol::Reply;
use crate::shared::Shared;
use std::sync::atomic::Ordering;
use windrow::Batch;

/// What a command reaches.
pub(crate) struct Reached<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) client: &'a mut Client,
    pub(crate) out: &'a mut Reply,
}

/// Runs one command: its writes are one batch. Whether it wrote; and the batch, to be used again.
pub(crate) fn alone(
    reached: Reached<'_>,
    command: &'static Command,
    args: &[&[u8]],
    batch: Batch,
) -> (Outcome<bool>, Batch) {
    let Reached { shared, client, out } = reached;
    let begin = clock::now();
    let guard = match command.has(EXCLUSIVE) {
        true => shared.store.locks.lock_all(),
        false => shared.store.locks.lock(command.key_places(args.len()).map(|place| args[place])),
    };
    let view = View::new(&shared.store, batch);
    let mut call = Call { args, view, client, shared, out };
    let (outcome, batch) = match (command.run)(&mut call) {
        Ok(()) => {
            let fresh = call.view.take_fresh();
            let (written, batch) = call.view.commit();
            fresh.iter().for_each(|key| shared.store.waiting.wake(key));
            (written.map_err(Into::into), batch)
        }
        Err(fault) => (Err(fault), call.view.discard()),
    };
    drop(guard);
    if let Some(counters) = shared.counters.of(command.name) {
        counters.ran(begin.elapsed(), outcome.is_err());
    }
    (outcome, batch)
}

/// Runs the commands of `EXEC`: nobody else's come in between, and their writes are one batch. Nothing
/// is run, and the reply is nothing, where a key that is watched was written. Whether they wrote.
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
    let mut transaction = shared.store.db.transaction()?;
    out.array(commands.len());
    let (mut has_written, mut fresh) = (false, Vec::new());
    for command in commands {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let (begin, begin_len) = (clock::now(), out.len());
        let Some(command) = table.find(args[0]).filter(|command| !command.has(SESSION)) else {
            out.error("ERR this command cannot be run between MULTI and EXEC");
            continue;
        };
        let savepoint = transaction.savepoint();
        let view = View::within(&shared.store, &mut transaction, now_ms);
        let mut call = Call { args: &args, view, client: &mut *client, shared, out: &mut *out };
        let outcome = (command.run)(&mut call);
        if outcome.is_ok() {
            has_written |= call.view.has_written();
            fresh.extend(call.view.take_fresh());
        }
        if let Err(fault) = &outcome {
            transaction.rollback_to(&savepoint)?;
            out.truncate(begin_len);
            out.error(&fault.0);
        }
        if let Some(counters) = shared.counters.of(command.name) {
            counters.ran(begin.elapsed(), outcome.is_err());
        }
        if out.len() > shared.config.reply_bytes_max {
            return fail(
                "ERR the replies of EXEC are longer than reply-max-bytes: nothing was done",
            );
        }
    }
    if has_written {
        transaction.commit()?;
        fresh.iter().for_each(|key| shared.store.waiting.wake(key));
    }
    Ok(has_written)
}

/// From now on the client is told when one of `keys` is written.
pub(crate) fn watch(shared: &Shared, client: &mut Client, keys: &[&[u8]]) -> Outcome {
    /// More would be a way to fill the server's memory.
    const WATCHED_MAX: usize = 4096;
    for key in keys {
        if client.watching.iter().any(|(watched, _)| watched == key) {
            continue;
        }
        if client.watching.len() == WATCHED_MAX {
            return fail(format!("ERR a client may watch {WATCHED_MAX} keys"));
        }
        let _guard = shared.store.locks.lock([*key]);
        let view = View::new(&shared.store, Batch::new());
        let deadline_ms = view.value(key)?.and_then(|value| value.deadline_ms());
        shared.store.watched.watch(key, &client.written);
        client.watching.push((key.to_vec(), deadline_ms));
    }
    Ok(())
}
