//! The search for a smaller run that still fails: fewer sessions, fewer turns, fewer clients, kinds
//! and hazards.
//!
//! Owns: the order in which parts are left out. Never does: change the parts that are kept; their
//! draws do not depend on the parts that are left out.

use crate::crash::{Failure, run};
use crate::scenario::{Keep, SESSIONS_MAX, Scenario, Settings};

/// The most runs of a search.
const RUNS_MAX: usize = 500;

struct Search {
    seed: u64,
    best: Settings,
    failure: Failure,
    runs: usize,
}

/// Returns the smallest settings found under which `seed` still fails (in any way), and that
/// failure.
pub fn shrink(seed: u64, settings: &Settings, failure: Failure) -> (Settings, Failure) {
    let best = Settings { trace: false, ..settings.clone() };
    let mut search = Search { seed, best, failure, runs: 0 };
    search.lives_after();
    loop {
        let before = search.best.keep.clone();
        search.turns();
        search.sessions();
        search.hazards();
        search.clients();
        search.kinds();
        if search.best.keep == before || search.runs >= RUNS_MAX {
            let trace = settings.trace;
            return (Settings { trace, ..search.best }, search.failure);
        }
    }
}

impl Search {
    /// Keeps a smaller run if it fails.
    fn attempt(&mut self, change: impl FnOnce(&mut Keep)) -> bool {
        let mut smaller = self.best.clone();
        change(&mut smaller.keep);
        if smaller.keep == self.best.keep || self.runs >= RUNS_MAX {
            return false;
        }
        self.runs += 1;
        match run(self.seed, &smaller) {
            Err(failure) => {
                (self.best, self.failure) = (smaller, failure);
                true
            }
            Ok(_) => false,
        }
    }

    /// Drops the sessions after the failure. Only the final check of the database still runs.
    fn lives_after(&mut self) {
        let last = self.failure.session.min(SESSIONS_MAX - 1);
        self.attempt(|keep| keep.sessions &= u32::MAX >> (31 - last));
    }

    fn sessions(&mut self) {
        for session in 0..SESSIONS_MAX {
            self.attempt(|keep| keep.sessions &= !(1 << session));
        }
    }

    /// Bisects: the least number of turns that was seen to fail.
    fn turns(&mut self) {
        let mut high = Scenario::draw(self.seed, &self.best).turns_max;
        let mut low = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.attempt(|keep| keep.turns_max = middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
    }

    fn hazards(&mut self) {
        for hazard in self.best.keep.hazards.members() {
            self.attempt(|keep| keep.hazards = keep.hazards.without(hazard));
        }
    }

    fn clients(&mut self) {
        for kind in self.best.keep.clients.members() {
            self.attempt(|keep| keep.clients = keep.clients.without(kind));
        }
    }

    fn kinds(&mut self) {
        for kind in self.best.keep.kinds.singles() {
            self.attempt(|keep| keep.kinds = keep.kinds.without(kind));
        }
    }
}
