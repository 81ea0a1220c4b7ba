//! The memtable: entries that are written and in no table yet.
//!
//! Point entries are in an arena skiplist into which many threads insert at once; range tombstones
//! are kept apart, since they are few and every read must ask them.
//!
//! Owns: its memory. Never does: read or write a file, or decide when it is frozen.

use crate::lock_ranks;
use crate::tombstones::{MemTombstones, TombstoneChunk};
use std::cmp::Ordering as KeyOrdering;
use std::sync::{Arc, OnceLock};
use windrow_base::key::{self, Kind, SeqNo};
use windrow_base::{FileNumber, KeyOrder};
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use windrow_format::block::Charge;
use windrow_format::tombstone::{RangeTombstone, Tombstones};
use windrow_skiplist::{ChunkPool, KeyCompare, ListCursor, SkipList};

/// A keyspace's order as the skiplist wants it.
#[derive(Clone)]
pub struct UserOrder(pub KeyOrder);

impl KeyCompare for UserOrder {
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> KeyOrdering {
        self.0.compare(a, b)
    }

    #[inline]
    fn bytewise(&self) -> bool {
        self.0.is_bytewise()
    }
}

/// A cursor over a memtable's point entries.
pub type MemCursor = ListCursor<UserOrder>;

/// Memory an entry takes besides its key and value: header, trailer and tower, on average.
const ENTRY_OVERHEAD_BYTES: usize = if cfg!(debug_assertions) { 52 } else { 44 };

/// Memory that a flush takes for a range tombstone besides its keys: lists of all, by key and by
/// end, and its fragment.
const RANGE_FLUSH_BYTES: usize = 112;

/// Memory that an operation takes whose key and value (or ends of a range) have `user_bytes` bytes.
/// Reads keep a second copy of the latest range tombstones; their flush has a set of all, and the
/// same set as bytes.
#[inline]
pub fn memory_bytes_of(kind: Kind, user_bytes: usize) -> usize {
    match kind {
        Kind::RangeDelete => 4 * user_bytes + ENTRY_OVERHEAD_BYTES + RANGE_FLUSH_BYTES,
        _ => user_bytes + ENTRY_OVERHEAD_BYTES,
    }
}

/// Memory that the first write to a memtable takes besides its entry.
pub const LIST_BYTES: usize = SkipList::<UserOrder>::EMPTY_BYTES;

/// No record of this memtable is in any log yet.
const NO_WAL: FileNumber = FileNumber::MAX;

/// One memtable, active or frozen.
pub struct Memtable {
    /// Made by the first insert: a memtable without writes takes no arena.
    list: OnceLock<Arc<SkipList<UserOrder>>>,
    chunks: Arc<ChunkPool>,
    order: KeyOrder,
    /// The number of its point entries that are tombstones.
    point_tombstones: AtomicU64,
    /// Made by the first range tombstone, as the list is.
    tombstones: OnceLock<Box<MemTombstones>>,
    /// Bytes promised to writers, counted under the commit queue's lock.
    reserved_bytes: AtomicUsize,
    /// The oldest log that holds a record of this memtable.
    first_wal: AtomicU64,
    /// Set when frozen: every sequence number in here is at or below it.
    last_seq: AtomicU64,
    /// Entries above it were never published, and must not be seen: their writes have failed.
    seq_max: AtomicU64,
    /// Charges for its memory once it is flushed, for as long as a view holds it.
    charges: Mutex<Vec<Charge>>,
    /// Whether only its readers hold it.
    is_retired: AtomicBool,
}

impl Memtable {
    /// Makes an empty memtable that shares `chunks` with the others of its database.
    pub fn new(order: KeyOrder, chunks: Arc<ChunkPool>) -> Memtable {
        Memtable {
            list: OnceLock::new(),
            point_tombstones: AtomicU64::new(0),
            chunks,
            order,
            tombstones: OnceLock::new(),
            reserved_bytes: AtomicUsize::new(0),
            first_wal: AtomicU64::new(NO_WAL),
            last_seq: AtomicU64::new(0),
            seq_max: AtomicU64::new(SeqNo::MAX),
            is_retired: AtomicBool::new(false),
            charges: Mutex::new(lock_ranks::MEM_CHARGES, Vec::new()),
        }
    }

    /// Its point entries; `None` if none was inserted yet. An entry that a reader may see was
    /// inserted before its sequence number was published: load that number first, and `None` means
    /// that there is no entry to see.
    #[inline]
    pub fn list(&self) -> Option<&Arc<SkipList<UserOrder>>> {
        self.list.get()
    }

    /// A cursor over its point entries, if there are any.
    #[inline]
    pub fn cursor(&self) -> Option<MemCursor> {
        self.list().map(|list| MemCursor::new(Arc::clone(list)))
    }

    /// The order of its keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// The number of its point entries.
    #[inline]
    pub fn entries(&self) -> u64 {
        self.list().map_or(0, |list| list.len() as u64)
    }

    /// The number of its point entries that are deletes and single deletes.
    #[inline]
    pub fn point_tombstones(&self) -> u64 {
        self.point_tombstones.load(Ordering::Relaxed)
    }

    /// Bytes that it took from the allocator, range tombstones included.
    #[inline]
    pub fn allocated_bytes(&self) -> usize {
        let points = self.list().map_or(0, |list| list.allocated_bytes());
        points + self.tombstones.get().map_or(0, |tombstones| tombstones.memory_bytes())
    }

    /// Counts bytes that a writer is about to insert, whose record is in
    /// log `wal`. Called under the commit queue's lock.
    #[inline]
    pub fn reserve(&self, bytes: usize, wal: FileNumber) {
        self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.first_wal.fetch_min(wal, Ordering::Relaxed);
    }

    /// Bytes promised to writers so far.
    #[inline]
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// The oldest log that holds a record of it, if any does.
    #[inline]
    pub fn first_wal(&self) -> Option<FileNumber> {
        let wal = self.first_wal.load(Ordering::Relaxed);
        (wal != NO_WAL).then_some(wal)
    }

    /// Notes the last sequence number that it may hold, when it is frozen.
    pub fn freeze(&self, last_seq: SeqNo) {
        self.last_seq.store(last_seq, Ordering::Release);
    }

    /// The last sequence number of a frozen memtable.
    #[inline]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq.load(Ordering::Acquire)
    }

    /// Hides entries above `seq` from here on, whatever is published later.
    pub fn cut(&self, seq: SeqNo) {
        self.seq_max.store(seq, Ordering::Release);
    }

    /// The last sequence number that may be read in it.
    #[inline]
    pub fn seq_max(&self) -> SeqNo {
        self.seq_max.load(Ordering::Relaxed)
    }

    /// Counts its memory by these charges from here on, until the last view that holds it is gone.
    pub fn count_as(&self, charges: Vec<Charge>) {
        let before = std::mem::replace(&mut *self.charges.lock(), charges);
        drop(before);
    }

    /// Leaves it to its readers. Returns whether that was not so before.
    pub fn retire(&self) -> bool {
        !self.is_retired.swap(true, Ordering::AcqRel)
    }

    /// Inserts one operation.
    #[inline]
    pub fn insert(&self, kind: Kind, seq: SeqNo, key: &[u8], value: &[u8]) {
        if kind == Kind::RangeDelete {
            let tombstone = RangeTombstone { start: key.to_vec(), end: value.to_vec(), seq };
            self.tombstones.get_or_init(Box::default).insert(tombstone, &self.order);
        } else {
            if matches!(kind, Kind::Delete | Kind::SingleDelete) {
                self.point_tombstones.fetch_add(1, Ordering::Relaxed);
            }
            self.list_to_write().insert(key, key::trailer(seq, kind), value);
        }
    }

    /// Inserts point entries: key, trailer and value of each.
    pub fn insert_many(&self, points: &[(&[u8], u64, &[u8])]) {
        let is_tombstone = |trailer: u64| {
            let kind = key::trailer_kind(trailer);
            kind == Kind::Delete as u8 || kind == Kind::SingleDelete as u8
        };
        let tombstones = points.iter().filter(|(_, trailer, _)| is_tombstone(*trailer)).count();
        if tombstones > 0 {
            self.point_tombstones.fetch_add(tombstones as u64, Ordering::Relaxed);
        }
        self.list_to_write().insert_many(points);
    }

    fn list_to_write(&self) -> &SkipList<UserOrder> {
        let new = || {
            let order = UserOrder(self.order.clone());
            Arc::new(SkipList::with_pool(order, self.chunks.clone()))
        };
        self.list.get_or_init(new)
    }

    /// Whether it holds a range tombstone.
    #[inline]
    pub(crate) fn has_tombstones(&self) -> bool {
        self.tombstones.get().is_some_and(|tombstones| tombstones.any())
    }

    /// Returns the newest range tombstone with a sequence number of at most `max_seq` that covers
    /// the user key.
    pub(crate) fn newest_tombstone(&self, key: &[u8], max_seq: SeqNo) -> Option<SeqNo> {
        self.tombstones.get()?.newest_covering(&self.order, key, max_seq)
    }

    /// The range tombstones in chunks, oldest first.
    pub fn tombstones(&self) -> Arc<[Arc<TombstoneChunk>]> {
        match self.tombstones.get() {
            Some(tombstones) => tombstones.chunks(&self.order),
            None => Arc::default(),
        }
    }

    /// The range tombstones that readers at these snapshots, ascending, can tell apart. For a
    /// memtable that takes no more.
    pub fn tombstones_under(&self, snapshots: &[SeqNo]) -> Tombstones {
        let chunks = self.tombstones();
        let seq_max = self.seq_max();
        let all = chunks.iter().flat_map(|chunk| chunk.tombstones());
        let mut list = Vec::with_capacity(chunks.iter().map(|chunk| chunk.count()).sum());
        list.extend(all.filter(|(_, _, seq)| *seq <= seq_max));
        Tombstones::newest_of_stripes(list, &self.order, snapshots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_are_rebuilt_after_each_burst() {
        let memtable = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
        assert!(!memtable.has_tombstones());
        assert_eq!(memtable.newest_tombstone(b"c", 9), None);
        memtable.insert(Kind::RangeDelete, 5, b"b", b"d");
        assert_eq!(memtable.newest_tombstone(b"c", 9), Some(5));
        memtable.insert(Kind::RangeDelete, 7, b"c", b"e");
        assert_eq!(memtable.newest_tombstone(b"c", 9), Some(7));
        assert_eq!(memtable.newest_tombstone(b"c", 6), Some(5));
        assert_eq!(memtable.newest_tombstone(b"e", 9), None);
        assert!(memtable.has_tombstones());
    }

    #[test]
    fn range_tombstones_are_counted() {
        let memtable = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
        let empty = memtable.allocated_bytes();
        let end = |seq: SeqNo| seq.to_be_bytes();
        for seq in 1..=20_000 {
            memtable.insert(Kind::RangeDelete, seq, b"", &end(seq));
            if seq % 100 == 0 {
                assert_eq!(memtable.newest_tombstone(&end(seq - 1), seq), Some(seq));
                assert_eq!(memtable.newest_tombstone(&end(seq), seq), None);
            }
        }
        // A read at that number: only tombstones from 51 to 19,000 reach over key 50.
        assert_eq!(memtable.newest_tombstone(&end(50), 19_000), Some(19_000));
        assert_eq!(memtable.newest_tombstone(&end(50), 50), None);
        let bytes = memtable.allocated_bytes() - empty;
        assert!(20_000 * 24 < bytes && bytes < 20_000 * 80, "{bytes} bytes for 20,000 tombstones");
        assert_eq!(memtable.tombstones_under(&[100]).pairs(), 2 + 1);
    }

    #[test]
    fn the_oldest_log_stays_named() {
        let memtable = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
        assert_eq!(memtable.first_wal(), None);
        memtable.reserve(10, 7);
        memtable.reserve(10, 9);
        assert_eq!(memtable.first_wal(), Some(7));
        assert_eq!(memtable.reserved_bytes(), 20);
    }
}
