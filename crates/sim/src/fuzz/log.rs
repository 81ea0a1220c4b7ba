//! Fuzz target: a write-ahead log, every record of it, and every operation of every batch.
//!
//! Owns: the reads of a log. Never does: replay it into a database (`directory.rs` does).

use super::checksums::{self, raw_and_recomputed};
use super::memory_file::MemoryFile;
use windrow_base::Result;
use windrow_format::batch;
use windrow_format::log::{Class, LogKind, LogReader};

pub(super) fn run(input: &[u8]) -> bool {
    raw_and_recomputed(input, |bytes| checksums::log(bytes), |bytes| read(bytes).is_ok())
}

fn read(bytes: Vec<u8>) -> Result<()> {
    let len = bytes.len() as u64;
    let mut reader = LogReader::open(MemoryFile::open(bytes), LogKind::Wal, None)?;
    let mut at = 0;
    while let Some(record) = reader.next()? {
        assert!(at < record.end && record.end <= len, "records advance, and stay in the file");
        at = record.end;
        if record.class == Class::Batch {
            let (_, count, ops) = batch::decode(record.payload, record.framing)?;
            let mut found = 0u64;
            for op in ops {
                op?;
                found += 1;
            }
            assert_eq!(found, u64::from(count), "a batch holds what it says, or fails");
        }
    }
    assert!(reader.valid_bytes() <= len, "the valid part lies in the file");
    Ok(())
}
