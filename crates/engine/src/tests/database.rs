//! Tests of `recover/src/database/mod.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::Db;
use std::sync::Arc;

/// Also when entries are still in memory then, and in no table.
#[test]
fn nothing_is_left_of_a_database_whose_close_failed() {
    let (db, handles) = Db::in_memory();
    db.put("key", "value").unwrap();
    let host = Arc::downgrade(&db.database().host);
    handles.fs.crash_at(handles.fs.operations());
    assert!(db.put("key", "value").is_err() || db.flush().is_err());
    assert!(db.close().is_err());
    drop(db);
    handles.jobs.discard();
    assert_eq!(host.strong_count(), 0, "the database holds itself");
}
