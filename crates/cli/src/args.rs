//! The arguments: every command, every flag, and the words of `--help`.
//!
//! Owns: the names, the values and the help of commands and flags. Never does: open, read or write
//! anything.

mod backup;
mod changes;
mod open;
#[cfg(feature = "serve")]
mod serve;

use crate::bytes::parse_duration;
use crate::layout::{FieldsArgs, Format};
use crate::session::Session;
use crate::stop::OnStop;
pub(crate) use backup::{BackupArgs, BackupsArgs, RestoreArgs};
pub(crate) use changes::{ApplyArgs, ChangesArgs};
use clap::{Args, Parser, Subcommand};
pub(crate) use open::Open;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windrow_lab::setup::{DATA_UNITS, UNIT_KEYS};

/// An embedded, ordered key-value store, from the shell
#[derive(Debug, Parser)]
#[command(name = "windrow", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// No progress and no summaries, only results, warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
A database is a directory. `put` and `load` create it; what only reads opens it read-only and
never creates it. One program at a time may have a database open for writing. What only reads works
next to it, and shows what was written when the command began. The preset and the options of a
database that exists stay as they were last written, but for those a flag names.

Exit codes: 0 done; 1 failed or not found; 2 bad usage; 3 done, but something that was written is
lost or was left out; 130 stopped by Ctrl-C.

Start with `windrow demo`.";

/// Every command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what Windrow does, on Unicode's character table, in a temporary directory
    Demo(DemoArgs),
    /// Load pairs from a file or standard input; creates the database
    #[command(visible_alias = "import")]
    Load(LoadArgs),
    /// Print the value of a key; exit code 1 if there is none
    Get(GetArgs),
    /// Store a value under a key; creates the database
    #[command(visible_alias = "set")]
    Put(PutArgs),
    /// Give an operand to the merge operator of a keyspace, for a key; `keyspaces create` makes one
    /// that has an operator
    Merge(MergeArgs),
    /// Print how long a key is there for
    Ttl(TtlArgs),
    /// Delete keys; deleting one that is not there is no error
    #[command(visible_alias = "del")]
    Delete(DeleteArgs),
    /// Delete all keys from FROM up to TO, TO itself not
    DeleteRange(DeleteRangeArgs),
    /// Delete all keys of a range that need not have both ends, or all there are
    Clear(ClearArgs),
    /// Print how many keys there are
    Count(CountArgs),
    /// Print pairs in key order, or against it
    Scan(ScanArgs),
    /// Print the pairs of a keyspace in key order, in a form that `load` takes back byte for byte;
    /// without the times at which they expire
    Export(ExportArgs),
    /// Draw the tree: levels, runs, logs and files over the keys
    Tree(TreeArgs),
    /// Print the figures of the database
    Stats(StatsArgs),
    /// Watch a database that another program has open: rates, latencies, levels, memory, pauses
    Top(TopArgs),
    /// List the keyspaces, or make or drop one
    #[command(visible_alias = "ls")]
    Keyspaces(KeyspacesArgs),
    /// Read every byte of every file and check it
    Verify(VerifyArgs),
    /// Save what can be saved of a damaged database
    #[command(after_help = REPAIR_HELP)]
    Repair(RepairArgs),
    /// Merge everything down, so that nothing dead is left
    Compact(CompactArgs),
    /// Make a copy that can be opened by itself, of hard links where it can
    Checkpoint(CheckpointArgs),
    /// Back a database up into a directory of backups, which share their tables
    Backup(BackupArgs),
    /// List, check and remove the backups of a directory
    Backups(BackupsArgs),
    /// Make a database of a backup
    Restore(RestoreArgs),
    /// Print the batches that were committed, in order
    Changes(ChangesArgs),
    /// Write the changes of another database, as `changes --json` prints them
    #[command(after_help = changes::APPLY_HELP)]
    Apply(ApplyArgs),
    /// Delete a database
    Destroy(DestroyArgs),
    /// Work on one open database, command after command: at a prompt with history and completion,
    /// or by a script on standard input
    Shell(ShellArgs),
    /// Draw a database as one page of HTML, with all that its manifest remembers
    Viz(VizArgs),
    /// Serve a database to Redis clients, until Ctrl-C, SIGTERM or SHUTDOWN
    #[cfg(feature = "serve")]
    #[command(after_help = serve::SERVE_HELP)]
    Serve(ServeArgs),
    /// Print what a file of a database holds, record by record
    Dump(DumpArgs),
    /// Try policies on a simulated tree: what they write, read and keep, in a few seconds
    #[command(after_help = LAB_HELP)]
    Lab(LabArgs),
    /// List the options that --option sets
    Options(OptionsArgs),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of the program or of one command
    Man {
        /// The command
        command: Option<String>,
    },
}

impl Command {
    /// Returns the effect of the first Ctrl-C on it.
    pub(crate) fn on_stop(&self) -> OnStop {
        match self {
            Command::Demo(_)
            | Command::Apply(_)
            | Command::Load(_)
            | Command::Put(_)
            | Command::Count(_)
            | Command::Scan(_)
            | Command::Changes(_)
            | Command::Shell(_)
            | Command::Top(_)
            | Command::Export(_) => OnStop::Asks,
            #[cfg(feature = "serve")]
            Command::Serve(_) => OnStop::Asks,
            // In the engine, or at a prompt.
            Command::Verify(_)
            | Command::Repair(_)
            | Command::Compact(_)
            | Command::Checkpoint(_)
            | Command::Backup(_)
            | Command::Backups(_)
            | Command::Restore(_)
            | Command::Destroy(_)
            | Command::Dump(_) => OnStop::Leaves,
            // Has nothing open.
            Command::Lab(_) => OnStop::System,
            // Done in a moment.
            Command::Get(_)
            | Command::Merge(_)
            | Command::Ttl(_)
            | Command::Delete(_)
            | Command::DeleteRange(_)
            | Command::Clear(_)
            | Command::Tree(_)
            | Command::Viz(_)
            | Command::Stats(_)
            | Command::Keyspaces(_)
            | Command::Options(_)
            | Command::Completions { .. }
            | Command::Man { .. } => OnStop::System,
        }
    }

    /// Has it work in a session, on this keyspace unless it works on others.
    pub(crate) fn put_into(&mut self, session: &Arc<Session>, keyspace: Option<String>) {
        let (open, data) = match self {
            Command::Load(LoadArgs { open, data, .. })
            | Command::Get(GetArgs { open, data, .. })
            | Command::Put(PutArgs { open, data, .. })
            | Command::Merge(MergeArgs { open, data, .. })
            | Command::Ttl(TtlArgs { open, data, .. })
            | Command::Delete(DeleteArgs { open, data, .. })
            | Command::DeleteRange(DeleteRangeArgs { open, data, .. })
            | Command::Clear(ClearArgs { open, data, .. })
            | Command::Count(CountArgs { open, data, .. })
            | Command::Scan(ScanArgs { open, data, .. })
            | Command::Export(ExportArgs { open, data, .. }) => (open, Some(data)),
            Command::Tree(TreeArgs { open, .. })
            | Command::Viz(VizArgs { open, .. })
            | Command::Stats(StatsArgs { open, .. })
            | Command::Keyspaces(KeyspacesArgs { open, .. })
            | Command::Verify(VerifyArgs { open, .. })
            | Command::Repair(RepairArgs { open, .. })
            | Command::Compact(CompactArgs { open, .. })
            | Command::Checkpoint(CheckpointArgs { open, .. })
            | Command::Backup(BackupArgs { open, .. })
            | Command::Changes(ChangesArgs { open, .. })
            | Command::Apply(ApplyArgs { open, .. }) => (open, None),
            _ => return,
        };
        open.session = Some(session.clone());
        if let (Some(data), Some(keyspace)) = (data, keyspace) {
            data.keyspace = keyspace;
        }
    }
}

/// Which keyspace, and how keys and values are written.
#[derive(Debug, Args)]
pub(crate) struct Data {
    /// Keyspace
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    pub(crate) keyspace: String,

    /// Keys and values are hexadecimal, going in and coming out
    #[arg(long)]
    pub(crate) hex: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VizArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Moments of the past to show at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) moments: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the database in this directory, which must not exist, instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// File to read; `-` or nothing is standard input. With --from: the other database's directory
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Copy all of a database of this store, by its library on this machine, and compare: each
    /// column family to the keyspace of its name. Run again, it goes on
    #[cfg(feature = "import")]
    #[arg(long, value_enum, value_name = "STORE", conflicts_with_all = ["bulk", "sorted", "sync", "ack", "group", "ttl"])]
    pub(crate) from: Option<ForeignStore>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Format of the input
    #[arg(long, short, value_enum, default_value = "tsv")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) fields: FieldsArgs,
    /// Lines of the TSV end in CR LF, as on Windows: the CR is not the value's
    #[arg(long)]
    pub(crate) crlf: bool,
    /// Leave out lines that are no pair, such as an object without the field that --key names;
    /// tells the first few and how many they are, and ends with exit code 3 if there are any
    #[arg(long, conflicts_with = "ack")]
    pub(crate) skip_errors: bool,
    /// Commit group by group, each on the device before the next
    #[arg(long)]
    pub(crate) sync: bool,
    /// After each group print how many lines are durable; implies --sync
    #[arg(long)]
    pub(crate) ack: bool,
    /// Most lines in a group
    #[arg(long, value_name = "LINES", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) group: u64,
    /// Let the pairs expire after this long: seconds, or 90s, 36h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) ttl: Option<Duration>,
    /// Write tables straight away, and add all pairs at once at the end or none: the fastest way.
    /// The keys of the input must ascend, each once
    #[arg(long, conflicts_with_all = ["bulk", "sync", "ack", "group"])]
    pub(crate) sorted: bool,
    /// As --sorted, for keys in any order: sorts them first, by temporary files where memory
    /// does not do. Of a key that comes again the last line counts
    #[arg(long, conflicts_with_all = ["sync", "ack", "group"])]
    pub(crate) bulk: bool,
    /// Where --bulk puts its temporary files, which need as much room as the input; next to the
    /// database if nothing is said
    #[arg(long, value_name = "DIR", requires = "bulk")]
    pub(crate) temp: Option<PathBuf>,
    /// Memory that --bulk sorts in, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "bulk", value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) sort_memory: u64,
}

impl LoadArgs {
    /// Whether it reads standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.as_os_str() == "-")
    }
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// The key, or several: their values in this order
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<OsString>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// No line feed after the value
    #[arg(long, short)]
    pub(crate) no_newline: bool,
    /// The value is a counter, as the merge operator `add` keeps it: print it in decimal
    #[arg(long, conflicts_with = "hex")]
    pub(crate) number: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// The key
    pub(crate) key: OsString,
    /// The operand: for the operator `add` a whole number, otherwise bytes
    #[arg(allow_hyphen_values = true)]
    pub(crate) operand: OsString,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct TtlArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// The key
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) data: Data,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// The key
    pub(crate) key: OsString,
    /// The value; without one, standard input to its end
    pub(crate) value: Option<OsString>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Let the pair expire after this long: seconds, or 90s, 36h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<OsString>,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteRangeArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// The first key to delete
    pub(crate) from: OsString,
    /// The first key to keep
    pub(crate) to: OsString,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// Which keys: all, where nothing is said.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Start here (included)
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// Only keys that begin so
    #[arg(long, short, value_name = "KEY")]
    pub(crate) prefix: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["from", "to", "prefix", "all"])))]
pub(crate) struct ClearArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// All keys of the keyspace
    #[arg(long, conflicts_with_all = ["from", "to", "prefix"])]
    pub(crate) all: bool,
    /// Do not ask on the terminal
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// From the last to the first
    #[arg(long, short)]
    pub(crate) reverse: bool,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Format of the output
    #[arg(long, short, value_enum, default_value = "tsv")]
    pub(crate) format: Format,
    /// Leave the values out
    #[arg(long)]
    pub(crate) keys_only: bool,
    /// Values are counters, as the merge operator `add` keeps them: print them in decimal
    #[arg(long, conflicts_with = "hex")]
    pub(crate) number: bool,
    #[command(flatten)]
    pub(crate) fields: FieldsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Format of the output
    #[arg(long, short, value_enum, default_value = "tsv")]
    pub(crate) format: Format,
    /// Values are counters, as the merge operator `add` keeps them: print them in decimal
    #[arg(long, conflicts_with = "hex")]
    pub(crate) number: bool,
    #[command(flatten)]
    pub(crate) fields: FieldsArgs,
    /// Write a new database of this store, by its library on this machine, instead of lines
    #[cfg(feature = "import")]
    #[arg(long, value_enum, value_name = "STORE", requires = "dir", conflicts_with_all = ["number", "hex"])]
    pub(crate) to: Option<ForeignStore>,
    /// Where --to writes it
    #[cfg(feature = "import")]
    #[arg(value_name = "DIR", requires = "to")]
    pub(crate) dir: Option<PathBuf>,
}

/// A store whose databases can be copied.
#[cfg(feature = "import")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ForeignStore {
    /// LevelDB's
    Leveldb,
    /// RocksDB's
    Rocksdb,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Only this keyspace
    #[arg(long, short, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,
    /// List every file under the picture
    #[arg(long)]
    pub(crate) files: bool,
    /// As JSON, with every file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) path: PathBuf,
    /// Time between two looks
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub(crate) interval: Duration,
    /// Number of frames after which it ends; 1 prints what there is now
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

const TOP_HELP: &str = "\
q or Ctrl-C ends it, space pauses it. Where standard output is no terminal, frame follows frame.

The program that has the database open writes its statistics every 10 seconds; with the option
stats_period_ms=1000, every second. Rates are those between its last two.";

#[derive(Debug, Args)]
pub(crate) struct KeyspacesArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// As JSON, with what each of them needs
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<KeyspacesAction>,
}

/// What is done to a keyspace.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyspacesAction {
    /// Make a keyspace; creates the database
    Create(CreateArgs),
    /// Drop a keyspace and all that is in it
    Drop(DropArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name
    pub(crate) name: String,
    /// Its merge operator: add (a counter), append or max
    #[arg(long, value_name = "OPERATOR")]
    pub(crate) merge: Option<String>,
    /// Its policy, where that is not the database's: a preset, or a policy in full
    #[arg(long, value_name = "TEXT")]
    pub(crate) policy: Option<String>,
    /// Its compression, as the option `compression` says it: lz4, or none by level
    #[arg(long, value_name = "TEXT")]
    pub(crate) compression: Option<String>,
    /// How long what is put is there for, where the put does not say: seconds, or 90s, 36h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    /// Its name
    pub(crate) name: String,
    /// Do not ask on the terminal
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Write nothing, and keep nobody from writing: each command sees what others have written
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Create the database if there is none
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) create: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OptionsArgs {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The exit code where all was done, and something is missing: lost to a repair, or left out by an
/// open.
pub(crate) const EXIT_LOST: u8 = 3;

const REPAIR_HELP: &str = "\
Prints what was found wrong, what was saved of each damaged table and log, and what is lost. The
files that it replaces are kept as they were in `lost/` in the database's directory; delete that
when nobody needs it. A repair that was stopped can be run again; it starts over.

Exit codes: 0 nothing is lost; 3 the database is repaired, and something is lost; 1 it is not
repaired.";

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) open: Open,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Only this keyspace
    #[arg(long, short, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) open: Open,
    /// Directory of the copy, which must not exist
    pub(crate) target: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) path: PathBuf,
    /// Do not ask on the terminal
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Kind of the file
    #[arg(value_enum)]
    pub(crate) kind: DumpKind,
    /// The file
    pub(crate) file: PathBuf,
}

/// The kinds of file that `dump` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DumpKind {
    /// A write-ahead log, *.wal, or one kept for the feed of changes, *.changes
    Wal,
    /// A manifest, MANIFEST-*
    Manifest,
    /// A table, *.sst
    Table,
}

const LAB_HELP: &str = "\
What is simulated, and what each column of its tables says, is in docs/lab.md of the source.";

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// A preset or a policy in full, with sizes in units among its words, such as
    /// `leveled memtable=8 file=8 base=32`; as often as you like (all presets)
    #[arg(long = "policy", short, value_name = "TEXT", conflicts_with = "table")]
    pub(crate) policies: Vec<String>,
    /// Which keys are updated: uniform, zipf, clustered, wandering or sequential (uniform; all of
    /// them with --search)
    #[arg(long, short, value_name = "NAME", conflicts_with = "table")]
    pub(crate) workload: Option<String>,
    /// Distinct keys
    #[arg(long, value_name = "N", default_value_t = DATA_UNITS * UNIT_KEYS, conflicts_with = "table", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) keys: u32,
    /// Keys in a unit, which stands for a file of 8 MB (256; 64 with --search)
    #[arg(long, value_name = "N", conflicts_with = "table", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) unit_keys: Option<u32>,
    /// Updates measured, in multiples of the keys
    #[arg(long, value_name = "TIMES", default_value_t = 2.0, conflicts_with = "fit")]
    pub(crate) rounds: f64,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Units of updates in a memtable (8, or 1 where level 0 is a queue)
    #[arg(long, value_name = "UNITS", conflicts_with = "table")]
    pub(crate) memtable: Option<f64>,
    /// Units in a file (1)
    #[arg(long, value_name = "UNITS", conflicts_with = "table")]
    pub(crate) file: Option<f64>,
    /// Units that level 1 holds (32, or 8 where level 0 is a queue, or 136 at most with base=last)
    #[arg(long, value_name = "UNITS", conflicts_with = "table")]
    pub(crate) base: Option<f64>,
    /// Measure a load into an empty tree: every key once, and the updates of all rounds but the first
    #[arg(long, conflicts_with_all = ["table", "fit", "reads"])]
    pub(crate) load: bool,
    /// Print the table of the first simulation again, its figures next to those
    #[arg(long)]
    pub(crate) table: bool,
    /// Print how each use of windrow fits data of 6 to 400 memtables, next to leveled
    #[arg(long, conflicts_with_all = ["table", "policies", "workload", "keys", "memtable", "file", "base"])]
    pub(crate) fit: bool,
    /// Print what reads change in trees of windrow: after writes have stopped, and in a mix that
    /// shifts
    #[arg(long, conflicts_with_all = ["table", "fit", "policies", "keys", "workload", "rounds"])]
    pub(crate) reads: bool,
    /// Search for the static policy that writes least with no more files over a point and no more
    /// space than windrow, for each size and workload, and print what windrow writes over that
    #[arg(long, conflicts_with_all = ["table", "fit", "reads", "load", "policies", "keys", "rounds", "memtable", "file", "base"])]
    pub(crate) search: bool,
    /// Print what each design of windrow is worth: windrow next to the same without one of them, with
    /// data of 6 to 1,000 memtables and each workload, or that of --workload
    #[arg(long, conflicts_with_all = ["table", "fit", "reads", "search", "load", "policies", "keys", "rounds", "memtable", "file", "base"])]
    pub(crate) ablation: bool,
    /// Print a page of HTML on which the first two policies are at work step by step, one under the other
    #[arg(long, conflicts_with_all = ["table", "fit", "reads", "search", "ablation", "load", "json"])]
    pub(crate) html: bool,
    /// Print a picture, as SVG, of a paper's policy and of windrow at work: autumn, l2sm, vlsm or
    /// mnemosyne
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "fit", "reads", "search", "ablation", "html", "load", "json", "policies", "workload", "keys", "unit_keys", "rounds", "seed", "memtable", "file", "base"])]
    pub(crate) paper: Option<String>,
    /// Flushes that the page plays
    #[arg(long, value_name = "N", default_value_t = 40, requires = "html", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) flushes: u32,
    /// Data to search for, in memtables, as often as you like (6, 12, 24, 48, 100)
    #[arg(long, value_name = "N", requires = "search", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) memtables: Vec<u32>,
    /// Simulate every policy of the grid, and not only those that a search comes by
    #[arg(long, requires = "search")]
    pub(crate) all: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_is_caught_by_what_looks_for_it_or_can_be_left() {
        for (line, expected) in [
            ("load db", OnStop::Asks),
            ("put db key", OnStop::Asks),
            ("scan db", OnStop::Asks),
            ("export db", OnStop::Asks),
            ("demo", OnStop::Asks),
            ("lab", OnStop::System),
            ("compact db", OnStop::Leaves),
            ("verify db", OnStop::Leaves),
            ("repair db", OnStop::Leaves),
            ("checkpoint db copy", OnStop::Leaves),
            ("destroy db", OnStop::Leaves),
        ] {
            let words = std::iter::once("windrow").chain(line.split(' '));
            let command = Cli::try_parse_from(words).unwrap().command;
            assert_eq!(command.on_stop(), expected, "{line}");
        }
    }
}
