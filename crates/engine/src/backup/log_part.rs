//! The log of a backup: the batches that are in no table yet, as a follower has read them.
//!
//! Objects of some mebibytes, each of batches with their lengths. A restore writes them to a log of
//! the copy's own, as a follower's checkpoint does (`log_copy.rs`).
//!
//! Owns: these objects. Never does: judge a log (`log/seq_chain.rs` of recover does).

use super::names;
use super::pace::CopyPace;
use super::sum::Sum;
use super::target::BackupTarget;
use crate::checkpoint::Followed;
use windrow_base::coding::{Decoder, put_slice};
use windrow_base::{Error, FileNumber, Result};
use windrow_recover::log::log_copy::Copied;

/// An object ends with the batch that fills it.
const OBJECT_BYTES: usize = 4 << 20;

/// Stores the batches that a follower has read from logs. Returns length and checksum of each
/// object.
///
/// # Errors
/// As [`Followed::batches`]; errors of the target.
pub(super) fn store(
    target: &dyn BackupTarget,
    number: u64,
    followed: &Followed<'_>,
    log_end: (FileNumber, u64),
    pace: &mut CopyPace<'_>,
) -> Result<Vec<Sum>> {
    let (mut parts, mut object) = (Vec::new(), Vec::new());
    let mut put = |object: &mut Vec<u8>, parts: &mut Vec<Sum>| -> Result<()> {
        pace.wait_for(object.len() as u64)?;
        target.put(&names::log_part(number, parts.len()), &mut object.as_slice())?;
        parts.push(Sum::of(object));
        object.clear();
        Ok(())
    };
    followed.batches(log_end, &mut |part| {
        let Copied::Batch(payload) = part else { return Ok(()) };
        put_slice(&mut object, payload);
        if object.len() < OBJECT_BYTES { Ok(()) } else { put(&mut object, &mut parts) }
    })?;
    if !object.is_empty() {
        put(&mut object, &mut parts)?;
    }
    Ok(parts)
}

/// Reads a backup's log, and hands over its batches.
///
/// # Errors
/// `Corruption` that names a part whose bytes are not those that were stored.
pub(super) fn read(
    target: &dyn BackupTarget,
    number: u64,
    parts: &[Sum],
    to: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for (part, sum) in parts.iter().enumerate() {
        let name = names::log_part(number, part);
        bytes.clear();
        sum.copy(target, &name, &mut bytes)?;
        let mut decoder = Decoder::new(&bytes);
        while !decoder.is_empty() {
            let payload = decoder.slice().map_err(|error: Error| error.with_file(&*name))?;
            to(payload)?;
        }
    }
    Ok(())
}
