//! A transaction that is not registered: it begins without a lock, and as long as no other thread
//! writes in between, nothing is recorded for it either.
//!
//! Its commit is admitted like that of any other transaction. If the writes since its beginning are
//! not known, that is a conflict as well, and writes are recorded from then on: the next attempt is
//! decided by the recorded writes.
//!
//! Owns: the set of its reads. Never does: hold writes back until its commit, or try again.

use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use std::ops::Bound;
use windrow_base::{ErrorKind, Result, SeqNo};
use windrow_read::options::WriteSync;
use windrow_read::slice::Slice;
use windrow_recover::handle::Handle;
use windrow_store::write::batch::Batch;
use windrow_store::write::read_set::{ReadRange, ReadSet};

/// One attempt of a write that depends on what it reads.
pub(super) struct LightTransaction<'a> {
    pub(super) database: &'a Handle,
    pub(super) snapshot: Snapshot,
    reads: ReadSet,
}

impl<'a> LightTransaction<'a> {
    /// Begins an attempt that reads the present state.
    pub(super) fn begin(database: &'a Handle) -> LightTransaction<'a> {
        let snapshot = Snapshot::take(database);
        LightTransaction { database, snapshot, reads: ReadSet::default() }
    }

    /// The value of a key. The write then depends on it.
    pub(super) fn get(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<Slice>> {
        let tree = &keyspace.tree;
        self.reads.key(tree.id, &tree.reads.order, key, self.snapshot.seq())?;
        keyspace.get_at(&self.snapshot, key)
    }

    /// Makes the write depend on a range that was read.
    pub(super) fn passed(
        &mut self,
        keyspace: &Keyspace,
        (lower, upper): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<()> {
        let range = ReadRange { lower, upper, seq: self.snapshot.seq() };
        self.reads.range(keyspace.tree.id, range).map(|_| ())
    }

    /// Writes a batch if nothing that was read was written since.
    ///
    /// # Errors
    /// `Conflict`: nothing is written, and the next attempt may commit; the errors of a write.
    pub(super) fn commit(self, batch: &mut Batch, sync: WriteSync) -> Result<SeqNo> {
        let pipeline = &self.database.pipeline;
        let written = pipeline.write_batch_after(batch, sync, Some(&self.reads));
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            pipeline.record_writes(None)?;
        }
        written
    }
}
