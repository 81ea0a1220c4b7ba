//! The commands, a file for each group of them.
//!
//! Owns: which function runs a command. Never does: a command's work.

mod apply;
mod ask;
mod backup;
mod changes;
mod demo;
mod dump;
#[cfg(feature = "import")]
mod foreign_databases;
mod ingest;
mod inspect;
mod keyspaces;
mod lab;
mod load;
mod maintain;
mod point;
mod scan;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod shell;
mod stats;
mod top;

use crate::args::{Cli, Command};
use crate::failure::Result;

/// Does what the command line says.
///
/// # Errors
/// The error of the command.
pub(crate) fn run(cli: Cli) -> Result<()> {
    let quiet = cli.quiet;
    match cli.command {
        Command::Demo(args) => demo::run(&args, quiet),
        Command::Load(args) => load::run(&args, quiet),
        Command::Get(args) => point::get(&args),
        Command::Put(args) => point::put(&args),
        Command::Merge(args) => point::merge(&args),
        Command::Ttl(args) => point::ttl(&args),
        Command::Delete(args) => point::delete(&args),
        Command::DeleteRange(args) => point::delete_range(&args),
        Command::Clear(args) => scan::clear(&args),
        Command::Count(args) => scan::count(&args),
        Command::Scan(args) => scan::scan(&args),
        Command::Export(args) => scan::export(&args, quiet),
        Command::Tree(args) => inspect::tree(&args, quiet),
        Command::Viz(args) => inspect::viz(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Keyspaces(args) => keyspaces::run(&args),
        Command::Options(args) => inspect::options(&args),
        Command::Verify(args) => maintain::verify(&args, quiet),
        Command::Repair(args) => maintain::repair(&args, quiet),
        Command::Compact(args) => maintain::compact(&args, quiet),
        Command::Checkpoint(args) => maintain::checkpoint(&args, quiet),
        Command::Backup(args) => backup::backup(&args, quiet),
        Command::Backups(args) => backup::list(&args, quiet),
        Command::Restore(args) => backup::restore(&args, quiet),
        Command::Changes(args) => changes::run(&args),
        Command::Apply(args) => apply::run(&args, quiet),
        Command::Destroy(args) => maintain::destroy(&args),
        Command::Shell(args) => session::run(&args, quiet, run),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args),
        Command::Dump(args) => dump::run(&args),
        Command::Lab(args) => lab::run(&args, quiet),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { command } => shell::man(command.as_deref()),
    }
}
