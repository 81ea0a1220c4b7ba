//! The uids and lengths that files of a directory record of each other, made to agree. Without
//! this, an input whose damaged files got right checksums one by one would only ever be refused for
//! a length or a uid that another file contradicts.
//!
//! Owns: the places where one file records another's uid or length, stated here a second time from
//! `docs/format/`. Never does: make a file that is named and missing.

use super::memory_file::MemoryFile;
use super::short_logs::put_wide;
use super::{checksums, records};
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::coding::{Decoder, get_varint, put_varint};
use windrow_base::{FileNumber, FileUid, Result};
use windrow_format::current::CURRENT_BYTES;
use windrow_format::log::{Class, FILE_HEADER_BYTES, LogKind, LogReader};
use windrow_format::table::FOOTER_BYTES;

/// Tags of the manifest's fields about logs.
const WAL_ADDED: u64 = 13;
const CLEAN_CLOSE: u64 = 15;
const WAL_SYNCED: u64 = 21;

/// The places in CURRENT of the manifest's number and uid.
const CURRENT_NUMBER_AT: usize = 20;
const CURRENT_UID_AT: usize = 28;

/// The places in a log's header of its own number, its uid, and the number and durable bytes of the
/// manifest.
const LOG_NUMBER_AT: usize = 20;
const LOG_UID_AT: usize = 28;
const LOG_MANIFEST_AT: usize = 36;
const LOG_MANIFEST_BYTES_AT: usize = 44;

/// The uid and length of a file, which other files record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    uid: FileUid,
    bytes: u64,
}

/// The files of one kind, by number.
pub(super) type Files = BTreeMap<FileNumber, Seen>;

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
        *place = value.to_le_bytes();
    }
}

/// Returns a table's, as the manifest records them.
pub(super) fn see_table(bytes: &[u8]) -> Option<Seen> {
    let uid = u64_at(bytes, bytes.len().checked_sub(FOOTER_BYTES)?)?;
    Some(Seen { uid, bytes: bytes.len() as u64 })
}

/// Returns a log's or manifest's, after setting the number in its header.
pub(super) fn see_log(bytes: &mut [u8], number: FileNumber) -> Option<Seen> {
    if bytes.len() < FILE_HEADER_BYTES {
        return None;
    }
    put_u64(bytes, LOG_NUMBER_AT, number);
    let uid = u64_at(bytes, LOG_UID_AT)?;
    Some(Seen { uid, bytes: bytes.len() as u64 })
}

/// Sets the uid in CURRENT to that of the manifest that it names.
pub(super) fn current(bytes: &mut [u8], manifests: &Files) {
    let number = u64_at(bytes, CURRENT_NUMBER_AT).filter(|_| bytes.len() >= CURRENT_BYTES);
    if let Some(seen) = number.and_then(|number| manifests.get(&number)) {
        put_u64(bytes, CURRENT_UID_AT, seen.uid);
    }
}

/// Corrects the records of tables and logs in a manifest. One that cannot be read stays unchanged.
pub(super) fn manifest(bytes: &mut Vec<u8>, tables: &Files, logs: &Files) {
    _ = records::change(bytes, |records| {
        for field in records.iter_mut().flatten() {
            _ = records::change_edit(field, |edit| {
                for (_, _, file) in &mut edit.added {
                    if let Some(seen) = tables.get(&file.number) {
                        let file = Arc::make_mut(file);
                        (file.uid, file.bytes) = (seen.uid, seen.bytes);
                    }
                }
            });
            if let Ok(Some(payload)) = of_log(field, logs) {
                field.1 = payload;
            }
        }
        Ok(())
    });
}

/// Returns the right payload of a field about a log.
fn of_log((tag, payload): &records::Field, logs: &Files) -> Result<Option<Vec<u8>>> {
    let mut decoder = Decoder::new(payload);
    if !matches!(*tag, WAL_ADDED | CLEAN_CLOSE | WAL_SYNCED) {
        return Ok(None);
    }
    let number = decoder.varint()?;
    let Some(seen) = logs.get(&number) else { return Ok(None) };
    let mut out = Vec::new();
    put_varint(&mut out, number);
    if *tag == WAL_ADDED {
        decoder.u64()?;
        out.extend_from_slice(&seen.uid.to_le_bytes());
    }
    let bytes = decoder.varint()?;
    // A clean close records the exact length of the log, the other fields a minimum.
    put_varint(&mut out, if *tag == CLEAN_CLOSE { seen.bytes } else { bytes.min(seen.bytes) });
    Ok(Some(out))
}

/// Corrects the records of the manifest and of older logs in a log: its header and its marks. Its
/// length stays.
pub(super) fn log(bytes: &mut [u8], manifests: &Files, logs: &Files) {
    let named = u64_at(bytes, LOG_MANIFEST_AT).and_then(|number| manifests.get(&number));
    if let (Some(seen), Some(said)) = (named, u64_at(bytes, LOG_MANIFEST_BYTES_AT)) {
        put_u64(bytes, LOG_MANIFEST_BYTES_AT, said.min(seen.bytes));
    }
    checksums::log(bytes);
    for range in marks(bytes).unwrap_or_default() {
        mark(&mut bytes[range], manifests, logs);
    }
    checksums::log(bytes);
}

/// Returns the places of the payloads of marks that have one fragment.
fn marks(bytes: &[u8]) -> Result<Vec<std::ops::Range<usize>>> {
    let mut reader = LogReader::open(MemoryFile::open(bytes.to_vec()), LogKind::Wal, None)?;
    let mut found = Vec::new();
    while let Some(record) = reader.next()? {
        let end = record.end as usize;
        let range = end - record.payload.len()..end;
        // A record of several fragments has headers in between.
        if record.class == Class::Mark && bytes.get(range.clone()) == Some(record.payload) {
            found.push(range);
        }
    }
    Ok(found)
}

/// Corrects a mark: pairs of number and bytes, the manifest's first. A smaller number of bytes is
/// written as wide as the larger one was.
fn mark(payload: &mut [u8], manifests: &Files, logs: &Files) {
    let mut at = 0;
    let mut files = manifests;
    while let Some((number, width)) = get_varint(&payload[at..]) {
        at += width;
        let Some((bytes, width)) = get_varint(&payload[at..]) else { return };
        if let Some(seen) = files.get(&number).filter(|seen| seen.bytes < bytes) {
            put_wide(&mut payload[at..at + width], seen.bytes);
        }
        at += width;
        files = logs;
    }
}
