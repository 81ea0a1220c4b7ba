//! Following: reading a database that another process has open.
//!
//! A follower reads the manifest and the write-ahead log as they grow, and shows the writes up to
//! there as a database that is read only and does not change: a *moment*. Each refresh makes
//! another one. Moments share caches, tables, and the memtables that the log is read into. So the
//! writer's merges keep no entries for a snapshot or an iterator of a moment. It needs files only,
//! and those are kept by a lease in the directory (`readers.rs`), which says from which record of
//! the manifest on they are needed.
//!
//! `manifest_tail` and `log_tail` read the records that were appended since
//! (`log/growing_log.rs`).
//!
//! Owns: the order of a refresh, and the list of moments that are in use. Never does: write into
//! the database's directory, except the lease.

use crate::backup::{self, BackedUp, BackupOptions, BackupTarget};
use crate::changes::{self, ChangeOptions, Changes, FollowedLogs};
use crate::checkpoint::{self, Followed};
use crate::db::Db;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use windrow_base::{Error, ErrorKind, FileNumber, Result, SeqNo};
use windrow_env::fs::{FileId, FileLock};
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::{Env, Process};
use windrow_format::log::Length;
use windrow_format::names;
use windrow_plan::Policy;
use windrow_read::fork::refuse_forked;
use windrow_read::lock_ranks;
use windrow_read::options::Options;
use windrow_recover::database::Database;
use windrow_recover::discovery::manifest_tail::ManifestTail;
use windrow_recover::discovery::remains::refuse_foreign;
use windrow_recover::discovery::{FoundManifest, refuse_newer};
use windrow_recover::handle::Handle;
use windrow_recover::log::log_tail::{KnownManifest, LogTail, Read};
use windrow_recover::open::assemble::{Sharing, assemble, show};
use windrow_recover::open::missing_or_remains;
use windrow_skiplist::ChunkPool;
use windrow_store::host::database_directory::{DatabaseDirectory, enter};
use windrow_store::host::listing::Listing;
use windrow_store::host::readers::{LOST, ReaderLease};

/// How often the manifest is read again, where a log is ahead of it.
const TRIES: u32 = 8;

/// Reads a database that another process has open for writing, or nobody.
///
/// Any number of processes may follow a database, and its writer does not wait for them.
/// [`Follower::db`] shows it as it was at the last [`Follower::refresh`]: a [`Db`] that is
/// read only and never changes, so that everything read from it belongs together. Writes that
/// precede the beginning of a refresh, synced or not, are seen after it: whole batches, in the
/// order in which they were committed. A write that failed, and yet reached the log, is shown
/// until the writer resumes ([`Db::resume`]), as a crash would show it.
///
/// A follower writes nothing into the directory but a lease (`READER-000000` and so on):
/// tables and logs that it needs are not removed while its process lives. A state that is
/// kept for long keeps files for as long, which the writer's [`crate::Stats`] count; once they are
/// more than the writer's setting `followers_keep_bytes`, the follower that is furthest behind goes
/// without. It reads on from the files that it has open; where a file is gone, a read fails with
/// [`ErrorKind::Closed`](crate::ErrorKind::Closed), and never shows anything else. A refresh
/// then shows the newest state. Writes that are in no table yet are held in memory, outside the
/// budget: as much as the writer holds of them.
///
/// Cheap to clone; the last clone, and the last [`Db`] that came of it, give up the lease.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
/// let writer = windrow::Db::open(dir)?;
/// writer.put("apple", "red")?;
///
/// // In another process, as a rule.
/// let follower = windrow::Follower::open(dir)?;
/// let then = follower.db();
/// writer.put("apple", "green")?;
/// assert_eq!(then.get("apple")?.as_deref(), Some(&b"red"[..]));
///
/// assert!(follower.refresh()?);
/// assert_eq!(follower.db().get("apple")?.as_deref(), Some(&b"green"[..]));
/// assert_eq!(then.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone)]
pub struct Follower {
    inner: Arc<FollowerInner>,
}

struct FollowerInner {
    env: Env,
    dir: PathBuf,
    options: Options,
    process: Process,
    following: Mutex<Following>,
    /// As of the last refresh.
    shown: Mutex<Db>,
    /// Counts the calls of [`Follower::refresh_every`]: only the last one's timer goes on.
    timers: AtomicU64,
    /// The error of the timer's last refresh, if it failed.
    failure: Mutex<Option<Error>>,
}

/// The manifest and logs read so far, the lease, and the moments that may be in use.
struct Following {
    /// `None` after an error: a refresh then reads from the start.
    read: Option<(ManifestTail, LogTail)>,
    lease: Arc<Mutex<ReaderLease>>,
    /// Which moments may be in use, and how much of the manifest was read for each.
    moments: Vec<(Weak<Database>, Length)>,
    shown: ShownUpTo,
}

/// The end of the moment that was shown last.
#[derive(Clone, Copy, Default)]
struct ShownUpTo {
    /// Its last sequence number.
    seq: SeqNo,
    /// The last one that was in tables for sure.
    stored_seq: SeqNo,
    manifest: FileNumber,
}

impl ShownUpTo {
    fn of(manifest: &ManifestTail, logs: &LogTail) -> ShownUpTo {
        let (seq, number) = (logs.last_seq(), manifest.length().number);
        ShownUpTo { seq, stored_seq: manifest.surely_stored_seq(), manifest: number }
    }

    /// Returns whether the same database can have come to `next` since. A resume drops writes and
    /// ingestions that failed although their records reached log or manifest: it begins a later
    /// manifest, and everything that was in tables stays.
    fn leads_to(self, next: ShownUpTo) -> bool {
        let is_resumed = self.manifest < next.manifest && self.stored_seq <= next.seq;
        self.seq <= next.seq || is_resumed
    }
}

/// Keeps the lease for as long as a moment is open.
struct LeaseLock {
    _lease: Arc<Mutex<ReaderLease>>,
}

impl FileLock for LeaseLock {
    fn id(&self) -> Option<FileId> {
        None
    }
}

impl Follower {
    /// Follows the database in `dir` with default options.
    ///
    /// # Errors
    /// As [`Follower::open_with`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Follower> {
        Follower::open_with(dir, Options::default())
    }

    /// Follows the database in `dir`. Of the options, components (comparators and merge
    /// operators among them) and the settings that concern reading count: memory, open files,
    /// direct I/O. The database is not created, and is opened read-only, whatever the options say.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no database; `Corruption` for a damaged manifest or log;
    /// `NotSupported` if a newer version wrote it; `Io`, above all where no lease can be made in
    /// the directory.
    pub fn open_with(dir: impl AsRef<Path>, options: Options) -> Result<Follower> {
        let options = Options { read_only: true, error_if_exists: false, ..options };
        options.validate()?;
        let env = options.components.env_or_os(&options.settings);
        refuse_forked(&env)?;
        let dir = env.fs.absolute(dir.as_ref())?;
        if !env.fs.exists(&dir.join(names::CURRENT))? {
            return Err(missing_or_remains(&env, &dir));
        }
        let (env, dir) = enter(&env, &dir)?;
        refuse_newer(&env, &dir)?;
        refuse_foreign(&env, &dir)?;
        let lease = Arc::new(Mutex::new(lock_ranks::READER_LEASE, ReaderLease::take(&env, &dir)?));
        let mut following =
            Following { read: None, lease, moments: Vec::new(), shown: ShownUpTo::default() };
        let ground = FollowerSetup { env: &env, dir: &dir, options: &options };
        let shown = following.refresh(&ground, None)?.expect("nothing was shown before");
        let (fs, lease) = (env.fs.clone(), following.lease.clone());
        let tables = &shown.database().caches.tables;
        tables.ask_of_absence(Box::new(move || lease.lock().loss(&*fs)));
        following.let_go(&ground)?;
        let inner = FollowerInner {
            env,
            dir,
            options,
            process: Process::current(),
            following: Mutex::new(lock_ranks::FOLLOWING, following),
            shown: Mutex::new(lock_ranks::FOLLOWER_SHOWN, shown),
            timers: AtomicU64::new(0),
            failure: Mutex::new(lock_ranks::FOLLOWER_FAILURE, None),
        };
        Ok(Follower { inner: Arc::new(inner) })
    }

    /// The database as of the last refresh. It stays as it is; writing to it is an error
    /// (`ReadOnly`).
    pub fn db(&self) -> Db {
        self.inner.shown.lock().clone()
    }

    /// Reads the records since the last refresh. Returns whether there were any.
    ///
    /// # Errors
    /// `Corruption` where something that the writer had made durable is damaged;
    /// `InvalidArgument` if the directory has another database by now; `Io`; `Closed` in a child
    /// made by `fork`. [`Follower::db`] still shows the same state, and a later refresh may
    /// succeed.
    pub fn refresh(&self) -> Result<bool> {
        let FollowerInner { env, dir, options, process, following, shown, .. } = &*self.inner;
        if !process.is_this() {
            return Err(windrow_read::fork::forked(process));
        }
        let mut following = following.lock();
        let before = shown.lock().clone();
        let ground = FollowerSetup { env, dir, options };
        let refreshed = following.refresh(&ground, Some(&before))?;
        let is_another = refreshed.is_some();
        if let Some(db) = refreshed {
            let _replaced = std::mem::replace(&mut *shown.lock(), db);
        }
        // The last handle of a moment that nobody reads closes it.
        drop(before);
        following.let_go(&ground)?;
        Ok(is_another)
    }

    /// Refreshes in the background every `interval` from now on; a duration of 0 ends that.
    /// [`Follower::refresh_error`] has the error of a refresh that fails.
    pub fn refresh_every(&self, interval: Duration) {
        let mine = self.inner.timers.fetch_add(1, Ordering::AcqRel) + 1;
        if interval.is_zero() {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        let refresh = move || {
            let Some(inner) = inner.upgrade() else { return false };
            let follower = Follower { inner };
            if follower.inner.timers.load(Ordering::Acquire) != mine {
                return false;
            }
            let failed = follower.refresh().err();
            *follower.inner.failure.lock() = failed;
            true
        };
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1);
        self.inner.env.jobs.every(interval_ms, Arc::new(refresh));
    }

    /// Copies the database as of the last refresh into `dir`, which must be empty or not
    /// there: a database of its own, whose tables are hard links where those are supported.
    /// Writes that are in no table yet are in a log, which an open replays. The copy is opened
    /// once, for reading, before this returns. The writer is not asked and does not wait; a
    /// refresh waits for the copy.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let backup = dir.path().join("backup");
    /// # let dir = dir.path().join("db");
    /// let writer = windrow::Db::open(&dir)?;
    /// writer.put("apple", "red")?;
    /// windrow::Follower::open(&dir)?.checkpoint(&backup)?; // in another process, as a rule
    /// let copy = windrow::Db::open(&backup)?;
    /// assert_eq!(copy.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a directory that is not empty, where a keyspace is left out
    /// (`Components::comparators`), or after a refresh that failed; `Closed` if the follower is too
    /// far behind: refresh it; `Io`, `NoSpace`. The files that were made are removed.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        let options = &self.inner.options;
        self.copy("checkpoint", |followed| {
            let last_seq = followed.last_seq;
            let check = |dir: &Path| check_copy(dir, options, last_seq);
            checkpoint::of_follower(followed, dir.as_ref(), check)
        })
    }

    /// Backs up the state that the last refresh has read, as [`Db::backup`] does. A refresh waits
    /// for it.
    ///
    /// # Errors
    /// As [`Follower::checkpoint`] and [`Db::backup`].
    pub fn backup(&self, target: &dyn BackupTarget, options: BackupOptions) -> Result<BackedUp> {
        self.copy("backup", |followed| backup::of_follower(&followed, target, options))
    }

    /// Calls `copy` with the state that the last refresh has read. Its files stay until `copy`
    /// returns.
    fn copy<T>(&self, what: &str, copy: impl FnOnce(Followed<'_>) -> Result<T>) -> Result<T> {
        let FollowerInner { env, dir: source, process, following, .. } = &*self.inner;
        if !process.is_this() {
            return Err(windrow_read::fork::forked(process));
        }
        let following = following.lock();
        let Some((manifest, logs)) = &following.read else {
            let text = format!("the last refresh failed: refresh before a {what}");
            return Err(Error::invalid(text));
        };
        if let Some(record) = manifest.left_out.records().first() {
            return Err(windrow_store::tree::left_out(record));
        }
        let followed = Followed {
            env,
            dir: source,
            database_uid: manifest.database_uid(),
            state: manifest.state.clone(),
            last_seq: logs.last_seq(),
            log_end: logs.end(),
        };
        copy(followed).map_err(|error| following.lease.lock().loss(&*env.fs).unwrap_or(error))
    }

    /// The changes from sequence number `from` on, as [`Db::changes`] has them in the writer's
    /// process. When all that the last refresh has read was taken, the next look refreshes this
    /// follower; a wait looks every 10 ms. As everything that a follower shows, a change may be a
    /// write that has failed and yet reached the log, until the writer resumes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path();
    /// let writer = windrow::Db::open(dir)?;
    /// // In another process, as a rule.
    /// let follower = windrow::Follower::open(dir)?;
    /// let mut changes = follower.changes(1, Default::default())?;
    /// writer.put("apple", "red")?;
    /// assert_eq!(changes.try_next()?.unwrap().seq, 1);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::changes`] and [`Follower::refresh`]; `InvalidArgument` for durable changes only,
    /// since the writer alone knows what is durable.
    pub fn changes(&self, from: SeqNo, options: ChangeOptions) -> Result<Changes> {
        if options.durable_only {
            let text = "a follower does not know which changes are durable: ask the writer";
            return Err(Error::invalid(text));
        }
        let FollowerInner { env, dir, .. } = &*self.inner;
        let place = (env.clone(), dir.clone());
        changes::of_follower(Box::new(self.clone()), place, from, options.old_values)
    }

    /// Returns the error of the last refresh in the background; `None` if it did not fail.
    pub fn refresh_error(&self) -> Option<Error> {
        self.inner.failure.lock().clone()
    }

    /// The database's directory.
    pub fn path(&self) -> &Path {
        &self.inner.dir
    }
}

impl FollowedLogs for Follower {
    fn read_on(&self) -> Result<()> {
        self.refresh().map(drop)
    }

    fn look(&self, look: &mut dyn FnMut(&Followed<'_>)) -> Result<()> {
        self.copy("read of changes", |followed| {
            look(&followed);
            Ok(())
        })
    }

    fn shown(&self) -> Handle {
        self.db().handle().clone()
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Follower({})", self.inner.dir.display())
    }
}

/// Checks that a copy opens, and ends with the sequence number `last_seq`.
fn check_copy(dir: &Path, options: &Options, last_seq: SeqNo) -> Result<()> {
    let mut options = options.clone();
    // The listener hears only of databases that the caller opens.
    options.components.listener = None;
    let copy = Db::open_with(dir, options)?;
    let last = copy.database().pipeline.visible();
    copy.close()?;
    if last == last_seq {
        return Ok(());
    }
    Err(Error::corruption(format!("the copy ends at write {last}, where it should at {last_seq}")))
}

/// The environment, directory and options of a follower.
struct FollowerSetup<'a> {
    env: &'a Env,
    dir: &'a Path,
    options: &'a Options,
}

impl Following {
    /// Reads on, and makes a moment of what is there; `None` where nothing has changed since
    /// the one before. Begins again where the writer has taken the lease away.
    fn refresh(&mut self, ground: &FollowerSetup<'_>, before: Option<&Db>) -> Result<Option<Db>> {
        for _ in 0..TRIES {
            if self.lease.lock().is_lost(&*ground.env.fs)? {
                self.begin_again(ground)?;
            }
            let read = self.read_moment(ground, before);
            let is_lost = self.lease.lock().is_lost(&*ground.env.fs);
            match is_lost.inspect_err(|_| self.read = None)? {
                false => return read,
                true => drop(read),
            }
        }
        Err(Error::new(ErrorKind::Closed, LOST))
    }

    /// Takes another lease. It keeps no files for earlier moments, and the manifest and logs are
    /// read from the start.
    fn begin_again(&mut self, ground: &FollowerSetup<'_>) -> Result<()> {
        self.lease.lock().renew(ground.env, ground.dir)?;
        (self.read, self.moments) = (None, Vec::new());
        Ok(())
    }

    fn read_moment(
        &mut self,
        ground: &FollowerSetup<'_>,
        before: Option<&Db>,
    ) -> Result<Option<Db>> {
        let (length, seq) = match &self.read {
            Some((manifest, logs)) => (manifest.length(), logs.last_seq()),
            None => (Length::default(), 0),
        };
        // After an error, everything is read again from the start.
        let (manifest, logs) = self.read_on(ground)?;
        if manifest.length() == length && logs.last_seq() == seq && before.is_some() {
            self.read = Some((manifest, logs));
            return Ok(None);
        }
        let next = ShownUpTo::of(&manifest, &logs);
        if !self.shown.leads_to(next) {
            return Err(Error::invalid(format!(
                "the database in {} ends at write {}, where it went on to {} before: \
                 it was replaced; open it again",
                ground.dir.display(),
                next.seq,
                self.shown.seq
            )));
        }
        let database = moment(ground, (&manifest, &logs), before.map(Db::database))?;
        let length = manifest.length();
        self.read = Some((manifest, logs));
        self.shown = next;
        self.moments.push((Arc::downgrade(&database), length));
        let lock = LeaseLock { _lease: self.lease.clone() };
        Db::of(database, Box::new(lock)).map(Some)
    }

    /// Reads the manifest and the logs as they are now: the logs at least up to the last write that
    /// the manifest says is in tables.
    fn read_on(&mut self, ground: &FollowerSetup<'_>) -> Result<(ManifestTail, LogTail)> {
        let FollowerSetup { env, dir, options } = ground;
        let components = &options.components;
        let mut promised = Length::default();
        for tries in 1..=TRIES {
            let (manifest, mut logs) = match self.read.take() {
                Some((mut manifest, logs)) => match manifest.go_on(env, dir, components)? {
                    true => (manifest, logs),
                    false => continue,
                },
                None => {
                    let manifest = ManifestTail::read(env, dir, components)?;
                    let chunks = Arc::new(ChunkPool::new(0));
                    let logs = LogTail::new(&manifest.state, chunks);
                    (manifest, logs)
                }
            };
            let known = KnownManifest { state: &manifest.state, length: manifest.length() };
            manifest.check_length(dir, promised)?;
            let read = logs.go_on(env, dir, known)?;
            let is_read = match read {
                Read::All => true,
                Read::UntilManifest => false,
                // A writer that changes the manifest all the time is not run after for ever.
                Read::UntilLength(length) => {
                    promised = length;
                    tries == TRIES
                }
            };
            if is_read && manifest.stored_seq() <= logs.last_seq() {
                return Ok((manifest, logs));
            }
            self.read = Some((manifest, logs));
        }
        self.read = None;
        Err(Error::corruption(format!(
            "the logs in {} end before what the manifest says is in tables, or write to a \
             keyspace that it does not name",
            dir.display()
        )))
    }

    /// Says in the lease which files no moment in use needs.
    fn let_go(&mut self, ground: &FollowerSetup<'_>) -> Result<()> {
        self.moments.retain(|(moment, _)| moment.strong_count() > 0);
        match self.moments.iter().map(|(_, length)| *length).min() {
            Some(length) => self.lease.lock().let_go_before(length),
            None => Ok(()),
        }
        .map_err(|error| error.context(format!("the lease in {}", ground.dir.display())))
    }
}

/// Returns the database that the manifest and the logs describe.
fn moment(
    ground: &FollowerSetup<'_>,
    (manifest, logs): (&ManifestTail, &LogTail),
    before: Option<&Database>,
) -> Result<Arc<Database>> {
    let FollowerSetup { env, dir, options } = ground;
    let policy = Policy::parse(&options.settings.preset)
        .map_err(|error| error.context("setting `preset`"))?;
    let mut state = manifest.state.clone();
    state.last_seq = state.last_seq.max(logs.last_seq());
    let found = FoundManifest {
        state,
        database_uid: manifest.database_uid(),
        manifest: None,
        left_out: manifest.left_out.records(),
        current: None,
    };
    let place = DatabaseDirectory::unlocked(env, dir);
    let listing = Listing::default();
    let env = Env::clone(env);
    let sharing = Sharing::Moments(before);
    let database = assemble(env, place, options, &listing, found, &policy, sharing)?;
    show(&database, &logs.memtables, logs.last_seq());
    Ok(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_ends_earlier_behind_a_later_manifest_only() {
        let shown = ShownUpTo { seq: 100, stored_seq: 60, manifest: 7 };
        let next = |seq, manifest| ShownUpTo { seq, stored_seq: 60, manifest };
        assert!(shown.leads_to(next(100, 7)) && shown.leads_to(next(130, 3)));
        assert!(shown.leads_to(next(60, 8)), "resumed: all that was in tables is there");
        assert!(!shown.leads_to(next(59, 8)), "something is missing that was in a table");
        assert!(!shown.leads_to(next(99, 7)), "nobody has resumed");
        assert!(!shown.leads_to(next(99, 6)), "an older copy");
    }
}
