//! Checkpoint: a copy of the database that shares its tables by hard links;
//! and destroy, which removes a database's files.
//!
//! The target gets its tables first, then a manifest and the empty log of a
//! clean close, and CURRENT last: a target that is not complete is refused
//! by open (rule R1). The source is only read, after a flush.

use crate::core::Core;
use crate::events::Event;
use crate::manifest::log::{ManifestLog, set_current};
use crate::manifest::record::{Field, Record};
use crate::manifest::state::ManifestState;
use crate::read::view::ReadView;
use crate::recovery::Listing;
use crate::tree::Tree;
use crate::write::segments::{EMPTY_BYTES, create_wal};
use std::path::Path;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, FileNumber, Result, SeqNo, mutant};
use windrow_env::Env;
use windrow_env::fs::{LockMode, ReadOptions, WriteOptions};
use windrow_env::sync::atomic::Ordering;
use windrow_format::names;

/// Bytes copied at a time where links are not to be had.
const COPY_BYTES: usize = 1 << 20;

/// Copies the database as it is now into `target`.
pub(crate) fn checkpoint(core: &Core, target: &Path) -> Result<()> {
    core.latch.check()?;
    check_empty(&core.env, target)?;
    core.env.fs.create_dir(target)?;
    // A close waits for the copy, which gives up at the next file.
    let _underway = core.begin_work()?;
    // The views keep every table alive until it is linked.
    let (mut state, _views) = one_moment(core)?;
    let (mut linked_bytes, mut copied_bytes, mut files) = (0, 0, 0);
    for keyspace in state.keyspaces.values() {
        for (_, _, file) in keyspace.version.files() {
            files += 1;
            core.check_open()?;
            if link_or_copy(core, target, file.number)? {
                linked_bytes += file.bytes;
            } else {
                copied_bytes += file.bytes;
            }
        }
    }
    core.env.fs.sync_dir(target)?;
    write_metadata(core, target, &mut state)?;
    core.events.send_with(|| Event::CheckpointCreated { files, linked_bytes, copied_bytes });
    Ok(())
}

fn check_empty(env: &Env, target: &Path) -> Result<()> {
    if env.fs.exists(target)? && !env.fs.list(target)?.is_empty() {
        return Err(Error::invalid(format!(
            "{} is not empty: a checkpoint needs a directory of its own",
            target.display()
        )));
    }
    Ok(())
}

/// The manifest's state when its tables hold all that was written up to one
/// moment, in every keyspace, and nothing later (P3): and the views that pin
/// them. Flushing keyspace by keyspace while writes go on would not do: a batch
/// could be in the tables of the one and not in those of the other.
fn one_moment(core: &Core) -> Result<(ManifestState, Vec<Arc<ReadView>>)> {
    let _one = core.checkpointing.lock();
    let through = freeze_all(core)?;
    let _held = HeldFlushes(core);
    core.schedule();
    core.wait_until(|| {
        if let Err(error) = core.latch.check().and_then(|()| core.check_open()) {
            return Some(Err(error));
        }
        let later =
            |tree: &Arc<Tree>| tree.view().frozen.last().is_none_or(|m| through < m.last_seq());
        core.trees().iter().all(later).then_some(Ok(()))
    })?;
    let manifest = core.manifest.lock();
    // A close flushes what was held, and installs it under this lock.
    core.check_open()?;
    // Views are installed under the manifest's lock: these agree with the state.
    let views = core.trees().iter().map(|tree| tree.pin()).collect();
    Ok((manifest.state.clone(), views))
}

/// Freezes every keyspace's memtable at one sequence number, and holds flushes
/// of what comes after it. Returns that number.
fn freeze_all(core: &Core) -> Result<SeqNo> {
    core.latch.check()?;
    let mut queue = core.queue.lock();
    core.check_open()?;
    if queue.unflushed.active().len() > 0 {
        // The log goes on in the next segment, if there is one.
        core.rotate_wal(&mut queue);
        core.freeze_all(&mut queue);
    }
    let through = queue.last_seq();
    core.flush_through.store(through, Ordering::Release);
    Ok(through)
}

/// Lets held flushes go on, whatever became of the checkpoint.
struct HeldFlushes<'a>(&'a Core);

impl Drop for HeldFlushes<'_> {
    fn drop(&mut self) {
        self.0.flush_through.store(SeqNo::MAX, Ordering::Release);
        self.0.schedule();
        self.0.note_progress();
    }
}

/// Links a table into the target, or copies it where links are not to be had.
/// Returns whether it was linked.
///
/// A link that failed for another reason may be there all the same, and a copy
/// made under its name would be written into the source's own table.
fn link_or_copy(core: &Core, target: &Path, number: FileNumber) -> Result<bool> {
    let name = names::table(number);
    let (from, to) = (core.dir.join(&name), target.join(&name));
    match core.env.fs.link(&from, &to) {
        Ok(()) => return Ok(true),
        Err(e) if e.kind() == ErrorKind::NotSupported => {}
        Err(e) if mutant!(CheckpointCopiesOver) && e.kind() == ErrorKind::Io => {}
        Err(_) if mutant!(CheckpointErrorIgnored) => return Ok(true),
        Err(e) => return Err(e),
    }
    let source = core.env.fs.open(&from, ReadOptions::default())?;
    let mut copy = core.env.fs.create(&to, WriteOptions::default())?;
    let mut buf = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < source.len() {
        let chunk = COPY_BYTES.min((source.len() - at) as usize);
        source.read_at(at, &mut buf[..chunk])?;
        copy.append(&buf[..chunk])?;
        at += chunk as u64;
    }
    copy.finish()?;
    Ok(false)
}

/// Manifest, empty log, CURRENT: the form that a clean close leaves.
fn write_metadata(core: &Core, target: &Path, state: &mut ManifestState) -> Result<()> {
    let env = &core.env;
    let number_max = core.next_file.load(Ordering::Relaxed);
    let (manifest_number, wal_number) = (number_max, number_max + 1);
    // All that was in logs when the state was taken and is not in tables is
    // left out: the sequence numbers of the copy end where its tables do.
    let through = state.keyspaces.values().map(|k| k.version.flushed_through).max();
    let last_seq = through.unwrap_or(0).max(state.last_seq);
    state.last_seq = last_seq;
    state.log_number = wal_number;
    state.log_first_seq = last_seq + 1;
    state.wals.clear();
    state.next_file = number_max + 2;
    let mut log = ManifestLog::create(env, target, manifest_number, &state.snapshot())?;
    let wal = create_wal(env, target, wal_number, log.in_force(), EMPTY_BYTES)?;
    log.append(&Record(vec![
        wal.added(),
        Field::CleanClose { wal: wal_number, bytes: EMPTY_BYTES },
    ]))?;
    log.finish()?;
    set_current(env, target, &core.current(&log))
}

/// Removes the files of the database in `dir`. Files that are not Windrow's
/// stay, and then so does the directory.
pub(crate) fn destroy(env: &Env, dir: &Path) -> Result<()> {
    if !env.fs.exists(dir)? {
        return Ok(());
    }
    let lock = env.fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
    let listing = Listing::read(env, dir)?;
    // CURRENT goes last but for the lock: a destroy that is cut short leaves
    // something that says it is a database, and can be destroyed again.
    let tables = listing.tables.iter().map(|&n| names::table(n));
    let wals = listing.wals.iter().map(|&n| names::wal(n));
    let manifests = listing.manifests.iter().map(|&n| names::manifest(n));
    let reserve = listing.reserve.then(|| names::RESERVE.to_owned());
    let current = listing.current.then(|| names::CURRENT.to_owned());
    let temporary = listing.temporary.iter().map(|&n| names::temp(n));
    let repairs = listing.repairs.iter().map(|&n| names::repair(n));
    let temporary = temporary.chain(repairs);
    for name in tables.chain(wals).chain(temporary).chain(manifests).chain(reserve) {
        env.fs.remove(&dir.join(name))?;
    }
    for name in current.into_iter().chain([names::LOCK.to_owned()]) {
        env.fs.remove(&dir.join(name))?;
    }
    env.fs.sync_dir(dir)?;
    drop(lock);
    if env.fs.list(dir)?.is_empty() {
        env.fs.remove_dir(dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Components, Db, Options};
    use windrow_env::testing::{Fault, FaultKind, Ops, When, env};

    #[test]
    fn a_failed_link_leaves_the_source_whole() {
        for seed in 0..8 {
            let (env, handles) = env(seed);
            let components = Components { env: Some(env), ..Components::default() };
            let options = Options { components, ..Options::default() };
            let db = Db::open_with("/db", options).expect("a new database");
            db.put("a", "1").expect("a write");
            db.flush().expect("a table");
            // The link may be there although the call says it failed.
            handles.fs.inject(Fault::new(FaultKind::Io, Ops::LINK, When::Matching(0)));
            assert_eq!(db.checkpoint("/copy").expect_err("no link").kind(), ErrorKind::Io);
            db.verify().and_then(|report| report.into_result()).expect("whole tables");
            db.checkpoint("/other").expect("the fault is gone");
        }
    }
}
