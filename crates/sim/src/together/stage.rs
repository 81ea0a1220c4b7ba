//! The stage: a database, the ledger of the writes to it, and the machine that both are on; and the
//! judge of the states that it shows.
//!
//! Owns: the possible results of an act, and the rules for every state that is shown. Never does:
//! an act.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::backup::{BackupDirectory, BackupVerifier};
use windrow::{Db, ErrorKind, Follower, Keyspace, KeyspaceOptions, Snapshot};
use windrow_base::{Error, Result};
use windrow_env::Env;
use windrow_testkit::ledger::{Counts, Ledger, within};

/// The machine that a stage is on.
pub trait Ground: Send + Sync {
    /// Draws a number below `bound`.
    fn draw(&self, bound: u64) -> u64;
    /// Lets the other threads go on.
    fn pause(&self);
    /// Follows the database, as another process would.
    ///
    /// # Errors
    /// The database's error.
    fn follow(&self) -> Result<Follower>;
    /// Returns a path for a copy; nothing is there yet.
    fn copy_path(&self, author: usize) -> String;
    /// Opens a copy, calls `look` with it, closes and removes it.
    ///
    /// # Errors
    /// The error of `look`.
    fn with_copy(&self, dir: &str, look: &mut dyn FnMut(&Db) -> Result<Counts>) -> Result<Counts>;
    /// Where files are made besides those of the database.
    fn env(&self) -> Env;
    /// The directory of the backups.
    fn backups_path(&self) -> PathBuf;
    /// Makes the device fail soon, if it can, until the returned value is dropped.
    fn break_device(&self) -> Box<dyn Send>;
}

/// The database and machine of the acts.
#[derive(Clone)]
pub struct Stage {
    /// The database.
    pub db: Db,
    /// The two keyspaces that most writes go to.
    pub spaces: [Keyspace; 2],
    /// The keyspace of sums by the merge operator `add`.
    pub(super) sums: Keyspace,
    /// The keyspace of numbers that are pushed at one end and popped at the other.
    pub(super) queue: Keyspace,
    /// The writes.
    pub ledger: Arc<Ledger>,
    /// The machine.
    pub ground: Arc<dyn Ground>,
    /// The failures that an act may have.
    pub excuses: Excuses,
}

/// The failures that an act may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Excuses {
    /// The database may be closed meanwhile.
    pub closes: bool,
    /// The device may fail, or be full.
    pub fails: bool,
}

impl Excuses {
    /// Whether an author goes on after this result.
    ///
    /// # Panics
    /// If the result is a failure that is not excused.
    pub fn take(self, act: &str, result: Result<()>) -> bool {
        let Err(error) = result else { return true };
        // The writer does not wait for a follower that is too far behind (`followers_keep_bytes`).
        if error.kind() == ErrorKind::Closed && error.message().contains("too far behind") {
            return true;
        }
        let closed = self.closes && error.kind() == ErrorKind::Closed;
        let failed = self.fails && is_of_the_device(&error);
        assert!(closed || failed, "{act}: {error}");
        !closed
    }
}

/// Turns writing on for good, on a device that works again: earlier background work may still have
/// failed.
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

/// Whether only a failing device causes this error.
fn is_of_the_device(error: &Error) -> bool {
    use ErrorKind::{Io, NoSpace, OutcomeUnknown, ReadOnly};
    matches!(error.kind(), NoSpace | Io | ReadOnly | OutcomeUnknown)
}

impl Stage {
    /// Makes a stage on an open database.
    ///
    /// # Errors
    /// The database's error.
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

    /// Runs `look`, and asserts that its state has everything acknowledged before, and nothing that
    /// was not begun.
    ///
    /// # Errors
    /// The error of `look`.
    pub fn look(&self, what: &str, look: impl FnOnce() -> Result<Counts>) -> Result<()> {
        let before = self.ledger.acknowledged();
        let seen = look()?;
        self.check(what, &before, &seen);
        Ok(())
    }

    /// Asserts of what was seen that it has all that was acknowledged before, and nothing that was
    /// not begun.
    pub fn check(&self, what: &str, before: &Counts, seen: &Counts) {
        within(what, before, seen, &self.ledger.attempted());
    }
}

/// Reads every backup of a directory whole, whatever has ended while one was made, unless somebody
/// makes one now. Returns the directory, and the number of the newest.
///
/// # Panics
/// If one is damaged, or not all of it is there.
pub fn verify_backups(env: &Env, dir: &Path) -> Option<(BackupDirectory, u64)> {
    if !env.fs.exists(dir).expect("a look") {
        return None;
    }
    let backups = match BackupDirectory::open_read_only_in(env, dir) {
        Err(error) if error.kind() == ErrorKind::Busy => return None,
        opened => opened.unwrap_or_else(|error| panic!("backups: {error}")),
    };
    let numbers = windrow::backup::backup_numbers(&backups).expect("the backups");
    let mut verifier = BackupVerifier::new(&backups);
    for &number in &numbers {
        verifier.verify(number).unwrap_or_else(|error| panic!("backup {number}: {error}"));
    }
    let newest = numbers.last().copied()?;
    Some((backups, newest))
}

/// Returns the state of a database's initial keyspaces, at one moment.
///
/// # Errors
/// The database's error.
///
/// # Panics
/// If no prefix of the order of commits gives this state.
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

/// Opens the remains of a database and asserts that it has at least `least`, is sound, closes, and
/// opens with the same state again. Returns the state.
///
/// # Panics
/// If a write is lost or a rule is broken.
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

/// Parses a key of the queue: the number, and the author who pushed it.
pub(super) fn queued(key: &[u8]) -> (u64, usize) {
    let number = key[..8].try_into().expect("a number");
    (u64::from_be_bytes(number), usize::from(key[8]))
}

/// Asserts that no author's number in a queue is greater than its last pushed one.
fn check_queue(queue: &Keyspace, snapshot: &Snapshot, seen: &Counts) -> Result<()> {
    for pair in queue.iter_at(snapshot) {
        let (number, author) = queued(&pair?.0);
        let last = seen[author];
        assert!(number <= last, "{number} of author {author} is queued, and {last} is the last");
    }
    Ok(())
}
