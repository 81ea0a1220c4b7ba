//! Arguments of `backup`, `backups` and `restore`.
//!
//! Owns: their names and help. Never does: open, read or write anything.

use super::Open;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Directory of the backups, made where there is none
    pub(crate) target: PathBuf,
    /// Remove all but the newest N backups afterwards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// Mebibytes that are copied each second at most (as many as it can)
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupsArgs {
    /// Directory of the backups
    pub(crate) target: PathBuf,
    /// Read every byte of every backup and check it, what they share once
    #[arg(long)]
    pub(crate) verify: bool,
    /// Remove all but the newest N backups first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Directory of the backups
    pub(crate) target: PathBuf,
    /// Directory of the database, which must be empty or not there
    #[arg(value_name = "DB")]
    pub(crate) path: PathBuf,
    /// The backup's number (the newest one)
    #[arg(long, value_name = "N")]
    pub(crate) backup: Option<u64>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}
