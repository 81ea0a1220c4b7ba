//! Tests of `store/src/catalog/mod.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::db::Db;
use std::sync::Arc;
use windrow_plan::tree::Edit;
use windrow_plan::tree::{File, Part};
use windrow_store::catalog::install::TreeEdit;
use windrow_store::manifest::record::{Field, ManifestRecord};

#[test]
fn a_table_of_a_number_to_come_is_refused() {
    let db = Db::in_memory().0;
    let tree = db.default_keyspace().tree.clone();
    let file = File { number: 1 << 40, ..File::default() };
    let added = vec![(1, Part::Run, Arc::new(file))];
    let edit = TreeEdit { tree: &tree, edit: Edit { added, ..Edit::default() }, flushed: None };
    let mut catalog = db.database().catalog.lock();
    let error = catalog.install(Vec::new(), vec![edit], || ()).unwrap_err();
    assert_eq!(error.kind(), windrow_base::ErrorKind::Internal);
    let text = error.message();
    assert!(text.contains("(R8): table Some(1099511627776), where"), "{text}");
}

/// An open would refuse such a manifest for ever.
#[test]
fn a_record_that_does_not_fold_is_not_written() {
    let db = Db::in_memory().0;
    let catalog = &db.database().catalog;
    let bytes = || catalog.lock().log().unwrap().bytes();
    let before = bytes();
    let never_made = Field::WalSynced { number: 1 << 30, bytes: 100 };
    let error = catalog.append(vec![Field::NextKeyspace(9), never_made]).unwrap_err();
    assert_eq!(error.kind(), windrow_base::ErrorKind::Internal);
    assert!(error.message().contains("is synced but was not made"), "{error}");
    assert_eq!(bytes(), before, "it is in the manifest");
    assert_eq!(catalog.state().next_keyspace, 1, "half of it is folded in");
    assert_eq!(db.put("a", "1").unwrap_err().kind(), windrow_base::ErrorKind::ReadOnly);
}

#[test]
fn current_names_no_manifest_that_is_not_durable() {
    let db = Db::in_memory().0;
    let catalog = &db.database().catalog;
    let mut locked = catalog.lock();
    let log = locked.log_mut().unwrap();
    catalog.put_in_force(log).unwrap();
    log.append_unsynced(&ManifestRecord(vec![Field::NextKeyspace(1)])).unwrap();
    let error = catalog.put_in_force(log).unwrap_err();
    assert!(error.message().contains("(R1): CURRENT would name"), "{error}");
}
