//! The arguments of a run, and its outcome.
//!
//! Owns: the arguments that all runs share. Never does: run.

use super::stop;
use super::volume;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The arguments that runs share: number of rounds, seed, preset, places.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// How many kills, cuts, fillings; for `limits`, of each of its parts.
    #[arg(long, default_value_t = 200)]
    pub rounds: u64,
    /// Where all choices come from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A preset, or `all` for another one in each session of a database.
    #[arg(long, default_value = "all")]
    pub preset: String,
    /// Where databases and images are kept while it runs; a failure stays there.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// The file system of `cut` and `full`.
    #[arg(long, value_enum, default_value_t = volume::Kind::Ext4)]
    pub fs: volume::Kind,
    /// How long `limits` keeps up the load that is short of memory.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// The case of `memory`; without it all are run.
    #[arg(long)]
    pub case: Option<String>,
    /// `memory_bytes` of the databases of `memory`, in MiB.
    #[arg(long, default_value_t = 64)]
    pub budget_mib: u64,
    /// How much of each case of `memory` is done, in thousandths.
    #[arg(long, default_value_t = 1000)]
    pub permille: u64,
    /// Damages the log after each kill, or what a scenario left: `kill` and
    /// `surroundings` must then fail.
    #[arg(long, hide = true)]
    pub sabotage: bool,
}

/// A finding, and the place of its files.
#[derive(Debug)]
pub struct Failure {
    /// The finding, in words.
    pub why: String,
    /// The seed under which the options and operations repeat.
    pub seed: u64,
    /// A directory that was kept.
    pub kept: Option<PathBuf>,
}

impl Plan {
    /// Makes a directory for the run, removed at the end unless it is kept; in `otherwise` if the
    /// plan has none.
    ///
    /// # Errors
    /// If none can be made.
    pub fn scratch(&self, otherwise: PathBuf) -> Result<tempfile::TempDir, Failure> {
        scratch(self.dir.clone().unwrap_or(otherwise), self.seed)
    }

    /// Returns a failure without files.
    pub fn failure(&self, seed: u64, why: impl Into<String>) -> Failure {
        Failure { why: why.into(), seed, kept: None }
    }
}

/// Makes a directory in `parent`, which is made if necessary; removed at the end unless it is kept.
pub(super) fn scratch(parent: PathBuf, seed: u64) -> Result<tempfile::TempDir, Failure> {
    std::fs::create_dir_all(&parent)
        .and_then(|()| tempfile::Builder::new().prefix("torture-").tempdir_in(&parent))
        .map_err(|e| Failure { why: format!("{}: {e}", parent.display()), seed, kept: None })
}

/// Runs directories one after the other, each by the next seed, until the run is over. The figures are
/// reported every 20 s.
///
/// # Errors
/// The failure of a directory, which is kept.
pub(super) fn one_by_one<F>(
    (parent, first): (PathBuf, u64),
    figures: &mut F,
    (is_over, line): (impl Fn(&F) -> bool, impl Fn(&F) -> String),
    mut live: impl FnMut(&Path, u64, &mut F) -> Result<(), String>,
) -> Result<(), Failure> {
    let scratch = scratch(parent, first)?;
    let (mut seed, mut said) = (first, Instant::now());
    while !is_over(figures) && !stop::requested() {
        let dir = scratch.path().join(format!("seed-{seed}"));
        let made = std::fs::create_dir_all(&dir).map_err(|error| error.to_string());
        if let Err(why) = made.and_then(|()| live(&dir, seed, figures)) {
            let _ = scratch.keep();
            return Err(Failure { why: format!("seed {seed}, {why}"), seed, kept: Some(dir) });
        }
        let _ = std::fs::remove_dir_all(&dir);
        seed += 1;
        if said.elapsed() > Duration::from_secs(20) {
            said = Instant::now();
            eprintln!("{}", line(figures));
        }
    }
    Ok(())
}

/// The outcome of a run.
#[derive(Debug)]
pub enum Outcome {
    /// Everything passed; the figures in a line.
    Passed(String),
    /// It cannot be run here, and why.
    Skipped(String),
}
