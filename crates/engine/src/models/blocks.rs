//! Models of decoded blocks ([`windrow_read::cache::BlockCache`]): the room of the cache, and the
//! memory that counts against it. `quick_cache` and [`windrow_format::block::Account`] are one step
//! each to loom.
//!
//! Owns: these models. Never does: follow the steps inside `quick_cache`.

use super::{OF_MANY, OF_STEPS, model, model_of_database};
use loom::sync::Mutex;
use loom::thread;
use std::sync::Arc;
use windrow_env::testing;
use windrow_read::budget::{Budget, InUse};
use windrow_read::cache::{BlockCache, ReadMemory};
use windrow_read::options::Settings;

const ROOM_BYTES: u64 = 1 << 20;
/// Room for some blocks with one key each.
const LITTLE_BYTES: u64 = 4 << 10;

#[test]
fn two_who_resize_the_block_cache_leave_the_smaller_size() {
    model(OF_STEPS, || {
        let cache = Arc::new(BlockCache::new(ROOM_BYTES));
        let shared = cache.clone();
        let other = thread::spawn(move || shared.resize(|| ROOM_BYTES / 4));
        cache.resize(|| ROOM_BYTES / 2);
        other.join().unwrap();
        let smaller = ROOM_BYTES / 4;
        assert_eq!(cache.sizes(), (smaller, smaller), "recorded, and what the cache has");
    });
}

/// A flush that has ended and a writer that has frozen the next memtable both divide the memory.
#[test]
fn reads_are_offered_what_the_last_count_of_memtables_leaves() {
    model(OF_STEPS, || {
        let shares = Budget::split_for(&Settings::default(), u64::MAX);
        let blocks = Arc::new(BlockCache::new(ROOM_BYTES));
        let (env, _handles) = testing::env(1);
        let memory = Arc::new(ReadMemory::new(shares, blocks.clone(), (env.fs, env.clock)));
        let frozen_bytes = Arc::new(Mutex::new(0));
        let (shared, frozen) = (memory.clone(), frozen_bytes.clone());
        let share = move || {
            let frozen = frozen.lock().unwrap();
            shared.count((shares.memtable_bytes, *frozen), shares.merge_bytes, 0);
            drop(frozen);
            shared.share(0);
        };
        let flushed = thread::spawn(share.clone());
        *frozen_bytes.lock().unwrap() = shares.memtable_bytes;
        share();
        flushed.join().unwrap();
        let left = shares.cache_target_bytes(
            InUse { memtables_bytes: 2 * shares.memtable_bytes, ..shares.one_in_use() },
            0,
        );
        assert_eq!(blocks.offered_bytes(), left, "memory that a memtable takes");
    });
}

/// Two tables whose blocks begin at the same offset, read while the room shrinks.
#[test]
fn a_reader_has_the_blocks_of_its_table_and_the_account_is_right() {
    model_of_database(OF_MANY, |world| {
        let third = world.db.keyspace("third").expect("keyspace");
        third.put("0", "3").expect("put");
        world.db.flush().expect("flush");
        let blocks = &world.database().caches.blocks;
        let reader = world.spawn(move |_| {
            let found = third.get("0").expect("get").expect("a value");
            assert_eq!(&found[..], b"3", "of another table");
        });
        blocks.resize(|| LITTLE_BYTES);
        let found = world.db.get("0").expect("get").expect("a value");
        assert_eq!(&found[..], b"0", "of another table");
        drop(found);
        reader.join().unwrap();
        let (recorded, has) = blocks.sizes();
        assert_eq!(recorded, has, "recorded, and what the cache has");
        assert!(0 < blocks.bytes_used() && blocks.bytes_used() <= recorded, "{recorded}");
        assert_eq!(blocks.held_bytes(), blocks.bytes_used(), "bytes that nobody holds");
    });
}
