//! Tests of `store/src/write/commit.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, ErrorKind};
use std::error::Error as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use windrow_base::{Error, invariant};
use windrow_store::write::queue::Memtables;

#[test]
fn a_slot_that_is_published_twice_turns_writing_off_as_a_defect() {
    let (db, _handles) = Db::in_memory();
    db.put("k", "v").unwrap();
    let pipeline = &db.database().pipeline;
    let slot = pipeline.queue().lock().take(0, 0, Memtables::Many(Vec::new()));
    pipeline.publish(&slot).unwrap();
    let twice = catch_unwind(AssertUnwindSafe(|| pipeline.publish(&slot))).unwrap_err();
    assert!(invariant::is_message(twice.downcast_ref::<String>().unwrap()));

    let refused = db.put("k", "w").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    let cause = refused.source().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(cause.kind(), ErrorKind::Internal, "{cause}");
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    // No thread waits for the slot.
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::ReadOnly);
}
