//! The stage: a database, the ledger of what is written to it, and the machine that both are on;
//! and the judge of what is seen there.
//!
//! Owns: what may come of an act, and what must hold of whatever shows the database. Never does:
//! an act.

use super::ledger::{Counts, Ledger, within};
use std::sync::Arc;
use windrow::{Db, ErrorKind, Follower, Keyspace, KeyspaceOptions, Snapshot};
use windrow_base::{Error, Result};

/// The machine that a stage is on.
pub trait Ground: Send + Sync {
    /// A number below `bound`, drawn.
    fn draw(&self, bound: u64) -> u64;
    /// Lets others go on.
    fn pause(&self);
    /// Follows the database, as another process would.
    ///
    /// # Errors
    /// What the database said.
    fn follow(&self) -> Result<Follower>;
    /// Where a copy goes; there is nothing there.
    fn copy_path(&self, author: usize) -> String;
    /// Opens a copy, has it looked at, closes and removes it.
    ///
    /// # Errors
    /// What `look` said.
    fn with_copy(&self, dir: &str, look: &mut dyn FnMut(&Db) -> Result<Counts>) -> Result<Counts>;
    /// Has the device fail soon, if it can; until the returned value is dropped.
    fn break_device(&self) -> Box<dyn Send>;
}

/// Where acts take place.
#[derive(Clone)]
pub struct Stage {
    /// The database.
    pub db: Db,
    /// The two keyspaces that most writes go to.
    pub spaces: [Keyspace; 2],
    /// Of sums by the merge operator `add`.
    pub(super) sums: Keyspace,
    /// Of numbers that are pushed at one end and popped at the other.
    pub(super) queue: Keyspace,
    /// What was written.
    pub ledger: Arc<Ledger>,
    /// The machine.
    pub ground: Arc<dyn Ground>,
    /// What may come of an act.
    pub excuses: Excuses,
}

/// What may come of an act besides success.
#[derive(Clone, Copy, Debug, Default)]
pub struct Excuses {
    /// The database is closed meanwhile.
    pub closes: bool,
    /// The device fails, or is full.
    pub fails: bool,
}

impl Excuses {
    /// Whether an author goes on after this.
    ///
    /// # Panics
    /// If it has no excuse.
    pub fn take(self, act: &str, result: Result<()>) -> bool {
        let Err(error) = result else { return true };
        // A follower that the writer does not wait for (`followers_keep_bytes`).
        if error.kind() == ErrorKind::Closed && error.message().contains("too far behind") {
            return true;
        }
        let closed = self.closes && error.kind() == ErrorKind::Closed;
        let failed = self.fails && is_of_the_device(&error);
        assert!(closed || failed, "{act}: {error}");
        !closed
    }
}

/// Turns writing on for good, where the device is well: some background work may still have
/// failed before.
///
/// # Panics
/// If work fails again and again.
pub fn resume_for_good(db: &Db) {
    let mut last = None;
    for _ in 0..16 {
        db.resume().unwrap_or_else(|error| panic!("resume: {error}"));
        last = db.wait_idle().err();
        if last.is_none() {
            return;
        }
    }
    panic!("work fails again and again: {last:?}; writing is off: {:?}", db.write_error());
}

/// Whether a failing device, and nothing else, may say this.
fn is_of_the_device(error: &Error) -> bool {
    use ErrorKind::{Io, NoSpace, OutcomeUnknown, ReadOnly};
    matches!(error.kind(), NoSpace | Io | ReadOnly | OutcomeUnknown)
}

impl Stage {
    /// A stage on a database that is open.
    ///
    /// # Errors
    /// What the database said.
    pub fn new(
        db: Db,
        ledger: Arc<Ledger>,
        ground: Arc<dyn Ground>,
        excuses: Excuses,
    ) -> Result<Stage> {
        let spaces = [db.default_keyspace(), db.keyspace("other")?];
        let adding = KeyspaceOptions {
            merge_operator: Some("add".to_owned()),
            ..KeyspaceOptions::default()
        };
        let (sums, queue) = (db.keyspace_with("sums", adding)?, db.keyspace("queue")?);
        Ok(Stage { db, spaces, sums, queue, ledger, ground, excuses })
    }

    /// Runs `look`, and asserts that what it saw has all that was acknowledged before, and
    /// nothing that was not begun.
    ///
    /// # Errors
    /// What `look` said.
    pub fn look(&self, what: &str, look: impl FnOnce() -> Result<Counts>) -> Result<()> {
        let before = self.ledger.acknowledged();
        let seen = look()?;
        within(what, &before, &seen, &self.ledger.attempted());
        Ok(())
    }
}

/// What a database shows: of the keyspaces that it is made with, at one moment.
///
/// # Errors
/// What the database said.
///
/// # Panics
/// If no prefix of the order of commits looks like this.
pub fn shown(db: &Db, ledger: &Ledger) -> Result<Counts> {
    let named = |name: &str| db.open_keyspace(name);
    let spaces = [named("default")?, named("other")?].map(|space| space.into_iter());
    let spaces: Vec<Keyspace> = spaces.into_iter().flatten().collect();
    let snapshot = db.snapshot();
    let seen = ledger.observe(&spaces, &snapshot)?;
    if let Some(sums) = named("sums")? {
        for pair in sums.iter_at(&snapshot) {
            let (author, sum) = pair?;
            let author = usize::from(author[0]);
            let sum = u64::from_le_bytes((*sum).try_into().expect("a sum of eight bytes"));
            assert_eq!(sum, seen[author], "author {author}: operands are lost, or count twice");
        }
    }
    if let Some(queue) = named("queue")? {
        check_queue(&queue, &snapshot, &seen)?;
    }
    Ok(seen)
}

/// Opens what is left of a database, asserts that it has `least` at the least, is sound, and
/// closes and opens with the same again. Returns what it shows.
///
/// # Panics
/// If something is lost or wrong.
pub fn judge(
    what: &str,
    open: &dyn Fn() -> Result<Db>,
    ledger: &Ledger,
    (least, most): (&[u64], &[u64]),
) -> Counts {
    let db = open().unwrap_or_else(|error| panic!("{what}: it does not open: {error}"));
    let seen = shown(&db, ledger).unwrap_or_else(|error| panic!("{what}: {error}"));
    within(what, least, &seen, most);
    let sound = db.verify().and_then(|report| report.into_result());
    sound.unwrap_or_else(|error| panic!("{what}: {error}"));
    db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
    drop(db);
    let db = open().unwrap_or_else(|error| panic!("{what}: it does not open again: {error}"));
    let again = shown(&db, ledger).unwrap_or_else(|error| panic!("{what}, again: {error}"));
    assert_eq!(again, seen, "{what}: opened again");
    drop(db);
    seen
}

/// What is queued under a key: its number, and who pushed it.
pub(super) fn queued(key: &[u8]) -> (u64, usize) {
    let number = key[..8].try_into().expect("a number");
    (u64::from_be_bytes(number), usize::from(key[8]))
}

/// That nobody's numbers in a queue go beyond the last that was pushed.
fn check_queue(queue: &Keyspace, snapshot: &Snapshot, seen: &Counts) -> Result<()> {
    for pair in queue.iter_at(snapshot) {
        let (number, author) = queued(&pair?.0);
        let last = seen[author];
        assert!(number <= last, "{number} of author {author} is queued, and {last} is the last");
    }
    Ok(())
}
