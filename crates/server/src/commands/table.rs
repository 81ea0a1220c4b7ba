//! All commands by name.
//!
//! Owns: the names, and the changes that the settings make to them. Never does: run one.

use super::command::{ADMIN, Command, NO_AUTH, READ, SLOW, WRITE};
use super::{
    bits, blocking, connection, dump, expiry, hashes, keys, lcs, lists, publish, scans,
    score_ranges, score_sums, server, sets, sort, sorted_sets, stream_groups, stream_info, streams,
    strings, transactions, windrow_commands,
};
use std::collections::HashMap;

const PARTS: &[&[Command]] = &[
    bits::COMMANDS,
    blocking::COMMANDS,
    connection::COMMANDS,
    dump::COMMANDS,
    expiry::COMMANDS,
    hashes::COMMANDS,
    keys::COMMANDS,
    lcs::COMMANDS,
    lists::COMMANDS,
    windrow_commands::COMMANDS,
    publish::COMMANDS,
    scans::COMMANDS,
    score_ranges::COMMANDS,
    score_sums::COMMANDS,
    server::COMMANDS,
    sets::COMMANDS,
    sort::COMMANDS,
    sorted_sets::COMMANDS,
    stream_groups::COMMANDS,
    stream_info::COMMANDS,
    streams::COMMANDS,
    strings::COMMANDS,
    transactions::COMMANDS,
];

/// No command's name is longer.
const NAME_BYTES_MAX: usize = 64;

/// The commands of a server.
#[derive(Debug)]
pub(crate) struct Table {
    by_name: HashMap<Vec<u8>, &'static Command>,
}

impl Table {
    /// Makes the table of all commands, some under other names, and without those whose new name is
    /// empty.
    ///
    /// # Errors
    /// A sentence about a name that no command has.
    pub(crate) fn new(renamed: &HashMap<String, String>) -> Result<Table, String> {
        let all = PARTS.iter().copied().flatten();
        let mut by_name: HashMap<_, _> =
            all.map(|command| (command.name.as_bytes().to_vec(), command)).collect();
        for (name, other) in renamed {
            let Some(command) = by_name.remove(name.to_ascii_lowercase().as_bytes()) else {
                return Err(format!("there is no command `{name}` to rename"));
            };
            if !other.is_empty() {
                by_name.insert(other.to_ascii_lowercase().into_bytes(), command);
            }
        }
        Ok(Table { by_name })
    }

    /// Returns the names of all commands, as `COMMAND` and `INFO` call them.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        PARTS.iter().copied().flatten().map(|command| command.name)
    }

    /// Finds the command of that name, in upper or lower case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Command> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).copied()
    }

    /// Returns all commands, by name.
    pub(crate) fn all(&self) -> Vec<(&[u8], &'static Command)> {
        let all = self.by_name.iter().map(|(name, command)| (name.as_slice(), *command));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }
}

/// Returns the words of `COMMAND` for a command's flags.
pub(crate) fn flag_words(command: &Command) -> Vec<&'static str> {
    [(WRITE, "write"), (READ, "readonly"), (ADMIN, "admin"), (NO_AUTH, "no_auth")]
        .into_iter()
        .filter(|(flag, _)| command.has(*flag))
        .map(|(_, word)| word)
        .chain((!command.has(SLOW)).then_some("fast"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case_and_once() {
        let table = Table::new(&HashMap::new()).unwrap();
        assert_eq!(table.all().len(), Table::names().count());
        for name in Table::names() {
            let upper = name.to_ascii_uppercase();
            assert_eq!(table.find(upper.as_bytes()).unwrap().name, name);
        }
        assert!(table.find(b"nothing").is_none());
        assert!(table.find(&[b'a'; 100]).is_none());
    }

    #[test]
    fn commands_are_renamed_and_taken_away() {
        let renamed = [("FLUSHALL", ""), ("config", "Secret")];
        let renamed = renamed.map(|(from, to)| (from.to_owned(), to.to_owned()));
        let table = Table::new(&HashMap::from(renamed)).unwrap();
        assert!(table.find(b"flushall").is_none() && table.find(b"config").is_none());
        assert_eq!(table.find(b"SECRET").unwrap().name, "config");
        let wrong = HashMap::from([("nothing".to_owned(), "x".to_owned())]);
        assert!(Table::new(&wrong).is_err());
    }
}
