//! The mirror, and what it must hold: each batch up to its own number, and nothing behind it.
//!
//! Owns: these rules. Never does: run a process.

use super::super::history::open_patiently;
use super::super::judge::{Survives, judge};
use super::super::ledger::Ack;
use super::super::setup::small_options;
use super::super::worker::number_in;
use super::super::workload::{Expected, Shape, key};
use std::path::PathBuf;
use windrow::Db;

/// Where `windrow apply` keeps the number of the next change.
const STATE: (&str, &str) = ("windrow.mirror", "next_seq");

/// The batches that one writing process acknowledged.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    /// The batches of each writer that were there when it began.
    pub(super) begin: Vec<u64>,
    pub(super) acks: Vec<Vec<Ack>>,
    /// Those that were there when it had been killed; `None` while it writes.
    pub(super) end: Option<Vec<u64>>,
}

/// The mirror.
pub(super) struct Mirrored {
    pub(super) dir: PathBuf,
    /// The contents after the last judgement.
    expected: Expected,
    /// The number of the change that it lacks first.
    pub(super) next_seq: u64,
}

impl Mirrored {
    /// Makes an empty one.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn make(dir: PathBuf, shape: Shape) -> Result<Mirrored, String> {
        let mut options = small_options()?;
        options.create_if_missing = true;
        let db = Db::open_with(&dir, options).map_err(|error| error.to_string())?;
        db.close().map_err(|error| error.to_string())?;
        Ok(Mirrored { dir, expected: Expected::new(shape), next_seq: 1 })
    }

    /// The batches of each writer that it has.
    pub(super) fn numbers(&self) -> &[u64] {
        &self.expected.numbers
    }

    /// The canary: removes the newest batch's mark of the first writer.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn spoil(&self) -> Result<(), String> {
        let db = open_patiently(&self.dir, &small_options()?)?;
        let removed = db.delete(key(0, 0)).and_then(|()| db.close());
        removed.map_err(|error| error.to_string())
    }

    /// Judges it after a pipe has ended.
    ///
    /// # Errors
    /// The batch that is missing, or too many, or torn.
    pub(super) fn judge(&mut self, sessions: &[Session]) -> Result<(), String> {
        let text = |error: windrow::Error| error.to_string();
        let mut options = small_options()?;
        options.read_only = true;
        let db = open_patiently(&self.dir, &options)?;
        let state = db.open_keyspace(STATE.0).map_err(text)?;
        let next_seq = state.map(|state| state.get(STATE.1)).transpose().map_err(text)?.flatten();
        let next_seq = match next_seq {
            Some(bytes) => u64::from_be_bytes(bytes[..].try_into().map_err(|_| "eight bytes")?),
            None => 1,
        };
        if next_seq < self.next_seq {
            return Err(format!("the mirror was at {}, and is at {next_seq}", self.next_seq));
        }
        for writer in 0..self.expected.shape.writers {
            let value = db.get(key(writer, 0)).map_err(text)?;
            let found = value.as_deref().map_or(0, number_in);
            check(writer, found, next_seq, sessions)?;
            for session in sessions {
                let end = session.end.as_ref().map_or(u64::MAX, |end| end[writer as usize]);
                let here = self.expected.numbers[writer as usize];
                self.expected.advance(session.number, writer, found.min(end).max(here));
            }
        }
        self.next_seq = next_seq;
        judge(&db, &mut self.expected, None, Survives::Everything)?;
        db.close().map_err(text)
    }
}

/// Checks that a writer's batches are there up to a number, and none that is behind it.
fn check(writer: u32, found: u64, next_seq: u64, sessions: &[Session]) -> Result<(), String> {
    let mut most = 0;
    for session in sessions {
        let (begin, acks) = (session.begin[writer as usize], &session.acks[writer as usize]);
        for (number, ack) in (begin + 1..).zip(acks) {
            if (number <= found) != (ack.seq < next_seq) {
                return Err(format!(
                    "the mirror's next number is {next_seq}, batch {number} of writer {writer} has {}, and {found} \
                     of its batches are there",
                    ack.seq
                ));
            }
        }
        // One more may be under way.
        let known = begin + acks.len() as u64 + 1;
        most = session.end.as_ref().map_or(known, |end| end[writer as usize]);
    }
    match found <= most {
        true => Ok(()),
        false => Err(format!("the mirror has {found} batches of writer {writer}, of {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_too_few_or_too_many_is_noticed() {
        let acks = |seqs: &[u64]| seqs.iter().map(|&seq| Ack { seq, synced: false }).collect();
        let sessions = |seqs: &[u64], end: Option<u64>| {
            [Session {
                number: 1,
                begin: vec![5],
                acks: vec![acks(seqs)],
                end: end.map(|end| vec![end]),
            }]
        };
        let at = |found, next_seq, end| check(0, found, next_seq, &sessions(&[3, 9], end)).is_ok();
        assert!(at(5, 3, None) && at(6, 4, None) && at(6, 9, None) && at(7, 10, None));
        assert!(at(8, 12, None), "one was under way");
        assert!(!at(9, 15, None), "and no more than one");
        assert!(at(8, 12, Some(8)) && !at(8, 12, Some(7)), "it did not arrive");
        assert!(!at(5, 4, None), "6 is missing");
        assert!(!at(7, 9, None), "7 came early");
    }
}
