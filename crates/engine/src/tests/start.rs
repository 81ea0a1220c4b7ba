//! Tests of `recover/src/open/start.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::db::Db;
use windrow_recover::open::start::*;
use windrow_store::host::listing::Listing;

#[test]
fn what_was_replayed_is_in_tables_before_a_write() {
    let db = Db::in_memory().0;
    check_replayed(db.database(), &Listing::default()).unwrap();
    db.put("a", "b").unwrap();
    let error = check_replayed(db.database(), &Listing::default()).unwrap_err();
    assert!(error.message().contains("(R3): 1 memtables of `default`"), "{error}");
    db.flush().unwrap();
    let listing = Listing { tables: [1 << 40].into(), ..Listing::default() };
    let error = check_replayed(db.database(), &listing).unwrap_err();
    assert!(error.message().contains("(R8): file"), "{error}");
}
