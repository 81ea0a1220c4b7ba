//! Tests of `recover/src/close.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::db::Db;
use windrow_recover::close::*;

#[test]
fn a_close_that_leaves_something_in_memory_is_not_clean() {
    let db = Db::in_memory().0;
    db.put("a", "b").unwrap();
    let error = check_flushed(db.database(), 1).unwrap_err();
    assert!(error.message().contains("(R10): a clean close, and"), "{error}");
    let error = check_flushed(db.database(), 2).unwrap_err();
    assert!(error.message().contains("(R10): a close through 2, and 1 is written"), "{error}");
    db.flush().unwrap();
    check_flushed(db.database(), 1).unwrap();
}
