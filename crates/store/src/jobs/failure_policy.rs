//! The handling of a background job that failed: whether it is tried again, which of its inputs are
//! left alone, and when writing is turned off.
//!
//! - A shortage that passes (descriptors, memory) is waited out, 10 ms at first and up to 2 s,
//!   before it counts as a failure.
//! - Damage in an input, bytes that are wrong or cannot be read, takes that table out of merging
//!   until the database is reopened. Reads of the damage fail, everything else goes on.
//! - Any other failure is tried again a few times, under new file numbers, and then turns writing
//!   off; a full device is waited for (`shortage.rs`).
//!
//! Owns no state. Never tries a failed sync again: its data is written to other files.

use crate::host::Host;
use crate::host::shortage::is_short;
use crate::host::workers::closed;
use crate::jobs::JobContext;
use crate::tree::{Tree, TreeWork};
use std::path::Path;
use windrow_base::{Error, ErrorKind, FileNumber, Result};
use windrow_env::fs::is_shortage;
use windrow_format::names::{self, FileKind};
use windrow_plan::Decision;
use windrow_read::events::{Event, EventSink};

/// How often a failed job is tried again before writing is turned off.
const ATTEMPTS_MAX: u32 = 3;

/// Shortages that are waited out: the last ones 2 s each, some 15 s in all. A process with fewer
/// descriptors than it needs learns of it, and `Db::resume` goes on once there are enough.
const SHORTAGES_MAX: u32 = 14;
/// Shortages that a close waits out.
const SHORTAGES_CLOSING: u32 = 7;
/// The first wait, and the interval in which it checks whether there is still a reason to wait.
const WAIT_MS_MIN: u64 = 10;
const WAIT_MS_MAX: u64 = 2_000;

/// How often a job has failed so far.
#[derive(Default)]
pub struct Tries {
    failures: u32,
    shortages: u32,
}

/// The damaged part of a job's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    Table(FileNumber),
    /// The error does not say which table it is.
    Any,
}

impl Tries {
    /// Whether a failed job is worth another attempt. Waits for it first if that helps. Turns
    /// writing off if no attempt helps.
    pub fn again(&mut self, jobs: &JobContext, error: &Error) -> bool {
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
            // Logs kept for the feed of changes make room first. After that `shortage.rs` says when
            // it is tried again.
            return jobs.pipeline.segments.give_up_kept(0);
        }
        self.failures += 1;
        if error.kind() != ErrorKind::Io || self.failures >= ATTEMPTS_MAX {
            host.set_background_error(error);
            return false;
        }
        true
    }

    /// Whether a close tries a failed flush again. It waits a second or two for a shortage to pass,
    /// and tries nothing else again: the memtables that it cannot flush are in the log.
    pub fn again_closing(&mut self, host: &Host, error: &Error) -> bool {
        if !is_shortage(error) || self.shortages == SHORTAGES_CLOSING {
            return false;
        }
        host.env.clock.sleep_ns((WAIT_MS_MIN << self.shortages) * 1_000_000);
        self.shortages += 1;
        host.write_state.check().is_ok()
    }
}

/// Sleeps, unless writing is turned off or the database closed meanwhile.
fn wait_out(jobs: &JobContext, wait_ms: u64) -> Result<()> {
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
pub struct DecisionTries {
    tries: Tries,
    /// How often its input could not be read.
    unread: u32,
}

impl DecisionTries {
    /// Whether a decision that failed is worth another attempt. Its output could not be written, or
    /// its input not be read: the next time may succeed. Wrong bytes stay wrong.
    pub fn again(
        &mut self,
        jobs: &JobContext,
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

/// Ends a job: its files are free again. Those that are damaged are reported, and stay busy so that
/// no job picks them.
pub(crate) fn end_decision(
    events: &EventSink,
    work: &mut TreeWork,
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

/// The damage in its input for which a job failed, if that is the reason.
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
