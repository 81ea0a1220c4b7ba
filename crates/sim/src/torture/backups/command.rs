//! The commands of the program that are killed.
//!
//! Owns: their arguments. Never does: run one.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A command of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `windrow backup`, with `--keep` or without.
    Backup { keep: Option<usize> },
    /// `windrow restore`.
    Restore { number: u64 },
    /// `windrow backups --keep`.
    Prune { keep: usize },
}

/// The names of the commands, in the order in which they are counted.
pub(super) const NAMES: [&str; 3] = ["backup", "restore", "prune"];

impl Command {
    pub(super) fn index(self) -> usize {
        match self {
            Command::Backup { .. } => 0,
            Command::Restore { .. } => 1,
            Command::Prune { .. } => 2,
        }
    }

    /// Returns its arguments.
    pub(super) fn arguments(self, db: &Path, backups: &Path, copy: &Path) -> Vec<OsString> {
        let words: [&dyn AsRef<OsStr>; 3] = match self {
            Command::Backup { .. } => [&"backup", &db, &backups],
            Command::Restore { .. } => [&"restore", &backups, &copy],
            Command::Prune { .. } => [&"backups", &backups, &"--json"],
        };
        let number = match self {
            Command::Backup { keep } => keep.map(|keep| ("--keep", keep as u64)),
            Command::Restore { number } => Some(("--backup", number)),
            Command::Prune { keep } => Some(("--keep", keep as u64)),
        };
        let number = number.map(|(name, number)| [name.to_owned(), number.to_string()]);
        let words = words.into_iter().map(|word| word.as_ref().to_owned());
        words.chain(number.into_iter().flatten().map(OsString::from)).collect()
    }
}
