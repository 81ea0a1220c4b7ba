//! Scenarios of a directory that other programs also work in: its files are replaced under an open
//! database, and it contains files that are not Windrow's.
//!
//! Owns: the scenarios. Never does: move the directory; the engine's own tests do.

use super::steps::{ensure, killed, open, text, with_contents};
use std::path::{Path, PathBuf};
use windrow::WriteSync;
use windrow_env::testing::{Handles, env};
use windrow_testkit::world::DIR;

fn paths(handles: &Handles) -> Vec<PathBuf> {
    let path = |name| Path::new(DIR).join(name);
    handles.fs.files(Path::new(DIR)).into_iter().map(path).collect()
}

/// A caller who is told that a write is durable, or that the database is closed, finds it in the
/// directory.
pub(super) fn a_replaced_directory_is_noticed() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = with_contents(&handles)?;
    for path in paths(&handles) {
        let bytes = handles.fs.read_file(&path).ok_or("no file")?;
        handles.fs.remove_file(&path);
        handles.fs.write_file(&path, &bytes);
    }
    ensure(db.put_with("c", "3", WriteSync::Yes).is_err(), "a synced write went nowhere")?;
    ensure(db.flush().is_err(), "a flush went nowhere")?;
    ensure(db.close().is_err(), "a close of what is gone succeeded")
}

/// A file that does not begin as a file of Windrow's is not removed, whatever its name.
pub(super) fn strangers_stay() -> Result<(), String> {
    let (_, handles) = env(1);
    let handles = killed(with_contents(&handles)?, &handles, 1);
    let names = ["000123.tmp", "MANIFEST-000099", "000777.sst", "000778.wal"];
    let strangers = names.map(|name| Path::new(DIR).join(name));
    for path in &strangers {
        handles.fs.write_file(path, b"a stranger's");
    }
    let db = open(&handles)?;
    db.put("d", "4").and_then(|()| db.flush()).and_then(|()| db.close()).map_err(text)?;
    for path in &strangers {
        let bytes = handles.fs.read_file(path);
        ensure(bytes.as_deref() == Some(b"a stranger's"), &format!("{} is gone", path.display()))?;
    }
    Ok(())
}
