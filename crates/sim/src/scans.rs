//! Iterators that stay open over many turns, while everything else goes on: each must show the one
//! moment at which it was made (P4).
//!
//! Owns: the iterators and the entries that each still has to show. Never does: judge cursors
//! (those are operations, which `judge.rs` judges).

use crate::judge::Judge;
use std::collections::VecDeque;
use std::ops::Bound;
use windrow::testing::{Crowd, crowd};
use windrow::{Db, Iter};
use windrow_env::testing::Rng;
use windrow_testkit::compose::random_key;
use windrow_testkit::op::Pair;
use windrow_testkit::text::token;

/// The most iterators that are open at a time.
const HELD_MAX: usize = 3;

/// The number of turns for which memory is short, and then plentiful: iterators are made, moved and
/// left idle in both, and some are made in one and moved in the other.
const CROWD_TURNS: u64 = 8;

struct Scan {
    iter: Iter,
    /// The entries between its two ends.
    left: VecDeque<Pair>,
}

/// The iterators of a session.
#[derive(Default)]
pub struct Scans {
    held: Vec<Scan>,
    turns: u64,
    crowd: Option<Crowd>,
}

impl Scans {
    /// Opens another iterator, or moves one.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn turn(&mut self, db: &Db, judge: &mut Judge, rng: &mut Rng) -> Result<(), String> {
        self.turns += 1;
        if self.turns.is_multiple_of(CROWD_TURNS) {
            self.crowd = if self.crowd.is_some() { None } else { Some(crowd(db)) };
        }
        if self.held.is_empty() || (self.held.len() < HELD_MAX && rng.below(6) == 0) {
            return self.open(db, judge, rng);
        }
        let at = rng.below(self.held.len() as u64) as usize;
        for _ in 0..=rng.below(5) {
            if !self.held[at].step(judge, rng.below(3) == 0)? {
                self.held.swap_remove(at);
                break;
            }
        }
        Ok(())
    }

    /// Makes every iterator show all its remaining entries.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn drain(&mut self, judge: &Judge) -> Result<(), String> {
        for scan in &mut self.held {
            while scan.step(judge, false)? {}
        }
        Ok(())
    }

    fn open(&mut self, db: &Db, judge: &mut Judge, rng: &mut Rng) -> Result<(), String> {
        if judge.oracle.has_doubt() {
            return Ok(());
        }
        judge.tell_time(db)?;
        let names = judge.model().keyspaces();
        let name = &names[rng.below(names.len() as u64) as usize];
        let mut bound = || (rng.below(3) == 0).then(|| random_key(rng));
        let (from, to) = (bound(), bound());
        let left = judge.model().span(name, from.as_deref(), to.as_deref()).into();
        let keyspace = db.open_keyspace(name).map_err(|e| e.to_string())?;
        let keyspace = keyspace.ok_or_else(|| format!("keyspace {name} is missing"))?;
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let to = to.map_or(Bound::Unbounded, Bound::Excluded);
        self.held.push(Scan { iter: keyspace.range((from, to)), left });
        Ok(())
    }
}

impl Scan {
    /// Takes one entry from an end. Returns whether there may be more.
    fn step(&mut self, judge: &Judge, back: bool) -> Result<bool, String> {
        let (got, want) = match back {
            false => (self.iter.next(), self.left.pop_front()),
            true => (self.iter.next_back(), self.left.pop_back()),
        };
        let got = match got.transpose() {
            Ok(got) => got.map(|(key, value)| (key.to_vec(), value.to_vec())),
            Err(error) if judge.excuses_error(&error) => return Ok(false),
            Err(error) => return Err(format!("a held iterator: {error}")),
        };
        if got == want {
            return Ok(got.is_some());
        }
        let text = |pair: Option<Pair>| {
            pair.map_or("the end".to_owned(), |(k, v)| format!("{} = {}", token(&k), token(&v)))
        };
        Err(format!(
            "a held iterator gives {} {}, not {}",
            text(got),
            if back { "from its back" } else { "from its front" },
            text(want)
        ))
    }
}
