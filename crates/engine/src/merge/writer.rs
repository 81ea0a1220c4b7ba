//! Output tables of a flush or merge: cut, filled, synced, described.
//!
//! Range tombstones are dealt out to the outputs: the table that ends before
//! key `k` takes what lies between its lower cut and `k`, so that together
//! the outputs cover exactly what the inputs did, gaps between them included.
//!
//! A table whose writing fails is discarded with its siblings; the job may be
//! run again under new numbers. Nothing here touches the manifest.

use crate::core::Core;
use crate::merge::elide::Sink;
use crate::tree::Tree;
use windrow_base::key::{TRAILER_BYTES, push_internal};
use windrow_base::{Epoch, Error, FileNumber, FileUid, Result};
use windrow_env::fs::WriteOptions;
use windrow_format::codec::Codec;
use windrow_format::names;
use windrow_format::table::{TableOptions, TableSummary, TableWriter};
use windrow_format::tombstone::{Fragments, RangeTombstone};
use windrow_plan::Cutter;
use windrow_plan::tree::File;

/// What the outputs have in common.
pub(crate) struct OutputSpec {
    pub(crate) level: u32,
    pub(crate) cutter: Cutter,
    pub(crate) filter_bits_per_key: f64,
    /// Range tombstones that survive, to be dealt out.
    pub(crate) tombstones: Vec<RangeTombstone>,
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
}

/// Writes the outputs of one job.
pub(crate) struct Outputs<'a> {
    core: &'a Core,
    tree: &'a Tree,
    spec: OutputSpec,
    tombstones: Fragments,
    /// Where the last output was cut: the next one's tombstones begin there.
    lower: Option<Vec<u8>>,
    open: Option<Open>,
    finished: Vec<Finished>,
    internal: Vec<u8>,
    pub(crate) entries: u64,
}

impl<'a> Outputs<'a> {
    pub(crate) fn new(core: &'a Core, tree: &'a Tree, mut spec: OutputSpec) -> Outputs<'a> {
        let survivors = std::mem::take(&mut spec.tombstones);
        Outputs {
            core,
            tree,
            spec,
            tombstones: Fragments::build(survivors, &tree.order),
            lower: None,
            open: None,
            finished: Vec::new(),
            internal: Vec::new(),
            entries: 0,
        }
    }

    fn begin_table(&mut self) -> Result<()> {
        let core = self.core;
        let number = core.new_file_number();
        let uid = core.env.random.next_u64();
        let settings = &core.settings;
        let codec = codec_of(settings.compression.as_str(), self.spec.level)?;
        let options = TableOptions {
            uid,
            keyspace: self.tree.id,
            order: self.tree.order.clone(),
            block_bytes: settings.block_bytes as usize,
            restart_interval: 16,
            hash_index: settings.hash_index,
            codec,
            codec_level: settings.zstd_level as i32,
            filter_bits_per_key: self.spec.filter_bits_per_key,
            partition_bytes: settings.partition_bytes as usize,
            level_hint: self.spec.level,
            created_ms: core.env.clock.wall_ms(),
        };
        let path = core.dir.join(names::table(number));
        let write = WriteOptions {
            direct: settings.direct_io,
            preallocate_bytes: settings.file_bytes + settings.file_bytes / 8,
        };
        let file = core.env.fs.create(&path, write)?;
        let table = TableWriter::new(file, options)?;
        self.open = Some(Open { number, uid, table });
        Ok(())
    }

    /// Ends the open table; its tombstones reach up to `upper`.
    fn end_table(&mut self, upper: Option<&[u8]>) -> Result<()> {
        let order = &self.tree.order;
        let tombstones = match self.tombstones.is_empty() {
            true => Vec::new(),
            false => self.tombstones.truncated(order, self.lower.as_deref(), upper),
        };
        if self.open.is_none() {
            if tombstones.is_empty() {
                return Ok(());
            }
            self.begin_table()?;
        }
        let mut open = self.open.take().expect("begun just above");
        for tombstone in &tombstones {
            open.table.add_tombstone(tombstone)?;
        }
        let Open { number, uid, table } = open;
        let summary = match table.finish() {
            Ok(summary) => summary,
            Err(error) => {
                self.core.cleanup.unlink_table(number);
                return Err(error);
            }
        };
        self.finished.push(Finished { number, uid, summary });
        self.lower = upper.map(<[u8]>::to_vec);
        Ok(())
    }

    /// Ends the last table and makes the names of all durable. Returns the
    /// files, by key ascending, each with `epoch`.
    ///
    /// # Errors
    /// What the file system said; the outputs are discarded then.
    pub(crate) fn finish(mut self, epoch: Epoch) -> Result<Vec<File>> {
        self.end_table(None)?;
        let written: u64 = self.finished.iter().map(|f| f.summary.entries).sum();
        if written != self.entries {
            return Err(Error::corruption(format!(
                "a job wrote {written} entries where {} were due",
                self.entries
            )));
        }
        if !self.finished.is_empty() {
            self.core.env.fs.sync_dir(&self.core.dir).inspect_err(|e| self.core.trip(e))?;
        }
        let created_ms = self.core.env.clock.wall_ms();
        let finished = std::mem::take(&mut self.finished);
        Ok(finished.into_iter().map(|f| describe(f, epoch, created_ms)).collect())
    }
}

impl Sink for Outputs<'_> {
    #[inline]
    fn keep(&mut self, user_key: &[u8], trailer: u64, value: &[u8], first: bool) -> Result<()> {
        if first {
            // The cutter follows every key, also one that begins a table.
            let bytes = self.open.as_ref().map_or(0, |open| open.table.estimated_bytes());
            if self.spec.cutter.cut_before(&self.tree.order, user_key, bytes) {
                self.end_table(Some(user_key))?;
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
        open.table.add(&self.internal, value)
    }
}

impl Drop for Outputs<'_> {
    /// What was not handed over is of no use: the job failed.
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            open.table.abandon();
            self.core.cleanup.unlink_table(open.number);
        }
        for finished in self.finished.drain(..) {
            self.core.cleanup.unlink_table(finished.number);
        }
    }
}

fn describe(finished: Finished, epoch: Epoch, created_ms: u64) -> File {
    let Finished { number, uid, summary } = finished;
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
        epoch,
        created_ms,
        expiring_entries: summary.expiring_entries,
        expiry_min_ms: summary.expiry_min_ms,
        filter_bytes: summary.filter_bytes,
        statistics: Vec::new(),
    }
}

/// The codec of a level: the list goes from level 0 on, its last one repeats.
pub(crate) fn codec_of(list: &str, level: u32) -> Result<Codec> {
    let codecs: Vec<&str> = list.split(',').map(str::trim).collect();
    let at = (level as usize).min(codecs.len() - 1);
    Codec::parse(codecs[at])
}
