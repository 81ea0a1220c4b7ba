//! The records of a manifest: taken out, changed, and put back with new lengths, offsets and
//! checksums.
//!
//! Owns: rewriting a manifest whose records are sound. Never does: know how the engine reads the
//! result.

use super::memory_file::MemoryFile;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::{Error, Result};
use windrow_format::log::{
    Class, FILE_HEADER_BYTES, FileHeader, LogKind, LogPosition, LogReader, encode_file_header,
    frame,
};
use windrow_plan::tree::Edit;

/// Tag of the manifest's field for an edit of a tree.
const KEYSPACE_EDIT: u64 = 5;

/// A field of a record: its tag and its payload.
pub(super) type Field = (u64, Vec<u8>);

/// Changes the records of a manifest. Bytes behind the last sound record stay behind it.
///
/// # Errors
/// If the manifest cannot be read, or a record is no list of fields; the manifest is then
/// unchanged.
pub(super) fn change(
    manifest: &mut Vec<u8>,
    change: impl FnOnce(&mut Vec<Vec<Field>>) -> Result<()>,
) -> Result<()> {
    let mut reader = LogReader::open(MemoryFile::open(manifest.clone()), LogKind::Manifest, None)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        if record.class != Class::Edit {
            return Err(Error::corruption("a record that is no edit"));
        }
        records.push(fields(record.payload)?);
    }
    let before = records.clone();
    change(&mut records)?;
    if records == before {
        return Ok(());
    }
    let mut out = encode_file_header(reader.header());
    debug_assert_eq!(out.len(), FILE_HEADER_BYTES);
    for record in &records {
        let FileHeader { framing, uid, .. } = *reader.header();
        let place = LogPosition { framing, uid, offset: out.len() as u64, durable_up_to: 0 };
        frame(&mut out, &bytes_of(record), Class::Edit, place);
    }
    let valid_bytes = usize::try_from(reader.valid_bytes()).unwrap_or(manifest.len());
    out.extend_from_slice(&manifest[valid_bytes.min(manifest.len())..]);
    *manifest = out;
    Ok(())
}

fn fields(record: &[u8]) -> Result<Vec<Field>> {
    let mut decoder = Decoder::new(record);
    let mut fields = Vec::new();
    while !decoder.is_empty() {
        fields.push((decoder.varint()?, decoder.slice()?.to_vec()));
    }
    Ok(fields)
}

fn bytes_of(record: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, payload) in record {
        put_varint(&mut out, *tag);
        put_slice(&mut out, payload);
    }
    out
}

/// Changes the edit of a tree in a field that has one.
///
/// # Errors
/// If the edit cannot be read.
pub(super) fn change_edit(field: &mut Field, change: impl FnOnce(&mut Edit)) -> Result<()> {
    let (KEYSPACE_EDIT, payload) = field else { return Ok(()) };
    let mut decoder = Decoder::new(payload);
    let keyspace = decoder.varint()?;
    let mut edit = Edit::decode(decoder.rest())?;
    change(&mut edit);
    payload.clear();
    put_varint(payload, keyspace);
    edit.encode(payload);
    Ok(())
}
