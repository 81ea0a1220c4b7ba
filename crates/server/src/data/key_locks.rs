//! One command at a time for each key.
//!
//! Owns: locks by the hash of a key, taken in one order, and the one that excludes all. Never does:
//! know what is done under them.

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::hash::{BuildHasher, RandomState};

/// Two keys that share one wait for each other, and nothing else happens.
const STRIPES: usize = 1024;

/// The locks of all keys.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    all: RwLock<()>,
    stripes: Box<[Mutex<()>]>,
    hasher: RandomState,
}

/// Locks that are released when it is dropped.
#[derive(Debug)]
pub(crate) enum KeyGuard<'a> {
    /// Of no key, but of all together as long as others do no more.
    Shared { _all: RwLockReadGuard<'a, ()> },
    /// Of one key.
    One { _all: RwLockReadGuard<'a, ()>, _stripe: MutexGuard<'a, ()> },
    /// Of several.
    Several { _all: RwLockReadGuard<'a, ()>, _stripes: Vec<MutexGuard<'a, ()>> },
    /// Of every key.
    Exclusive { _all: RwLockWriteGuard<'a, ()> },
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

    /// Waits until nobody else has one of `keys`.
    pub(crate) fn lock<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> KeyGuard<'_> {
        let all = self.all.read();
        let mut keys = keys.into_iter();
        let Some(first) = keys.next() else { return KeyGuard::Shared { _all: all } };
        let first = self.stripe(first);
        let Some(second) = keys.next() else {
            return KeyGuard::One { _all: all, _stripe: self.stripes[first].lock() };
        };
        let mut places = vec![first, self.stripe(second)];
        places.extend(keys.map(|key| self.stripe(key)));
        // In one order for all, so that no two wait for each other.
        places.sort_unstable();
        places.dedup();
        let stripes = places.into_iter().map(|place| self.stripes[place].lock()).collect();
        KeyGuard::Several { _all: all, _stripes: stripes }
    }

    /// Waits until no command is under way, and keeps others from beginning.
    pub(crate) fn lock_all(&self) -> KeyGuard<'_> {
        KeyGuard::Exclusive { _all: self.all.write() }
    }
}
