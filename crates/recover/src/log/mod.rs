//! Reading the write-ahead log: by an open, a follower, verify, repair, copies and dump.
//!
//! A log is a file of records (`windrow_format::log`). One place, `chain`, judges the meaning of a
//! record: an entry, a gap, or the end. Over that there are two ways to read: `at_rest`, for logs
//! that no writer appends to, and `tail`, for one that may be appended to. `file` opens a log and
//! checks that it is the one that is asked for. `memtables` holds the entries that readers keep.
//! `log_tail` is how far a follower has read. `windrow_read::left_out` reports the records that an
//! open did not take over.
//!
//! Owns: the rules of the log for all its readers. Never does: write to one (`write/`).

pub mod at_rest;
pub mod chain;
pub mod file;
pub mod log_tail;
pub mod memtables;
pub mod tail;
