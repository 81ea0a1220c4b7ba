//! The commit queue: which writer writes where, and in which order writes appear.
//!
//! A short lock gives out sequence numbers and log slots. (Rejected: one lock over log and
//! memtable, which serialises the memtable inserts, which are most of a write's time.) After it,
//! writers fill their slots and insert at the same time. Publication is in order: a ticket's writes
//! become visible when every earlier ticket is done, so a reader sees a prefix of the commits and
//! recovery finds no hole before an acknowledged record.
//!
//! Invariants:
//! - Q1 tickets, sequence numbers and log offsets are given out together, under one lock, so their
//!   orders agree.
//! - Q2 `visible` is the last sequence number of the last ticket such that it and all before it are
//!   done.
//! - Q3 a failed ticket is never published, nor is any after it; the background error was set
//!   before it was marked, so no thread waits for it in vain.
//! - Q4 a ticket that is done is refused only if one before it failed. (Not because another failure
//!   set a background error, a flush say: the tickets before it may still be filled, which
//!   publishes it, too.)
//!
//! Owns: the order of commits, the active segment and the older ones, and the unflushed memtables.
//! Never does: write to the log or to a memtable.

use crate::catalog::durable_manifest::DurableManifest;
use crate::host::write_state::WriteState;
use crate::write::unflushed_writes::Unflushed;
use crate::write::wal::Wal;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use windrow_base::{KeyspaceId, Result, SeqNo, debug_invariant, invariant};
use windrow_env::Clock;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::sync::{Condvar, Mutex, MutexGuard};
use windrow_format::batch;
use windrow_format::log::{Length, LogKind, LogPosition, Mark};
use windrow_read::lock_ranks;
use windrow_read::memtable::Memtable;

/// The state that the short lock guards.
pub struct QueueState {
    pub next_seq: SeqNo,
    next_ticket: u64,
    pub wal: Arc<Wal>,
    pub wal_offset: u64,
    /// The next segment, made ahead.
    pub spare: Option<Arc<Wal>>,
    /// The length of the active segment from which a writer asks for a spare (again).
    pub(crate) spare_from: u64,
    /// The sequence number of the active segment's first record.
    pub wal_first_seq: SeqNo,
    /// Segments that were active before and whose records are not all in
    /// tables, oldest first, each with the sequence number of its first record.
    pub older_wals: Vec<(Arc<Wal>, SeqNo)>,
    /// The memtables that hold anything, and the account of their bytes.
    pub unflushed: Unflushed,
    manifest: Arc<DurableManifest>,
    /// The change of the manifest's durable length ([`DurableManifest::changes`]) that the active
    /// segment records.
    marked: u64,
    /// The number that came next at the last mark with the time.
    timed_seq: SeqNo,
    /// The time for the next mark.
    time_ms: Option<u64>,
}

/// A place in the order of commits.
pub struct Slot {
    pub(crate) ticket: u64,
    pub first_seq: SeqNo,
    pub last_seq: SeqNo,
    pub wal: Arc<Wal>,
    /// Payload of a mark that goes before the record, at the beginning of the slot.
    pub mark: Option<Vec<u8>>,
    /// Offset of the slot.
    pub begin: u64,
    /// Offset of the record.
    pub offset: u64,
    pub end: u64,
    pub durable_up_to: u64,
    /// The memtables to insert into. One keyspace is the common case.
    pub memtables: Memtables,
}

/// Returns a record's place in a log of this build.
fn place_in(wal: &Wal, offset: u64, durable_up_to: u64) -> LogPosition {
    LogPosition { framing: LogKind::Wal.framing(), uid: wal.uid, offset, durable_up_to }
}

impl Slot {
    /// The place of the mark, if there is one.
    pub(crate) fn mark_place(&self) -> LogPosition {
        place_in(&self.wal, self.begin, self.durable_up_to)
    }

    /// The place of the record.
    pub fn place(&self) -> LogPosition {
        place_in(&self.wal, self.offset, self.durable_up_to)
    }
}

/// The memtable of each keyspace that a batch touches, by id ascending.
pub enum Memtables {
    One(KeyspaceId, Arc<Memtable>),
    Many(Vec<(KeyspaceId, Arc<Memtable>)>),
}

impl Memtables {
    /// Returns the memtable of a keyspace; `None` if it is not among them.
    #[inline]
    pub fn get(&self, id: KeyspaceId) -> Option<&Arc<Memtable>> {
        match self {
            Memtables::One(one, memtable) => (*one == id).then_some(memtable),
            Memtables::Many(many) => {
                let at = many.binary_search_by_key(&id, |(id, _)| *id).ok()?;
                Some(&many[at].1)
            }
        }
    }
}

struct Done {
    last_seq: SeqNo,
    wal: Arc<Wal>,
    end: u64,
}

#[derive(Default)]
struct Publication {
    /// Ticket of the front of `done`.
    base: u64,
    done: VecDeque<Option<Done>>,
    waiting: usize,
    /// The number of tickets from `base` on whose record was not appended.
    failed: u64,
    /// The first of them.
    first_failed: Option<u64>,
    /// The number of threads that wait for all tickets to be done or failed.
    settling: usize,
    /// Readers of the log to wake when more of it is published, each with its number. No writer waits
    /// for one.
    listeners: Vec<(u64, Waker)>,
}

impl Publication {
    /// Whether a ticket comes after one that failed: its turn will never come.
    fn is_cut_off(&self, ticket: u64) -> bool {
        self.first_failed.is_some_and(|failed| failed < ticket)
    }

    /// Whether every ticket before `next` is done or failed, and no thread waits.
    fn is_settled(&self, next: u64) -> bool {
        let done = self.done.iter().flatten().count() as u64;
        // More, if a ticket that was done failed as it was published (a panic).
        self.waiting == 0 && self.base + done + self.failed >= next
    }
}

/// The queue of a database. Writers write to it all the time: fields next to it that they only read
/// must not share its cache lines.
#[repr(align(128))]
pub struct Queue {
    state: Mutex<QueueState>,
    publication: Mutex<Publication>,
    published: Condvar,
    visible: AtomicU64,
    /// The number of the next reader of the log.
    next_listener: AtomicU64,
}

impl Queue {
    /// A queue that goes on after `last_seq`, into `wal`.
    pub fn new(last_seq: SeqNo, wal: Arc<Wal>, manifest: Arc<DurableManifest>) -> Queue {
        let wal_offset = wal.written();
        Queue {
            state: Mutex::new(
                lock_ranks::QUEUE,
                QueueState {
                    next_seq: last_seq + 1,
                    next_ticket: 0,
                    wal,
                    wal_offset,
                    spare: None,
                    spare_from: 0,
                    wal_first_seq: last_seq + 1,
                    older_wals: Vec::new(),
                    unflushed: Unflushed::default(),
                    manifest,
                    marked: 0,
                    timed_seq: last_seq + 1,
                    time_ms: None,
                },
            ),
            publication: Mutex::new(lock_ranks::PUBLICATION, Publication::default()),
            published: Condvar::new(),
            visible: AtomicU64::new(last_seq),
            next_listener: AtomicU64::new(0),
        }
    }

    /// The sequence number up to which reads may look. Load the view first,
    /// then this: everything at or below it is then in the view.
    #[inline]
    pub fn visible(&self) -> SeqNo {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes everything up to `seq` visible. For recovery, before the first write.
    pub fn set_visible(&self, seq: SeqNo) {
        let before = self.visible();
        debug_invariant!(Q2, before <= seq, "{before} is visible, and then {seq}");
        self.visible.store(seq, Ordering::Release);
    }

    /// Goes on after `last_seq`, into a log that was made for this open.
    pub fn begin(&self, last_seq: SeqNo, wal: Arc<Wal>) {
        let mut state = self.state.lock();
        let given = state.next_ticket;
        invariant!(Q1, given == 0, "the log begins after {given} slots of it were given out");
        state.next_seq = last_seq + 1;
        state.wal_first_seq = last_seq + 1;
        state.wal_offset = wal.written();
        state.wal = wal;
        self.set_visible(last_seq);
        state.check(last_seq);
    }

    /// Takes the short lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Marks a slot's work done, publishes the slots that are next in order, and returns once the
    /// slot itself is visible.
    ///
    /// # Errors
    /// `ReadOnly` if a slot before it failed: this one is never published.
    pub fn publish(&self, slot: &Slot, write_state: &WriteState) -> Result<()> {
        let mut publication = self.publication.lock();
        let (ticket, base) = (slot.ticket, publication.base);
        invariant!(Q2, ticket >= base, "ticket {ticket} is published after {base} began to wait");
        let index = (ticket - base) as usize;
        while publication.done.len() <= index {
            publication.done.push_back(None);
        }
        invariant!(Q2, publication.done[index].is_none(), "ticket {ticket} is done twice");
        publication.done[index] =
            Some(Done { last_seq: slot.last_seq, wal: slot.wal.clone(), end: slot.end });
        if publication.settling > 0 {
            self.published.notify_all();
        }
        if index == 0 {
            self.publish_ready(&mut publication);
            let listeners = std::mem::take(&mut publication.listeners);
            drop(publication);
            wake(listeners);
            return Ok(());
        }
        publication.waiting += 1;
        while publication.base <= slot.ticket {
            if publication.is_cut_off(slot.ticket) {
                let refused = write_state.check();
                self.stop_waiting(&mut publication);
                // Under a slot of its own: the panic turns writing off.
                invariant!(Q3, refused.is_err(), "a slot has failed, and writing is on");
                return refused;
            }
            self.published.wait(&mut publication);
        }
        self.stop_waiting(&mut publication);
        Ok(())
    }

    fn stop_waiting(&self, publication: &mut Publication) {
        debug_invariant!(Q3, publication.waiting > 0, "nobody waits, and somebody stops");
        publication.waiting -= 1;
        if publication.settling > 0 {
            self.published.notify_all();
        }
    }

    /// Notes that a slot's record was not appended, and that the background error is set: it is
    /// never published, nor is any behind it.
    pub fn fail(&self, slot: &Slot) {
        let mut publication = self.publication.lock();
        publication.failed += 1;
        let first = publication.first_failed.map_or(slot.ticket, |first| first.min(slot.ticket));
        publication.first_failed = Some(first);
        drop(publication);
        self.published.notify_all();
    }

    /// Returns once every slot that was given out is filled or failed, and no thread waits for one
    /// any more. The background error is set, so that no more are given out and the waiting threads
    /// give up.
    pub fn settle(&self) {
        // Under the lock under which slots are given out, and refused.
        let next_ticket = self.state.lock().next_ticket;
        let mut publication = self.publication.lock();
        publication.settling += 1;
        while !publication.is_settled(next_ticket) {
            self.published.wait(&mut publication);
        }
        publication.settling -= 1;
        let (base, cut) = (publication.base, publication.first_failed.unwrap_or(next_ticket));
        debug_invariant!(Q4, base >= cut, "ticket {base} waits, and {cut} is the first to fail");
    }

    /// Lets go of all segments: their published records are in tables.
    pub fn forget_logs(&self) -> Vec<Arc<Wal>> {
        let mut state = self.state.lock();
        state.unflushed = Unflushed::default();
        let older = std::mem::take(&mut state.older_wals);
        let mut gone: Vec<Arc<Wal>> = older.into_iter().map(|(wal, _)| wal).collect();
        gone.extend(state.spare.take());
        gone.push(state.wal.clone());
        let is_twice = |at: usize| gone[..at].iter().any(|wal| wal.number == gone[at].number);
        debug_invariant!(R8, !(0..gone.len()).any(is_twice), "two logs have one number");
        gone
    }

    /// Goes on in a new segment after the published records. Slots that were filled behind one that
    /// failed are given up: their callers have been told, and their sequence numbers are free
    /// again. For when all is settled.
    pub fn restart(&self, wal: Arc<Wal>) {
        let mut state = self.state.lock();
        let mut publication = self.publication.lock();
        // Every slot that is given up here was refused for one before it that failed.
        let (base, next) = (publication.base, state.next_ticket);
        let cut = publication.first_failed.unwrap_or(next);
        invariant!(Q4, base >= cut, "ticket {base} is given up, and {cut} is the first to fail");
        let (before, after) = (state.wal.number, wal.number);
        invariant!(R8, before < after, "log {after} comes after {before}");
        publication.base = state.next_ticket;
        publication.done.clear();
        (publication.failed, publication.first_failed) = (0, None);
        drop(publication);
        let (next, visible) = (state.next_seq, self.visible());
        invariant!(Q2, next > visible, "{visible} is visible, and {next} was not given out");
        state.next_seq = visible + 1;
        state.wal_first_seq = state.next_seq;
        state.wal_offset = wal.written();
        state.wal = wal;
        state.marked = 0;
        state.check(visible);
    }

    fn publish_ready(&self, publication: &mut Publication) {
        let mut last_seq = 0;
        let failed = publication.first_failed.unwrap_or(u64::MAX);
        while let Some(Some(_)) = publication.done.front() {
            let ticket = publication.base;
            invariant!(Q3, ticket < failed, "ticket {ticket} is published, and {failed} failed");
            let done = publication.done.pop_front().flatten().expect("checked just above");
            publication.base += 1;
            done.wal.advance_written(done.end);
            let (before, seq) = (last_seq, done.last_seq);
            invariant!(Q1, before <= seq, "ticket {ticket} ends at {seq}, one before at {before}");
            last_seq = seq;
        }
        let before = self.visible();
        invariant!(Q2, last_seq >= before, "{before} is visible, and then {last_seq}");
        self.visible.store(last_seq, Ordering::Release);
        if publication.waiting > 0 {
            self.published.notify_all();
        }
    }

    /// Returns once everything at or below `seq` is published.
    ///
    /// # Errors
    /// `ReadOnly` if a background error was set before.
    pub fn wait_visible(&self, seq: SeqNo, write_state: &WriteState) -> Result<()> {
        if self.visible() >= seq {
            return Ok(());
        }
        self.wait_until(write_state, |_| self.visible() >= seq)
    }

    /// Returns once every slot before ticket `next` is published, also those without operations.
    ///
    /// # Errors
    /// As [`Queue::wait_visible`].
    pub(crate) fn wait_published(&self, next: u64, write_state: &WriteState) -> Result<()> {
        self.wait_until(write_state, |publication| publication.base >= next)
    }

    fn wait_until(
        &self,
        write_state: &WriteState,
        is_done: impl Fn(&Publication) -> bool,
    ) -> Result<()> {
        let mut publication = self.publication.lock();
        publication.waiting += 1;
        let result = loop {
            if is_done(&publication) {
                break Ok(());
            }
            if let Err(error) = write_state.check() {
                break Err(error);
            }
            self.published.wait(&mut publication);
        };
        self.stop_waiting(&mut publication);
        result
    }

    /// Wakes all waiting threads, after a background error was set.
    pub(crate) fn wake_all(&self) {
        let _publication = self.publication.lock();
        self.published.notify_all();
    }

    /// Returns the number of a new reader of the log.
    pub fn new_listener(&self) -> u64 {
        self.next_listener.fetch_add(1, Ordering::Relaxed)
    }

    /// Has a reader of the log woken once, when more is published than now, and by this waker alone.
    /// It looks once more after this call: what was published before wakes nobody.
    pub fn listen(&self, listener: u64, waker: &Waker) {
        let mut publication = self.publication.lock();
        match publication.listeners.iter_mut().find(|(number, _)| *number == listener) {
            Some((_, known)) => known.clone_from(waker),
            None => publication.listeners.push((listener, waker.clone())),
        }
    }

    /// Has a reader of the log not woken any more.
    pub fn unlisten(&self, listener: u64) {
        self.publication.lock().listeners.retain(|(number, _)| *number != listener);
    }

    /// Wakes the readers of the log: more of it is durable, a keyspace was dropped, or the database
    /// was closed.
    pub fn wake_listeners(&self) {
        let listeners = std::mem::take(&mut self.publication.lock().listeners);
        wake(listeners);
    }
}

/// Wakes readers of the log. Their wakers may be anybody's code: a panic there is no writer's.
#[inline]
fn wake(listeners: Vec<(u64, Waker)>) {
    for (_, waker) in listeners {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

impl QueueState {
    /// Gives out the next slot: `count` sequence numbers, log for a batch of `count` operations
    /// that take `op_bytes` (for none, no record), and room for a mark if one is due. The lengths
    /// of headers depend on the durable length of the log: so that is read here once, for all of
    /// the slot.
    pub fn take(&mut self, count: u32, op_bytes: usize, memtables: Memtables) -> Slot {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let first_seq = self.next_seq;
        self.next_seq += u64::from(count);
        let changes = self.manifest.changes();
        let mark = (self.marked != changes).then(|| self.mark(changes).encode());
        let begin = self.wal_offset;
        let durable_up_to = self.wal.durable_up_to();
        invariant!(R5, durable_up_to <= begin, "at {begin}, {durable_up_to} is said to be durable");
        let place = |offset| place_in(&self.wal, offset, durable_up_to);
        let offset = begin + mark.as_ref().map_or(0, |mark| place(begin).framed_bytes(mark.len()));
        let end = match count {
            0 => offset,
            _ => {
                let payload_bytes = batch::payload_bytes(first_seq, count, op_bytes);
                offset + place(offset).framed_bytes(payload_bytes)
            }
        };
        invariant!(Q1, end >= begin, "a slot that begins at {begin} ends at {end}");
        self.wal_offset = end;
        Slot {
            ticket,
            first_seq,
            last_seq: self.next_seq - 1,
            wal: self.wal.clone(),
            mark,
            begin,
            offset,
            end: self.wal_offset,
            durable_up_to,
            memtables,
        }
    }

    /// Whether a number was given out since the last mark with the time.
    pub(crate) fn is_time_due(&self) -> bool {
        self.timed_seq != self.next_seq
    }

    /// Gives out a slot for a mark with the time alone, if it is due.
    pub(crate) fn take_time(&mut self, clock: &dyn Clock) -> Option<Slot> {
        if !self.is_time_due() {
            return None;
        }
        self.timed_seq = self.next_seq;
        self.time_ms = Some(clock.wall_ms());
        self.marked = 0;
        Some(self.take(0, 0, Memtables::Many(Vec::new())))
    }

    /// Goes on in another segment, which has no mark of the manifest yet. Returns the one before,
    /// with its first sequence number.
    pub fn rotate(&mut self, next: Arc<Wal>) -> (Arc<Wal>, SeqNo) {
        let (number, before) = (next.number, self.wal.number);
        invariant!(R8, before < number, "log {number} comes after {before}");
        let old = std::mem::replace(&mut self.wal, next);
        old.seal(self.wal_offset);
        let first_seq = std::mem::replace(&mut self.wal_first_seq, self.next_seq);
        self.wal_offset = self.wal.written();
        self.spare_from = 0;
        self.marked = 0;
        (old, first_seq)
    }

    /// Checks that segments follow each other, and that only numbers that were given out are
    /// published, up to `visible`.
    pub fn check(&self, visible: SeqNo) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (active, next) = (&self.wal, self.next_seq);
        let (number, first) = (active.number, self.wal_first_seq);
        debug_invariant!(Q2, visible < next, "{visible} is visible, and {next} is next");
        debug_invariant!(Q1, first <= next, "log {number} begins with {first}, and {next} is next");
        let (written, end) = (active.written(), self.wal_offset);
        debug_invariant!(Q1, written <= end, "log {number} is written to {written} of {end}");
        debug_invariant!(Q1, !active.is_sealed(), "log {number} is sealed, and in use");
        let spare = self.spare.as_ref().map_or(u64::MAX, |wal| wal.number);
        debug_invariant!(R8, number < spare, "log {spare} is to come after {number}");
        let older = self.older_wals.last().map(|(wal, first)| (wal.number, *first));
        let is_older = older.is_none_or(|older| older.0 < number && older.1 <= first);
        debug_invariant!(R4, is_older, "{older:?} comes before log {number} from {first} on");
        let needed = self.unflushed.oldest_log(&[]).unwrap_or(number);
        let mut used = self.older_wals.iter().map(|(wal, _)| wal.number).chain([number]);
        let is_used = used.any(|number| number == needed);
        debug_invariant!(R7, is_used, "log {needed} holds what is in no table, and is gone");
    }

    /// Returns the mark of other files that the active segment must record from here on.
    fn mark(&mut self, changes: u64) -> Mark {
        self.marked = changes;
        let mut logs = self.lengths();
        logs.retain(|log| log.number != self.wal.number);
        let newer = logs.iter().map(|log| log.number).find(|&number| number > self.wal.number);
        debug_invariant!(R4, newer.is_none(), "log {newer:?} is older than the active one");
        Mark { manifest: self.manifest.length(), logs, time_ms: self.time_ms.take() }
    }

    /// The durable length of each segment that has one, oldest first.
    pub(crate) fn lengths(&self) -> Vec<Length> {
        let ascend = self.older_wals.windows(2).all(|pair| pair[0].0.number < pair[1].0.number);
        debug_invariant!(R4, ascend, "older logs are not in order");
        let older = self.older_wals.iter().map(|(wal, _)| wal);
        older
            .chain([&self.wal])
            .map(|wal| Length { number: wal.number, bytes: wal.durable_up_to() })
            .filter(|length| length.bytes > 0)
            .collect()
    }

    /// The ticket of the slot that is given out next.
    pub(crate) fn next_ticket(&self) -> u64 {
        self.next_ticket
    }

    /// The last sequence number given out.
    #[inline]
    pub fn last_seq(&self) -> SeqNo {
        self.next_seq - 1
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::path::Path;
    use windrow_env::testing::env;

    fn wal(number: u64) -> Arc<Wal> {
        let (env, _handles) = env(number);
        let file = env.fs.create_log(Path::new("/1.wal"), 4096).unwrap();
        Arc::new(Wal::new(number, number, file, 4096))
    }

    fn take(queue: &Queue) -> Slot {
        queue.lock().take(1, 100, Memtables::Many(Vec::new()))
    }

    #[test]
    #[should_panic(expected = "(Q4): ticket 1 is given up, and 2 is the first to fail")]
    fn what_nobody_failed_before_is_not_given_up() {
        let queue = Queue::new(0, wal(1), Arc::default());
        let write_state = WriteState::new(false);
        let [first, _unfilled, failed] = [take(&queue), take(&queue), take(&queue)];
        queue.publish(&first, &write_state).unwrap();
        queue.fail(&failed);
        queue.restart(wal(2));
    }

    #[test]
    #[should_panic(expected = "(R8): log 1 comes after 1")]
    fn a_log_comes_after_those_before_it() {
        let queue = Queue::new(0, wal(1), Arc::default());
        queue.lock().rotate(wal(1));
    }

    /// A log whose last slot is a mark counts as filled when the mark is published.
    #[test]
    fn a_mark_that_is_not_published_is_waited_for() {
        let queue = Queue::new(0, wal(1), Arc::default());
        let write_state = WriteState::new(false);
        let mark = queue.lock().take(0, 0, Memtables::Many(Vec::new()));
        let next = queue.lock().next_ticket();
        write_state.set_background_error(&windrow_base::Error::invalid("a fault (simulated)"));
        assert!(queue.wait_visible(mark.last_seq, &write_state).is_ok(), "it has no number");
        assert!(queue.wait_published(next, &write_state).is_err(), "it would wait");
        queue.publish(&mark, &write_state).unwrap();
        queue.wait_published(next, &write_state).unwrap();
    }

    #[test]
    fn a_failed_slot_ends_what_is_given_up() {
        let queue = Queue::new(0, wal(1), Arc::default());
        let write_state = WriteState::new(false);
        let [first, failed, cut_off] = [take(&queue), take(&queue), take(&queue)];
        queue.publish(&first, &write_state).unwrap();
        write_state.set_background_error(&windrow_base::Error::invalid("a fault (simulated)"));
        queue.fail(&failed);
        assert!(queue.publish(&cut_off, &write_state).is_err());
        queue.restart(wal(2));
        assert_eq!((queue.visible(), queue.lock().next_seq), (1, 2));
    }
}
