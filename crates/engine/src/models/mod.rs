//! Models of how threads share the engine's owners, on the very code that runs, tried in every
//! interleaving with at most a few forced switches: `RUSTFLAGS="--cfg loom" cargo test -p windrow
//! --lib models --target-dir target/loom`. `LOOM_MAX_PREEMPTIONS=n` allows n of them.
//!
//! Most models open a database in memory and call it from two or three threads. Jobs run on the
//! threads that wait for them (`Stepper`). A loom value that is written and read relaxed represents
//! the data that an order between threads protects. Without a happens-before edge from its writing
//! a read may find the value from before, which fails the model, as does a thread that nobody will
//! ever wake.
//!
//! Owns: the database of a model, and the bounds of the search. Never does: repeat the steps of an
//! owner.
//!
//! | owner | its locks | loom, the file here | shuttle, `sim/tests/shuttle` |
//! |---|---|---|---|
//! | `Host`: `Progress`, `WriteState`, `SnapshotList` | PROGRESS, BACKGROUND_ERROR, SNAPSHOTS | `host.rs`, `pipeline.rs`, `jobs.rs` | all; `resuming.rs` |
//! | `Workers` | none (`gate.rs`) | `workers.rs` | `closing.rs` |
//! | `Catalog`, `DurableManifest`, `Keyspaces` | CATALOG, DURABLE_MANIFEST, NAMES | `catalog.rs` | `keyspaces.rs`, `closing.rs` |
//! | `Segments`, `Queue` | QUEUE, PUBLICATION | `pipeline.rs` | all |
//! | `WalSync` | WAL_SYNC | `wal_sync.rs` | all |
//! | `Pipeline`, `Pace` | FLUSH_RETRY | `schedule.rs` | `keyspaces.rs` |
//! | `MemTombstones` | MEM_TOMBSTONES | `tombstones.rs` | `reading.rs`: a deleted range |
//! | `JobContext`, `Tree`, `Cleanup`, `DatabaseDirectory` | VIEW, CLEANUP_WAITING, CLEANUP_KEPT, PLACE | `jobs.rs` | all |
//! | `Scheduler`, `ChangedKeyspaces`, `RetryTimer` | TREE_WORK, PACING, DUE_MERGES, DUE_LOADS | `schedule.rs` | `keyspaces.rs`, `reading.rs` |
//! | merges: ledger | FILTER_LEDGER | `merges.rs` | `keyspaces.rs`, `reading.rs` |
//! | merges: heat, chains | HOT_MAP, CHAINS | none: one step under one lock | `keyspaces.rs`, `reading.rs` |
//! | `TableCache` | TABLE_HANDLES; by shuttle TABLE_OPENING, TABLE_CLOCK | `caches.rs` | `reading.rs` |
//! | `BlockCache` | BLOCKS_RESIZING | `blocks.rs` | all: whenever memory is shared out |
//! | `Database`: close, checkpoint, resume | CLOSING, CHECKPOINTING, RESUMING | `workers.rs`: close; `database.rs` | `closing.rs`, `reading.rs`, `resuming.rs` |

mod blocks;
mod caches;
mod catalog;
mod database;
mod host;
mod jobs;
mod merges;
mod pipeline;
mod schedule;
mod tombstones;
mod wal_sync;
mod workers;

use crate::{Db, Options};
use loom::thread::{Builder, JoinHandle};
use std::path::Path;
use std::sync::Arc;
use windrow_env::sync::Mutex;
use windrow_env::testing::{Handles, env};
use windrow_read::lock_ranks;
use windrow_recover::database::Database;
use windrow_store::write::segments::Segments;

/// Forced switches, where `LOOM_MAX_PREEMPTIONS` is not set: for models of a few steps, of two
/// threads that each call a database, and of three, or of calls that take long.
const OF_STEPS: usize = 3;
const OF_TWO: usize = 2;
const OF_MANY: usize = 1;

/// Words of a thread's stack: loom's own choice is too small for an open.
const STACK_WORDS: usize = 1 << 17;

/// Runs `body` in every interleaving with at most `switches` forced switches.
fn model(switches: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(switches));
    builder.max_branches = 1_000_000;
    let body = Arc::new(body);
    builder.check(move || {
        let body = body.clone();
        let thread = Builder::new().stack_size(STACK_WORDS).spawn(move || body());
        thread.expect("a thread").join().expect("the model");
    });
}

/// An open database in memory.
struct ModelWorld {
    db: Db,
    handles: Handles,
}

impl ModelWorld {
    /// Small: under loom each idle chunk of memory is a value to follow. A first write has made the
    /// memtable's list, since loom does not see how that is made (`OnceLock`).
    fn open() -> Arc<ModelWorld> {
        let (_, handles) = env(1);
        let world = ModelWorld { db: open(&handles), handles };
        world.db.put("0", "0").expect("put");
        Arc::new(world)
    }

    fn database(&self) -> &Database {
        self.db.database()
    }

    fn segments(&self) -> &Segments {
        &self.database().pipeline.segments
    }

    fn has(&self, key: &str) -> bool {
        self.db.get(key).expect("get").is_some()
    }

    /// The number of files of the database with this suffix.
    fn files(&self, suffix: &str) -> usize {
        let names = self.handles.fs.files(&self.database().dir);
        names.iter().filter(|name| Path::new(name).extension().is_some_and(|e| e == suffix)).count()
    }

    /// Begins a thread of the model.
    fn spawn<T: Send + 'static>(
        self: &Arc<ModelWorld>,
        work: impl FnOnce(&ModelWorld) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let world = self.clone();
        Builder::new().stack_size(STACK_WORDS).spawn(move || work(&world)).expect("a thread")
    }
}

impl Drop for ModelWorld {
    /// Nothing of a run is needed after it. A close that flushes would take half of its time.
    fn drop(&mut self) {
        self.handles.fs.halt();
    }
}

/// Opens the database with these files.
fn open(handles: &Handles) -> Db {
    open_at("db", handles)
}

fn open_at(dir: &str, handles: &Handles) -> Db {
    let mut options = Options::default();
    options.components.env = Some(handles.env());
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 64 << 10;
    Db::open_with(dir, options).expect("open")
}

/// A model of an open database.
fn model_of_database(switches: usize, body: impl Fn(&Arc<ModelWorld>) + Send + Sync + 'static) {
    model(switches, move || body(&ModelWorld::open()));
}

/// The canary of lock ranks. The models check them as well.
#[test]
#[should_panic(expected = "takes the catalog (rank 100) while this thread holds the commit queue")]
fn locks_that_are_taken_out_of_order_are_noticed() {
    model(OF_STEPS, || {
        let catalog = Mutex::new(lock_ranks::CATALOG, ());
        let queue = Mutex::new(lock_ranks::QUEUE, ());
        let _queue = queue.lock();
        let _catalog = catalog.lock();
    });
}
