//! Files of a database as text, record by record, for people who look for the cause of a fault.
//!
//! Owns: the words and layout of these texts, which are no format: programs read the database. It
//! reads one file at a time and prints records as they are read, so that those before a damage are
//! seen. Never does: take a lock, look at another file, or write anything but the text.

use crate::discovery::{fold_manifest, read_current};
use crate::log::seq_chain::{LogBatch, LogEntry, SeqChain};
use std::fmt::{self, Display};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::key::split_checked;
use windrow_base::{Error, ErrorKind, FileUid, KeyOrder, Kind, Result, SeqNo};
use windrow_env::fs::ReadFileOptions;
use windrow_env::{Env, FileSystem, OsFs, ReadFile};
use windrow_format::batch::EXPIRY_BYTES;
use windrow_format::block::BlockIter;
use windrow_format::log::{self, Class, Length, LogKind, LogReader, LogRecord, Mark};
use windrow_format::table::{
    self, BlockHandle, BlockKind, Expect, FOOTER_BYTES, IndexIter, Locate, Table, read_block,
};
use windrow_plan::tree::{Edit, File, Version};
use windrow_store::manifest::record::{Field, ManifestRecord};
use windrow_store::manifest::state::{KeyspaceState, ManifestState};

/// The longest part of a key or value that is printed, in bytes.
const SHOWN_BYTES_MAX: usize = 256;

/// Prints a write-ahead log, in use or kept for the feed of changes: its header, each batch, each
/// operation in it.
///
/// # Errors
/// `InvalidArgument` for another file; `Corruption` where synced bytes are
/// damaged, `NotSupported` for a newer format, `Io` from reading, or from `out` with
/// its error as the source.
pub fn wal(path: impl AsRef<Path>, out: &mut dyn Write) -> Result<()> {
    let path = path.as_ref();
    let mut out = Out(out);
    let mut reader = open_log(path, LogKind::Wal, &mut out)?;
    let mut chain = SeqChain::default();
    print_records(&mut reader, &mut chain, path, &mut out)?;
    print_end(&reader, &mut out)?;
    if reader.batches_behind() > 0 {
        out.line(format_args!("what follows is behind the end, and is no part of the database"))?;
    }
    while reader.pass_gap()? {
        print_records(&mut reader, &mut chain, path, &mut out)?;
        out.line(format_args!("{} a gap, or the end", reader.valid_bytes()))?;
    }
    Ok(())
}

/// Prints the records of a write-ahead log up to the first place without one.
fn print_records(
    reader: &mut LogReader,
    chain: &mut SeqChain,
    path: &Path,
    out: &mut Out<'_>,
) -> Result<()> {
    while let Some(record) = reader.next()? {
        let located = |error| located(error, path, record.offset);
        let batch = match chain.entry(&record).map_err(located)? {
            LogEntry::Mark(mark) => {
                print_mark(record.offset, record.end, &mark, out)?;
                continue;
            }
            LogEntry::Batch(batch) => batch,
            LogEntry::Gap { batch, .. } => {
                let (missing, last) = (chain.next_seq().unwrap_or(1), batch.first_seq - 1);
                out.line(format_args!("sequence numbers {missing} to {last} are missing"))?;
                batch
            }
        };
        chain.go_on_at(batch.next_seq());
        print_batch(&record, batch, out).map_err(located)?;
    }
    Ok(())
}

/// Prints a manifest: its header, each record, each field and edit in it.
///
/// # Errors
/// As [`wal`].
pub fn manifest(path: impl AsRef<Path>, out: &mut dyn Write) -> Result<()> {
    let path = path.as_ref();
    let mut out = Out(out);
    let mut reader = open_log(path, LogKind::Manifest, &mut out)?;
    while let Some(record) = reader.next()? {
        let (offset, end, class) = (record.offset, record.end, record.class);
        if class != Class::Edit {
            out.line(format_args!("{offset}..{end} {class:?}, {} bytes", record.payload.len()))?;
            continue;
        }
        out.line(format_args!("{offset}..{end} record"))?;
        let fields =
            ManifestRecord::decode(record.payload).map_err(|e| located(e, path, offset))?;
        for field in &fields.0 {
            print_field(field, &mut out)?;
        }
    }
    print_end(&reader, &mut out)
}

/// Every keyspace's name and tree.
pub type NamedTrees = Vec<(String, Arc<Version>)>;

/// Passes to `told` the trees that the manifest of the database in `dir` describes, in bytewise
/// order only: after each of its records that changes a tree, every keyspace's name and tree.
///
/// # Errors
/// `Corruption` where the manifest is damaged, `NotSupported` for a newer format, `Io`;
/// `InvalidArgument` for a tree in another comparator's order; and an error of `told`, which ends
/// it.
pub fn trees(dir: impl AsRef<Path>, told: &mut dyn FnMut(NamedTrees) -> Result<()>) -> Result<()> {
    trees_of(&Env::os(1), dir.as_ref(), told)
}

#[doc(hidden)]
pub fn trees_of(
    env: &Env,
    dir: &Path,
    told: &mut dyn FnMut(NamedTrees) -> Result<()>,
) -> Result<()> {
    let mut state = ManifestState::default();
    let bytewise = |id: &str| match id {
        BYTEWISE_ID => Ok(KeyOrder::Bytewise),
        other => {
            Err(Error::invalid(format!("a keyspace is in the order of the comparator {other}")))
        }
    };
    let mut number = read_current(env, dir)?.manifest_number;
    loop {
        let mut has_told = false;
        let folded = fold_manifest(env, dir, number, None, |record| {
            state.apply(record, &bytewise)?;
            if !record.0.iter().any(|field| field.keyspace().is_some()) {
                return Ok(());
            }
            let tree = |of: &KeyspaceState| (of.record.name.to_string(), Arc::clone(&of.version));
            has_told = true;
            told(state.keyspaces.values().map(tree).collect())
        });
        let Err(error) = folded else { return Ok(()) };
        // A process that writes may have begun another manifest and removed this one.
        let in_force = read_current(env, dir)?.manifest_number;
        if has_told || in_force == number {
            return Err(error);
        }
        (number, state) = (in_force, ManifestState::default());
    }
}

/// Prints a table: its properties, each block, each entry, its range tombstones. Tables in bytewise
/// order only: the comparator of another order is not available here.
///
/// # Errors
/// As [`wal`]; `InvalidArgument` for a table in another comparator's order.
pub fn table(path: impl AsRef<Path>, out: &mut dyn Write) -> Result<()> {
    let path = path.as_ref();
    let mut out = Out(out);
    let file = OsFs::new().open(path, ReadFileOptions::default())?;
    check_begin(&*file, table::HEADER_MAGIC, "table")?;
    let uid = uid_of_table(&*file)?;
    let expect = Expect { file_bytes: file.len(), uid, order: KeyOrder::Bytewise };
    let table = Table::open(&file, expect)?;
    print_properties(&table, file.len(), &mut out)?;
    let mut index = table.index_iter();
    index.seek_first();
    while index.valid() {
        match index.place() {
            Locate::Block(handle) => print_block(&file, uid, handle, &mut out)?,
            Locate::Partition(partition) => {
                out.line(format_args!("partition {}", BlockExtent(partition.index)))?;
                print_partition(&file, uid, partition.index, &mut out)?;
            }
            Locate::None => break,
        }
        index.next();
    }
    for fragment in table.tombstones().fragments() {
        out.line(format_args!(
            "range tombstone [{}, {}) at {:?}",
            ShownBytes(fragment.start),
            ShownBytes(fragment.end),
            fragment.seqs
        ))?;
    }
    Ok(())
}

/// The output. Its errors have their cause.
struct Out<'a>(&'a mut dyn Write);

impl Out<'_> {
    fn line(&mut self, line: fmt::Arguments<'_>) -> Result<()> {
        writeln!(self.0, "{line}").map_err(|cause| {
            Error::new(ErrorKind::Io, format!("cannot write the dump: {cause}")).with_source(cause)
        })
    }
}

/// Names the file, and the record where the error does not say where in it.
fn located(error: Error, path: &Path, offset: u64) -> Error {
    error.with_file(path.display().to_string()).with_offset(offset)
}

/// Bytes as readable text: text as it is, anything else escaped; long ones are cut.
struct ShownBytes<'a>(&'a [u8]);

impl Display for ShownBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        match std::str::from_utf8(head) {
            Ok(text) if !text.contains(char::is_control) => write!(f, "{text:?}")?,
            _ => write!(f, "\"{}\"", head.escape_ascii())?,
        }
        if head.len() < self.0.len() {
            write!(f, "... ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

/// The byte range of a block.
struct BlockExtent(BlockHandle);

impl Display for BlockExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.0.offset, self.0.end())
    }
}

/// The action of an operation or entry, as text: `put "k" = "v"`.
struct Action<'a> {
    kind: Kind,
    key: &'a [u8],
    /// As stored: an expiring value starts with its expiry.
    value: &'a [u8],
}

impl Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No batch has an empty range: see `Pipeline::ingest`.
        if self.kind == Kind::RangeDelete && self.key == self.value {
            return write!(f, "ingestion from {} on", ShownBytes(self.key));
        }
        let name = match self.kind {
            Kind::Delete => "delete",
            Kind::Put | Kind::PutExpiry => "put",
            Kind::Merge | Kind::MergeExpiry => "merge",
            Kind::SingleDelete => "single delete",
            Kind::RangeDelete => "range delete",
            Kind::Blob | Kind::BlobExpiry => "blob",
        };
        write!(f, "{name} {}", ShownBytes(self.key))?;
        match (self.kind, self.value.split_first_chunk::<EXPIRY_BYTES>()) {
            (Kind::Delete | Kind::SingleDelete, _) => Ok(()),
            (Kind::RangeDelete, _) => write!(f, " up to {}", ShownBytes(self.value)),
            (kind, Some((expiry, value))) if kind.has_expiry() => {
                let expiry_ms = u64::from_le_bytes(*expiry);
                write!(f, " = {} until {expiry_ms} ms", ShownBytes(value))
            }
            _ => write!(f, " = {}", ShownBytes(self.value)),
        }
    }
}

/// Refuses a file that was never of this kind, which is no damage. Zeros may be a log that was
/// never synced.
fn check_begin(file: &dyn ReadFile, magic: [u8; 8], what: &str) -> Result<()> {
    let mut begin = [0; 8];
    let len = file.len().min(begin.len() as u64) as usize;
    file.read_at(0, &mut begin[..len])?;
    if begin[..len] == magic[..len] || begin == [0; 8] {
        return Ok(());
    }
    let why = format!("not a {what} of Windrow, or one whose very begin is damaged");
    Err(Error::invalid(why).with_file(file.path().display().to_string()))
}

fn open_log(path: &Path, kind: LogKind, out: &mut Out<'_>) -> Result<LogReader> {
    let what = match kind {
        LogKind::Wal => "write-ahead log",
        LogKind::Manifest => "manifest",
    };
    let file = OsFs::new().open(path, ReadFileOptions::default())?;
    check_begin(&*file, log::MAGIC, what)?;
    let reader = LogReader::open(file, kind, None)?;
    let header = reader.header();
    out.line(format_args!("{what} {}, uid {:016x}", header.number, header.uid))?;
    if kind == LogKind::Wal && header.manifest_number == 0 {
        out.line(format_args!("copied for the feed of changes, from a log that is gone"))?;
    } else if kind == LogKind::Wal {
        out.line(format_args!(
            "made while manifest {}, uid {:016x}, of which {} bytes were durable then",
            header.manifest_number, header.manifest_uid, header.manifest_durable_bytes
        ))?;
    }
    Ok(reader)
}

fn print_end(reader: &LogReader, out: &mut Out<'_>) -> Result<()> {
    let end = reader.valid_bytes();
    match reader.torn() {
        Some(bytes) => out.line(format_args!(
            "{end} the end; behind it {bytes} bytes of torn records, {} whole batches among them",
            reader.batches_behind()
        )),
        None => out.line(format_args!("{end} the end")),
    }
}

fn print_batch(record: &LogRecord<'_>, batch: LogBatch<'_>, out: &mut Out<'_>) -> Result<()> {
    let LogBatch { first_seq, count, ops } = batch;
    let (offset, end) = (record.offset, record.end);
    out.line(format_args!("{offset}..{end} batch of {count} from sequence number {first_seq}"))?;
    for (seq, op) in (first_seq..).zip(ops) {
        let op = op?;
        let action = Action { kind: op.kind, key: op.key, value: op.value };
        out.line(format_args!("  {seq} keyspace {} {action}", op.keyspace))?;
    }
    Ok(())
}

fn print_mark(offset: u64, end: u64, mark: &Mark, out: &mut Out<'_>) -> Result<()> {
    out.line(format_args!("{offset}..{end} mark"))?;
    let Length { number, bytes } = mark.manifest;
    out.line(format_args!("  manifest {number} is durable up to byte {bytes}"))?;
    if let Some(ms) = mark.time_ms {
        out.line(format_args!("  written at {ms} ms since 1970"))?;
    }
    mark.logs.iter().try_for_each(|Length { number, bytes }| {
        out.line(format_args!("  write-ahead log {number} is durable up to byte {bytes}"))
    })
}

fn print_field(field: &Field, out: &mut Out<'_>) -> Result<()> {
    match field {
        Field::KeyspaceEdit(id, edit) => {
            out.line(format_args!("  keyspace {id} edit"))?;
            print_edit(edit, out)
        }
        Field::KeyspaceCreate(record) => out.line(format_args!(
            "  keyspace {} is {:?}, ordered by {}, merged by {}",
            record.id,
            record.name,
            record.comparator,
            record.merge_operator.as_deref().unwrap_or("nothing")
        )),
        Field::KeyspaceSettings(id, text) => {
            out.line(format_args!("  keyspace {id} has settings of its own"))?;
            text.lines().try_for_each(|line| out.line(format_args!("    {line}")))
        }
        Field::KeyspaceDrop(id) => out.line(format_args!("  keyspace {id} is dropped")),
        Field::Snapshot => {
            out.line(format_args!("  snapshot: all that follows is the whole state"))
        }
        Field::NextFile(number) => out.line(format_args!("  next file {number}")),
        Field::LastSeq(seq) => out.line(format_args!("  last sequence number {seq}")),
        Field::LogBegin { number, first_seq } => out.line(format_args!(
            "  logs count from {number} on, whose first sequence number is {first_seq}"
        )),
        Field::WalAdded { number, uid, bytes } => out.line(format_args!(
            "  write-ahead log {number} exists, uid {uid:016x}, {bytes} bytes reserved"
        )),
        Field::WalSynced { number, bytes } => {
            out.line(format_args!("  write-ahead log {number} is durable up to byte {bytes}"))
        }
        Field::CleanClose { wal, bytes } => {
            out.line(format_args!("  closed cleanly, with write-ahead log {wal} of {bytes} bytes"))
        }
        Field::NextKeyspace(id) => out.line(format_args!("  next keyspace {id}")),
        Field::TimeFloor(ms) => out.line(format_args!("  expiry was judged at {ms} ms since 1970")),
        Field::LogKept(number, kept) => out.line(format_args!(
            "  write-ahead log {number} is kept for changes, uid {:016x}: sequence numbers {} to {}, \
             {} bytes, since {} ms since 1970",
            kept.uid, kept.first_seq, kept.last_seq, kept.bytes, kept.kept_ms
        )),
        Field::KeptBegin(number) => {
            out.line(format_args!("  no log before {number} is kept for changes"))
        }
        Field::KeyspaceDropped(dropped) => out.line(format_args!(
            "  keyspace {} was {:?}, dropped behind sequence number {}",
            dropped.id, dropped.name, dropped.seq
        )),
        Field::DroppedOrder { id, comparator, merge_operator } => out.line(format_args!(
            "  keyspace {id} was ordered by {comparator}, merged by {}",
            merge_operator.as_deref().unwrap_or("nothing")
        )),
        Field::Session(session) => out.line(format_args!(
            "  session {:016x} begins with sequence number {}",
            session.uid, session.first_seq
        )),
        Field::Settings(text) => {
            out.line(format_args!("  settings"))?;
            text.lines().try_for_each(|line| out.line(format_args!("    {line}")))
        }
    }
}

fn print_edit(edit: &Edit, out: &mut Out<'_>) -> Result<()> {
    for (level, part, number) in &edit.removed {
        out.line(format_args!("    - L{level} {} {number}", part.name()))?;
    }
    for (level, part, file) in &edit.added {
        out.line(format_args!("    + L{level} {} {}", part.name(), FileLine(file)))?;
    }
    if let Some(levels) = edit.shape_levels {
        out.line(format_args!("    levels planned {levels}"))?;
    }
    if let Some(epoch) = edit.next_epoch {
        out.line(format_args!("    next epoch {epoch}"))?;
    }
    if let Some(seq) = edit.flushed_through {
        out.line(format_args!("    in tables up to sequence number {seq}"))?;
    }
    if let Some(boundaries) = &edit.boundaries {
        let keys: Vec<String> = boundaries.iter().map(|key| ShownBytes(key).to_string()).collect();
        out.line(format_args!("    level-0 partitions split at [{}]", keys.join(", ")))?;
    }
    for (level, cursor) in &edit.cursors {
        match cursor {
            Some(key) => out.line(format_args!("    cursor of L{level} at {}", ShownBytes(key)))?,
            None => out.line(format_args!("    cursor of L{level} at the start"))?,
        }
    }
    Ok(())
}

/// A file's line, as the manifest describes the file.
struct FileLine<'a>(&'a File);

impl Display for FileLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0;
        let end = if file.largest_exclusive { ')' } else { ']' };
        write!(
            f,
            "{} uid {:016x} [{}, {}{end}",
            file.number,
            file.uid,
            ShownBytes(&file.smallest),
            ShownBytes(&file.largest)
        )?;
        write!(f, " {} bytes, {} entries", file.bytes, file.entries)?;
        write!(
            f,
            ", {} tombstones, {} range tombstones",
            file.point_tombstones, file.range_tombstones
        )?;
        write!(f, ", sequence numbers {}..={}, epoch {}", file.seq_min, file.seq_max, file.epoch)
    }
}

/// The uid in the footer. Opening then checks everything against it.
pub(crate) fn uid_of_table(file: &dyn ReadFile) -> Result<FileUid> {
    let mut uid = [0; 8];
    let at = file.len().checked_sub(FOOTER_BYTES as u64).ok_or_else(|| {
        Error::corruption("file is too short for a table")
            .with_file(file.path().display().to_string())
    })?;
    file.read_at(at, &mut uid)?;
    Ok(FileUid::from_le_bytes(uid))
}

fn print_properties(table: &Table, file_bytes: u64, out: &mut Out<'_>) -> Result<()> {
    let p = table.properties();
    let end = if p.largest_exclusive { ')' } else { ']' };
    out.line(format_args!("table of {file_bytes} bytes, uid {:016x}", p.uid))?;
    if let Some(uid) = p.database_uid {
        out.line(format_args!("made for the database of uid {uid:016x}"))?;
    }
    out.line(format_args!("keyspace {}, ordered by {}", p.keyspace, p.comparator))?;
    out.line(format_args!("made at {} ms since 1970, for level {}", p.created_ms, p.level_hint))?;
    out.line(format_args!("keys [{}, {}{end}", ShownBytes(&p.smallest), ShownBytes(&p.largest)))?;
    out.line(format_args!(
        "{} entries, {} of them tombstones, and {} range tombstones",
        p.entries, p.point_tombstones, p.range_tombstones
    ))?;
    out.line(format_args!("sequence numbers {}..={}", p.seq_min, p.seq_max))?;
    if p.expiring_entries > 0 {
        out.line(format_args!(
            "{} entries expire, the first at {} ms",
            p.expiring_entries, p.expiry_min_ms
        ))?;
    }
    out.line(format_args!(
        "{} blocks in {} bytes by {}, of {} bytes of keys and {} of values",
        p.data_blocks,
        p.data_bytes,
        p.codec.name(),
        p.raw_key_bytes,
        p.raw_value_bytes
    ))?;
    out.line(format_args!(
        "index of {} bytes{}, filter of {} bytes ({:.1} bits per key)",
        p.index_bytes,
        if table.is_partitioned() { " in partitions" } else { "" },
        p.filter_bytes,
        p.filter_bits_per_key_milli as f64 / 1000.0
    ))
}

fn print_partition(
    file: &Arc<dyn ReadFile>,
    uid: FileUid,
    handle: BlockHandle,
    out: &mut Out<'_>,
) -> Result<()> {
    let block = read_block(&**file, uid, handle, BlockKind::Index)?;
    let mut index = IndexIter::new(Arc::new(block), KeyOrder::Bytewise)?;
    index.seek_first();
    while let Locate::Block(handle) = index.place() {
        print_block(file, uid, handle, out)?;
        index.next();
    }
    Ok(())
}

fn print_block(
    file: &Arc<dyn ReadFile>,
    uid: FileUid,
    handle: BlockHandle,
    out: &mut Out<'_>,
) -> Result<()> {
    out.line(format_args!("{} block", BlockExtent(handle)))?;
    let block = Arc::new(read_block(&**file, uid, handle, BlockKind::Data)?);
    let mut entries = BlockIter::new(block, KeyOrder::Bytewise);
    entries.seek_first();
    while entries.valid() {
        print_entry(entries.key(), entries.value(), out)
            .map_err(|error| located(error, file.path(), handle.offset))?;
        entries.next();
    }
    entries.status().map_err(|error| located(error, file.path(), handle.offset))
}

fn print_entry(internal_key: &[u8], value: &[u8], out: &mut Out<'_>) -> Result<()> {
    let (key, seq, kind): (&[u8], SeqNo, Kind) = split_checked(internal_key)?;
    out.line(format_args!("  {seq} {}", Action { kind, key, value }))
}
