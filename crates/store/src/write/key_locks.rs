//! Locks on keys, which transactions hold until they end.
//!
//! A lock is shared or exclusive. A transaction that cannot have one waits in line, first come,
//! first served. The exception is one that holds the key shared and asks for it alone: it goes
//! first. Before a wait begins, the graph of waits is searched from there: a transaction that would
//! wait for itself is refused. Only a wait adds to that graph, so there are no other deadlocks.
//!
//! Locks save transactions from conflicts. The reads of a transaction decide whether it may commit
//! (`recent_writes.rs`), so writes without a transaction take no locks.
//!
//! Owns: the holder of each lock, and the waiters. Never does: read or write the database.

use super::ordered_key::OrderedKey;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use windrow_base::KeyspaceId;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::sync::{Condvar, Mutex};
use windrow_read::lock_ranks;

/// Bytes that a lock takes besides its key, about.
const LOCK_BYTES: usize = 160;

/// The holder of a lock: a transaction.
pub type LockOwner = u64;

/// The mode in which a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLockMode {
    /// Others may hold it shared as well.
    Shared,
    /// Nobody else holds it.
    Exclusive,
}

/// A key that can be locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockKey {
    pub keyspace: KeyspaceId,
    pub key: OrderedKey,
}

impl LockKey {
    /// Memory that its lock takes, about.
    pub fn memory_bytes(&self) -> usize {
        self.key.key.len() + LOCK_BYTES
    }
}

/// The reason for which a lock was not given.
#[derive(Debug, PartialEq, Eq)]
pub enum LockRefusal {
    /// Others had it for as long as the caller would wait.
    TimedOut,
    /// It would have waited for itself: the others on the way, each with the key that it waits for.
    Deadlock(Vec<(LockOwner, LockKey)>),
}

struct Waiter {
    owner: LockOwner,
    mode: KeyLockMode,
    granted: Arc<Condvar>,
}

#[derive(Default)]
struct KeyLock {
    /// One holder, or several that share it.
    holders: Vec<LockOwner>,
    is_exclusive: bool,
    queue: VecDeque<Waiter>,
}

#[derive(Default)]
struct KeyLocksState {
    spaces: HashMap<KeyspaceId, BTreeMap<OrderedKey, KeyLock>>,
    /// The key that each owner waits for.
    waiting: HashMap<LockOwner, LockKey>,
    bytes: usize,
}

/// The locks of a database.
pub struct KeyLocks {
    state: Mutex<KeyLocksState>,
    next_owner: AtomicU64,
}

impl KeyLocks {
    /// Makes the locks; none is held.
    pub fn new() -> KeyLocks {
        let state = Mutex::new(lock_ranks::KEY_LOCKS, KeyLocksState::default());
        KeyLocks { state, next_owner: AtomicU64::new(1) }
    }

    /// Returns a new owner.
    pub fn new_owner(&self) -> LockOwner {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    /// Locks a key, and waits for it at most `wait_ns` each time that it is woken. Returns whether
    /// the owner did not hold it before, and so must release it.
    ///
    /// # Errors
    /// The reason for which it was refused: nothing has changed then.
    pub fn acquire(
        &self,
        owner: LockOwner,
        at: &LockKey,
        mode: KeyLockMode,
        wait_ns: u64,
    ) -> Result<bool, LockRefusal> {
        let mut state = self.state.lock();
        let lock = state.lock_mut(at);
        let is_held = lock.holders.contains(&owner);
        if is_held && (lock.is_exclusive || mode == KeyLockMode::Shared) {
            return Ok(false);
        }
        if (is_held || lock.queue.is_empty()) && lock.admits(owner, mode) {
            lock.give(owner, mode);
            return Ok(!is_held);
        }
        if wait_ns == 0 {
            return Err(LockRefusal::TimedOut);
        }
        let granted = Arc::new(Condvar::new());
        let waiter = Waiter { owner, mode, granted: granted.clone() };
        match is_held {
            true => lock.queue.push_front(waiter),
            false => lock.queue.push_back(waiter),
        }
        state.waiting.insert(owner, at.clone());
        if let Some(circle) = state.circle_of(owner) {
            state.leave(owner, at);
            return Err(LockRefusal::Deadlock(circle));
        }
        loop {
            let is_over = granted.wait_ns(&mut state, wait_ns);
            if !state.waiting.contains_key(&owner) {
                return Ok(!is_held);
            }
            if is_over {
                state.leave(owner, at);
                return Err(LockRefusal::TimedOut);
            }
        }
    }

    /// Gives locks back, and wakes the next waiters.
    pub fn release(&self, owner: LockOwner, held: &[LockKey]) {
        if held.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        for at in held {
            state.lock_mut(at).take(owner);
            state.give_next(at);
        }
    }

    /// Memory that all locks take, about.
    pub fn memory_bytes(&self) -> usize {
        self.state.lock().bytes
    }
}

impl KeyLock {
    /// Whether its holders let one more in.
    fn admits(&self, owner: LockOwner, mode: KeyLockMode) -> bool {
        match mode {
            KeyLockMode::Shared => !self.is_exclusive,
            KeyLockMode::Exclusive => self.holders.iter().all(|holder| *holder == owner),
        }
    }

    fn give(&mut self, owner: LockOwner, mode: KeyLockMode) {
        debug_assert!(self.admits(owner, mode), "a lock is given to {owner} and held");
        if !self.holders.contains(&owner) {
            self.holders.push(owner);
        }
        self.is_exclusive = mode == KeyLockMode::Exclusive;
    }

    fn take(&mut self, owner: LockOwner) {
        self.holders.retain(|holder| *holder != owner);
        self.is_exclusive &= !self.holders.is_empty();
    }

    /// The owners for which a waiter waits: the holders, and those before it in line.
    fn blockers(&self, owner: LockOwner) -> Vec<LockOwner> {
        let Some(at) = self.queue.iter().position(|waiter| waiter.owner == owner) else {
            return Vec::new();
        };
        let mode = self.queue[at].mode;
        let excludes =
            |other: KeyLockMode| other == KeyLockMode::Exclusive || mode == KeyLockMode::Exclusive;
        let held_as = if self.is_exclusive { KeyLockMode::Exclusive } else { KeyLockMode::Shared };
        let holders = self.holders.iter().copied().filter(|_| excludes(held_as));
        let earlier = self.queue.iter().take(at).filter(|waiter| excludes(waiter.mode));
        let all = holders.chain(earlier.map(|waiter| waiter.owner));
        all.filter(|other| *other != owner).collect()
    }
}

impl KeyLocksState {
    fn lock_mut(&mut self, at: &LockKey) -> &mut KeyLock {
        let KeyLocksState { spaces, bytes, .. } = self;
        let space = spaces.entry(at.keyspace).or_default();
        space.entry(at.key.clone()).or_insert_with(|| {
            *bytes += at.memory_bytes();
            KeyLock::default()
        })
    }

    /// Gives a lock to the waiters at the head of its line, as far as it admits them; forgets a
    /// lock that nobody holds.
    fn give_next(&mut self, at: &LockKey) {
        let lock = self.lock_mut(at);
        let mut given = Vec::new();
        while let Some(first) = lock.queue.front()
            && lock.admits(first.owner, first.mode)
        {
            let Some(waiter) = lock.queue.pop_front() else { break };
            lock.give(waiter.owner, waiter.mode);
            waiter.granted.notify_one();
            given.push(waiter.owner);
        }
        let is_free = lock.holders.is_empty();
        debug_assert!(!is_free || lock.queue.is_empty(), "a free lock is waited for");
        for owner in given {
            self.waiting.remove(&owner);
        }
        if is_free && let Some(space) = self.spaces.get_mut(&at.keyspace) {
            space.remove(&at.key);
            self.bytes -= at.memory_bytes();
            if space.is_empty() {
                self.spaces.remove(&at.keyspace);
            }
        }
    }

    /// Ends a wait that failed. Others may have waited only for it.
    fn leave(&mut self, owner: LockOwner, at: &LockKey) {
        self.lock_mut(at).queue.retain(|waiter| waiter.owner != owner);
        self.waiting.remove(&owner);
        self.give_next(at);
    }

    fn blockers(&self, owner: LockOwner) -> Vec<LockOwner> {
        let Some(at) = self.waiting.get(&owner) else { return Vec::new() };
        let lock = self.spaces.get(&at.keyspace).and_then(|space| space.get(&at.key));
        lock.map(|lock| lock.blockers(owner)).unwrap_or_default()
    }

    /// The others on a path from an owner to itself, if it waits for itself.
    fn circle_of(&self, owner: LockOwner) -> Option<Vec<(LockOwner, LockKey)>> {
        let mut path = Vec::new();
        self.leads_to(owner, owner, &mut HashSet::new(), &mut path)
            .then(|| path.iter().map(|other| (*other, self.waiting[other].clone())).collect())
    }

    fn leads_to(
        &self,
        from: LockOwner,
        to: LockOwner,
        seen: &mut HashSet<LockOwner>,
        path: &mut Vec<LockOwner>,
    ) -> bool {
        for next in self.blockers(from) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                path.push(next);
                if self.leads_to(next, to, seen, path) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "plain threads wait for each other")]
mod tests {
    use super::KeyLockMode::{Exclusive, Shared};
    use super::*;
    use std::thread;
    use std::time::Duration;
    use windrow_base::KeyOrder;

    const FOREVER: u64 = u64::MAX;

    fn key(name: &str) -> LockKey {
        LockKey {
            keyspace: KeyspaceId(0),
            key: OrderedKey::new(name.as_bytes(), &KeyOrder::default()),
        }
    }

    /// Returns once an owner waits.
    fn until_waiting(locks: &KeyLocks, owner: LockOwner) {
        while !locks.state.lock().waiting.contains_key(&owner) {
            thread::sleep(Duration::from_micros(100));
        }
    }

    #[test]
    fn many_share_and_one_excludes() {
        let locks = KeyLocks::new();
        let a = key("a");
        assert_eq!(locks.acquire(1, &a, Shared, 0), Ok(true));
        assert_eq!(locks.acquire(2, &a, Shared, 0), Ok(true));
        assert_eq!(locks.acquire(2, &a, Shared, 0), Ok(false), "it has it");
        assert_eq!(locks.acquire(3, &a, Exclusive, 0), Err(LockRefusal::TimedOut));
        assert_eq!(locks.acquire(1, &a, Exclusive, 0), Err(LockRefusal::TimedOut));
        locks.release(2, std::slice::from_ref(&a));
        assert_eq!(locks.acquire(1, &a, Exclusive, 0), Ok(false), "the only one that shares it");
        assert_eq!(locks.acquire(1, &a, Shared, 0), Ok(false));
        assert_eq!(locks.acquire(2, &a, Shared, 0), Err(LockRefusal::TimedOut));
        assert!(locks.memory_bytes() > 0);
        locks.release(1, std::slice::from_ref(&a));
        assert_eq!(locks.memory_bytes(), 0);
        assert_eq!(locks.acquire(3, &a, Exclusive, 0), Ok(true));
    }

    #[test]
    fn who_waits_is_served_in_turn_and_who_came_later_does_not_pass() {
        let locks = Arc::new(KeyLocks::new());
        let a = key("a");
        locks.acquire(1, &a, Shared, 0).unwrap();
        let (theirs, at) = (locks.clone(), a.clone());
        let second = thread::spawn(move || {
            let got = theirs.acquire(2, &at, Exclusive, FOREVER);
            theirs.release(2, &[at]);
            got
        });
        until_waiting(&locks, 2);
        assert_eq!(locks.acquire(3, &a, Shared, 0), Err(LockRefusal::TimedOut), "2 was first");
        let (theirs, at) = (locks.clone(), a.clone());
        let third = thread::spawn(move || theirs.acquire(3, &at, Shared, FOREVER));
        until_waiting(&locks, 3);
        locks.release(1, std::slice::from_ref(&a));
        assert_eq!(second.join().unwrap(), Ok(true));
        assert_eq!(third.join().unwrap(), Ok(true));
    }

    #[test]
    fn a_wait_ends_with_its_time_and_lets_those_behind_it_pass() {
        let locks = Arc::new(KeyLocks::new());
        let a = key("a");
        locks.acquire(1, &a, Shared, 0).unwrap();
        let (theirs, at) = (locks.clone(), a.clone());
        let second = thread::spawn(move || theirs.acquire(2, &at, Exclusive, 30_000_000));
        until_waiting(&locks, 2);
        assert_eq!(locks.acquire(3, &a, Shared, FOREVER), Ok(true), "once 2 has given up");
        assert_eq!(second.join().unwrap(), Err(LockRefusal::TimedOut));
        locks.release(1, std::slice::from_ref(&a));
        locks.release(3, &[a]);
        assert_eq!(locks.memory_bytes(), 0);
    }

    #[test]
    fn who_would_wait_for_itself_is_told_by_way_of_whom() {
        let locks = Arc::new(KeyLocks::new());
        let keys = [key("a"), key("b"), key("c")];
        for (owner, at) in (1..).zip(&keys) {
            locks.acquire(owner, at, Exclusive, 0).unwrap();
        }
        let waits = |owner: LockOwner, at: &LockKey| {
            let (theirs, at) = (locks.clone(), at.clone());
            let held = keys[owner as usize - 1].clone();
            let thread = thread::spawn(move || {
                let got = theirs.acquire(owner, &at, Exclusive, FOREVER);
                theirs.release(owner, &[held]);
                got
            });
            until_waiting(&locks, owner);
            thread
        };
        let (first, second) = (waits(1, &keys[1]), waits(2, &keys[2]));
        let refused = locks.acquire(3, &keys[0], Exclusive, FOREVER).unwrap_err();
        let circle = vec![(1, keys[1].clone()), (2, keys[2].clone())];
        assert_eq!(refused, LockRefusal::Deadlock(circle));
        // It gives up what it has, and the others go on.
        locks.release(3, &[keys[2].clone()]);
        assert_eq!(second.join().unwrap(), Ok(true));
        assert_eq!(first.join().unwrap(), Ok(true));
    }

    #[test]
    fn two_that_share_a_key_and_both_ask_for_it_alone_are_a_deadlock() {
        let locks = Arc::new(KeyLocks::new());
        let a = key("a");
        locks.acquire(1, &a, Shared, 0).unwrap();
        locks.acquire(2, &a, Shared, 0).unwrap();
        let (theirs, at) = (locks.clone(), a.clone());
        let first = thread::spawn(move || theirs.acquire(1, &at, Exclusive, FOREVER));
        until_waiting(&locks, 1);
        let refused = locks.acquire(2, &a, Exclusive, FOREVER).unwrap_err();
        assert_eq!(refused, LockRefusal::Deadlock(vec![(1, a.clone())]));
        locks.release(2, &[a]);
        assert_eq!(first.join().unwrap(), Ok(false));
    }
}
