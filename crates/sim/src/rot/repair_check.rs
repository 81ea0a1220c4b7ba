//! The judge of a repair: repairs a damaged copy, opens it, and compares its data.
//!
//! The rule: the database opens, every value was once written under its key (or is the merge of
//! some that were), and all data outside of the damage is unchanged. If a table or the manifest was
//! lost, deleted and overwritten data may show again, as `windrow::repair` documents.
//!
//! Owns: that judgement. Never does: choose damages.

use super::damage::Case;
use super::judge::Judge;
use super::specimen::{Contents, Specimen, path};
use std::collections::BTreeMap;
use windrow::Db;
use windrow_base::ErrorKind;
use windrow_testkit::op::Pair;
use windrow_testkit::text;

/// The outcomes of repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Repairs.
    pub cases: u64,
    /// Everything was as before the damage.
    pub whole: u64,
    /// The tree had to be made from the tables.
    pub rebuilt: u64,
    /// Keys that are gone with the damaged bytes.
    pub missing: u64,
    /// Keys that show an older value, or were deleted and show again.
    pub older: u64,
    /// Keys whose merge operator is no longer recorded: they read as an error.
    pub unmerged: u64,
}

impl Repaired {
    /// Sums two outcomes.
    #[must_use]
    pub fn plus(self, other: Repaired) -> Repaired {
        Repaired {
            cases: self.cases + other.cases,
            whole: self.whole + other.whole,
            rebuilt: self.rebuilt + other.rebuilt,
            missing: self.missing + other.missing,
            older: self.older + other.older,
            unmerged: self.unmerged + other.unmerged,
        }
    }
}

/// The differences that the damage excuses.
struct Excuse<'a> {
    judge: &'a Judge<'a>,
    specimen: &'a Specimen,
    rebuilt: bool,
    /// Only logs were damaged: each keyspace has a state that it once had.
    log_only: bool,
    /// A log was damaged, and other files were too.
    log: bool,
}

/// Repairs a damaged copy and reads its data.
///
/// # Errors
/// The first fault, in words.
pub fn check_repair(specimen: &Specimen, case: &Case) -> Result<Repaired, String> {
    let judge = Judge::new(specimen, case);
    if judge.changed.is_empty() {
        return Ok(Repaired::default());
    }
    let handles = judge.damaged();
    let report = windrow::repair(path(""), specimen.options_on(&handles))
        .map_err(|e| format!("repair: {e}"))?;
    handles.jobs.discard();
    let db = specimen.open(&handles).map_err(|e| format!("open after repair: {e}"))?;
    let verified = db.verify().map_err(|e| format!("verify after repair: {e}"))?;
    verified.into_result().map_err(|e| format!("verify after repair: {e}"))?;
    let is_log = |(name, _): &(String, _)| name.ends_with(".wal");
    let log_only = !report.manifest_rebuilt && judge.changed.iter().all(is_log);
    let excuse = Excuse {
        judge: &judge,
        specimen,
        rebuilt: report.manifest_rebuilt,
        log_only,
        log: !log_only && judge.changed.iter().any(is_log),
    };
    let mut repaired =
        Repaired { cases: 1, rebuilt: report.manifest_rebuilt.into(), ..Repaired::default() };
    for (id, name) in &specimen.keyspace_ids {
        let there = if report.manifest_rebuilt && *id > 0 {
            format!("keyspace-{id}")
        } else {
            name.clone()
        };
        let got = read(&db, &there, &mut repaired)?;
        excuse.compare(name, got, &mut repaired)?;
    }
    let as_before = repaired.missing + repaired.older + repaired.unmerged == 0;
    repaired.whole = as_before.into();
    Ok(repaired)
}

/// Reads all entries of a keyspace by a scan; counts a keyspace whose operands cannot be merged.
fn read(
    db: &Db,
    name: &str,
    repaired: &mut Repaired,
) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, String> {
    let mut pairs = BTreeMap::new();
    let Some(keyspace) = db.open_keyspace(name).map_err(|e| format!("keyspace {name}: {e}"))?
    else {
        return Ok(pairs);
    };
    for item in keyspace.iter() {
        match item {
            Ok((key, value)) => _ = pairs.insert(key.to_vec(), value.to_vec()),
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                repaired.unmerged += 1;
                break;
            }
            Err(error) => return Err(format!("scan of {name} after repair: {error}")),
        }
    }
    Ok(pairs)
}

impl Excuse<'_> {
    fn compare(
        &self,
        name: &str,
        got: BTreeMap<Vec<u8>, Vec<u8>>,
        repaired: &mut Repaired,
    ) -> Result<(), String> {
        let unmerged = repaired.unmerged > 0;
        let as_then = |contents: &Contents| {
            let pairs = contents.iter().find(|(n, _)| n == name);
            pairs.is_some_and(|(_, pairs)| pairs.iter().map(|(k, v)| (k, v)).eq(&got))
        };
        if self.log_only && !self.specimen.history.values().any(as_then) {
            return Err(format!("@{name} is as it was at no time: {got:?}"));
        }
        let last = self.specimen.history.values().last();
        let contents = last.and_then(|contents| contents.iter().find(|(n, _)| n == name));
        let want: BTreeMap<&[u8], &[u8]> = contents
            .map_or(&[][..], |(_, pairs): &(String, Vec<Pair>)| pairs)
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_slice()))
            .collect();
        for (key, value) in &got {
            if want.get(key.as_slice()) == Some(&value.as_slice()) {
                continue;
            }
            let shown = format!("@{name} {} = {}", text::token(key), text::token(value));
            if !self.specimen.was_ever(name, key, value) {
                return Err(format!("{shown}, which was never written"));
            }
            let deleted = !want.contains_key(key.as_slice());
            if !(self.touched(name, key) || self.log || self.log_only || self.rebuilt && deleted) {
                return Err(format!("{shown}, which no damage explains"));
            }
            repaired.older += 1;
        }
        for key in want.keys().filter(|key| !got.contains_key(**key)) {
            if !(self.touched(name, key) || self.log || self.log_only || unmerged) {
                return Err(format!("@{name} {} is gone", text::token(key)));
            }
            repaired.missing += u64::from(!unmerged);
        }
        Ok(())
    }

    /// Whether a damaged table may have had something about this key.
    fn touched(&self, name: &str, key: &[u8]) -> bool {
        self.judge.changed.iter().any(|(file, _)| {
            let hull = self.specimen.hulls.get(file);
            hull.is_some_and(|(keyspace, lo, hi)| {
                keyspace == name && lo.as_slice() <= key && key <= hi.as_slice()
            })
        })
    }
}
