//! Backups: copies of a database in a place that keeps many of them, where each table is once.
//!
//! A table never changes and has a uid, so that a backup copies the tables that the place does not
//! have yet, and a *record*: which tables they are, and the manifest. The record comes last and is
//! stored whole or not at all: what was cut short before is no backup. Of what it stored, the next
//! one uses the tables; a prune removes the rest. A restore makes a directory as a checkpoint is
//! one: tables, a manifest, a log, and CURRENT last (rule R1).
//!
//! A backup is of one moment in all keyspaces. That of the writer is a checkpoint's: memtables are
//! flushed, and writers go on meanwhile. That of a follower has a part of the log with it.
//!
//! Rejected: hard links into the place, as checkpoints have, which end at the device, and by which
//! damage to a table is damage to its backups. Rejected: a count of backups by table, or a list of
//! all backups, which each backup would have to change, and a crash could leave wrong: the records
//! say it, and are read.
//!
//! Owns: nothing. Never does: name a file of the database, or touch one that it did not make.

mod directory;
mod kept;
mod log_part;
mod make;
mod names;
mod pace;
mod record;
mod restore;
mod sum;
mod target;
#[cfg(test)]
mod tests;

pub use directory::BackupDirectory;
pub use kept::{
    BackupVerifier, backup_numbers, backups, prune_backups, read_backup, verify_backup,
};
pub use make::{BackedUp, BackupOptions};
pub(crate) use make::{backup, of_follower};
pub use record::Backup;
pub use restore::{restore_backup, restore_backup_in};
pub use target::{BackupTarget, StoredObject};
