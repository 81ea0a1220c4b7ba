//! `torture full`: the database fills a small file system until nothing fits, a stranger fills it
//! up to the last byte, and room is made again.
//!
//! On the full file system the database must end with a clean error, keep everything acknowledged,
//! and be readable; given room, it must go on. Owns: the allocation and release of room. Never
//! does: judge the contents of the database.

use super::child::{End, Worker};
use super::history::{History, verify};
use super::judge::{Survives, Tally, Told, judge};
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::stop;
use super::volume::{self, Volume};
use super::worker::Task;
use super::workload::{KEYSPACES, Shape, key};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::{Batch, Db, ErrorKind, WriteSync};
use windrow_env::testing::Rng;

/// Fillings of one file system before it is made again.
const SESSIONS: u64 = 8;
/// Keys of a writer: more than fit.
const SLOTS: u64 = 1 << 20;
/// The longest time of a filling.
const FILL_MOST: Duration = Duration::from_secs(120);
/// The room that the database may fill, on any file system.
const ROOM_BYTES: u64 = 24 << 20;
/// The least room that is given back after it is full.
const RELIEF_BYTES_MIN: u64 = 4 << 20;

/// The counts of all fillings together.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    fillings: u64,
    reopened_full: u64,
    refused_full: u64,
    deleted_full: u64,
    tally: Tally,
}

/// One file system and the database on it.
struct Filled<'a> {
    plan: &'a Plan,
    volume: &'a Volume,
    history: History,
}

/// Runs `plan.rounds` fillings.
///
/// # Errors
/// The write that was lost, or the refusal that was wrong or not clean.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    if let Some(why) = volume::missing(plan.fs) {
        return Ok(Outcome::Skipped(why));
    }
    let scratch = plan.scratch(std::env::temp_dir())?;
    let plain = |why: String| plan.failure(plan.seed, why);
    let ledgers = tempfile::tempdir_in(Ledger::directory()).map_err(|e| plain(e.to_string()))?;
    let mut volume = Volume::new(scratch.path(), plan.fs, plan.fs.bytes_min()).map_err(plain)?;
    let begin = Instant::now();
    let mut figures = Figures::default();
    let mut seed = plan.seed;
    while figures.fillings < plan.rounds && !stop::requested() {
        volume.renew().and_then(|()| volume.mount()).map_err(plain)?;
        let history = begin_history(seed, &volume, ledgers.path());
        let mut filled = Filled { plan, volume: &volume, history };
        for _ in 0..SESSIONS.min(plan.rounds - figures.fillings) {
            if let Err(why) = filled.live(&mut figures) {
                let why = format!("seed {seed}, session {}: {why}", filled.history.session);
                drop(volume);
                return Err(Failure { why, seed, kept: Some(scratch.keep().join("image")) });
            }
            if stop::requested() {
                break;
            }
        }
        seed += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Outcome::Passed(format!(
        "{}: filled {} times in {seconds:.1} s; lost 0 of {} acknowledged batches; with no byte \
         free {} opens for writing succeeded ({} then deleted everything) and {} were refused \
         cleanly; all went on once there was room",
        plan.fs,
        figures.fillings,
        figures.tally.acknowledged,
        figures.reopened_full,
        figures.deleted_full,
        figures.refused_full,
    )))
}

/// Begins the history of the database on a seed's file system.
fn begin_history(seed: u64, volume: &Volume, ledgers: &Path) -> History {
    let mut rng = Rng::new(seed);
    let shape = Shape {
        seed: rng.next_u64(),
        writers: 1 + rng.below(4) as u32,
        slots: SLOTS,
        synced_percent: [0, 2, 20][rng.below(3) as usize],
        deleted_percent: rng.below(20),
    };
    History::new(rng, shape, volume.path().join("db"), ledgers)
}

impl Filled<'_> {
    /// Runs one filling, from a file system with room to a full one, and back.
    fn live(&mut self, figures: &mut Figures) -> Result<(), String> {
        let setup = Setup::draw(&mut self.history.rng, &self.plan.preset);
        self.steps(&setup, figures).map_err(|why| format!("{why}\nunder {:?}", setup.settings))
    }

    fn steps(&mut self, setup: &Setup, figures: &mut Figures) -> Result<(), String> {
        let ballast = self.take_ballast()?;
        let told = self.fill(setup)?;
        let everything = Survives::Everything;
        let tally = self.history.judged(setup, true, Some(&told), everything)?.1;
        figures.tally.add(tally);
        figures.fillings += 1;
        // Every byte is taken.
        let filler = self.take_everything()?;
        self.history.judged(setup, true, None, everything)?;
        let reserved = self.history.dir.join("RESERVE").exists();
        match self.try_writing(setup)? {
            Some(db) => {
                figures.reopened_full += 1;
                let deleted = self.delete_all(&db)?;
                if reserved && !deleted {
                    return Err("the reserve was given up, and a delete found no room".into());
                }
                figures.deleted_full += u64::from(deleted);
                drop(db);
            }
            None if reserved => {
                return Err("there was a reserve, and the open was refused for want of room".into());
            }
            None => figures.refused_full += 1,
        }
        self.history.judged(setup, true, None, everything)?;
        for taken in [filler, ballast] {
            std::fs::remove_file(&taken).map_err(|e| format!("{}: {e}", taken.display()))?;
        }
        let (db, _) = self.history.judged(setup, false, None, everything)?;
        verify(&db)?;
        if !self.delete_all(&db)? {
            return Err("there is room, and a delete finds none".into());
        }
        db.compact().and_then(|()| db.close()).map_err(|e| format!("with room again: {e}"))?;
        self.write_some(setup)
    }

    fn free_bytes(&self) -> Result<u64, String> {
        let stat = statvfs(self.volume.path()).map_err(|e| e.to_string())?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    /// Leaves at most [`ROOM_BYTES`], less a drawn part.
    fn take_ballast(&mut self) -> Result<PathBuf, String> {
        let path = self.volume.path().join("ballast");
        let drawn = RELIEF_BYTES_MIN + self.history.rng.below(4 << 20);
        let bytes = self.free_bytes()?.saturating_sub(ROOM_BYTES) + drawn;
        // A full file system may have no room for a new name.
        File::create(path.with_file_name("filler")).map_err(|e| e.to_string())?;
        let file = File::create(&path).map_err(|e| e.to_string())?;
        fallocate(&file, FallocateFlags::empty(), 0, bytes).map_err(|e| format!("ballast: {e}"))?;
        Ok(path)
    }

    /// Writes until nothing fits any more.
    fn take_everything(&self) -> Result<PathBuf, String> {
        let path = self.volume.path().join("filler");
        let mut file = File::options().write(true).open(&path).map_err(|e| e.to_string())?;
        let mut step = 1 << 20;
        while step > 0 {
            match file.write(&vec![0x5a; step]).and_then(|n| file.sync_data().map(|()| n)) {
                Ok(n) if n > 0 => {}
                _ => step /= 2,
            }
        }
        Ok(path)
    }

    /// Lets the database write until it is refused, for lack of room alone.
    fn fill(&mut self, setup: &Setup) -> Result<Told, String> {
        let task = Task { reads_go_on: true, ..self.history.task(setup) };
        let (worker, ledger) = Worker::start(&task, None)?;
        match worker.wait(FILL_MOST)? {
            End::Refused(said) if said.to_lowercase().contains("no space left") => {}
            end => return Err(format!("filling the file system ended otherwise: {end:?}")),
        }
        self.history.acks(&ledger)
    }

    /// Opens for writing without free room: that may be refused, cleanly.
    fn try_writing(&mut self, setup: &Setup) -> Result<Option<Db>, String> {
        match Db::open_with(&self.history.dir, setup.options()?) {
            Ok(db) => {
                judge(&db, &mut self.history.expected, None, Survives::Everything)?;
                Ok(Some(db))
            }
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(None),
            Err(error) => Err(format!("opening on a full file system: {error}")),
        }
    }

    /// Deletes all but each writer's number. Returns `false` if there is no room for that.
    fn delete_all(&mut self, db: &Db) -> Result<bool, String> {
        let mut batch = Batch::new();
        for name in KEYSPACES {
            let Some(keyspace) = db.open_keyspace(name).map_err(|e| e.to_string())? else {
                continue;
            };
            for writer in 0..self.history.expected.shape.writers {
                batch.delete_range(&keyspace, key(writer, 1), key(writer, SLOTS * 2));
            }
        }
        match db.write(batch, WriteSync::Yes) {
            Ok(_) => {
                let expected = &mut self.history.expected;
                for content in &mut expected.content {
                    content.retain(|(_, slot), _| *slot == 0);
                }
                judge(db, expected, None, Survives::Everything).map(|_| true)
            }
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(false),
            Err(error) => Err(format!("deleting: {error}")),
        }
    }

    /// Lets a new process write as usual.
    fn write_some(&mut self, setup: &Setup) -> Result<(), String> {
        let task = Task { batches: 50, ..self.history.task(setup) };
        let (worker, ledger) = Worker::start(&task, None)?;
        match worker.wait(FILL_MOST)? {
            End::Done => {}
            end => return Err(format!("with room again, writing ended: {end:?}")),
        }
        let told = self.history.acks(&ledger)?;
        self.history.judged(setup, true, Some(&told), Survives::Everything).map(|_| ())
    }
}
