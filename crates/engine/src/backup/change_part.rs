//! A part of the changes of a backup: batches in order, with times between them.
//!
//! Owns: its bytes (`docs/format/backup.md`). Never does: know which batches it should have.

use super::sum::Sum;
use super::target::BackupTarget;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::{Error, Result, SeqNo};
use windrow_format::batch::{self, OpIter};
use windrow_format::log::LogKind;
use windrow_recover::log::log_copy::Copied;

const BATCH: u64 = 0;
const TIME: u64 = 1;

/// An item of a part, as it is read.
pub(super) enum Item<'a> {
    Batch(PartBatch<'a>),
    /// All batches before it were written by then, and none behind it, in ms since 1970.
    Time(u64),
}

/// A batch of a part.
pub(super) struct PartBatch<'a> {
    pub(super) payload: &'a [u8],
    pub(super) first_seq: SeqNo,
    pub(super) last_seq: SeqNo,
    pub(super) ops: OpIter<'a>,
}

impl PartBatch<'_> {
    /// Decodes the payload of a batch.
    ///
    /// # Errors
    /// `Corruption` for bytes that are none.
    pub(super) fn of(payload: &[u8]) -> Result<PartBatch<'_>> {
        let (first_seq, count, ops) = batch::decode(payload, LogKind::Wal.framing())?;
        match u64::from(count).checked_sub(1) {
            Some(more) => Ok(PartBatch { payload, first_seq, last_seq: first_seq + more, ops }),
            None => Err(Error::corruption("a batch without operations")),
        }
    }
}

/// Appends an item.
pub(super) fn append(out: &mut Vec<u8>, item: &Copied<'_>) {
    match item {
        Copied::Batch(payload) => {
            put_varint(out, BATCH);
            put_slice(out, payload);
        }
        Copied::Time(ms) => {
            put_varint(out, TIME);
            put_varint(out, *ms);
        }
    }
}

/// Reads a part, compares it with its checksum, and hands over its items, until one says `false`.
/// Returns whether all of them were taken.
///
/// # Errors
/// `Corruption` that names the part; errors of the target, and of `to`.
pub(super) fn read(
    target: &dyn BackupTarget,
    name: &str,
    sum: Sum,
    to: &mut dyn FnMut(Item<'_>) -> Result<bool>,
) -> Result<bool> {
    let named = |error: Error| error.with_file(name);
    let mut bytes = Vec::new();
    sum.copy(target, name, &mut bytes)?;
    let mut decoder = Decoder::new(&bytes);
    while !decoder.is_empty() {
        let item = match decoder.varint().map_err(named)? {
            BATCH => {
                let payload = decoder.slice().map_err(named)?;
                Item::Batch(PartBatch::of(payload).map_err(named)?)
            }
            TIME => Item::Time(decoder.varint().map_err(named)?),
            other => {
                let text = format!("an item of kind {other} among changes needs a newer Windrow");
                return Err(named(Error::not_supported(text)));
            }
        };
        if !to(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a part, and checks that its batches are whole and go on from each other.
///
/// # Errors
/// As [`read`].
pub(super) fn check(target: &dyn BackupTarget, name: &str, sum: Sum) -> Result<()> {
    let mut next_seq = None;
    let checked = read(target, name, sum, &mut |item| {
        let Item::Batch(batch) = item else { return Ok(true) };
        if next_seq.is_some_and(|next_seq| next_seq != batch.first_seq) {
            return Err(not_next(batch.first_seq, next_seq.unwrap_or(0)).with_file(name));
        }
        next_seq = Some(batch.last_seq + 1);
        Ok(true)
    });
    checked.map(drop)
}

/// The error of a batch that does not go on from those before.
pub(super) fn not_next(first_seq: SeqNo, next_seq: SeqNo) -> Error {
    Error::corruption(format!(
        "a batch begins with sequence number {first_seq}, where {next_seq} comes next"
    ))
}
