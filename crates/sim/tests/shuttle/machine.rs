//! The machine that a scenario runs on: the simulated file system and clock, and
//! the production thread pool on the checker's threads.

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::path::Path;
use std::sync::Arc;
use windrow::{CompactionFilter, Db, Event, Follower, Keyspace, Options};
use windrow_base::{Error, ErrorKind, Result};
use windrow_env::Env;
use windrow_env::testing::{CrashFs, ManualClock, ManualTimers, SeededRandom};
use windrow_testkit::ledger::{Counts, Ledger};
use windrow_testkit::variant::Variant;

/// The directory of the database.
pub(crate) const DIR: &str = "/scenario/db";
/// Threads of the pool.
const JOB_THREADS: usize = 2;
/// Option sets, by name, that take different paths through the engine.
const VARIANT_NAMES: [&str; 4] = ["small", "shallow level 0", "partitioned index", "windrow"];

/// Files, clock and random numbers of a machine.
pub(crate) struct Machine {
    pub(crate) fs: CrashFs,
    random: Arc<SeededRandom>,
    options: Options,
}

/// Draws a number below `bound`, by the schedule's seed.
pub(crate) fn draw(bound: u64) -> u64 {
    thread_rng().gen_range(0..bound)
}

impl Machine {
    /// Makes a fresh machine, and draws options for its database.
    pub(crate) fn new() -> Machine {
        Machine::of(VARIANT_NAMES[draw(VARIANT_NAMES.len() as u64) as usize])
    }

    /// Makes a fresh machine, with the options of the variant of this name.
    pub(crate) fn of(name: &str) -> Machine {
        Machine {
            fs: CrashFs::new(draw(u64::MAX)),
            random: Arc::new(SeededRandom::new(draw(u64::MAX))),
            options: Variant::named(name).options().expect("options"),
        }
    }

    /// Adds a compaction filter on the default keyspace.
    pub(crate) fn with_filter(mut self, filter: Arc<dyn CompactionFilter>) -> Machine {
        let filters = &mut self.options.components.compaction_filters;
        filters.push(("default".to_owned(), filter));
        self
    }

    /// Adds one setting.
    pub(crate) fn with_setting(mut self, name: &str, value: &str) -> Machine {
        self.options.settings.set(name, value).expect("a setting");
        self
    }

    /// Returns another machine with a copy of this one's files.
    pub(crate) fn with_files(&self, fs: CrashFs) -> Machine {
        Machine { fs, random: self.random.clone(), options: self.options.clone() }
    }

    /// Opens the database in `dir`. The background jobs end with it.
    pub(crate) fn open(&self, dir: &str) -> (Db, Arc<ManualTimers>) {
        self.try_open(dir).unwrap_or_else(|error| panic!("open: {error}"))
    }

    /// Opens as [`Machine::open`] does.
    ///
    /// # Errors
    /// The database's error.
    pub(crate) fn try_open(&self, dir: &str) -> Result<(Db, Arc<ManualTimers>)> {
        let (options, jobs) = self.options();
        Ok((Db::open_with(Path::new(dir), options)?, jobs))
    }

    /// Follows the database in `dir`, as another process would.
    pub(crate) fn follow(&self, dir: &str) -> (Follower, Arc<ManualTimers>) {
        let (options, jobs) = self.options();
        let follower = Follower::open_with(Path::new(dir), options);
        (follower.unwrap_or_else(|error| panic!("follow: {error}")), jobs)
    }

    pub(crate) fn options(&self) -> (Options, Arc<ManualTimers>) {
        let jobs = Arc::new(ManualTimers::new(JOB_THREADS));
        let env = Env {
            fs: Arc::new(self.fs.clone()),
            clock: Arc::new(ManualClock::new()),
            jobs: jobs.clone(),
            random: self.random.clone(),
        };
        let mut options = self.options.clone();
        options.components.env = Some(env);
        if std::env::var_os("WINDROW_TRACE").is_some() {
            let print = |event: &Event| eprintln!("{:?}: {event}", thread::current().id());
            options.components.listener = Some(Arc::new(print));
        }
        (options, jobs)
    }
}

/// Writers of a scenario.
pub(crate) const WRITERS: usize = 2;
/// Bytes of a value: a few batches fill a memtable of 64 KiB.
const VALUE_BYTES: usize = 2 << 10;

/// Makes the ledger of a scenario's writers.
pub(crate) fn ledger() -> Arc<Ledger> {
    Arc::new(Ledger::new(WRITERS, VALUE_BYTES))
}

/// Returns the state that a database shows.
pub(crate) fn observe(db: &Db, ledger: &Ledger) -> Counts {
    ledger.observe(&spaces(db), &db.snapshot()).expect("observe")
}

/// Returns the two keyspaces that every batch writes to.
pub(crate) fn spaces(db: &Db) -> [Keyspace; 2] {
    [db.default_keyspace(), db.keyspace("other").unwrap_or_else(|error| panic!("{error}"))]
}

/// Returns the result of an operation; `None` if it was refused because the database is closed.
///
/// # Panics
/// If it failed in another way.
pub(crate) fn unless_closed<T>(what: &str, result: Result<T>) -> Option<T> {
    let closed = |error: &Error| error.kind() == ErrorKind::Closed;
    match result {
        Ok(value) => Some(value),
        Err(error) if closed(&error) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}
