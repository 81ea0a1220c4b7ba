//! Opening databases for commands, and closing them on every path.
//!
//! Owns: the access and the settings of each command, the messages for a missing database, and the
//! warnings of parts that an open left out. Never does: read or write a key.

use crate::args::Open;
use crate::failure::{Failure, Result};
use crate::human::Stopwatch;
use crate::session::Session;
use crate::stop;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windrow::inspect::StoredKeyspace;
use windrow::settings::Settings;
use windrow::{Db, ErrorKind, Follower, Keyspace, Options};

/// Whether the database was opened without whole batches of its write-ahead logs.
static LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// The interval at which an open is retried while another process has the database.
const WAIT_STEP: Duration = Duration::from_millis(20);

/// The access of a command to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Opens read-only: writes not one byte. A database that another process has open for
    /// writing is followed, by a lease in its directory.
    Read,
    /// Changes an existing database.
    Change,
    /// Changes a database, creating it where there is none.
    Create,
}

/// A database, and how it was opened.
pub(crate) struct Opened {
    pub(crate) db: Db,
    /// Whether another process may write it: this shows the state at the open.
    pub(crate) is_followed: bool,
    /// Whether it stays open after the command.
    pub(crate) is_session: bool,
}

/// Opens the database, runs `work`, and closes it whatever the outcome. The error of `work` has
/// precedence over that of the close.
///
/// # Errors
/// Those of opening, of `work`, of closing.
pub(crate) fn with<T>(
    open: &Open,
    access: Access,
    work: impl FnOnce(&Db) -> Result<T>,
) -> Result<T> {
    with_opened(open, access, |opened| work(&opened.db))
}

/// Does as [`with`], for work that needs to know how the database was opened.
///
/// # Errors
/// Those of [`with`].
pub(crate) fn with_opened<T>(
    open: &Open,
    access: Access,
    work: impl FnOnce(&Opened) -> Result<T>,
) -> Result<T> {
    let opened = opened(open, access)?;
    let outcome = work(&opened);
    let closed = if opened.is_session { Ok(()) } else { opened.db.close().map_err(Failure::from) };
    let value = outcome?;
    closed?;
    Ok(value)
}

/// Opens the database, and warns of the parts that are left out; in a session it is open already.
///
/// # Errors
/// Those of opening it.
pub(crate) fn opened(open: &Open, access: Access) -> Result<Opened> {
    if let Some(session) = &open.session {
        return of_session(open, access, session);
    }
    if access != Access::Create {
        must_exist(&open.path)?;
    }
    let options = options(open, access, stored(open, access)?)?;
    let opened = when_free(open, || open_or_follow(open, access, options.clone()))?
        .map_err(|error| refused(open, error))?;
    warn_left_out(&opened.db);
    Ok(opened)
}

/// Runs `work`, which needs the database exclusively; while another process has it, again and again
/// for as long as `--wait` says. (Rejected: to wait for the lock in the kernel, where a wait cannot
/// be given up.)
///
/// # Errors
/// `Interrupted` after Ctrl-C.
#[allow(clippy::disallowed_methods, reason = "a command waits, and nothing of the engine")]
pub(crate) fn when_free<T>(
    open: &Open,
    mut work: impl FnMut() -> windrow::Result<T>,
) -> Result<windrow::Result<T>> {
    let (begin, wait) = (Stopwatch::start(), open.wait.unwrap_or_default());
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::Busy && begin.elapsed() < wait => {
                stop::check()?;
                std::thread::sleep(WAIT_STEP);
            }
            done => return Ok(done),
        }
    }
}

fn of_session(open: &Open, access: Access, session: &Session) -> Result<Opened> {
    if open.preset.is_some() || !open.options.is_empty() {
        return Err(Failure::failed("a session keeps the options that it was opened with")
            .hint("leave with `exit`, and say --preset and --option to `windrow shell`"));
    }
    let is_followed = session.is_followed();
    if is_followed && access != Access::Read {
        return Err(Failure::failed("this session only reads the database").hint(
            "close the program that has it open for writing, and run `windrow shell` again \
             without --read-only",
        ));
    }
    Ok(Opened { db: session.db(), is_followed, is_session: true })
}

/// Follows a database, also one that another process has open.
///
/// # Errors
/// Those of reading it.
pub(crate) fn follow(open: &Open) -> Result<Follower> {
    must_exist(&open.path)?;
    let options = options(open, Access::Read, stored(open, Access::Read)?)?;
    let follower =
        Follower::open_with(&open.path, options).map_err(|error| refused(open, error))?;
    warn_left_out(&follower.db());
    Ok(follower)
}

fn warn_left_out(db: &Db) {
    for left_out in db.keyspaces_left_out() {
        let StoredKeyspace { name, comparator, .. } = left_out;
        warn(format_args!(
            "keyspace `{name}` is left out, unread and unchecked: its comparator `{comparator}` \
             is not known to this program"
        ));
    }
    for records in db.records_left_out() {
        LEFT_OUT.store(true, Ordering::Relaxed);
        warn(records);
    }
}

/// Returns whether a database was opened without whole batches of its write-ahead logs.
pub(crate) fn has_left_out() -> bool {
    LEFT_OUT.load(Ordering::Relaxed)
}

/// Opens a database. For reading, one that another process has open for writing is followed; any
/// other is locked instead, and nothing is written into its directory.
fn open_or_follow(open: &Open, access: Access, options: Options) -> windrow::Result<Opened> {
    match Db::open_with(&open.path, options.clone()) {
        Err(error) if access == Access::Read && error.kind() == ErrorKind::Busy => {
            let db = Follower::open_with(&open.path, options)?.db();
            Ok(Opened { db, is_followed: true, is_session: false })
        }
        opened => Ok(Opened { db: opened?, is_followed: false, is_session: false }),
    }
}

/// Returns the reason why the database does not open. A mistake in an option may show only here:
/// the words of a preset are the engine's.
fn refused(open: &Open, error: windrow::Error) -> Failure {
    let chosen = open.preset.is_some() || !open.options.is_empty();
    if chosen && error.kind() == ErrorKind::InvalidArgument {
        return Failure::usage(error.message());
    }
    Failure::from(error.context(format!("open {}", open.path.display())))
}

/// Returns the settings that the database was last opened with for writing; the defaults where
/// there is none.
fn stored(open: &Open, access: Access) -> Result<Settings> {
    let stored = Db::stored_settings(&open.path)
        .map_err(|error| Failure::from(error.context(format!("open {}", open.path.display()))))?;
    let Some(stored) = stored else { return Ok(Settings::default()) };
    // A command that only reads leaves them as they are, to a program that knows them.
    for line in stored.left_out.iter().filter(|_| access != Access::Read) {
        warn(format_args!("left out of the settings that the database was written with: {line}"));
    }
    Ok(stored.settings)
}

/// Returns the options of a repair. Settings that cannot be read are among the damage.
///
/// # Errors
/// Those of [`options`], and of a database that cannot be repaired: `Busy`, a newer format.
pub(crate) fn repair_options(open: &Open) -> Result<Options> {
    let lost = match Db::stored_settings(&open.path) {
        Ok(found) => found.is_none(),
        Err(error) => error.is_corruption(),
    };
    let settings = if lost {
        warn(
            "the database's settings cannot be read: it gets the defaults, but for what flags say",
        );
        Settings::default()
    } else {
        stored(open, Access::Change)?
    };
    options(open, Access::Change, settings)
}

/// Prints a warning.
pub(crate) fn warn(what: impl Display) {
    let _ = writeln!(io::stderr(), "windrow: {what}");
}

/// Returns the options that the arguments ask for, on top of `settings`.
///
/// # Errors
/// `Usage` for an option that does not exist or a value it does not take.
fn options(open: &Open, access: Access, settings: Settings) -> Result<Options> {
    let mut options = Options {
        create_if_missing: access == Access::Create,
        read_only: access == Access::Read,
        settings,
        ..Options::default()
    };
    let preset = open.preset.iter().map(|name| ("preset", name.as_str()));
    let mut named = Vec::new();
    for option in &open.options {
        let pair = option
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--option {option}: write it as name=value")))?;
        named.push(pair);
    }
    for (name, value) in preset.chain(named) {
        options.settings.set(name.trim(), value.trim()).map_err(|error| {
            Failure::usage(format!(
                "option {name}: {} (`windrow options` lists them)",
                error.message()
            ))
        })?;
    }
    options.components.listener = open.listener.clone().map(|listener| listener as _);
    options.settings.validate().map_err(|problems| Failure::usage(problems.join("; ")))?;
    Ok(options)
}

/// # Errors
/// `Failed` if there is no database in `path`. A damaged one counts as one: the engine reports its
/// damage.
pub(crate) fn must_exist(path: &Path) -> Result<()> {
    let shown = path.display();
    let missing = |what: String| {
        Failure::failed(what)
            .hint("check the path; `windrow put` and `windrow load` create a database")
    };
    if !path.exists() {
        return Err(missing(format!("there is no database {shown}: no such directory")));
    }
    let entries =
        path.read_dir().map_err(|error| Failure::file("read directory", path.display(), &error))?;
    let ours = |name: &str| {
        name == "CURRENT"
            || name.starts_with("MANIFEST-")
            || name.ends_with(".sst")
            || name.ends_with(".wal")
    };
    let any = entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(ours));
    if any { Ok(()) } else { Err(missing(format!("there is no database in {shown}"))) }
}

/// Returns the keyspaces that the database has, also those of unknown comparators or operators.
///
/// # Errors
/// `Failed` if there is no database or its manifest cannot be read.
pub(crate) fn keyspaces(open: &Open) -> Result<Vec<StoredKeyspace>> {
    must_exist(&open.path)?;
    // The options are checked as in every command; their values play no part here.
    options(open, Access::Read, Settings::default())?;
    let named = |error: windrow::Error| error.context(format!("open {}", open.path.display()));
    let stored = Db::stored_keyspaces(&open.path).map_err(named)?;
    stored.ok_or_else(|| {
        Failure::failed(format!("CURRENT is missing in {}", open.path.display()))
            .hint("save what is left with `windrow repair`")
    })
}

/// # Errors
/// `Usage` for a name that no keyspace can have.
pub(crate) fn check_keyspace_name(name: &str) -> Result<()> {
    Keyspace::check_name(name).map_err(|error| Failure::usage(error.message()))
}

/// Returns the keyspace of that name.
///
/// # Errors
/// `Failed`, with the names that exist.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace> {
    check_keyspace_name(name)?;
    db.open_keyspace(name)?.ok_or_else(|| {
        Failure::failed(format!("there is no keyspace `{name}`"))
            .hint(format!("there are: {}", db.keyspaces().join(", ")))
    })
}
