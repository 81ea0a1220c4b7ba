//! A command's row in the table: its name, its arguments, its keys.
//!
//! Owns: the form of a row of the table. Never does: hold the rows.

use super::call::Call;
use crate::data::rows_ahead::RowsAhead;
use crate::fault::Outcome;

/// Changes values.
pub(crate) const WRITE: u32 = 1;
/// Reads values.
pub(crate) const READ: u32 = 1 << 1;
/// May be run before authentication.
pub(crate) const NO_AUTH: u32 = 1 << 2;
/// Excludes every other command while it runs.
pub(crate) const EXCLUSIVE: u32 = 1 << 3;
/// Steers the connection itself: [`crate::session`] runs it.
pub(crate) const SESSION: u32 = 1 << 4;
/// Takes time in proportion to the number of values.
pub(crate) const SLOW: u32 = 1 << 5;
/// May be run by a client that has subscriptions and speaks RESP2.
pub(crate) const IN_SUBSCRIPTION: u32 = 1 << 7;
/// Answers by messages, which also a client that wants no replies gets.
pub(crate) const CONFIRMS: u32 = 1 << 8;
/// Is refused between `MULTI` and `EXEC`.
pub(crate) const NO_MULTI: u32 = 1 << 9;
/// Tells other clients of the writes before it.
pub(crate) const SETTLED: u32 = 1 << 10;
/// For the server's operator.
pub(crate) const ADMIN: u32 = 1 << 6;

/// Runs after the commands before it are written: any of these.
pub(crate) const APART: u32 = SESSION | EXCLUSIVE | ADMIN | SLOW | SETTLED;

/// A command.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its name, in lower case.
    pub(crate) name: &'static str,
    /// The number of arguments with the name; negative: the least number.
    pub(crate) arity: i32,
    pub(crate) flags: u32,
    /// Places of the first key, the last one (negative: from the end) and the step between.
    pub(crate) keys: (i32, i32, i32),
    pub(crate) run: fn(&mut Call<'_, '_>) -> Outcome,
    /// Adds the rows that it reads for certain arguments, as far as these alone tell.
    pub(crate) rows: fn(&[&[u8]], &mut RowsAhead),
}

impl Command {
    /// Returns the command with the rows that it reads.
    pub(crate) const fn reads(self, rows: fn(&[&[u8]], &mut RowsAhead)) -> Command {
        Command { rows, ..self }
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether it takes this number of arguments, with its name.
    pub(crate) fn takes(&self, args: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { args >= arity } else { args == arity }
    }

    /// Returns the places of its keys among `args` arguments.
    pub(crate) fn key_places(&self, args: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, last, step) = self.keys;
        let args = i32::try_from(args).unwrap_or(i32::MAX);
        let last = if last < 0 { args + last } else { last.min(args - 1) };
        let places = first..if first > 0 { last + 1 } else { first };
        places.step_by(usize::try_from(step.max(1)).unwrap_or(1)).map(|place| place as usize)
    }
}

/// Makes a command without keys.
pub(crate) const fn plain(
    name: &'static str,
    arity: i32,
    flags: u32,
    run: fn(&mut Call<'_, '_>) -> Outcome,
) -> Command {
    keyed_at(name, arity, flags, (0, 0, 0), run)
}

/// Makes a command whose first argument is its key.
pub(crate) const fn keyed(
    name: &'static str,
    arity: i32,
    flags: u32,
    run: fn(&mut Call<'_, '_>) -> Outcome,
) -> Command {
    keyed_at(name, arity, flags, (1, 1, 1), run)
}

/// Makes a command with keys in these places.
pub(crate) const fn keyed_at(
    name: &'static str,
    arity: i32,
    flags: u32,
    keys: (i32, i32, i32),
    run: fn(&mut Call<'_, '_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, run, rows: |_, _| {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_from_either_end() {
        let places = |keys, args| {
            let command = keyed_at("x", -1, 0, keys, |_| Ok(()));
            command.key_places(args).collect::<Vec<_>>()
        };
        assert_eq!(places((1, 1, 1), 3), [1]);
        assert_eq!(places((1, -1, 2), 5), [1, 3]);
        assert_eq!(places((1, -2, 1), 4), [1, 2]);
        assert_eq!(places((2, -1, 1), 4), [2, 3]);
        assert!(places((0, 0, 0), 4).is_empty());
        assert!(places((1, 1, 1), 1).is_empty());
    }
}
