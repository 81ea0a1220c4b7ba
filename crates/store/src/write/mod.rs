//! The write path, in reading order: `batch` (what a caller hands in),
//! `commit` (log, apply, publish, on one screen), `room` (where a writer waits and
//! a memtable is switched), `queue` (the short lock that gives out sequence numbers
//! and log slots, and the publication in order), `unflushed` (what is in memory
//! alone, and its account), `freeze` (which memtables go), `segments` (how log
//! segments are made, get room and go), `free_space` (whether the device has room),
//! `observers` (who is told of each write, in order), `read_set` and `recent` (by which a
//! transaction's commit is admitted), `key_locks` (by
//! which transactions wait for each other), `wal` (a log segment), `wal_sync` (one sync for all
//! who wait). `pipeline` is what holds them.

pub mod batch;
pub mod commit;
mod free_space;
mod freeze;
pub mod key_locks;
pub mod observers;
pub mod ordered_key;
pub mod pace;
pub mod pipeline;
pub mod queue;
pub mod read_set;
pub mod recent;
mod room;
pub mod segments;
pub mod unflushed;
pub mod wal;
pub mod wal_sync;
