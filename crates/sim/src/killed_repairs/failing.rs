//! Repairs in which one write fails, at every operation, and that are then run again without a
//! failure: the second one saves what one run saves.
//!
//! A killed repair never reads on after a write that failed. One that goes on does, and must not
//! take the failure for damage of the files that it reads. Its memory at that moment matters only
//! if the logs fill several memtables, so there is a database for that (`made_of_logs`).
//!
//! Owns: the failures. Never does: make reads fail; a file that cannot be read counts as damaged.

use super::specimen::{Damage, Specimen, kill, look, options, with_end};
use crate::share::{Share, each};
use crate::trial::forked;
use windrow::{Db, Options, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When, env};
use windrow_testkit::world::DIR;

/// The failures of an operation, in turn.
const KINDS: [FaultKind; 3] = [FaultKind::NoSpace, FaultKind::TooManyFiles, FaultKind::Io];
/// The size of memtable with which the logs were written: a repair fills several of its own from
/// them.
const MEMTABLE_BYTES: u64 = 256 << 10;
/// Keys before and behind the beginning of the second log, each with 1,000 bytes.
const KEYS: [u32; 2] = [140, 80];

/// The damages of databases whose logs fill several memtables.
pub(super) const SPECIMENS: &[&[Damage]] = &[&[], &[Damage::Manifest]];

/// Makes one operation fail, and none after it.
pub(super) fn once(specimen: &Specimen, share: Share) -> Result<u64, String> {
    let kinds = KINDS.len() as u64;
    each("a repair with a failure", specimen.operations * kinds, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let world = forked(&specimen.handles, case);
        let at = When::Operation(world.fs.operations() + case / kinds);
        let kind = KINDS[(case % kinds) as usize];
        world.fs.inject(Fault::new(kind, Ops::MUTATING, at));
        let done = windrow::repair(DIR, options(&world)?);
        world.jobs.discard();
        world.fs.clear_faults();
        let saved = look(&world, true)?;
        if done.is_ok() && saved.as_ref() != Ok(&specimen.saved) {
            return Err(format!("{kind:?}: a repair that went well has not saved all"));
        }
        specimen.must_be_sane(&world).map_err(|e| format!("{kind:?}, {done:?}: {e}"))?;
        specimen.must_save(&world).map_err(|e| format!("{kind:?}, {done:?}: {e}"))?;
        Ok(1)
    })
}

/// Makes a killed database with two logs that fill several memtables of a repair.
pub(super) fn made_of_logs() -> Result<Handles, String> {
    let (_, handles) = env(1);
    let text = |e: windrow::Error| e.to_string();
    let mut new = Options { create_if_missing: true, ..options(&handles)? };
    new.settings.memtable_bytes = MEMTABLE_BYTES;
    let db = Db::open_with(DIR, new).map_err(text)?;
    let plain = db.keyspace("plain").map_err(text)?;
    for (round, count) in (0_u8..).zip(KEYS) {
        for n in 0..count {
            plain.put(format!("k{n:03}/{round}"), [round; 1_000]).map_err(text)?;
        }
        db.put("a", [round]).map_err(text)?;
        if round == 0 {
            // The next log exists already, and the flush starts it.
            db.wait_idle().and_then(|()| db.default_keyspace().flush()).map_err(text)?;
        }
    }
    db.put_with("end", "", WriteSync::Yes).map_err(text)?;
    drop(plain);
    kill(&handles, db);
    let (tables, logs) = (with_end(&handles, ".sst").len(), with_end(&handles, ".wal").len());
    match tables == 1 && logs > 1 {
        true => Ok(handles),
        false => Err(format!("{tables} tables and {logs} logs are no database of logs")),
    }
}
