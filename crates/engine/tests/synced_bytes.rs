//! The bytes that a synced put writes to the device, for any writes before it. In a process of its
//! own, so that all bytes it has written are from these puts.
//!
//! A store into a mapped log dirties a whole folio, which is half a MiB on recent kernels. So a log
//! is written by `pwrite` from its first sync on.

#![allow(clippy::disallowed_methods)] // reads the kernel's counters

use std::path::Path;
use windrow::{Db, Options, WriteSync};

/// The most bytes that a synced put of 100 bytes may write.
const PUT_BYTES_MAX: u64 = 16 << 10;
/// The number of puts of 1,000 bytes that make 64 MiB of log.
const UNSYNCED: u32 = 1 << 16;
const SYNCED: u32 = 400;

/// The bytes that this process has dirtied for a device to write. `None` where they are not
/// counted.
fn written_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.parse().ok()
}

/// Whether files in this directory are on a device whose writes are counted.
fn is_counted(dir: &Path) -> bool {
    let before = written_bytes();
    let file = dir.join("probe");
    std::fs::write(&file, [1; 64 << 10]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    before.is_some() && before < written_bytes()
}

fn put(db: &Db, prefix: &str, keys: u32) {
    (0..keys).for_each(|key| {
        db.put_with(format!("{prefix}{key:08}"), [7; 100], WriteSync::Yes).unwrap()
    });
}

/// The bytes that `work` writes per put.
fn per_put(work: impl FnOnce()) -> u64 {
    let before = written_bytes().unwrap();
    work();
    (written_bytes().unwrap() - before) / u64::from(SYNCED)
}

#[test]
fn a_synced_put_writes_little_whatever_was_written_before() {
    // Not in /tmp, which is memory on many machines.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if !is_counted(dir.path()) {
        eprintln!("SKIPPED: this file system counts no bytes written (tmpfs?)");
        return;
    }
    for map_logs in [false, true] {
        let mut options = Options::default();
        options.settings.memory_bytes = 1 << 30;
        options.settings.memtable_bytes = 256 << 20;
        options.settings.map_logs = map_logs;
        let db = Db::open_with(dir.path().join(format!("{map_logs}")), options).unwrap();
        let fresh = per_put(|| put(&db, "fresh", SYNCED));
        db.flush().unwrap();
        (0..UNSYNCED).for_each(|key| db.put(format!("grown{key:08}"), [7; 1000]).unwrap());
        assert!(64 << 20 <= db.stats().wal_bytes, "{}", db.stats().wal_bytes);
        db.sync().unwrap();
        let grown = per_put(|| put(&db, "one", SYNCED));
        let shared = per_put(|| {
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let (db, each) = (&db, SYNCED / 8);
                    scope.spawn(move || put(db, &format!("of{thread}"), each));
                }
            });
        });
        println!("map_logs={map_logs}: bytes per put {fresh} fresh, {grown} grown, {shared} of 8");
        let most = fresh.max(grown).max(shared);
        assert!(most <= PUT_BYTES_MAX, "map_logs={map_logs}: {fresh}, {grown}, {shared}");
        db.close().unwrap();
    }
}
