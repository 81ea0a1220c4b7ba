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

pub(crate) mod batch;
pub(crate) mod commit;
mod free_space;
mod freeze;
pub(crate) mod key_locks;
pub(crate) mod observers;
pub(crate) mod ordered_key;
pub(crate) mod pipeline;
pub(crate) mod queue;
pub(crate) mod read_set;
pub(crate) mod recent;
mod room;
pub(crate) mod segments;
pub(crate) mod unflushed;
pub(crate) mod wal;
pub(crate) mod wal_sync;
