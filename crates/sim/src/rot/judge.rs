//! The judge of a damaged copy: reads everything from it, and reports the outcome.
//!
//! Owns: the definition of a right answer. Never does: choose damages, or repair them.

use super::damage::{Case, Changed, Damage, difference};
use super::specimen::{Contents, Specimen, path};
use std::path::Path;
use std::sync::Arc;
use windrow::{Db, Event, inspect};
use windrow_base::{Error, ErrorKind};
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::testing::Handles;
use windrow_testkit::op::Pair;
use windrow_testkit::text;

/// Keys that are read in addition to those that exist.
const ABSENT: [&[u8]; 5] = [b"", b"aa", b"d", b"zz", b"\xff"];

/// The outcomes of damages: how many cases ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Cases in which something was changed.
    pub cases: u64,
    /// Everything was right, and nothing noticed: the damaged bytes are no longer part of the
    /// database.
    pub right: u64,
    /// Opening found the damage.
    pub refused: u64,
    /// Some reads found it, and so did `verify`.
    pub found: u64,
    /// All reads were right; `verify` found it.
    pub verified: u64,
    /// All reads were right; the report of the recovery names torn bytes.
    pub reported: u64,
    /// Writes of the last sync group are gone, and the recovery reports torn bytes.
    pub lost_reported: u64,
    /// Writes of the last sync group are gone without a trace, as if never written.
    pub lost_silent: u64,
}

impl Outcome {
    /// Sums two outcomes.
    #[must_use]
    pub fn plus(self, other: Outcome) -> Outcome {
        Outcome {
            cases: self.cases + other.cases,
            right: self.right + other.right,
            refused: self.refused + other.refused,
            found: self.found + other.found,
            verified: self.verified + other.verified,
            reported: self.reported + other.reported,
            lost_reported: self.lost_reported + other.lost_reported,
            lost_silent: self.lost_silent + other.lost_silent,
        }
    }
}

/// A damaged copy that is judged.
pub(super) struct Judge<'a> {
    specimen: &'a Specimen,
    /// The files that were changed.
    pub(super) changed: Vec<Changed>,
    /// The only file that an error may name, where that is known.
    only: Option<String>,
}

/// Reads everything from a damaged copy.
///
/// # Errors
/// The first wrong answer, in words.
pub fn check(specimen: &Specimen, case: &Case) -> Result<Outcome, String> {
    let judge = Judge::new(specimen, case);
    if judge.changed.is_empty() {
        return Ok(Outcome::default());
    }
    let outcome = judge.judge()?;
    Ok(Outcome { cases: 1, ..outcome })
}

impl<'a> Judge<'a> {
    pub(super) fn new(specimen: &'a Specimen, case: &Case) -> Judge<'a> {
        let changed = specimen.images().changes(case);
        // Tables record nothing of each other; logs, manifest and CURRENT do.
        let alone = changed.len() == 1 && !matches!(case.damage, Damage::Gone | Damage::Replace(_));
        let only = (alone && case.file.ends_with(".sst")).then(|| case.file.clone());
        Judge { specimen, changed, only }
    }

    /// Returns a copy with the damage in it.
    pub(super) fn damaged(&self) -> Handles {
        let handles = self.specimen.copy();
        for (name, bytes) in &self.changed {
            match bytes {
                Some(bytes) => handles.fs.write_file(&path(name), bytes),
                None => handles.fs.remove_file(&path(name)),
            }
        }
        handles
    }

    fn judge(&self) -> Result<Outcome, String> {
        let handles = self.damaged();
        let torn = Arc::new(AtomicU64::new(0));
        let mut options = self.specimen.options_on(&handles);
        let heard = torn.clone();
        options.components.listener = Some(Arc::new(move |event: &Event| {
            if let Event::Opened { torn_bytes, .. } = event {
                heard.store(*torn_bytes, Ordering::Relaxed);
            }
        }));
        let db = match Db::open_with(path(""), options) {
            Ok(db) => db,
            Err(error) => {
                self.must_be_damage(&error).map_err(|e| format!("open: {e}"))?;
                return Ok(Outcome { refused: 1, ..Outcome::default() });
            }
        };
        let reported = torn.load(Ordering::Relaxed) > 0;
        let seq = db.snapshot().seq();
        if seq != self.specimen.last_seq() {
            self.check_fall(&db, seq)?;
            return Ok(Outcome {
                lost_reported: reported.into(),
                lost_silent: (!reported).into(),
                ..Outcome::default()
            });
        }
        let found = self.read(&db, &self.specimen.history[&seq])?;
        let verified = self.verify(&db, found)?;
        Ok(match (found, verified, reported) {
            (true, ..) => Outcome { found: 1, ..Outcome::default() },
            (_, true, _) => Outcome { verified: 1, ..Outcome::default() },
            (.., true) => Outcome { reported: 1, ..Outcome::default() },
            _ => Outcome { right: 1, ..Outcome::default() },
        })
    }

    /// Checks a history that lacks a part: it must be its end, and no more of it than the damage
    /// reaches.
    fn check_fall(&self, db: &Db, seq: u64) -> Result<(), String> {
        let least = self.changed.iter().filter_map(|(name, bytes)| {
            let damaged = difference(self.specimen.bytes(name), bytes.as_ref()?);
            self.specimen.may_fall_to(name, &damaged)
        });
        let last = self.specimen.last_seq();
        let Some(least) = least.min() else {
            return Err(format!("recovered to {seq} instead of {last}, silently"));
        };
        let Some(want) = self.specimen.history.get(&seq).filter(|_| least <= seq) else {
            return Err(format!("recovered to {seq}, not to between {least} and {last}"));
        };
        let found = self.read(db, want)?;
        if found && self.changed.len() == 1 {
            return Err("a read failed where the end of the history is missing".to_owned());
        }
        self.verify(db, found).map(|_| ())
    }

    /// Reads everything. Returns whether a read found the damage.
    fn read(&self, db: &Db, contents: &Contents) -> Result<bool, String> {
        let mut names = db.keyspaces();
        names.sort();
        if names.iter().ne(contents.iter().map(|(name, _)| name)) {
            return Err(format!("keyspaces {names:?}"));
        }
        let mut found = false;
        for (name, pairs) in contents {
            found |= self.read_keyspace(db, name, pairs)?;
        }
        Ok(found)
    }

    fn read_keyspace(&self, db: &Db, name: &str, want: &[Pair]) -> Result<bool, String> {
        let keyspace = match db.open_keyspace(name) {
            Ok(Some(keyspace)) => keyspace,
            Ok(None) => return Err(format!("keyspace {name} is missing")),
            Err(error) => return self.must_be_damage(&error).map(|()| true),
        };
        let mut found = self.scan(keyspace.iter(), want.iter())?;
        found |= self.scan(keyspace.iter().rev(), want.iter().rev())?;
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
                    self.must_be_damage(&error)?;
                    found = true;
                }
            }
        }
        Ok(found)
    }

    /// Compares a scan, which must give the right entries, or those up to a `Corruption` and then
    /// end.
    fn scan<'p>(
        &self,
        mut got: impl Iterator<Item = windrow_base::Result<(windrow::Slice, windrow::Slice)>>,
        mut want: impl Iterator<Item = &'p Pair>,
    ) -> Result<bool, String> {
        loop {
            match (got.next(), want.next()) {
                (None, None) => return Ok(false),
                (Some(Ok((key, value))), Some((k, v))) if *key == **k && *value == **v => {}
                (Some(Err(error)), _) => {
                    self.must_be_damage(&error)?;
                    // A failed scan stays failed: nothing after the error may look like the end of
                    // the data.
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

    /// Returns whether `verify` finds damage: it must if a read did, and if a byte of a table that
    /// is part of the database has changed.
    fn verify(&self, db: &Db, found: bool) -> Result<bool, String> {
        let report = db.verify().map_err(|e| format!("verify: {e}"))?;
        for problem in &report.problems {
            self.must_be_damage(problem).map_err(|e| format!("verify: {e}"))?;
        }
        let live = |name: &str| {
            let table = windrow_format::names::parse(name).map(|(_, number)| number);
            let versions = inspect::trees(db);
            let mut files = versions.iter().flat_map(|(_, version)| version.files());
            name.ends_with(".sst") && files.any(|(_, _, file)| Some(file.number) == table)
        };
        let noticed = !report.is_ok();
        if !noticed && (found || self.changed.iter().any(|(name, _)| live(name))) {
            return Err("verify finds nothing".to_owned());
        }
        Ok(noticed)
    }

    /// Checks that an error is a `Corruption` that names a file: the damaged one, or, if the damage
    /// makes files contradict each other, another.
    fn must_be_damage(&self, error: &Error) -> Result<(), String> {
        let named = error.file().and_then(|file| Path::new(file).file_name());
        let Some(named) = named.map(|name| name.to_string_lossy().into_owned()) else {
            return Err(format!("an error that names no file: {error}"));
        };
        if error.kind() != ErrorKind::Corruption {
            return Err(format!("not a corruption: {error}"));
        }
        match &self.only {
            Some(only) if *only != named => Err(format!("an error that names {named}: {error}")),
            _ => Ok(()),
        }
    }
}
