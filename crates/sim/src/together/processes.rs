//! All acts at once in a process on the real system that is killed, next to processes that follow
//! it and copy the contents that they read: again and again over the same directory.
//!
//! Owns: the processes. Never does: decide whether a state is right (`mod.rs`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is about the real system: its processes, files and clock"
)]

use super::acts::{ACTS, Kind, backed_up};
use super::stage::{Excuses, Ground, Stage, judge, shown, verify_backups};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windrow::backup::BackupOptions;
use windrow::{Db, Follower, Options};
use windrow_base::Result;
use windrow_env::Env;
use windrow_env::testing::Rng;
use windrow_testkit::ledger::{Counts, Ledger, within};
use windrow_testkit::variant::POLICIES;

/// Bytes of a value.
const VALUE_BYTES: usize = 1 << 10;
/// The delay of a kill after the start is drawn between these, evenly on a logarithmic scale.
const DELAY_MS: (f64, f64) = (5.0, 1_500.0);

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct Rounds {
    /// The number of kills.
    #[arg(long, default_value_t = 20)]
    pub kills: u64,
    /// The most seconds that it takes.
    #[arg(long, default_value_t = u64::MAX)]
    pub seconds: u64,
    /// Processes that follow and copy.
    #[arg(long, default_value_t = 2)]
    pub followers: u64,
    /// The seed of all choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The directory of the database while it runs; a failure stays there.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// The task of a process of the run.
#[derive(Args, Clone, Debug)]
pub struct Task {
    /// The directory of database, ledger and copies.
    #[arg(long)]
    pub dir: PathBuf,
    /// The seed of its choices.
    #[arg(long)]
    pub seed: u64,
    /// It follows instead of writing.
    #[arg(long)]
    pub follows: bool,
}

/// The directory of a run.
struct Yard {
    dir: PathBuf,
    rng: Mutex<Rng>,
    copies: AtomicU64,
}

impl Yard {
    fn new(dir: &Path, seed: u64) -> Yard {
        let rng = Mutex::new(Rng::new(seed));
        Yard { dir: dir.to_owned(), rng, copies: AtomicU64::new(0) }
    }

    fn db(&self) -> PathBuf {
        self.dir.join("db")
    }

    fn ledger(&self) -> std::io::Result<Arc<Ledger>> {
        Ledger::open(&self.dir.join("ledger"), ACTS.len(), VALUE_BYTES).map(Arc::new)
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        let preset = POLICIES[self.draw(POLICIES.len() as u64) as usize];
        let settings = [
            ("preset", preset),
            ("memory_bytes", "8MiB"),
            ("memtable_bytes", "64KiB"),
            ("file_bytes", "64KiB"),
            ("manifest_bytes", "4KiB"),
        ];
        settings
            .iter()
            .for_each(|(name, value)| options.settings.set(name, value).expect("a setting"));
        options
    }

    fn open(&self) -> Result<Db> {
        Db::open_with(self.db(), self.options())
    }
}

impl Ground for Yard {
    fn draw(&self, bound: u64) -> u64 {
        self.rng.lock().expect("no thread panicked").below(bound)
    }

    fn pause(&self) {
        std::thread::yield_now();
    }

    fn follow(&self) -> Result<Follower> {
        Follower::open_with(self.db(), self.options())
    }

    fn copy_path(&self, author: usize) -> String {
        let number = self.copies.fetch_add(1, Ordering::Relaxed);
        let name = format!("copy-{}-{author}-{number}", std::process::id());
        self.dir.join(name).display().to_string()
    }

    fn with_copy(&self, dir: &str, look: &mut dyn FnMut(&Db) -> Result<Counts>) -> Result<Counts> {
        let copy = Db::open_with(dir, self.options()).unwrap_or_else(|e| panic!("{dir}: {e}"));
        let sound = copy.verify().and_then(|report| report.into_result());
        sound.unwrap_or_else(|error| panic!("{dir}: {error}"));
        let seen = look(&copy)?;
        copy.close().unwrap_or_else(|error| panic!("{dir}: {error}"));
        let _ = std::fs::remove_dir_all(dir);
        Ok(seen)
    }

    fn env(&self) -> Env {
        Env::os(1)
    }

    fn backups_path(&self) -> PathBuf {
        self.dir.join("backups")
    }

    fn break_device(&self) -> Box<dyn Send> {
        Box::new(())
    }
}

/// A process of the run. Dropping it kills it.
struct Process {
    child: Child,
    name: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(task: &Task, name: String) -> std::result::Result<Process, String> {
        let failed = |error: std::io::Error| format!("start {name}: {error}");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("together-actor").arg("--dir").arg(&task.dir);
        command.arg("--seed").arg(task.seed.to_string());
        if task.follows {
            command.arg("--follows");
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(failed)?;
        Ok(Process { child, name })
    }

    /// Checks that it has not ended by itself: a process that finds a fault does.
    fn check(&mut self) -> std::result::Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            ended => Err(format!("{} ended: {ended:?}", self.name)),
        }
    }
}

/// Runs the rounds. Returns the number of kills, and of acknowledged writes.
///
/// # Errors
/// The write that was lost, or the fault.
pub fn run(plan: &Rounds, dir: &Path) -> std::result::Result<(u64, u64), String> {
    let (begin, yard) = (Instant::now(), Yard::new(dir, plan.seed));
    let ledger = yard.ledger().map_err(|error| error.to_string())?;
    let task = |follows| Task { dir: dir.to_owned(), seed: yard.draw(u64::MAX), follows };
    let mut followers: Vec<Process> = Vec::new();
    let mut kills = 0;
    while kills < plan.kills && begin.elapsed().as_secs() < plan.seconds {
        let mut writer = Process::start(&task(false), "the writer".into())?;
        let (lo, hi) = (DELAY_MS.0.ln(), DELAY_MS.1.ln());
        let at = lo + (hi - lo) * (yard.draw(1 << 20) as f64 / f64::from(1 << 20));
        std::thread::sleep(Duration::from_secs_f64(at.exp() / 1e3));
        writer.check()?;
        drop(writer);
        kills += 1;
        clear_copies(dir);
        let (least, most) = (ledger.acknowledged(), ledger.attempted());
        let judged = || judge("after a kill", &|| yard.open(), &ledger, (&least, &most));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(judged))
            .map_err(|_| format!("kill {kills}: see above"))?;
        // The backups are still whole: a kill loses nothing that was written.
        let restored = || judge_backups(&yard, &ledger, &most);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(restored))
            .map_err(|_| format!("backups after kill {kills}: see above"))?;
        // One of them is a new process each time.
        followers.truncate(plan.followers.saturating_sub(1) as usize);
        while (followers.len() as u64) < plan.followers {
            followers.push(Process::start(&task(true), format!("follower {kills}"))?);
        }
        followers.iter_mut().try_for_each(Process::check)?;
    }
    Ok((kills, ledger.acknowledged().iter().sum()))
}

/// Reads all backups, and restores the newest: it shows no more than was written.
fn judge_backups(yard: &Yard, ledger: &Ledger, most: &Counts) {
    let (env, copy) = (yard.env(), yard.copy_path(0));
    let Some((backups, newest)) = verify_backups(&env, &yard.backups_path()) else { return };
    let restored =
        windrow::backup::restore_backup_in(&env, &backups, Some(newest), Path::new(&copy));
    restored.unwrap_or_else(|error| panic!("restore backup {newest}: {error}"));
    let seen = yard.with_copy(&copy, &mut |copy| shown(copy, ledger));
    let seen = seen.unwrap_or_else(|error| panic!("backup {newest}: {error}"));
    within("a backup", &vec![0; seen.len()], &seen, most);
}

/// Removes the copies of a process that was killed.
fn clear_copies(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let alive = name.split('-').nth(1).map(|pid| Path::new("/proc").join(pid).exists());
        if name.starts_with("copy-") && alive == Some(false) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs the acts, or follows, until it is killed; ends at the first lost write or fault.
pub fn act(task: &Task) {
    // Otherwise the other threads would go on.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        std::process::exit(1);
    }));
    let yard = Arc::new(Yard::new(&task.dir, task.seed));
    let ledger = yard.ledger().expect("the ledger");
    if task.follows {
        return follow(&yard, &ledger);
    }
    let db = yard.open().unwrap_or_else(|error| panic!("open: {error}"));
    let stage = Stage::new(db, ledger, yard, Excuses::default());
    let stage = stage.unwrap_or_else(|error| panic!("keyspaces: {error}"));
    std::thread::scope(|scope| {
        for (author, act) in ACTS.iter().enumerate().filter(|(_, act)| act.kind == Kind::Harmless) {
            let stage = stage.clone();
            scope.spawn(move || {
                loop {
                    let result = (act.run)(&stage, author);
                    if !stage.excuses.take(act.name, result) {
                        return;
                    }
                }
            });
        }
    });
}

fn follow(yard: &Yard, ledger: &Ledger) {
    let follower = yard.follow().unwrap_or_else(|error| panic!("follow: {error}"));
    loop {
        let before = ledger.acknowledged();
        follower.refresh().unwrap_or_else(|error| panic!("refresh: {error}"));
        let seen = shown(&follower.db(), ledger).unwrap_or_else(|error| panic!("{error}"));
        within("a follower", &before, &seen, &ledger.attempted());
        if yard.draw(4) == 0 {
            let dir = yard.copy_path(0);
            let copied = follower.checkpoint(&dir);
            copied.unwrap_or_else(|error| panic!("a follower's copy: {error}"));
            let look = &mut |copy: &_| shown(copy, ledger);
            let copied = yard.with_copy(&dir, look).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(copied, seen, "a copy is not what was shown");
        }
        if yard.draw(4) == 0 {
            let options = BackupOptions::default();
            let backed_up = backed_up(yard, ledger, 0, |to| follower.backup(to, options));
            let backed_up = backed_up.unwrap_or_else(|error| panic!("a backup: {error}"));
            assert!(backed_up.is_none_or(|backed_up| backed_up == seen), "not what was shown");
        }
    }
}
