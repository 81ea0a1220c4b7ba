//! One run of a workload on a simulated machine, and the check after it: the database opens, has
//! the right contents, and works.
//!
//! Owns: running the steps, restarts, and the check of the result. Never does: choose where it
//! crashes or fails (`faults.rs`, `exhaustive.rs` do).

use crate::features::Deed;
use crate::judge::{Allowed, Judge};
use crate::targets::Targets;
use std::sync::Arc;
use windrow::Options;
use windrow_base::ErrorKind;
use windrow_env::Jobs;
use windrow_env::testing::{CrashFs, Handles, PowerLoss, SeededRandom, env};
use windrow_testkit::op::Op;
use windrow_testkit::oracle::compare;
use windrow_testkit::subject::Database;
use windrow_testkit::text;
use windrow_testkit::variant;
use windrow_testkit::world::{DIR, World};

/// The death of a machine or process.
#[derive(Clone, Copy, Debug)]
pub enum Death {
    /// The process is killed; the seed draws the part of its buffers that is lost.
    Killed(u64),
    /// The power is cut; the lost data is drawn, or chosen.
    PowerCut(PowerLoss),
}

/// Returns a copy of the files in a world of its own.
pub(crate) fn forked(handles: &Handles, seed: u64) -> Handles {
    let random = Arc::new(SeededRandom::new(seed));
    Handles { fs: handles.fs.fork(), random, ..handles.reborn(seed) }
}

impl Death {
    /// Returns the world after it.
    pub(crate) fn after(self, handles: &Handles) -> Handles {
        // File uids must differ from those of the session before.
        let next = forked(handles, self.seed() ^ 1 << 40);
        match self {
            Death::Killed(seed) => next.fs.kill(seed),
            Death::PowerCut(loss) => next.fs.crash_with(loss),
        }
        next
    }

    /// Returns the seed of its draws.
    pub fn seed(&self) -> u64 {
        match self {
            Death::Killed(seed) => *seed,
            Death::PowerCut(loss) => loss.seed,
        }
    }
}

/// A database, the machine it is on, and its history.
#[derive(Clone)]
pub struct Trial {
    handles: Handles,
    settings: Vec<(String, String)>,
    judge: Judge,
    targets: Targets,
}

impl Trial {
    /// Makes an empty machine; the database will have these settings.
    pub fn new(settings: &[(&str, &str)]) -> Trial {
        let (_, handles) = env(1);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Trial {
            judge: Judge::new(&handles),
            handles,
            settings: settings.iter().map(owned).collect(),
            targets: Targets::default(),
        }
    }

    /// Returns its files.
    pub fn fs(&self) -> &CrashFs {
        &self.handles.fs
    }

    /// From now on operations may fail in the ways of a failing device.
    pub fn expect_failures(&mut self) {
        self.judge.allowed.device = true;
    }

    fn world(&self) -> World {
        World::of(self.handles.env(), self.handles.clone())
    }

    fn options(&self) -> Result<Options, String> {
        let settings = self.settings.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        variant::options_of(settings).map_err(|e| e.to_string())
    }

    /// Opens the database and judges its contents; `None` if it did not open for an excused reason.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn open(&mut self) -> Result<Option<Database>, String> {
        match Database::open(self.world(), self.options()?) {
            Ok(database) => {
                self.judge.recovered(database.db())?;
                Ok(Some(database))
            }
            Err(error) if self.judge.excuses(error.kind()) => Ok(None),
            Err(error) => Err(format!("open: {error}")),
        }
    }

    /// Runs a workload, whatever fails, until it is done or dead.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn run(&mut self, deeds: &[Deed]) -> Result<(), String> {
        let Some(mut database) = self.open()? else { return Ok(()) };
        for deed in deeds {
            let left_open = match deed {
                Deed::Op(op) => {
                    self.judge.step(&mut database, op)?;
                    Some(database)
                }
                Deed::Checkpoint => {
                    let (world, options) = (self.world(), self.options()?);
                    self.targets.make(database.db(), &mut self.judge, &world, &options)?;
                    Some(database)
                }
                Deed::Reopen(settings) => {
                    self.settings.extend(settings.iter().cloned());
                    self.close(database)?;
                    self.open()?
                }
                Deed::Resume => {
                    self.resume(&database)?;
                    Some(database)
                }
                Deed::Repair => {
                    self.close(database)?;
                    self.repair()?;
                    self.open()?
                }
            };
            let Some(next) = left_open.filter(|_| !self.fs().is_dead()) else { return Ok(()) };
            database = next;
            self.handles.jobs.step();
        }
        self.close(database)
    }

    /// Turns writing on again, if it went off; a failing device may go on failing.
    fn resume(&mut self, database: &Database) -> Result<(), String> {
        let was_off = database.db().write_error().is_some();
        if self.fs().is_dead() {
            return Ok(());
        }
        match database.db().resume() {
            Ok(()) if !was_off => Ok(()),
            resumed => self.judge.resumed(database.db(), resumed).map(drop),
        }
    }

    /// Closes the database; an error must be an excused one.
    fn close(&mut self, database: Database) -> Result<(), String> {
        let closed = database.db().close();
        drop(database);
        self.handles.jobs.discard();
        self.judge.closed(closed)
    }

    /// Repairs a whole database: nothing may be found wrong.
    fn repair(&mut self) -> Result<(), String> {
        let mut options = self.options()?;
        options.components.env = Some(self.handles.env());
        match windrow::repair(DIR, options) {
            Ok(report) if report.problems.is_empty() => Ok(()),
            Ok(report) if self.judge.allowed == Allowed::default() => {
                Err(format!("repair of a whole database: {report:?}"))
            }
            Ok(_) => Ok(()),
            // Before there was a database, or after an open that failed.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(()),
            Err(error) if self.judge.excuses(error.kind()) => Ok(()),
            Err(error) => Err(format!("repair: {error}")),
        }
    }

    /// Returns a trial on a copy of the files after a death. The copy has no faults.
    #[must_use]
    pub fn forked(&self, death: Death) -> Trial {
        let fs = self.handles.fs.fork();
        fs.clear_faults();
        let seed = death.seed();
        match death {
            Death::Killed(seed) => fs.kill(seed),
            Death::PowerCut(loss) => fs.crash_with(loss),
        }
        let handles = Handles { fs, ..self.handles.reborn(seed) };
        let mut judge = self.judge.forked(&handles);
        judge.kept &= matches!(death, Death::Killed(_));
        Trial { handles, judge, ..self.clone() }
    }

    /// Returns a trial on a copy of the files.
    #[must_use]
    pub fn copied(&self) -> Trial {
        let handles = Handles { fs: self.handles.fs.fork(), ..self.handles.reborn(1) };
        Trial { judge: self.judge.forked(&handles), handles, ..self.clone() }
    }

    /// Opens the database and uses it; nothing may fail.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn reopen(&mut self) -> Result<(), String> {
        let Some(mut database) = self.open()? else { return Err("did not open".to_owned()) };
        let (world, options) = (self.world(), self.options()?);
        self.targets.check(&mut self.judge, &world, &options)?;
        for line in text::parse("put z after sync\ncompact\nverify")? {
            self.judge.step(&mut database, &line.op)?;
        }
        self.judge.tell_time(database.db())?;
        compare(database.db(), self.judge.model())
    }

    /// Opens the database, and writes one key.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn glance(&mut self) -> Result<(), String> {
        let Some(mut database) = self.open()? else { return Err("did not open".to_owned()) };
        let (world, options) = (self.world(), self.options()?);
        self.targets.check(&mut self.judge, &world, &options)?;
        let put = text::parse("put z after sync")?;
        let ops: Vec<Op> = put.into_iter().map(|line| line.op).collect();
        ops.iter().try_for_each(|op| self.judge.step(&mut database, op))
    }

    /// Checks the database once the fault is gone: after the death of the process as well as after
    /// a power loss it is sound, and stays sound through one more power loss.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn aftermath(&self) -> Result<(), String> {
        let cut = |seed| Death::PowerCut(PowerLoss { seed, ..PowerLoss::default() });
        for (what, death) in [("a restart", Death::Killed(0)), ("a power loss", cut(1))] {
            let mut next = self.forked(death);
            next.reopen().map_err(|e| format!("after {what}: {e}"))?;
            // All contents that were shown are durable by now: a power loss changes nothing.
            let mut last = next.forked(cut(10));
            last.reopen().map_err(|e| format!("after {what} and a power loss: {e}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::FEATURES;
    use std::sync::atomic::{AtomicU64, Ordering};
    use windrow::Event;

    /// The workload would show nothing of these merges if its flushes all went down.
    #[test]
    fn small_flushes_are_merged_within_level_0() {
        let feature = FEATURES.iter().find(|feature| feature.name == "small_flushes").unwrap();
        let mut trial = Trial::new(&[]);
        let merges = Arc::new(AtomicU64::new(0));
        let mut options = trial.options().unwrap();
        let counted = merges.clone();
        options.components.listener = Some(Arc::new(move |event: &Event| {
            let is_within =
                |reason: &str| reason.contains("of level 0") && reason.contains("become one");
            if matches!(event, Event::MergeBegin { reason, .. } if is_within(reason)) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }));
        let mut database = Database::open(trial.world(), options).unwrap();
        trial.judge.recovered(database.db()).unwrap();
        for deed in feature.deeds().unwrap() {
            if let Deed::Op(op) = deed {
                trial.judge.step(&mut database, &op).unwrap();
                trial.handles.jobs.step();
            }
        }
        let merges = merges.load(Ordering::Relaxed);
        assert!(3 <= merges, "{merges}");
    }
}
