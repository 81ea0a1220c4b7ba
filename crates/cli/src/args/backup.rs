//! Arguments of `backup`, `backups` and `restore`.
//!
//! Owns: their names and help. Never does: open, read or write anything.

use super::Open;
use clap::Args;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

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
    /// The backup's number (the newest one; with --to-seq or --to-time the last one before)
    #[arg(long, value_name = "N")]
    pub(crate) backup: Option<u64>,
    /// Go on behind the backup, by the changes that later backups have with them, up to this sequence
    /// number
    #[arg(long, value_name = "SEQ", conflicts_with = "to_time")]
    pub(crate) to_seq: Option<u64>,
    /// Go on behind the backup up to this time, such as 2026-11-27T14:05:00Z; writes of up to a second
    /// before it may be left out
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) to_time: Option<u64>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a time in UTC; in ms since 1970.
fn parse_time(text: &str) -> Result<u64, String> {
    let time = humantime::parse_rfc3339_weak(text).map_err(|error| error.to_string())?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| "it is before 1970".to_owned())?;
    u64::try_from(since.as_millis()).map_err(|_| "it is too late".to_owned())
}
