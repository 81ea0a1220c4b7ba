//! Output tables of a flush or merge: cut, filled, synced, described.
//!
//! Tables are synced together: their bytes go out while they are written, and one sync at the end
//! covers many. At most [`UNSYNCED_MAX`] wait for it.
//!
//! Range tombstones are dealt out to the outputs: the table that ends before key `k` takes the
//! parts of them between its lower cut and `k`, so that together the outputs cover exactly the
//! ranges of the inputs, gaps between tables included.
//!
//! A table whose writing fails is discarded with its siblings; the job may be run again under new
//! numbers.
//!
//! Owns: the tables of one job until they are handed over. Never does: touch the manifest, or
//! decide which entries stay (`dropper.rs`).

use crate::host::Host;
use crate::merge::carried_blocks::CarriedBlocks;
use crate::merge::dropper::Sink;
use crate::merge::filters::{OutputFilters, TableSoFar};
use crate::merge::heat::Heat;
use crate::tree::Tree;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use windrow_base::key::{TRAILER_BYTES, push_internal};
use windrow_base::{Epoch, FileNumber, FileUid, Result, SeqNo, check_invariant};
use windrow_env::WriteFile;
use windrow_env::fs::{WriteOptions, is_out_of_descriptors};
use windrow_format::codec::Codec;
use windrow_format::names;
use windrow_format::table::{TableOptions, TableSummary, TableWriter};
use windrow_format::tombstone::{FragmentRef, Tombstones};
use windrow_plan::Cutter;
use windrow_plan::tree::File;

/// A table that grows large writes partitions of its filter before it is complete: its filter is
/// decided again now and then, at multiples of this.
const DECIDE_ENTRIES: u64 = 256;

/// A table that is likely to be smaller is not preallocated.
const PREALLOCATED_MIN: u64 = 256 << 10;

/// The most entries between two decisions.
const DECIDE_ENTRIES_MAX: u64 = 1 << 14;

/// Most tables of a merge that wait to be synced with others: each holds a descriptor, and the loss
/// of a failure or a crash must be bounded.
pub const UNSYNCED_MAX: usize = 16;
/// The largest part of the files that the process may hold open that they take: one in this.
const UNSYNCED_FILES_PART: usize = 16;

/// The properties that all outputs share.
pub struct OutputSpec {
    pub level: u32,
    pub cutter: Cutter,
    pub filters: Arc<OutputFilters>,
    /// The range tombstones that survive, to deal out.
    pub tombstones: Tombstones,
}

struct Open {
    number: FileNumber,
    uid: FileUid,
    table: TableWriter,
}

struct Finished {
    number: FileNumber,
    uid: FileUid,
    summary: TableSummary,
    hotness: u64,
    statistics: Vec<u8>,
}

/// A borrow for a job, or a share for an ingestion.
enum BorrowedOrShared<'a, T> {
    Borrowed(&'a T),
    Counted(Arc<T>),
}

impl<T> Deref for BorrowedOrShared<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            BorrowedOrShared::Borrowed(it) => it,
            BorrowedOrShared::Counted(it) => it,
        }
    }
}

impl<T> Clone for BorrowedOrShared<'_, T> {
    fn clone(&self) -> Self {
        match self {
            BorrowedOrShared::Borrowed(it) => BorrowedOrShared::Borrowed(it),
            BorrowedOrShared::Counted(it) => BorrowedOrShared::Counted(it.clone()),
        }
    }
}

/// Files of tables that are written and not durable yet.
pub type Unfinished = Vec<Box<dyn WriteFile>>;

/// Writes the outputs of one job.
pub struct Outputs<'a> {
    host: BorrowedOrShared<'a, Host>,
    tree: BorrowedOrShared<'a, Tree>,
    spec: OutputSpec,
    /// The cut before the open table: its tombstones begin there.
    lower: Option<Vec<u8>>,
    open: Option<Open>,
    finished: Vec<Finished>,
    internal: Vec<u8>,
    /// `None` if the policy does not ask how hot keys are.
    pub(crate) heat: Option<Heat<'a>>,
    /// `None` for jobs that do not read tables.
    pub(crate) carried: Option<&'a mut CarriedBlocks>,
    /// The tables that are rewritten: their own numbers, and those of the tables that they were
    /// made of and that still exist. `None` if that is not known.
    pub made_of: Option<Vec<(Arc<File>, FileNumber)>>,
    /// Entries kept so far.
    pub entries: u64,
    /// Most entries that may still be kept, this one included.
    pub(crate) entries_left: u64,
    /// Most bytes that all tables together may get, about: no more is reserved.
    pub(crate) bytes_max: u64,
    /// Tables that are written and not durable yet.
    unfinished: Unfinished,
    /// Whether the caller makes them durable, with those of others.
    pub(crate) leaves_unfinished: bool,
    /// The tree gives the entries a sequence number above this one.
    pub given_above: Option<SeqNo>,
}

impl Outputs<'static> {
    /// Makes the outputs of an ingestion, which goes on after the call that began them.
    pub fn shared(host: Arc<Host>, tree: Arc<Tree>, spec: OutputSpec) -> Outputs<'static> {
        Outputs::over(BorrowedOrShared::Counted(host), BorrowedOrShared::Counted(tree), spec)
    }
}

impl<'a> Outputs<'a> {
    pub fn new(host: &'a Host, tree: &'a Tree, spec: OutputSpec) -> Outputs<'a> {
        Outputs::over(BorrowedOrShared::Borrowed(host), BorrowedOrShared::Borrowed(tree), spec)
    }

    fn over(
        host: BorrowedOrShared<'a, Host>,
        tree: BorrowedOrShared<'a, Tree>,
        spec: OutputSpec,
    ) -> Outputs<'a> {
        Outputs {
            host,
            tree,
            spec,
            lower: None,
            open: None,
            finished: Vec::new(),
            internal: Vec::new(),
            heat: None,
            carried: None,
            made_of: Some(Vec::new()),
            entries: 0,
            entries_left: u64::MAX,
            bytes_max: u64::MAX,
            unfinished: Vec::new(),
            leaves_unfinished: false,
            given_above: None,
        }
    }

    /// Notes whether the next entry, of `bytes`, comes from a cached block.
    #[inline]
    pub(crate) fn note_source(&mut self, is_cached: bool, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.table.note_source(is_cached, bytes);
        }
    }

    /// The number of tables that were cut, and of those that are not durable yet.
    #[cfg(any(test, feature = "testing"))]
    pub fn counts(&self) -> (usize, usize) {
        (self.finished.len(), self.unfinished.len())
    }

    /// Bytes to reserve for the next table: its size, as far as that can be told, but no more than
    /// is left to write. None if the system's cache gathers writes and finds room for all of them
    /// at once: the file system would only have to mark reserved blocks as written, and to take
    /// back the unused ones.
    pub fn preallocate_bytes(&self) -> u64 {
        let sizes = self.finished.iter().map(|file| file.summary.file_bytes);
        let left = self.bytes_max.saturating_sub(sizes.clone().sum());
        // If cuts are not by size, tables are about as large as those before.
        let before = sizes.max().unwrap_or(u64::MAX);
        let likely = self.tree.sizes.load().file_bytes.min(left).min(before);
        if !self.host.settings.direct_io || likely < PREALLOCATED_MIN {
            // For a small table it is one more change of the file, and no use.
            return 0;
        }
        likely.saturating_add(likely / 8)
    }

    fn begin_table(&mut self) -> Result<()> {
        let host = self.host.clone();
        // Not into a directory that was restored under the database.
        host.place.check()?;
        let number = host.new_file_number();
        let uid = host.env.random.next_u64();
        let settings = &host.settings;
        let own = self.tree.settings();
        let list = own.compression.as_deref().unwrap_or(settings.compression.as_str());
        let codec = codec_of(list, self.spec.level)?;
        let options = TableOptions {
            uid,
            keyspace: self.tree.id,
            order: self.tree.reads.order.clone(),
            block_bytes: settings.block_bytes as usize,
            restart_interval: 16,
            hash_index: settings.hash_index,
            codec,
            codec_level: settings.zstd_level as i32,
            filter_bits_per_key: self.spec.filters.bits_at_first(),
            late_filter: self.spec.filters.decides_late(),
            partition_bytes: settings.partition_bytes as usize,
            level_hint: self.spec.level,
            created_ms: host.env.clock.wall_ms(),
            given_above: self.given_above,
            database_uid: Some(host.database_uid),
        };
        let path = host.dir.join(names::table(number));
        let preallocate_bytes = self.preallocate_bytes();
        let write = WriteOptions { direct: settings.direct_io, preallocate_bytes };
        let file = match host.env.fs.create(&path, write) {
            // Other files took the descriptors meanwhile; the tables that are written hold some.
            Err(error) if is_out_of_descriptors(&error) && self.may_finish() => {
                self.finish_tables()?;
                host.env.fs.create(&path, write)?
            }
            file => file?,
        };
        let table = TableWriter::new(file, options)?;
        self.open = Some(Open { number, uid, table });
        Ok(())
    }

    /// The open table for the decision on its filter.
    fn so_far<'k>(&'k self, upper: Option<&'k [u8]>) -> TableSoFar<'k> {
        let table = self.open.as_ref().map(|open| &open.table);
        let (pending_keys, own_bytes) = table.map_or((0, 0), TableWriter::filter_progress);
        let before: u64 = self.finished.iter().map(|f| f.summary.filter_bytes).sum();
        TableSoFar {
            lower: self.lower.as_deref(),
            upper,
            entries: table.map_or(0, TableWriter::entries),
            job_entries: self.entries,
            pending_keys,
            written_bytes: before + own_bytes,
            pieces: table.map_or(1, TableWriter::filter_pieces_max) as u64,
        }
    }

    /// Decides the open table's filter by the facts known now. `more_keys` may come before it is
    /// decided again.
    fn decide_filter(&mut self, upper: Option<&[u8]>, more_keys: u64) {
        let mut table = self.so_far(upper);
        table.pending_keys += more_keys as usize;
        let bits = self.spec.filters.bits(&table);
        if let Some(open) = &mut self.open {
            open.table.set_filter_bits(bits);
        }
    }

    /// Decides it at every doubling of the table, and every [`DECIDE_ENTRIES_MAX`] entries.
    #[cold]
    fn decide_while_open(&mut self, user_key: &[u8]) {
        let entries = self.open.as_ref().map_or(0, |open| open.table.entries());
        if entries.is_power_of_two() || entries.is_multiple_of(DECIDE_ENTRIES_MAX) {
            self.decide_filter(Some(user_key), entries.min(DECIDE_ENTRIES_MAX));
        }
    }

    /// Ends the open table; its tombstones reach up to `upper`.
    fn end_table(&mut self, upper: Option<&[u8]>) -> Result<()> {
        if self.open.is_none() {
            let none = self.tombstones_to(upper).all(|layer| layer.count() == 0);
            if none {
                return Ok(());
            }
            self.begin_table()?;
        }
        if self.spec.filters.decides_late() {
            self.decide_filter(upper, 0);
        }
        let statistics = self.spec.filters.statistics(&self.so_far(upper));
        self.carry_last_block()?;
        let mut open = self.open.take().expect("begun just above");
        self.add_tombstones(&mut open.table, upper)?;
        let Open { number, uid, mut table } = open;
        if let Some(numbers) = self.made_of(upper) {
            table.set_made_of(numbers);
        }
        let (summary, file) = match table.write_out() {
            Ok(written) => written,
            Err(error) => {
                self.discard(number);
                return Err(error);
            }
        };
        self.unfinished.push(file);
        let hotness = self.heat.as_mut().map_or(0, Heat::end_table);
        self.finished.push(Finished { number, uid, summary, hotness, statistics });
        self.lower = upper.map(<[u8]>::to_vec);
        let most = UNSYNCED_MAX.min(self.host.env.fs.open_files_max() / UNSYNCED_FILES_PART);
        if !self.leaves_unfinished && self.unfinished.len() >= most {
            self.finish_tables()?;
        }
        Ok(())
    }

    /// Ends the data blocks of the open table, and carries the last one.
    fn carry_last_block(&mut self) -> Result<()> {
        if let (Some(carried), Some(Open { uid, table, .. })) = (&mut self.carried, &mut self.open)
        {
            table.end_last_block()?;
            table.take_cached().into_iter().for_each(|block| carried.add(*uid, block));
        }
        Ok(())
    }

    /// Whether some tables wait to be synced, and may be synced now.
    fn may_finish(&self) -> bool {
        !self.leaves_unfinished && !self.unfinished.is_empty()
    }

    /// Makes the waiting tables durable, without their names.
    fn finish_tables(&mut self) -> Result<()> {
        match std::mem::take(&mut self.unfinished) {
            files if files.is_empty() => Ok(()),
            files => self.host.env.fs.finish_all(files),
        }
    }

    /// Adds the range tombstones between the last cut and `upper` to a table. A table that takes
    /// all, as a flush's does, shares them.
    fn add_tombstones(&self, table: &mut TableWriter, upper: Option<&[u8]>) -> Result<()> {
        if self.lower.is_none() && upper.is_none() {
            let mut layers = self.spec.tombstones.layers().iter();
            return layers.try_for_each(|layer| table.add_tombstone_layer(layer));
        }
        for layer in self.tombstones_to(upper) {
            { layer }.try_for_each(|fragment| table.add_fragment(fragment))?;
            table.end_tombstone_layer();
        }
        Ok(())
    }

    /// By layer, the fragments of range tombstones that the open table takes.
    fn tombstones_to<'k>(
        &'k self,
        upper: Option<&'k [u8]>,
    ) -> impl Iterator<Item = impl Iterator<Item = FragmentRef<'k>>> {
        let (order, lower) = (&self.tree.reads.order, self.lower.as_deref());
        let layers = self.spec.tombstones.layers().iter();
        layers.map(move |layer| layer.iter().filter_map(move |f| f.within(order, lower, upper)))
    }

    /// The tables that the open table is made of; its keys reach up to `upper`. That matters for
    /// merge operands alone.
    fn made_of(&self, upper: Option<&[u8]>) -> Option<Vec<FileNumber>> {
        let order = &self.tree.reads.order;
        let meets = |file: &File| {
            let after = |lower| order.compare(&file.largest, lower).is_ge();
            let before = |upper| order.compare(&file.smallest, upper).is_lt();
            self.lower.as_deref().is_none_or(after) && upper.is_none_or(before)
        };
        let made_of =
            self.made_of.as_ref().filter(|_| self.tree.record.merge_operator.is_some())?;
        let met = made_of.iter().filter(|(file, _)| meets(file));
        let numbers: BTreeSet<FileNumber> = met.map(|(_, number)| *number).collect();
        Some(numbers.into_iter().collect())
    }

    /// Ends the last table and makes all durable, and their names. Returns the files, by key
    /// ascending, each with `epoch`.
    ///
    /// # Errors
    /// An error of the file system; the outputs are discarded then.
    pub fn finish(mut self, epoch: Epoch) -> Result<Vec<File>> {
        self.end_last()?;
        self.finish_tables()?;
        if !self.finished.is_empty() {
            sync_table_names(&self.host)?;
        }
        Ok(self.describe_all(epoch))
    }

    /// Ends the last table. Returns the tables, and the files that the caller must make durable,
    /// and their names.
    ///
    /// # Errors
    /// As [`Outputs::finish`].
    pub(crate) fn write_out(mut self, epoch: Epoch) -> Result<(Vec<File>, Unfinished)> {
        self.end_last()?;
        let unfinished = std::mem::take(&mut self.unfinished);
        Ok((self.describe_all(epoch), unfinished))
    }

    fn end_last(&mut self) -> Result<()> {
        self.end_table(None)?;
        let written: u64 = self.finished.iter().map(|f| f.summary.entries).sum();
        let due = self.entries;
        check_invariant!(R16, written == due, "a job wrote {written} entries of {due}");
        Ok(())
    }

    fn describe_all(&mut self, epoch: Epoch) -> Vec<File> {
        let created_ms = self.host.env.clock.wall_ms();
        let finished = std::mem::take(&mut self.finished);
        finished.into_iter().map(|f| describe(f, epoch, created_ms)).collect()
    }
}

impl Outputs<'_> {
    /// Removes a table that no manifest ever named, at once: the job may have failed because the
    /// device lacked the room that the table takes. A table that stays is removed by the next open.
    /// In a directory that was replaced the name may be another table's.
    fn discard(&self, number: FileNumber) {
        if self.host.place.check().is_ok() {
            let _ = self.host.env.fs.remove(&self.host.dir.join(names::table(number)));
        }
    }
}

/// Makes the names of tables durable.
///
/// # Errors
/// An error of the file system, which is a background error.
pub(crate) fn sync_table_names(host: &Host) -> Result<()> {
    host.env.fs.sync_dir(&host.dir).inspect_err(|error| {
        // Without a descriptor nothing was synced yet.
        if !is_out_of_descriptors(error) {
            host.set_background_error(error);
        }
    })
}

impl Sink for Outputs<'_> {
    #[inline]
    fn keep(&mut self, user_key: &[u8], trailer: u64, value: &[u8], first: bool) -> Result<()> {
        if first {
            // The cutter follows every key, also one that begins a table.
            let (bytes, entries) = self
                .open
                .as_ref()
                .map_or((0, 0), |open| (open.table.estimated_bytes(), open.table.entries()));
            let left = || self.entries_left.saturating_mul(bytes / entries.max(1));
            if self.spec.cutter.cut_before(&self.tree.reads.order, user_key, bytes, left) {
                self.end_table(Some(user_key))?;
            }
            if let Some(heat) = &mut self.heat {
                heat.wrote(user_key);
            }
        }
        if self.open.is_none() {
            self.begin_table()?;
        }
        self.internal.clear();
        self.internal.reserve(user_key.len() + TRAILER_BYTES);
        push_internal(&mut self.internal, user_key, trailer);
        self.entries += 1;
        let open = self.open.as_mut().expect("begun just above");
        open.table.add(&self.internal, value)?;
        if let Some(carried) = &mut self.carried
            && let Some(block) = open.table.take_cached()
        {
            carried.add(open.uid, block);
        }
        if open.table.entries().is_multiple_of(DECIDE_ENTRIES) && self.spec.filters.decides_late() {
            self.decide_while_open(user_key);
        }
        Ok(())
    }
}

impl Drop for Outputs<'_> {
    /// Discards the outputs that were not handed over: the job failed.
    fn drop(&mut self) {
        // A file that is open keeps its room on the device.
        self.unfinished.clear();
        if let Some(open) = self.open.take() {
            open.table.abandon();
            self.discard(open.number);
        }
        for finished in std::mem::take(&mut self.finished) {
            self.discard(finished.number);
        }
    }
}

fn describe(finished: Finished, epoch: Epoch, created_ms: u64) -> File {
    let Finished { number, uid, summary, hotness, statistics } = finished;
    let (smallest, largest, largest_exclusive) = summary.bounds;
    File {
        number,
        uid,
        bytes: summary.file_bytes,
        entries: summary.entries,
        point_tombstones: summary.point_tombstones,
        range_tombstones: summary.range_tombstones,
        smallest,
        largest,
        largest_exclusive,
        point_bounds: summary.point_bounds,
        seq_min: summary.seq_min,
        seq_max: summary.seq_max,
        is_ingested: false,
        epoch,
        created_ms,
        expiring_entries: summary.expiring_entries,
        expiry_min_ms: summary.expiry_min_ms,
        filter_bytes: summary.filter_bytes,
        hotness,
        statistics,
    }
}

/// Returns the codec of a level: the list goes from level 0 on, and its last one repeats.
pub(crate) fn codec_of(list: &str, level: u32) -> Result<Codec> {
    let codecs: Vec<&str> = list.split(',').map(str::trim).collect();
    let at = (level as usize).min(codecs.len() - 1);
    Codec::parse(codecs[at])
}
