//! The log of a server.
//!
//! Owns: its levels and formats by their words, and its destination. Never does: decide what is
//! logged.

use crate::failure::{Failure, Result};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How much is logged, by Redis' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Verbosity {
    /// Each connection.
    Debug,
    /// The same.
    Verbose,
    /// The server's begin and end, and failures.
    Notice,
    /// Failures.
    Warning,
    /// Nothing.
    Nothing,
}

impl Verbosity {
    fn filter(self) -> LevelFilter {
        match self {
            Verbosity::Debug | Verbosity::Verbose => LevelFilter::DEBUG,
            Verbosity::Notice => LevelFilter::INFO,
            Verbosity::Warning => LevelFilter::WARN,
            Verbosity::Nothing => LevelFilter::OFF,
        }
    }
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LineFormat {
    /// Time, level, what happened, and with what.
    Text,
    /// An object of JSON.
    Json,
}

/// Logs from now on, to the end of `file` or to standard error.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn install(verbosity: Verbosity, format: LineFormat, file: Option<&Path>) -> Result<()> {
    match file {
        None => write_to(verbosity, format, io::stderr),
        Some(path) => {
            let open = File::options().append(true).create(true).open(path);
            let file = open.map_err(|error| {
                let path = path.display();
                Failure::failed(format!(
                    "cannot write the log {path}: {error}; choose another --logfile"
                ))
            })?;
            write_to(verbosity, format, Arc::new(file));
        }
    }
    Ok(())
}

fn write_to<W>(verbosity: Verbosity, format: LineFormat, writer: W)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // A closed log is no reason to end the server.
    let lines = tracing_subscriber::fmt()
        .with_max_level(verbosity.filter())
        .with_ansi(false)
        .log_internal_errors(false)
        .with_target(false)
        .with_writer(writer);
    let outcome = match format {
        LineFormat::Text => lines.try_init(),
        LineFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    // Only a second server of the same process finds another log installed, and uses that.
    drop(outcome);
}
