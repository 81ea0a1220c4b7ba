//! Repairs that are killed, at every operation, and run again: once, at every
//! operation of the second one too, and again and again after a few more
//! operations each time. What they end with is never less than one run saves.
//!
//! Owns: the damaged databases, and what one run makes of them. Never does:
//! say whether that is all that could be saved; `rot` judges single repairs.

use crate::share::{Share, each};
use crate::trial::Death;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::{Db, KeyspaceOptions, Options, Sync};
use windrow_base::ErrorKind;
use windrow_env::testing::{FileDamage, Handles, NameDamage, PowerLoss, SeededRandom, env};
use windrow_testkit::variant;
use windrow_testkit::world::DIR;

/// The name of these loops among the workloads.
pub const NAME: &str = "killed_repairs";

/// Rounds of writes, each of which ends in tables.
const ROUNDS: u8 = 4;
const KEYS: u8 = 24;
/// So often a repair is killed before it is left to end.
const KILLS_MAX: u64 = 5;
/// Where a table's footer says where its index is.
const INDEX_HANDLE_FROM_END: usize = 84 - 40;

/// What is wrong with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// A bit of the first block of every second table.
    Blocks,
    /// A bit of the index of every second table.
    Indexes,
    /// A table is gone.
    MissingTable,
    /// A bit in the middle of the manifest.
    Manifest,
    NoManifest,
    NoCurrent,
    /// A bit in the middle of the fullest log.
    Log,
}

/// Each database by what is wrong with it.
const SPECIMENS: &[&[Damage]] = &[
    &[],
    &[Damage::Blocks],
    &[Damage::Indexes],
    &[Damage::MissingTable],
    &[Damage::Manifest],
    &[Damage::NoCurrent],
    &[Damage::Log],
    &[Damage::Blocks, Damage::Log],
    &[Damage::Blocks, Damage::NoManifest],
    &[Damage::Indexes, Damage::NoCurrent, Damage::Log],
    &[Damage::Blocks, Damage::Manifest, Damage::Log],
];

/// Everything that can be read of a keyspace, up to the first error.
type Read = (Vec<(Vec<u8>, Vec<u8>)>, Option<ErrorKind>);
/// What an open gives.
type Opened = Result<BTreeMap<String, Read>, ErrorKind>;

/// A damaged database, and what one uninterrupted repair makes of it.
struct Specimen {
    handles: Handles,
    /// What an open shows before any repair.
    before: Opened,
    saved: BTreeMap<String, Read>,
    /// The files that were kept, with their bytes.
    originals: Vec<Vec<u8>>,
    /// How many operations that took.
    operations: u64,
}

fn options(handles: &Handles) -> Result<Options, String> {
    let mut options = variant::options_of([].into_iter()).map_err(|e| e.to_string())?;
    options.components.env = Some(handles.env());
    options.default_keyspace.merge_operator = Some("add".to_owned());
    options.create_if_missing = false;
    Ok(options)
}

/// The same files in a world of their own.
fn copied(handles: &Handles, seed: u64) -> Handles {
    let random = Arc::new(SeededRandom::new(seed));
    Handles { fs: handles.fs.fork(), random, ..handles.reborn(seed) }
}

/// The world after a death.
fn fallen(handles: &Handles, death: Death) -> Handles {
    // Other file uids than the life before drew.
    let next = copied(handles, death.seed() ^ 1 << 40);
    match death {
        Death::Killed(seed) => next.fs.kill(seed),
        Death::PowerCut(loss) => next.fs.crash_with(loss),
    }
    next
}

/// How a repair dies, in turn: by a kill, by a power loss that takes whatever
/// was not synced, and by one that takes some of it.
fn death(number: u64) -> Death {
    let all = (Some(FileDamage::DropAll), Some(NameDamage::DropAll));
    let kept = (Some(FileDamage::KeepAll), Some(NameDamage::DropAll));
    let (files, names) = [(None, None), all, kept][(number % 3) as usize];
    match number % 4 {
        0 => Death::Killed(number),
        _ => Death::PowerCut(PowerLoss { seed: number, files, names }),
    }
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

/// What an open shows that leaves no trace here.
fn look(handles: &Handles, read_only: bool) -> Result<Opened, String> {
    let copy = copied(handles, 1);
    let options = Options { read_only, ..options(&copy)? };
    let opened = Db::open_with(DIR, options).map_err(|e| e.kind());
    Ok(opened.and_then(|db| read_all(&db)))
}

impl Specimen {
    fn new(damages: &[Damage]) -> Result<Specimen, String> {
        let handles = made()?;
        damages.iter().try_for_each(|damage| damage.inflict(&handles))?;
        let before = look(&handles, true)?;
        let once = copied(&handles, 1);
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

    /// A repair that dies after so many operations, unless it ends before.
    fn killed(&self, handles: &Handles, after: u64, death: Death) -> Result<Handles, String> {
        handles.fs.crash_at(handles.fs.operations() + after);
        let done = windrow::repair(DIR, options(handles)?);
        handles.jobs.discard();
        match done {
            Err(error) if !handles.fs.is_dead() => Err(format!("repair again: {error}")),
            _ => Ok(fallen(handles, death)),
        }
    }

    /// A repair that is not killed saves what one run saves, whatever went before.
    fn must_save(&self, handles: &Handles) -> Result<(), String> {
        windrow::repair(DIR, options(handles)?).map_err(|e| format!("repair at last: {e}"))?;
        handles.jobs.discard();
        let kept = lost(handles);
        if let Some(missing) = self.originals.iter().find(|bytes| !kept.contains(bytes)) {
            return Err(format!("an original of {} bytes is not kept", missing.len()));
        }
        let copy = copied(handles, 1);
        let db = Db::open_with(DIR, options(&copy)?).map_err(|e| format!("open at last: {e}"))?;
        let verified = db.verify().and_then(|report| report.into_result());
        verified.map_err(|e| format!("verify at last: {e}"))?;
        let saved = read_all(&db).map_err(|kind| format!("read at last: {kind:?}"))?;
        differ(&saved, &self.saved)
    }

    /// Opening what a killed repair has left gives what it gave before, or all.
    fn must_be_sane(&self, handles: &Handles) -> Result<(), String> {
        for read_only in [true, false] {
            let opened = look(handles, read_only)?;
            if opened != self.before && opened.as_ref() != Ok(&self.saved) {
                let difference = opened.map(|read| differ(&read, &self.saved).unwrap_err());
                return Err(format!("opened in between, read only {read_only}: {difference:?}"));
            }
        }
        // An open for writing that goes well takes nothing from the next repair.
        let copy = copied(handles, 1);
        if let Ok(db) = Db::open_with(DIR, options(&copy)?) {
            db.close().map_err(|e| format!("close in between: {e}"))?;
        }
        copy.jobs.discard();
        self.must_save(&copy).map_err(|e| format!("after an open in between: {e}"))
    }
}

/// The first difference, in words.
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

/// The bytes of every file in `lost/`.
fn lost(handles: &Handles) -> Vec<Vec<u8>> {
    let dir = Path::new(DIR).join("lost");
    let names = handles.fs.files(&dir).into_iter();
    names.filter_map(|name| handles.fs.read_file(&dir.join(name))).collect()
}

/// A database of several keyspaces, killed: some of it is in tables of two
/// levels, some in two logs.
fn made() -> Result<Handles, String> {
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
            db.compact().map_err(text)?;
        }
    }
    // The next log is begun, and the other keyspaces keep this one.
    db.put("filler", vec![7; 40_000]).map_err(text)?;
    db.default_keyspace().flush().map_err(text)?;
    let last = |keyspace: &windrow::Keyspace| {
        let one = 1_i64.to_le_bytes();
        keyspace.put("last", "1").and_then(|()| keyspace.delete_range("k20", "k22"))?;
        if keyspace.name() == "plain" { Ok(()) } else { keyspace.merge("c01", one) }
    };
    let default = &db.default_keyspace();
    [default, &sums, &plain].into_iter().try_for_each(last).map_err(text)?;
    db.put_with("end", "", Sync::Yes).map_err(text)?;
    drop((sums, plain));
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.kill(1);
    // Whatever is there is durable: what is lost from here on, a repair loses.
    let (files, names) = (Some(FileDamage::KeepAll), Some(NameDamage::KeepAll));
    handles.fs.crash_with(PowerLoss { seed: 1, files, names });
    let (tables, logs) = (with_end(&handles, ".sst").len(), with_end(&handles, ".wal").len());
    match tables > 5 && logs > 1 {
        true => Ok(handles),
        false => Err(format!("{tables} tables and {logs} logs do not make a specimen")),
    }
}

fn with_end(handles: &Handles, end: &str) -> Vec<PathBuf> {
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
                    let copy = copied(handles, 1);
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

/// Killed once, at every operation, in one way of three.
fn once(specimen: &Specimen, share: Share) -> Result<u64, String> {
    each("a killed repair", specimen.operations * 3, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let world = copied(&specimen.handles, case);
        let left = specimen.killed(&world, case / 3, death(case))?;
        specimen.must_be_sane(&left)?;
        specimen.must_save(&left).map(|()| 1)
    })
}

/// Killed at every operation, and again at every operation of the next.
fn twice(specimen: &Specimen, share: Share) -> Result<u64, String> {
    let count = specimen.operations + 10;
    let share = Share { step: share.step * share.step * 9, ..share };
    each("a repair killed twice", count * count, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let world = copied(&specimen.handles, case);
        let left = specimen.killed(&world, case / count, death(case))?;
        let left = specimen.killed(&left, case % count, death(case + 1))?;
        specimen.must_save(&left).map(|()| 1)
    })
}

/// Killed after so many more operations each time.
fn again(specimen: &Specimen, share: Share) -> Result<u64, String> {
    let share = Share { step: share.step * 2 - 1, ..share };
    each("a repair killed again and again", specimen.operations * 2, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let mut left = copied(&specimen.handles, case);
        for kill in 0..KILLS_MAX {
            left = specimen.killed(&left, case / 2 + kill, death(case + kill))?;
        }
        specimen.must_save(&left).map(|()| 1)
    })
}

/// All loops over all specimens, `step` as in [`crate::exhaustive::all`].
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn all(step: u64, report: &dyn Fn(&str)) -> Result<(), String> {
    for (number, damages) in SPECIMENS.iter().enumerate() {
        let specimen = Specimen::new(damages)?;
        let share = Share { first: number as u64, step };
        let place = |e| format!("{NAME}, {damages:?}: {e}");
        let done = [once(&specimen, share), twice(&specimen, share), again(&specimen, share)];
        let done = done.into_iter().collect::<Result<Vec<u64>, _>>().map_err(place)?;
        report(&format!("{NAME}: {damages:?}: {done:?} of {} operations", specimen.operations));
    }
    Ok(())
}
