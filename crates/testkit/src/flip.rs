//! P5a: a cleanly closed database with any byte changed, any file cut or
//! gone, gives the right values or `Corruption`; never anything else.
//!
//! Owns: the database under the sweep, its damages, and what counts as right.
//! Never does: damage the lock file, which holds no data.

use crate::model::Model;
use crate::op::{Pair, Subject};
use crate::script;
use crate::subject::Database;
use crate::text;
use crate::variant::Variant;
use crate::world::{DIR, World};
use std::fmt;
use std::path::{Path, PathBuf};
use windrow::{Db, Options};
use windrow_base::{Error, ErrorKind};
use windrow_env::testing::{CrashFs, Handles, env};

/// Largest database of the sweep, in bytes.
pub const BYTES_MAX: u64 = 64 << 10;

/// Two keyspaces, several tables in several levels, every kind of entry.
const CONTENTS: &str = "
keyspace sum operator:add
put a 1
put b w*300
put c 3
put d 4
merge @sum m i:1
put @sum n i:40
put_ttl e soon 3600000
put_ttl f late 36000000000
compact
put c 33
put g x*700
delete d
merge @sum m i:2
merge @sum n i:2
flush
clock +7200000
delete_range b..bb
put b again
put h y*900
single_delete g
put i 9
flush
merge @sum m i:4
delete_range @sum x..z
put j 10
flush
put k 11
delete a
merge @sum o i:7
put l \\x00\\xff
flush
put m 12
";

/// Keys of [`Specimen::large`]: so long that the index of their table is
/// cut into partitions where they may be small.
const LARGE_KEYS: u64 = 160;

/// Keys that are read beside those that exist.
const ABSENT: [&[u8]; 5] = [b"", b"aa", b"d", b"zz", b"\xff"];

/// One damage to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The bits of `mask` in the byte at `offset` are flipped.
    Flip {
        /// Bytes from the file's start.
        offset: u64,
        /// Bits to flip.
        mask: u8,
    },
    /// The file ends after so many bytes.
    Cut(u64),
    /// The file is not there.
    Gone,
}

/// A damage and the file it is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the file.
    pub file: String,
    /// What is done to it.
    pub damage: Damage,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.file, self.damage)
    }
}

/// The undamaged database, closed, and what it holds.
pub struct Specimen {
    handles: Handles,
    options: Options,
    model: Model,
}

/// What reads of a damaged database gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Cases in which opening already found the damage.
    pub refused: u64,
    /// Cases in which some reads found it.
    pub found: u64,
    /// Cases in which nothing read was damaged, but `verify` found the damage.
    pub verified: u64,
    /// Cases in which nothing noticed.
    pub unnoticed: u64,
}

impl Outcome {
    /// Sums two.
    #[must_use]
    pub fn plus(self, other: Outcome) -> Outcome {
        Outcome {
            refused: self.refused + other.refused,
            found: self.found + other.found,
            verified: self.verified + other.verified,
            unnoticed: self.unnoticed + other.unnoticed,
        }
    }
}

impl Specimen {
    /// Makes the database and closes it.
    ///
    /// # Errors
    /// If an operation fails, or the database does not suit the sweep.
    pub fn new(variant: &Variant) -> Result<Specimen, String> {
        Specimen::of(variant, CONTENTS)
    }

    /// The same with a table of many long keys.
    ///
    /// # Errors
    /// As [`Specimen::new`].
    pub fn large(variant: &Variant) -> Result<Specimen, String> {
        let mut contents = CONTENTS.to_owned();
        for key in 0..LARGE_KEYS {
            contents +=
                &format!("put {:04}{}{key} v{key}-*40\n", key * 7919 % 10_000, "k".repeat(60));
        }
        Specimen::of(variant, &(contents + "flush\n"))
    }

    fn of(variant: &Variant, contents: &str) -> Result<Specimen, String> {
        let options = variant.options().map_err(|e| e.to_string())?;
        let (environment, handles) = env(7);
        let world = World::of(environment, handles.clone());
        let mut database =
            Database::open(world, options.clone()).map_err(|e| format!("open: {e}"))?;
        let mut model = script::model();
        for line in text::parse(contents)? {
            let (got, want) = (database.apply(&line.op), model.apply(&line.op));
            if got != want {
                return Err(format!("{}: {got:?}, not {want:?}", text::op_text(&line.op)));
            }
        }
        database.db().close().map_err(|e| format!("close: {e}"))?;
        drop(database);
        handles.jobs.discard();
        let specimen = Specimen { handles, options, model };
        let bytes: u64 = specimen.files().iter().map(|(_, len)| len).sum();
        let tables = specimen.files().iter().filter(|(name, _)| name.ends_with(".sst")).count();
        if bytes > BYTES_MAX || tables < 4 {
            return Err(format!("{bytes} bytes, {tables} tables: {:?}", specimen.files()));
        }
        Ok(specimen)
    }

    /// The files that the sweep damages, with their lengths in bytes.
    pub fn files(&self) -> Vec<(String, u64)> {
        let fs = &self.handles.fs;
        let names = fs.files(Path::new(DIR)).into_iter().filter(|name| name != "LOCK");
        let len = |name: &String| fs.read_file(&path(name)).map_or(0, |bytes| bytes.len() as u64);
        names.map(|name| (name.clone(), len(&name))).collect()
    }

    /// Every damage: each byte flipped whole and in one bit, each length, each file gone.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (file, len) in self.files() {
            let mut add = |damage| cases.push(Case { file: file.clone(), damage });
            add(Damage::Gone);
            for offset in 0..len {
                add(Damage::Cut(offset));
                add(Damage::Flip { offset, mask: 0xff });
                // Each bit gets its turn from byte to byte.
                add(Damage::Flip { offset, mask: 1 << (offset % 8) });
            }
        }
        cases
    }

    /// Reads everything from a damaged copy.
    ///
    /// # Errors
    /// What came back wrong, in words.
    pub fn check(&self, case: &Case) -> Result<Outcome, String> {
        let fs = self.handles.fs.fork();
        match case.damage {
            Damage::Flip { offset, mask } => fs.flip(&path(&case.file), offset, mask),
            Damage::Cut(len) => fs.truncate(&path(&case.file), len),
            Damage::Gone => fs.remove_file(&path(&case.file)),
        }
        self.read(fs, case)
    }

    fn read(&self, fs: CrashFs, case: &Case) -> Result<Outcome, String> {
        let handles = Handles { fs, ..self.handles.reborn(1) };
        let mut options = self.options.clone();
        options.create_if_missing = false;
        options.components.env = Some(handles.env());
        let db = match Db::open_with(DIR, options) {
            Ok(db) => db,
            Err(error) => {
                judge(&error, case).map_err(|e| format!("open: {e}"))?;
                return Ok(Outcome { refused: 1, ..Outcome::default() });
            }
        };
        let mut found = false;
        let mut names = db.keyspaces();
        names.sort();
        let dump = self.model.dump();
        let want: Vec<&String> = dump.iter().map(|(name, _)| name).collect();
        if names.iter().ne(want.iter().copied()) {
            return Err(format!("keyspaces {names:?}"));
        }
        for (name, pairs) in &dump {
            found |= self.read_keyspace(&db, name, pairs, case)?;
        }
        if found {
            return Ok(Outcome { found: 1, ..Outcome::default() });
        }
        let report = db.verify().map_err(|e| format!("verify: {e}"))?;
        for problem in &report.problems {
            judge(problem, case).map_err(|e| format!("verify: {e}"))?;
        }
        let noticed = !report.is_ok();
        Ok(Outcome { verified: noticed.into(), unnoticed: (!noticed).into(), ..Outcome::default() })
    }

    /// Whether a read found the damage.
    fn read_keyspace(
        &self,
        db: &Db,
        name: &str,
        want: &[Pair],
        case: &Case,
    ) -> Result<bool, String> {
        let keyspace = match db.open_keyspace(name) {
            Ok(Some(keyspace)) => keyspace,
            Ok(None) => return Err(format!("keyspace {name} is missing")),
            Err(error) => return judge(&error, case).map(|()| true),
        };
        let mut found = scan(keyspace.iter(), want.iter(), case)?;
        found |= scan(keyspace.iter().rev(), want.iter().rev(), case)?;
        let present = want.iter().map(|(key, _)| key.as_slice());
        for key in present.chain(ABSENT) {
            let expected = want.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_slice());
            match keyspace.get(key) {
                Ok(value) if value.as_deref() == expected => {}
                Ok(value) => {
                    let value = value.map_or("nothing".to_owned(), |v| text::token(&v));
                    return Err(format!("get @{name} {}: {value}", text::token(key)));
                }
                Err(error) => {
                    judge(&error, case)?;
                    found = true;
                }
            }
        }
        Ok(found)
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// A scan gives what it should, or does up to a `Corruption` and then ends.
fn scan<'a>(
    got: impl Iterator<Item = windrow_base::Result<(windrow::Slice, windrow::Slice)>>,
    want: impl Iterator<Item = &'a Pair>,
    case: &Case,
) -> Result<bool, String> {
    let (mut got, mut want) = (got, want);
    loop {
        match (got.next(), want.next()) {
            (None, None) => return Ok(false),
            (Some(Ok((key, value))), Some((k, v))) if *key == **k && *value == **v => {}
            (Some(Err(error)), _) => {
                judge(&error, case)?;
                // Failed is failed: nothing after it may look like the end of the data.
                return match got.next() {
                    None | Some(Err(_)) => Ok(true),
                    Some(Ok(_)) => Err("a scan went on after an error".to_owned()),
                };
            }
            (Some(Ok((key, value))), want) => {
                return Err(format!(
                    "a scan gave {} = {} instead of {}",
                    text::token(&key),
                    text::token(&value),
                    want.map_or("its end".to_owned(), |(k, _)| text::token(k)),
                ));
            }
            (None, Some((key, _))) => {
                return Err(format!("a scan ended before {}", text::token(key)));
            }
        }
    }
}

/// An error must be a `Corruption` that names a file: the damaged one, or,
/// where the damage makes files contradict each other, another.
fn judge(error: &Error, case: &Case) -> Result<(), String> {
    let named = error.file().map(|file| {
        Path::new(file).file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned())
    });
    let Some(named) = named else {
        return Err(format!("an error that names no file: {error}"));
    };
    if error.kind() != ErrorKind::Corruption {
        return Err(format!("not a corruption: {error}"));
    }
    // Tables know nothing of each other; logs, manifest and CURRENT do.
    let strict = case.file.ends_with(".sst") && case.damage != Damage::Gone;
    if strict && named != case.file {
        return Err(format!("an error that names {named}: {error}"));
    }
    Ok(())
}
