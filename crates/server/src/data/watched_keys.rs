//! Keys that clients watch: `WATCH`.
//!
//! Owns: which clients watch which key, and the signal that it was written. Never does: read
//! values.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Set once a key that a client watches was written.
pub(crate) type Written = Arc<AtomicBool>;

/// All watched keys.
#[derive(Debug, Default)]
pub(crate) struct WatchedKeys {
    /// The number of watches: without any, a write takes no lock.
    len: AtomicUsize,
    keys: Mutex<HashMap<Vec<u8>, Vec<Written>>>,
}

impl WatchedKeys {
    /// Sets `written` from now on when `key` is written. Called under the key's lock.
    pub(crate) fn watch(&self, key: &[u8], written: &Written) {
        let mut keys = self.keys.lock();
        keys.entry(key.to_vec()).or_default().push(Arc::clone(written));
        self.len.store(keys.len(), Ordering::SeqCst);
    }

    /// Forgets a client's watch of a key.
    pub(crate) fn forget(&self, key: &[u8], written: &Written) {
        let mut keys = self.keys.lock();
        if let Some(all) = keys.get_mut(key) {
            all.retain(|other| !Arc::ptr_eq(other, written));
            if all.is_empty() {
                keys.remove(key);
            }
        }
        self.len.store(keys.len(), Ordering::SeqCst);
    }

    /// Signals a write of `key`. Called under its lock.
    pub(crate) fn touch(&self, key: &[u8]) {
        if self.len.load(Ordering::SeqCst) == 0 {
            return;
        }
        for written in self.keys.lock().get(key).into_iter().flatten() {
            written.store(true, Ordering::SeqCst);
        }
    }

    /// Signals a write of every watched key for which `is_there` returns that it existed before.
    pub(crate) fn touch_where(&self, mut is_there: impl FnMut(&[u8]) -> bool) {
        for (key, all) in &*self.keys.lock() {
            if is_there(key) {
                all.iter().for_each(|written| written.store(true, Ordering::SeqCst));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_of_its_keys_until_it_forgets_them() {
        let watched = WatchedKeys::default();
        let (one, two) = (Written::default(), Written::default());
        watched.watch(b"a", &one);
        watched.watch(b"b", &two);
        watched.touch(b"c");
        assert!(!one.load(Ordering::SeqCst) && !two.load(Ordering::SeqCst));
        watched.touch(b"b");
        assert!(!one.load(Ordering::SeqCst) && two.load(Ordering::SeqCst));
        watched.forget(b"a", &one);
        watched.touch(b"a");
        assert!(!one.load(Ordering::SeqCst));
        watched.touch_where(|key| key == b"b");
        assert!(two.load(Ordering::SeqCst));
    }
}
