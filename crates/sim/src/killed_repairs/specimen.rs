//! A damaged database whose repairs are killed or fail, and the result of one whole repair.
//!
//! Owns: making it, and the checks after any repair. Never does: decide when a repair is killed or
//! fails.

use crate::trial::{Death, forked};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windrow::{Db, KeyspaceOptions, Options, WriteSync};
use windrow_base::ErrorKind;
use windrow_env::testing::{FileDamage, Handles, NameDamage, PowerLoss, env};
use windrow_testkit::variant;
use windrow_testkit::world::DIR;

/// Rounds of writes, each of them ending in tables.
const ROUNDS: u8 = 4;
const KEYS: u8 = 24;
/// The distance from the end of a table to the index handle in its footer.
const INDEX_HANDLE_FROM_END: usize = 84 - 40;

/// A damage of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// A bit of the first block of every second table.
    Blocks,
    /// A bit of the index of every second table.
    Indexes,
    /// A table is missing.
    MissingTable,
    /// A bit in the middle of the manifest.
    Manifest,
    NoManifest,
    NoCurrent,
    /// A bit in the middle of the fullest log.
    Log,
}

/// All readable entries of a keyspace, up to the first error.
type Read = (Vec<(Vec<u8>, Vec<u8>)>, Option<ErrorKind>);
/// The result of an open.
type Opened = Result<BTreeMap<String, Read>, ErrorKind>;

/// A damaged database, and the result of one uninterrupted repair.
pub(super) struct Specimen {
    pub(super) handles: Handles,
    /// The result of an open before any repair.
    before: Opened,
    pub(super) saved: BTreeMap<String, Read>,
    /// The files that were kept, with their bytes.
    originals: Vec<Vec<u8>>,
    /// The number of operations of that repair.
    pub(super) operations: u64,
}

pub(super) fn options(handles: &Handles) -> Result<Options, String> {
    let mut options = variant::options_of([].into_iter()).map_err(|e| e.to_string())?;
    options.components.env = Some(handles.env());
    options.default_keyspace.merge_operator = Some("add".to_owned());
    options.create_if_missing = false;
    Ok(options)
}

fn read_all(db: &Db) -> Result<BTreeMap<String, Read>, ErrorKind> {
    let mut all = BTreeMap::new();
    for name in db.keyspaces() {
        let keyspace = db.open_keyspace(&name).map_err(|e| e.kind())?;
        let (mut pairs, mut failed) = (Vec::new(), None);
        for item in keyspace.iter().flat_map(|keyspace| keyspace.iter()) {
            match item {
                Ok((key, value)) => pairs.push((key.to_vec(), value.to_vec())),
                Err(error) => failed = Some(error.kind()),
            }
        }
        all.insert(name, (pairs, failed));
    }
    Ok(all)
}

/// Returns the contents that an open shows, without a trace in these files.
pub(super) fn look(handles: &Handles, read_only: bool) -> Result<Opened, String> {
    let copy = forked(handles, 1);
    let options = Options { read_only, ..options(&copy)? };
    let opened = Db::open_with(DIR, options).map_err(|e| e.kind());
    Ok(opened.and_then(|db| read_all(&db)))
}

impl Specimen {
    /// Damages a sound database, and repairs a copy.
    pub(super) fn new(handles: Handles, damages: &[Damage]) -> Result<Specimen, String> {
        damages.iter().try_for_each(|damage| damage.inflict(&handles))?;
        let before = look(&handles, true)?;
        let once = forked(&handles, 1);
        let begin = once.fs.operations();
        let report = windrow::repair(DIR, options(&once)?).map_err(|e| format!("repair: {e}"))?;
        let operations = once.fs.operations() - begin;
        once.jobs.discard();
        let saved = look(&once, false)?.map_err(|kind| format!("after one repair: {kind:?}"))?;
        let originals = lost(&once);
        if report.problems.is_empty() != damages.is_empty() || operations < 10 {
            return Err(format!("{damages:?}: {operations} operations, {report:?}"));
        }
        Ok(Specimen { handles, before, saved, originals, operations })
    }

    /// Kills a repair after this number of operations, unless it ends before.
    pub(super) fn killed(
        &self,
        handles: &Handles,
        after: u64,
        death: Death,
    ) -> Result<Handles, String> {
        handles.fs.crash_at(handles.fs.operations() + after);
        let done = windrow::repair(DIR, options(handles)?);
        handles.jobs.discard();
        match done {
            Err(error) if !handles.fs.is_dead() => Err(format!("repair again: {error}")),
            _ => Ok(death.after(handles)),
        }
    }

    /// Checks that an uninterrupted repair saves what one run saves, whatever went before.
    pub(super) fn must_save(&self, handles: &Handles) -> Result<(), String> {
        windrow::repair(DIR, options(handles)?).map_err(|e| format!("repair at last: {e}"))?;
        handles.jobs.discard();
        let kept = lost(handles);
        if let Some(missing) = self.originals.iter().find(|bytes| !kept.contains(bytes)) {
            return Err(format!("an original of {} bytes is not kept", missing.len()));
        }
        let copy = forked(handles, 1);
        let db = Db::open_with(DIR, options(&copy)?).map_err(|e| format!("open at last: {e}"))?;
        let verified = db.verify().and_then(|report| report.into_result());
        verified.map_err(|e| format!("verify at last: {e}"))?;
        let saved = read_all(&db).map_err(|kind| format!("read at last: {kind:?}"))?;
        differ(&saved, &self.saved)
    }

    /// Checks that an open after a killed repair shows the contents from before it, or all that one
    /// run saves.
    pub(super) fn must_be_sane(&self, handles: &Handles) -> Result<(), String> {
        for read_only in [true, false] {
            let opened = look(handles, read_only)?;
            if opened != self.before && opened.as_ref() != Ok(&self.saved) {
                let difference = opened.map(|read| differ(&read, &self.saved).unwrap_err());
                return Err(format!("opened in between, read only {read_only}: {difference:?}"));
            }
        }
        // A successful open for writing takes nothing from the next repair.
        let copy = forked(handles, 1);
        if let Ok(db) = Db::open_with(DIR, options(&copy)?) {
            db.close().map_err(|e| format!("close in between: {e}"))?;
        }
        copy.jobs.discard();
        self.must_save(&copy).map_err(|e| format!("after an open in between: {e}"))
    }
}

/// Returns the first difference, in words.
fn differ(got: &BTreeMap<String, Read>, want: &BTreeMap<String, Read>) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    let count = |all: &BTreeMap<String, Read>| {
        let counted =
            all.iter().map(|(name, (pairs, failed))| (name.clone(), pairs.len(), *failed));
        counted.collect::<Vec<_>>()
    };
    Err(format!("{:?} where one run saves {:?}", count(got), count(want)))
}

/// Returns the bytes of every file in `lost/`.
fn lost(handles: &Handles) -> Vec<Vec<u8>> {
    let dir = Path::new(DIR).join("lost");
    let names = handles.fs.files(&dir).into_iter();
    names.filter_map(|name| handles.fs.read_file(&dir.join(name))).collect()
}

/// Makes a killed database of several keyspaces, with entries in tables of two levels and in two
/// logs.
pub(super) fn made() -> Result<Handles, String> {
    let (_, handles) = env(1);
    let text = |e: windrow::Error| e.to_string();
    let new = Options { create_if_missing: true, ..options(&handles)? };
    let db = Db::open_with(DIR, new).map_err(text)?;
    let adding =
        KeyspaceOptions { merge_operator: Some("add".to_owned()), ..KeyspaceOptions::default() };
    let (sums, plain) =
        (db.keyspace_with("sums", adding).map_err(text)?, db.keyspace("plain").map_err(text)?);
    for round in 0..ROUNDS {
        for n in 0..KEYS {
            let one = (1_i64 << (8 * round)).to_le_bytes();
            let (key, counter) = (format!("k{n:02}"), format!("c{n:02}"));
            db.put(format!("{key}/{round}"), [round; 150]).map_err(text)?;
            db.merge(&counter, one).and_then(|()| sums.merge(&counter, one)).map_err(text)?;
            plain.put(&key, [round; 150]).map_err(text)?;
        }
        let range = (format!("k{:02}", 3 * round), format!("k{:02}", 3 * round + 2));
        db.delete_range(range.0, range.1).and_then(|()| plain.delete("k07")).map_err(text)?;
        if round + 1 < ROUNDS {
            db.flush().map_err(text)?;
        }
        if round == 1 {
            // The next log is made ahead, as well.
            db.compact().and_then(|()| db.wait_idle()).map_err(text)?;
        }
    }
    // Starts the next log; the other keyspaces keep this one.
    db.put("filler", vec![7; 40_000]).map_err(text)?;
    db.default_keyspace().flush().map_err(text)?;
    let last = |keyspace: &windrow::Keyspace| {
        let one = 1_i64.to_le_bytes();
        keyspace.put("last", "1").and_then(|()| keyspace.delete_range("k20", "k22"))?;
        if keyspace.name() == "plain" { Ok(()) } else { keyspace.merge("c01", one) }
    };
    [&*db, &sums, &plain].into_iter().try_for_each(last).map_err(text)?;
    db.put_with("end", "", WriteSync::Yes).map_err(text)?;
    drop((sums, plain));
    kill(&handles, db);
    let (tables, logs) = (with_end(&handles, ".sst").len(), with_end(&handles, ".wal").len());
    match tables > 5 && logs > 1 {
        true => Ok(handles),
        false => Err(format!("{tables} tables and {logs} logs do not make a specimen")),
    }
}

/// Kills the process. Everything present is durable: only a repair can lose anything from here on.
pub(super) fn kill(handles: &Handles, db: Db) {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.kill(1);
    let (files, names) = (Some(FileDamage::KeepAll), Some(NameDamage::KeepAll));
    handles.fs.crash_with(PowerLoss { seed: 1, files, names });
}

pub(super) fn with_end(handles: &Handles, end: &str) -> Vec<PathBuf> {
    let names = handles.fs.files(Path::new(DIR)).into_iter().filter(|name| name.contains(end));
    names.map(|name| Path::new(DIR).join(name)).collect()
}

impl Damage {
    fn inflict(self, handles: &Handles) -> Result<(), String> {
        let fs = &handles.fs;
        let bytes_of = |path: &PathBuf| fs.read_file(path).ok_or(format!("{path:?} is missing"));
        let halves = with_end(handles, ".sst").into_iter().step_by(2);
        let manifest = with_end(handles, "MANIFEST-").pop().ok_or("there is no manifest")?;
        match self {
            Damage::Blocks => halves.for_each(|table| fs.flip(&table, 40, 1)),
            Damage::Indexes => {
                for table in halves {
                    let bytes = bytes_of(&table)?;
                    let handle = bytes.len() - INDEX_HANDLE_FROM_END;
                    let offset = bytes[handle..].first_chunk().map(|at| u64::from_le_bytes(*at));
                    fs.flip(&table, offset.ok_or("no footer")? + 9, 1);
                }
            }
            Damage::MissingTable => {
                let is_missed = |table: &PathBuf| {
                    let copy = forked(handles, 1);
                    copy.fs.remove_file(table);
                    look(&copy, true) == Ok(Err(ErrorKind::Corruption))
                };
                let table = with_end(handles, ".sst").into_iter().find(is_missed);
                fs.remove_file(&table.ok_or("no table is missed")?);
            }
            Damage::Manifest => {
                let middle = bytes_of(&manifest)?.len() as u64 / 2;
                fs.flip(&manifest, middle, 1);
            }
            Damage::NoManifest => fs.remove_file(&manifest),
            Damage::NoCurrent => fs.remove_file(&Path::new(DIR).join("CURRENT")),
            Damage::Log => {
                let logs = with_end(handles, ".wal").into_iter();
                let written = |log: PathBuf| {
                    let bytes = fs.read_file(&log)?;
                    Some((bytes.iter().rposition(|byte| *byte != 0)? as u64, log))
                };
                let (end, log) = logs.filter_map(written).max().ok_or("no log was written")?;
                fs.flip(&log, end / 2, 1);
            }
        }
        Ok(())
    }
}
