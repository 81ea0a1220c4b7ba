//! The reader of a log: it reads to the end of the valid records, and judges that end.
//!
//! The rule. Reading stops at the first place `p` where there is no whole valid record (zeros and
//! the end of the file included). The bytes after it are a torn tail, and are dropped, unless they
//! were promised durable:
//!
//! 1. a durable length known from elsewhere (R4, R10, R11) lies beyond `p`, or
//! 2. some fragment after `p` says that the log was durable beyond `p` when it
//!    was written (`evidence.rs`).
//!
//! In either case it is `Corruption`. No later record confirms the last sync group; only rule 1
//! can.
//!
//! Whole batches may lie behind a gap that is no corruption: a power loss takes sectors in any
//! order, writers fill their slots in any order, and a damaged byte that was not synced looks the
//! same. They are counted ([`LogReader::batches_behind`]) and not replayed: a log gives back a
//! prefix of its records. A tool that shows all batches goes on behind the gap
//! ([`LogReader::pass_gap`]).
//!
//! Owns: the rule, and the place in the log. Never does: apply a record, or change the file.

use super::evidence::{self, Evidence, For};
use super::fragment::{Class, FRAGMENT_BYTES_MAX, FragmentHeader, FragmentKind, HEADER_BYTES};
use super::framing::Framing;
use super::header::{FILE_HEADER_BYTES, FileHeader, LogKind, decode_file_header, expect_kind};
use super::position::{payload_crc, read_header};
use super::window::FileWindow;
use std::ops::Range;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::ReadFile;

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// The class of the payload.
    pub class: Class,
    /// The form of the log, and of a batch in it.
    pub framing: Framing,
    /// The payloads of all its fragments together.
    pub payload: &'a [u8],
    /// The record's offset in the file.
    pub offset: u64,
    /// The record's end in the file.
    pub end: u64,
    /// The length of the log that was known to be durable when the record was written.
    pub durable_up_to: u64,
}

/// Reads a log from its start.
pub struct LogReader {
    file: Arc<dyn ReadFile>,
    header: FileHeader,
    known_durable_bytes: u64,
    /// Whether another process still writes to the log, so that its end proves nothing.
    is_live: bool,
    window: FileWindow,
    /// The offset of the next record; at the end, the end of the valid part.
    at: u64,
    /// Payload of a record of several fragments.
    assembled: Vec<u8>,
    /// The bytes behind the end, once it was judged.
    torn: Torn,
    state: ReaderState,
}

enum ReaderState {
    Reading,
    Ended,
    Failed(Error),
}

/// The bytes behind the end of a log.
#[derive(Clone, Copy, Debug, Default)]
struct Torn {
    /// The end of the last nonzero byte.
    end: u64,
    /// The number of whole batches.
    batches: u64,
}

/// A record whose fragments were read, with the place of its payload.
struct PayloadLocation {
    class: Class,
    end: u64,
    durable_up_to: u64,
    /// In the window, for a record of one fragment; else in `assembled`.
    in_window: Option<Range<usize>>,
}

/// The payload of a fragment.
struct FragmentPayload {
    /// The payload's end in the file.
    end: u64,
    in_window: Range<usize>,
}

impl LogReader {
    /// Opens a log and checks its header. `known_durable_bytes`: the length of this log that
    /// another file records as durable.
    ///
    /// # Errors
    /// `Corruption` if the header is damaged or of another kind, or the file is shorter than its
    /// known length; `NotSupported` if it is newer; `Io`.
    pub fn open(
        file: Arc<dyn ReadFile>,
        expect: LogKind,
        known_durable_bytes: Option<u64>,
    ) -> Result<LogReader> {
        let named = |e: Error| e.with_file(file.path().display().to_string());
        let known_durable_bytes = known_durable_bytes.unwrap_or(0);
        if file.len() < known_durable_bytes.max(FILE_HEADER_BYTES as u64) {
            let what = if known_durable_bytes > FILE_HEADER_BYTES as u64 {
                format!("log has {} bytes, {known_durable_bytes} were synced", file.len())
            } else {
                "log is shorter than its header".to_string()
            };
            return Err(named(Error::corruption(what).with_offset(file.len())));
        }
        let mut head = [0; FILE_HEADER_BYTES];
        file.read_at(0, &mut head).map_err(named)?;
        let header = decode_file_header(&head).map_err(named)?;
        expect_kind(&header, expect).map_err(named)?;
        Ok(LogReader {
            file,
            header,
            known_durable_bytes,
            is_live: false,
            window: FileWindow::up_to(u64::MAX),
            at: FILE_HEADER_BYTES as u64,
            assembled: Vec::new(),
            torn: Torn::default(),
            state: ReaderState::Reading,
        })
    }

    /// Goes on at the offset of a record that an earlier reader found.
    #[must_use]
    pub fn go_on_at(mut self, at: u64) -> LogReader {
        debug_assert!(FILE_HEADER_BYTES as u64 <= at, "a record begins within the header");
        self.at = at;
        self
    }

    /// Takes the first place without a whole record for the end, and does not judge it: in a log
    /// that is being written, the next record may be about to appear there.
    #[must_use]
    pub fn of_live(mut self) -> LogReader {
        self.is_live = true;
        self
    }

    /// Reads no byte from `end` on, which may be zeros for later records.
    #[must_use]
    pub fn up_to(mut self, end: u64) -> LogReader {
        self.window = FileWindow::up_to(end);
        self
    }

    /// The file's header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Returns the next record; `None` at the end of the valid part.
    ///
    /// # Errors
    /// `Corruption`, naming file and offset, where synced bytes are damaged or
    /// missing (the rule at the top of this file); `NotSupported` for a record
    /// class or stream this build does not know; `Io`. Errors are final.
    #[allow(clippy::should_implement_trait, reason = "records borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<LogRecord<'_>>> {
        match &self.state {
            ReaderState::Reading => {}
            ReaderState::Ended => return Ok(None),
            ReaderState::Failed(e) => return Err(e.clone()),
        }
        let offset = self.at;
        let found = match self.read_record() {
            Ok(Some(found)) => found,
            Ok(None) if self.is_live => {
                self.state = ReaderState::Ended;
                return Ok(None);
            }
            Ok(None) => match self.judge_end() {
                Ok(torn) => {
                    (self.torn, self.state) = (torn, ReaderState::Ended);
                    return Ok(None);
                }
                Err(e) => return Err(self.fail(e)),
            },
            Err(e) => return Err(self.fail(e)),
        };
        self.at = found.end;
        let payload = match found.in_window {
            Some(range) => &self.window.bytes[range],
            None => &self.assembled,
        };
        let PayloadLocation { class, end, durable_up_to, .. } = found;
        let framing = self.header.framing;
        Ok(Some(LogRecord { class, framing, payload, offset, end, durable_up_to }))
    }

    /// After the end: the length of the valid part.
    pub fn valid_bytes(&self) -> u64 {
        self.at
    }

    /// After the end: the number of bytes behind the valid part, without the preallocated zeros at
    /// the file's end; `None` if there are none.
    pub fn torn(&self) -> Option<u64> {
        matches!(self.state, ReaderState::Ended)
            .then(|| self.torn.end.saturating_sub(self.at))
            .filter(|bytes| *bytes > 0)
    }

    /// After the end: the number of whole batches behind the valid part.
    pub fn batches_behind(&self) -> u64 {
        if matches!(self.state, ReaderState::Ended) { self.torn.batches } else { 0 }
    }

    /// After the end: goes on with the first whole batch behind it, if there is one, as in a live
    /// log. The records that it reads from here on are not part of the log's content.
    ///
    /// # Errors
    /// `Io`.
    pub fn pass_gap(&mut self) -> Result<bool> {
        if !matches!(self.state, ReaderState::Ended) {
            return Ok(false);
        }
        let within = self.at..self.torn.end;
        let found =
            evidence::search(&*self.file, &mut self.window, &self.header, within, For::FirstBatch)?;
        let Some(begin) = found.first_batch else { return Ok(false) };
        (self.at, self.is_live, self.state) = (begin, true, ReaderState::Reading);
        self.torn.batches = 0;
        Ok(true)
    }

    fn fail(&mut self, e: Error) -> Error {
        let e = e.with_file(self.file.path().display().to_string()).with_offset(self.at);
        self.state = ReaderState::Failed(e.clone());
        e
    }

    /// Reads the fragments of the record at `self.at`. `None` if no whole valid record is there.
    fn read_record(&mut self) -> Result<Option<PayloadLocation>> {
        self.assembled.clear();
        if self.assembled.capacity() > 4 * FRAGMENT_BYTES_MAX {
            // Records of several fragments are rare: do not keep the memory of a large one.
            self.assembled = Vec::new();
        }
        let mut at = self.at;
        let mut class = None;
        loop {
            let Some((header, payload)) = self.read_fragment(at)? else {
                return Ok(None);
            };
            let end = payload.end;
            let payload = payload.in_window;
            let fragment = FragmentKind::from_u8(header.fragment);
            if header.stream != 0 || fragment.is_none() {
                return Err(Error::not_supported(
                    "log fragment of a kind that needs a newer Windrow",
                )
                .with_offset(at));
            }
            let this = Class::from_u8(header.class).map_err(|e| e.with_offset(at))?;
            let (Some(fragment), first) = (fragment, class.is_none()) else {
                return Ok(None);
            };
            if fragment.starts() != first || class.is_some_and(|c| c != this) {
                return Ok(None);
            }
            let durable_up_to = header.durable_up_to;
            if fragment == FragmentKind::Full {
                return Ok(Some(PayloadLocation {
                    class: this,
                    end,
                    durable_up_to,
                    in_window: Some(payload),
                }));
            }
            class = Some(this);
            self.assembled.extend_from_slice(&self.window.bytes[payload]);
            if fragment.ends() {
                return Ok(Some(PayloadLocation {
                    class: this,
                    end,
                    durable_up_to,
                    in_window: None,
                }));
            }
            at = end;
        }
    }

    /// Reads the fragment at `at`, if both its checksums hold: its header, and its payload in the
    /// window.
    fn read_fragment(&mut self, at: u64) -> Result<Option<(FragmentHeader, FragmentPayload)>> {
        let FileHeader { framing, uid, .. } = self.header;
        let head = self.window.load_from(&*self.file, at, HEADER_BYTES)?;
        let bytes = &self.window.bytes[head];
        let Some((header, len)) = read_header(framing, bytes, uid, at) else {
            return Ok(None);
        };
        let begin = at + len as u64;
        let Some(range) = self.window.load(&*self.file, begin, header.len as usize)? else {
            return Ok(None);
        };
        let crc = payload_crc(uid, begin, &self.window.bytes[range.clone()]);
        let is_whole = crc == header.payload_crc;
        let payload = FragmentPayload { end: begin + range.len() as u64, in_window: range };
        Ok(is_whole.then_some((header, payload)))
    }

    /// Judges the end at `self.at`: returns the bytes behind it, if none of them was promised
    /// durable.
    fn judge_end(&mut self) -> Result<Torn> {
        let end = self.at;
        if self.known_durable_bytes > end {
            return Err(Error::corruption(format!(
                "log is valid up to byte {end} only, but synced up to {}",
                self.known_durable_bytes
            )));
        }
        let torn_end = evidence::written_end(&*self.file, &mut self.window, end)?;
        let within = end..torn_end;
        let found =
            evidence::search(&*self.file, &mut self.window, &self.header, within, For::Judgement)?;
        if let Some(Evidence { place, durable_up_to }) = found.evidence {
            return Err(Error::corruption(format!(
                "log is damaged at byte {end}, but a record at byte {place} says that \
                 all before byte {durable_up_to} had been synced"
            )));
        }
        Ok(Torn { end: torn_end, batches: found.batches })
    }
}
