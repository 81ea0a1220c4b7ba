//! The locks of the engine, in the order in which they are taken: a thread takes one only while all
//! that it holds are above it here.
//!
//! Debug builds, tests and the model checkers panic if a thread does not
//! (`windrow_env::sync::Rank`). No two of one rank are held at once: of keyspaces, tables and
//! memtables a thread locks one at a time. The locks of files, jobs and random numbers come after
//! all of these.
//!
//! So the order limits the waits under a lock: locks that are held while a file is written or a job
//! awaited come first, and the short ones last.
//!
//! Owns: the table. Never does: check it.

use windrow_env::sync::Rank;

// Held while jobs run, or are waited for.
pub const FOLLOWING: Rank = Rank::new(4, "a refresh of a follower");
pub const FOLLOWER_SHOWN: Rank = Rank::new(6, "what a follower shows");
pub const CLOSING: Rank = Rank::new(10, "the close of a database");
pub const CHECKPOINTING: Rank = Rank::new(20, "a checkpoint");
pub const RESUMING: Rank = Rank::new(30, "a resume");

// The work that is due.
pub const PACING: Rank = Rank::new(40, "the pressure on writers");
/// Of each keyspace. Never held while a file is read or written.
pub const TREE_WORK: Rank = Rank::new(50, "the work on a keyspace");
pub const FLUSH_RETRY: Rank = Rank::new(60, "when flushes are tried again");

// The feed of changes.
/// Of each feed.
pub const FEED_MOMENTS: Rank = Rank::new(70, "the moments of a feed of changes");
pub const STEP_WATCHERS: Rank = Rank::new(75, "who is told of the steps of writing");

// The data of the database. The manifest is written under the catalog.
pub const CATALOG: Rank = Rank::new(100, "the catalog");
/// Of each keyspace. Held while the queue is asked for the last number given out.
pub(crate) const GAPS: Rank = Rank::new(105, "the gaps of a keyspace");
pub const QUEUE: Rank = Rank::new(110, "the commit queue");
/// Under the queue's lock, or by itself.
pub const RECENT_WRITES: Rank = Rank::new(115, "the record of recent writes");
/// Of each keyspace.
pub const VIEW: Rank = Rank::new(120, "the view of a keyspace");
pub const NAMES: Rank = Rank::new(130, "the names of keyspaces");
/// By itself, or under the catalog.
pub const KEPT_FILES: Rank = Rank::new(140, "the logs that are kept for the feed of changes");

// Waits for writes, and for the device.
pub const PUBLICATION: Rank = Rank::new(200, "the publication of writes");
/// Under no other lock: a thread that waits for one holds none.
pub const KEY_LOCKS: Rank = Rank::new(205, "the locks on keys");
pub const WAL_SYNC: Rank = Rank::new(210, "the sync of the write-ahead log");

// Lists and counts.
/// Of each keyspace.
pub const FILTER_LEDGER: Rank = Rank::new(300, "the filter memory of running jobs");
/// Of each keyspace.
pub const FLUSH_SAMPLE: Rank = Rank::new(305, "what flushes go by");
/// Of each keyspace.
pub const HOT_MAP: Rank = Rank::new(310, "how hot keys are");
pub(crate) const SNAPSHOTS: Rank = Rank::new(320, "the list of snapshots");
pub(crate) const CHAINS: Rank = Rank::new(330, "the chains of merges");
pub const DUE_LOADS: Rank = Rank::new(340, "keyspaces whose pressure is to be measured");
pub const DUE_MERGES: Rank = Rank::new(350, "keyspaces to be asked for a merge");
/// Of each memtable.
pub(crate) const MEM_TOMBSTONES: Rank = Rank::new(360, "the range tombstones of a memtable");
pub(crate) const MEM_CHARGES: Rank = Rank::new(370, "what a memtable's memory counts as");

// The caches.
/// Of each table. Held while it is read.
pub(crate) const TABLE_OPENING: Rank = Rank::new(400, "a table that is being opened");
pub(crate) const TABLE_CLOCK: Rank = Rank::new(410, "the clock of open tables");
pub(crate) const TABLE_HANDLES: Rank = Rank::new(420, "the handles of tables");
pub(crate) const TABLES_GIVEN: Rank = Rank::new(425, "the sequence numbers of ingested tables");
pub(crate) const BLOCKS_RESIZING: Rank = Rank::new(430, "the size of the block cache");

// State that any part of the engine may ask for.
pub const CLEANUP_KEPT: Rank = Rank::new(500, "files that the manifest may name");
pub const CLEANUP_READERS: Rank = Rank::new(505, "the readers next to this process");
pub const CLEANUP_WAITING: Rank = Rank::new(510, "files that may be removed");
pub const DURABLE_MANIFEST: Rank = Rank::new(520, "the durable length of the manifest");
/// Held while CURRENT is read.
pub const PLACE: Rank = Rank::new(530, "what CURRENT may be");
/// Held while it is written.
pub const READER_LEASE: Rank = Rank::new(535, "the lease of a reader");
pub const FOLLOWER_FAILURE: Rank = Rank::new(537, "what kept a follower from a refresh");
pub const BACKGROUND_ERROR: Rank = Rank::new(540, "why writing is off");
pub const PROGRESS: Rank = Rank::new(550, "the count of changes");
/// Of each thread that waits.
pub const FEED_BELL: Rank = Rank::new(560, "a wait for the next change");
