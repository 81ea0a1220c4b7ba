//! A database, the workers that write to it one after the other, and what it must then hold.
//!
//! Owns: which worker is next, and the contents that are expected. Never does: end a worker, or set
//! limits.

use super::judge::{Survives, Tally, Told, judge};
use super::ledger::Ledger;
use super::setup::Setup;
use super::worker::Task;
use super::workload::{Expected, Shape};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::{Db, ErrorKind, Options};
use windrow_env::testing::Rng;

/// The longest time that a killed process may take to die: minutes on a busy machine.
pub(super) const DYING_MOST: Duration = Duration::from_secs(600);

/// A database and its history.
pub(super) struct History {
    /// Where all choices come from.
    pub(super) rng: Rng,
    /// The directory of the database.
    pub(super) dir: PathBuf,
    ledger: PathBuf,
    /// The contents after the last judgement.
    pub(super) expected: Expected,
    /// Number of the last worker.
    pub(super) session: u64,
}

impl History {
    /// Begins the history of a database that is not there yet. The ledger is in a directory that is.
    pub(super) fn new(rng: Rng, shape: Shape, dir: PathBuf, ledgers: &Path) -> History {
        let (ledger, expected) = (ledgers.join("ledger"), Expected::new(shape));
        History { rng, dir, ledger, expected, session: 0 }
    }

    /// Returns the task of the next worker under these settings: it writes until it is killed.
    pub(super) fn task(&mut self, setup: &Setup) -> Task {
        self.session += 1;
        let numbers = self.expected.numbers.clone();
        let (dir, ledger) = (self.dir.clone(), self.ledger.clone());
        Task::new(self.expected.shape, dir, ledger, (self.session, numbers), setup)
    }

    /// Returns the acknowledgements of the last worker.
    pub(super) fn acks(&self, ledger: &Ledger) -> Result<Told, String> {
        let acks = ledger.all(self.expected.shape.writers).map_err(|e| e.to_string())?;
        Ok(Told { session: self.session, before: acks.clone(), after: acks })
    }

    /// Opens the database and judges it.
    pub(super) fn judged(
        &mut self,
        setup: &Setup,
        read_only: bool,
        told: Option<&Told>,
        survives: Survives,
    ) -> Result<(Db, Tally), String> {
        let mut options = setup.options()?;
        options.read_only = read_only;
        let db = open_patiently(&self.dir, &options)?;
        let tally = judge(&db, &mut self.expected, told, survives)?;
        Ok((db, tally))
    }

    /// Opens, judges, closes. Returns the number of acknowledged batches.
    pub(super) fn checked(
        &mut self,
        setup: &Setup,
        read_only: bool,
        told: Option<&Told>,
    ) -> Result<u64, String> {
        let (db, tally) = self.judged(setup, read_only, told, Survives::Everything)?;
        close(&db)?;
        Ok(tally.acknowledged)
    }
}

/// Reads all of a database, and checks every byte.
pub(super) fn verify(db: &Db) -> Result<(), String> {
    db.verify().and_then(|report| report.into_result()).map_err(|e| format!("verify: {e}"))?;
    Ok(())
}

/// Closes a database.
pub(super) fn close(db: &Db) -> Result<(), String> {
    db.close().map_err(|e| format!("close: {e}"))
}

/// Opens a database whose last owner may still be dying: a traced process outlives its tracer by a
/// moment.
pub(super) fn open_patiently(dir: &Path, options: &Options) -> Result<Db, String> {
    let until = Instant::now() + DYING_MOST;
    loop {
        match Db::open_with(dir, options.clone()) {
            Err(e) if e.kind() == ErrorKind::Busy && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            opened => return opened.map_err(|e| format!("open: {e}")),
        }
    }
}
