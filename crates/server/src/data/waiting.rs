//! Clients that wait for a list or a sorted set to have an element.
//!
//! Owns: the clients that wait for each key, in the order in which they came. Never does: give one an
//! element: a client that is woken looks again, and wakes the next one if it took one.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The clients that wait for one key, by age.
type Tickets = BTreeMap<u64, Arc<Notify>>;

/// All clients that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    next: AtomicU64,
    /// So that a write asks for no lock where nobody waits.
    clients: AtomicUsize,
    keys: Mutex<HashMap<Vec<u8>, Tickets>>,
}

/// A client's place among those who wait. Dropped, it waits no more.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    waiting: &'a Waiting,
    number: u64,
    keys: &'a [Vec<u8>],
    pub(crate) woken: Arc<Notify>,
}

impl Waiting {
    /// Waits for `keys` from now on.
    pub(crate) fn wait<'a>(&'a self, keys: &'a [Vec<u8>]) -> Ticket<'a> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let woken = Arc::new(Notify::new());
        let mut all = self.keys.lock();
        for key in keys {
            all.entry(key.clone()).or_default().insert(number, Arc::clone(&woken));
        }
        self.clients.fetch_add(1, Ordering::SeqCst);
        Ticket { waiting: self, number, keys, woken }
    }

    /// `key` has got elements, and they can be read: whoever has waited longest looks.
    pub(crate) fn wake(&self, key: &[u8]) {
        if self.is_empty() {
            return;
        }
        if let Some((_, first)) = self.keys.lock().get(key).and_then(BTreeMap::first_key_value) {
            first.notify_one();
        }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.load(Ordering::SeqCst) == 0
    }

    /// How many clients wait.
    pub(crate) fn len(&self) -> usize {
        self.clients.load(Ordering::SeqCst)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut all = self.waiting.keys.lock();
        for key in self.keys {
            if let Some(of_key) = all.get_mut(key) {
                of_key.remove(&self.number);
                // It may have been woken for an element that it has not looked at.
                if let Some((_, next)) = of_key.first_key_value() {
                    next.notify_one();
                } else {
                    all.remove(key);
                }
            }
        }
        self.waiting.clients.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    fn is_woken(ticket: &Ticket<'_>) -> bool {
        let woken = std::pin::pin!(ticket.woken.notified());
        woken.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn whoever_came_first_is_woken_and_then_the_next() {
        let waiting = Waiting::default();
        let (a, ab) = ([b"a".to_vec()], [b"a".to_vec(), b"b".to_vec()]);
        let (first, second) = (waiting.wait(&a), waiting.wait(&ab));
        waiting.wake(b"c");
        assert!(!is_woken(&first) && !is_woken(&second));
        waiting.wake(b"a");
        assert!(is_woken(&first) && !is_woken(&second));
        drop(first);
        assert!(is_woken(&second));
        waiting.wake(b"b");
        assert!(is_woken(&second));
        drop(second);
        assert!(waiting.is_empty() && waiting.keys.lock().is_empty());
    }
}
