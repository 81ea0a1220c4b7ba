//! Where a database under test lives: files, clock and background work, in
//! memory or of the operating system.
//!
//! Owns: building an `Env` for a `Ground`, and the outside events of a test (time passes, the
//! process dies). Never does: open a database.

use crate::variant::Ground;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_env::testing::{Handles, ManualClock, env};
use windrow_env::{Env, OsFs, OsRandom, ThreadPool};

/// Background threads of grounds that have real ones.
const THREADS: usize = 2;

/// Directory of the database in worlds in memory.
pub const DIR: &str = "/world/db";

/// A world for one database. Clones share everything.
#[derive(Clone)]
pub struct World {
    env: Env,
    clock: Arc<ManualClock>,
    handles: Option<Handles>,
    dir: PathBuf,
    /// Removed with the last clone.
    _temporary: Option<Arc<tempfile::TempDir>>,
}

impl World {
    /// Makes a fresh world, with choices made by `seed`.
    ///
    /// # Panics
    /// If the operating system gives no temporary directory.
    pub fn new(ground: Ground, seed: u64) -> World {
        if ground == Ground::System {
            return World::on_system();
        }
        let (mut env, handles) = env(seed);
        if ground == Ground::SimulatedThreads {
            env.jobs = Arc::new(ThreadPool::new(THREADS));
        }
        World::of(env, handles)
    }

    /// Makes a world over an environment that the test has made.
    pub fn of(env: Env, handles: Handles) -> World {
        let clock = Arc::clone(&handles.clock);
        World { env, clock, handles: Some(handles), dir: DIR.into(), _temporary: None }
    }

    fn on_system() -> World {
        // If this file system has no direct I/O, the system's files fall back to buffered I/O.
        let temporary = tempfile::Builder::new()
            .prefix("windrow-testkit-")
            .tempdir()
            .expect("a temporary directory");
        let clock = Arc::new(ManualClock::new());
        let env = Env {
            fs: Arc::new(OsFs::new()),
            clock: clock.clone(),
            jobs: Arc::new(ThreadPool::new(THREADS)),
            random: Arc::new(OsRandom),
        };
        let dir = temporary.path().join("db");
        World { env, clock, handles: None, dir, _temporary: Some(Arc::new(temporary)) }
    }

    /// Returns the environment to open databases in.
    pub fn env(&self) -> Env {
        self.env.clone()
    }

    /// Returns the database's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns a directory next to the database's.
    pub fn sibling(&self, name: &str) -> PathBuf {
        self.dir.with_file_name(name)
    }

    /// Lets time pass.
    pub fn advance_ms(&self, ms: u64) {
        // Not `ManualClock::advance_ms`, whose nanoseconds overflow after a few centuries.
        use windrow_env::Clock;
        self.clock.set_wall_ms(self.clock.wall_ms().saturating_add(ms));
    }

    /// Discards the queued jobs, as the death of the process does (real threads finish their work).
    pub fn process_died(&self) {
        if let Some(handles) = &self.handles {
            handles.jobs.discard();
        }
    }

    /// Returns the test's handles to a simulated world.
    pub fn handles(&self) -> Option<&Handles> {
        self.handles.as_ref()
    }
}
