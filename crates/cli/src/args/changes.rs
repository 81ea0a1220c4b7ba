//! Arguments of `changes` and `apply`.
//!
//! Owns: their names and help. Never does: open, read or write anything.

use super::Open;
use clap::Args;
use std::path::PathBuf;

pub(super) const APPLY_HELP: &str = "\
A mirror begins as a copy (`windrow checkpoint`, or a backup that is restored), and goes on from there, after
either side has ended, too:

  windrow changes DB --from $(windrow apply MIRROR --next) --follow --json --hex | windrow apply MIRROR --hex

The number of the next change is in the mirror's keyspace `windrow.mirror`, and is written with each batch.";

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Begin with this sequence number; nothing: with the first one that the database has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: Option<u64>,
    /// Go on with what is written later, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Each key's value before the change as well, from now on
    #[arg(long, requires = "follow", conflicts_with = "from")]
    pub(crate) old: bool,
    /// End after this many batches
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Keys and values are printed in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    /// As JSON, a batch on each line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// File to read; `-` or nothing is standard input
    #[arg(value_name = "FILE", conflicts_with = "next")]
    pub(crate) file: Option<PathBuf>,
    /// Keys and values are hexadecimal, as `changes --hex` prints them
    #[arg(long)]
    pub(crate) hex: bool,
    /// Print the sequence number from which the database lacks changes, and apply none
    #[arg(long)]
    pub(crate) next: bool,
}

impl ApplyArgs {
    /// Whether it reads standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        !self.next && self.file.as_ref().is_none_or(|file| file.as_os_str() == "-")
    }
}
