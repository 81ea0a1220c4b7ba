//! Flush: the oldest frozen memtable of a keyspace becomes tables of level 0.
//!
//! Memtables of a keyspace are installed in the order in which they were
//! frozen, each with a new epoch, and only after every sequence number in
//! them is published (I4). The edit records the sequence number flushed
//! through, and from which log on recovery must replay.

use crate::core::{Core, Installed, dropped};
use crate::events::Event;
use crate::memtable::{MemCursor, Memtable};
use crate::merge::elide::{ElideRules, Elider, Sink, surviving_tombstones};
use crate::merge::filters::OutputFilters;
use crate::merge::writer::{OutputSpec, Outputs};
use crate::snapshot::Held;
use crate::tree::Tree;
use std::sync::Arc;
use windrow_base::{FileNumber, Result, SeqNo, mutant, unless_mutant};
use windrow_env::sync::atomic::Ordering;
use windrow_format::tombstone::Fragments;
use windrow_plan::tree::{Edit, File, Version};

/// A memtable as tables.
pub(crate) struct Flushed {
    files: Vec<File>,
    /// Borders of level 0's lanes that they were cut by, if those are new. They
    /// take effect with the tables.
    lanes: Option<Arc<[Vec<u8>]>>,
}

impl Flushed {
    /// The edit that installs them.
    pub(crate) fn edit(self, current: &Version, last_seq: SeqNo) -> Edit {
        Edit { lanes: self.lanes, ..Edit::flush(current, self.files, last_seq) }
    }
}

impl Core {
    /// The oldest frozen memtable, unless a checkpoint must not see it in tables.
    pub(crate) fn next_to_flush(&self, tree: &Tree) -> Option<Arc<Memtable>> {
        let view = tree.view();
        let oldest =
            if mutant!(FlushOutOfOrder) { view.frozen.first() } else { view.frozen.last() };
        let oldest = oldest.cloned()?;
        let held = oldest.last_seq() > self.flush_through.load(Ordering::Acquire);
        // A close flushes all there is; the checkpoint finds out and gives up.
        (!held || self.gate.is_closing()).then_some(oldest)
    }

    /// Flushes the oldest frozen memtable. `false` if there was none.
    ///
    /// # Errors
    /// What the file system said. The memtable stays, and so does its log.
    pub(crate) fn flush_oldest(&self, tree: &Tree) -> Result<bool> {
        let Some(memtable) = self.next_to_flush(tree) else {
            return Ok(false);
        };
        self.queue.wait_visible(memtable.last_seq(), &self.latch)?;
        self.release_sealed();
        let begin_ns = self.env.clock.monotonic_ns();
        let job = self.new_job_id();
        self.events.send_with(|| Event::FlushBegin {
            job,
            keyspace: tree.name.clone(),
            entries: memtable.list.len() as u64,
            memtable_bytes: memtable.list.allocated_bytes() as u64,
        });
        // Held to the end: its share of filter memory is reserved until the edit is in.
        let filters = Arc::new(self.flush_filters(tree, memtable.list.len() as u64));
        let flushed = self.write_level0(tree, &memtable, filters.clone())?;
        let bytes: u64 = flushed.files.iter().map(|f| f.bytes).sum();
        let mut last_seq = memtable.last_seq();
        if mutant!(FlushedTooFar) {
            last_seq = self.queue.visible();
        }
        unless_mutant!(OtherLogsSync, self.sync_logs_of_others(tree)?);
        let count = flushed.files.len() as u64;
        let outputs: Vec<FileNumber> = flushed.files.iter().map(|f| f.number).collect();
        let edit = |version: &Version| flushed.edit(version, last_seq);
        if self.try_install(tree, Some(&memtable), None, edit)? != Installed::Yes {
            self.cleanup.unlink_tables(&outputs);
            return Err(dropped(tree.id));
        }
        drop(filters);
        self.frozen_bytes.fetch_sub(memtable.reserved_bytes(), Ordering::AcqRel);
        self.note_progress();
        self.counters.flushes.add(1);
        self.counters.merged(0, 0, bytes);
        self.events.send_with(|| Event::FlushEnd {
            job,
            keyspace: tree.name.clone(),
            files: count,
            written_bytes: bytes,
            duration_us: (self.env.clock.monotonic_ns() - begin_ns) / 1000,
            error: None,
        });
        Ok(true)
    }

    /// Makes the log durable if it holds writes of other keyspaces that are in
    /// no table yet: else power loss could take those and leave what this
    /// flush made durable, half a batch among it.
    fn sync_logs_of_others(&self, tree: &Tree) -> Result<()> {
        let unflushed = |other: &Arc<Tree>| {
            other.id != tree.id && other.view().memtables().any(|m| m.first_wal().is_some())
        };
        if self.trees().iter().any(unflushed) {
            self.sync_wal()?;
        }
        Ok(())
    }

    /// Writes a memtable's entries to tables of level 0, durable with their names,
    /// cut at the borders of the lanes that the policy wants from here on.
    pub(crate) fn write_level0(
        &self,
        tree: &Tree,
        memtable: &Memtable,
        filters: Arc<OutputFilters>,
    ) -> Result<Flushed> {
        let version = tree.version();
        let policy = tree.policy.load();
        let lanes = policy.lanes(&version, &tree.sizes.load());
        let borders = lanes.as_ref().unwrap_or(&version.lanes);
        let held = self.snapshots.held();
        let tombstones = memtable.tombstones_under(&held.seqs);
        let spec = OutputSpec {
            level: 0,
            cutter: policy.flush_cutter(&tree.sizes.load(), borders),
            filters,
            tombstones: surviving_tombstones(&tombstones, &held, None),
        };
        let rules = self.flush_rules(tree, held, tombstones);
        let mut outputs = Outputs::new(self, tree, spec);
        drain(memtable, Elider::new(rules), &mut outputs)?;
        Ok(Flushed { files: outputs.finish(0)?, lanes })
    }

    fn flush_rules(&self, tree: &Tree, held: Held, tombstones: Fragments) -> ElideRules {
        ElideRules {
            order: tree.order.clone(),
            judge_ms: 0,
            held,
            tombstones,
            outside: None,
            operator: tree.operator.clone(),
            filter: None,
            output_level: 0,
        }
    }
}

/// Passes every entry of a memtable through the elider.
fn drain(memtable: &Memtable, mut elider: Elider, sink: &mut impl Sink) -> Result<()> {
    let mut cursor = MemCursor::new(memtable.list.clone());
    cursor.seek_first();
    while cursor.valid() {
        elider.push(cursor.key(), cursor.trailer(), cursor.value(), sink)?;
        cursor.next();
    }
    elider.finish(sink)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Db, Options};

    #[test]
    fn a_flushed_memtable_counts_while_an_iterator_holds_it() {
        let (env, _handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        let db = Db::open_with("db", options).unwrap();
        let fill = || (0..100).for_each(|n| db.put(format!("key{n}"), [7; 100]).unwrap());
        let blocks = db.default_keyspace().core.blocks.clone();
        let held = || blocks.held_bytes() - blocks.bytes_used();
        fill();
        db.flush().unwrap();
        assert_eq!(held(), 0, "nobody holds the first one");
        fill();
        let iter = db.iter();
        assert_eq!(held(), 0, "its memtable is active and has its own share");
        db.flush().unwrap();
        assert!(held() >= 100 * 100, "{}", held());
        drop(iter);
        assert_eq!(held(), 0);
        db.close().unwrap();
    }
}
