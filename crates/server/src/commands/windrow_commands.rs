//! Windrow's own commands: `WINDROW.STATS` and its like.
//!
//! Owns: their arguments and replies. Never does: anything that a program with the library could not.

use super::call::Call;
use super::command::{ADMIN, Command, SLOW, plain};
use crate::data::space::SPACES;
use crate::fault::{Fault, Outcome};
use std::fmt::Write;

pub(super) const COMMANDS: &[Command] = &[
    plain("windrow.stats", 1, ADMIN, stats),
    plain("windrow.tree", 1, ADMIN, tree),
    plain("windrow.compact", 1, ADMIN | SLOW, compact),
    plain("windrow.checkpoint", 2, ADMIN | SLOW, checkpoint),
    plain("windrow.policy", -1, ADMIN, policy),
    plain("windrow.resume", 1, ADMIN | SLOW, resume),
];

fn stats(call: &mut Call<'_, '_>) -> Outcome {
    let text = call.shared.store.db.stats().to_string();
    call.out.verbatim(&text);
    Ok(())
}

/// Replies with a line for each level and run, with its numbers of tables and bytes.
fn tree(call: &mut Call<'_, '_>) -> Outcome {
    let mut text = String::new();
    for keyspace in call.shared.store.db.stats().keyspaces {
        let _ = writeln!(text, "{}", keyspace.name);
        for (level, of) in keyspace.levels.iter().enumerate().filter(|(_, of)| of.bytes > 0) {
            let _ = writeln!(
                text,
                "  level {level}: {} tables, {} of its SST-log, {} bytes",
                of.run_files, of.log_files, of.bytes
            );
        }
    }
    call.out.verbatim(&text);
    Ok(())
}

fn compact(call: &mut Call<'_, '_>) -> Outcome {
    call.shared.store.db.compact()?;
    call.out.ok();
    Ok(())
}

/// Makes a copy of the database at a path of the server's machine.
fn checkpoint(call: &mut Call<'_, '_>) -> Outcome {
    let path = str::from_utf8(call.args[1])
        .map_err(|_| Fault("ERR the path is not UTF-8: choose another".into()))?;
    call.shared.store.db.checkpoint(path)?;
    call.out.ok();
    Ok(())
}

/// Replies with the policy, or sets another one.
fn policy(call: &mut Call<'_, '_>) -> Outcome {
    match call.args {
        [_] => {
            let policy = call.shared.store.db.default_keyspace().policy();
            call.out.bulk(policy.as_bytes());
        }
        [_, words @ ..] => {
            let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
            let policy = words.join(" ");
            for space in SPACES {
                call.shared.store.spaces.get(space).set_policy(&policy)?;
            }
            call.out.ok();
        }
        [] => {}
    }
    Ok(())
}

/// Resumes writing, once the cause of the background error is gone.
fn resume(call: &mut Call<'_, '_>) -> Outcome {
    call.shared.store.db.resume()?;
    call.out.ok();
    Ok(())
}
