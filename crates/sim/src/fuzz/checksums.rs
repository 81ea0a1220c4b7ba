//! Recomputed checksums: damaged bytes with valid checksums. Without this a fuzzer only ever finds
//! that a checksum fails, and the parser behind it is never reached.
//!
//! Owns: the places of checksums, uids and lengths in each format, stated here a second time from
//! `docs/format/`. Never does: change bytes that the checksums cover, except for the uid and length
//! that seed them.

use super::memory_file::MemoryFile;
use super::short_logs;
use std::path::Path;
use windrow_base::{FileUid, KeyOrder};
use windrow_env::Buffer;
use windrow_env::checksum::{checksum, crc32c};
use windrow_format::current::CURRENT_BYTES;
use windrow_format::log::{FILE_HEADER_BYTES, HEADER_BYTES as FRAGMENT_HEADER_BYTES};
use windrow_format::table::{
    BLOCK_TRAILER_BYTES, BlockHandle, BlockKind, Expect, FOOTER_BYTES, HEADER_BYTES, IndexIter,
    Locate, Table, decode_block,
};

/// The place of the version in a log's header, and the version of logs with short headers.
const LOG_VERSION_AT: usize = 8;
const SHORT_VERSION: u32 = 2;
/// The place of the uid in a log's header.
const LOG_UID_AT: usize = 28;
/// The place of the uid in a fragment.
const FRAGMENT_UID_AT: usize = 16;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|b| b.get_mut(..value.len())) {
        place.copy_from_slice(value);
    }
}

/// Runs `read` on the unchanged bytes, and on bytes with recomputed checksums if those differ.
pub(super) fn raw_and_recomputed(
    input: &[u8],
    recompute: impl FnOnce(&mut Vec<u8>),
    read: impl Fn(Vec<u8>) -> bool,
) -> bool {
    let mut recomputed = input.to_vec();
    recompute(&mut recomputed);
    if recomputed == input {
        return read(recomputed);
    }
    let as_it_is = read(input.to_vec());
    read(recomputed) || as_it_is
}

/// Recomputes CURRENT's checksum, over all bytes before it.
pub fn current(bytes: &mut [u8]) {
    if let Some(covered) = bytes.get(..CURRENT_BYTES - 4) {
        let crc = crc32c(covered);
        put(bytes, CURRENT_BYTES - 4, &crc.to_le_bytes());
    }
}

/// Recomputes those of a log or manifest: its header, and header and payload of every fragment. A
/// fragment whose length leads nowhere ends where the next one begins.
pub fn log(bytes: &mut [u8]) {
    let Some(covered) = bytes.get(..FILE_HEADER_BYTES - 4) else { return };
    let crc = crc32c(covered);
    put(bytes, FILE_HEADER_BYTES - 4, &crc.to_le_bytes());
    let Some(uid) = u64_at(bytes, LOG_UID_AT) else { return };
    if u32_at(bytes, LOG_VERSION_AT) == Some(SHORT_VERSION) {
        return short_logs::recompute(bytes, uid);
    }
    // The header's uid may have been changed; the fragments still have the old one.
    let before = u64_at(bytes, FILE_HEADER_BYTES + FRAGMENT_UID_AT).unwrap_or(uid);
    let mut at = FILE_HEADER_BYTES;
    while at + FRAGMENT_HEADER_BYTES <= bytes.len() {
        if bytes[at..at + FRAGMENT_HEADER_BYTES].iter().all(|&b| b == 0) {
            return;
        }
        at = fragment(bytes, at, uid, before);
    }
}

/// Recomputes those of the fragment at `at`, whose successor has one of these uids; returns its
/// end.
fn fragment(bytes: &mut [u8], at: usize, uid: FileUid, before: FileUid) -> usize {
    let of_both = [uid, before];
    let payload_at = at + FRAGMENT_HEADER_BYTES;
    let stored = u32_at(bytes, at + 8).unwrap_or(0) as usize;
    let end = Some(payload_at.saturating_add(stored))
        .filter(|&end| begins_or_ends(bytes, end, of_both))
        .or_else(|| (payload_at..bytes.len()).find(|&p| carries(bytes, p, of_both)))
        .unwrap_or(bytes.len());
    put(bytes, at + 8, &((end - payload_at) as u32).to_le_bytes());
    put(bytes, at + FRAGMENT_UID_AT, &uid.to_le_bytes());
    let crc = checksum(uid, payload_at as u64, &[&bytes[payload_at..end]]);
    put(bytes, at + 4, &crc.to_le_bytes());
    let crc = checksum(uid, at as u64, &[&bytes[at + 4..payload_at]]);
    put(bytes, at, &crc.to_le_bytes());
    end
}

/// Whether a fragment's header with one of these uids may be at `at`.
fn carries(bytes: &[u8], at: usize, uids: [FileUid; 2]) -> bool {
    u64_at(bytes, at.saturating_add(FRAGMENT_UID_AT)).is_some_and(|found| uids.contains(&found))
}

/// Whether `at` is the file's end, a fragment, or preallocated space.
fn begins_or_ends(bytes: &[u8], at: usize, uids: [FileUid; 2]) -> bool {
    let preallocated = |rest: &[u8]| rest.iter().take(FRAGMENT_HEADER_BYTES).all(|&b| b == 0);
    carries(bytes, at, uids) || bytes.get(at..).is_some_and(preallocated)
}

/// Recomputes those of a table: header, footer, every block that its index leads to.
pub fn table(bytes: &mut [u8]) {
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let Some(uid) = u64_at(bytes, footer_at).filter(|_| footer_at >= HEADER_BYTES) else { return };
    put(bytes, 16, &uid.to_le_bytes());
    let crc = crc32c(&bytes[..HEADER_BYTES - 4]);
    put(bytes, HEADER_BYTES - 4, &crc.to_le_bytes());
    let file_bytes = bytes.len() as u64;
    put(bytes, footer_at + 8, &file_bytes.to_le_bytes());
    for part in 0..4 {
        let at = footer_at + 16 + part * 12;
        if let (Some(offset), Some(len)) = (u64_at(bytes, at), u32_at(bytes, at + 8)) {
            block(bytes, uid, BlockHandle { offset, bytes: len });
        }
    }
    let crc = checksum(uid, footer_at as u64, &[&bytes[footer_at..bytes.len() - 4]]);
    let crc_at = bytes.len() - 4;
    put(bytes, crc_at, &crc.to_le_bytes());
    data_blocks(bytes, uid);
}

/// Recomputes those of the blocks that the index leads to, if the meta blocks are valid.
fn data_blocks(bytes: &mut [u8], uid: FileUid) {
    let file_bytes = bytes.len() as u64;
    let file = MemoryFile::open(bytes.to_vec());
    let expect = Expect { file_bytes, uid, order: KeyOrder::Bytewise };
    let Ok(table) = Table::open(&file, expect) else { return };
    let mut top = table.index_iter();
    top.seek_first();
    while top.valid() {
        match top.place() {
            Locate::Block(handle) => block(bytes, uid, handle),
            Locate::Partition(partition) => {
                block(bytes, uid, partition.index);
                partition.filter.iter().for_each(|&filter| block(bytes, uid, filter));
                blocks_of_partition(bytes, uid, partition.index);
            }
            Locate::None => return,
        }
        top.next();
    }
}

fn blocks_of_partition(bytes: &mut [u8], uid: FileUid, handle: BlockHandle) {
    let Some(raw) = range(bytes, handle).map(|range| Buffer::copy_of(&bytes[range])) else {
        return;
    };
    let index = decode_block(raw, Path::new("input"), uid, handle, BlockKind::Index);
    let Ok(index) = index else { return };
    let Ok(mut index) = IndexIter::new(index.into(), KeyOrder::Bytewise) else { return };
    index.seek_first();
    while let Locate::Block(handle) = index.place() {
        block(bytes, uid, handle);
        index.next();
    }
}

fn range(bytes: &[u8], handle: BlockHandle) -> Option<std::ops::Range<usize>> {
    let offset = usize::try_from(handle.offset).ok()?;
    let end = offset.checked_add(handle.bytes as usize)?;
    (end <= bytes.len() && handle.bytes as usize >= BLOCK_TRAILER_BYTES).then_some(offset..end)
}

/// Recomputes the checksum at the end of a table's block.
pub fn block(bytes: &mut [u8], uid: FileUid, handle: BlockHandle) {
    if let Some(range) = range(bytes, handle) {
        let crc_at = range.end - 4;
        let crc = checksum(uid, handle.offset, &[&bytes[range.start..crc_at]]);
        put(bytes, crc_at, &crc.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_format::log::{
        Class, FileHeader, LogKind, LogPosition, LogReader, encode_file_header, frame,
    };

    /// Makes a log of three records. Returns it with the place of each.
    fn log_of(kind: LogKind) -> (Vec<u8>, Vec<usize>) {
        let header = FileHeader {
            kind,
            framing: kind.framing(),
            number: 1,
            uid: 7,
            manifest_number: 1,
            manifest_durable_bytes: 0,
            manifest_uid: 7,
        };
        let mut bytes = encode_file_header(&header);
        let mut begins = Vec::new();
        for record in ["first", "second", "third"] {
            begins.push(bytes.len());
            let (framing, offset) = (header.framing, bytes.len() as u64);
            let place = LogPosition { framing, uid: header.uid, offset, durable_up_to: 0 };
            frame(&mut bytes, record.as_bytes(), Class::Batch, place);
        }
        (bytes, begins)
    }

    fn records(bytes: Vec<u8>, kind: LogKind) -> Vec<Vec<u8>> {
        let mut reader = LogReader::open(MemoryFile::open(bytes), kind, None).unwrap();
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            found.push(record.payload.to_vec());
        }
        found
    }

    #[test]
    fn a_log_with_another_uid_keeps_its_records() {
        for kind in [LogKind::Manifest, LogKind::Wal] {
            let (mut bytes, _) = log_of(kind);
            put(&mut bytes, LOG_UID_AT, &8u64.to_le_bytes());
            log(&mut bytes);
            assert_eq!(records(bytes, kind), [&b"first"[..], b"second", b"third"]);
        }
    }

    #[test]
    fn a_length_that_leads_nowhere_ends_with_the_next_record() {
        let (mut bytes, begins) = log_of(LogKind::Wal);
        bytes[begins[1] + 9] = 90;
        log(&mut bytes);
        assert_eq!(records(bytes, LogKind::Wal), [&b"first"[..], b"second", b"third"]);
    }
}
