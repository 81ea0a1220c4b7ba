//! The positions of scans: `SCAN` and its like give their clients numbers.
//!
//! A number is a place in the order of keys that the server remembers. So a scan misses no key that
//! exists all the time, whatever is written meanwhile, and ends. The number before is kept too, for
//! a client that asks again, and forgotten when its successor is used.
//!
//! Owns: the numbers and their places. Never does: remember more than a few thousand. A scan whose
//! number is forgotten is refused, since it would miss keys anywhere else.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

const LEN_MAX: usize = 16_384;
const BYTES_MAX: usize = 8 << 20;

/// The places of all scans that are under way.
#[derive(Debug)]
pub(crate) struct Positions(Mutex<PositionsInner>);

#[derive(Debug)]
struct PositionsInner {
    next: u64,
    /// The places by number, and so by age.
    places: BTreeMap<u64, Place>,
    bytes: usize,
}

#[derive(Debug)]
struct Place {
    /// The last key that the client was sent.
    after: Vec<u8>,
    /// The number before this one.
    before: u64,
}

impl Positions {
    /// Makes an empty list. Numbers begin at random, so that a number of an earlier process is
    /// almost never valid.
    pub(crate) fn new() -> Positions {
        let first = RandomState::new().hash_one(0) >> 16 | 1;
        let places = BTreeMap::new();
        Positions(Mutex::new(PositionsInner { next: first, places, bytes: 0 }))
    }

    /// Returns the key after which the scan `number` goes on; `None` for an unknown number.
    pub(crate) fn get(&self, number: u64) -> Option<Vec<u8>> {
        let mut inner = self.0.lock();
        let place = inner.places.get(&number)?;
        let (after, before) = (place.after.clone(), place.before);
        inner.forget(before);
        Some(after)
    }

    /// Returns the number of a scan that has come as far as `after`, from the number `before` (0:
    /// it began).
    pub(crate) fn add(&self, after: &[u8], before: u64) -> u64 {
        let mut inner = self.0.lock();
        let number = inner.next;
        inner.next += 1;
        inner.bytes += after.len();
        inner.places.insert(number, Place { after: after.to_vec(), before });
        while inner.places.len() > LEN_MAX || inner.bytes > BYTES_MAX {
            let Some(oldest) = inner.places.keys().next().copied() else { break };
            inner.forget(oldest);
        }
        number
    }
}

impl PositionsInner {
    fn forget(&mut self, number: u64) {
        if let Some(place) = self.places.remove(&number) {
            self.bytes -= place.after.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_the_one_before_it_are_known() {
        let positions = Positions::new();
        let first = positions.add(b"a", 0);
        assert_eq!(positions.get(first).as_deref(), Some(&b"a"[..]));
        let second = positions.add(b"b", first);
        assert_eq!(positions.get(first).as_deref(), Some(&b"a"[..]), "the client asks again");
        assert_eq!(positions.get(second).as_deref(), Some(&b"b"[..]));
        assert_eq!(positions.get(first), None, "its successor was used");
        assert_eq!(positions.get(0), None);
    }

    #[test]
    fn old_scans_are_refused_and_not_remembered() {
        let positions = Positions::new();
        let first = positions.add(b"a", 0);
        for _ in 0..LEN_MAX {
            positions.add(b"b", 0);
        }
        assert_eq!(positions.get(first), None);
        positions.add(&vec![0; BYTES_MAX], 0);
        assert!(positions.0.lock().bytes <= BYTES_MAX);
    }
}
