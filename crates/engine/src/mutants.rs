//! What mutants do to an edit of the tree beyond leaving something out: steps
//! taken too early, too late, or after a failure. Nothing, in an ordinary build.
//!
//! Owns: no state. Never does: anything that a mutant of the table does not name.

use crate::cleanup::Cleanup;
use crate::host::Host;
use crate::write::segments::Segments;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{FileNumber, Result, mutant};
use windrow_env::Env;
use windrow_format::names;
use windrow_plan::tree::Edit;

/// The tables that an edit adds, where somebody will ask.
pub(crate) fn added(edit: &Edit) -> Vec<FileNumber> {
    match mutant!(FailedEditUnlinks) {
        true => edit.added.iter().map(|(_, _, file)| file.number).collect(),
        false => Vec::new(),
    }
}

/// Before the edit is logged.
pub(crate) fn before_edit(host: &Host, gone: &HashSet<FileNumber>) {
    if mutant!(UnlinkBeforeEdit) {
        gone.iter().for_each(|&number| remove(host, number));
    }
}

/// Before the edit of a flush is logged.
pub(crate) fn before_flush_edit(segments: &Segments, cleanup: &Arc<Cleanup>) {
    if mutant!(LogsBeforeEdit) {
        let number = segments.queue.lock().wal.number;
        segments.retire_below(number);
        cleanup.run(false);
    }
}

/// After the edit could not be logged.
pub(crate) fn after_failed_edit(host: &Host, added: &[FileNumber]) {
    if mutant!(FailedEditUnlinks) {
        added.iter().for_each(|&number| remove(host, number));
    }
}

/// After the edit was logged and is visible.
pub(crate) fn after_edit(host: &Host) -> Result<()> {
    if mutant!(TableNameAfterEdit) {
        host.env.fs.sync_dir(&host.dir)?;
    }
    Ok(())
}

fn remove(host: &Host, number: FileNumber) {
    // Gone already is as good.
    let _ = host.env.fs.remove(&host.dir.join(names::table(number)));
}

/// What repair did once: a damaged file goes while the manifest names it.
pub(crate) fn move_to_lost(env: &Env, dir: &Path, name: &str) -> Result<()> {
    let (from, lost) = (dir.join(name), dir.join("lost"));
    if !env.fs.exists(&from)? {
        return Ok(());
    }
    env.fs.create_dir(&lost)?;
    env.fs.rename(&from, &lost.join(name))?;
    env.fs.sync_dir(&lost)?;
    env.fs.sync_dir(dir)
}
