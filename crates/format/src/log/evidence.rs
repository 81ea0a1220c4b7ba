//! The search behind the place where reading a log stopped: for evidence, which is a fragment that
//! says that more was durable, and for whole batches.
//!
//! After damage nothing says where fragments begin: the search tries every byte.
//!
//! A header of fixed length carries the log's uid, eight bytes that are known. A short header has
//! only its checksum. So each place that has a valid kind byte, and whose header would be evidence,
//! is one try, and random bytes pass a try with a probability of 2^-32. A short header is believed
//! in one of two cases:
//!
//! - with a payload whose checksum holds as well: 2^-64 a try, and at most one try for each byte;
//! - alone, among the first [`TRIES_MAX`] tries: 2^-25 altogether. Such a header is that of the
//!   record that a crash cut short, next to the damage.
//!
//! Fragments do not overlap. So the search goes on behind a valid header and its payload, whose
//! checksum is tested once: the search is linear in the bytes.
//!
//! A batch counts as whole if both checksums of each of its fragments hold: 2^-64 for each place
//! that is tried.
//!
//! Owns: that search. Never does: judge the end of a log (`reader.rs`).

use super::fragment::{Class, FragmentHeader, FragmentKind, HEADER_BYTES};
use super::framing::Framing;
use super::header::FileHeader;
use super::position::payload_crc;
use super::window::FileWindow;
use super::{fixed_header, short_header};
use std::ops::Range;
use windrow_base::{FileUid, Result};
use windrow_env::ReadFile;

/// The number of tries among which a short header counts without its payload: the probability that
/// other bytes are taken for a header is this number times 2^-32.
pub(super) const TRIES_MAX: u32 = 128;

/// A fragment that says that more was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Its offset.
    pub(super) place: u64,
    /// The length of the log that was durable when the fragment was written.
    pub(super) durable_up_to: u64,
}

/// Returns the end of the last nonzero byte from `from` on; `from` if all are zero.
///
/// # Errors
/// `Io`.
pub(super) fn written_end(file: &dyn ReadFile, window: &mut FileWindow, from: u64) -> Result<u64> {
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

/// The purpose of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// To tell damage from a torn tail: the search ends at the first evidence.
    Judgement,
    /// To find where reading can go on: the search ends at the first whole batch.
    FirstBatch,
}

/// Searches for fragments that begin within `within`, behind the place where reading stopped.
///
/// # Errors
/// `Io`.
pub(super) fn search(
    file: &dyn ReadFile,
    window: &mut FileWindow,
    header: &FileHeader,
    within: Range<u64>,
    what: For,
) -> Result<Behind> {
    let mut search = EvidenceSearch { uid: header.uid, end: within.start, tries: 0 };
    let mut behind = Behind::default();
    let mut pieces = BatchFragments::default();
    let mut at = within.start;
    while at < within.end {
        let range = window.load_from(file, at, HEADER_BYTES)?;
        let bytes = &window.bytes[range];
        let len = bytes.len() as u64;
        let is_last = at + len >= file.len();
        let found = match header.framing {
            Framing::Fixed => search.fixed(bytes, at),
            Framing::Short => search.short(bytes, at, is_last),
        };
        let Some((place, fragment, header_bytes)) = found else {
            if is_last {
                break;
            }
            // Windows overlap, so that a header across their edge is found.
            at += len - (HEADER_BYTES as u64 - 1);
            continue;
        };
        let payload_at = place + header_bytes as u64;
        let end = payload_at.saturating_add(u64::from(fragment.len));
        let payload = window.load(file, payload_at, fragment.len as usize)?;
        let crc = payload.map(|p| payload_crc(search.uid, payload_at, &window.bytes[p]));
        let is_whole = crc == Some(fragment.payload_crc);
        let counts = is_whole || header.framing == Framing::Fixed || search.tries <= TRIES_MAX;
        let durable_up_to = fragment.durable_up_to;
        if what == For::Judgement && durable_up_to > search.end && counts {
            behind.evidence = Some(Evidence { place, durable_up_to });
            break;
        }
        if is_whole && let Some(begin) = pieces.join(place..end, &fragment) {
            behind.batches += 1;
            behind.first_batch.get_or_insert(begin);
            if what == For::FirstBatch {
                break;
            }
        }
        at = end;
    }
    Ok(behind)
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Behind {
    /// The first fragment that says that more was durable.
    pub(super) evidence: Option<Evidence>,
    /// The number of whole batches.
    pub(super) batches: u64,
    /// The offset of the first of them.
    pub(super) first_batch: Option<u64>,
}

/// The fragments of a batch, being put together.
#[derive(Default)]
struct BatchFragments {
    /// The offset of the batch, and the offset that its next fragment must have.
    open: Option<(u64, u64)>,
}

impl BatchFragments {
    /// Takes the next whole fragment. Returns the offset of its batch if the fragment completes
    /// one.
    fn join(&mut self, place: Range<u64>, header: &FragmentHeader) -> Option<u64> {
        let open = self.open.take();
        let fragment = FragmentKind::from_u8(header.fragment)?;
        if header.class != Class::Batch as u8 || header.stream != 0 {
            return None;
        }
        let begin = match fragment.starts() {
            true => place.start,
            false => open.filter(|(_, next)| *next == place.start)?.0,
        };
        if fragment.ends() {
            return Some(begin);
        }
        self.open = Some((begin, place.end));
        None
    }
}

/// A search in progress.
struct EvidenceSearch {
    uid: FileUid,
    /// The offset where reading stopped.
    end: u64,
    /// The number of places tried whose headers would have been evidence.
    tries: u32,
}

impl EvidenceSearch {
    /// Searches bytes from file offset `at` for the first valid header of fixed length, as
    /// [`EvidenceSearch::short`] does for short ones.
    fn fixed(&self, bytes: &[u8], at: u64) -> Option<(u64, FragmentHeader, usize)> {
        let uid_bytes = self.uid.to_le_bytes();
        for (i, candidate) in bytes.windows(HEADER_BYTES).enumerate() {
            if candidate[16] != uid_bytes[0] || candidate[16..24] != uid_bytes {
                continue;
            }
            let place = at + i as u64;
            let header = candidate
                .first_chunk()
                .and_then(|bytes| fixed_header::read(bytes, self.uid, place));
            if let Some(header) = header {
                return Some((place, header, HEADER_BYTES));
            }
        }
        None
    }

    /// Searches bytes from file offset `at` for the first valid short header, evidence or not.
    /// Returns its offset, its fields and its length.
    fn short(
        &mut self,
        bytes: &[u8],
        at: u64,
        is_last: bool,
    ) -> Option<(u64, FragmentHeader, usize)> {
        // The last places are tried with the next window, which has their headers whole.
        let places = if is_last { bytes.len() } else { bytes.len() - (HEADER_BYTES - 1) };
        let kinds = bytes.get(short_header::KIND_AT..)?;
        for (i, &kind) in kinds.iter().enumerate().take(places) {
            if !short_header::is_kind(kind) {
                continue;
            }
            let (place, candidate) = (at + i as u64, &bytes[i..]);
            let Some((header, len)) = short_header::parse(candidate, place) else { continue };
            self.tries = self.tries.saturating_add(u32::from(header.durable_up_to > self.end));
            if short_header::is_whole(&candidate[..len], self.uid, place) {
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
