//! The filter memory that running jobs may add to a tree: jobs run side by side, and no two of them
//! may take the memory that is left.
//!
//! Owns: a line for each job. Never does: decide how much a job takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_env::sync::{Mutex, MutexGuard};
use windrow_read::lock_ranks;

#[derive(Default)]
struct Lines {
    next: u64,
    growth_bits: BTreeMap<u64, f64>,
}

/// The filter memory that running jobs may add to a tree. Clones are the same ledger.
#[derive(Clone)]
pub struct FilterLedger(Arc<Mutex<Lines>>);

/// The ledger, locked while a job plans.
pub struct Planning<'a> {
    ledger: &'a FilterLedger,
    lines: MutexGuard<'a, Lines>,
}

/// A job's line. It is dropped after the edit is in, and removes the line.
pub struct Reservation {
    ledger: FilterLedger,
    line: u64,
}

impl Default for FilterLedger {
    fn default() -> FilterLedger {
        FilterLedger(Arc::new(Mutex::new(lock_ranks::FILTER_LEDGER, Lines::default())))
    }
}

impl FilterLedger {
    /// Keeps other jobs from planning.
    pub fn plan(&self) -> Planning<'_> {
        Planning { ledger: self, lines: self.0.lock() }
    }
}

impl Planning<'_> {
    /// The growth that the running jobs have reserved, in bits.
    pub fn reserved_bits(&self) -> f64 {
        self.lines.growth_bits.values().sum()
    }

    /// Ends the planning of a job that may add `growth_bits`.
    pub fn reserve(mut self, growth_bits: f64) -> Reservation {
        let line = self.lines.next;
        self.lines.next += 1;
        self.lines.growth_bits.insert(line, growth_bits);
        Reservation { ledger: self.ledger.clone(), line }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.0.lock().growth_bits.remove(&self.line);
    }
}
