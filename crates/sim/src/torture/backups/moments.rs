//! `torture moments`: backups of a database under full writes, without kills: one that is so slow that
//! it takes the whole run, others by the writer and by a follower, one after the other.
//!
//! Each is restored, and must hold exactly the batches up to its sequence number, by the ledger: a prefix of the
//! commits, and so what a snapshot at that number shows. A follower's backup is also compared with a scan of what
//! the follower showed when it made it. And the backup before it, with all changes since, must restore to the
//! same.
//!
//! Owns: the backups, and their judgement by number. Never does: end a process.

use super::super::judge::{Survives, Told, judge};
use super::super::ledger::Ledger;
use super::super::plan::{Failure, Outcome, scratch};
use super::super::setup::{Setup, small_options};
use super::super::stop;
use super::super::worker::{Task, write_during};
use super::super::workload::{Expected, KEYSPACES, Shape, key};

use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::backup::{
    Backup, BackupDirectory, BackupOptions, Moment, prune_backups, restore_backup, restore_to,
};
use windrow::{Db, Follower, inspect};
use windrow_env::checksum;
use windrow_env::testing::Rng;

/// More than is written between two backups.
const CHANGES: &str = "changes_bytes=4GiB";
/// Backups that stay in a directory.
const KEPT: usize = 3;
/// The part of the run in which the database grows before the slow backup begins.
const GROWS: f64 = 0.2;
/// The longest time until the writers have gone beyond a backup.
const BEYOND_MOST: Duration = Duration::from_secs(300);

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// How long the writers write.
    #[arg(long, default_value_t = 1.0)]
    pub minutes: f64,
    /// Where all choices come from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A preset, or `all` for one that is drawn.
    #[arg(long, default_value = "windrow")]
    pub preset: String,
    /// Keys of each of four writers in each of three keyspaces.
    #[arg(long, default_value_t = 10_000)]
    pub slots: u64,
    /// Where database and backups are kept while it runs; a failure stays there.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Deletes a key of what was restored: the run must then fail.
    #[arg(long, hide = true)]
    pub sabotage: bool,
}

/// Runs the plan.
///
/// # Errors
/// The backup that is not of its moment.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let scratch = scratch(plan.dir.clone().unwrap_or_else(std::env::temp_dir), plan.seed)?;
    let ledgers = tempfile::tempdir_in(Ledger::directory()).map_err(|e| Failure {
        why: e.to_string(),
        seed: plan.seed,
        kept: None,
    })?;
    match write_and_back_up(plan, scratch.path(), &ledgers.path().join("ledger")) {
        Ok(figures) => Ok(Outcome::Passed(figures)),
        Err(why) => Err(Failure { why, seed: plan.seed, kept: Some(scratch.keep()) }),
    }
}

fn write_and_back_up(plan: &Plan, dir: &Path, ledger: &Path) -> Result<String, String> {
    let mut rng = Rng::new(plan.seed);
    let shape = Shape {
        seed: rng.next_u64(),
        writers: 4,
        slots: plan.slots,
        synced_percent: 0,
        deleted_percent: 10,
    };
    let mut setup = Setup::draw(&mut rng, &plan.preset);
    setup.settings.push(CHANGES.to_owned());
    let task = Task {
        dir: dir.join("db"),
        ledger: ledger.to_owned(),
        seed: shape.seed,
        session: 1,
        numbers: vec![0; shape.writers as usize],
        slots: shape.slots,
        synced_percent: shape.synced_percent,
        deleted_percent: shape.deleted_percent,
        pause_us: 0,
        batches: 0,
        iterators: 0,
        descriptors: 0,
        reads_go_on: false,
        settings: setup.settings.clone(),
    };
    let ledger = Ledger::create(&task.ledger).map_err(|error| error.to_string())?;
    let run = Run {
        plan,
        dir,
        shape,
        ledger: &ledger,
        begin: Instant::now(),
        length: Duration::from_secs_f64(60.0 * plan.minutes),
    };
    write_during(&task, |db| run.back_up(db))
        .map_err(|why| format!("{why}\nwritten under {:?}", setup.settings))
}

/// A run, as the threads that back up share it.
struct Run<'a> {
    plan: &'a Plan,
    dir: &'a Path,
    shape: Shape,
    ledger: &'a Ledger,
    begin: Instant,
    length: Duration,
}

/// One series of backups in a directory of its own, each newer than the one before.
struct Series<'a> {
    run: &'a Run<'a>,
    name: &'static str,
    target: BackupDirectory,
    expected: Expected,
    count: u64,
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.length <= self.begin.elapsed() || stop::requested()
    }

    fn back_up(&self, db: &Db) -> Result<String, String> {
        let (slow, own, followed) = std::thread::scope(|scope| {
            let slow = scope.spawn(|| self.one_that_is_slow(db));
            let own = scope.spawn(|| self.one_after_the_other(db));
            let followed = self.of_a_follower();
            (joined(slow), joined(own), followed)
        });
        let (slow, own, followed) = (slow?, own?, followed?);
        let acks = self.ledger.all(self.shape.writers).map_err(|error| error.to_string())?;
        let batches: usize = acks.iter().map(Vec::len).sum();
        let seconds = self.begin.elapsed().as_secs_f64();
        Ok(format!(
            "{slow}, {own} by the writer and {followed} by a follower, in {seconds:.0} s at {:.0} batches a \
             second; each restored to the batches up to its sequence number, and so by the changes behind the one \
             before",
            batches as f64 / seconds
        ))
    }

    fn series(&self, name: &'static str) -> Result<Series<'_>, String> {
        let target = BackupDirectory::open(self.dir.join(name)).map_err(|e| e.to_string())?;
        let expected = Expected::new(self.shape);
        Ok(Series { run: self, name, target, expected, count: 0 })
    }

    /// Makes a backup that takes the rest of the run. Tables that it has to copy are merged away meanwhile.
    fn one_that_is_slow(&self, db: &Db) -> Result<String, String> {
        while self.begin.elapsed() < self.length.mul_f64(GROWS) && !stop::requested() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut series = self.series("slow")?;
        let left = self.length.saturating_sub(self.begin.elapsed());
        let trees = inspect::trees(db);
        let bytes: u64 = trees
            .iter()
            .flat_map(|(_, version)| version.files())
            .map(|(.., file)| file.bytes)
            .sum();
        let mut options = BackupOptions::default();
        options.bytes_per_second = (bytes as f64 / left.as_secs_f64().max(0.1)) as u64;
        let begin = Instant::now();
        let made = db.backup(&series.target, options).map_err(|error| error.to_string())?;
        let seconds = begin.elapsed().as_secs_f64();
        series.judge(None)?;
        Ok(format!("a backup of {} tables that took {seconds:.0} s", made.tables))
    }

    fn one_after_the_other(&self, db: &Db) -> Result<u64, String> {
        let mut series = self.series("own")?;
        while !self.is_over() {
            let made = db.backup(&series.target, BackupOptions::default());
            made.map_err(|error| format!("a backup: {error}"))?;
            series.judge(None)?;
        }
        Ok(series.count)
    }

    fn of_a_follower(&self) -> Result<u64, String> {
        let mut series = self.series("followed")?;
        let follower = Follower::open_with(self.dir.join("db"), small_options()?);
        let follower = follower.map_err(|error| format!("follow: {error}"))?;
        while !self.is_over() {
            follower.refresh().map_err(|error| format!("refresh: {error}"))?;
            let shown = Look::at(&follower.db())?;
            let made = follower.backup(&series.target, BackupOptions::default());
            made.map_err(|error| format!("a follower's backup: {error}"))?;
            series.judge(Some(shown))?;
        }
        Ok(series.count)
    }
}

impl Series<'_> {
    /// Restores the newest backup, and compares it with what must be in it, and with what was shown.
    fn judge(&mut self, shown: Option<Look>) -> Result<(), String> {
        self.count += 1;
        let at = format!("{} backup {}", self.name, self.count);
        self.judge_newest(shown).map_err(|why| format!("{at}: {why}"))?;
        prune_backups(&self.target, KEPT).map_err(|error| format!("{at}: prune: {error}"))?;
        Ok(())
    }

    fn judge_newest(&mut self, shown: Option<Look>) -> Result<(), String> {
        let text = |error: windrow::Error| error.to_string();
        let copy = self.run.dir.join(format!("{}-copy", self.name));
        let _ = std::fs::remove_dir_all(&copy);
        let backup = restore_backup(&self.target, None, &copy).map_err(text)?;
        if self.run.plan.sabotage {
            let db = Db::open_with(&copy, small_options()?).map_err(text)?;
            let newest = db.iter().next_back().transpose().map_err(text)?;
            let newest = newest.map_or_else(|| key(0, 0), |(key, _)| key.to_vec());
            db.delete(newest).and_then(|()| db.close()).map_err(text)?;
        }
        let mut options = small_options()?;
        options.read_only = true;
        let db = Db::open_with(&copy, options).map_err(text)?;
        let seq = db.snapshot().seq();
        let told = self.told(seq)?;
        let exact: Vec<u64> = self
            .expected
            .numbers
            .iter()
            .zip(&told.before)
            .map(|(n, acks)| n + acks.len() as u64)
            .collect();
        judge(&db, &mut self.expected, Some(&told), Survives::Everything)?;
        if self.expected.numbers != exact {
            let found = &self.expected.numbers;
            return Err(format!("up to {seq} there are {exact:?} batches, and it has {found:?}"));
        }
        if let Some(shown) = shown
            && shown != Look::at(&db)?
        {
            return Err("it is not what the follower showed".to_owned());
        }
        let look = Look::at(&db)?;
        db.close().map_err(text)?;
        if self.count > 1 { self.judge_changes(&backup, look) } else { Ok(()) }
    }

    /// Restores the backup before one, and all changes up to that one.
    fn judge_changes(&self, backup: &Backup, expected: Look) -> Result<(), String> {
        let text = |error: windrow::Error| error.to_string();
        let (Some(seq), Some(changes)) = (backup.seq, backup.changes) else {
            return Err("it has no changes since the one before".to_owned());
        };
        let copy = self.run.dir.join(format!("{}-changes", self.name));
        let _ = std::fs::remove_dir_all(&copy);
        let to = Moment::Seq(seq);
        restore_to(&self.target, to, Some(changes.since), &copy).map_err(text)?;
        let db = Db::open_with(&copy, small_options()?).map_err(text)?;
        match Look::at(&db)? {
            found if found == expected => db.close().map_err(text),
            found => Err(format!(
                "backup {} and the changes up to {seq} are {found:?}, and it is {expected:?}",
                changes.since
            )),
        }
    }

    /// Returns the acknowledgements up to a sequence number, of batches that the backup before lacks, once
    /// every writer is beyond it.
    fn told(&self, seq: u64) -> Result<Told, String> {
        let until = Instant::now() + BEYOND_MOST;
        let mut before = Vec::new();
        for (writer, &number) in self.expected.numbers.iter().enumerate() {
            let mut acks = loop {
                let acks = self.run.ledger.acks_from(writer as u32, number);
                let acks = acks.map_err(|error| error.to_string())?;
                if acks.last().is_some_and(|last| seq < last.seq) {
                    break acks;
                }
                if until < Instant::now() {
                    return Err(format!("writer {writer} is not beyond {seq}"));
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            acks.truncate(acks.partition_point(|ack| ack.seq <= seq));
            before.push(acks);
        }
        Ok(Told { session: 1, after: before.clone(), before })
    }
}

/// The state that a database shows: its sequence number, and the entries and their checksum of each keyspace.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    seq: u64,
    keyspaces: Vec<(u64, u32)>,
}

impl Look {
    fn at(db: &Db) -> Result<Look, String> {
        let text = |error: windrow::Error| error.to_string();
        let mut keyspaces = Vec::new();
        for name in KEYSPACES {
            let (mut entries, mut sum) = (0, 0);
            if let Some(keyspace) = db.open_keyspace(name).map_err(text)? {
                for entry in keyspace.iter() {
                    let (key, value) = entry.map_err(text)?;
                    sum = checksum::continued(checksum::continued(sum, &key), &value);
                    entries += 1;
                }
            }
            keyspaces.push((entries, sum));
        }
        Ok(Look { seq: db.snapshot().seq(), keyspaces })
    }
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|panic| Err(windrow_testkit::sweep::panic_text(&*panic)))
}
