//! Counters of the server.
//!
//! Owns: calls and time by command, connections, requests and replies under way. Never does: count
//! for the engine.

use crate::clock;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The counters of one command.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CommandStats {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that failed.
    pub failed: u64,
    /// The time of all calls.
    pub seconds: f64,
}

/// The counters of one command.
#[derive(Debug, Default)]
pub(crate) struct OfCommand {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
}

impl OfCommand {
    /// Counts calls, and the time of all of them.
    pub(crate) fn ran(&self, calls: u64, failed: u64, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// Counts a call that was refused before it ran.
    pub(crate) fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    fn reset(&self) {
        for counter in [&self.calls, &self.nanoseconds, &self.rejected, &self.failed] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Returns its line of `INFO commandstats`; none before its first call.
    pub(crate) fn text(&self) -> Option<String> {
        let [calls, ns, rejected, failed] =
            [&self.calls, &self.nanoseconds, &self.rejected, &self.failed]
                .map(|counter| counter.load(Ordering::Relaxed));
        let each = ns as f64 / 1000.0 / calls.max(1) as f64;
        (calls + rejected > 0).then(|| {
            format!(
                "calls={calls},usec={},usec_per_call={each:.2},rejected_calls={rejected},\
                 failed_calls={failed}",
                ns / 1000
            )
        })
    }

    /// Returns the counters, for the command of this name.
    pub(crate) fn stats(&self, name: &'static str) -> CommandStats {
        CommandStats {
            name,
            calls: self.calls(),
            failed: self.failed.load(Ordering::Relaxed),
            seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Lets one line a second into the log, so that no kind of line fills it.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// The second of the last line.
    second: AtomicU64,
}

impl Throttle {
    /// Returns whether a line may be logged now.
    pub(crate) fn allows(&self) -> bool {
        let second = clock::wall_ms() / 1000;
        self.second.swap(second, Ordering::Relaxed) != second
    }
}

/// The counters of the whole server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    by_command: HashMap<&'static str, OfCommand>,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// The numbers of errors by their first words.
    errors_by_word: Mutex<BTreeMap<String, u64>>,
    /// The throttles of lines about clients, and of those about writes that fail: no client keeps
    /// the latter from the log.
    pub(crate) client_lines: Throttle,
    pub(crate) write_lines: Throttle,
    pub(crate) expired: AtomicU64,
    /// Bytes of requests and replies that are under way.
    pub(crate) buffer_bytes: AtomicUsize,
}

impl Counters {
    pub(crate) fn new(commands: impl Iterator<Item = &'static str>) -> Counters {
        let by_command = commands.map(|name| (name, OfCommand::default())).collect();
        Counters { by_command, ..Counters::default() }
    }

    pub(crate) fn of(&self, command: &'static str) -> Option<&OfCommand> {
        self.by_command.get(command)
    }

    /// Counts a request that was answered by this error.
    pub(crate) fn failed(&self, error: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let word = error.split(' ').next().unwrap_or_default();
        let mut by_word = self.errors_by_word.lock();
        match by_word.get_mut(word) {
            Some(count) => *count += 1,
            None => drop(by_word.insert(word.to_owned(), 1)),
        }
    }

    /// Returns the numbers of errors of each kind, by their first words.
    pub(crate) fn errors_by_word(&self) -> Vec<(String, u64)> {
        self.errors_by_word.lock().clone().into_iter().collect()
    }

    /// Returns all commands, by name.
    pub(crate) fn commands(&self) -> Vec<(&'static str, &OfCommand)> {
        let mut all: Vec<_> = self.by_command.iter().map(|(name, of)| (*name, of)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// Resets all that `CONFIG RESETSTAT` is for.
    pub(crate) fn reset(&self) {
        self.by_command.values().for_each(OfCommand::reset);
        self.errors_by_word.lock().clear();
        for counter in [&self.connections, &self.connections_refused, &self.errors, &self.expired] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}
