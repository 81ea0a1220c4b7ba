//! Resume: turns writing on again after a background error whose cause can go away. Its steps are
//! those of an open, and the memtables are kept.
//!
//! 1. Jobs and writers stop: they see that writing is off. Writes that were published by then
//!    remain. Entries behind a slot that failed are cut off for ever and for every view
//!    (`Memtable::cut`): their callers were told that they failed, and their sequence numbers are
//!    given out again.
//! 2. The memtables are written to new tables. No file from before is synced or appended to again
//!    (rule R13), neither logs nor manifest. Names that a failed sync may have lost are not relied
//!    on.
//! 3. A new manifest and CURRENT are written. With that the old logs are out of force, and so are
//!    the writes in them that failed. They are removed, which frees their room, unless a follower
//!    may still read them.
//! 4. A new log begins, and writing is on.
//!
//! A failure before CURRENT leaves everything as it was, and the new files are removed
//! (`open/undo.rs`). After a failure behind CURRENT, the state in memory agrees with the new
//! manifest, and the next attempt begins with an empty memtable. In both cases writing remains off,
//! and nothing is lost. Rejected: to go on in the old log. Nobody knows whether a record that
//! failed is there; a reader that did not see it could see it after a crash.
//!
//! Owns: the order of these steps. Never does: decide whether an error's cause can go away
//! (`can_go_away`).

use crate::database::Database;
use crate::discovery::remains::remove_ours;
use crate::kept_changes::{self, published_parts};
use crate::open::undo::{OpenAttempt, resume_needs_bytes};
use std::sync::Arc;
use windrow_base::{
    Error, ErrorKind, FileNumber, KeyspaceId, Result, SeqNo, check_invariant, debug_invariant,
    unless_mutant,
};
use windrow_env::WriteFile;
use windrow_env::fs::is_out_of_descriptors;
use windrow_env::sync::atomic::Ordering;
use windrow_format::names;
use windrow_read::events::Event;
use windrow_read::stats::MergeInput;
use windrow_store::host::workers::Kick;
use windrow_store::host::write_state::can_go_away;
use windrow_store::manifest::state::{KeyspaceState, ManifestState};
use windrow_store::merge::filters::OutputFilters;
use windrow_store::tree::Tree;

/// Turns writing on again. See `Db::resume`.
pub fn resume(database: &Database) -> Result<()> {
    Resume { database }.run()
}

/// A resume of a database.
struct Resume<'a> {
    database: &'a Database,
}

impl Resume<'_> {
    fn run(&self) -> Result<()> {
        // Before any lock is taken: a fork may never see it released.
        self.database.write_state.check_read()?;
        let _one = self.database.resuming.lock();
        // A close waits until this is over.
        let _underway = self.database.workers.begin()?;
        let Err(refusal) = self.database.write_state.check() else {
            // Jobs that wait for room to try again need not wait longer.
            self.database.workers.kick(Kick::RetryNow);
            return Ok(());
        };
        if !self.database.write_state.cause().as_ref().is_some_and(can_go_away) {
            return Err(refusal);
        }
        let begin_ns = self.database.env.clock.monotonic_ns();
        self.stop_everybody();
        let attempt = OpenAttempt::begin(self.database, &self.database.catalog);
        let last_seq = self.database.pipeline.visible();
        let resumed = self.database.workers.contain_panics(|| self.take_over(last_seq));
        resumed.map_err(|error| self.undo_resume(&attempt, error))?;
        let mut catalog = self.database.catalog.lock();
        let segments = &self.database.pipeline.segments;
        let wal = segments.create_first(&mut catalog).map_err(|error| {
            // The manifest may name it.
            self.database.cleanup.keep(&names::wal(catalog.state().log_number));
            self.still_off(0, error)
        })?;
        segments.restart(wal);
        let visible = self.database.pipeline.visible();
        // Later sequence numbers are given out again.
        self.database.pipeline.observers.recent.forget_after(visible);
        debug_invariant!(Q2, visible == last_seq, "{visible} of {last_seq} is visible");
        self.database.write_state.reset()?;
        drop(catalog);
        self.database.cleanup.let_go();
        self.database.cleanup.run(false);
        self.database.counters.resumes.add(1);
        let duration_us = (self.database.env.clock.monotonic_ns() - begin_ns) / 1000;
        self.database.events.send(&Event::Resumed { duration_us });
        self.database.scheduler.schedule();
        Ok(())
    }

    /// Returns once no job runs, and no writer fills a slot or waits for one. Writing is off, so
    /// later writers are refused.
    fn stop_everybody(&self) {
        self.database.wait_until(|| self.database.workers.gate.is_alone().then_some(()));
        self.database.pipeline.queue().settle();
        self.database.pipeline.segments.wal_sync.wait_idle();
        // A thread that makes or drops a keyspace holds this lock until it is done.
        drop(self.database.catalog.lock());
        // A merge that panicked meanwhile did not count down.
        let goes_on = self.database.write_state.cause().is_some_and(|cause| can_go_away(&cause));
        let merges = self.database.workers.merges_running.load(Ordering::Acquire);
        debug_invariant!(R13, merges == 0 || !goes_on, "{merges} merges run during a resume");
    }

    /// Makes the memtables durable in tables of a new manifest that is in force, and releases
    /// memtables and logs.
    fn take_over(&self, last_seq: SeqNo) -> Result<()> {
        let mut state = self.agreeing_state();
        let given = self.database.pipeline.queue().lock().last_seq();
        check_invariant!(Q2, last_seq <= given, "{last_seq} is visible, and {given} was given out");
        let is_off = self.database.write_state.check().is_err();
        check_invariant!(R13, is_off, "writing is on as it is resumed");
        let trees: Vec<Arc<Tree>> = self.database.trees().iter().cloned().collect();
        for tree in &trees {
            for memtable in tree.pin().memtables() {
                memtable.cut(last_seq);
            }
        }
        self.release_reserve_if_lacking();
        let mut unfinished = Vec::new();
        for tree in &trees {
            let keyspace = state.keyspaces.get_mut(&tree.id).expect("they agree");
            self.write_memtables(tree, keyspace, last_seq, &mut unfinished)?;
            if self.database.jobs.group_max() <= unfinished.len() {
                self.database.jobs.finish_tables(std::mem::take(&mut unfinished))?;
            }
        }
        self.database.jobs.finish_tables(unfinished)?;
        let mut catalog = self.database.catalog.lock();
        let parts = published_parts(&self.database.pipeline.queue().lock(), last_seq);
        state.kept = Arc::new(kept_changes::of_resume(self.database, &state, parts));
        let begun = self.database.catalog.begin(state, last_seq)?;
        catalog.adopt(begun);
        let manifest = catalog.log().map(|log| log.number);
        self.adopt(catalog.state(), manifest, &trees);
        Ok(())
    }

    /// The manifest's state with exactly the keyspaces that are open: one that was being made when
    /// writing failed is not there, as its caller was told.
    fn agreeing_state(&self) -> ManifestState {
        let mut state = self.database.catalog.state();
        let trees = self.database.trees();
        let is_open = |id: &KeyspaceId| trees.get(*id).is_some();
        unless_mutant!(ResumedKeyspaces, state.keyspaces.retain(|id, _| is_open(id)));
        let is_same = state.keyspaces.keys().copied().eq(trees.iter().map(|tree| tree.id));
        debug_assert!(is_same, "the manifest has other keyspaces than are open");
        state
    }

    /// Writes the memtables of a keyspace to tables. Adds those to its version, and to the tables
    /// that will be finished.
    fn write_memtables(
        &self,
        tree: &Tree,
        keyspace: &mut KeyspaceState,
        last_seq: SeqNo,
        unfinished: &mut Vec<Box<dyn WriteFile>>,
    ) -> Result<()> {
        let view = tree.pin();
        for memtable in view.frozen.iter().rev().chain([&view.memtable]) {
            if memtable.reserved_bytes() == 0 {
                continue;
            }
            let write = || {
                let filters = Arc::new(OutputFilters::of_flush(tree, memtable.entries()));
                self.database.jobs.write_level0(tree, memtable, filters)
            };
            let mut flushed = match write() {
                // Tables that are written and not finished yet hold some descriptors.
                Err(error) if is_out_of_descriptors(&error) && !unfinished.is_empty() => {
                    self.database.jobs.finish_tables(std::mem::take(unfinished))?;
                    write()?
                }
                flushed => flushed?,
            };
            unfinished.extend(flushed.take_unfinished());
            self.database.counters.merged(0, MergeInput::default(), flushed.bytes());
            let through = keyspace.version.flushed_through;
            check_invariant!(I4, through <= last_seq, "tables go to {through} of {last_seq}");
            let edit = flushed.edit(&keyspace.version, last_seq);
            keyspace.version =
                Arc::new(keyspace.version.apply(&edit).map_err(Error::of_our_making)?);
        }
        Ok(())
    }

    /// Replaces the state in memory by the state of the new manifest.
    fn adopt(&self, state: &ManifestState, manifest: Option<FileNumber>, trees: &[Arc<Tree>]) {
        for tree in trees {
            let version = state.keyspaces[&tree.id].version.clone();
            for memtable in tree.restart(version) {
                self.database.pipeline.retire(&memtable);
            }
            let left = tree.view().memtables().map(|m| m.reserved_bytes()).sum::<usize>();
            debug_invariant!(R3, left == 0, "{left} bytes of `{}` stay in memory", tree.name);
        }
        // Not by the cleanup, which waits while writing is off: the new log may need their room.
        // But another process that reads the database may have looked for them last.
        let is_read = manifest.filter(|_| self.database.cleanup.is_read_by_older());
        for wal in self.database.pipeline.queue().forget_logs() {
            let name = names::wal(wal.number);
            match is_read {
                Some(manifest) => self.database.cleanup.hold(name, manifest),
                None => _ = self.database.env.fs.remove(&self.database.dir.join(name)),
            }
        }
        self.database.pipeline.segments.kept.found(&state.kept);
        self.database.pipeline.segments.kept.remove_others(&state.kept);
        self.database.pipeline.segments.wal_sync.retire_all();
        let left = self.database.pipeline.segments.bytes_in_memory();
        debug_invariant!(R3, left == 0, "{left} bytes count as in no table after a resume");
    }

    /// Removes the files of a failed attempt. Where CURRENT may name them, they are left until a
    /// later attempt is in force.
    fn undo_resume(&self, attempt: &OpenAttempt, error: Error) -> Error {
        for name in attempt.remove_own(self.database) {
            self.database.cleanup.keep(&name);
        }
        self.still_off(self.database.pipeline.segments.bytes_in_memory(), error)
    }

    /// The error of an attempt that has failed, with `in_memory` bytes in memtables.
    fn still_off(&self, in_memory: u64, error: Error) -> Error {
        let is_off = self.database.write_state.check().is_err();
        debug_invariant!(R13, is_off, "writing is on after a resume that failed: {error}");
        match error.kind() {
            ErrorKind::NoSpace => {
                let free = self.database.env.fs.free_bytes(&self.database.dir).unwrap_or(0);
                error.context(format!(
                    "writing stays off: to go on takes about {} bytes of free space, and {free} \
                     are free: make room, then resume again",
                    resume_needs_bytes(in_memory),
                ))
            }
            _ => error.context("writing stays off"),
        }
    }

    /// Gives the reserve up where the device may lack room for the memtables.
    fn release_reserve_if_lacking(&self) {
        let needed = resume_needs_bytes(self.database.pipeline.segments.bytes_in_memory());
        if self.database.env.fs.free_bytes(&self.database.dir).is_ok_and(|free| free < needed) {
            let _ = remove_ours(&self.database.env, &self.database.dir, names::RESERVE);
        }
    }
}
