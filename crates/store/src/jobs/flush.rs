//! Flush: frozen memtables become tables of level 0, of many keyspaces at once.
//!
//! A group is written table by table, made durable together, and installed by one record of the
//! manifest: of 10,000 keyspaces with a key each, 128 share their syncs. (Four syncs for each took
//! minutes.) Large memtables make groups of one, which threads flush side by side.
//!
//! Memtables of a keyspace are installed in the order in which they were frozen, each with a new
//! epoch, and only after every sequence number in them is published (I4). The record says for each
//! keyspace the sequence number flushed through, and from which log on recovery must replay.
//!
//! Owns: the size of groups, and tables until an edit takes them over. Never does: freeze a
//! memtable, or decide when a flush begins (`schedule.rs` does).

use crate::catalog::cleanup::Cleanup;
use crate::catalog::install::TreeEdit;
use crate::jobs::JobContext;
use crate::jobs::read_triggered_merges;
use crate::manifest::record::Field;
use crate::merge::dropper::{DropRules, Dropper, Sink, surviving_tombstones};
use crate::merge::filters::OutputFilters;
use crate::merge::writer::{OutputSpec, Outputs, sync_table_names};
use crate::tree::Tree;
use crate::write::unflushed_writes::Frozen;
use std::sync::Arc;
use windrow_base::key::trailer_seq;
use windrow_base::{FileNumber, Result, SeqNo, check_invariant, debug_invariant, invariant};
use windrow_env::WriteFile;
use windrow_env::fs::is_out_of_descriptors;
use windrow_env::sync::atomic::Ordering;
use windrow_format::tombstone::Tombstones;
use windrow_plan::tree::{Edit, File, Version};
use windrow_read::events::{Event, JobId};
use windrow_read::memtable::{MemCursor, Memtable};
use windrow_read::snapshot_list::LiveSnapshots;
use windrow_read::stats::MergeInput;

/// Most memtables of a group: as many tables are open at a time.
const GROUP_MAX: usize = 128;
/// The largest part of the files that the process may hold open that a group takes: one in this.
const GROUP_FILES_PART: usize = 4;

/// The largest part of a memtable's share in a group, unless it is one memtable: one in this. More
/// goes to other threads.
const GROUP_PART: usize = 4;

/// The tables of a memtable, which are not part of a tree yet.
pub struct Flushed {
    files: Vec<File>,
    /// Tables whose bytes and names are not durable yet ([`JobContext::finish_tables`]).
    unfinished: Vec<Box<dyn WriteFile>>,
    /// New boundaries of level-0 partitions by which they were cut, if there are any. They take
    /// effect with the tables.
    boundaries: Option<Arc<[Vec<u8>]>>,
}

impl Flushed {
    /// Takes out the tables that are not durable yet.
    pub fn take_unfinished(&mut self) -> Vec<Box<dyn WriteFile>> {
        std::mem::take(&mut self.unfinished)
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the edit that installs them.
    pub fn edit(self, current: &Version, last_seq: SeqNo) -> Edit {
        let unfinished = self.unfinished.len();
        invariant!(R7, unfinished == 0, "{unfinished} tables of a flush are not durable yet");
        Edit { boundaries: self.boundaries, ..Edit::flush(current, self.files, last_seq) }
    }
}

/// A memtable of a group, written to tables.
struct WrittenMemtable {
    frozen: Frozen,
    job: JobId,
    flushed: Flushed,
    /// Reserves their share of filter memory until the edit is in.
    _filters: Arc<OutputFilters>,
}

/// Tables that no edit has taken over. If the group fails, they are removed.
struct UninstalledFlush<'a> {
    cleanup: &'a Arc<Cleanup>,
    written: Vec<WrittenMemtable>,
}

impl Drop for UninstalledFlush<'_> {
    fn drop(&mut self) {
        for written in &self.written {
            discard(self.cleanup, &written.flushed);
        }
    }
}

fn discard(cleanup: &Arc<Cleanup>, flushed: &Flushed) {
    flushed.files.iter().for_each(|file| cleanup.unlink_table(file.number));
}

impl JobContext {
    /// Returns the oldest frozen memtable, unless a checkpoint must not see it in tables.
    fn next_to_flush(&self, tree: &Tree) -> Option<Arc<Memtable>> {
        let view = tree.view();
        let mut pairs = view.frozen.windows(2);
        let is_ordered = pairs.all(|pair| pair[0].last_seq() >= pair[1].last_seq());
        debug_invariant!(I4, is_ordered, "frozen memtables of `{}` are out of order", tree.name);
        let oldest = view.frozen.last().cloned()?;
        let held = oldest.last_seq() > self.flush_through.load(Ordering::Acquire);
        // A close flushes every memtable; the checkpoint notices and gives up.
        (!held || self.workers.gate.is_closing()).then_some(oldest)
    }

    /// Most memtables of a group in this environment.
    pub fn group_max(&self) -> usize {
        GROUP_MAX.min(self.host.env.fs.open_files_max() / GROUP_FILES_PART).max(1)
    }

    /// Claims the next group to flush; empty if no memtable waits.
    pub fn claim_flush(&self) -> Vec<Frozen> {
        let limits = (self.group_max(), self.host.shares.memtable_bytes as usize / GROUP_PART);
        self.pipeline.queue().lock().unflushed.claim(limits, |tree| self.next_to_flush(tree))
    }

    /// Flushes a group that was claimed.
    ///
    /// # Errors
    /// An error of the file system. The memtables stay, and so do their logs.
    pub fn flush_group(&self, group: &[Frozen]) -> Result<()> {
        let last_seq = group.iter().map(|frozen| frozen.memtable.last_seq()).max();
        self.pipeline.queue().wait_visible(last_seq.unwrap_or(0), &self.host.write_state)?;
        let visible = self.pipeline.queue().visible();
        check_invariant!(
            I4,
            last_seq <= Some(visible),
            "a flush through {last_seq:?}, of which {visible} is published"
        );
        self.pipeline.segments.release_sealed();
        let begin_ns = self.host.env.clock.monotonic_ns();
        let mut loose =
            UninstalledFlush { cleanup: &self.cleanup, written: Vec::with_capacity(group.len()) };
        for frozen in group.iter().filter(|frozen| frozen.is_waiting()) {
            let written = match self.write_memtable(frozen) {
                // Other files took the descriptors meanwhile; the tables that are written hold
                // some.
                Err(error) if is_out_of_descriptors(&error) && !loose.written.is_empty() => {
                    self.finish_group(&mut loose, begin_ns)?;
                    self.write_memtable(frozen)
                }
                written => written,
            };
            loose.written.push(written?);
        }
        self.finish_group(&mut loose, begin_ns)?;
        self.host.note_progress();
        Ok(())
    }

    /// Makes the written tables of a group durable, and part of their trees.
    fn finish_group(&self, loose: &mut UninstalledFlush<'_>, begin_ns: u64) -> Result<()> {
        let unfinished = loose.written.iter_mut().flat_map(|w| w.flushed.take_unfinished());
        self.finish_tables(unfinished.collect())?;
        self.sync_logs_of_others(&loose.written)?;
        self.pipeline.segments.sync_to_keep()?;
        // From here on they may be in the manifest, whatever it returns.
        let written = std::mem::take(&mut loose.written);
        self.install_flushed(written, begin_ns)
    }

    fn write_memtable(&self, frozen: &Frozen) -> Result<WrittenMemtable> {
        let Frozen { tree, memtable } = frozen;
        debug_invariant!(I4, memtable.last_seq() > 0, "a memtable of `{}` is active", tree.name);
        let job = self.host.new_job_id();
        self.host.events.send_with(|| Event::FlushBegin {
            job,
            keyspace: tree.name.clone(),
            entries: memtable.entries(),
            memtable_bytes: memtable.allocated_bytes() as u64,
        });
        let filters = Arc::new(OutputFilters::of_flush(tree, memtable.entries()));
        let flushed = self.write_level0(tree, memtable, filters.clone())?;
        Ok(WrittenMemtable { frozen: frozen.clone(), job, flushed, _filters: filters })
    }

    /// Makes tables durable, and their names.
    ///
    /// # Errors
    /// An error of the file system; the tables must be discarded then.
    pub fn finish_tables(&self, files: Vec<Box<dyn WriteFile>>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        self.host.env.fs.finish_all(files)?;
        sync_table_names(&self.host)
    }

    /// Makes the log durable if it holds writes that are in no table yet and not of this group.
    /// Otherwise power loss could take those and leave the tables of this flush, with half a batch
    /// among them. Writes of one keyspace alone after its memtable are newer than that.
    fn sync_logs_of_others(&self, group: &[WrittenMemtable]) -> Result<()> {
        let lost = group.iter().find(|w| w.frozen.memtable.first_wal().is_none());
        let lost = lost.map(|written| &written.frozen.tree.name);
        debug_invariant!(R4, lost.is_none(), "a memtable of {lost:?} is flushed, and in no log");
        let own = match group {
            [] => return Ok(()),
            [one] => one.frozen.tree.view().memtables().filter(|m| m.first_wal().is_some()).count(),
            _ => group.len(),
        };
        self.pipeline.segments.sync_if_more_than(own)
    }

    /// Records that a group is in tables, in one record, and makes it visible. Keyspaces that were
    /// dropped meanwhile are left out.
    ///
    /// # Errors
    /// An error of the manifest, which is a background error: tables stay then.
    fn install_flushed(&self, mut group: Vec<WrittenMemtable>, begin_ns: u64) -> Result<()> {
        let mut catalog = self.catalog.lock_to_change()?;
        let keyspaces = &catalog.state().keyspaces;
        for gone in group.extract_if(.., |w| !keyspaces.contains_key(&w.frozen.tree.id)) {
            discard(&self.cleanup, &gone.flushed);
        }
        if group.is_empty() {
            return Ok(());
        }
        let memtables: Vec<_> = group.iter().map(|w| w.frozen.memtable.clone()).collect();
        let fields = self.pipeline.segments.log_begin(&memtables, catalog.state())?;
        check_log_begin(&fields, catalog.state().log_number)?;
        let (mut edits, mut installs) = (Vec::new(), Vec::<(Frozen, _, _)>::new());
        for WrittenMemtable { frozen, job, flushed, _filters } in group {
            let Frozen { tree, memtable } = &frozen;
            let is_oldest = is_oldest(&frozen);
            check_invariant!(I4, is_oldest, "a newer memtable of `{}` comes first", tree.name);
            let (last_seq, current) = (memtable.last_seq(), &keyspaces[&tree.id].version);
            let before = current.flushed_through;
            debug_invariant!(I4, before < last_seq, "tables go to {before}, then to {last_seq}");
            let summary = (job, flushed.files.len() as u64, flushed.bytes());
            edits.push(flushed.edit(current, last_seq));
            installs.push((frozen, summary, _filters));
        }
        let edits = edits.into_iter().zip(&installs).map(|(edit, (frozen, ..))| {
            let Frozen { tree, memtable } = frozen;
            TreeEdit { tree, edit, flushed: Some(memtable) }
        });
        let edits = edits.collect();
        catalog.install(fields, edits, || ())?;
        let mut queue = self.pipeline.queue().lock();
        let listed = queue.unflushed.frozen().len();
        memtables.iter().for_each(|memtable| queue.unflushed.flushed(memtable));
        let (left, gone) = (queue.unflushed.frozen().len(), installs.len());
        debug_invariant!(I4, listed == left + gone, "of {listed} frozen, {gone} go, {left} stay");
        drop(queue);
        let log_number = catalog.state().log_number;
        let rolled = catalog.roll_if_wanted(&self.pipeline.trees());
        let retire = |()| self.pipeline.segments.retire_below(log_number, &catalog.state().kept);
        let retired = rolled.and_then(retire);
        drop(catalog);
        for (frozen, summary, _) in &installs {
            self.count_flush(frozen, *summary, begin_ns);
            read_triggered_merges::measure_use(&self.host, &frozen.tree, summary.2);
            self.note_due(&frozen.tree);
        }
        retired
    }

    fn count_flush(
        &self,
        Frozen { tree, .. }: &Frozen,
        (job, files, bytes): (JobId, u64, u64),
        begin_ns: u64,
    ) {
        debug_invariant!(R16, (files == 0) == (bytes == 0), "{files} tables have {bytes} bytes");
        self.host.counters.flushes.add(1);
        self.host.counters.merged(0, MergeInput::default(), bytes);
        self.host.events.send_with(|| Event::FlushEnd {
            job,
            keyspace: tree.name.clone(),
            files,
            written_bytes: bytes,
            duration_us: (self.host.env.clock.monotonic_ns() - begin_ns) / 1000,
            error: None,
        });
    }

    /// Writes a memtable's entries to tables of level 0, not yet durable, cut at the boundaries
    /// that the policy wants from here on.
    pub fn write_level0(
        &self,
        tree: &Tree,
        memtable: &Memtable,
        filters: Arc<OutputFilters>,
    ) -> Result<Flushed> {
        let version = tree.version();
        let policy = tree.policy.load();
        let boundaries =
            tree.flush_sample().boundaries(&policy, &version, &tree.sizes.load(), memtable);
        let current = boundaries.as_ref().unwrap_or(&version.boundaries);
        let held = self.host.snapshots.held();
        let tombstones = memtable.tombstones_under(&held.seqs);
        let bytes = (memtable.allocated_bytes() as u64).min(tree.sizes.load().memtable_bytes);
        let spec = OutputSpec {
            level: 0,
            cutter: policy.flush_cutter(bytes, current),
            filters,
            tombstones: surviving_tombstones(&tombstones, &held, None),
        };
        let rules = self.flush_rules(tree, held, tombstones);
        let mut outputs = Outputs::new(&self.host, tree, spec);
        outputs.bytes_max = memtable.allocated_bytes() as u64;
        outputs.leaves_unfinished = true;
        drain(memtable, Dropper::new(rules), &mut outputs)?;
        let (files, unfinished) = outputs.write_out(0)?;
        let (written, most) = (files.iter().map(|f| f.entries).sum::<u64>(), memtable.entries());
        check_invariant!(R16, written <= most, "a flush wrote {written} entries of {most}");
        Ok(Flushed { files, unfinished, boundaries })
    }

    fn flush_rules(&self, tree: &Tree, held: LiveSnapshots, tombstones: Tombstones) -> DropRules {
        DropRules {
            order: tree.reads.order.clone(),
            judge_ms: 0,
            held,
            tombstones,
            outside: None,
            operator: tree.reads.operator.clone(),
            filter: None,
            output_level: 0,
        }
    }
}

/// Whether it is the memtable of its keyspace that was frozen first.
fn is_oldest(frozen: &Frozen) -> bool {
    let view = frozen.tree.view();
    let is_it = |oldest: &Arc<Memtable>| Arc::ptr_eq(oldest, &frozen.memtable);
    frozen.tree.is_dropped() || view.frozen.last().is_some_and(is_it)
}

/// Checks that recovery will not begin with a log before the one that it begins with now.
fn check_log_begin(fields: &[Field], before: FileNumber) -> Result<()> {
    let begins = fields.iter().find_map(|field| match field {
        Field::LogBegin { number, .. } => Some(*number),
        _ => None,
    });
    let number = begins.unwrap_or(before);
    check_invariant!(R4, before <= number, "replay goes from log {before} back to {number}");
    Ok(())
}

/// Passes every entry of a memtable through the filter of `merge/dropper.rs`.
fn drain(memtable: &Memtable, mut dropper: Dropper, sink: &mut impl Sink) -> Result<()> {
    let mut entries = memtable.cursor();
    entries.iter_mut().for_each(MemCursor::seek_first);
    let seq_max = memtable.seq_max();
    while let Some(cursor) = entries.as_mut().filter(|cursor| cursor.valid()) {
        if trailer_seq(cursor.trailer()) <= seq_max {
            dropper.push(cursor.key(), cursor.trailer(), cursor.value(), sink)?;
        }
        cursor.next();
    }
    let count = dropper.finish(sink)?;
    let (kept, seen) = (count.kept, count.seen);
    check_invariant!(R16, kept <= seen, "a flush kept {kept} entries of {seen}");
    let most = memtable.entries();
    debug_invariant!(R16, seen <= most, "a flush read {seen} entries of {most}");
    Ok(())
}
