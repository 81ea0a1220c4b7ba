//! What becomes of a background job that failed: whether it is tried again,
//! what of its input is left alone, and when writing is turned off.
//!
//! - A shortage that passes (descriptors, memory) is waited out, 10 ms at first and
//!   up to 2 s, before it counts as a failure.
//! - Damage in an input, bytes that are wrong or cannot be read, takes that
//!   table out of merging until the database is reopened. Reads of the damage
//!   fail, everything else goes on.
//! - Any other failure is tried again a few times, under new file numbers, and
//!   then turns writing off; a full device is waited for (`shortage.rs`).
//!
//! Owns no state. Never tries a failed sync again: what it covered is written to other files.

use crate::host::Host;
use crate::jobs::Jobs;
use crate::shortage::is_short;
use crate::tree::{Tree, Work};
use crate::workers::closed;
use std::path::Path;
use windrow_base::{Error, ErrorKind, FileNumber, Result};
use windrow_env::fs::is_shortage;
use windrow_format::names::{self, FileKind};
use windrow_plan::Decision;
use windrow_read::events::{Event, EventSink};

/// How often a failed job is tried again before writing is turned off.
const ATTEMPTS_MAX: u32 = 3;

/// Shortages that are waited out: the last ones 2 s each, some 15 s in all: with fewer
/// descriptors than it needs a process learns of it, and `Db::resume` goes on once there are.
const SHORTAGES_MAX: u32 = 14;
/// Those of a close.
const SHORTAGES_CLOSING: u32 = 7;
/// The first wait, and the step in which it looks whether there is still a reason to wait.
const WAIT_MS_MIN: u64 = 10;
const WAIT_MS_MAX: u64 = 2_000;

/// How often a job has failed so far.
#[derive(Default)]
pub(crate) struct Tries {
    failures: u32,
    shortages: u32,
}

/// What of a job's input is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    Table(FileNumber),
    /// Nothing says which table it is.
    Any,
}

impl Tries {
    /// Whether a failed job is worth another attempt, once it has waited for it
    /// where that helps; turns writing off where it is not.
    pub(crate) fn again(&mut self, jobs: &Jobs, error: &Error) -> bool {
        let host = &jobs.host;
        if matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::Closed)
            || host.write_state.check().is_err()
        {
            return false;
        }
        if is_shortage(error) && self.shortages < SHORTAGES_MAX {
            let wait_ms = (WAIT_MS_MIN << self.shortages).min(WAIT_MS_MAX);
            self.shortages += 1;
            return wait_out(jobs, wait_ms).is_ok();
        }
        if is_short(host, error) {
            // Tried again later, by whoever has it noted: see `shortage.rs`.
            return false;
        }
        self.failures += 1;
        if error.kind() != ErrorKind::Io || self.failures >= ATTEMPTS_MAX {
            host.set_background_error(error);
            return false;
        }
        true
    }

    /// The same for a close, which waits a second or two for a shortage to pass
    /// and tries nothing else again: what it cannot flush is in the log.
    pub(crate) fn again_closing(&mut self, host: &Host, error: &Error) -> bool {
        if !is_shortage(error) || self.shortages == SHORTAGES_CLOSING {
            return false;
        }
        host.env.clock.sleep_ns((WAIT_MS_MIN << self.shortages) * 1_000_000);
        self.shortages += 1;
        host.write_state.check().is_ok()
    }
}

/// Sleeps, unless writing is turned off or the database closed meanwhile.
fn wait_out(jobs: &Jobs, wait_ms: u64) -> Result<()> {
    for _ in 0..wait_ms / WAIT_MS_MIN {
        jobs.host.write_state.check()?;
        if jobs.workers.gate.is_closing() {
            return Err(closed());
        }
        jobs.host.env.clock.sleep_ns(WAIT_MS_MIN * 1_000_000);
    }
    Ok(())
}

/// How often a decision has failed so far.
#[derive(Default)]
pub(crate) struct DecisionTries {
    tries: Tries,
    /// How often its input could not be read.
    unread: u32,
}

impl DecisionTries {
    /// Whether a decision that failed so is worth another attempt: its output could
    /// not be written, or its input not be read, which it may be the next time. Wrong
    /// bytes stay wrong.
    pub(crate) fn again(
        &mut self,
        jobs: &Jobs,
        tree: &Tree,
        decision: &Decision,
        error: &Error,
    ) -> bool {
        let is_damaged = damage_of(decision, error).is_some();
        self.unread += u32::from(is_damaged && error.kind() == ErrorKind::Io);
        match is_damaged {
            _ if tree.is_dropped() => false,
            true => (1..ATTEMPTS_MAX).contains(&self.unread),
            false => self.tries.again(jobs, error),
        }
    }
}

/// Ends a job: its files are free again, but for what is damaged of them,
/// which is reported and must not be picked again.
pub(crate) fn end_decision(
    events: &EventSink,
    work: &mut Work,
    decision: &Decision,
    result: &Result<()>,
) {
    work.busy.release(decision);
    let Err(error) = result else { return };
    let Some(damage) = damage_of(decision, error) else { return };
    let notes = work.notes.get_or_insert_default();
    for busy in [&mut work.busy, &mut notes.damaged] {
        match damage {
            Damage::Table(number) => busy.add_file(number),
            Damage::Any => busy.claim_damaged(decision),
        }
    }
    notes.damage.get_or_insert_with(|| error.clone());
    events.send(&Event::CorruptionFound { error: error.clone() });
}

/// The damage that a job met in its input, if that is why it failed.
fn damage_of(decision: &Decision, error: &Error) -> Option<Damage> {
    let name = Path::new(error.file().unwrap_or("")).file_name().and_then(|name| name.to_str());
    let table = match name.and_then(names::parse) {
        Some((FileKind::Table, number)) => Some(number),
        _ => None,
    };
    let inputs = decision.files();
    let input = table.filter(|&number| inputs.iter().any(|(_, _, file)| file.number == number));
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::NotSupported => {
            Some(input.map_or(Damage::Any, Damage::Table))
        }
        ErrorKind::Io if !is_shortage(error) => input.map(Damage::Table),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Keyspace, Options};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use windrow_env::sync::atomic::{AtomicU32, Ordering};
    use windrow_env::testing::{CrashFs, Fault, FaultKind, Handles, Ops, When, env};
    use windrow_env::{Clock, Env};
    use windrow_format::names;

    const STOP: u32 = 9;

    fn options(env: &Env) -> Options {
        let mut options = Options::default();
        options.components.env = Some(env.clone());
        let settings = [
            ("preset", "leveled level0=tiered(k=2)"),
            ("level0_slowdown_files", "4"),
            ("level0_stop_files", "9"),
        ];
        for (name, value) in settings {
            options.settings.set(name, value).unwrap();
        }
        options
    }

    /// A database with keyspaces `sick` and `sound`.
    fn open() -> (Db, [Keyspace; 2], Env, Handles) {
        let (env, handles) = env(1);
        let db = Db::open_with("db", options(&env)).unwrap();
        let spaces = ["sick", "sound"].map(|name| db.keyspace(name).unwrap());
        (db, spaces, env, handles)
    }

    /// More tables of level 0 that overlap from one key to another.
    fn deepen(space: &Keyspace, (from, to): (&str, &str), tables: u32) {
        for _ in 0..tables {
            space.put(from, "value").unwrap();
            space.put(to, "value").unwrap();
            space.flush().unwrap();
        }
    }

    fn newest_table(space: &Keyspace) -> PathBuf {
        let version = space.tree.version();
        let newest = version.files().map(|(_, _, file)| file.number).max().unwrap();
        Path::new("db").join(names::table(newest))
    }

    fn depth(space: &Keyspace) -> u32 {
        space.tree.version().level(0).map_or(0, |level| level.sst_log_depth())
    }

    /// Of one keyspace a table is damaged. With all threads taken, and so writers
    /// to wait for a merge: whether they are stopped.
    fn is_stopped(db: &Db, deepen: impl FnOnce()) -> bool {
        let database = db.database();
        database.workers.merges_running.fetch_add(database.workers.merges_max(), Ordering::AcqRel);
        deepen();
        let stopped = database.pipeline.pace.is_stopped();
        database.workers.merges_running.fetch_sub(database.workers.merges_max(), Ordering::AcqRel);
        stopped
    }

    fn check_brakes(db: &Db, [sick, sound]: &[Keyspace; 2]) {
        assert!(db.write_error().is_none());
        assert!(sick.tree.work.lock().damaged().is_some());
        assert!(sound.tree.work.lock().damaged().is_none());
        // What cannot be drained stops nobody, however deep it gets.
        assert!(!is_stopped(db, || deepen(sick, ("a", "c"), 2 * STOP)));
        // A sound one has its brakes, and comes back.
        assert!(is_stopped(db, || deepen(sound, ("a", "z"), STOP)));
        db.wait_idle().unwrap();
        assert!(depth(sound) < 4, "{}", depth(sound));
        // And so has the sick one where the damage is not in the way.
        assert!(is_stopped(db, || deepen(sick, ("x", "z"), STOP)));
        db.wait_idle().unwrap();
        assert!(!db.database().pipeline.pace.is_stopped());
        assert_eq!(sick.get("x").unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(sound.get("a").unwrap().as_deref(), Some(&b"value"[..]));
        assert!(db.write_error().is_none());
    }

    #[test]
    fn a_damaged_block_takes_the_brakes_off_what_it_bars_alone() {
        let (db, spaces, _env, handles) = open();
        deepen(&spaces[0], ("a", "c"), 1);
        handles.fs.flip(&newest_table(&spaces[0]), 70, 1);
        deepen(&spaces[0], ("a", "c"), 1);
        db.wait_idle().unwrap();
        check_brakes(&db, &spaces);
        assert!(spaces[0].compact().is_err());
        spaces[1].compact().unwrap();
    }

    #[test]
    fn an_input_that_cannot_be_read_is_left_out_and_nothing_is_turned_off() {
        let (db, spaces, env, handles) = open();
        deepen(&spaces[0], ("a", "c"), 1);
        let table = newest_table(&spaces[0]);
        let fault = Fault::new(FaultKind::Io, Ops::READ, When::MatchingFrom(0));
        handles.fs.inject(fault.on_path(&table.display().to_string()));
        deepen(&spaces[0], ("a", "c"), 1);
        db.wait_idle().unwrap();
        check_brakes(&db, &spaces);
        // It was the device's trouble: all is there once that is over.
        handles.fs.clear_faults();
        db.close().unwrap();
        let db = Db::open_with("db", options(&env)).unwrap();
        db.wait_idle().unwrap();
        db.verify().unwrap().into_result().unwrap();
        let sick = db.keyspace("sick").unwrap();
        assert!(sick.tree.work.lock().damaged().is_none());
        assert_eq!(sick.get("a").unwrap().as_deref(), Some(&b"value"[..]));
    }

    /// Ends a shortage of descriptors once somebody slept so often.
    struct Patience {
        clock: Arc<dyn Clock>,
        fs: CrashFs,
        sleeps: AtomicU32,
    }

    impl Clock for Patience {
        fn wall_ms(&self) -> u64 {
            self.clock.wall_ms()
        }

        fn monotonic_ns(&self) -> u64 {
            self.clock.monotonic_ns()
        }

        fn sleep_ns(&self, ns: u64) {
            self.clock.sleep_ns(ns);
            if self.sleeps.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.fs.set_descriptors_max(None);
            }
        }
    }

    #[test]
    fn a_second_without_descriptors_is_survived() {
        for merge_first in [false, true] {
            let (mut env, handles) = env(1);
            let patience = Arc::new(Patience {
                clock: env.clock.clone(),
                fs: handles.fs.clone(),
                sleeps: AtomicU32::new(100),
            });
            env.clock = patience.clone();
            let db = Db::open_with("db", options(&env)).unwrap();
            let space = db.keyspace("space").unwrap();
            deepen(&space, ("a", "z"), if merge_first { 2 } else { 1 });
            handles.fs.set_descriptors_max(Some(handles.fs.descriptors()));
            let begin_ns = env.clock.monotonic_ns();
            db.put("key", "value").unwrap();
            if merge_first {
                db.wait_idle().unwrap();
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            assert!(env.clock.monotonic_ns() - begin_ns >= 1_000_000_000);
            assert!(patience.sleeps.load(Ordering::Relaxed) > u32::MAX / 2, "none was waited for");
            assert!(db.write_error().is_none());
            db.put("later", "value").unwrap();
            db.close().unwrap();
            let db = Db::open_with("db", options(&env)).unwrap();
            for key in ["key", "later"] {
                assert_eq!(db.get(key).unwrap().as_deref(), Some(&b"value"[..]));
            }
            let space = db.keyspace("space").unwrap();
            assert_eq!(space.get("z").unwrap().as_deref(), Some(&b"value"[..]));
        }
    }
}
