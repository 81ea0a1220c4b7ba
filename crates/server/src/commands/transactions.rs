//! `MULTI`, `EXEC` and their like, which the session itself runs.
//!
//! Owns: their rows of the table. Never does: run them (`session/dispatch.rs` does, since they run
//! others).

use super::call::Call;
use super::command::{Command, IN_SUBSCRIPTION, NO_AUTH, READ, SESSION, keyed_at, plain};
use crate::fault::{Outcome, fail};

pub(super) const COMMANDS: &[Command] = &[
    plain("multi", 1, SESSION, in_session),
    plain("exec", 1, SESSION, in_session),
    plain("discard", 1, SESSION, in_session),
    keyed_at("watch", -2, SESSION | READ, (1, -1, 1), in_session),
    plain("unwatch", 1, SESSION, in_session),
    plain("reset", 1, SESSION | NO_AUTH | IN_SUBSCRIPTION, in_session),
    plain("command", -1, SESSION, in_session),
];

fn in_session(_: &mut Call<'_, '_>) -> Outcome {
    fail("ERR this command runs by itself, and not within another")
}
