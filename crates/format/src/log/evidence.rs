//! Evidence behind the place where reading a log stopped: a fragment that says that more
//! was durable.
//!
//! After damage nothing says where fragments begin: a header is looked for at every byte.
//!
//! A header of fixed length carries the log's uid, eight bytes that are known. A short
//! header has its checksum alone. So each place whose byte for the kind may be one, and
//! that would be evidence, is one try, and bytes at random pass a try with a chance of
//! 2^-32. Short headers are believed in one of two ways:
//!
//! - with a payload whose checksum holds as well: 2^-64 a try, and no more than one try for
//!   each byte;
//! - alone, among the first [`TRIES_MAX`] tries: 2^-25 altogether. It is the record that a
//!   crash cut short, next to the damage.
//!
//! Fragments do not overlap. So the search goes on behind a header that is valid, and its
//! payload, whose checksum is tested once: the search is linear in the bytes.
//!
//! Owns: that search. Never does: judge what the rest of a log means (`reader.rs`).

use super::fragment::{FragmentHeader, HEADER_BYTES};
use super::framing::Framing;
use super::header::FileHeader;
use super::place::payload_crc;
use super::window::Window;
use super::{fixed, short};
use std::ops::Range;
use windrow_base::{FileUid, Result};
use windrow_env::ReadFile;

/// A short header counts without its payload among so many that were tried: the chance that
/// bytes which are no header are taken for one is this many times 2^-32.
pub(super) const TRIES_MAX: u32 = 128;

/// What a fragment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Where it begins.
    pub(super) place: u64,
    /// Up to where all was durable when it was written.
    pub(super) durable_up_to: u64,
}

/// Where the last byte from `from` on ends that is not zero; `from` if all are.
///
/// # Errors
/// `Io`.
pub(super) fn written_end(file: &dyn ReadFile, window: &mut Window, from: u64) -> Result<u64> {
    let (mut end, mut at) = (from, from);
    while at < file.len() {
        let range = window.load_from(file, at, 1)?;
        let bytes = &window.bytes[range];
        if let Some(last) = last_nonzero(bytes) {
            end = at + last as u64 + 1;
        }
        at += bytes.len() as u64;
    }
    Ok(end)
}

/// Looks for a fragment that begins within `within` and says that the log was durable beyond
/// where that begins.
///
/// # Errors
/// `Io`.
pub(super) fn search(
    file: &dyn ReadFile,
    window: &mut Window,
    header: &FileHeader,
    within: Range<u64>,
) -> Result<Option<Evidence>> {
    let mut search = Search { uid: header.uid, end: within.start, tries: 0 };
    let mut at = within.start;
    while at < within.end {
        let range = window.load_from(file, at, HEADER_BYTES)?;
        let bytes = &window.bytes[range];
        let len = bytes.len() as u64;
        let is_last = at + len >= file.len();
        let found = match header.framing {
            Framing::Fixed => {
                let found = search.fixed(bytes, at);
                if found.is_some() {
                    return Ok(found);
                }
                None
            }
            Framing::Short => search.short(bytes, at, is_last),
        };
        if let Some((place, header, header_bytes)) = found {
            let payload_at = place + header_bytes as u64;
            at = payload_at.saturating_add(u64::from(header.len));
            let durable_up_to = header.durable_up_to;
            if durable_up_to > search.end {
                let payload = window.load(file, payload_at, header.len as usize)?;
                let crc = payload.map(|p| payload_crc(search.uid, payload_at, &window.bytes[p]));
                let is_whole = crc == Some(header.payload_crc);
                if is_whole || search.tries <= TRIES_MAX {
                    return Ok(Some(Evidence { place, durable_up_to }));
                }
            }
        } else if is_last {
            break;
        } else {
            // Windows overlap, so that a header across their edge is seen.
            at += len - (HEADER_BYTES as u64 - 1);
        }
    }
    Ok(None)
}

/// A search under way.
struct Search {
    uid: FileUid,
    /// Where reading stopped.
    end: u64,
    /// How many places were tried that would have been evidence.
    tries: u32,
}

impl Search {
    /// Looks through bytes from file offset `at` for a header of fixed length that is evidence.
    fn fixed(&self, bytes: &[u8], at: u64) -> Option<Evidence> {
        let uid_bytes = self.uid.to_le_bytes();
        for (i, candidate) in bytes.windows(HEADER_BYTES).enumerate() {
            if candidate[16] != uid_bytes[0] || candidate[16..24] != uid_bytes {
                continue;
            }
            let place = at + i as u64;
            let header =
                candidate.first_chunk().and_then(|bytes| fixed::read(bytes, self.uid, place));
            if let Some(FragmentHeader { durable_up_to, .. }) = header
                && durable_up_to > self.end
            {
                return Some(Evidence { place, durable_up_to });
            }
        }
        None
    }

    /// Looks through bytes from file offset `at` for the first short header that is valid,
    /// evidence or not. Gives its offset, what it says, and its length.
    fn short(
        &mut self,
        bytes: &[u8],
        at: u64,
        is_last: bool,
    ) -> Option<(u64, FragmentHeader, usize)> {
        // The last of them are seen whole with the next window.
        let places = if is_last { bytes.len() } else { bytes.len() - (HEADER_BYTES - 1) };
        let kinds = bytes.get(short::KIND_AT..)?;
        for (i, &kind) in kinds.iter().enumerate().take(places) {
            if !short::is_kind(kind) {
                continue;
            }
            let (place, candidate) = (at + i as u64, &bytes[i..]);
            let Some((header, len)) = short::parse(candidate, place) else { continue };
            self.tries = self.tries.saturating_add(u32::from(header.durable_up_to > self.end));
            if short::is_whole(&candidate[..len], self.uid, place) {
                return Some((place, header, len));
            }
        }
        None
    }
}

fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    // Preallocated space is long and all zero: eight bytes at a step.
    let (head, words) = bytes.as_rchunks::<8>();
    let zeros = words.iter().rev().take_while(|w| u64::from_ne_bytes(**w) == 0).count();
    match words.get((words.len() - zeros).wrapping_sub(1)) {
        Some(word) => {
            let at = head.len() + (words.len() - zeros - 1) * 8;
            word.iter().rposition(|&b| b != 0).map(|i| at + i)
        }
        None => head.iter().rposition(|&b| b != 0),
    }
}
