//! Models of the installs of jobs, under readers ([`windrow_store::jobs::JobContext`], trees,
//! cleanup).
//!
//! Owns: these models. Never does: merge tables: an edit replaces the result of a merge.

use super::{ModelWorld, OF_TWO, model_of_database};
use loom::sync::{Arc as LoomArc, Mutex as LoomMutex};
use std::sync::Arc;
use windrow_base::KeyspaceId;
use windrow_plan::tree::{Edit, Version};
use windrow_read::snapshot_list::DroppedEntries;
use windrow_store::jobs::Installed;
use windrow_store::tree::Tree;

fn tree(world: &ModelWorld) -> Arc<Tree> {
    world.database().tree(KeyspaceId::DEFAULT).expect("the default keyspace")
}

/// Flushes the memtables to a table.
fn flush(world: &ModelWorld) {
    world.db.flush().expect("flush");
}

/// An edit that removes every table, like the edit of a merge with an empty output.
fn without_tables(version: &Version) -> Edit {
    let removed = version.files().map(|(level, part, file)| (level, part, file.number)).collect();
    Edit { removed, ..Edit::default() }
}

#[test]
fn a_key_is_there_while_its_memtable_becomes_a_table() {
    model_of_database(OF_TWO, |world| {
        let flush = world.spawn(flush);
        assert!(world.has("0") && world.has("0"), "neither in memory nor in a table");
        flush.join().unwrap();
        assert_eq!(world.files("sst"), 1);
    });
}

/// For a snapshot the entries that a filter removed are there at all times, or at none.
#[test]
fn a_snapshot_is_on_one_side_of_an_install() {
    model_of_database(OF_TWO, |world| {
        flush(world);
        let database = world.database();
        let since_id = database.snapshots.held().next_id;
        let reader = world.spawn(|world| {
            let snapshot = world.db.snapshot();
            let there = || snapshot.get("0").expect("get").is_some();
            let first = there();
            assert_eq!(there(), first, "a snapshot changed");
            first
        });
        let taken = DroppedEntries { since_id, filtered: true, expired_ms: 0 };
        let done = database.jobs.try_install(&tree(world), Some(taken), without_tables);
        let done = done.expect("install");
        reader.join().unwrap();
        assert_eq!(world.has("0"), done == Installed::Seen, "{done:?}");
    });
}

#[test]
fn a_table_goes_once_and_not_while_a_version_is_pinned() {
    model_of_database(OF_TWO, |world| {
        flush(world);
        // Replaces the count of an `Arc`, which orders the last unpin after the install.
        let unpinning = LoomArc::new(LoomMutex::new(()));
        let of_reader = unpinning.clone();
        let reader = world.spawn(move |world| {
            let pinned = tree(world).pin();
            let holds = pinned.levels.iter().any(|level| level.files().next().is_some());
            assert!(!holds || world.files("sst") == 1, "removed under a reader");
            let _unpinning = of_reader.lock().unwrap();
            drop(pinned);
        });
        let installing = unpinning.lock().unwrap();
        world.database().jobs.install(&tree(world), without_tables).expect("install");
        drop(installing);
        // On this thread, unless the reader is the last to release the table.
        world.handles.jobs.run_until_idle();
        reader.join().unwrap();
        world.handles.jobs.run_until_idle();
        assert_eq!(world.files("sst"), 0, "nobody removes it");
        assert_eq!(world.db.stats().tables_deleted, 1);
    });
}

/// Both are based on one version, or the second on the result of the first.
#[test]
fn two_edits_of_a_tree_follow_each_other() {
    model_of_database(OF_TWO, |world| {
        flush(world);
        let other = world.spawn(|world| {
            world.database().jobs.install(&tree(world), without_tables).expect("install");
        });
        world.database().jobs.install(&tree(world), without_tables).expect("install");
        other.join().unwrap();
        let state = world.database().catalog.state();
        let logged = &state.keyspaces[&KeyspaceId::DEFAULT].version;
        assert!(Arc::ptr_eq(logged, &tree(world).version()), "the manifest says another");
        assert_eq!(logged.files().count(), 0);
    });
}
