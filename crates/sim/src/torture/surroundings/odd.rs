//! Scenarios in which LOCK, CURRENT, a table or a log is not a file: a link to a foreign file, a
//! pipe, a directory.
//!
//! In every case nothing hangs, no foreign bytes are touched, and either all is present or an error
//! names the obstacle; with the file back at its place nothing is lost. Owns: what is put where.
//! Never does: decide which of the two it must be.

use super::scenario::{Scenario, Verdict, passed};
use super::stage::Stage;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::{Path, PathBuf};

/// The scenarios of this group.
pub(super) const SCENARIOS: &[Scenario] = &[
    ("lock-is-a-link", |stage| odd(stage, "LOCK", Kind::Link)),
    ("lock-is-a-pipe", |stage| odd(stage, "LOCK", Kind::Pipe)),
    ("lock-is-a-directory", |stage| odd(stage, "LOCK", Kind::Directory)),
    ("current-is-a-link", |stage| odd(stage, "CURRENT", Kind::Link)),
    ("current-is-a-pipe", |stage| odd(stage, "CURRENT", Kind::Pipe)),
    ("current-is-a-directory", |stage| odd(stage, "CURRENT", Kind::Directory)),
    ("a-table-is-a-link", |stage| odd(stage, ".sst", Kind::Link)),
    ("a-table-is-a-pipe", |stage| odd(stage, ".sst", Kind::Pipe)),
    ("a-table-is-a-directory", |stage| odd(stage, ".sst", Kind::Directory)),
    ("a-log-is-a-link", |stage| odd(stage, ".wal", Kind::Link)),
    ("a-log-is-a-pipe", |stage| odd(stage, ".wal", Kind::Pipe)),
    ("a-log-is-a-directory", |stage| odd(stage, ".wal", Kind::Directory)),
    ("an-orphan-that-cannot-be-removed", orphan_directory),
];

/// The object in place of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Link,
    Pipe,
    Directory,
}

/// Returns the newest file of the database whose name ends with `end`.
fn file_of(dir: &str, end: &str) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(dir).map_err(|e| e.to_string())?;
    let paths = entries.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| path.to_string_lossy().ends_with(end);
    paths.filter(fits).max().ok_or_else(|| format!("{dir} has no {end}"))
}

fn put(kind: Kind, at: &Path, original: &Path) -> Result<(), String> {
    match kind {
        Kind::Link => std::os::unix::fs::symlink(original, at).map_err(|e| e.to_string()),
        Kind::Pipe => mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o644), 0)
            .map_err(|e| e.to_string()),
        Kind::Directory => std::fs::create_dir(at).map_err(|e| e.to_string()),
    }
}

fn odd(stage: &Stage, end: &str, kind: Kind) -> Verdict {
    let db = stage.at("db");
    let mut writer = stage.holder(&db, "one")?;
    for command in ["write 1500", "flush", "write 200 synced"] {
        writer.does(command)?;
    }
    let acknowledged = writer.kill();
    let file = file_of(&db, end)?;
    std::fs::create_dir(stage.at("outside")).map_err(|e| e.to_string())?;
    let original = PathBuf::from(stage.at("outside")).join("original");
    std::fs::rename(&file, &original).map_err(|e| e.to_string())?;
    put(kind, &file, &original)?;
    let before = stage.print(&stage.at("outside"))?;
    let mut said = String::new();
    for command in ["read", "open"] {
        let mut actor = stage.actor()?;
        match actor.tries(&format!("{command} {db} one"))? {
            Ok(found) if found < acknowledged => {
                return Err(format!("{command}: {found} keys of {acknowledged}, and no error"));
            }
            Ok(_) => {
                actor.does("close")?;
                said = format!("{command} worked");
            }
            Err(why) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !why.contains(&name) {
                    return Err(format!("{command}: the error does not name {name}: {why}"));
                }
                said = why;
            }
        }
        stage.untouched(&stage.at("outside"), &before).map_err(|w| format!("{command}: {w}"))?;
    }
    if said != "open worked" {
        let removed = match kind {
            Kind::Directory => std::fs::remove_dir(&file),
            _ => std::fs::remove_file(&file),
        };
        removed.and_then(|()| std::fs::rename(&original, &file)).map_err(|e| e.to_string())?;
    }
    stage.holds(&db, "one", acknowledged)?;
    passed(format!("{acknowledged} keys; {said}"))
}

fn bytes_of(dir: &str) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

/// Every open goes on without it, and leaves no more files than the one before.
fn orphan_directory(stage: &Stage) -> Verdict {
    let db = stage.at("db");
    stage.made(&db, "one", 1_500)?;
    std::fs::create_dir(stage.at("db/000777.sst")).map_err(|e| e.to_string())?;
    let mut first = 0;
    for round in 0..10 {
        let mut actor = stage.holder(&db, "one")?;
        actor.does("write 10")?;
        actor.does("close")?;
        let bytes = bytes_of(&db);
        first = if round == 0 { bytes } else { first };
        // Ten small keys a round, in tables of their own.
        if bytes > first + (1 << 20) {
            return Err(format!("{first} bytes after the first open, {bytes} after {}", round + 1));
        }
    }
    stage.holds(&db, "one", 1_600)?;
    passed(format!("1600 keys after ten opens, {} bytes", bytes_of(&db)))
}
