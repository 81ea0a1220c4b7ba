//! Models of the group sync of the log ([`windrow_store::write::wal_sync::WalSync`]): writers go
//! through the whole write path into a log that the model supplies.
//!
//! Owns: these models, and their log (`Device`). Never does: sync a real file.

use super::{ModelWorld, OF_TWO, model_of_database};
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Book, Ordering};
use windrow_base::{Error, ErrorKind, FileNumber, Result};
use windrow_env::LogFile;
use windrow_read::options::WriteSync;
use windrow_store::write::wal::Wal;

/// A log whose writes and syncs are only noted. Its fields, except those that writers share, are of
/// the standard library: they are the records of the test, not part of the protocol.
#[derive(Default)]
struct Device {
    fails: bool,
    panics: bool,
    syncs: Book,
    /// A bit for each key that was written.
    cached: AtomicU64,
    /// The bits that the last sync found.
    durable: Book,
    /// The log before this one must have been synced first (rule R4).
    after: Option<Arc<Device>>,
}

/// The keys. No other bytes of a record are like them.
const KEYS: [&str; 2] = ["<a>", "<b>"];

fn bit(key: &str) -> u64 {
    1 << KEYS.iter().position(|one| *one == key).expect("one of the keys")
}

impl Device {
    fn holds(&self, key: &str) -> bool {
        self.durable.load(Ordering::SeqCst) & bit(key) != 0
    }
}

impl LogFile for Device {
    fn write_at(&self, _offset: u64, bytes: &[u8]) -> Result<()> {
        let has = |key: &str| bytes.windows(key.len()).any(|part| part == key.as_bytes());
        let bits = KEYS.iter().filter(|key| has(key)).map(|key| bit(key)).sum();
        self.cached.fetch_or(bits, Relaxed);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.durable.store(self.cached.load(Relaxed), Ordering::SeqCst);
        if let Some(before) = &self.after {
            assert!(before.syncs.load(Ordering::SeqCst) > 0, "a newer log was synced first");
        }
        let before = self.syncs.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "a fault in the device (simulated)");
        if self.fails {
            assert_eq!(before, 0, "a failed sync was tried again (rule R13)");
            return Err(Error::new(ErrorKind::Io, "the device is gone"));
        }
        Ok(())
    }
}

/// The first number of a log that is on a device.
const FIRST: FileNumber = 1000;

fn wal(number: FileNumber, device: &Arc<Device>) -> Arc<Wal> {
    Arc::new(Wal::new(number, number, device.clone(), 0))
}

/// Goes on in log `number` on this device.
fn go_on(world: &ModelWorld, number: FileNumber, device: &Arc<Device>) {
    let segments = world.segments();
    let mut queue = segments.queue.lock();
    queue.spare = Some(wal(number, device));
    assert!(segments.rotate(&mut queue));
}

/// A model of a database whose log is on a device.
fn model_of_log(
    switches: usize,
    device: impl Fn() -> Device + Send + Sync + 'static,
    body: impl Fn(&Arc<ModelWorld>, &Arc<Device>) + Send + Sync + 'static,
) {
    model_of_database(switches, move |world| {
        let device = Arc::new(device());
        // Earlier writes are durable.
        world.db.sync().expect("sync");
        go_on(world, FIRST, &device);
        body(world, &device);
    });
}

fn put(world: &ModelWorld, key: &str, sync: WriteSync) -> Result<()> {
    world.db.put_with(key, key, sync)
}

#[test]
fn what_is_acknowledged_with_sync_is_on_the_device() {
    model_of_log(OF_TWO, Device::default, |world, device| {
        let write = |world: &ModelWorld, device: &Device, key| {
            put(world, key, WriteSync::Yes).expect("put");
            assert!(device.holds(key), "acknowledged, and not on the device");
        };
        let of_other = device.clone();
        let other = world.spawn(move |world| write(world, &of_other, "<a>"));
        write(world, device, "<b>");
        other.join().unwrap();
    });
}

#[test]
fn a_group_sync_covers_who_waits_and_older_logs_first() {
    model_of_log(OF_TWO, Device::default, |world, device| {
        put(world, "<a>", WriteSync::No).expect("put");
        let old = world.segments().queue.lock().wal.clone();
        let newer = Arc::new(Device { after: Some(device.clone()), ..Device::default() });
        go_on(world, FIRST + 1, &newer);
        let of_other = device.clone();
        let other = world.spawn(move |world| {
            world.segments().sync_to(&old, old.written()).expect("sync");
            assert!(of_other.holds("<a>"), "said to be durable");
        });
        put(world, "<b>", WriteSync::Yes).expect("put");
        assert!(device.holds("<a>") && newer.holds("<b>"), "acknowledged, and not on the device");
        other.join().unwrap();
    });
}

#[test]
fn who_comes_while_a_sync_runs_is_woken_by_the_next() {
    model_of_log(OF_TWO, Device::default, |world, device| {
        put(world, "<a>", WriteSync::No).expect("put");
        // The first one leads. Of the others one may lead the next sync, or find that nothing is
        // left to sync, and then wakes the last.
        let others = [(); 2].map(|()| {
            let device = device.clone();
            world.spawn(move |world| {
                world.db.sync().expect("sync");
                assert!(device.holds("<a>"), "acknowledged, and not on the device");
            })
        });
        put(world, "<b>", WriteSync::Yes).expect("put");
        assert!(device.holds("<b>"), "acknowledged, and not on the device");
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_failed_sync_fails_all_who_wait_and_is_not_tried_again() {
    let device = || Device { fails: true, ..Device::default() };
    model_of_log(OF_TWO, device, |world, _| {
        put(world, "<a>", WriteSync::No).expect("put");
        let other = world.spawn(|world| world.db.sync());
        assert!(world.db.sync().is_err(), "an acknowledgement of nothing");
        assert!(other.join().unwrap().is_err(), "an acknowledgement of nothing");
        assert_eq!(put(world, "<b>", WriteSync::No).unwrap_err().kind(), ErrorKind::ReadOnly);
    });
}

/// In either order of leader and waiter: a write that is seen and not durable is not called
/// refused.
#[test]
fn a_write_that_waited_for_a_failed_sync_says_that_it_may_be_there() {
    let device = || Device { fails: true, ..Device::default() };
    model_of_log(OF_TWO, device, |world, _| {
        let other = world.spawn(|world| put(world, "<a>", WriteSync::Yes));
        let mine = put(world, "<b>", WriteSync::Yes);
        for (key, failed) in [("<a>", other.join().unwrap()), ("<b>", mine)] {
            let error = failed.expect_err("an acknowledgement of nothing");
            let may_be_there = error.kind() == ErrorKind::OutcomeUnknown;
            assert!(may_be_there || error.kind() == ErrorKind::ReadOnly, "{key}: {error}");
            assert_eq!(world.has(key), may_be_there, "{key}: {error}");
        }
    });
}

#[test]
fn a_sync_that_panics_fails_who_waits_for_it() {
    let device = || Device { panics: true, ..Device::default() };
    model_of_log(OF_TWO, device, |world, _| {
        put(world, "<a>", WriteSync::No).expect("put");
        // The leader panics, and the other is neither left waiting nor told that the bytes are
        // durable.
        let sync = |world: &ModelWorld| catch_unwind(AssertUnwindSafe(|| world.db.sync()));
        let other = world.spawn(sync);
        let done = [sync(world), other.join().unwrap()];
        assert_eq!(done.iter().filter(|one| one.is_err()).count(), 1, "one sync, one panic");
        assert!(done.iter().flatten().all(Result::is_err));
        // It is over, for a resume that began before it failed.
        world.segments().wal_sync.wait_idle();
    });
}
