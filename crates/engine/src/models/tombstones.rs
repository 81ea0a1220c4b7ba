//! Models of the range tombstones of a memtable ([`windrow_read::tombstones::MemTombstones`]).
//!
//! Owns: this model. Never does: open a database.

use super::{OF_STEPS, model};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;
use windrow_base::{KeyOrder, SeqNo};
use windrow_format::tombstone::RangeTombstone;
use windrow_read::tombstones::MemTombstones;

const ORDER: KeyOrder = KeyOrder::Bytewise;

/// A read builds the last chunk while more come, and the next read takes the result.
#[test]
fn a_reader_finds_every_tombstone_that_is_visible() {
    model(OF_STEPS, || {
        let all = Arc::new((MemTombstones::default(), AtomicU64::new(0)));
        let of_writer = all.clone();
        let writer = thread::spawn(move || {
            let (tombstones, visible) = &*of_writer;
            for seq in 1..=2 {
                let (start, end) = (b"a".to_vec(), b"c".to_vec());
                tombstones.insert(RangeTombstone { start, end, seq }, &ORDER);
                visible.store(seq, Ordering::Release);
            }
        });
        let (tombstones, visible) = &*all;
        let newest = || tombstones.newest_covering(&ORDER, b"b", SeqNo::MAX).unwrap_or(0);
        for _ in 0..2 {
            let seen = visible.load(Ordering::Acquire);
            assert!(seen <= newest(), "a deleted range is there again");
        }
        writer.join().unwrap();
        assert_eq!(newest(), 2);
    });
}
