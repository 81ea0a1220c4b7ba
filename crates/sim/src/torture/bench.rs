//! A database for one part of `torture limits`, and its workers.
//!
//! Owns: which worker is next, and the contents that it must find. Never does: set limits.

use super::child::{End, Spec, Worker};
use super::judge::{Survives, Told, judge};
use super::kill::open_patiently;
use super::ledger::Ledger;
use super::setup::Setup;
use super::workload::{Expected, Shape};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windrow_env::testing::Rng;

/// A database of its own for each part.
pub(super) struct Bench {
    pub(super) dir: PathBuf,
    pub(super) ledger: PathBuf,
    pub(super) expected: Expected,
    pub(super) rng: Rng,
    pub(super) session: u64,
}

impl Bench {
    /// Makes one in a new directory.
    pub(super) fn new(dir: &Path, seed: u64) -> std::io::Result<Bench> {
        std::fs::create_dir_all(dir)?;
        let shape =
            Shape { seed, writers: 3, slots: 2_000, synced_percent: 2, deleted_percent: 10 };
        Ok(Bench {
            dir: dir.join("db"),
            ledger: dir.join("ledger"),
            expected: Expected::new(shape),
            rng: Rng::new(seed),
            session: 0,
        })
    }

    /// Starts the next worker.
    pub(super) fn start(
        &mut self,
        setup: &Setup,
        more: Vec<String>,
    ) -> Result<(Worker, Ledger), String> {
        self.session += 1;
        Spec {
            dir: &self.dir,
            ledger: &self.ledger,
            session: self.session,
            expected: &self.expected,
            setup,
            more,
            strace: None,
        }
        .start()
    }

    /// Returns the promises to the last worker.
    pub(super) fn told(&self, ledger: &Ledger) -> Result<Told, String> {
        let acks = ledger.all(self.expected.shape.writers).map_err(|e| e.to_string())?;
        Ok(Told { session: self.session, before: acks.clone(), after: acks })
    }

    /// Opens `dir`, judges, closes. Returns the number of acknowledged batches.
    pub(super) fn judged(
        &mut self,
        dir: &Path,
        setup: &Setup,
        read_only: bool,
        told: Option<&Told>,
    ) -> Result<u64, String> {
        let mut options = setup.options()?;
        options.read_only = read_only;
        let db = open_patiently(dir, &options)?;
        let tally = judge(&db, &mut self.expected, told, Survives::Everything)?;
        db.close().map_err(|e| format!("close: {e}"))?;
        Ok(tally.acknowledged)
    }

    /// Lets a worker write for a while and kills it: logs are left behind.
    pub(super) fn leave_logs(&mut self, setup: &Setup) -> Result<Told, String> {
        let (mut worker, ledger) = self.start(setup, vec!["--pause-us".into(), "500".into()])?;
        while !ledger.is_opened() && !worker.run_for(Duration::from_millis(1))? {}
        worker.run_for(Duration::from_millis(5 + self.rng.below(40)))?;
        match worker.kill()? {
            End::Killed => self.told(&ledger),
            end => Err(format!("the worker ended by itself: {end:?}")),
        }
    }
}
