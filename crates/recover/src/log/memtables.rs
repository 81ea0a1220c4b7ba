//! The memtables that a reader keeps of the logs: the entries that are in no table, by keyspace.
//!
//! A memtable is filled further while earlier moments are read: they see only their own sequence
//! numbers. Entries that are in tables are released: a whole memtable at once, while one that is
//! partly in tables is made again from the rest. An operand that was found in both would count
//! twice.
//!
//! Owns: the memtables. Never does: read a log.

use super::seq_chain::LogBatch;
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::key::{Kind, trailer_kind, trailer_seq};
use windrow_base::{Error, KeyOrder, KeyspaceId, Result, SeqNo};
use windrow_read::memtable::Memtable;
use windrow_skiplist::ChunkPool;
use windrow_store::manifest::state::{KeyspaceState, ManifestState};

/// The memtables of the records that were read.
pub struct LogMemtables {
    keyspaces: BTreeMap<KeyspaceId, Vec<Filled>>,
    chunks: Arc<ChunkPool>,
    /// The size at which the next memtable begins.
    memtable_bytes: usize,
}

/// A memtable, and the range of sequence numbers in it.
struct Filled {
    memtable: Arc<Memtable>,
    first_seq: SeqNo,
    last_seq: SeqNo,
}

impl LogMemtables {
    /// No memtables yet. Each will grow to about `memtable_bytes`.
    pub fn new(chunks: Arc<ChunkPool>, memtable_bytes: usize) -> LogMemtables {
        LogMemtables { keyspaces: BTreeMap::new(), chunks, memtable_bytes }
    }

    /// The memtables of a keyspace, oldest first.
    pub fn of(&self, id: KeyspaceId) -> impl Iterator<Item = &Arc<Memtable>> {
        self.keyspaces.get(&id).into_iter().flatten().map(|filled| &filled.memtable)
    }

    /// Takes the operations of a batch that are in no table.
    ///
    /// # Errors
    /// `Corruption` for an operation that is damaged, or of a keyspace that was never made.
    pub fn take(&mut self, batch: LogBatch<'_>, state: &ManifestState) -> Result<()> {
        for (seq, op) in (batch.first_seq..).zip(batch.ops) {
            let op = op?;
            let Some(keyspace) = keyspace(state, op.keyspace)? else { continue };
            if seq > keyspace.version.flushed_through {
                let memtable = self.memtable(op.keyspace, &keyspace.version.order, seq);
                memtable.insert(op.kind, seq, op.key, op.value);
            }
        }
        Ok(())
    }

    /// The memtable for the next entry of a keyspace.
    fn memtable(&mut self, id: KeyspaceId, order: &KeyOrder, seq: SeqNo) -> &Memtable {
        let list = self.keyspaces.entry(id).or_default();
        let most = self.memtable_bytes;
        let has_room = |last: &Filled| last.memtable.allocated_bytes() < most;
        if !list.last().is_some_and(has_room) {
            let memtable = Arc::new(Memtable::new(order.clone(), self.chunks.clone()));
            list.push(Filled { memtable, first_seq: seq, last_seq: seq });
        }
        let last = list.last_mut().expect("there is one with room");
        last.last_seq = seq;
        last.memtable.freeze(seq);
        &last.memtable
    }

    /// Releases entries that are in tables, and keyspaces that were dropped.
    pub fn let_go(&mut self, state: &ManifestState) {
        let chunks = &self.chunks;
        self.keyspaces.retain(|id, list| {
            let Some(keyspace) = state.keyspaces.get(id) else { return false };
            let through = keyspace.version.flushed_through;
            list.retain(|filled| through < filled.last_seq);
            for filled in list.iter_mut().filter(|filled| filled.first_seq <= through) {
                *filled = filled.without(through, &keyspace.version.order, chunks);
            }
            !list.is_empty()
        });
    }
}

/// The keyspace that an operation is for; `None` where it was dropped.
///
/// # Errors
/// `Corruption` for a keyspace that was never made.
pub fn keyspace(state: &ManifestState, id: KeyspaceId) -> Result<Option<&KeyspaceState>> {
    match state.keyspaces.get(&id) {
        None if id.0 >= state.next_keyspace => {
            Err(Error::corruption(format!("keyspace {id} was never made")))
        }
        found => Ok(found),
    }
}

impl Filled {
    /// A memtable of the entries that come after `through`.
    fn without(&self, through: SeqNo, order: &KeyOrder, chunks: &Arc<ChunkPool>) -> Filled {
        let kept = Memtable::new(order.clone(), chunks.clone());
        if let Some(mut cursor) = self.memtable.cursor() {
            cursor.seek_first();
            while cursor.valid() {
                let seq = trailer_seq(cursor.trailer());
                if seq > through {
                    let kind = Kind::from_u8(trailer_kind(cursor.trailer()));
                    let kind = kind.expect("an entry that was inserted with its kind");
                    kept.insert(kind, seq, cursor.key(), cursor.value());
                }
                cursor.next();
            }
        }
        for chunk in &*self.memtable.tombstones() {
            for (start, end, seq) in chunk.tombstones().filter(|(_, _, seq)| *seq > through) {
                kept.insert(Kind::RangeDelete, seq, start, end);
            }
        }
        kept.freeze(self.last_seq);
        Filled { memtable: Arc::new(kept), first_seq: through + 1, last_seq: self.last_seq }
    }
}
