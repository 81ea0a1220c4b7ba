//! Backups: copies of a database in a place that keeps many of them, where each table is once.
//!
//! A table never changes and has a uid. So a backup copies only tables that the place lacks, and then
//! a *record*: the list of its tables, and the manifest. The record comes last and is stored whole or
//! not at all; without it there is no backup. The next backup uses tables of one that was cut short,
//! and a prune removes the rest. A restore makes a directory in the order of a checkpoint: tables, a
//! manifest, a log, and CURRENT last (rule R1).
//!
//! Where the database keeps changes, a backup has those since the one before with it, so that a
//! restore can end at each batch in between (`moments/mod.rs`).
//!
//! A backup shows one moment of all keyspaces. If the writer makes it, memtables are flushed as for a
//! checkpoint, and writers go on meanwhile. If a follower makes it, it has a part of the log with it.
//!
//! Rejected: hard links into the place, as checkpoints have. They end at the device, and damage to a
//! table would be damage to its backups. Rejected: a count of backups by table, or a list of all
//! backups. Each backup would have to change it, and a crash could leave it wrong; the records hold
//! the same.
//!
//! Owns: nothing. Never does: name a file of the database, or touch one that it did not make.

mod change_part;
mod directory;
mod kept;
mod log_part;
mod make;
mod moments;
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
pub use moments::Moment;
pub use record::{Backup, BackupChanges};
pub use restore::{Restored, restore_backup, restore_backup_in, restore_to, restore_to_in};
pub use target::{BackupTarget, StoredObject};
