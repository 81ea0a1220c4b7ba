//! Scenarios in which the directory was moved, was replaced by another one, or has two names.
//!
//! If the directory was only moved, nothing acknowledged is lost. If it was removed or replaced
//! under its owner, the owner must get an error, at the latest from `close`, and the files at its
//! place are not touched. Owns: the moves. Never does: look into a database.

use super::scenario::{Scenario, Verdict, needs_root, passed, skipped};
use super::stage::{Actor, Stage};
use crate::torture::volume::{self, Kind, Volume};
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use std::path::Path;

/// The scenarios of this group.
pub(super) const SCENARIOS: &[Scenario] = &[
    ("chdir-after-a-relative-open", chdir),
    ("renamed-and-another-at-its-place", renamed),
    ("replaced-by-a-copy", replaced),
    ("restored-in-place", restored_in_place),
    ("deleted-under-a-writer", deleted),
    ("unmounted-under-a-writer", unmounted),
    ("two-paths-symlink", |stage| two_paths(stage, "link")),
    ("two-paths-relative", |stage| two_paths(stage, "x/../db")),
    ("two-paths-bind-mount", bind_mount),
    ("symlink-leads-elsewhere-later", link_moves),
];

/// Another database is at the same relative path below the directory that the process changes to.
fn chdir(stage: &Stage) -> Verdict {
    for name in ["here", "there"] {
        std::fs::create_dir(stage.at(name)).map_err(|e| e.to_string())?;
    }
    stage.made(&stage.at("there/db"), "two", 1_500)?;
    let before = stage.print(&stage.at("there"))?;
    let mut writer = stage.actor()?;
    writer.does(&format!("chdir {}", stage.at("here")))?;
    writer.does("open db one")?;
    writer.does("write 500")?;
    writer.does(&format!("chdir {}", stage.at("there")))?;
    for command in ["write 4000", "flush", "write 500", "compact", "write 100", "check", "close"] {
        writer.does(command)?;
    }
    let acknowledged = writer.kill();
    stage.untouched(&stage.at("there"), &before)?;
    stage.holds(&stage.at("here/db"), "one", acknowledged)?;
    stage.holds(&stage.at("there/db"), "two", 1_500)?;
    passed(format!("{acknowledged} keys, and 1500 of the other"))
}

/// Writes, flushes, merges and closes, as far as possible. Returns the first refusal.
fn goes_on(writer: &mut Actor) -> Result<Option<String>, String> {
    let mut refused = None;
    for command in ["write 6000", "flush", "compact", "write 100 synced", "close"] {
        if let Err(why) = writer.tries(command)? {
            refused.get_or_insert(why);
        }
    }
    Ok(refused)
}

fn renamed(stage: &Stage) -> Verdict {
    let (db, moved) = (stage.at("db"), stage.at("moved"));
    let mut writer = stage.holder(&db, "one")?;
    writer.does("write 1500")?;
    std::fs::rename(&db, &moved).map_err(|e| e.to_string())?;
    let mut other = stage.holder(&db, "two")?;
    other.does("write 1500")?;
    let refused = goes_on(&mut writer)?;
    for command in ["write 500", "check", "close"] {
        other.does(command)?;
    }
    let (acknowledged, others) = (writer.kill(), other.kill());
    stage.holds(&moved, "one", acknowledged)?;
    stage.holds(&db, "two", others)?;
    let told = refused.map_or("went on".to_owned(), |why| format!("was told: {why}"));
    passed(format!("{acknowledged} keys where it went, {others} of the other; the writer {told}"))
}

/// Removes a directory in which another process still makes files.
fn remove(stage: &Stage, dir: &str) -> Result<(), String> {
    let mut last = Ok(());
    for _ in 0..100 {
        last = stage.tool(&format!("rm -rf {dir}"));
        if last.is_ok() {
            break;
        }
    }
    last
}

fn replaced(stage: &Stage) -> Verdict {
    let (db, backup) = (stage.at("db"), stage.at("backup"));
    stage.made(&db, "one", 1_500)?;
    stage.tool(&format!("cp -a {db} {backup}"))?;
    let mut writer = stage.holder(&db, "one")?;
    writer.does("write 500")?;
    remove(stage, &db)?;
    stage.tool(&format!("cp -a {backup} {db}"))?;
    let before = stage.print(&db)?;
    let refused = goes_on(&mut writer)?;
    writer.kill();
    let Some(why) = refused else {
        return Err("the writer was told nothing: all that it wrote is nowhere".into());
    };
    stage.untouched(&db, &before)?;
    stage.holds(&db, "one", 1_500)?;
    passed(format!("the copy is whole; the writer was told: {why}"))
}

/// Files are copied over those of a running database. No engine can keep that whole; a later open
/// must show one state, or be refused.
fn restored_in_place(stage: &Stage) -> Verdict {
    let (db, backup) = (stage.at("db"), stage.at("backup"));
    stage.made(&db, "one", 1_500)?;
    stage.tool(&format!("cp -a {db} {backup}"))?;
    let mut writer = stage.holder(&db, "one")?;
    for command in ["write 3000", "flush", "write 500"] {
        writer.does(command)?;
    }
    stage.tool(&format!("cp -a {backup}/. {db}/"))?;
    let told = goes_on(&mut writer)?.unwrap_or("nothing".to_owned());
    let acknowledged = writer.kill();
    let mut next = stage.actor()?;
    match next.tries(&format!("open {db} one"))? {
        Ok(found) if stage.sabotage => Err(format!("{found} keys, and sabotage unnoticed")),
        Ok(found) if found < 1_500 => Err(format!("opened with {found} keys, fewer than either")),
        Ok(found) if told == "nothing" && found < acknowledged => Err(format!(
            "the writer was told nothing, and {found} of {acknowledged} keys are there"
        )),
        Ok(found) => passed(format!("opened with {found} keys; the writer was told: {told}")),
        Err(why) if why.contains("corruption") => {
            passed(format!("the writer was told: {told}; the next one: {why}"))
        }
        Err(why) => Err(format!("refused in unclear words: {why}")),
    }
}

fn deleted(stage: &Stage) -> Verdict {
    let db = stage.at("db");
    let mut writer = stage.holder(&db, "one")?;
    writer.does("write 500")?;
    remove(stage, &db)?;
    let refused = goes_on(&mut writer)?;
    writer.kill();
    if Path::new(&db).exists() && !stage.sabotage {
        return Err("files came to the old place".into());
    }
    match refused {
        Some(_) if stage.sabotage => Err("sabotage".into()),
        Some(why) => passed(format!("the writer was told: {why}")),
        None => Err("the writer was told nothing: all that it wrote is nowhere".into()),
    }
}

/// A lazy unmount: names of the mounted directory then lead to the bare mount point.
fn unmounted(stage: &Stage) -> Verdict {
    if let Some(why) = volume::missing(Kind::Ext4) {
        return skipped(why);
    }
    let mut volume = Volume::new(&stage.root, Kind::Ext4, 96 << 20)?;
    volume.mount()?;
    let point = volume.path().display().to_string();
    let db = format!("{point}/db");
    let mut writer = stage.holder(&db, "one")?;
    writer.does("write 1500")?;
    unmount(volume.path(), UnmountFlags::DETACH).map_err(|e| format!("unmount: {e}"))?;
    let refused = goes_on(&mut writer)?;
    let acknowledged = writer.kill();
    let left = std::fs::read_dir(&point).map_err(|e| e.to_string())?.count();
    if left > 0 {
        return Err(format!("{left} files were written beneath the mount point"));
    }
    volume.mount()?;
    stage.holds(&db, "one", acknowledged)?;
    let told = refused.map_or("went on".to_owned(), |why| format!("was told: {why}"));
    passed(format!("{acknowledged} keys after mounting again; the writer {told}"))
}

/// An open by another name is refused while the first has it open.
fn is_refused_by(stage: &Stage, db: &str, path: &str) -> Verdict {
    let mut holder = stage.holder(db, "one")?;
    holder.does("write 1500")?;
    let mut second = stage.actor()?;
    for command in ["open", "read"] {
        second.fails(&format!("{command} {path} one"), &["busy"])?;
        holder.fails(&format!("{command} {path} one"), &["busy"])?;
    }
    // A link is refused as a link, before the lock is checked.
    second.fails(&format!("destroy {path}"), &["busy", "is a symbolic link"])?;
    second.fails(&format!("repair {path}"), &["busy"])?;
    for command in ["write 500", "check", "close"] {
        holder.does(command)?;
    }
    let acknowledged = holder.kill();
    stage.holds(db, "one", acknowledged)?;
    passed(format!("{acknowledged} keys; refused by the other name"))
}

fn two_paths(stage: &Stage, path: &str) -> Verdict {
    std::fs::create_dir(stage.at("x")).map_err(|e| e.to_string())?;
    std::fs::create_dir(stage.at("db")).map_err(|e| e.to_string())?;
    std::os::unix::fs::symlink(stage.at("db"), stage.at("link")).map_err(|e| e.to_string())?;
    is_refused_by(stage, &stage.at("db"), path)
}

fn bind_mount(stage: &Stage) -> Verdict {
    if let Some(why) = needs_root() {
        return skipped(why);
    }
    let (db, bound) = (stage.at("db"), stage.at("bound"));
    for dir in [&db, &bound] {
        std::fs::create_dir(dir).map_err(|e| e.to_string())?;
    }
    mount_bind(&*db, &*bound).map_err(|e| format!("bind: {e}"))?;
    let verdict = is_refused_by(stage, &db, &bound);
    unmount(&*bound, UnmountFlags::DETACH).map_err(|e| format!("unmount: {e}"))?;
    verdict
}

/// The link that a database was opened by leads to another one later.
fn link_moves(stage: &Stage) -> Verdict {
    let (first, second, link) = (stage.at("first"), stage.at("second"), stage.at("link"));
    stage.made(&second, "two", 1_500)?;
    std::fs::create_dir(&first).map_err(|e| e.to_string())?;
    let leads = |to: &str| std::os::unix::fs::symlink(to, &link).map_err(|e| e.to_string());
    leads(&first)?;
    let mut writer = stage.holder(&link, "one")?;
    writer.does("write 1500")?;
    std::fs::remove_file(&link).map_err(|e| e.to_string())?;
    leads(&second)?;
    let before = stage.print(&second)?;
    let refused = goes_on(&mut writer)?;
    let acknowledged = writer.kill();
    stage.untouched(&second, &before)?;
    stage.holds(&first, "one", acknowledged)?;
    stage.holds(&second, "two", 1_500)?;
    let told = refused.map_or("went on".to_owned(), |why| format!("was told: {why}"));
    passed(format!("{acknowledged} keys in the first, 1500 in the second; the writer {told}"))
}
