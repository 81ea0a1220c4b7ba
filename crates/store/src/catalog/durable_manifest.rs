//! The durable length of the manifest, for the write-ahead log, which remembers it (rules R10,
//! R11).
//!
//! Owns: that length. Never does: wait for the lock of the catalog, which a thread that writes to
//! the log may hold.

use windrow_base::invariant;
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_format::log::Length;
use windrow_read::lock_ranks;

/// The durable length of the manifest.
pub struct DurableManifest {
    /// How often it changed.
    changes: AtomicU64,
    length: Mutex<Length>,
}

impl Default for DurableManifest {
    fn default() -> DurableManifest {
        let length = Mutex::new(lock_ranks::DURABLE_MANIFEST, Length::default());
        DurableManifest { changes: AtomicU64::new(0), length }
    }
}

impl DurableManifest {
    /// Sets the durable length.
    pub fn set(&self, length: Length) {
        let mut now = self.length.lock();
        let (before, after) = ((now.number, now.bytes), (length.number, length.bytes));
        invariant!(R11, before <= after, "what is durable goes from {before:?} back to {after:?}");
        if *now != length {
            *now = length;
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// A number that is another one after each change, and 0 before the first.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The durable length, at least as it was when `changes` was read.
    pub fn length(&self) -> Length {
        *self.length.lock()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "(R11): what is durable goes from (2, 100) back to (2, 90)")]
    fn a_manifest_does_not_become_shorter() {
        let durable = DurableManifest::default();
        for (number, bytes) in [(1, 500), (2, 100), (2, 100), (2, 90)] {
            durable.set(Length { number, bytes });
        }
    }
}
