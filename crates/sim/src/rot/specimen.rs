//! The database under damage: its files after a script and an ending, earlier and foreign versions
//! of those, and the right answers of reads.
//!
//! Owns: the images and the history. Never does: damage or judge.

use super::damage::{Files, Images};
use super::scripts::{Ending, Script};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use windrow::{Db, InKeyspace, Options, inspect};
use windrow_env::fs::ReadFileOptions;
use windrow_env::testing::{
    CrashFs, FileDamage, Handles, NameDamage, PowerLoss, Rng, SeededRandom, env,
};
use windrow_env::{Clock, FileSystem};
use windrow_format::batch;
use windrow_format::log::{Class, FILE_HEADER_BYTES, LogKind, LogReader};
use windrow_format::names;
use windrow_format::table::{Expect, Table};
use windrow_testkit::model::Model;
use windrow_testkit::op::{Change, Op, Pair, Subject};
use windrow_testkit::script;
use windrow_testkit::subject::Database;
use windrow_testkit::text;
use windrow_testkit::variant::Variant;
use windrow_testkit::world::{DIR, World};

/// Seed of the database under damage.
const SEED: u64 = 7;
/// Seed of the other database's identities.
const OTHER_SEED: u64 = 8;
/// Earlier images that are kept: the last ones before the end, and others spread over the session.
const STALE_LAST: usize = 3;
const STALE_SPREAD: usize = 3;

/// All visible entries, per keyspace.
pub(super) type Contents = Vec<(String, Vec<Pair>)>;

/// Counters and operands, by keyspace and key.
type Counters = BTreeMap<(String, Vec<u8>), Vec<i64>>;

/// A record of a write-ahead log.
#[derive(Clone, Debug)]
struct RecordRange {
    place: Range<u64>,
    last_seq: u64,
}

/// The undamaged database and its history.
pub struct Specimen {
    pub(super) handles: Handles,
    pub(super) options: Options,
    pub(super) files: Files,
    stale: Vec<Files>,
    other: Files,
    /// The contents after each sequence number that ends a write.
    pub(super) history: BTreeMap<u64, Contents>,
    /// Every value that a key ever had, by keyspace and key.
    pub(super) seen: BTreeMap<(String, Vec<u8>), BTreeSet<Vec<u8>>>,
    /// Everything up to this sequence number was durable before the last sync.
    promised_seq: u64,
    logs: BTreeMap<String, Vec<RecordRange>>,
    /// Data blocks of each table that is part of the database, by its name.
    blocks: BTreeMap<String, Vec<Range<u64>>>,
    /// Names of the keyspaces, by id.
    pub(super) keyspace_ids: BTreeMap<u32, String>,
    /// Keyspace, first and last key of each table that is part of the database.
    pub(super) hulls: BTreeMap<String, (String, Vec<u8>, Vec<u8>)>,
    /// Operands and counters that were written, by keyspace and key.
    counters: Counters,
}

/// A running session.
struct Session {
    handles: Handles,
    images: Vec<Files>,
    models: Vec<(u64, Model)>,
    durable_seq: u64,
    promised_seq: u64,
}

impl Specimen {
    /// Makes the database.
    ///
    /// # Errors
    /// If an operation fails, or the database does not suit the sweep.
    pub fn new(variant: &Variant, script: &Script) -> Result<Specimen, String> {
        let options = variant.options().map_err(|e| e.to_string())?;
        let session = Session::live(&options, script, SEED)?;
        let other = files_of(&Session::live(&options, script, OTHER_SEED)?.handles.fs);
        let files = files_of(&session.handles.fs);
        let logs = logs_of(&session.handles.fs);
        let tables = files.keys().filter(|name| name.ends_with(".sst")).count();
        if tables < 3 {
            return Err(format!("{tables} tables: {:?}", files.keys()));
        }
        let mut specimen = Specimen {
            handles: session.handles,
            options,
            stale: stale(session.images, &files),
            files,
            other,
            history: BTreeMap::new(),
            seen: BTreeMap::new(),
            promised_seq: session.promised_seq,
            logs,
            blocks: BTreeMap::new(),
            keyspace_ids: BTreeMap::new(),
            hulls: BTreeMap::new(),
            counters: counters_of(script)?,
        };
        specimen.remember(session.models);
        specimen.look().map_err(|e| format!("the undamaged database: {e}"))?;
        Ok(specimen)
    }

    /// Records the tables and keyspaces that an open of the undamaged database shows.
    fn look(&mut self) -> windrow_base::Result<()> {
        let db = self.open(&self.copy())?;
        for name in db.keyspaces() {
            if let Some(keyspace) = db.open_keyspace(&name)? {
                self.keyspace_ids.insert(keyspace.keyspace_id().0, name);
            }
        }
        for (keyspace, version) in inspect::trees(&db) {
            for (_, _, file) in version.files() {
                let (lo, hi) = (file.smallest.to_vec(), file.largest.to_vec());
                let name = names::table(file.number);
                // Tables made by recovery are not in the image.
                if self.files.contains_key(&name) {
                    let (file_bytes, uid) = (file.bytes, file.uid);
                    let expect = Expect { file_bytes, uid, order: version.order.clone() };
                    let blocks = blocks_of(&self.handles.fs, &name, expect)?;
                    self.blocks.insert(name.clone(), blocks);
                }
                self.hulls.insert(name, (keyspace.clone(), lo, hi));
            }
        }
        Ok(())
    }

    /// Whether a key ever had this value, or a part of its operands could give it.
    pub(super) fn was_ever(&self, keyspace: &str, key: &[u8], value: &[u8]) -> bool {
        let place = (keyspace.to_owned(), key.to_vec());
        if self.seen.get(&place).is_some_and(|values| values.contains(value)) {
            return true;
        }
        let (Some(parts), Ok(value)) = (self.counters.get(&place), <[u8; 8]>::try_from(value))
        else {
            return false;
        };
        let sums = |subset: u32| {
            let taken = parts.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
            taken.map(|(_, part)| part).sum::<i64>()
        };
        (1..1u32 << parts.len()).any(|subset| sums(subset) == i64::from_le_bytes(value))
    }

    fn remember(&mut self, models: Vec<(u64, Model)>) {
        let Some((_, last)) = models.last() else { return };
        let (names, now_ms) = (last.keyspaces(), last.now_ms());
        for (seq, mut model) in models {
            for (name, pairs) in model.dump() {
                for (key, value) in pairs {
                    self.seen.entry((name.clone(), key)).or_default().insert(value);
                }
            }
            // As they are read: at the end's time, in the end's keyspaces.
            model.set_now_ms(now_ms);
            let mut dump: BTreeMap<String, Vec<Pair>> = model.dump().into_iter().collect();
            let contents = names.iter().map(|n| (n.clone(), dump.remove(n).unwrap_or_default()));
            self.history.insert(seq, contents.collect());
        }
    }

    /// Returns the files that are damaged, with their lengths in bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.len() as u64))
    }

    /// Returns the bytes of a file; none if there is no such file.
    pub fn bytes(&self, name: &str) -> &[u8] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns all entries that the undamaged database shows.
    pub fn contents(&self) -> &[(String, Vec<Pair>)] {
        self.history.values().last().map_or(&[], Vec::as_slice)
    }

    /// Returns the wall clock's time at the end of its session, in ms since 1970.
    pub fn now_ms(&self) -> u64 {
        self.handles.clock.wall_ms()
    }

    /// Returns the number of earlier images.
    pub fn stale_images(&self) -> usize {
        self.stale.len()
    }

    pub(super) fn images(&self) -> Images<'_> {
        Images { own: &self.files, stale: &self.stale, other: &self.other }
    }

    /// Returns the sequence number that the undamaged database recovers to.
    pub(super) fn last_seq(&self) -> u64 {
        self.history.keys().last().copied().unwrap_or(0)
    }

    /// Returns the least sequence number that may be left if these bytes of a file are damaged.
    /// `None` if nothing may be lost: the damage is outside of the last sync group, or there is no
    /// such group.
    pub(super) fn may_fall_to(&self, file: &str, damaged: &Range<u64>) -> Option<u64> {
        let records = self.logs.get(file)?;
        records.last().filter(|record| record.last_seq > self.promised_seq)?;
        let promised = records.iter().take_while(|record| record.last_seq <= self.promised_seq);
        // Marks are between the records, and are synced with those after them.
        let group_start = promised.last().map_or(FILE_HEADER_BYTES as u64, |r| r.place.end);
        if damaged.end <= group_start {
            return None;
        }
        let older = self.logs.range(..file.to_owned()).flat_map(|(_, records)| records);
        let whole = records.iter().take_while(|record| record.place.end <= damaged.start);
        Some(older.chain(whole).map(|record| record.last_seq).max().unwrap_or(0))
    }

    /// Returns the places of a log's records, to misplace them.
    pub(super) fn log_places(&self, file: &str) -> Vec<Range<u64>> {
        let records = self.logs.get(file).into_iter().flatten();
        records.map(|record| record.place.clone()).collect()
    }

    /// Returns the places of data blocks, to misplace them.
    pub(super) fn block_places(&self) -> &BTreeMap<String, Vec<Range<u64>>> {
        &self.blocks
    }

    /// Opens a copy of the database with these handles.
    pub(super) fn open(&self, handles: &Handles) -> windrow_base::Result<Db> {
        Db::open_with(DIR, self.options_on(handles))
    }

    pub(super) fn options_on(&self, handles: &Handles) -> Options {
        let mut options = self.options.clone();
        options.create_if_missing = false;
        options.components.env = Some(handles.env());
        options
    }

    /// Returns a copy of the files, with jobs of its own.
    pub(super) fn copy(&self) -> Handles {
        Handles { fs: self.handles.fs.fork(), ..self.handles.reborn(1) }
    }
}

impl Session {
    fn live(options: &Options, script: &Script, seed: u64) -> Result<Session, String> {
        let (_, handles) = env(SEED);
        // The session is the same with other identities; all names stay the same.
        let mut draw = Rng::new(seed);
        let random = std::sync::Arc::new(SeededRandom::new(draw.next_u64()));
        let handles = Handles { random, ..handles };
        let world = World::of(handles.env(), handles.clone());
        let mut database =
            Database::open(world, options.clone()).map_err(|e| format!("open: {e}"))?;
        let mut session = Session {
            handles,
            images: Vec::new(),
            models: Vec::new(),
            durable_seq: 0,
            promised_seq: 0,
        };
        let mut model = script::model();
        for mut line in text::parse(&script.text())? {
            if seed == OTHER_SEED {
                tell_apart(&mut line.op);
            }
            let (got, want) = (database.apply(&line.op), model.apply(&line.op));
            if got != want {
                return Err(format!("{}: {got:?}, not {want:?}", text::op_text(&line.op)));
            }
            session.models.push((database.db().snapshot().seq(), model.clone()));
            session.note_durable();
            session.images.push(files_of(&session.handles.fs));
        }
        session.end(database, script.ending)
    }

    /// Records how much a power loss would leave now.
    fn note_durable(&mut self) {
        let fs = self.handles.fs.fork();
        lose_unsynced(&fs);
        let records = logs_of(&fs).into_values().flatten();
        let durable_seq = records.map(|record| record.last_seq).max().unwrap_or(0);
        if durable_seq > self.durable_seq {
            self.promised_seq = self.durable_seq;
            self.durable_seq = durable_seq;
        }
    }

    fn end(mut self, database: Database, ending: Ending) -> Result<Session, String> {
        if ending == Ending::Closed {
            database.db().close().map_err(|e| format!("close: {e}"))?;
        }
        let fs = self.handles.fs.fork();
        match ending {
            Ending::Closed => {}
            Ending::Killed => fs.kill(0),
            Ending::PowerLoss => lose_unsynced(&fs),
        }
        // It closes itself, on files that are no longer used.
        drop(database);
        self.handles.jobs.discard();
        self.handles.fs = fs;
        Ok(self)
    }
}

fn lose_unsynced(fs: &CrashFs) {
    fs.crash_with(PowerLoss {
        seed: 0,
        files: Some(FileDamage::DropAll),
        names: Some(NameDamage::DropAll),
    });
}

/// Returns a path in the database's directory.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn files_of(fs: &CrashFs) -> Files {
    let names = fs.files(Path::new(DIR)).into_iter().filter(|name| name != "LOCK");
    names.filter_map(|name| Some((name.clone(), fs.read_file(&path(&name))?))).collect()
}

/// Returns the records of the valid part of every write-ahead log.
fn logs_of(fs: &CrashFs) -> BTreeMap<String, Vec<RecordRange>> {
    let names = fs.files(Path::new(DIR)).into_iter().filter(|name| name.ends_with(".wal"));
    names.map(|name| (name.clone(), log_records(fs, &name).unwrap_or_default())).collect()
}

fn log_records(fs: &CrashFs, name: &str) -> windrow_base::Result<Vec<RecordRange>> {
    let file = fs.open(&path(name), ReadFileOptions::default())?;
    let mut reader = LogReader::open(file, LogKind::Wal, None)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        if record.class == Class::Batch {
            let (first_seq, count, _) = batch::decode(record.payload, record.framing)?;
            let last_seq = first_seq + u64::from(count) - 1;
            records.push(RecordRange { place: record.offset..record.end, last_seq });
        }
    }
    Ok(records)
}

/// Gives the written values other bytes of the same lengths.
fn tell_apart(op: &mut Op) {
    let writes = match op {
        Op::Write { write, .. } => std::slice::from_mut(write),
        Op::Batch { writes, .. } => &mut writes[..],
        _ => return,
    };
    for write in writes {
        if let Change::Put { value: bytes, .. }
        | Change::PutTtl { value: bytes, .. }
        | Change::Merge { operand: bytes, .. }
        | Change::MergeTtl { operand: bytes, .. } = &mut write.change
            && let Some(first) = bytes.first_mut()
        {
            *first ^= 1;
        }
    }
}

/// Returns the data blocks of a table whose index is in one piece.
fn blocks_of(fs: &CrashFs, name: &str, expect: Expect) -> windrow_base::Result<Vec<Range<u64>>> {
    let table = Table::open(&fs.open(&path(name), ReadFileOptions::default())?, expect)?;
    let mut blocks = Vec::new();
    let mut index = table.index_iter();
    index.seek_first();
    while index.valid() && !table.is_partitioned() {
        let handle = index.handle();
        blocks.push(handle.offset..handle.end());
        index.next();
    }
    Ok(blocks)
}

/// Returns every counter and operand that the script writes.
fn counters_of(script: &Script) -> Result<Counters, String> {
    let mut counters = Counters::new();
    for line in text::parse(&script.text())? {
        let Op::Write { write, .. } = line.op else { continue };
        let (Change::Put { key, value: bytes } | Change::Merge { key, operand: bytes }) =
            write.change
        else {
            continue;
        };
        if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
            counters.entry((write.keyspace, key)).or_default().push(i64::from_le_bytes(bytes));
        }
    }
    Ok(counters)
}

/// Returns a few of the images that differ from the last one.
fn stale(mut images: Vec<Files>, last: &Files) -> Vec<Files> {
    images.dedup();
    images.retain(|image| image != last);
    let spread_over = images.len().saturating_sub(STALE_LAST);
    let step = (spread_over / STALE_SPREAD).max(1);
    let kept = |index: usize| index >= spread_over || index % step == step / 2;
    images.into_iter().enumerate().filter(|(i, _)| kept(*i)).map(|(_, image)| image).collect()
}
