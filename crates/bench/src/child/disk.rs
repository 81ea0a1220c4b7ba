//! The most that a store's files take while a phase runs: what it replaces and
//! removes late shows neither before the phase nor after.
//!
//! Owns: the thread that looks. Never does: say how much is too much.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at any store's files from outside, in real time"
)]

use crate::process;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// From one look to the next: a look takes some microseconds a file.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks at a directory until it is told to stop, or dropped.
pub(super) struct DiskWatch {
    most: Arc<AtomicU64>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl DiskWatch {
    /// From here on.
    pub(super) fn start(dir: &Path) -> DiskWatch {
        let (dir, most) = (dir.to_owned(), Arc::new(AtomicU64::new(0)));
        let (stop, stopped) = channel();
        let seen = most.clone();
        let thread = std::thread::spawn(move || {
            loop {
                seen.fetch_max(process::disk_bytes(&dir), Ordering::Relaxed);
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        DiskWatch { most, stop, thread }
    }

    /// The most that was seen, in bytes.
    pub(super) fn stop(self) -> u64 {
        drop(self.stop);
        // It does nothing that panics; if it does, what it saw is true.
        let _ = self.thread.join();
        self.most.load(Ordering::Relaxed)
    }
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
        // Blocks are given when the file is written back, at the latest by a sync.
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        while watch.most.load(Ordering::Relaxed) < 1 << 20 {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(watch.stop() >= 1 << 20);
    }
}
