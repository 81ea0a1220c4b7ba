//! Making a backup: of an open database, or of the state that a follower has read.
//!
//! Owns: the order in which objects are stored: tables and logs, then the record. Never does: remove an
//! object.

use super::kept::{backup_numbers, read_record};
use super::log_part;
use super::moments::{Archive, ChangeLog, Earlier};
use super::names;
use super::pace::CopyPace;
use super::record::{BackedUpTable, BackupChanges, Contents, HistoryPlace};
use super::sum::Sum;
use super::target::BackupTarget;
use crate::checkpoint::{Followed, Numbers, close_state, one_moment};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, FileNumber, FileUid, Result, SeqNo};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_env::sync::atomic::Ordering;
use windrow_format::names as files;
use windrow_format::table::PieceReader;
use windrow_read::cache::TableHandle;
use windrow_read::events::Event;
use windrow_recover::database::Database;
use windrow_store::manifest::state::{ManifestState, WalState};
use windrow_store::write::wal::Wal;

/// How a backup is made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct BackupOptions {
    /// The most bytes that are copied each second; 0: no limit.
    pub bytes_per_second: u64,
}

/// A backup that was made, with the bytes that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackedUp {
    /// Its number in the target.
    pub number: u64,
    /// The number of its tables.
    pub tables: u64,
    /// Bytes of its tables and its log.
    pub bytes: u64,
    /// The number of tables that the target lacked.
    pub copied_tables: u64,
    /// Bytes of these tables, and of the log.
    pub copied_bytes: u64,
    /// The sequence number of the last write that it has.
    pub seq: SeqNo,
    /// The changes since an earlier backup, where the database keeps changes (`changes_bytes`) and its
    /// logs have those that come next.
    pub changes: Option<BackupChanges>,
}

/// Backs a database up as it is now.
///
/// # Errors
/// Errors of the database and of the target. The target then has the same backups as before; only if
/// the last step failed there may be one more, a whole one.
pub(crate) fn backup(
    database: &Database,
    target: &dyn BackupTarget,
    options: BackupOptions,
) -> Result<BackedUp> {
    let _claim = target.claim()?;
    let known = Known::of(target, database.database_uid)?;
    let Pinned { state, numbers, mut pins, archive } = pinned_moment(database)?;
    let check = || database.workers.check_open();
    let source = TableSource {
        env: &database.env,
        dir: &database.dir,
        database_uid: database.database_uid,
        direct: database.settings.direct_io,
    };
    let mut pace = CopyPace::new(database.env.clock.clone(), options.bytes_per_second, &check);
    // Changes first: logs are kept for nobody.
    let place = source.store_changes(target, &known, (&archive, state.last_seq), &mut pace)?;
    let tables = source.store_tables(target, &known, &state, (&mut pins, &mut pace))?;
    let objects = Objects { tables, log: Vec::new(), place };
    let done = source.store_record(target, &known, (&state, numbers), objects)?;
    database.events.send_with(|| Event::BackupCreated {
        number: done.number,
        tables: done.tables,
        copied_bytes: done.copied_bytes,
    });
    Ok(done)
}

/// The moment that a backup shows.
struct Pinned {
    /// The state to back up.
    state: ManifestState,
    /// The numbers for the files of a copy.
    numbers: Numbers,
    pins: Pins,
    archive: Archive,
}

/// Returns the state to back up, with handles of its tables.
///
/// Nothing is under way once this returns: the copy may take hours, and neither a resume nor a close
/// may wait for it. A close leaves tables that have a handle to the next open. After every look
/// for one the copy asks whether the database is still open, so that it reads nobody else's.
fn pinned_moment(database: &Database) -> Result<Pinned> {
    let _underway = database.workers.begin()?;
    let (mut state, views) = one_moment(database)?;
    // A handle keeps its table. The views go, and with them their memtables.
    let tables = views.iter().flat_map(|view| &view.levels).flat_map(|level| level.files());
    let pins = tables.map(|file| (file.file.number, file.table.clone())).collect();
    let numbers = close_state(&mut state, database.next_file.load(Ordering::Relaxed));
    // Those in use first: one that leaves them is among the kept ones before.
    let in_use = logs_in_use(database);
    let archive = Archive::of(database.catalog.state(), in_use);
    Ok(Pinned { state, numbers, pins, archive })
}

/// The logs that are written, up to where they count.
fn logs_in_use(database: &Database) -> Vec<ChangeLog> {
    let queue = database.pipeline.queue().lock();
    let older = queue.older_wals.iter().map(|(wal, first_seq)| (wal, *first_seq));
    let log = |(wal, first_seq): (&Arc<Wal>, SeqNo)| {
        ChangeLog::in_use(wal.number, wal.uid, Some(first_seq), wal.written())
    };
    older.chain([(&queue.wal, queue.wal_first_seq)]).map(log).collect()
}

/// The logs that a follower has read.
fn logs_of_follower(state: &ManifestState, log_end: Option<(FileNumber, u64)>) -> Vec<ChangeLog> {
    let Some((last, end)) = log_end.filter(|_| state.clean_close.is_none()) else {
        return Vec::new();
    };
    let log = |(&number, wal): (&FileNumber, &WalState)| {
        let first_seq = (number == state.log_number).then_some(state.log_first_seq);
        let end = if number == last { end } else { u64::MAX };
        ChangeLog::in_use(number, wal.uid, first_seq, end)
    };
    let in_force = state.wals.range(state.log_number..);
    in_force.take_while(|(number, _)| **number <= last).map(log).collect()
}

/// Backs up what a follower has read of a database. The caller keeps its files.
///
/// # Errors
/// As [`backup`].
pub(crate) fn of_follower(
    followed: &Followed<'_>,
    target: &dyn BackupTarget,
    options: BackupOptions,
) -> Result<BackedUp> {
    let _claim = target.claim()?;
    let known = Known::of(target, followed.database_uid)?;
    let (state, numbers, log_end) = followed.copied();
    let source = TableSource {
        env: followed.env,
        dir: followed.dir,
        database_uid: followed.database_uid,
        direct: false,
    };
    let mut pace = CopyPace::new(followed.env.clock.clone(), options.bytes_per_second, &|| Ok(()));
    let archive =
        Archive::of(followed.state.clone(), logs_of_follower(&followed.state, followed.log_end));
    let seq = followed.state.last_seq.max(followed.last_seq);
    let place = source.store_changes(target, &known, (&archive, seq), &mut pace)?;
    // The log first: the lease that keeps the logs keeps the tables as well.
    let log = log_end
        .map(|end| log_part::store(target, known.next, followed, end, &mut pace))
        .transpose()?
        .unwrap_or_default();
    // Logs with no batch: a restore makes what a close would leave.
    let (state, numbers) = if log.is_empty() { followed.closed() } else { (state, numbers) };
    let tables = source.store_tables(target, &known, &state, (&mut Pins::new(), &mut pace))?;
    source.store_record(target, &known, (&state, numbers), Objects { tables, log, place })
}

/// Handles of tables, which keep their files.
type Pins = BTreeMap<FileNumber, Arc<TableHandle>>;

/// The objects of a target.
struct Known {
    /// The number of the next backup.
    next: u64,
    /// Tables that backups name.
    tables: BTreeMap<FileUid, Sum>,
    /// The length of each object in the folder of tables.
    there: BTreeMap<String, u64>,
    /// The newest backup whose record can be read, if changes can go on from it.
    earlier: Option<Earlier>,
}

impl Known {
    /// Reads which objects of this database a target has.
    ///
    /// # Errors
    /// `InvalidArgument` if it has backups of another one; errors of the target.
    fn of(target: &dyn BackupTarget, database_uid: u64) -> Result<Known> {
        let (mut next, mut tables, mut earlier) = (1, BTreeMap::new(), None);
        let stored = target.list(names::TABLES)?.into_iter();
        let there = stored.map(|stored| (stored.name, stored.bytes)).collect();
        for number in backup_numbers(target)? {
            next = number + 1;
            let contents = match read_record(target, number) {
                Ok(contents) => contents,
                // Damage to another backup does not prevent this one.
                Err(error) if error.is_corruption() => continue,
                Err(error) => return Err(error),
            };
            if contents.database_uid != database_uid {
                return Err(Error::invalid(format!(
                    "backup {number} is of another database ({:016x}, and this is {database_uid:016x}): \
                     each needs a place of its own for its backups",
                    contents.database_uid
                )));
            }
            tables.extend(contents.tables.iter().map(|table| (table.uid, table.sum)));
            earlier = contents.place.and_then(|HistoryPlace { seq, session, .. }| {
                Some(Earlier { number, seq, session: session? })
            });
        }
        Ok(Known { next, tables, there, earlier })
    }

    /// Returns the checksum of a table, if the table is there whole and a backup names it.
    fn sum_of(&self, uid: FileUid, bytes: u64) -> Option<Sum> {
        let sum = self.tables.get(&uid).filter(|sum| sum.bytes == bytes)?;
        self.has(uid, bytes).then_some(*sum)
    }

    /// Whether the target has a table. If its length is another one, it was damaged, and is stored
    /// again.
    fn has(&self, uid: FileUid, bytes: u64) -> bool {
        self.there.get(&names::table(uid)) == Some(&bytes)
    }
}

/// Tables of a backup, and which of them were copied.
#[derive(Default)]
struct BackupTables {
    list: Vec<BackedUpTable>,
    copied: u64,
    copied_bytes: u64,
}

/// The objects of a backup, with its place in the history of the database.
struct Objects {
    tables: BackupTables,
    log: Vec<Sum>,
    place: HistoryPlace,
}

/// The source of tables.
struct TableSource<'a> {
    env: &'a Env,
    dir: &'a Path,
    database_uid: u64,
    /// Whether its files are read past the page cache.
    direct: bool,
}

impl TableSource<'_> {
    /// Stores the changes since the newest backup, as far as there are logs of them.
    fn store_changes(
        &self,
        target: &dyn BackupTarget,
        known: &Known,
        (archive, seq): (&Archive, SeqNo),
        pace: &mut CopyPace<'_>,
    ) -> Result<HistoryPlace> {
        let backup = (known.next, known.earlier, seq);
        archive.store((self.env, self.dir), target, backup, pace)
    }

    /// Stores the tables of a state that the target lacks.
    fn store_tables(
        &self,
        target: &dyn BackupTarget,
        known: &Known,
        state: &ManifestState,
        (pins, pace): (&mut Pins, &mut CopyPace<'_>),
    ) -> Result<BackupTables> {
        let tables = state.keyspaces.values().flat_map(|keyspace| keyspace.version.files());
        let tables: BTreeMap<_, _> =
            tables.map(|(_, _, file)| (file.number, (file.uid, file.bytes))).collect();
        let mut stored = BackupTables::default();
        for (number, (uid, bytes)) in tables {
            let sum = match known.sum_of(uid, bytes) {
                Some(sum) => sum,
                // An earlier backup was cut short after it stored this table. The record gets the
                // source's checksum, so that a difference is noticed.
                None if known.has(uid, bytes) => {
                    let mut reading = self.open((number, uid, bytes), pace)?;
                    while reading.next_pieces()? {}
                    reading.sum
                }
                None => {
                    let sum = self.copy(target, (number, uid, bytes), pace)?;
                    stored.copied += 1;
                    stored.copied_bytes += bytes;
                    sum
                }
            };
            stored.list.push(BackedUpTable { number, uid, sum });
            // The source's table may go: the target has it.
            drop(pins.remove(&number));
        }
        Ok(stored)
    }

    /// Stores the record: from here on there is a backup.
    fn store_record(
        &self,
        target: &dyn BackupTarget,
        known: &Known,
        (state, numbers): (&ManifestState, Numbers),
        Objects { tables, log, place }: Objects,
    ) -> Result<BackedUp> {
        let log_bytes: u64 = log.iter().map(|part| part.bytes).sum();
        let contents = Contents {
            number: known.next,
            made_ms: self.env.clock.wall_ms(),
            database_uid: self.database_uid,
            manifest_number: numbers.manifest,
            log_number: numbers.wal,
            log,
            tables: tables.list,
            manifest: state.snapshot(),
            place: Some(place),
        };
        target.put(&names::record(known.next), &mut contents.encode().as_slice())?;
        let told = contents.told();
        Ok(BackedUp {
            number: told.number,
            tables: told.tables,
            bytes: told.bytes,
            copied_tables: tables.copied,
            copied_bytes: tables.copied_bytes + log_bytes,
            seq: told.seq.unwrap_or(0),
            changes: told.changes,
        })
    }

    /// Opens a table, which must be as long as the manifest says.
    fn open<'p, 'c>(
        &self,
        (number, uid, bytes): (FileNumber, FileUid, u64),
        pace: &'p mut CopyPace<'c>,
    ) -> Result<TableReading<'p, 'c>> {
        let path = self.dir.join(files::table(number));
        let opened = self.env.fs.open(&path, ReadFileOptions { direct: self.direct });
        pace.wait_for(0)?;
        let pieces = PieceReader::new(opened?, uid, bytes)?;
        Ok(TableReading { pieces, sum: Sum::default(), taken: 0, pace, failed: None })
    }

    fn copy(
        &self,
        target: &dyn BackupTarget,
        (number, uid, bytes): (FileNumber, FileUid, u64),
        pace: &mut CopyPace<'_>,
    ) -> Result<Sum> {
        let mut reading = self.open((number, uid, bytes), pace)?;
        let put = target.put(&names::table(uid), &mut reading);
        // The target may have wrapped an error of the source in one of its own.
        reading.failed.take().map_or(put, Err)?;
        let left = bytes - reading.sum.bytes + reading.waiting().len() as u64;
        if left > 0 {
            let text = format!("the target left {left} of the {bytes} bytes of table {number}");
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(reading.sum)
    }
}

/// A table that is read from its beginning, as a target takes it.
struct TableReading<'p, 'c> {
    pieces: PieceReader,
    /// The checksum of all pieces so far, those that were not taken yet among them.
    sum: Sum,
    /// How much of the last pieces was taken.
    taken: usize,
    pace: &'p mut CopyPace<'c>,
    /// The error that ended reading.
    failed: Option<Error>,
}

impl TableReading<'_, '_> {
    /// Reads the next pieces. Returns whether there are any.
    fn next_pieces(&mut self) -> Result<bool> {
        let bytes_max = self.pace.piece_bytes();
        let bytes = self.pieces.next_bytes(bytes_max);
        if bytes > 0 {
            self.pace.wait_for(bytes)?;
        }
        self.taken = 0;
        self.sum.add(self.pieces.read(bytes_max)?);
        Ok(bytes > 0)
    }

    /// Returns the bytes that were read, and not taken yet.
    fn waiting(&self) -> &[u8] {
        &self.pieces.last()[self.taken..]
    }

    fn read_on(&mut self, buf: &mut [u8]) -> Result<usize> {
        if self.waiting().is_empty() && !self.next_pieces()? {
            return Ok(0);
        }
        let len = buf.len().min(self.waiting().len());
        buf[..len].copy_from_slice(&self.waiting()[..len]);
        self.taken += len;
        Ok(len)
    }
}

impl Read for TableReading<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if let Some(failed) = &self.failed {
            return Err(std::io::Error::other(failed.clone()));
        }
        self.read_on(buf).map_err(|error| {
            self.failed = Some(error.clone());
            std::io::Error::other(error)
        })
    }
}
