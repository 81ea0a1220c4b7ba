//! `apply`: the changes of another database, written to this one in order, each once.
//!
//! The number of the next change is in a keyspace of its own, and is written with each batch. A copy has
//! no such number: it goes on behind its own last one.
//!
//! Owns: which changes the database has, and which it lacks. Never does: read a log.

use crate::args::ApplyArgs;
use crate::change_line;
use crate::failure::{Failure, Result};
use crate::human;
use crate::input::{Line, Lines, Source};
use crate::progress::Progress;
use crate::store::{self, Access};
use std::io::{self, Write};
use windrow::changes::Change;
use windrow::{Batch, Db, Keyspace, WriteSync};

/// The keyspace of the number of the next change.
const STATE: &str = "windrow.mirror";
const NEXT_SEQ: &str = "next_seq";

pub(crate) fn run(args: &ApplyArgs, quiet: bool) -> Result<()> {
    if args.next {
        let next_seq = store::with(&args.open, Access::Read, next_seq)?;
        return Ok(writeln!(io::stdout(), "{next_seq}")?);
    }
    let source = Source::open(args.file.as_deref())?;
    let progress = Progress::counting(quiet, "changes applied");
    let applied = store::with(&args.open, Access::Change, |db| {
        let mut mirror = Mirror::of(db)?;
        let read = mirror.read(&mut Lines::new(source), args.hex, &progress);
        // Changes before a mistake or Ctrl-C stay.
        mirror.sync()?;
        read.map(|()| mirror.applied)
    })?;
    drop(progress);
    if !quiet {
        writeln!(io::stdout(), "applied {}", human::plural(applied, "change"))?;
    }
    Ok(())
}

/// The number of the change that the database lacks first.
fn next_seq(db: &Db) -> Result<u64> {
    let stored = db.open_keyspace(STATE)?.map(|state| state.get(NEXT_SEQ)).transpose()?.flatten();
    let Some(stored) = stored else { return Ok(db.snapshot().seq() + 1) };
    let number = stored.as_bytes().try_into().map(u64::from_be_bytes);
    number.map_err(|_| {
        let why = format!("`{NEXT_SEQ}` in the keyspace `{STATE}` is not a number of eight bytes");
        Failure::failed(why).hint("make the mirror again, from a copy")
    })
}

/// A database that has another one's changes.
struct Mirror<'a> {
    db: &'a Db,
    state: Keyspace,
    next_seq: u64,
    applied: u64,
    /// Whether all that was applied is on the device.
    is_synced: bool,
}

impl<'a> Mirror<'a> {
    fn of(db: &'a Db) -> Result<Mirror<'a>> {
        let next_seq = next_seq(db)?;
        Ok(Mirror { db, state: db.keyspace(STATE)?, next_seq, applied: 0, is_synced: true })
    }

    /// Applies each line.
    fn read(&mut self, lines: &mut Lines, hex: bool, progress: &Progress) -> Result<()> {
        let name = lines.name().to_owned();
        loop {
            // Those so far are made durable before a wait for more.
            let outcome = match lines.next(!self.is_synced)? {
                Line::End => return Ok(()),
                Line::Idle => {
                    self.sync()?;
                    continue;
                }
                Line::Text(line) => change_line::change(line, hex).map_err(Failure::failed),
            };
            let applied = outcome.and_then(|change| self.apply(&change));
            applied.map_err(|failure| {
                failure.and(format!(
                    "line {} of {name} is the first that is not applied",
                    lines.number()
                ))
            })?;
            progress.at(self.applied);
        }
    }

    /// Applies a change, unless the database has it.
    fn apply(&mut self, change: &Change) -> Result<()> {
        let Change { first_seq, seq, .. } = *change;
        let is_drop = seq < first_seq;
        let next_seq = self.next_seq;
        // A drop that follows the last change may not have been done.
        if seq + 1 < next_seq || !is_drop && seq < next_seq {
            return Ok(());
        }
        if first_seq != next_seq {
            let why = format!(
                "the change has the numbers {first_seq} to {seq}, and {next_seq} comes next"
            );
            return Err(Failure::failed(why).hint(format!(
                "begin with that number (`windrow changes --from {next_seq}`), or copy the database again"
            )));
        }
        if change.operations.iter().any(|operation| operation.keyspace() == STATE) {
            // A copy of it has its source's number, which is not one of these changes'.
            let why = format!("the changes are of a mirror: they write to the keyspace `{STATE}`");
            return Err(Failure::failed(why).hint("mirror the database that it is a mirror of"));
        }
        let mut batch = Batch::new();
        change.add_to(&mut batch, self.db)?;
        self.next_seq = seq + 1;
        batch.put(&self.state, NEXT_SEQ, self.next_seq.to_be_bytes());
        self.db.write(batch, WriteSync::No)?;
        (self.applied, self.is_synced) = (self.applied + 1, false);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if !self.is_synced {
            self.db.sync()?;
            self.is_synced = true;
        }
        Ok(())
    }
}
