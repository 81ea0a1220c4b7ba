//! One command at a time for each key.
//!
//! Owns: locks by the hash of a key, and the one that excludes all. Never does: know the work under
//! them.

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::hash::{BuildHasher, RandomState};

/// The number of locks, a byte each: two keys that share one wait for each other, with no other
/// effect. Two clients that have a hundred keys each meet at one of 1,024 ten times.
const STRIPES: usize = 1 << 16;
/// The number of held locks from which a map says which they are.
const FEW: usize = 32;

/// The locks of all keys.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    all: RwLock<()>,
    stripes: Box<[Mutex<()>]>,
    hasher: RandomState,
}

impl KeyLocks {
    pub(crate) fn new() -> KeyLocks {
        KeyLocks {
            all: RwLock::new(()),
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    fn stripe(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % STRIPES
    }

    /// Waits until no command is under way, and keeps others from beginning.
    pub(crate) fn lock_all(&self) -> RwLockWriteGuard<'_, ()> {
        self.all.write()
    }
}

/// The locks that one client holds: those of several commands, one after the other.
///
/// A client that holds locks asks for more without waiting, and releases all if one is not free: so
/// no two wait for each other.
#[derive(Debug)]
pub(crate) struct KeyGuards<'a> {
    locks: &'a KeyLocks,
    /// The shared lock, taken with the first lock: while it is held, no client excludes all.
    all: Option<RwLockReadGuard<'a, ()>>,
    stripes: Vec<(usize, MutexGuard<'a, ()>)>,
    /// A bit for each lock, set for those held; empty while they are few.
    map: Vec<u64>,
}

impl<'a> KeyGuards<'a> {
    /// Makes guards that hold no lock.
    pub(crate) fn new(locks: &'a KeyLocks) -> KeyGuards<'a> {
        KeyGuards { locks, all: None, stripes: Vec::new(), map: Vec::new() }
    }

    fn holds(&self, place: usize) -> bool {
        match self.map.get(place / 64) {
            Some(bits) => bits >> (place % 64) & 1 == 1,
            None => self.stripes.iter().any(|(held, _)| *held == place),
        }
    }

    fn add(&mut self, place: usize, guard: MutexGuard<'a, ()>) {
        if self.stripes.is_empty() {
            self.stripes.reserve(16);
        }
        self.stripes.push((place, guard));
        if !self.map.is_empty() {
            self.map[place / 64] |= 1 << (place % 64);
        } else if self.stripes.len() > FEW {
            self.map.resize(STRIPES / 64, 0);
            self.stripes.iter().for_each(|(held, _)| self.map[held / 64] |= 1 << (held % 64));
        }
    }

    /// Takes the locks of `keys` as well, if they are free; returns the number held before. `None`:
    /// one is not free, and no lock of these keys was taken.
    pub(crate) fn try_more<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) -> Option<usize> {
        let before = self.stripes.len();
        if self.all.is_none() {
            self.all = Some(self.locks.all.try_read()?);
        }
        for key in keys {
            let place = self.locks.stripe(key);
            // Most keys of a client are not among those it has just used.
            match self.locks.stripes[place].try_lock() {
                Some(guard) => self.add(place, guard),
                None if self.holds(place) => {}
                None => {
                    self.keep(before);
                    return None;
                }
            }
        }
        Some(before)
    }

    /// Waits for the locks of `keys`. None may be held.
    pub(crate) fn wait<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        assert!(self.stripes.is_empty(), "whoever has locks does not wait for others");
        self.all = None;
        self.all = Some(self.locks.all.read());
        let mut places: Vec<usize> = keys.map(|key| self.locks.stripe(key)).collect();
        // One order for all who wait.
        places.sort_unstable();
        places.dedup();
        for place in places {
            self.add(place, self.locks.stripes[place].lock());
        }
    }

    /// Releases all but the first `count`.
    pub(crate) fn keep(&mut self, count: usize) {
        if count < self.stripes.len() {
            // To the client that has waited longest: else one with the next long pipeline takes
            // them before the waiting thread runs.
            self.stripes.drain(count..).for_each(|(_, guard)| MutexGuard::unlock_fair(guard));
            self.map.clear();
        }
    }

    /// Releases all.
    pub(crate) fn release(&mut self) {
        self.keep(0);
        self.all = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_another_has_is_not_waited_for() {
        let locks = KeyLocks::new();
        let keys = |keys: &'static [&'static str]| keys.iter().map(|key| key.as_bytes());
        let (mut one, mut two) = (KeyGuards::new(&locks), KeyGuards::new(&locks));
        assert_eq!(one.try_more(keys(&["a", "a"])), Some(0));
        assert_eq!(one.try_more(keys(&["a"])), Some(1), "it has it already");
        assert_eq!(two.try_more(keys(&["b", "a"])), None);
        assert!(two.stripes.is_empty(), "and nothing is kept");
        assert!(locks.all.try_write().is_none());
        one.keep(0);
        assert_eq!(two.try_more(keys(&["b", "a"])), Some(0));
        one.release();
        two.release();
        drop(locks.lock_all());
        one.wait(keys(&["b", "a", "b"]));
        assert_eq!(two.try_more(keys(&["a"])), None);
    }
}
