//! Scenarios in directories with foreign files: those of another engine, and single files of a
//! user.
//!
//! Owns: the foreign files. Never does: expect more than that their bytes stay.

use super::scenario::{Scenario, Verdict, passed};
use super::stage::Stage;
use std::path::Path;

/// The scenarios of this group.
pub(super) const SCENARIOS: &[Scenario] = &[
    ("rocksdbs-directory", |stage| anothers(stage, ROCKSDB)),
    ("leveldbs-directory", |stage| anothers(stage, LEVELDB)),
    ("a-foreign-manifest-and-no-current", |stage| to_be_created(stage, &LEFT_BEHIND)),
    ("a-foreign-temporary-file", |stage| to_be_created(stage, &LEFT_BEHIND[1..])),
    ("files-of-the-users", users_files),
];

type Files = &'static [(&'static str, &'static [u8])];

const ROCKSDB: Files = &[
    ("CURRENT", b"MANIFEST-000005\n"),
    ("MANIFEST-000005", b"\x56\xf9\xb8\xf8\x1c\x00\x01\x01\x1aleveldb.BytewiseComparator"),
    ("000004.sst", b"a table of RocksDB's, with its footer \xf7\xcf\xf4\x85\xb7\x41\xe2\x88"),
    ("000009.log", b"\x00\x00\x00\x00"),
    ("000012.tmp", b"half of something"),
    ("IDENTITY", b"f1c7a4ac-1b4f-4a6f-8a3e-1fd0b2a7f0c1"),
    ("OPTIONS-000007", b"[Version]\n  rocksdb_version=9.0.0\n"),
    ("LOG", b"2026/01/01-00:00:00.000000 RocksDB version: 9.0.0\n"),
    ("LOCK", b""),
];

const LEVELDB: Files = &[
    ("CURRENT", b"MANIFEST-000002\n"),
    ("MANIFEST-000002", b"\x56\xf9\xb8\xf8\x1c\x00\x01\x01\x1aleveldb.BytewiseComparator"),
    ("000005.ldb", b"a table of LevelDB's"),
    ("000004.sst", b"an older one \x57\xfb\x80\x8b\x24\x75\x47\xdb"),
    ("000003.log", b"\x00\x00\x00\x00"),
    ("LOG", b"2026/01/01-00:00:00.000000 Recovering log #3\n"),
    ("LOCK", b""),
];

const LEFT_BEHIND: [(&str, &[u8]); 3] =
    [("MANIFEST-000099", b"not ours"), ("000123.tmp", b"not ours either"), ("notes.txt", b"mine")];

fn lay(dir: &str, files: &[(&str, &[u8])]) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    files.iter().try_for_each(|(name, bytes)| {
        std::fs::write(Path::new(dir).join(name), bytes).map_err(|e| format!("{name}: {e}"))
    })
}

/// Every request on another engine's directory is refused, or does nothing; the directory stays the
/// same, to the byte.
fn anothers(stage: &Stage, files: Files) -> Verdict {
    let dir = stage.at("theirs");
    lay(&dir, files)?;
    let before = stage.print(&dir)?;
    let mut actor = stage.actor()?;
    let mut said = String::new();
    for command in ["open", "read", "destroy", "repair"] {
        let tag = if command == "open" || command == "read" { " one" } else { "" };
        let line = format!("{command} {dir}{tag}");
        said = actor.fails(&line, &["CURRENT", "Windrow", "database"])?;
        stage.untouched(&dir, &before).map_err(|why| format!("{command}: {why}"))?;
        let after = stage.print(&dir)?;
        if after.len() != before.len() {
            return Err(format!("{command} made files in it"));
        }
    }
    passed(format!("refused to open, read, destroy and repair: {said}"))
}

/// A database is made next to foreign files, or it is not; the files stay.
fn to_be_created(stage: &Stage, files: &[(&str, &[u8])]) -> Verdict {
    let dir = stage.at("db");
    lay(&dir, files)?;
    let mine = stage.print(&dir)?;
    let files_only = mine.into_iter().filter(|(path, _)| path.is_file()).collect();
    let mut actor = stage.actor()?;
    let opened = actor.tries(&format!("open {dir} one"))?;
    if opened.is_ok() {
        for command in ["write 3000", "flush", "compact", "close"] {
            actor.does(command)?;
        }
    }
    let acknowledged = actor.kill();
    stage.untouched(&dir, &files_only)?;
    match opened {
        Ok(_) => {
            stage.holds(&dir, "one", acknowledged)?;
            stage.untouched(&dir, &files_only)?;
            passed(format!("made next to them, {acknowledged} keys"))
        }
        Err(why) => passed(format!("refused: {why}")),
    }
}

fn users_files(stage: &Stage) -> Verdict {
    let dir = stage.at("db");
    lay(&dir, &[("notes.txt", b"mine"), ("1.sst.bak", b"mine too"), ("sst", b"and this")])?;
    lay(&stage.at("db/sub"), &[("000001.sst", b"below"), ("CURRENT", b"below")])?;
    let mine = stage.print(&dir)?;
    let mut actor = stage.holder(&dir, "one")?;
    for command in ["write 4000", "flush", "compact", "write 100", "close"] {
        actor.does(command)?;
    }
    let acknowledged = actor.kill();
    stage.untouched(&dir, &mine)?;
    stage.holds(&dir, "one", acknowledged)?;
    stage.actor()?.does(&format!("destroy {dir}"))?;
    stage.untouched(&dir, &mine)?;
    if stage.print(&dir)?.len() != mine.len() {
        return Err("destroy left files of its own".into());
    }
    passed(format!("{acknowledged} keys next to them, and destroyed without them"))
}
