//! Models of the engine's protocols between threads, each on the very code
//! that runs, tried in every interleaving with at most a few forced switches:
//! `RUSTFLAGS="--cfg loom" cargo test --profile test -p windrow --lib models
//! --target-dir target/loom`. `LOOM_MAX_PREEMPTIONS=n` allows n of them.
//!
//! A relaxed atomic of loom's stands for what a protocol protects: without a
//! happens-before edge from its writing a read may find the value from before,
//! which fails the model, as does a thread that nobody will ever wake.

use crate::cache::TableCache;
use crate::gate::Gate;
use crate::lock_ranks;
use crate::progress::Progress;
use crate::retry_timer::RetryTimer;
use crate::snapshots::{DroppedEntries, SnapshotList};
use crate::write::queue::{Memtables, Queue, Slot};
use crate::write::wal::Wal;
use crate::write::wal_sync::WalSync;
use crate::write_state::WriteState;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::sync::{Arc as LoomArc, Mutex as LoomMutex};
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use windrow_base::{Error, ErrorKind, FileNumber, KeyOrder, Result};
use windrow_env::LogFile;
use windrow_env::sync::Mutex;
use windrow_env::testing::CrashFs;
use windrow_format::log::FILE_HEADER_BYTES;
use windrow_plan::tree::File;

/// Forced switches, where `LOOM_MAX_PREEMPTIONS` does not say.
const PREEMPTIONS: usize = 3;

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.max_branches = 100_000;
    builder.check(body);
}

/// A log that is written and synced by saying so. Its own fields, but for what
/// writers share, are the standard library's: they are the test's books, not
/// part of the protocol.
#[derive(Default)]
struct Device {
    fails: bool,
    panics: bool,
    syncs: AtomicUsize,
    /// A bit for each record that was written.
    cached: AtomicU64,
    /// What of that the last sync found.
    durable: AtomicUsize,
    /// The log before this one must have been synced first (rule R4).
    after: Option<Arc<Device>>,
}

impl LogFile for Device {
    fn write_at(&self, offset: u64, _bytes: &[u8]) -> Result<()> {
        self.cached.fetch_or(record(offset), Relaxed);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.durable.store(self.cached.load(Relaxed) as usize, Ordering::SeqCst);
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

fn wal(number: FileNumber, device: Arc<Device>) -> Arc<Wal> {
    Arc::new(Wal::new(number, number, device, 0))
}

/// Bytes of each record.
const BYTES: u64 = 10;

/// The bit of the record at `offset`.
fn record(offset: u64) -> u64 {
    1 << ((offset - FILE_HEADER_BYTES as u64) / BYTES)
}

fn take(queue: &Queue) -> Slot {
    queue.lock().take(1, BYTES, Memtables::Many(Vec::new()))
}

/// A queue, and for each of two sequence numbers what its writer inserts.
struct Commits {
    queue: Queue,
    write_state: WriteState,
    entries: [AtomicU64; 2],
}

impl Commits {
    fn new() -> Commits {
        Commits {
            queue: Queue::new(0, wal(1, Arc::default()), Arc::default()),
            write_state: WriteState::new(false),
            entries: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    fn commit(&self) -> Result<u64> {
        self.fill(&take(&self.queue))
    }

    /// Inserts into a slot and publishes it.
    fn fill(&self, slot: &Slot) -> Result<u64> {
        self.entries[slot.first_seq as usize - 1].store(1, Relaxed);
        self.queue.publish(slot, &self.write_state)?;
        assert!(slot.last_seq <= self.queue.visible(), "one's own write is visible");
        Ok(slot.last_seq)
    }

    /// Reads everything that is visible.
    fn read(&self) -> u64 {
        let visible = self.queue.visible();
        let inserted = |entry: &AtomicU64| entry.load(Relaxed) == 1;
        assert!(self.entries[..visible as usize].iter().all(inserted), "visible, and not there");
        visible
    }
}

#[test]
fn what_is_visible_has_been_inserted_and_never_goes_back() {
    model(|| {
        let commits = LoomArc::new(Commits::new());
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let commits = commits.clone();
                thread::spawn(move || commits.commit().expect("publish"))
            })
            .collect();
        let first = commits.read();
        assert!(first <= commits.read(), "time ran backwards");
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(commits.read(), 2);
    });
}

#[test]
fn whoever_waits_for_a_commit_is_woken() {
    model(|| {
        let commits = LoomArc::new(Commits::new());
        let slot = take(&commits.queue);
        let waiter = {
            let commits = commits.clone();
            thread::spawn(move || {
                commits.queue.wait_visible(2, &commits.write_state).expect("writing is on");
                assert_eq!(commits.read(), 2);
            })
        };
        let later = {
            let commits = commits.clone();
            thread::spawn(move || commits.commit().expect("publish"))
        };
        commits.fill(&slot).expect("writing is on");
        later.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn a_failed_append_is_never_visible_and_nobody_waits_for_it() {
    model(|| {
        let commits = LoomArc::new(Commits::new());
        let failing = take(&commits.queue);
        let later = {
            let commits = commits.clone();
            thread::spawn(move || commits.commit())
        };
        let waiter = {
            let commits = commits.clone();
            thread::spawn(move || commits.queue.wait_visible(1, &commits.write_state))
        };
        // As `Host::set_background_error` does.
        commits.write_state.set_background_error(&Error::new(ErrorKind::Io, "the append failed"));
        commits.queue.wake_all();
        commits.queue.fail(&failing);
        assert_eq!(later.join().unwrap().unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(commits.queue.visible(), 0);
    });
}

/// Something else turns writing off, a flush say, while slots are being filled:
/// what is refused stays unseen, and what is seen was not refused.
#[test]
fn a_write_is_seen_or_refused_whatever_else_fails() {
    model(|| {
        let commits = LoomArc::new(Commits::new());
        let first = take(&commits.queue);
        let later = {
            let commits = commits.clone();
            thread::spawn(move || commits.commit().is_ok())
        };
        let failing = {
            let commits = commits.clone();
            thread::spawn(move || {
                commits
                    .write_state
                    .set_background_error(&Error::new(ErrorKind::Io, "a flush failed"));
                commits.queue.wake_all();
            })
        };
        assert_eq!(commits.fill(&first).expect("nothing is before it"), 1);
        failing.join().unwrap();
        let was_told = later.join().unwrap();
        assert_eq!(commits.queue.visible() == 2, was_told);
        assert_eq!(commits.read(), commits.queue.visible());
    });
}

#[test]
fn a_group_sync_covers_who_waits_and_older_logs_first() {
    model(|| {
        let old_device = Arc::new(Device::default());
        let new_device = Device { after: Some(old_device.clone()), ..Device::default() };
        let (old, new) = (wal(1, old_device), wal(2, Arc::new(new_device)));
        let sync = Arc::new(WalSync::default());
        sync.activate(old.clone());
        old.advance_written(100);
        old.seal(100);
        sync.activate(new.clone());
        let other = {
            let (sync, old) = (sync.clone(), old.clone());
            thread::spawn(move || {
                let write_state = WriteState::new(false);
                sync.sync_to(&old, 100, &write_state, |_| ()).expect("sync");
                assert!(100 <= old.durable_up_to());
            })
        };
        new.advance_written(50);
        let write_state = WriteState::new(false);
        sync.sync_to(&new, 50, &write_state, |_| ()).expect("sync");
        assert!(50 <= new.durable_up_to() && 100 <= old.durable_up_to());
        other.join().unwrap();
    });
}

#[test]
fn what_is_acknowledged_with_sync_is_on_the_device() {
    model(|| {
        let device = Arc::new(Device::default());
        let log = wal(1, device.clone());
        let shared = Arc::new((
            Queue::new(0, log.clone(), Arc::default()),
            WalSync::default(),
            WriteState::new(false),
        ));
        shared.1.activate(log);
        let write = |device: &Device, (queue, sync, write_state): &(Queue, WalSync, WriteState)| {
            let slot = take(queue);
            device.write_at(slot.offset, &[]).expect("write");
            queue.publish(&slot, write_state).expect("publish");
            sync.sync_to(&slot.wal, slot.end, write_state, |_| ()).expect("sync");
            let durable = device.durable.load(Ordering::SeqCst) as u64;
            assert!(durable & record(slot.offset) != 0, "acknowledged, and not on the device");
        };
        let other = {
            let (device, shared) = (device.clone(), shared.clone());
            thread::spawn(move || write(&device, &shared))
        };
        write(&device, &shared);
        other.join().unwrap();
    });
}

#[test]
fn who_comes_while_a_sync_runs_is_woken_by_the_next() {
    model(|| {
        let log = wal(1, Arc::default());
        let shared = Arc::new((WalSync::default(), WriteState::new(false)));
        shared.0.activate(log.clone());
        let sync_to = |log: &Arc<Wal>, (sync, write_state): &(WalSync, WriteState), end| {
            sync.sync_to(log, end, write_state, |_| ()).expect("sync");
            assert!(end <= log.durable_up_to());
        };
        log.advance_written(100);
        let write = |end| {
            let (log, shared) = (log.clone(), shared.clone());
            thread::spawn(move || sync_to(&log, &shared, end))
        };
        // Whichever is first leads; of the others one may lead the next sync, or
        // find that there is nothing left to lead, and then tells the last.
        let first = write(100);
        log.advance_written(200);
        let second = write(200);
        sync_to(&log, &shared, 200);
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn a_failed_sync_fails_all_who_wait_and_is_not_tried_again() {
    model(|| {
        let log = wal(1, Arc::new(Device { fails: true, ..Device::default() }));
        let shared = Arc::new((WalSync::default(), WriteState::new(false)));
        shared.0.activate(log.clone());
        log.advance_written(100);
        let attempt = |log: &Arc<Wal>, shared: &(WalSync, WriteState)| {
            let (sync, write_state) = shared;
            let on_failure = |error: &Error| {
                write_state.set_background_error(error);
                sync.wake_all();
            };
            assert!(
                sync.sync_to(log, 100, write_state, on_failure).is_err(),
                "an acknowledgement of nothing"
            );
        };
        let other = {
            let (log, shared) = (log.clone(), shared.clone());
            thread::spawn(move || attempt(&log, &shared))
        };
        attempt(&log, &shared);
        other.join().unwrap();
        assert!(log.durable_up_to() < 100);
    });
}

#[test]
fn a_sync_that_panics_fails_who_waits_for_it() {
    model(|| {
        let log = wal(1, Arc::new(Device { panics: true, ..Device::default() }));
        let shared = Arc::new((WalSync::default(), WriteState::new(false)));
        shared.0.activate(log.clone());
        log.advance_written(100);
        // Whichever leads panics, and the other is neither left waiting nor told
        // that the bytes are durable.
        let sync_to = |log: &Arc<Wal>, shared: &(WalSync, WriteState)| {
            let (sync, write_state) = shared;
            let on_failure = |error: &Error| {
                write_state.set_background_error(error);
                sync.wake_all();
            };
            catch_unwind(AssertUnwindSafe(|| sync.sync_to(log, 100, write_state, on_failure)))
        };
        let follower = {
            let (log, shared) = (log.clone(), shared.clone());
            thread::spawn(move || sync_to(&log, &shared))
        };
        let done = [sync_to(&log, &shared), follower.join().unwrap()];
        assert_eq!(done.iter().filter(|one| one.is_err()).count(), 1, "one sync, one panic");
        assert!(done.iter().flatten().all(Result::is_err));
    });
}

/// A table of which only number and uid matter.
fn table(number: FileNumber) -> File {
    File { number, uid: number, ..File::default() }
}

/// A cache, and how many tables it gave away to be unlinked.
fn cache() -> (Arc<TableCache>, Arc<AtomicUsize>) {
    let gone = Arc::new(AtomicUsize::new(0));
    let sink = gone.clone();
    let on_obsolete = move |_| {
        sink.fetch_add(1, Ordering::SeqCst);
    };
    let fs = Arc::new(CrashFs::new(0));
    let (obsolete, opened) = (Arc::new(on_obsolete), Arc::new(|_| ()));
    (Arc::new(TableCache::new(fs, "db", 4, 1 << 20, false, obsolete, opened)), gone)
}

#[test]
fn a_table_goes_once_and_not_while_a_version_is_pinned() {
    model(|| {
        let (cache, gone) = cache();
        // Loom's pointer stands for the view's: it sees the order of unpins.
        let view = LoomArc::new(cache.handle(&table(1), &KeyOrder::Bytewise));
        let current = LoomArc::new(LoomMutex::new(Some(view)));
        let reader = {
            let (current, gone) = (current.clone(), gone.clone());
            thread::spawn(move || {
                let pinned = current.lock().unwrap().clone();
                if let Some(pinned) = pinned {
                    assert_eq!(gone.load(Ordering::SeqCst), 0, "removed under a reader");
                    drop(pinned);
                }
            })
        };
        // As `Jobs::try_install`: the next version first, then the marks, then the unpin.
        let old = current.lock().unwrap().take().expect("the first version");
        old.mark_obsolete();
        drop(old);
        reader.join().unwrap();
        assert_eq!(gone.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_table_has_one_handle_whoever_lets_go_of_the_last() {
    model(|| {
        let (cache, gone) = cache();
        let first = cache.handle(&table(1), &KeyOrder::Bytewise);
        let other = cache.clone();
        let reader = thread::spawn(move || drop(first));
        let again = other.handle(&table(1), &KeyOrder::Bytewise);
        reader.join().unwrap();
        let same = cache.handle(&table(1), &KeyOrder::Bytewise);
        assert!(Arc::ptr_eq(&again, &same), "two handles of one table");
        assert_eq!(gone.load(Ordering::SeqCst), 0, "a live table was given away");
    });
}

/// What `close` and those who use the database meanwhile share.
struct Closing {
    commits: Commits,
    gate: Gate,
    progress: Progress,
    /// What the job does to the files, and whether it did (the test's books).
    files: AtomicU64,
    touched: AtomicBool,
    closed: AtomicBool,
}

#[test]
fn a_close_waits_for_writers_and_jobs_and_nothing_comes_after() {
    model(|| {
        let db = LoomArc::new(Closing {
            commits: Commits::new(),
            gate: Gate::default(),
            progress: Progress::default(),
            files: AtomicU64::new(0),
            touched: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let writer = {
            let db = db.clone();
            thread::spawn(move || {
                let mut queue = db.commits.queue.lock();
                if db.gate.is_closing() {
                    return;
                }
                let slot = queue.take(1, BYTES, Memtables::Many(Vec::new()));
                drop(queue);
                db.commits.fill(&slot).expect("writing is on");
            })
        };
        let job = {
            let db = db.clone();
            thread::spawn(move || {
                if db.gate.enter() {
                    db.files.store(1, Relaxed);
                    db.touched.store(true, Ordering::SeqCst);
                    assert!(!db.closed.load(Ordering::SeqCst), "work after the close");
                    db.gate.leave();
                    db.progress.note();
                }
            })
        };
        let queue = db.commits.queue.lock();
        assert!(!db.gate.close());
        let last_seq = queue.last_seq();
        drop(queue);
        db.commits.queue.wait_visible(last_seq, &db.commits.write_state).expect("writing is on");
        db.progress.wait_until(|| false, || db.gate.is_quiet().then_some(()));
        let touched = db.touched.load(Ordering::SeqCst);
        assert_eq!(db.files.load(Relaxed) == 1, touched, "work that the close does not see");
        db.closed.store(true, Ordering::SeqCst);
        assert_eq!(db.commits.read(), last_seq);
        writer.join().unwrap();
        job.join().unwrap();
        assert_eq!(db.commits.read(), last_seq, "a write after the close");
    });
}

/// What a filter took is there for a snapshot at all times, or at none.
#[test]
fn a_snapshot_is_on_one_side_of_an_install() {
    model(|| {
        let list = LoomArc::new(SnapshotList::default());
        let there = LoomArc::new(AtomicU64::new(1));
        let since_id = list.held().next_id;
        let reader = {
            let (list, there) = (list.clone(), there.clone());
            thread::spawn(move || {
                let (seq, _, id) = list.register(|| (1, 0));
                let first = there.load(Relaxed);
                assert_eq!(there.load(Relaxed), first, "a snapshot changed");
                list.release(seq, id);
            })
        };
        let installing =
            list.raise_barrier(&DroppedEntries { since_id, filtered: true, expired_ms: 0 });
        if installing.is_some() {
            there.store(0, Relaxed);
        }
        drop(installing);
        reader.join().unwrap();
    });
}

/// The canary of lock ranks, which the models check as well.
#[test]
#[should_panic(expected = "takes the catalog (rank 100) while this thread holds the commit queue")]
fn locks_that_are_taken_out_of_order_are_noticed() {
    model(|| {
        let catalog = Mutex::new(lock_ranks::CATALOG, ());
        let queue = Mutex::new(lock_ranks::QUEUE, ());
        let _queue = queue.lock();
        let _catalog = catalog.lock();
    });
}

/// Jobs that are to be tried again, of which one fails while the timer ends.
#[test]
fn a_job_that_waits_has_a_timer_that_looks_for_it() {
    model(|| {
        let shared = LoomArc::new((RetryTimer::default(), LoomMutex::new(false)));
        let waits = |shared: &(RetryTimer, LoomMutex<bool>)| *shared.1.lock().unwrap();
        assert!(shared.0.begin());
        let job = {
            let shared = shared.clone();
            thread::spawn(move || {
                *shared.1.lock().unwrap() = true;
                shared.0.begin()
            })
        };
        let goes_on = shared.0.goes_on(|| waits(&shared));
        let started = job.join().unwrap();
        assert!(goes_on || started, "a job waits, and no timer looks for it");
        assert!(!goes_on || !started, "two timers look for it");
    });
}
