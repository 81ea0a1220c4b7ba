//! Decoded blocks by file uid and offset, bounded by their memory.
//!
//! Memory that readers hold counts against the same room: blocks that the cache let go of and an
//! iterator or a value still pins, bytes read ahead, flushed memtables in old views, the iterators
//! themselves. All of that and the cached blocks are in one account; once it passes the room, the
//! cache gives way, down to a floor. A block is charged when it is decoded, so that a hit costs
//! nothing for it. A hit takes the shared lock of one shard and clones an `Arc`; nothing moves in a
//! list.
//!
//! Owns: the cached blocks, and the account. Never does: read a file, or take memory from a reader.

use crate::lock_ranks;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use windrow_base::FileUid;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::sync::{Mutex, MutexGuard};
use windrow_format::block::{Account, Block, Charge};

/// Memory that a cached block takes in addition to [`Block::memory_bytes`]: the slot in
/// the shard's table and list, and the `Arc`'s counters.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

/// A shard refuses a block larger than itself, so shards are not made smaller than this.
const SHARD_BYTES_MIN: u64 = 4 << 20;

/// More shards than this no longer take contention away.
const SHARDS_MAX: u64 = 64;

/// Bytes of a typical block, to size the shards' tables at first.
const TYPICAL_BLOCK_BYTES: u64 = 4 << 10;

/// The part of the room that the cache keeps whatever readers hold: without the blocks that all
/// reads ask for, every read would go to the device.
const FLOOR_PART: u64 = 8;

/// The part of the room by which the account may pass it before the cache gives
/// way, so that it does not do so for every block.
const SLACK_PART: u64 = 64;

/// The part of the room that bytes read ahead may take.
const AHEAD_PART: u64 = 4;

/// Less than this is not worth a read ahead.
const AHEAD_BYTES_MIN: u64 = 16 << 10;

/// The name of a cached block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockKey {
    pub uid: FileUid,
    pub offset: u64,
}

impl Hash for BlockKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Uids are random, offsets are not: spread the offset over the word first.
        state.write_u64(self.uid ^ self.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// Hashes the one word of a [`BlockKey`] by a folded multiplication.
#[derive(Clone, Default)]
struct WordHash;

struct WordHasher(u64);

impl BuildHasher for WordHash {
    type Hasher = WordHasher;

    #[inline]
    fn build_hasher(&self) -> WordHasher {
        WordHasher(0)
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(word ^ self.0) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
struct BlockWeight;

impl Weighter<BlockKey, Arc<Block>> for BlockWeight {
    #[inline]
    fn weight(&self, _key: &BlockKey, block: &Arc<Block>) -> u64 {
        weight(block)
    }
}

#[inline]
fn weight(block: &Block) -> u64 {
    block.memory_bytes() as u64 + ENTRY_OVERHEAD_BYTES
}

/// The block cache. One per database, shared by its keyspaces.
pub struct BlockCache {
    blocks: Cache<BlockKey, Arc<Block>, BlockWeight, WordHash>,
    /// 0 turns caching off: the cache below would round it up. Read anywhere, changed under
    /// `resizing`, as `room_bytes` is.
    capacity_bytes: AtomicU64,
    /// Held from the decision on a size until the cache has it, so that the recorded size is the
    /// real one. No other lock of the engine is taken under it.
    resizing: Mutex<()>,
    /// The most bytes of the account.
    room_bytes: AtomicU64,
    /// The size to which the room may grow, when reads ask for it and nobody else does.
    offered_bytes: AtomicU64,
    /// The cache never grows beyond this.
    most_bytes: u64,
    /// Blocks that are alive, cached or not, and all other memory that readers hold except bytes
    /// read ahead.
    alive: Account,
    /// The part of it that flushed memtables take.
    retired: Account,
    /// Bytes read ahead that readers hold.
    ahead: Account,
    /// Bytes of blocks that came in since the last decision on growth.
    came_bytes: AtomicU64,
    may_grow: OnceLock<MayGrow>,
}

/// Asked before the cache grows, whenever as many bytes as it holds came in again. Returns the room
/// that is offered then, or `None` if the cache may not grow. Under the lock of those who resize
/// it.
type MayGrow = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;

impl BlockCache {
    /// A cache of at most `bytes` (0: nothing is ever cached).
    #[cfg(any(test, feature = "testing"))]
    pub fn new(bytes: u64) -> BlockCache {
        BlockCache::within(bytes, bytes, bytes)
    }

    /// A cache of at most `most_bytes`, which takes `room_bytes` together with the memory of
    /// readers, and later up to `offered_bytes`.
    pub fn within(room_bytes: u64, offered_bytes: u64, most_bytes: u64) -> BlockCache {
        let bytes = offered_bytes.min(most_bytes);
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // Rounded down to a power of two, since the cache below rounds up.
        let shards = 1usize << shards.ilog2();
        let options = OptionsBuilder::new()
            .shards(shards)
            .estimated_items_capacity((bytes / TYPICAL_BLOCK_BYTES).max(64) as usize)
            .weight_capacity(room_bytes.min(most_bytes))
            .build()
            .expect("capacities are set");
        BlockCache {
            blocks: Cache::with_options(
                options,
                BlockWeight,
                WordHash,
                DefaultLifecycle::default(),
            ),
            capacity_bytes: AtomicU64::new(room_bytes.min(most_bytes)),
            resizing: Mutex::new(lock_ranks::BLOCKS_RESIZING, ()),
            room_bytes: AtomicU64::new(room_bytes),
            offered_bytes: AtomicU64::new(offered_bytes),
            most_bytes,
            alive: Account::default(),
            retired: Account::default(),
            ahead: Account::default(),
            came_bytes: AtomicU64::new(0),
            may_grow: OnceLock::new(),
        }
    }

    /// Has `may_grow` asked before the cache grows; without it the cache always may. Called once.
    pub(crate) fn grow_when(&self, may_grow: impl Fn(u64) -> Option<u64> + Send + Sync + 'static) {
        let said = self.may_grow.set(Box::new(may_grow));
        debug_assert!(said.is_ok(), "said once");
    }

    /// Returns the block at `offset` of the file `uid`, if it is cached.
    #[inline]
    pub fn get(&self, uid: FileUid, offset: u64) -> Option<Arc<Block>> {
        self.blocks.get(&BlockKey { uid, offset })
    }

    /// Whether a block is cached. To ask is no use of it.
    #[inline]
    pub(crate) fn holds(&self, uid: FileUid, offset: u64) -> bool {
        self.blocks.contains_key(&BlockKey { uid, offset })
    }

    /// Returns a block for a merge, if it is cached. That is no use of it: a merge reads each block
    /// once.
    #[inline]
    pub(crate) fn peek(&self, key: BlockKey) -> Option<Arc<Block>> {
        self.blocks.peek(&key)
    }

    /// Takes a block that was just decoded into the account.
    pub fn admit(&self, mut block: Block) -> Arc<Block> {
        block.carry(self.hold(weight(&block)));
        Arc::new(block)
    }

    /// Counts `bytes` that a reader holds, until the charge is dropped.
    #[inline]
    pub fn hold(&self, bytes: u64) -> Charge {
        let charge = self.alive.charge(bytes);
        self.check_room();
        charge
    }

    /// Counts a flushed memtable of `bytes` that readers hold, until the charges are dropped. The
    /// room that is offered includes it, since the memtables' share no longer does. So the room in
    /// force includes it as well for that time, and the cache does not give way to memory that is
    /// no more than before.
    pub fn take_over(&self, bytes: u64) -> Vec<Charge> {
        let retired = self.retired.charge(bytes);
        vec![self.hold(bytes), retired]
    }

    /// Flushed memtables that readers hold.
    #[inline]
    pub(crate) fn retired(&self) -> &Account {
        &self.retired
    }

    /// The room in force.
    fn room_bytes(&self) -> u64 {
        let room = self.room_bytes.load(Ordering::Relaxed);
        match self.retired.bytes() {
            0 => room,
            retired => {
                let offered = self.offered_bytes.load(Ordering::Relaxed);
                room.max(offered.min(room.saturating_add(retired)))
            }
        }
    }

    /// Counts `bytes` that were read ahead, until the charge is dropped.
    pub(crate) fn hold_ahead(&self, bytes: u64) -> Charge {
        let charge = self.ahead.charge(bytes);
        self.check_room();
        charge
    }

    /// All that counts against the room, in bytes.
    #[inline]
    pub fn held_bytes(&self) -> u64 {
        self.alive.bytes() + self.ahead.bytes()
    }

    #[inline]
    fn check_room(&self) {
        if self.is_over() {
            self.give_way();
        }
    }

    #[inline]
    fn is_over(&self) -> bool {
        let room = self.room_bytes();
        self.held_bytes() > room + room / SLACK_PART
    }

    /// Bytes that one read may take ahead: the rest of the part for it, or a little if that is
    /// less. `None` if more is held than that part: iterators that are not moved keep the bytes
    /// that they read.
    pub(crate) fn ahead_max_bytes(&self) -> Option<u64> {
        let part = self.room_bytes() / AHEAD_PART;
        let left = part.checked_sub(self.ahead.bytes())?;
        Some(left.max(AHEAD_BYTES_MIN))
    }

    /// Whether readers held so much that the cache is down to half its room. It stays so until
    /// reads fill the cache again while no memtable grows: if it ended when readers let go, the
    /// next ones would fill memory again.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let room = self.room_bytes().min(self.most_bytes);
        self.capacity_bytes.load(Ordering::Relaxed) < room / 2
    }

    /// Memory that readers hold in addition to the cache, in bytes.
    pub fn readers_bytes(&self) -> u64 {
        self.held_bytes().saturating_sub(self.blocks.weight())
    }

    /// The size that leaves readers' memory its part of the room.
    fn allowed_bytes(&self) -> u64 {
        let room = self.room_bytes();
        room.saturating_sub(self.readers_bytes()).max(self.floor_bytes()).min(self.most_bytes)
    }

    fn floor_bytes(&self) -> u64 {
        (self.room_bytes() / FLOOR_PART).min(self.most_bytes)
    }

    /// Shrinks until all fits, or to the floor. Not always at once: the eviction of a block that a
    /// reader holds frees nothing. Each round takes off the excess, at least a slack.
    #[cold]
    fn give_way(&self) {
        let mut rounds = SLACK_PART;
        while rounds > 0
            && self.is_over()
            && self.capacity_bytes.load(Ordering::Relaxed) > self.floor_bytes()
        {
            self.shrink(&self.resizing.lock());
            rounds -= 1;
        }
    }

    /// Caches a block, if it is not too large for one shard.
    pub fn insert(&self, uid: FileUid, offset: u64, block: Arc<Block>) {
        let capacity = self.capacity_bytes.load(Ordering::Relaxed);
        if self.may_want_more(capacity) {
            self.consider_growth(capacity, block.memory_bytes() as u64);
        }
        self.put(BlockKey { uid, offset }, block);
    }

    /// Caches blocks in the place of `old` ones, whose tables left the tree. Those would stay until
    /// others need their room, which new blocks then get one by one. No reader asked for the new
    /// ones, so the cache does not grow for them.
    pub fn replace(&self, old: &[BlockKey], new: impl Iterator<Item = (BlockKey, Block)>) {
        old.iter().for_each(|key| drop(self.blocks.remove(key)));
        new.for_each(|(key, block)| self.put(key, self.admit(block)));
    }

    fn put(&self, key: BlockKey, block: Arc<Block>) {
        if self.capacity_bytes.load(Ordering::Relaxed) > 0 {
            self.blocks.insert(key, block);
        }
    }

    fn may_want_more(&self, capacity: u64) -> bool {
        let room = self.room_bytes.load(Ordering::Relaxed);
        let more_is_there = room < self.most_bytes && self.may_grow.get().is_some();
        room.min(self.most_bytes) > capacity
            || self.offered_bytes.load(Ordering::Relaxed) > room
            || more_is_there
    }

    /// Takes the room that is offered if as many bytes came in as it holds, and it may.
    fn consider_growth(&self, capacity: u64, bytes: u64) {
        let came = self.came_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if came < capacity {
            return;
        }
        let came = self.came_bytes.swap(0, Ordering::Relaxed);
        if came < capacity {
            return;
        }
        let resizing = self.resizing.lock();
        if let Some(may_grow) = self.may_grow.get() {
            let Some(offered) = may_grow(came) else { return };
            self.offered_bytes.store(offered, Ordering::Relaxed);
        }
        self.room_bytes.fetch_max(self.offered_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        let allowed = self.allowed_bytes();
        if allowed > self.capacity_bytes.load(Ordering::Relaxed) {
            self.set_capacity(&resizing, allowed);
        }
    }

    /// Changes the room that is offered. Shrinking evicts at once; growing, also of the room for
    /// readers, waits until reads fill the cache again. `offered` is evaluated under the lock, so
    /// that a thread which waited for it offers the room of that moment.
    pub fn resize(&self, offered: impl FnOnce() -> u64) {
        let resizing = self.resizing.lock();
        let offered_bytes = offered();
        self.offered_bytes.store(offered_bytes, Ordering::Relaxed);
        self.room_bytes.fetch_min(offered_bytes, Ordering::Relaxed);
        self.shrink(&resizing);
    }

    fn shrink(&self, resizing: &MutexGuard<'_, ()>) {
        let allowed = self.allowed_bytes();
        if allowed < self.capacity_bytes.load(Ordering::Relaxed) {
            self.set_capacity(resizing, allowed);
        }
    }

    fn set_capacity(&self, _resizing: &MutexGuard<'_, ()>, bytes: u64) {
        if self.capacity_bytes.swap(bytes, Ordering::Relaxed) == bytes {
            return;
        }
        self.blocks.set_capacity(bytes);
        if bytes == 0 {
            self.blocks.clear();
        }
    }

    /// The recorded size, and the size of the cache below.
    #[cfg(all(loom, any(test, feature = "testing")))]
    pub fn sizes(&self) -> (u64, u64) {
        (self.capacity_bytes.load(Ordering::Relaxed), self.blocks.capacity())
    }

    /// The room that is offered.
    #[cfg(all(loom, any(test, feature = "testing")))]
    pub fn offered_bytes(&self) -> u64 {
        self.offered_bytes.load(Ordering::Relaxed)
    }

    /// Memory of the cached blocks, overhead included.
    pub fn bytes_used(&self) -> u64 {
        self.blocks.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::read::testing::{HistoryOp, TableWorld};
    use windrow_base::{KeyOrder, Kind};
    use windrow_format::table::{BlockKind, read_block};

    /// The most that may be offered.
    const MOST: u64 = 1 << 20;

    fn some_block(world: &mut TableWorld, value_bytes: usize) -> Arc<Block> {
        let put = HistoryOp::new(1, Kind::Put, "key", &"v".repeat(value_bytes));
        let file = world.table(&[put]);
        let handle = world.owner.tables.handle(&file, &KeyOrder::Bytewise);
        let open = world.owner.tables.open(&handle).unwrap();
        let mut index = open.table.index_iter();
        index.seek_first();
        Arc::new(read_block(&*open.file, open.uid, index.handle(), BlockKind::Data).unwrap())
    }

    #[test]
    fn memory_stays_below_the_capacity_and_is_charged_in_full() {
        let mut world = TableWorld::new(1, KeyOrder::Bytewise);
        let block = some_block(&mut world, 4000);
        let weight = block.memory_bytes() as u64 + ENTRY_OVERHEAD_BYTES;
        let cache = BlockCache::new(1 << 20);
        for offset in 0..1000 {
            cache.insert(7, offset, Arc::clone(&block));
            assert!(cache.bytes_used() <= 1 << 20);
        }
        assert_eq!(cache.bytes_used(), cache.blocks.len() as u64 * weight);
        assert!(
            cache.blocks.len() as u64 >= (1 << 20) / weight * 9 / 10,
            "{} blocks",
            cache.blocks.len()
        );
        cache.resize(|| 1 << 18);
        assert!(cache.bytes_used() <= 1 << 18 && !cache.blocks.is_empty());
        cache.resize(|| 0);
        cache.insert(7, 5, Arc::clone(&block));
        assert!(cache.bytes_used() == 0 && cache.get(7, 5).is_none());
        cache.resize(|| 1 << 18);
        cache.insert(7, 5, block);
        assert!(
            cache.get(7, 5).is_some() && cache.get(8, 5).is_none() && cache.get(7, 6).is_none()
        );
    }

    /// A block that merges alone look at goes before one that readers ask for.
    #[test]
    fn a_merges_look_is_no_use() {
        let mut world = TableWorld::new(8, KeyOrder::Bytewise);
        let block = some_block(&mut world, 4000);
        let cache = BlockCache::new(1 << 20);
        let key = |offset| BlockKey { uid: 7, offset };
        (0..200).for_each(|offset| cache.insert(7, offset, Arc::clone(&block)));
        for offset in 200..2_000 {
            assert!(cache.get(7, 1).is_some(), "{offset}");
            cache.peek(key(2));
            cache.insert(7, offset, Arc::clone(&block));
            assert!(cache.get(7, offset).is_some());
        }
        assert!(cache.peek(key(2)).is_none());
        let used = cache.bytes_used();
        cache.replace(&[key(1), key(1), key(2)], std::iter::empty());
        assert!(cache.get(7, 1).is_none());
        assert_eq!(cache.bytes_used(), used - weight(&block));
    }

    /// Merges bring any number of blocks; only readers make the cache grow.
    #[test]
    fn blocks_of_merges_do_not_let_it_grow() {
        let mut world = TableWorld::new(9, KeyOrder::Bytewise);
        let cache = BlockCache::within(1 << 18, 1 << 20, u64::MAX);
        let key = |offset| BlockKey { uid: 7, offset };
        for offset in 1..1_000 {
            let block = Arc::into_inner(some_block(&mut world, 4000)).unwrap();
            cache.replace(&[key(offset - 1)], std::iter::once((key(offset), block)));
            assert!(cache.get(7, offset).is_some() && cache.get(7, offset - 1).is_none());
        }
        for offset in 1_000..2_000 {
            let block = Arc::into_inner(some_block(&mut world, 4000)).unwrap();
            cache.replace(&[], std::iter::once((key(offset), block)));
            assert!(cache.bytes_used() <= 1 << 18 && cache.held_bytes() == cache.bytes_used());
        }
        for offset in 2_000..3_000 {
            let block = Arc::into_inner(some_block(&mut world, 4000)).unwrap();
            cache.insert(7, offset, cache.admit(block));
        }
        assert!(cache.bytes_used() > 1 << 18);
    }

    /// A small cache takes a block nearly as large as itself: it has one shard.
    #[test]
    fn a_large_block_fits_a_small_cache() {
        let mut world = TableWorld::new(2, KeyOrder::Bytewise);
        let block = some_block(&mut world, 700 << 10);
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 0, block);
        assert!(cache.get(1, 0).is_some());
    }

    /// With any mix of blocks and other memory that readers hold, it and the cache stay within the
    /// room, as long as that leaves the cache its floor.
    #[test]
    fn the_cache_gives_way_to_what_readers_hold() {
        const ROOM: u64 = 1 << 20;
        let mut world = TableWorld::new(4, KeyOrder::Bytewise);
        let cache = BlockCache::new(ROOM);
        let mut read = |offset: u64| {
            let block = Arc::into_inner(some_block(&mut world, 4000)).unwrap();
            let block = cache.admit(block);
            cache.insert(7, offset, Arc::clone(&block));
            block
        };
        (0..500).for_each(|offset| drop(read(offset)));
        assert_eq!(cache.held_bytes(), cache.bytes_used(), "nobody holds anything");
        assert!(cache.bytes_used() > ROOM * 9 / 10);
        let mut pinned = Vec::new();
        for offset in 500..650 {
            pinned.push(read(offset));
            assert!(cache.held_bytes() <= ROOM + ROOM / SLACK_PART);
        }
        let held = cache.hold(ROOM / 4);
        assert!(cache.held_bytes() <= ROOM + ROOM / SLACK_PART);
        assert!(cache.bytes_used() < ROOM / 2);
        // The floor is left, and no more.
        assert!(cache.is_crowded());
        let much = cache.hold(ROOM);
        (1_000..1_500).for_each(|offset| drop(read(offset)));
        let floor = ROOM / FLOOR_PART;
        assert!(floor / 2 < cache.bytes_used() && cache.bytes_used() <= floor);
        drop((pinned, held, much));
        (2_000..4_000).for_each(|offset| drop(read(offset)));
        assert!(cache.bytes_used() > ROOM * 9 / 10, "it has its room again");
        assert!(!cache.is_crowded());
        assert_eq!(cache.held_bytes(), cache.bytes_used());
    }

    #[test]
    fn what_is_read_ahead_has_a_limit_of_its_own() {
        let cache = BlockCache::new(1 << 20);
        let ahead = cache.hold_ahead(1 << 18);
        assert_eq!(cache.ahead_max_bytes(), Some(AHEAD_BYTES_MIN));
        let more = cache.hold_ahead(1);
        assert_eq!(cache.ahead_max_bytes(), None);
        drop(ahead);
        assert_eq!(cache.ahead_max_bytes(), Some((1 << 18) - 1));
        assert_eq!(cache.held_bytes(), 1);
        drop(more);
        assert_eq!(cache.held_bytes(), 0);
    }

    #[test]
    fn an_asked_size_is_a_ceiling_and_not_the_room() {
        let mut world = TableWorld::new(5, KeyOrder::Bytewise);
        let cache = BlockCache::within(4 << 20, 4 << 20, 1 << 18);
        let held = cache.hold(3 << 20);
        for offset in 0..300 {
            let block = Arc::into_inner(some_block(&mut world, 4000)).unwrap();
            cache.insert(7, offset, cache.admit(block));
            assert!(cache.bytes_used() <= 1 << 18);
        }
        assert!(cache.bytes_used() > 1 << 17, "what readers hold does not touch it yet");
        drop(held);
    }

    /// Memory that is taken over was counted elsewhere until then: the cache stays as it is.
    #[test]
    fn what_readers_take_over_costs_the_cache_nothing() {
        let mut world = TableWorld::new(7, KeyOrder::Bytewise);
        let cache = BlockCache::within(1 << 20, 1 << 20, u64::MAX);
        for offset in 0..600 {
            let block = Arc::into_inner(some_block(&mut world, 4000)).unwrap();
            cache.insert(7, offset, cache.admit(block));
        }
        cache.resize(|| 1 << 19);
        let used = cache.bytes_used();
        assert!(used > 1 << 18 && used <= 1 << 19);
        cache.resize(|| 1 << 20);
        let taken = cache.take_over(1 << 19);
        assert_eq!((cache.bytes_used(), cache.is_crowded()), (used, false));
        // No more than was offered: the rest is taken from the cache.
        let more = cache.take_over(1 << 18);
        assert!(cache.bytes_used() + (3 << 18) <= (1 << 20) + (1 << 20) / SLACK_PART);
        // Memory that memtables take again has not become the cache's meanwhile.
        drop((taken, more));
        assert_eq!(cache.room_bytes(), 1 << 19);
    }

    #[test]
    fn growing_waits_for_reads_and_leave() {
        let mut world = TableWorld::new(3, KeyOrder::Bytewise);
        let block = some_block(&mut world, 4000);
        let cache = BlockCache::within(1 << 18, 1 << 18, u64::MAX);
        let leave = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&leave);
        cache.grow_when(move |_| (asked.load(Ordering::Relaxed) == 1).then_some(MOST));
        cache.resize(|| 1 << 20);
        let fill = |from: u64| {
            for offset in from..from + 300 {
                cache.insert(7, offset, Arc::clone(&block));
            }
        };
        fill(0);
        assert!(cache.bytes_used() <= 1 << 18, "no leave");
        leave.store(1, Ordering::Relaxed);
        cache.insert(7, 1_000, Arc::clone(&block));
        assert!(cache.bytes_used() <= 1 << 18, "the cache was not filled again");
        fill(2_000);
        fill(3_000);
        assert!(cache.bytes_used() > 1 << 19);
        cache.resize(|| 1 << 18);
        assert!(cache.bytes_used() <= 1 << 18, "shrinking waits for nobody");
    }

    /// The room that is offered is not there for readers either until the cache has grown.
    #[test]
    fn readers_are_measured_by_the_room_in_force() {
        let mut world = TableWorld::new(6, KeyOrder::Bytewise);
        let block = some_block(&mut world, 4000);
        let cache = BlockCache::within(1 << 18, 1 << 20, u64::MAX);
        let leave = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&leave);
        cache.grow_when(move |_| (asked.load(Ordering::Relaxed) == 1).then_some(MOST));
        let fill = |from: u64| {
            for offset in from..from + 300 {
                cache.insert(7, offset, Arc::clone(&block));
            }
        };
        fill(0);
        let _held = cache.hold(1 << 19);
        assert!(cache.is_crowded() && cache.bytes_used() <= 1 << 15, "down to the floor");
        leave.store(1, Ordering::Relaxed);
        fill(1_000);
        fill(2_000);
        assert!(!cache.is_crowded() && cache.bytes_used() > 1 << 18);
    }

    /// Whichever thread resizes it at the same time, the cache has the recorded size, in every
    /// shard.
    #[test]
    fn racing_resizes_leave_the_size_that_is_recorded() {
        const ROUNDS: u64 = 500;
        const ROOM: u64 = SHARDS_MAX * SHARD_BYTES_MIN;
        // A multiple of the number of shards, since each gets its part rounded up.
        const STEP: u64 = SHARDS_MAX << 4;
        let cache = BlockCache::new(ROOM);
        let arrived = AtomicU64::new(0);
        // A thread that waits spins: the two must go on at the same moment.
        let meet = |meeting: u64| {
            arrived.fetch_add(1, Ordering::AcqRel);
            while arrived.load(Ordering::Acquire) < 2 * meeting {
                std::hint::spin_loop();
            }
        };
        let shrinks = |which: u64| {
            for round in 0..ROUNDS {
                meet(2 * round + 1);
                cache.resize(|| ROOM - STEP * (2 * round + which));
                meet(2 * round + 2);
                let recorded = cache.capacity_bytes.load(Ordering::Relaxed);
                // Not an assertion: the other would wait for ever.
                if cache.blocks.capacity() != recorded {
                    return Err((round, recorded));
                }
            }
            Ok(())
        };
        std::thread::scope(|threads| {
            let other = threads.spawn(|| shrinks(2));
            assert_eq!(shrinks(1), Ok(()));
            assert_eq!(other.join().unwrap(), Ok(()));
        });
        assert_eq!(cache.capacity_bytes.load(Ordering::Relaxed), ROOM - STEP * 2 * ROUNDS);
    }

    #[test]
    fn hashes_of_neighbouring_blocks_spread() {
        let mut low = std::collections::HashSet::new();
        let mut shards = std::collections::HashSet::new();
        for i in 0..4096u64 {
            let hash = WordHash.hash_one(BlockKey { uid: 0x1234_5678_9abc_def0, offset: i * 4096 });
            low.insert(hash & 0xffff);
            shards.insert(hash.rotate_right(32) & 63);
        }
        assert!(low.len() > 3800 && shards.len() == 64, "{} {}", low.len(), shards.len());
    }
}
