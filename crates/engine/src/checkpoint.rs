//! Checkpoint: a copy of the database that shares its tables by hard links.
//!
//! The target gets its tables first, then a manifest and the empty log of a
//! clean close, and CURRENT last: a target that is not complete is refused
//! by open (rule R1). The source is only read, after a flush. A checkpoint that
//! fails removes the files that it made, so that it can be tried again.
//!
//! A follower cannot flush. Its checkpoint has a log with the records of the source's logs, as far
//! as it read them, and an open replays that log. The log is the copy's own, since the source's
//! logs cross-check a manifest that is not in the copy. The copy is opened before it counts as
//! made.
//!
//! Where the file system has no links, tables are copied, and each block is compared with its checksum: damage to the
//! source, or a bad read, fails the checkpoint. A link shares the bytes with the source, damage among them.
//!
//! Owns: the order in which the files of a copy are made, and their removal after a failure.
//! Never does: change the source, except by a flush, or remove a file that it did not make.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, FileNumber, Result, SeqNo};
use windrow_env::Env;
use windrow_env::fs::{ReadFileOptions, WriteFile, WriteOptions, is_taken};
use windrow_env::sync::atomic::Ordering;
use windrow_format::current::Current;
use windrow_format::names;
use windrow_format::table::PieceReader;
use windrow_plan::tree::File;
use windrow_read::events::Event;
use windrow_read::read::view::ReadView;
use windrow_recover::database::Database;
use windrow_recover::log::log_copy::{Batches, Copied, LogCopy, TakeCopied};
use windrow_store::host::database_directory::enter;
use windrow_store::host::workers::Kick;
use windrow_store::manifest::log::{InForce, ManifestLog, set_current};
use windrow_store::manifest::record::{Field, ManifestRecord};
use windrow_store::manifest::state::ManifestState;
use windrow_store::tree::Tree;
use windrow_store::write::segments::{EMPTY_BYTES, NewWal};
use windrow_store::write::wal::Wal;

/// The bytes copied at a time where links are not supported.
const COPY_BYTES: u64 = 1 << 20;

/// The name of such a copy in errors.
const CHECKPOINT: &str = "a checkpoint";

/// Copies the database as it is now into `target`.
pub(crate) fn checkpoint(database: &Database, target: &Path) -> Result<()> {
    database.write_state.check()?;
    let mut copy = Copy::begin(&database.env, target, CHECKPOINT)?;
    copy.fill(database).inspect_err(|_| copy.remove())
}

/// A database that another process has open, as far as a follower has read it.
pub(crate) struct Followed<'a> {
    pub(crate) env: &'a Env,
    pub(crate) dir: &'a Path,
    pub(crate) database_uid: u64,
    pub(crate) state: ManifestState,
    /// The last sequence number that is part of it.
    pub(crate) last_seq: SeqNo,
    /// The last log that was read, and how far.
    pub(crate) log_end: Option<(FileNumber, u64)>,
}

/// Copies the database as a follower has read it into `target`. The caller keeps its files, and
/// opens the copy, once it is there, with `check`.
pub(crate) fn of_follower(
    followed: Followed<'_>,
    target: &Path,
    check: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let mut copy = Copy::begin(followed.env, target, CHECKPOINT)?;
    let filled = copy.fill_followed(&followed);
    filled.and_then(|()| check(target)).inspect_err(|_| copy.remove())
}

impl Followed<'_> {
    /// Returns the state of a copy, the numbers of the copy's files, and the end of the source's
    /// records that the copy's log must have; `None` where all of them are in tables.
    pub(crate) fn copied(&self) -> (ManifestState, Numbers, Option<(FileNumber, u64)>) {
        let mut state = self.state.clone();
        let is_in_force = |(log, _): &(FileNumber, u64)| {
            state.clean_close.is_none() && state.wals.contains_key(log)
        };
        let Some(log_end) = self.log_end.filter(is_in_force) else {
            let (state, numbers) = self.closed();
            return (state, numbers, None);
        };
        state.without_changes();
        let number_max = self.number_max();
        let numbers = Numbers { manifest: number_max, wal: number_max + 1 };
        state.wals.clear();
        state.log_number = numbers.wal;
        state.next_file = number_max + 2;
        (state, numbers, Some(log_end))
    }

    /// Returns the state and the numbers of a copy with all entries in tables.
    pub(crate) fn closed(&self) -> (ManifestState, Numbers) {
        let mut state = self.state.clone();
        state.last_seq = state.last_seq.max(self.last_seq);
        let numbers = close_state(&mut state, self.number_max());
        (state, numbers)
    }

    fn number_max(&self) -> FileNumber {
        let tables = self.state.live_tables().last().copied().unwrap_or(0);
        self.state.next_file.max(tables + 1)
    }

    /// Hands over the batches of the source's logs, up to where they were read.
    ///
    /// # Errors
    /// `Corruption` where the logs lack batches that were read; `Io`.
    pub(crate) fn batches(&self, log_end: (FileNumber, u64), to: TakeCopied<'_>) -> Result<()> {
        let mut batches = Batches::from(self.state.log_first_seq.max(1));
        for (&number, known) in self.state.wals.range(..=log_end.0) {
            let end = if number == log_end.0 { log_end.1 } else { u64::MAX };
            batches.take((&*self.env.fs, self.dir), (number, known), end, to)?;
        }
        batches.finish(self.last_seq)
    }
}

/// Checks that a copy finds nothing in its directory.
///
/// # Errors
/// `InvalidArgument`; `Io`.
pub(crate) fn check_empty(env: &Env, target: &Path, what: &str) -> Result<()> {
    if env.fs.exists(target)? && !env.fs.list(target)?.is_empty() {
        return Err(Error::invalid(format!(
            "{} is not empty: {what} needs a directory of its own",
            target.display()
        )));
    }
    Ok(())
}

/// Returns the manifest's state when its tables hold all that was written up to one moment, in
/// every keyspace, and nothing later (P3), and the views that pin these tables. To flush keyspace
/// by keyspace while writes go on would not do: a batch could be in the tables of one and not in
/// those of another.
pub(crate) fn one_moment(database: &Database) -> Result<(ManifestState, Vec<Arc<ReadView>>)> {
    let _one = database.checkpointing.lock();
    let through = freeze_all(database)?;
    let _held = HeldFlushes(database);
    database.workers.kick(Kick::RetryNow);
    database.wait_until(|| {
        if let Err(error) =
            database.write_state.check().and_then(|()| database.workers.check_open())
        {
            return Some(Err(error));
        }
        let later =
            |tree: &Arc<Tree>| tree.view().frozen.last().is_none_or(|m| through < m.last_seq());
        if database.trees().iter().all(later) {
            return Some(Ok(()));
        }
        database.pipeline.stuck_flush().map(Err)
    })?;
    let catalog = database.catalog.lock();
    // A close flushes the memtables that were held, and installs them under this lock.
    database.workers.check_open()?;
    // Views are installed under the manifest's lock: these agree with the state.
    let views = database.trees().iter().map(|tree| tree.pin()).collect();
    Ok((catalog.state().clone(), views))
}

/// Freezes every keyspace's memtable at one sequence number, and holds flushes of later memtables.
/// Returns that number.
fn freeze_all(database: &Database) -> Result<SeqNo> {
    database.write_state.check()?;
    let mut queue = database.pipeline.queue().lock();
    database.workers.check_open()?;
    if queue.unflushed.active().len() > 0 {
        // The log goes on in the next segment, if there is one.
        database.pipeline.segments.rotate(&mut queue);
        queue.freeze_all();
    }
    let through = queue.last_seq();
    database.jobs.flush_through.store(through, Ordering::Release);
    Ok(through)
}

/// Lets held flushes go on, whatever became of the checkpoint.
struct HeldFlushes<'a>(&'a Database);

impl Drop for HeldFlushes<'_> {
    fn drop(&mut self) {
        self.0.jobs.flush_through.store(SeqNo::MAX, Ordering::Release);
        self.0.workers.kick(Kick::MayBeDue);
        self.0.note_progress();
    }
}

/// The numbers of a copy's manifest and log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) manifest: FileNumber,
    pub(crate) wal: FileNumber,
}

/// Makes a state that of a closed database with an empty log. Writes that are in logs and in no
/// table are left out: the sequence numbers of the copy end where its tables do.
pub(crate) fn close_state(state: &mut ManifestState, number_max: FileNumber) -> Numbers {
    let numbers = Numbers { manifest: number_max, wal: number_max + 1 };
    let through = state.keyspaces.values().map(|k| k.version.flushed_through).max();
    state.last_seq = through.unwrap_or(0).max(state.last_seq);
    state.log_number = numbers.wal;
    state.log_first_seq = state.last_seq + 1;
    state.wals.clear();
    state.without_changes();
    state.next_file = number_max + 2;
    numbers
}

/// A copy being made. Its directory and the source's are held open.
pub(crate) struct Copy {
    env: Env,
    dir: PathBuf,
    /// Files in it that this checkpoint made, or may have made.
    made: Vec<String>,
    /// The contents that the checkpoint gave CURRENT, or may have given it.
    current: Option<Current>,
    /// Whether the directory is new as well.
    made_dir: bool,
}

/// Where a file is copied from.
struct CopySource<'a> {
    dir: &'a Path,
    /// Whether the copy may go on.
    check: &'a dyn Fn() -> Result<()>,
}

/// The tables that were put into a copy, and their bytes by the way it was done.
#[derive(Default)]
struct Linked {
    files: u64,
    linked_bytes: u64,
    copied_bytes: u64,
}

impl Copy {
    /// Begins a copy in a directory that is empty or not there yet. The error for any other
    /// directory names the kind of copy, `what`.
    pub(crate) fn begin(env: &Env, target: &Path, what: &str) -> Result<Copy> {
        let target = &env.fs.absolute(target)?;
        check_empty(env, target, what)?;
        let made_dir = !env.fs.exists(target)?;
        env.fs.create_dir(target)?;
        let (env, dir) = enter(env, target)?;
        Ok(Copy { env, dir, made: Vec::new(), current: None, made_dir })
    }

    fn fill(&mut self, database: &Database) -> Result<()> {
        // A close waits for the copy, which gives up at the next file.
        let _underway = database.workers.begin()?;
        // The views keep every table alive until it is linked.
        let (mut state, _views) = one_moment(database)?;
        let check = || database.workers.check_open();
        let linked = self.link_tables(&CopySource { dir: &database.dir, check: &check }, &state)?;
        let number_max = database.next_file.load(Ordering::Relaxed);
        self.write_metadata(database.database_uid, number_max, &mut state)?;
        let Linked { files, linked_bytes, copied_bytes } = linked;
        database.events.send_with(|| Event::CheckpointCreated {
            files,
            linked_bytes,
            copied_bytes,
        });
        Ok(())
    }

    fn fill_followed(&mut self, followed: &Followed<'_>) -> Result<()> {
        let source = CopySource { dir: followed.dir, check: &|| Ok(()) };
        self.link_tables(&source, &followed.state)?;
        let (state, numbers, log_end) = followed.copied();
        let Some(log_end) = log_end else {
            return self.write_closed(followed.database_uid, numbers, &state.snapshot());
        };
        let mut log = self.begin_manifest(numbers.manifest, &state.snapshot())?;
        let wal = self.new_wal(numbers.wal, log.in_force(), EMPTY_BYTES)?;
        let mut copy = LogCopy::new(&wal);
        followed.batches(log_end, &mut |part| match part {
            Copied::Batch(payload) => copy.append(payload),
            Copied::Time(_) => Ok(()),
        })?;
        let bytes = copy.finish()?;
        log.append(&ManifestRecord(vec![
            wal.added(),
            Field::WalSynced { number: numbers.wal, bytes },
        ]))?;
        self.end_manifest(log, numbers.manifest, followed.database_uid)
    }

    /// Makes a log of the copy's own.
    pub(crate) fn new_wal(
        &mut self,
        number: FileNumber,
        manifest: InForce,
        capacity_bytes: u64,
    ) -> Result<Wal> {
        let (env, dir) = (self.env.clone(), self.dir.clone());
        let wal = NewWal { env: &env, dir: &dir, number, manifest, capacity_bytes };
        self.note(names::wal(number), wal.create())
    }

    /// Puts every table of a state into the target.
    fn link_tables(&mut self, source: &CopySource<'_>, state: &ManifestState) -> Result<Linked> {
        let mut linked = Linked::default();
        for keyspace in state.keyspaces.values() {
            for (_, _, file) in keyspace.version.files() {
                linked.files += 1;
                (source.check)()?;
                if self.link_or_copy(source, file)? {
                    linked.linked_bytes += file.bytes;
                } else {
                    linked.copied_bytes += file.bytes;
                }
            }
        }
        self.env.fs.sync_dir(&self.dir)?;
        Ok(linked)
    }

    /// Notes that a file was made, or may have been. A file that was there before is another's.
    fn note<T>(&mut self, name: String, made: Result<T>) -> Result<T> {
        let nothing = |e: &Error| is_taken(e) || e.kind() == ErrorKind::NotSupported;
        if !made.as_ref().is_err_and(nothing) {
            self.made.push(name);
        }
        made
    }

    /// Links a table into the target, or copies it where links are not supported.
    /// Returns whether it was linked.
    ///
    /// A link that failed for another reason may be there nevertheless.
    fn link_or_copy(&mut self, source: &CopySource<'_>, table: &File) -> Result<bool> {
        let name = names::table(table.number);
        let linked = self.env.fs.link(&source.dir.join(&name), &self.dir.join(&name));
        match self.note(name.clone(), linked) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == ErrorKind::NotSupported => {}
            Err(e) => return Err(e),
        }
        self.copy_table(source, name, table)?;
        Ok(false)
    }

    /// Copies a table, and waits until it is on the device.
    fn copy_table(&mut self, source: &CopySource<'_>, name: String, table: &File) -> Result<()> {
        let file = self.env.fs.open(&source.dir.join(&name), ReadFileOptions::default())?;
        let mut pieces = PieceReader::new(file, table.uid, table.bytes)?;
        let mut copy = self.create(name)?;
        while pieces.next_bytes(COPY_BYTES) > 0 {
            copy.append(pieces.read(COPY_BYTES)?)?;
        }
        copy.finish()
    }

    /// Makes a file of the copy.
    pub(crate) fn create(&mut self, name: String) -> Result<Box<dyn WriteFile>> {
        let made = self.env.fs.create(&self.dir.join(&name), WriteOptions::default());
        self.note(name, made)
    }

    /// Makes the names of its files durable.
    pub(crate) fn sync_names(&self) -> Result<()> {
        self.env.fs.sync_dir(&self.dir)
    }

    /// Writes manifest, empty log and CURRENT, in the form that a clean close leaves.
    fn write_metadata(
        &mut self,
        database_uid: u64,
        number_max: FileNumber,
        state: &mut ManifestState,
    ) -> Result<()> {
        let numbers = close_state(state, number_max);
        self.write_closed(database_uid, numbers, &state.snapshot())
    }

    /// Writes that form with a given first record of the manifest.
    pub(crate) fn write_closed(
        &mut self,
        database_uid: u64,
        numbers: Numbers,
        manifest: &ManifestRecord,
    ) -> Result<()> {
        let mut log = self.begin_manifest(numbers.manifest, manifest)?;
        let wal = self.new_wal(numbers.wal, log.in_force(), EMPTY_BYTES)?;
        log.append(&ManifestRecord(vec![
            wal.added(),
            Field::CleanClose { wal: numbers.wal, bytes: EMPTY_BYTES },
        ]))?;
        self.end_manifest(log, numbers.manifest, database_uid)
    }

    pub(crate) fn begin_manifest(
        &mut self,
        number: FileNumber,
        manifest: &ManifestRecord,
    ) -> Result<ManifestLog> {
        let made = ManifestLog::create(&self.env, &self.dir, number, manifest);
        self.note(names::manifest(number), made)
    }

    /// Finishes the manifest, and has CURRENT name it.
    pub(crate) fn end_manifest(
        &mut self,
        mut log: ManifestLog,
        number: FileNumber,
        database_uid: u64,
    ) -> Result<()> {
        log.finish()?;
        let current = log.current(database_uid);
        let set = set_current(&self.env, &self.dir, &current);
        self.current = Some(current);
        self.note(names::temp(number), set)
    }

    /// Removes the files that were made, CURRENT first: if that is cut short, the rest is no
    /// database. The error to report is the copy's own.
    pub(crate) fn remove(&self) {
        let current = self.dir.join(names::CURRENT);
        let encoded = self.current.as_ref().map(Current::encode);
        if encoded.is_some() && self.env.fs.read_all(&current).ok() == encoded {
            let _ = self.env.fs.remove(&current);
        }
        for name in self.made.iter().rev() {
            let _ = self.env.fs.remove(&self.dir.join(name));
        }
        let _ = self.env.fs.sync_dir(&self.dir);
        if self.made_dir {
            let _ = self.env.fs.remove_dir(&self.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Components, Db, Follower, Options};
    use windrow_env::testing::{Fault, FaultKind, Ops, When, env};

    #[test]
    fn a_failed_link_leaves_the_source_whole() {
        for seed in 0..8 {
            let (env, handles) = env(seed);
            let components = Components { env: Some(env), ..Components::default() };
            let options = Options { components, ..Options::default() };
            let db = Db::open_with("/db", options).expect("a new database");
            db.put("a", "1").expect("a write");
            db.flush().expect("a table");
            // The link may be there although the call says it failed.
            handles.fs.inject(Fault::new(FaultKind::Io, Ops::LINK, When::Matching(0)));
            assert_eq!(db.checkpoint("/copy").expect_err("no link").kind(), ErrorKind::Io);
            db.verify().and_then(|report| report.into_result()).expect("whole tables");
            db.checkpoint("/copy").expect("the fault is gone");
        }
    }

    /// Each operation on the target fails in turn, and may have been done nevertheless.
    #[test]
    fn a_checkpoint_that_fails_leaves_nothing_and_can_be_tried_again() {
        let (target, mut failures) = (Path::new("/copy"), 0);
        for case in 0u64.. {
            let (env, handles) = env(case);
            let open = |dir: &str, env: &Env| {
                let components = Components { env: Some(env.clone()), ..Components::default() };
                Db::open_with(dir, Options { components, ..Options::default() })
            };
            let db = open("/db", &env).expect("a new database");
            for key in ["a", "b"] {
                db.put(key, "1").expect("a write");
                db.flush().expect("a table");
            }
            let there = case % 2 == 0;
            if there {
                env.fs.create_dir(target).expect("a directory of the user's");
            }
            let when = When::Matching(case / 4);
            let fault = Fault::new(FaultKind::Io, Ops::MUTATING, when).on_path("/copy");
            let fault = handles.fs.inject(fault);
            let made = db.checkpoint(target);
            handles.fs.remove_fault(fault);
            if made.is_err() {
                failures += 1;
                assert_eq!(handles.fs.files(target), [""; 0], "case {case}: {made:?}");
                // A directory whose creation failed may be there nevertheless.
                let exists = env.fs.exists(target).expect("a look");
                assert!(exists == there || case / 4 == 0, "case {case}");
                db.checkpoint(target).expect("nothing is in the way");
            }
            let copy = open("/copy", &env).expect("a whole copy");
            assert_eq!(copy.iter().count(), 2, "case {case}");
            drop(copy);
            db.verify().and_then(|report| report.into_result()).expect("a whole source");
            if made.is_ok() {
                assert!(failures > 40, "{failures}");
                return;
            }
        }
    }

    /// Where there are no links, no damaged byte of a table is copied: one that is changed on the
    /// device, or by a read.
    #[test]
    fn a_checkpoint_by_copies_takes_no_damage_along() {
        let (target, (env, handles)) = (Path::new("/copy"), env(1));
        let components = Components { env: Some(env.clone()), ..Components::default() };
        let options = Options { components, ..Options::default() };
        let db = Db::open_with("/db", options.clone()).expect("a new database");
        (0..40u8).for_each(|key| db.put([key], [key; 20]).expect("a write"));
        db.flush().expect("a table");
        let follower = Follower::open_with("/db", options.clone()).expect("a database");
        let files = handles.fs.files(Path::new("/db"));
        let table = files.iter().find(|name| name.ends_with(".sst")).expect("a table");
        handles.fs.inject(Fault::new(FaultKind::NotSupported, Ops::LINK, When::MatchingFrom(0)));
        let refuses = |made: Result<()>, case: &str| {
            let refused = made.expect_err(case);
            let names = refused.to_string().contains(table);
            assert!(refused.is_corruption() && names, "{case}: {refused}");
            assert!(!env.fs.exists(target).expect("a look"), "{case}");
        };
        let path = Path::new("/db").join(table);
        for at in 0..env.fs.len(&path).expect("its length") {
            handles.fs.flip(&path, at, 1);
            refuses(db.checkpoint(target), &format!("byte {at}"));
            refuses(follower.checkpoint(target), &format!("byte {at}, by a follower"));
            handles.fs.flip(&path, at, 1);
        }
        for read in 0.. {
            let bad = Fault::new(FaultKind::FlipBit, Ops::READ, When::Matching(read));
            let bad = handles.fs.inject(bad.on_path(".sst"));
            let made = db.checkpoint(target);
            handles.fs.remove_fault(bad);
            if made.is_ok() {
                assert!(read > 2, "{read} reads were bad");
                break;
            }
            refuses(made, &format!("read {read}"));
        }
        let copy = Db::open_with(target, options).expect("a whole copy");
        assert_eq!(copy.iter().count(), 40);
        copy.verify().and_then(|report| report.into_result()).expect("a sound copy");
    }

    /// Files that somebody else puts into the directory meanwhile are not removed.
    #[test]
    fn a_checkpoint_that_fails_removes_nothing_of_others() {
        let (env, handles) = env(1);
        let components = Components { env: Some(env), ..Components::default() };
        let db = Db::open_with("/db", Options { components, ..Options::default() }).expect("a new");
        db.put("a", "1").expect("a write");
        db.flush().expect("a table");
        let table = db
            .database()
            .trees()
            .iter()
            .next()
            .expect("one")
            .version()
            .files()
            .next()
            .expect("a table")
            .2
            .number;
        let fs = handles.fs.clone();
        let put = |name: String| fs.write_file(&Path::new("/copy").join(name), b"another's");
        let (_, views) = one_moment(db.database()).expect("a moment");
        drop(views);
        let env = db.database().env.clone();
        env.fs.create_dir(Path::new("/copy")).expect("a directory");
        let (env, dir) = enter(&env, Path::new("/copy")).expect("a directory");
        let mut copy = Copy { env, dir, made: Vec::new(), current: None, made_dir: true };
        put(names::table(table));
        put("notes".to_owned());
        assert!(copy.fill(db.database()).is_err(), "the name is taken");
        copy.remove();
        let left = handles.fs.files(Path::new("/copy"));
        assert_eq!(left, [names::table(table), "notes".to_owned()]);
    }
}
