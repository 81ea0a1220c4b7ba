//! Tests of `store/src/write/unflushed_writes.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::Db;

/// The account, and the sums over the memtables of all keyspaces.
fn counted(db: &Db) -> [(usize, usize); 2] {
    let pipeline = &db.database().pipeline;
    let queue = pipeline.queue().lock();
    let (mut active, mut frozen) = (0, 0);
    for tree in pipeline.trees().iter() {
        let view = tree.view();
        active += view.memtable.reserved_bytes();
        frozen += view.frozen.iter().map(|memtable| memtable.reserved_bytes()).sum::<usize>();
    }
    let unflushed = &queue.unflushed;
    [(unflushed.active_bytes(), unflushed.frozen_bytes()), (active, frozen)]
}

/// A flush that must wait for a processor before it releases its memtable holds memory that the
/// next memtable must not take.
#[test]
fn a_flushed_memtable_counts_as_frozen_until_it_is_free() {
    let (db, _handles) = Db::in_memory();
    db.put("key", vec![7; 1000]).unwrap();
    let pipeline = &db.database().pipeline;
    let tree = db.default_keyspace().tree.clone();
    let memtable = tree.view().memtable.clone();
    let counted = || pipeline.queue().lock().unflushed.frozen_bytes();
    pipeline.queue().lock().freeze(&tree);
    let bytes = memtable.reserved_bytes();
    pipeline.queue().lock().unflushed.flushed(&memtable);
    let listed = pipeline.queue().lock().unflushed.frozen().len();
    assert_eq!((listed, counted()), (0, bytes));
    memtable.count_as(Vec::new());
    assert_eq!(counted(), 0);
}

/// Its readers hold it, and from then on it counts as theirs.
#[test]
fn a_memtable_of_a_keyspace_that_was_dropped_during_its_flush_counts_as_its_readers() {
    let (db, _handles) = Db::in_memory();
    let space = db.keyspace("gone").unwrap();
    space.put("key", vec![7; 100_000]).unwrap();
    let (pipeline, blocks) = (&db.database().pipeline, &db.database().caches.blocks);
    let (tree, memtable) = (space.tree.clone(), space.tree.view().memtable.clone());
    pipeline.queue().lock().freeze(&tree);
    let claimed =
        vec![windrow_store::write::unflushed_writes::Frozen { tree, memtable: memtable.clone() }];
    db.drop_keyspace("gone").unwrap();
    let held = blocks.held_bytes();
    assert!(held >= 100_000, "{held}");
    pipeline.let_go(claimed);
    assert_eq!(blocks.held_bytes(), held);
    drop((memtable, space));
}

#[test]
fn a_memtable_counts_until_it_is_in_a_table_or_its_keyspace_is_dropped() {
    let (db, handles) = Db::in_memory();
    let (mut frozen_most, mut names) = (0, 0);
    for step in 0..400 {
        let space = db.keyspace(&format!("ks{}", step % 5)).unwrap();
        match step * 7 % 11 {
            0..=5 => space.put(format!("{step}"), vec![7; step]).unwrap(),
            6 | 7 if space.tree.view().memtable.reserved_bytes() > 0 => {
                db.database().pipeline.queue().lock().freeze(&space.tree);
            }
            8 => db.drop_keyspace(&format!("ks{}", step % 5)).unwrap(),
            9 => _ = handles.jobs.run_until_idle(),
            _ => space.flush().unwrap(),
        }
        let [account, memtables] = counted(&db);
        assert_eq!(account, memtables, "step {step}");
        frozen_most = account.1.max(frozen_most);
        names += usize::from(account.0 > 0);
    }
    assert!(frozen_most > 0 && names > 100, "{frozen_most} {names}");
    db.flush().unwrap();
    assert_eq!(counted(&db), [(0, 0), (0, 0)]);
    db.close().unwrap();
}
