//! Clients that wait for a list, a sorted set or a stream to have something.
//!
//! Owns: the clients that wait for each key, in the order in which they came, and the signal to a
//! writer that those it woke have looked. Never does: give one an element: a client that is woken
//! looks again.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// A writer's reply comes after those of the clients that its write serves, as if all were on one
/// thread. Each client that is woken keeps a clone until it has looked.
#[derive(Clone, Debug)]
pub(crate) struct Served(Arc<Last>);

/// The last clone that is dropped signals that.
#[derive(Debug)]
struct Last(Arc<Notify>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Served {
    pub(crate) fn new() -> Served {
        Served(Arc::new(Last(Arc::new(Notify::new()))))
    }

    /// Waits until all other clones are gone.
    pub(crate) async fn all(self) {
        let gone = Arc::clone(&self.0.0);
        drop(self);
        gone.notified().await;
    }
}

/// One client that waits.
#[derive(Debug, Default)]
struct Waiter {
    woken: Notify,
    /// Whether it was woken, and has not looked.
    is_due: AtomicBool,
    /// The clones from the writers that woke it.
    served: Mutex<Vec<Served>>,
}

impl Waiter {
    fn wake(&self, served: &[Served]) {
        self.served.lock().extend_from_slice(served);
        self.is_due.store(true, Ordering::SeqCst);
        self.woken.notify_one();
    }
}

/// The clients that wait for one key, by age.
type Waiters = BTreeMap<u64, Arc<Waiter>>;

/// All clients that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingClients {
    next: AtomicU64,
    /// The number of waiting clients: without any, a write takes no lock.
    clients: AtomicUsize,
    keys: Mutex<HashMap<Vec<u8>, Waiters>>,
}

/// A client's place among those who wait. Once it is dropped, the client no longer waits.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    waiting: &'a WaitingClients,
    number: u64,
    keys: &'a [Vec<u8>],
    waiter: Arc<Waiter>,
}

impl WaitingClients {
    /// Waits for `keys` from now on.
    pub(crate) fn wait<'a>(&'a self, keys: &'a [Vec<u8>]) -> Ticket<'a> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let waiter = Arc::new(Waiter::default());
        let mut all = self.keys.lock();
        for key in keys {
            all.entry(key.clone()).or_default().insert(number, Arc::clone(&waiter));
        }
        self.clients.fetch_add(1, Ordering::SeqCst);
        Ticket { waiting: self, number, keys, waiter }
    }

    /// Wakes the client that has waited longest for `key`, which has something that can be read
    /// now. It keeps clones of `served` until it has looked.
    pub(crate) fn wake(&self, key: &[u8], served: &[Served]) {
        if self.is_empty() {
            return;
        }
        if let Some((_, first)) = self.keys.lock().get(key).and_then(BTreeMap::first_key_value) {
            first.wake(served);
        }
    }

    /// Returns whether no client waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.load(Ordering::SeqCst) == 0
    }

    /// Returns the number of waiting clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.load(Ordering::SeqCst)
    }

    /// Returns the keys that they wait for.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        self.keys.lock().keys().cloned().collect()
    }
}

impl Ticket<'_> {
    /// Waits until there may be something; returns the clones of the writers that added it.
    pub(crate) async fn woken(&self) -> Vec<Served> {
        self.waiter.woken.notified().await;
        self.waiter.is_due.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.waiter.served.lock())
    }

    /// Wakes the next client of each key, after this one has looked.
    pub(crate) fn pass_on(&self, served: &[Served]) {
        self.wake_next(&self.waiting.keys.lock(), served);
    }

    fn wake_next(&self, all: &HashMap<Vec<u8>, Waiters>, served: &[Served]) {
        for key in self.keys {
            let behind = (Bound::Excluded(self.number), Bound::Unbounded);
            if let Some((_, next)) = all.get(key).and_then(|of_key| of_key.range(behind).next()) {
                next.wake(served);
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut all = self.waiting.keys.lock();
        for key in self.keys {
            if let Some(of_key) = all.get_mut(key) {
                of_key.remove(&self.number);
                if of_key.is_empty() {
                    all.remove(key);
                }
            }
        }
        // The lock is still held, so that no wake comes in between: the next client looks for the
        // elements that this one was woken for.
        if self.waiter.is_due.load(Ordering::SeqCst) {
            let served = std::mem::take(&mut *self.waiter.served.lock());
            self.wake_next(&all, &served);
        }
        self.waiting.clients.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    fn woken(ticket: &Ticket<'_>) -> Option<Vec<Served>> {
        let woken = std::pin::pin!(ticket.woken());
        match woken.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(served) => Some(served),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_first_to_come_is_woken_and_then_the_next() {
        let waiting = WaitingClients::default();
        let (a, ab) = ([b"a".to_vec()], [b"a".to_vec(), b"b".to_vec()]);
        let (first, second) = (waiting.wait(&a), waiting.wait(&ab));
        waiting.wake(b"c", &[]);
        assert!(woken(&first).is_none() && woken(&second).is_none());
        waiting.wake(b"a", &[]);
        assert!(woken(&first).is_some() && woken(&second).is_none());
        first.pass_on(&[]);
        assert!(woken(&second).is_some());
        waiting.wake(b"a", &[]);
        drop(first);
        assert!(woken(&second).is_some(), "the first has not looked");
        waiting.wake(b"b", &[]);
        assert!(woken(&second).is_some());
        drop(second);
        assert!(waiting.is_empty() && waiting.keys.lock().is_empty());
    }

    #[test]
    fn a_writer_learns_when_the_last_of_those_it_woke_has_looked() {
        let waiting = WaitingClients::default();
        let keys = [b"a".to_vec()];
        let (first, second) = (waiting.wait(&keys), waiting.wait(&keys));
        let writer = Served::new();
        waiting.wake(b"a", std::slice::from_ref(&writer));
        let mut all = std::pin::pin!(writer.all());
        let mut is_over = || all.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!is_over());
        let served = woken(&first).unwrap();
        first.pass_on(&served);
        drop(served);
        drop(first);
        assert!(!is_over(), "the second has not looked");
        drop(second);
        assert!(is_over(), "it went without looking");
    }

    /// A wake that comes while the first client leaves is for one of both, and the first one does
    /// not look.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "both happen at once")]
    fn no_wake_is_lost_to_a_client_that_goes() {
        let (waiting, keys) = (WaitingClients::default(), [b"a".to_vec()]);
        for round in 0..20_000 {
            let (first, second) = (waiting.wait(&keys), waiting.wait(&keys));
            let both = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    both.wait();
                    waiting.wake(b"a", &[]);
                });
                both.wait();
                drop(first);
            });
            assert!(woken(&second).is_some(), "round {round}");
        }
    }
}
