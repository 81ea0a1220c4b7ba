//! The worker: the process that is killed. It opens the database, writes the workload from several
//! threads, notes every acknowledgement, and disturbs itself meanwhile with flushes, merges,
//! snapshots and keyspaces that come and go.
//!
//! Owns: the reaction to an error: it stops writing, checks whether reads go on, and reports that
//! by its exit code. Never does: end by itself without a fault, unless it was told how many batches
//! to write.

use super::ledger::{Ack, Ledger};
use super::setup::Setup;
use super::workload::{Change, KEYSPACES, Shape, Value, key};
use clap::Args;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use windrow::{Batch, Db, Error, ErrorKind, Iter, Keyspace, WriteSync};
use windrow_env::testing::Rng;

/// The database refused to go on, as it may, with a clean error.
pub const EXIT_REFUSED: u8 = 3;
/// The database broke a promise, and the worker saw it.
pub const EXIT_BROKEN: u8 = 4;

/// The arguments of a worker.
#[derive(Args, Clone, Debug, Default)]
pub struct Task {
    /// The database.
    #[arg(long)]
    pub dir: PathBuf,
    /// Where acknowledgements are noted.
    #[arg(long)]
    pub ledger: PathBuf,
    /// Seed of the operations.
    #[arg(long)]
    pub seed: u64,
    /// Number of this process in the database's history.
    #[arg(long)]
    pub session: u64,
    /// The number of batches of each writer that are already in the database.
    #[arg(long, value_delimiter = ',')]
    pub numbers: Vec<u64>,
    /// Keys of a writer in each keyspace.
    #[arg(long)]
    pub slots: u64,
    /// Of a hundred batches, how many are synced.
    #[arg(long)]
    pub synced_percent: u64,
    /// Of a hundred changes, how many delete something.
    #[arg(long)]
    pub deleted_percent: u64,
    /// Longest pause of a writer between two batches, in microseconds.
    #[arg(long, default_value_t = 0)]
    pub pause_us: u64,
    /// Batches for each writer to write before it ends; 0: no end.
    #[arg(long, default_value_t = 0)]
    pub batches: u64,
    /// Iterators to be held open while it writes.
    #[arg(long, default_value_t = 0)]
    pub iterators: usize,
    /// Descriptors that the process may hold; 0: as many as it is given.
    #[arg(long, default_value_t = 0)]
    pub descriptors: u64,
    /// After a failed write, look whether everything acknowledged can be read.
    #[arg(long)]
    pub reads_go_on: bool,
    /// `name=value`, each.
    #[arg(long = "set")]
    pub settings: Vec<String>,
}

impl Task {
    /// Returns the task of a worker that writes until it is killed. `session`: its number, and the
    /// numbers of the batches that are in the database.
    pub(super) fn new(
        shape: Shape,
        dir: PathBuf,
        ledger: PathBuf,
        (session, numbers): (u64, Vec<u64>),
        setup: &Setup,
    ) -> Task {
        let Shape { seed, slots, synced_percent, deleted_percent, .. } = shape;
        let settings = setup.settings.clone();
        Task {
            dir,
            ledger,
            seed,
            session,
            numbers,
            slots,
            synced_percent,
            deleted_percent,
            settings,
            ..Task::default()
        }
    }

    /// Returns the arguments that make it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        let named = [
            ("--dir", self.dir.display().to_string()),
            ("--ledger", self.ledger.display().to_string()),
            ("--seed", self.seed.to_string()),
            ("--session", self.session.to_string()),
            ("--numbers", numbers.join(",")),
            ("--slots", self.slots.to_string()),
            ("--synced-percent", self.synced_percent.to_string()),
            ("--deleted-percent", self.deleted_percent.to_string()),
            ("--pause-us", self.pause_us.to_string()),
            ("--batches", self.batches.to_string()),
            ("--iterators", self.iterators.to_string()),
            ("--descriptors", self.descriptors.to_string()),
        ];
        let settings = self.settings.iter().map(|setting| ("--set", setting.clone()));
        let named = named.into_iter().chain(settings);
        let flag = self.reads_go_on.then(|| "--reads-go-on".to_owned());
        named.flat_map(|(name, value)| [name.to_owned(), value]).chain(flag).collect()
    }

    fn shape(&self) -> Shape {
        Shape {
            seed: self.seed,
            writers: self.numbers.len() as u32,
            slots: self.slots,
            synced_percent: self.synced_percent,
            deleted_percent: self.deleted_percent,
        }
    }
}

/// Why a worker ends before it is killed.
enum End {
    /// The database refused, as it may.
    Refused(Error),
    /// The database broke a promise.
    Broken(String),
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        match error.kind() {
            // No event of this process makes bytes wrong.
            ErrorKind::Corruption => End::Broken(error.to_string()),
            _ => End::Refused(error),
        }
    }
}

/// Runs until it is killed, refused, or done.
pub fn run(task: &Task) -> ExitCode {
    // A parent that dies ends its worker.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    match work(task, |_, crew| crew.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(End::Refused(error)) => {
            eprintln!("{}: {error}", error.kind().as_str());
            ExitCode::from(EXIT_REFUSED)
        }
        Err(End::Broken(what)) => {
            eprintln!("{what}");
            ExitCode::from(EXIT_BROKEN)
        }
    }
}

/// Opens the database, and closes it after `other`.
fn work<T>(task: &Task, other: impl FnOnce(&Db, &Crew<'_>) -> Result<T, End>) -> Result<T, End> {
    let broken = |e: std::io::Error| End::Broken(format!("the worker itself: {e}"));
    if task.descriptors > 0 {
        let few = Some(task.descriptors);
        let limit = Rlimit { current: few, maximum: few };
        setrlimit(Resource::Nofile, limit).map_err(|errno| broken(errno.into()))?;
    }
    let ledger = Ledger::open(&task.ledger).map_err(broken)?;
    let setup = Setup { settings: task.settings.clone() };
    let db = Db::open_with(&task.dir, setup.options().map_err(End::Broken)?)?;
    let keyspaces =
        KEYSPACES.iter().map(|name| db.keyspace(name)).collect::<Result<Vec<_>, _>>()?;
    ledger.set_opened(&task.numbers).map_err(broken)?;
    let stop = AtomicBool::new(false);
    let crew = Crew { task, shape: task.shape(), db: &db, keyspaces, ledger, stop };
    let done = other(&db, &crew)?;
    db.close()?;
    Ok(done)
}

/// Writes on threads of this process for as long as `other` runs.
///
/// # Errors
/// The error of `other`; a refusal or a broken promise that a writer saw.
pub(super) fn write_during<T>(
    task: &Task,
    other: impl FnOnce(&Db) -> Result<T, String>,
) -> Result<T, String> {
    let both = |db: &Db, crew: &Crew<'_>| {
        thread::scope(|scope| {
            let writers = scope.spawn(|| crew.run());
            let stopped = StopAtEnd(&crew.stop);
            let done = other(db);
            drop(stopped);
            joined(writers.join())?;
            done.map_err(End::Broken)
        })
    };
    work(task, both).map_err(|end| match end {
        End::Refused(error) => format!("the writer was refused: {error}"),
        End::Broken(what) => what,
    })
}

/// Ends the writers, also if the thread panics that they write next to.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The state that the threads of a worker share.
struct Crew<'a> {
    task: &'a Task,
    shape: Shape,
    db: &'a Db,
    keyspaces: Vec<Keyspace>,
    ledger: Ledger,
    stop: AtomicBool,
}

impl Crew<'_> {
    fn run(&self) -> Result<(), End> {
        thread::scope(|scope| {
            let held = scope.spawn(|| self.hold_iterators());
            let noise = scope.spawn(|| self.disturb());
            let writers: Vec<_> =
                (0..self.shape.writers).map(|w| scope.spawn(move || self.write(w))).collect();
            let mut ends: Vec<Result<(), End>> = Vec::new();
            for writer in writers {
                ends.push(joined(writer.join()));
            }
            self.stop.store(true, Ordering::Relaxed);
            ends.push(joined(noise.join()));
            ends.push(joined(held.join()));
            // A broken promise is reported in preference to a refusal.
            let broken = ends.iter().position(|end| matches!(end, Err(End::Broken(_))));
            let first = broken.or_else(|| ends.iter().position(Result::is_err));
            first.map_or(Ok(()), |at| ends.swap_remove(at))
        })
    }

    fn write(&self, writer: u32) -> Result<(), End> {
        let before = self.task.numbers[writer as usize];
        let mut rng = Rng::new(self.shape.seed ^ u64::from(writer));
        let mut number = before;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            if self.task.batches > 0 && number > before + self.task.batches {
                break;
            }
            let index = number - before - 1;
            if let Err(error) = self.one_batch(writer, number, index) {
                self.stop.store(true, Ordering::Relaxed);
                if self.task.reads_go_on {
                    self.read_back(writer, number - 1)?;
                }
                return Err(error);
            }
            if self.task.pause_us > 0 {
                thread::sleep(Duration::from_micros(rng.below(self.task.pause_us)));
            }
        }
        Ok(())
    }

    fn one_batch(&self, writer: u32, number: u64, index: u64) -> Result<(), End> {
        let recipe = self.shape.recipe(self.task.session, writer, number);
        let mut batch = Batch::new();
        for change in &recipe.changes {
            match *change {
                Change::Put(at, slot, value) => {
                    batch.put(&self.keyspaces[at], key(writer, slot), value.bytes());
                }
                Change::Delete(at, slot) => batch.delete(&self.keyspaces[at], key(writer, slot)),
                Change::DeleteRange(at, from, to) => {
                    batch.delete_range(&self.keyspaces[at], key(writer, from), key(writer, to));
                }
            }
        }
        let sync = if recipe.synced { WriteSync::Yes } else { WriteSync::No };
        let seq = self.db.write(batch, sync)?;
        let noted = |synced| {
            let noted = self.ledger.note(writer, index, Ack { seq, synced });
            noted.map_err(|e| End::Broken(format!("the ledger: {e}")))
        };
        noted(recipe.synced)?;
        if !recipe.synced && number.is_multiple_of(61) && self.shape.synced_percent > 0 {
            self.db.sync()?;
            noted(true)?;
        }
        Ok(())
    }

    /// Checks after a failed write that everything acknowledged is still present.
    fn read_back(&self, writer: u32, acknowledged: u64) -> Result<(), End> {
        for keyspace in &self.keyspaces {
            let value = keyspace
                .get(key(writer, 0))
                .map_err(|e| End::Broken(format!("a read failed because writing did: {e}")))?;
            let number = value.as_deref().map_or(0, number_in);
            if number < acknowledged {
                return Err(End::Broken(format!(
                    "writer {writer} was acknowledged {acknowledged} batches, and {} shows {number}",
                    keyspace.name()
                )));
            }
        }
        Ok(())
    }

    /// Flushes, merges, takes snapshots, and makes and drops keyspaces, while the others write.
    fn disturb(&self) -> Result<(), End> {
        let mut rng = Rng::new(self.shape.seed ^ self.task.session ^ 0xd157);
        while !self.stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_micros(rng.below(3_000)));
            let keyspace = &self.keyspaces[rng.below(self.keyspaces.len() as u64) as usize];
            let done = match rng.below(12) {
                0..4 => keyspace.flush(),
                4 => keyspace.compact(),
                5 => self.come_and_go(&mut rng),
                _ => {
                    self.look_at_one_moment()?;
                    Ok(())
                }
            };
            match done {
                // The writers get that error too, and report it.
                Err(error) if error.kind() != ErrorKind::Corruption => return Ok(()),
                done => done?,
            }
        }
        Ok(())
    }

    /// Makes, fills and drops a keyspace that the judge does not read.
    fn come_and_go(&self, rng: &mut Rng) -> windrow::Result<()> {
        const NAME: &str = "passing";
        if self.db.open_keyspace(NAME)?.is_some() && rng.below(2) == 0 {
            return self.db.drop_keyspace(NAME);
        }
        let passing = self.db.keyspace(NAME)?;
        for slot in 0..rng.below(40) {
            passing.put(key(99, slot), Value::Bytes(rng.next_u64()).bytes())?;
        }
        Ok(())
    }

    /// Checks that in one snapshot a writer's last batch is in every keyspace or in none.
    fn look_at_one_moment(&self) -> Result<(), End> {
        let snapshot = self.db.snapshot();
        for writer in 0..self.shape.writers {
            let mut seen = Vec::new();
            for keyspace in &self.keyspaces {
                match keyspace.get_at(&snapshot, key(writer, 0)) {
                    Ok(value) => seen.push(value.as_deref().map_or(0, number_in)),
                    Err(error) if error.kind() == ErrorKind::Corruption => return Err(error.into()),
                    Err(_) => return Ok(()),
                }
            }
            if seen.iter().any(|number| *number != seen[0]) {
                return Err(End::Broken(format!(
                    "a snapshot shows parts of a batch: writer {writer} at {seen:?}"
                )));
            }
        }
        Ok(())
    }

    /// Keeps as many iterators open as requested, each at some place, renewing the oldest.
    fn hold_iterators(&self) -> Result<(), End> {
        let mut rng = Rng::new(self.shape.seed ^ 0x17e8);
        // One more than it has open, so that it does not grow to twice as many.
        let mut held: VecDeque<Iter> = VecDeque::with_capacity(self.task.iterators + 1);
        while self.task.iterators > 0 && !self.stop.load(Ordering::Relaxed) {
            let keyspace = &self.keyspaces[rng.below(self.keyspaces.len() as u64) as usize];
            let writer = rng.below(u64::from(self.shape.writers)) as u32;
            let mut iter = keyspace.range(key(writer, rng.below(self.shape.slots))..);
            for item in iter.by_ref().take(3) {
                item?;
            }
            held.push_back(iter);
            if held.len() > self.task.iterators {
                held.pop_front();
                thread::sleep(Duration::from_micros(200));
            }
        }
        if self.task.iterators > 0 {
            eprintln!("iterators held: {}", held.len());
        }
        Ok(())
    }
}

/// Returns the number in a value of slot 0.
pub fn number_in(value: &[u8]) -> u64 {
    value.try_into().map_or(u64::MAX, u64::from_le_bytes)
}

fn joined(outcome: thread::Result<Result<(), End>>) -> Result<(), End> {
    outcome.unwrap_or_else(|panic| Err(End::Broken(windrow_testkit::sweep::panic_text(&*panic))))
}
