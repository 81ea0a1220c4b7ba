//! Scenarios in which rights are taken away: those of the directory or its files while it is open,
//! those of the whole file system before it is opened.
//!
//! Owns: the rights. Never does: run such a scenario as root; an actor becomes another user first.

use super::scenario::{Scenario, Verdict, needs_root, passed, skipped};
use super::stage::Stage;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::ffi::CStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The scenarios of this group.
pub(super) const SCENARIOS: &[Scenario] = &[
    ("rights-of-the-directory-taken-away", |stage| taken(stage, false)),
    ("rights-of-the-files-taken-away", |stage| taken(stage, true)),
    ("the-directory-may-not-be-entered", not_entered),
    ("mounted-read-only", read_only),
];

/// The user id of nobody, by tradition.
const NOBODY: u32 = 65_534;

fn set(path: &Path, mode: u32) -> Result<(), String> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Makes a directory that the user of the actors owns. Rights do not limit root, so under root they
/// become another user; returns the command for that.
fn own_directory(stage: &Stage) -> Result<Option<String>, String> {
    std::fs::create_dir(stage.at("db")).map_err(|e| e.to_string())?;
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    std::os::unix::fs::chown(stage.at("db"), Some(NOBODY), Some(NOBODY))
        .map_err(|e| e.to_string())?;
    // The directories above must let it through.
    let mut above = Some(stage.root.as_path());
    while let Some(dir) = above.filter(|dir| *dir != Path::new("/tmp") && dir.parent().is_some()) {
        if std::fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o001 == 0) {
            set(dir, 0o755)?;
        }
        above = dir.parent().filter(|parent| parent.starts_with(std::env::temp_dir()));
    }
    Ok(Some(format!("uid {NOBODY}")))
}

/// An open database goes on or is refused cleanly; with the rights back nothing is lost.
fn taken(stage: &Stage, of_files: bool) -> Verdict {
    let become_user = own_directory(stage)?;
    let db = stage.at("db");
    let mut writer = stage.actor()?;
    if let Some(line) = &become_user {
        writer.does(line)?;
    }
    writer.does(&format!("open {db} one"))?;
    for command in ["write 1500", "flush", "write 500"] {
        writer.does(command)?;
    }
    let all = || -> Result<Vec<std::path::PathBuf>, String> {
        match of_files {
            false => Ok(vec![db.clone().into()]),
            true => {
                let entries = std::fs::read_dir(&db).map_err(|e| e.to_string())?;
                Ok(entries.flatten().map(|entry| entry.path()).collect())
            }
        }
    };
    let without: Vec<_> = all()?;
    without.iter().try_for_each(|path| set(path, 0))?;
    let mut refused = None;
    for command in ["write 6000", "flush", "write 100 synced", "compact"] {
        if let Err(why) = writer.tries(command)? {
            refused.get_or_insert(why);
        }
    }
    let back = if of_files { 0o644 } else { 0o755 };
    without.iter().filter(|path| path.exists()).try_for_each(|path| set(path, back))?;
    let closed = writer.tries("close")?;
    let acknowledged = writer.kill();
    if refused.is_none() && closed.is_err() {
        return Err(format!("all was done, and then the close failed: {closed:?}"));
    }
    stage.holds(&db, "one", acknowledged)?;
    let told = refused.map_or("went on".to_owned(), |why| format!("was told: {why}"));
    passed(format!("{acknowledged} keys; the writer {told}"))
}

fn not_entered(stage: &Stage) -> Verdict {
    let become_user = own_directory(stage)?;
    let db = stage.at("db");
    let mut actor = stage.actor()?;
    if let Some(line) = &become_user {
        actor.does(line)?;
    }
    actor.does(&format!("open {db} one"))?;
    actor.does("write 1500")?;
    actor.does("close")?;
    actor.does("drop")?;
    set(Path::new(&db), 0)?;
    let mut said = String::new();
    for command in ["open", "read"] {
        said = actor.fails(&format!("{command} {db} one"), &["ermission denied"])?;
        if !said.contains(&db) {
            return Err(format!("the error does not name {db}: {said}"));
        }
    }
    set(Path::new(&db), 0o755)?;
    stage.holds(&db, "one", 1_500)?;
    passed(format!("1500 keys; {said}"))
}

/// An open for writing is refused, one for reading is not, also after a kill.
fn read_only(stage: &Stage) -> Verdict {
    if let Some(why) = needs_root() {
        return skipped(why);
    }
    let (point, db) = (stage.at("mounted"), stage.at("mounted/db"));
    std::fs::create_dir(&point).map_err(|e| e.to_string())?;
    mount("tmpfs", &*point, "tmpfs", MountFlags::empty(), None::<&CStr>)
        .map_err(|e| format!("mount: {e}"))?;
    let verdict = (|| {
        let mut writer = stage.holder(&db, "one")?;
        for command in ["write 1500", "flush", "write 500"] {
            writer.does(command)?;
        }
        let acknowledged = writer.kill();
        let remount =
            |flags| mount_remount(&*point, flags, "").map_err(|e| format!("remount: {e}"));
        remount(MountFlags::RDONLY)?;
        let before = stage.print(&db)?;
        let mut actor = stage.actor()?;
        let said = actor.fails(&format!("open {db} one"), &["ead-only"])?;
        let found = actor.does(&format!("read {db} one"))?;
        if found < acknowledged {
            return Err(format!("{found} keys of {acknowledged} by a read-only open"));
        }
        actor.does("close")?;
        drop(actor);
        let same = stage.print(&db)? == before;
        remount(MountFlags::empty())?;
        if !same {
            return Err("a read-only mount changed".into());
        }
        stage.holds(&db, "one", acknowledged)?;
        passed(format!("{acknowledged} keys; {said}"))
    })();
    unmount(&*point, UnmountFlags::DETACH).map_err(|e| format!("unmount: {e}"))?;
    verdict
}
