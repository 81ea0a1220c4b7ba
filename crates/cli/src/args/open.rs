//! The arguments by which a database is opened.
//!
//! Owns: its directory, and the options that are said of it. Never does: open it.

use crate::bytes::parse_duration;
use crate::session::Session;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windrow_dashboard::Events;

/// Where the database is and how it is opened.
#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) path: PathBuf,

    /// How the tree is kept in shape: a preset by name, or a policy in full; a database keeps
    /// the one it was last written with
    #[arg(long, value_name = "NAME", help_heading = "Opening")]
    pub(crate) preset: Option<String>,

    /// Set an option, as often as you like; `windrow options` lists them. A database keeps
    /// those it was last written with: on one that exists, flags change them, and a command
    /// that writes stores the change
    #[arg(long = "option", value_name = "NAME=VALUE", help_heading = "Opening")]
    pub(crate) options: Vec<String>,

    /// If another process has the database open for writing, wait this long for it to close:
    /// seconds, or a number with ms, s, m or h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Opening")]
    pub(crate) wait: Option<Duration>,

    /// Where it is open already.
    #[arg(skip)]
    pub(crate) session: Option<Arc<Session>>,

    /// Hears its events.
    #[arg(skip)]
    pub(crate) listener: Option<Arc<Events>>,
}
