//! The write path, from a batch to a memtable and the log.
//!
//! In reading order: `batch` (operations of a caller), `commit` (log, apply, publish, on one
//! screen), `room` (where a writer waits and a memtable is switched), `queue` (the short lock that
//! gives out sequence numbers and log slots, and the publication in order), `unflushed_writes` (the
//! memtables that are in no table yet, and their account), `freeze` (which memtables go),
//! `segments` (how log segments are made, get room and go), `free_space` (whether the device has
//! room), `observers` (transactions, gaps and reads, told of each write in order), `read_set` and
//! `recent_writes` (by which a transaction's commit is admitted), `key_locks` (by which
//! transactions wait for each other), `wal` (a log segment), `wal_sync` (one sync for all waiting
//! writers), `write_steps` (who is told that much was written). `pipeline` holds them all.
//!
//! Owns: the order of writes, the log and the memtables. Never does: flush a memtable (`jobs`
//! does).

pub mod batch;
pub mod commit;
mod free_space;
mod freeze;
pub mod kept_logs;
pub mod key_locks;
pub mod observers;
pub mod ordered_key;
pub mod pace;
pub mod pipeline;
pub mod queue;
pub mod read_set;
pub mod recent_writes;
mod room;
pub mod segments;
pub mod unflushed_writes;
pub mod wal;
pub mod wal_sync;
pub mod write_steps;
