//! The values that keys had before a change.
//!
//! A feed reads them at a moment before, with its own changes since over that, as a transaction reads
//! its writes over a snapshot. At the next moment it begins from scratch (`moments.rs`).
//!
//! Expiry is judged at the moment. So a value that readers saw before the change is never missing; one
//! that expired shortly before is given all the same.
//!
//! Nothing is known of an ingestion's entries until the next moment, since the log has none of them.
//!
//! Owns: the changes of the window that were handed out. Never does: read a log.

use super::change::{OldValue, Operation, ReadChange};
use super::moments::{HeldState, Moments};
use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use crate::transaction::own_writes::OwnWrites;
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::{Error, KeyspaceId, Kind, Result, SeqNo, unless_mutant};
use windrow_format::block::Charge;
use windrow_read::read::is_refused_merge;
use windrow_recover::handle::Handle;
use windrow_store::manifest::record::DroppedKeyspace;

/// The part of the memory budget that the changes of a window may take: one byte in four.
const WINDOW_PART: u64 = 4;

/// The bytes by which they grow before they are counted again.
const COUNTED_STEP_BYTES: usize = 64 << 10;

/// Finds old values.
pub(super) struct OldValues {
    base: HeldState,
    /// The keyspaces with changes in this window; `None`: nothing is known of it.
    spaces: BTreeMap<KeyspaceId, Option<Space>>,
    ahead: Arc<Moments>,
    /// How many operations of the next change have theirs.
    found: usize,
    bytes: usize,
    bytes_max: usize,
    /// Counts them as memory that readers hold.
    charge: Option<(usize, Charge)>,
}

/// The changes of a window in one keyspace.
struct Space {
    keyspace: Keyspace,
    own: OwnWrites,
    below: Below,
}

/// The state of a keyspace below the changes of a window.
#[derive(Clone, Copy, PartialEq)]
enum Below {
    /// As it is at the moment.
    Moment,
    /// Nothing was there.
    Nothing,
    /// Entries came in that the log does not have.
    Unknown,
}

impl OldValues {
    /// Old values behind a snapshot. `dropped`: the keyspaces that were dropped lately.
    pub(super) fn new(snapshot: Snapshot, from: SeqNo, dropped: &[DroppedKeyspace]) -> OldValues {
        let database = snapshot.inner.database.clone();
        let bytes_max = (database.settings.memory_bytes / WINDOW_PART) as usize;
        let mut base = HeldState::of(snapshot);
        let is_lost = |drop: &&DroppedKeyspace| base.tree(drop.id).is_none();
        base.lost = dropped.iter().filter(is_lost).map(|drop| drop.id).collect();
        OldValues {
            base,
            spaces: BTreeMap::new(),
            ahead: Arc::new(Moments::new(database, from)),
            found: 0,
            bytes: 0,
            bytes_max,
            charge: None,
        }
    }

    /// The moments ahead, which the source tells of the steps of writing.
    pub(super) fn ahead(&self) -> &Arc<Moments> {
        &self.ahead
    }

    /// Notes that the logs were read up to `next_seq`, and that changes are ready, or none.
    pub(super) fn look_ahead(
        &self,
        (next_seq, is_ready): (SeqNo, bool),
        now: impl FnOnce() -> Handle,
    ) {
        if is_ready || self.base.snapshot.seq() + 1 < next_seq {
            self.ahead.look_ahead(next_seq, &now());
        } else {
            self.ahead.reads_from(next_seq);
        }
    }

    /// Begins a new window if there is a moment before number `next_seq`, the next to be handed out.
    pub(super) fn go_on(&mut self, next_seq: SeqNo) {
        if self.found == 0
            && let Some(moment) = self.ahead.last_before(next_seq)
        {
            self.base = moment;
            self.spaces.clear();
            (self.bytes, self.charge) = (0, None);
        }
    }

    /// Finds the old values of the next change. After an error it goes on with those that it lacks.
    ///
    /// # Errors
    /// Of a read; `InvalidArgument` if too much lies between the change and the moment before it.
    pub(super) fn find(
        &mut self,
        ReadChange { change, keyspaces }: &mut ReadChange,
        now: &dyn Fn() -> Handle,
    ) -> Result<()> {
        self.base.snapshot.inner.database.write_state.check_process()?;
        if self.found == 0 && self.bytes_max < self.bytes {
            return Err(self.too_much(change.seq));
        }
        let operations = change.operations.iter_mut().zip(keyspaces).skip(self.found);
        for (operation, &mut id) in operations {
            let OldValues { base, spaces, bytes, .. } = self;
            let space = spaces.entry(id).or_insert_with(|| Space::begin(base, id, now));
            if let Some(space) = space {
                let before = space.own.memory_bytes();
                let applied = space.apply(operation, &base.snapshot);
                *bytes = *bytes + space.own.memory_bytes() - before;
                applied?;
            }
            self.found += 1;
        }
        self.found = 0;
        let counted = self.charge.as_ref().map_or(0, |(bytes, _)| *bytes);
        if counted + COUNTED_STEP_BYTES <= self.bytes {
            let blocks = &self.base.snapshot.inner.database.caches.blocks;
            self.charge = Some((self.bytes, blocks.hold(self.bytes as u64)));
        }
        Ok(())
    }

    fn too_much(&self, seq: SeqNo) -> Error {
        Error::invalid(format!(
            "the changes from {} to {seq} take more than the {} bytes that old values may (a \
             quarter of memory_bytes): make the feed as soon as its snapshot S is taken, from S + 1 \
             on; from then on it takes snapshots itself, as the database is written to",
            self.base.snapshot.seq() + 1,
            self.bytes_max,
        ))
    }
}

impl Space {
    /// A keyspace without changes in this window; `None` if it is gone, and nobody has kept it.
    fn begin(base: &HeldState, id: KeyspaceId, now: &dyn Fn() -> Handle) -> Option<Space> {
        let snapshot = &base.snapshot.inner;
        if let Some(tree) = base.tree(id) {
            let is_readable = !tree.is_dropped() || tree.is_seen_by(snapshot.id);
            let below = if is_readable { Below::Moment } else { Below::Unknown };
            return Some(Space::new(Keyspace::new(snapshot.database.clone(), tree.clone()), below));
        }
        if base.lost.contains(&id) {
            return None;
        }
        let now = now();
        let tree = now.trees().get(id).cloned()?;
        // It was made later. Its order and merge operator serve; the moment has none of its entries.
        Some(Space::new(Keyspace::new(now, tree), Below::Nothing))
    }

    fn new(keyspace: Keyspace, below: Below) -> Space {
        let own = OwnWrites::new(&keyspace.tree.reads.order);
        Space { keyspace, own, below }
    }

    /// Gives an operation its old value, and takes it over.
    fn apply(&mut self, operation: &mut Operation, base: &Snapshot) -> Result<()> {
        match operation {
            Operation::Put { key, value, expiry_ms, old, .. } => {
                *old = self.old(key, base)?;
                unless_mutant!(OldValueStale, self.own.note(Kind::Put, key, value, *expiry_ms));
            }
            Operation::Delete { key, old, .. } | Operation::SingleDelete { key, old, .. } => {
                *old = self.old(key, base)?;
                self.own.note(Kind::Delete, key, &[], None);
            }
            Operation::Merge { key, operand, expiry_ms, old, .. } => {
                *old = self.old(key, base)?;
                match old {
                    // So each operand is merged once, however many there are.
                    OldValue::Value(value) => self.own.settle(key, Some(value)),
                    OldValue::Absent => self.own.settle(key, None),
                    OldValue::Unknown => {}
                }
                self.own.note(Kind::Merge, key, operand, *expiry_ms);
            }
            Operation::DeleteRange { from, to, .. } => {
                self.own.note(Kind::RangeDelete, from, to, None);
            }
            Operation::Ingested { .. } => {
                self.own = OwnWrites::new(&self.keyspace.tree.reads.order);
                unless_mutant!(IngestionKnown, self.below = Below::Unknown);
            }
            Operation::KeyspaceDropped { .. } => {}
        }
        Ok(())
    }

    /// The value of a key before the next operation.
    fn old(&self, key: &[u8], base: &Snapshot) -> Result<OldValue> {
        let own = self.own.get(key).unwrap_or_default().at(base.inner.now_ms);
        if own.base.is_none() && self.below == Below::Unknown {
            return Ok(OldValue::Unknown);
        }
        let below = || match self.below {
            Below::Moment => self.keyspace.get_at(base, key),
            Below::Nothing | Below::Unknown => Ok(None),
        };
        match own.value((&self.keyspace.tree.reads, key), below) {
            Ok(Some(value)) => Ok(OldValue::Value(value.to_vec())),
            Ok(None) => Ok(OldValue::Absent),
            // Readers had no value of it either.
            Err(error) if is_refused_merge(&error) => Ok(OldValue::Unknown),
            Err(error) => Err(error),
        }
    }
}
