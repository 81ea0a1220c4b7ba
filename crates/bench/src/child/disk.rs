//! The disk space of a store's files while a phase runs, at most and in the
//! mean: a file that is replaced and removed late shows neither before the
//! phase nor after.
//!
//! Owns: the thread that looks. Never does: say how much is too much.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at any store's files from outside, in real time"
)]

use crate::process;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time from one look to the next: a look takes some microseconds a file.
const INTERVAL: Duration = Duration::from_millis(500);

/// The sizes that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) most: u64,
    sum: u64,
    looks: u64,
}

impl Sizes {
    fn add(&mut self, bytes: u64) {
        self.most = self.most.max(bytes);
        self.sum += bytes;
        self.looks += 1;
    }

    /// Returns the mean of all looks, which are at equal distances.
    pub(super) fn mean(self) -> f64 {
        self.sum as f64 / self.looks.max(1) as f64
    }
}

/// Looks at a directory until it is told to stop, or dropped.
pub(super) struct DiskWatch {
    dir: PathBuf,
    seen: Arc<Mutex<Sizes>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl DiskWatch {
    /// Starts to look at `dir`.
    pub(super) fn start(dir: &Path) -> DiskWatch {
        let (dir, seen) = (dir.to_owned(), Arc::default());
        let (stop, stopped) = channel();
        let (looked_at, shared) = (dir.clone(), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            loop {
                look(&looked_at, &shared);
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        DiskWatch { dir, seen, stop, thread }
    }

    /// Looks once more, and returns the sizes seen up to now.
    pub(super) fn so_far(&self) -> Sizes {
        look(&self.dir, &self.seen)
    }

    /// Stops, and returns all sizes that were seen.
    pub(super) fn stop(self) -> Sizes {
        drop(self.stop);
        // The thread does nothing that panics; if it did, the sizes it had seen
        // are true.
        let _ = self.thread.join();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look(dir: &Path, seen: &Mutex<Sizes>) -> Sizes {
    let bytes = process::disk_bytes(dir);
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.add(bytes);
    *seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_again_was_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("replaced");
        let watch = DiskWatch::start(dir.path());
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        // The file system allocates blocks when the file is written back, at
        // the latest by a sync.
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let so_far = watch.so_far();
        assert!(so_far.most >= 1 << 20 && so_far.mean() > 0.0, "{so_far:?}");
        std::fs::remove_file(&path).unwrap();
        let all = watch.stop();
        assert!(all.most >= 1 << 20 && all.looks >= so_far.looks, "{all:?}");
    }

    #[test]
    fn the_mean_is_of_all_looks() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.mean(), 0.0);
        [10, 40, 10].into_iter().for_each(|bytes| sizes.add(bytes));
        assert_eq!((sizes.most, sizes.mean()), (40, 20.0));
    }
}
