//! The write-ahead log, as it is read: by an open, a follower, verify, repair, copies and dump.
//!
//! A log is a file of records (`windrow_format::log`). What a record means is judged at one place:
//! `chain`, an entry, a gap, or the end. Over that there are two ways to read: `at_rest`, logs that
//! nobody writes, and `tail`, one that somebody may be writing to. `file` opens a log and sees that
//! it is the one that is asked for; `memtables` is what readers keep of it; `log_tail` is how far a
//! follower has read. What an open did not take over is said by `windrow_read::left_out`.
//!
//! Owns: what is true of the log for all who read it. Never does: write to one (`write/`).

pub mod at_rest;
pub mod chain;
pub mod file;
pub mod log_tail;
pub mod memtables;
pub mod tail;
