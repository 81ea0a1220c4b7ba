//! A database in an async program: readers on the threads that tokio has for blocking calls, and
//! one writer, on a thread of its own, that commits the writes which have gathered.
//!
//! No call of Windrow is async, since a read of a file is not. Calls that may wait are made where
//! waiting keeps no task from running; docs/guide/async.md lists them.
//!
//! `cargo run --example async_service`

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use windrow::{Batch, Db, ErrorKind, Keyspace, Result, Slice, Snapshot, WriteSync};

/// The most writes that wait for the writer; further senders wait for room, as tasks.
const WAITING_MAX: usize = 256;

/// The number of entries that a task gets of a scan at a time.
const PAGE: usize = 100;

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-async-{}", std::process::id()));
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("threads");
    // Opened before there are tasks that waiting would hold up; closed below after they end.
    let db = Db::open(&path)?;
    runtime.block_on(serve(&db))?;
    db.close()?;
    Db::destroy(&path)
}

async fn serve(db: &Db) -> Result<()> {
    let notes = db.keyspace("notes")?;
    let (store, writer) = Store::begin(db.clone(), notes);

    // Many tasks write: each goes on once its write is on the device.
    let tasks: Vec<_> = (0..500)
        .map(|n: u32| {
            let store = store.clone();
            tokio::spawn(async move { store.put(format!("note/{n:03}"), "written").await })
        })
        .collect();
    for task in tasks {
        task.await.expect("it does not panic")?;
    }
    assert_eq!(store.get("note/042").await?.as_deref(), Some(&b"written"[..]));

    // A scan in pages, of one moment, however long its reader takes for them.
    let then = db.snapshot();
    store.put("note/999".into(), "later").await?;
    let (mut from, mut seen) = (String::new(), 0);
    loop {
        let page = store.page(&then, from.clone()).await?;
        let Some(last) = page.last() else { break };
        seen += page.len();
        from = format!("{last}\0");
    }
    assert_eq!(seen, 500);

    assert_eq!(store.rename("note/001", "note/1").await?, Renamed::Done);
    assert_eq!(store.rename("note/001", "note/2").await?, Renamed::NotThere);

    // The writer ends with the last sender.
    drop(store);
    writer.await.expect("it does not panic");
    Ok(())
}

/// A write, and the channel to the task that waits for it.
struct Write {
    key: String,
    value: &'static str,
    done: oneshot::Sender<Result<()>>,
}

#[derive(Debug, PartialEq)]
enum Renamed {
    Done,
    NotThere,
}

/// The access of tasks to the database. `Db` and `Keyspace` are handles: cheap to clone, and they
/// may be kept across `.await`.
#[derive(Clone)]
struct Store {
    db: Db,
    notes: Keyspace,
    writes: mpsc::Sender<Write>,
}

impl Store {
    fn begin(db: Db, notes: Keyspace) -> (Store, tokio::task::JoinHandle<()>) {
        let (writes, gathered) = mpsc::channel(WAITING_MAX);
        let store = Store { db: db.clone(), notes: notes.clone(), writes };
        (store, spawn_blocking(move || write(&db, &notes, gathered)))
    }

    /// Returns once it is on the device. If the future is dropped before, it may still be written.
    async fn put(&self, key: String, value: &'static str) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.writes.send(Write { key, value, done }).await.expect("the writer runs");
        written.await.expect("the writer answers")
    }

    /// A get may read from the device.
    async fn get(&self, key: &'static str) -> Result<Option<Slice>> {
        let notes = self.notes.clone();
        blocking(move || notes.get(key)).await
    }

    /// The keys of a page. The snapshot is kept across `.await`, and costs little; an iterator
    /// would keep files and memory, and is made for each page instead.
    async fn page(&self, then: &Snapshot, from: String) -> Result<Vec<String>> {
        let (notes, then) = (self.notes.clone(), then.clone());
        blocking(move || {
            let keys = notes.range_at(&then, from.as_bytes()..).keys().take(PAGE);
            keys.map(|key| Ok(String::from_utf8_lossy(&key?).into_owned())).collect()
        })
        .await
    }

    /// A transaction is one closure, and no part of it waits for a task.
    async fn rename(&self, from: &'static str, to: &'static str) -> Result<Renamed> {
        let store = self.clone();
        blocking(move || {
            store.db.transact(|tx| {
                let Some(value) = tx.get(&store.notes, from)? else { return Ok(Renamed::NotThere) };
                tx.delete(&store.notes, from)?;
                tx.put(&store.notes, to, value)?;
                Ok(Renamed::Done)
            })
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(call).await.expect("it does not panic")
}

/// Commits all waiting writes in one batch, with one sync, and answers. Writes that come meanwhile
/// form the next batch: the busier the database is, the larger batches are.
fn write(db: &Db, notes: &Keyspace, mut gathered: mpsc::Receiver<Write>) {
    while let Some(first) = gathered.blocking_recv() {
        let mut batch = Batch::new();
        let mut waiting = Vec::new();
        let mut next = Some(first);
        while let Some(Write { key, value, done }) = next {
            batch.put(notes, key, value);
            waiting.push(done);
            next = gathered.try_recv().ok();
        }
        let written = db.write(batch, WriteSync::Yes).map(drop);
        if let Err(error) = &written
            && error.kind() == ErrorKind::OutcomeUnknown
        {
            // Each of them may be there, or not: see the kind.
            eprintln!("{error}");
        }
        for done in waiting {
            // Its task may be gone.
            let _ = done.send(written.clone());
        }
    }
}
