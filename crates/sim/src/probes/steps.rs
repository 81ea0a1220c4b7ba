//! The common steps of scenarios: opening, filling, killing and damaging a database.
//!
//! Owns: those steps. Never does: expect a result that no scenario asks for.

use std::path::{Path, PathBuf};
use windrow::{Db, ErrorKind, Options, WriteSync};
use windrow_env::testing::Handles;
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::DIR;

pub(super) fn options(handles: &Handles) -> Options {
    let mut options = VARIANTS[0].options().expect("the first variant is valid");
    options.components.env = Some(handles.env());
    options
}

pub(super) fn open(handles: &Handles) -> Result<Db, String> {
    Db::open_with(DIR, options(handles)).map_err(|e| format!("open: {e}"))
}

pub(super) fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

pub(super) fn kind<T>(result: windrow::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

pub(super) fn text(error: windrow::Error) -> String {
    error.to_string()
}

/// Makes a database with one key in a table and one in the log.
pub(super) fn with_contents(handles: &Handles) -> Result<Db, String> {
    let db = open(handles)?;
    db.put("a", "1").and_then(|()| db.flush()).map_err(text)?;
    db.put_with("b", "2", WriteSync::Yes).map_err(text)?;
    Ok(db)
}

/// Returns the world after the process was killed.
pub(super) fn killed(db: Db, handles: &Handles, seed: u64) -> Handles {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.clear_faults();
    handles.fs.kill(seed);
    handles.reborn(seed)
}

/// Returns the present logs, oldest first.
pub(super) fn logs(handles: &Handles) -> Vec<PathBuf> {
    let names = handles.fs.files(Path::new(DIR));
    names
        .iter()
        .filter(|name| name.ends_with(".wal"))
        .map(|name| Path::new(DIR).join(name))
        .collect()
}

/// Damages the last byte that was written to a file.
pub(super) fn damage_end(handles: &Handles, path: &Path) -> Result<(), String> {
    let bytes = handles.fs.read_file(path).ok_or("nothing to damage")?;
    let last = bytes.iter().rposition(|byte| *byte != 0).ok_or("nothing was written")?;
    handles.fs.flip(path, last as u64, 1);
    Ok(())
}

pub(super) fn refused(handles: &Handles, what: &str) -> Result<(), String> {
    let found = kind(Db::open_with(DIR, options(handles)));
    ensure(found == Some(ErrorKind::Corruption), &format!("{what} was opened: {found:?}"))
}
