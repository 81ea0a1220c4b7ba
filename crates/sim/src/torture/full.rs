//! `torture full`: the database fills a small file system until nothing fits, a stranger fills it
//! up to the last byte, and room is made again.
//!
//! On the full file system the database must end with a clean error, keep everything acknowledged,
//! and be readable; given room, it must go on. Owns: the allocation and release of room. Never
//! does: judge the contents of the database.

use super::child::{End, Spec};
use super::judge::{Survives, Tally, Told, judge};
use super::kill::open_patiently;
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::stop;
use super::volume::{self, Volume};
use super::workload::{Expected, KEYSPACES, Shape, key};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
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
struct History<'a> {
    plan: &'a Plan,
    rng: Rng,
    volume: &'a mut Volume,
    ledger: PathBuf,
    expected: Expected,
    session: u64,
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
        let mut history = History::new(plan, seed, &mut volume, ledgers.path().join("ledger"));
        for _ in 0..SESSIONS.min(plan.rounds - figures.fillings) {
            if let Err(why) = history.live(&mut figures) {
                let why = format!("seed {seed}, session {}: {why}", history.session);
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

impl<'a> History<'a> {
    fn new(plan: &'a Plan, seed: u64, volume: &'a mut Volume, ledger: PathBuf) -> History<'a> {
        let mut rng = Rng::new(seed);
        let shape = Shape {
            seed: rng.next_u64(),
            writers: 1 + rng.below(4) as u32,
            slots: SLOTS,
            synced_percent: [0, 2, 20][rng.below(3) as usize],
            deleted_percent: rng.below(20),
        };
        History { plan, rng, volume, ledger, expected: Expected::new(shape), session: 0 }
    }

    /// Runs one filling, from a file system with room to a full one, and back.
    fn live(&mut self, figures: &mut Figures) -> Result<(), String> {
        let setup = Setup::draw(&mut self.rng, &self.plan.preset);
        self.steps(&setup, figures).map_err(|why| format!("{why}\nunder {:?}", setup.settings))
    }

    fn steps(&mut self, setup: &Setup, figures: &mut Figures) -> Result<(), String> {
        let ballast = self.take_ballast()?;
        let told = self.fill(setup)?;
        let tally = self.judged(setup, true, Some(&told))?.1;
        figures.tally.add(tally);
        figures.fillings += 1;
        // Every byte is taken.
        let filler = self.take_everything()?;
        self.judged(setup, true, None)?;
        let reserved = self.database().join("RESERVE").exists();
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
        self.judged(setup, true, None)?;
        for taken in [filler, ballast] {
            std::fs::remove_file(&taken).map_err(|e| format!("{}: {e}", taken.display()))?;
        }
        let (db, _) = self.judged(setup, false, None)?;
        db.verify().and_then(|r| r.into_result()).map_err(|e| format!("verify: {e}"))?;
        if !self.delete_all(&db)? {
            return Err("there is room, and a delete finds none".into());
        }
        db.compact().and_then(|()| db.close()).map_err(|e| format!("with room again: {e}"))?;
        self.write_some(setup)
    }

    fn database(&self) -> PathBuf {
        self.volume.path().join("db")
    }

    fn free_bytes(&self) -> Result<u64, String> {
        let stat = statvfs(self.volume.path()).map_err(|e| e.to_string())?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    /// Leaves at most [`ROOM_BYTES`], less a drawn part.
    fn take_ballast(&mut self) -> Result<PathBuf, String> {
        let path = self.volume.path().join("ballast");
        let drawn = RELIEF_BYTES_MIN + self.rng.below(4 << 20);
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
        self.session += 1;
        let spec = Spec {
            dir: &self.database(),
            ledger: &self.ledger,
            session: self.session,
            expected: &self.expected,
            setup,
            more: vec!["--reads-go-on".into()],
            strace: None,
        };
        let (worker, ledger) = spec.start()?;
        match worker.wait(FILL_MOST)? {
            End::Refused(said) if said.to_lowercase().contains("no space left") => {}
            end => return Err(format!("filling the file system ended otherwise: {end:?}")),
        }
        let acks = ledger.all(self.expected.shape.writers).map_err(|e| e.to_string())?;
        Ok(Told { session: self.session, before: acks.clone(), after: acks })
    }

    /// Opens and judges.
    fn judged(
        &mut self,
        setup: &Setup,
        read_only: bool,
        told: Option<&Told>,
    ) -> Result<(Db, Tally), String> {
        let mut options = setup.options()?;
        options.read_only = read_only;
        let db = open_patiently(&self.database(), &options)?;
        let tally = judge(&db, &mut self.expected, told, Survives::Everything)?;
        Ok((db, tally))
    }

    /// Opens for writing without free room: that may be refused, cleanly.
    fn try_writing(&mut self, setup: &Setup) -> Result<Option<Db>, String> {
        match Db::open_with(self.database(), setup.options()?) {
            Ok(db) => {
                judge(&db, &mut self.expected, None, Survives::Everything)?;
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
            for writer in 0..self.expected.shape.writers {
                batch.delete_range(&keyspace, key(writer, 1), key(writer, SLOTS * 2));
            }
        }
        match db.write(batch, WriteSync::Yes) {
            Ok(_) => {
                for content in &mut self.expected.content {
                    content.retain(|(_, slot), _| *slot == 0);
                }
                judge(db, &mut self.expected, None, Survives::Everything).map(|_| true)
            }
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(false),
            Err(error) => Err(format!("deleting: {error}")),
        }
    }

    /// Lets a new process write as usual.
    fn write_some(&mut self, setup: &Setup) -> Result<(), String> {
        self.session += 1;
        let spec = Spec {
            dir: &self.database(),
            ledger: &self.ledger,
            session: self.session,
            expected: &self.expected,
            setup,
            more: vec!["--batches".into(), "50".into()],
            strace: None,
        };
        let (worker, ledger) = spec.start()?;
        match worker.wait(FILL_MOST)? {
            End::Done => {}
            end => return Err(format!("with room again, writing ended: {end:?}")),
        }
        let acks = ledger.all(self.expected.shape.writers).map_err(|e| e.to_string())?;
        let told = Told { session: self.session, before: acks.clone(), after: acks };
        self.judged(setup, true, Some(&told)).map(|_| ())
    }
}
