//! A durable queue: any number of threads put jobs in and take them out, in order of
//! priority and then of age.
//!
//! There are two ways to take a job. `pop` removes it: each job is given to one worker, and is lost
//! with it. `take` moves it to another keyspace until the worker reports that it is done: a job
//! that a worker did not finish is given out again when the queue is opened next.
//!
//! `cargo run --example queue`

use std::fmt;
use std::path::Path;
use windrow::{Batch, Db, Keyspace, Slice, WriteSync};

const JOBS: u32 = 200;
const JOB_BYTES_MAX: usize = 1 << 20;

pub(crate) fn main() -> Result<(), QueueError> {
    let path = std::env::temp_dir().join(format!("windrow-queue-{}", std::process::id()));
    let queue = Queue::open(&path)?;
    queue.push(5, b"sweep the floor")?;
    queue.push(5, b"water the plants")?;
    queue.push(1, b"put out the fire")?;
    assert!(matches!(queue.push(0, b""), Err(QueueError::NotAJob)));
    assert_eq!(queue.waiting()?, 3);

    // The urgent one first. It is taken, and not gone.
    let fire = queue.take()?.expect("there are three");
    assert_eq!(fire.job, "put out the fire");
    assert_eq!(queue.pop()?.expect("there are two"), "sweep the floor");

    // The program ends here, before the fire is out. The next one finds the job where it was.
    queue.db.close()?;
    let queue = Queue::open(&path)?;
    let fire = queue.take()?.expect("it was given back");
    assert_eq!(fire.job, "put out the fire");
    queue.done(&fire)?;
    assert!(matches!(queue.done(&fire), Err(QueueError::NotLeased)));
    assert_eq!(queue.pop()?.expect("one is left"), "water the plants");
    assert!(queue.pop()?.is_none() && queue.take()?.is_none());

    // Two threads put jobs in and three take them out: each job is done once.
    let mut done = std::thread::scope(|scope| {
        let producers = [0, 1].map(|half| {
            let queue = &queue;
            scope.spawn(move || {
                let own = (0..JOBS).filter(|job| job % 2 == half);
                own.into_iter().try_for_each(|job| queue.push(5, &job.to_be_bytes()))
            })
        });
        let workers = [(); 3].map(|()| scope.spawn(|| work(&queue)));
        for producer in producers {
            producer.join().expect("it does not panic")?;
        }
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.join().expect("it does not panic")?);
        }
        Ok::<_, QueueError>(done)
    })?;
    done.extend(work(&queue)?);
    done.sort_unstable();
    assert!(done.iter().copied().eq(0..JOBS), "{done:?}");
    queue.db.close()?;
    Ok(Db::destroy(&path)?)
}

/// Does jobs until there are none.
fn work(queue: &Queue) -> Result<Vec<u32>, QueueError> {
    let mut done = Vec::new();
    while let Some(taken) = queue.take()? {
        let number = taken.job.as_bytes().try_into().expect("a job is a number here");
        done.push(u32::from_be_bytes(number));
        queue.done(&taken)?;
    }
    Ok(done)
}

struct Queue {
    db: Db,
    ready: Keyspace,
    leased: Keyspace,
    counters: Keyspace,
}

/// A job, and the place that it had.
struct Leased {
    place: Slice,
    job: Slice,
}

impl Queue {
    fn open(path: &Path) -> Result<Queue, QueueError> {
        let db = Db::open(path)?;
        let spaces = db.create_keyspaces(&["ready", "leased", "counters"])?;
        let [ready, leased, counters] = spaces.try_into().expect("there are three names");
        let queue = Queue { db, ready, leased, counters };
        queue.give_back()?;
        Ok(queue)
    }

    /// Puts a job behind those of its priority, 0 being the most urgent. It is on the device when
    /// this returns.
    fn push(&self, priority: u8, job: &[u8]) -> Result<(), QueueError> {
        if job.is_empty() || job.len() > JOB_BYTES_MAX {
            return Err(QueueError::NotAJob);
        }
        // A crash after this leaves a number unused, which does no harm.
        let before =
            self.counters.update("next", |old| Some((number(old) + 1).to_be_bytes().into()));
        let place = [&[priority][..], &number(before?.as_deref()).to_be_bytes()].concat();
        Ok(self.ready.put_with(place, job, WriteSync::Yes)?)
    }

    /// Removes the first job and returns it.
    fn pop(&self) -> Result<Option<Slice>, QueueError> {
        Ok(self.ready.pop_first()?.map(|(_, job)| job))
    }

    /// Moves the first job to the taken ones and returns it: of several workers, to one.
    fn take(&self) -> Result<Option<Leased>, QueueError> {
        self.db.transact(|tx| {
            let Some((place, job)) = tx.iter(&self.ready)?.next().transpose()? else {
                return Ok(None);
            };
            tx.delete(&self.ready, &place)?;
            tx.put(&self.leased, &place, &job)?;
            Ok(Some(Leased { place, job }))
        })
    }

    /// Removes a job that was taken, once its work is done, for good.
    fn done(&self, taken: &Leased) -> Result<(), QueueError> {
        match self.leased.remove(&taken.place)? {
            Some(_) => Ok(self.db.sync()?),
            None => Err(QueueError::NotLeased),
        }
    }

    /// Puts the jobs that were taken, and not done, back where they were.
    fn give_back(&self) -> Result<(), QueueError> {
        let mut batch = Batch::new();
        for item in self.leased.iter() {
            let (place, job) = item?;
            batch.delete(&self.leased, &place);
            batch.put(&self.ready, &place, &job);
        }
        self.db.write(batch, WriteSync::Yes)?;
        Ok(())
    }

    fn waiting(&self) -> Result<u64, QueueError> {
        Ok(self.ready.count(..)?)
    }
}

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
}

/// Why the queue refused a call.
#[derive(Debug)]
pub(crate) enum QueueError {
    /// It is empty, or too long.
    NotAJob,
    /// The job was not taken, or is done.
    NotLeased,
    Database(windrow::Error),
}

impl From<windrow::Error> for QueueError {
    fn from(error: windrow::Error) -> QueueError {
        QueueError::Database(error)
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::NotAJob => write!(f, "a job has 1 to {JOB_BYTES_MAX} bytes"),
            QueueError::NotLeased => write!(f, "the job was not taken, or is done"),
            QueueError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for QueueError {}
