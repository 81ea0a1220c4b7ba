//! Numbers at their limits: a small database whose manifest has, in one field at a time, a value
//! that no counting reaches.
//!
//! A mutator of bytes finds these late, since the ten bytes of a varint and the lengths around them
//! must change at once. With known fields they are a short list. Owns: the values, and the fields
//! that they are set in. Never does: know the right answer of the reader.

use super::archive::Archive;
use super::records::{self, Field};
use std::sync::Arc;
use windrow_base::coding::put_varint;
use windrow_base::{Error, Result};
use windrow_format::names::FileKind;
use windrow_plan::tree::{Edit, File};

/// Values that a field is set to.
const VALUES: [u64; 6] = [0, 1 << 32, (1 << 56) - 1, 1 << 56, 1 << 62, u64::MAX];

/// Tags of the manifest's fields with one or two numbers, and how many.
const NUMBERS: [(u64, usize); 8] =
    [(7, 1), (9, 1), (11, 2), (13, 2), (15, 2), (17, 1), (20, 1), (21, 2)];

/// Tag of the field whose second number follows a uid.
const WAL_ADDED: u64 = 13;

/// The numbers of a table's metadata.
const OF_FILES: [fn(&mut File, u64); 14] = [
    |file, value| file.number = value,
    |file, value| file.uid = value,
    |file, value| file.bytes = value,
    |file, value| file.entries = value,
    |file, value| file.point_tombstones = value,
    |file, value| file.range_tombstones = value,
    |file, value| file.seq_min = value,
    |file, value| file.seq_max = value,
    |file, value| file.epoch = value,
    |file, value| file.created_ms = value,
    |file, value| file.expiring_entries = value,
    |file, value| file.expiry_min_ms = value,
    |file, value| file.filter_bytes = value,
    |file, value| file.hotness = value,
];

/// The numbers of an edit.
const OF_EDITS: [fn(&mut Edit, u64); 4] = [
    |edit, value| edit.next_epoch = Some(value),
    |edit, value| edit.flushed_through = Some(value),
    |edit, value| edit.shape_levels = Some(value as u32),
    |edit, value| edit.cursors.push((value as u32, Some(b"k".to_vec()))),
];

/// Makes inputs of target `directory` from a sound one, each with the number that was set.
///
/// # Errors
/// If its manifest cannot be read.
pub fn of(archive: &Archive) -> Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for value in VALUES {
        for (tag, count) in NUMBERS {
            for index in 0..count {
                let numbers: Vec<u64> =
                    (0..count).map(|i| if i == index { value } else { 9 }).collect();
                let input = with_field(archive, tag, &numbers)?;
                inputs.push((format!("manifest field {tag}.{index} = {value}"), input));
            }
        }
        for (i, set) in OF_EDITS.into_iter().enumerate() {
            let input = with_edits(archive, &|edit| set(edit, value))?;
            inputs.push((format!("number {i} of edits = {value}"), input));
        }
        for (i, set) in OF_FILES.into_iter().enumerate() {
            let change = |edit: &mut Edit| {
                for (_, _, file) in &mut edit.added {
                    set(Arc::make_mut(file), value);
                }
            };
            let input = with_edits(archive, &change)?;
            inputs.push((format!("number {i} of tables = {value}"), input));
        }
    }
    Ok(inputs)
}

/// Returns the inputs at which fuzzing and these lists once found a wrapping counter, by name.
///
/// # Errors
/// As [`of`].
pub fn found(archive: &Archive) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let end = u64::MAX;
    let last = |kind| {
        let mut archive = archive.clone();
        archive.add_last(kind);
        archive.to_bytes()
    };
    Ok(vec![
        ("found-next-file-at-its-end", with_field(archive, 7, &[end])?),
        ("found-last-seq-at-its-end", with_field(archive, 9, &[end])?),
        ("found-log-begin-at-its-end", with_field(archive, 11, &[end, end])?),
        ("found-file-number-at-its-end", last(FileKind::Table)),
        ("found-wal-number-at-its-end", last(FileKind::Wal)),
        ("found-manifest-number-at-its-end", last(FileKind::Manifest)),
    ])
}

/// Returns the archive with a record of one field of numbers at the end of its manifest.
fn with_field(archive: &Archive, tag: u64, numbers: &[u64]) -> Result<Vec<u8>> {
    let mut payload = Vec::new();
    for (i, &number) in numbers.iter().enumerate() {
        if tag == WAL_ADDED && i == 1 {
            payload.extend([7; size_of::<windrow_base::FileUid>()]);
        }
        put_varint(&mut payload, number);
    }
    rewritten(archive, |records| {
        records.push(vec![(tag, payload)]);
        Ok(())
    })
}

/// Returns the archive with every edit of a tree in its manifest changed.
fn with_edits(archive: &Archive, change: &dyn Fn(&mut Edit)) -> Result<Vec<u8>> {
    rewritten(archive, |records| {
        records.iter_mut().flatten().try_for_each(|field| records::change_edit(field, change))
    })
}

/// Returns the archive with the records of its manifest changed.
fn rewritten(
    archive: &Archive,
    change: impl FnOnce(&mut Vec<Vec<Field>>) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut archive = archive.clone();
    let manifest = archive.manifest_mut().ok_or_else(|| Error::corruption("no manifest"))?;
    records::change(manifest, change)?;
    Ok(archive.to_bytes())
}
