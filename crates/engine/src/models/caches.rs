//! Models of the handles of tables ([`windrow_read::cache::TableCache`]).
//!
//! Owns: these models. Never does: open a table.

use super::{OF_STEPS, model};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windrow_base::{FileNumber, KeyOrder};
use windrow_env::testing::CrashFs;
use windrow_plan::tree::File;
use windrow_read::cache::{TableCache, TableLimits};

/// A table with the fields that matter here: number and uid.
fn table(number: FileNumber) -> File {
    File { number, uid: number, ..File::default() }
}

/// A cache, and the count of tables that it passed on to be unlinked.
fn cache() -> (Arc<TableCache>, Arc<AtomicUsize>) {
    let gone = Arc::new(AtomicUsize::new(0));
    let sink = gone.clone();
    let on_obsolete = move |_| {
        sink.fetch_add(1, Ordering::SeqCst);
    };
    let fs = Arc::new(CrashFs::new(0));
    let (obsolete, opened) = (Arc::new(on_obsolete), Arc::new(|_| ()));
    let limits = TableLimits::fixed(4, 1 << 20);
    (Arc::new(TableCache::new(fs, "db", limits, false, Arc::default(), obsolete, opened)), gone)
}

#[test]
fn a_table_has_one_handle_whoever_lets_go_of_the_last() {
    model(OF_STEPS, || {
        let (cache, gone) = cache();
        let first = cache.handle(&table(1), &KeyOrder::Bytewise);
        let other = cache.clone();
        let reader = thread::spawn(move || {
            // Loom follows no count of `Arc`, except through this: it lets the other thread run in
            // between.
            drop(other.handle(&table(2), &KeyOrder::Bytewise));
            drop(first);
        });
        let again = cache.handle(&table(1), &KeyOrder::Bytewise);
        reader.join().unwrap();
        let same = cache.handle(&table(1), &KeyOrder::Bytewise);
        assert!(Arc::ptr_eq(&again, &same), "two handles of one table");
        assert_eq!(gone.load(Ordering::SeqCst), 0, "a live table was given away");
    });
}
