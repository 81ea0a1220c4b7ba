//! Reading the write-ahead log: by an open, a follower, verify, repair, copies and dump.
//!
//! A log is a file of records (`windrow_format::log`). One place, `seq_chain`, judges the meaning
//! of a record: an entry, a gap, or the end. Over that there are two ways to read: `logs_at_rest`,
//! for logs that no writer appends to, and `growing_log`, for one that may be appended to.
//! `log_copy` copies batches into another log. `log_source` opens a log and checks that it is the
//! one that is asked for. `memtables` holds the entries that readers keep. `log_tail` is how far a
//! follower has read. `windrow_read::records_left_out` reports the records that an open did not take over.
//!
//! Owns: the rules of the log for all its readers. Never does: write to one (`write/`).

pub mod growing_log;
pub mod log_copy;
pub mod log_source;
pub mod log_tail;
pub mod logs_at_rest;
pub mod memtables;
pub mod seq_chain;
