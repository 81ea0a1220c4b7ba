//! Arguments of `changes`.
//!
//! Owns: their names and help. Never does: open, read or write anything.

use super::Open;
use clap::Args;

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
