//! The write path, in reading order: `batch` (what a caller hands in),
//! `commit` (log, apply, publish, on one screen), `queue` (the short lock that
//! gives out sequence numbers and log slots, and the publication in order),
//! `room` (where a writer waits and a memtable is switched), `segments` (how
//! log segments are made, and get room), `wal` (a log segment), `wal_sync` (one
//! sync for all who wait).

pub(crate) mod batch;
pub(crate) mod commit;
pub(crate) mod queue;
pub(crate) mod room;
pub(crate) mod segments;
pub(crate) mod unflushed;
pub(crate) mod wal;
pub(crate) mod wal_sync;
