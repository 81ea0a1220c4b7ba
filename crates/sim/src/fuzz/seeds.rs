//! The seeds of fuzzing: the files of small real databases, of several presets and codecs, closed
//! and killed.
//!
//! Owns: the list of databases, and how each becomes an input of each target. Never does: write
//! files (`tests/corpora.rs` does, when asked to).

use super::archive::{Archive, CREATE, REPAIR};
use super::extremes;
use super::memory_file::MemoryFile;
use std::path::Path;
use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_env::testing::{Rng, env};
use windrow_format::names::{self, FileKind};
use windrow_format::table::{BlockHandle, Expect, FOOTER_BYTES, IndexIter, Locate, Table};
use windrow_testkit::op::Subject;
use windrow_testkit::subject::Database;
use windrow_testkit::text;
use windrow_testkit::variant::{POLICIES, Variant};
use windrow_testkit::world::{DIR, World};

/// An input: its target, its name, and its bytes.
pub type Seed = (&'static str, String, Vec<u8>);

/// Every kind of entry, in two keyspaces and a few tables; as small as possible.
const CONTENTS: &str = "
keyspace sum operator:add
put a 1
put ab w*40
merge @sum m i:1
put_ttl e soon 3600000
flush
put c 3
delete ab
single_delete a
delete_range b..bb
merge @sum m i:2
flush
compact
put f late
put ff x*90
delete_range @sum x..z
merge @sum n i:4
flush
put g 7
put_ttl h 8 7200000
delete_range c..d
merge @sum m i:8
";

/// The number of keys of a table; they are so long that a small partition has few of them.
const LONG_KEYS: u64 = 24;

const NAMES: [&str; 6] =
    ["small", "lz4", "partitioned index", "windrow", "l2sm", "shallow level 0"];

/// Makes the seeds of every target.
///
/// # Errors
/// If a database cannot be made.
pub fn all() -> Result<Vec<Seed>, String> {
    let mut seeds = Vec::new();
    for (i, name) in NAMES.into_iter().enumerate() {
        let variant = Variant::named(name);
        let slug = name.replace(' ', "-");
        for closed in [true, false] {
            let state = if closed { "closed" } else { "killed" };
            let archive = directory(variant, CONTENTS, closed, i as u8)?;
            files(&archive, &format!("seed-{slug}-{state}"), closed, &mut seeds)?;
            seeds.push(("directory", format!("seed-{slug}-{state}"), archive.to_bytes()));
        }
        let options = variant.options().map_err(|e| e.to_string())?;
        seeds.push(("options", format!("seed-{slug}"), options.settings.to_text().into_bytes()));
        seeds.push(("operations", format!("seed-{slug}"), operations(i as u8)));
    }
    // Never flushed: a log with every kind of operation.
    let unflushed: Vec<&str> =
        CONTENTS.lines().filter(|line| !matches!(*line, "flush" | "compact")).collect();
    let archive = directory(Variant::named("small"), &unflushed.join("\n"), false, 0)?;
    files(&archive, "seed-unflushed", false, &mut seeds)?;
    seeds.push(("directory", "seed-unflushed".to_owned(), archive.to_bytes()));
    let archive = directory(Variant::named("small"), CONTENTS, true, 0)?;
    let archive = Archive { flags: CREATE | REPAIR, ..archive };
    let found = extremes::found(&archive).map_err(|e| e.to_string())?;
    seeds.extend(found.into_iter().map(|(name, bytes)| ("directory", name.to_owned(), bytes)));
    for (i, policy) in POLICIES.iter().enumerate() {
        let text = format!("preset = {policy}\nmemory_bytes = {}MiB\n", 8 << i);
        seeds.push(("options", format!("seed-policy-{i}"), text.into_bytes()));
    }
    Ok(seeds)
}

/// Makes the directory of a small database.
fn directory(
    variant: &'static Variant,
    contents: &str,
    closed: bool,
    seed: u8,
) -> Result<Archive, String> {
    let options = variant.options().map_err(|e| e.to_string())?;
    let (environment, handles) = env(u64::from(seed));
    let world = World::of(environment, handles.clone());
    let mut database = Database::open(world, options).map_err(|e| e.to_string())?;
    let mut contents = contents.to_owned();
    if variant.name.starts_with("partitioned") {
        for key in 0..LONG_KEYS {
            contents += &format!("put {:04}{} v{key}\n", key * 7919 % 10_000, "k".repeat(200));
        }
        contents += "flush\n";
    }
    for line in text::parse(&contents)? {
        database.apply(&line.op);
        if let Some(error) = database.last_error() {
            return Err(format!("{}: {error}", text::op_text(&line.op)));
        }
    }
    if closed {
        database.db().close().map_err(|e| e.to_string())?;
    }
    // A killed database leaves the bytes that it had written at this moment.
    let fs = handles.fs.fork();
    drop(database);
    handles.jobs.discard();
    let mut archive = Archive::of(&fs, Path::new(DIR), flags(seed));
    archive.shorten_logs();
    // The manifest records how long the logs were.
    archive.recompute_checksums();
    Ok(archive)
}

/// Returns the flags: both ways of opening, with and without a check and a repair.
fn flags(seed: u8) -> u8 {
    seed << 4 | [0, 1, 8, 9, 4, 12][usize::from(seed) % 6]
}

/// Makes inputs of the single files of a directory.
fn files(archive: &Archive, name: &str, closed: bool, seeds: &mut Vec<Seed>) -> Result<(), String> {
    let (_, handles) = env(1);
    archive.write(&handles.fs, Path::new(DIR));
    for file in handles.fs.files(Path::new(DIR)) {
        let bytes = handles.fs.read_file(&Path::new(DIR).join(&file)).unwrap_or_default();
        match names::parse(&file) {
            Some((FileKind::Wal, number)) if !closed => {
                seeds.push(("log", format!("{name}-{number}"), bytes));
            }
            Some((FileKind::Manifest, number)) => {
                seeds.push(("manifest", format!("{name}-{number}"), bytes));
            }
            // The tables of one state are enough.
            Some((FileKind::Table, number)) if closed => {
                let name = format!("{name}-{number}");
                for (i, block) in blocks(&bytes)?.into_iter().enumerate() {
                    seeds.push(("block", format!("{name}-{i}"), block));
                }
                seeds.push(("table", name, bytes));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the blocks of a table as inputs: tag first.
fn blocks(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let uid_at = bytes.len() - FOOTER_BYTES;
    let uid = bytes[uid_at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let file = MemoryFile::open(bytes.to_vec());
    let expect = Expect { file_bytes: bytes.len() as u64, uid, order: KeyOrder::Bytewise };
    let table = Table::open(&file, expect).map_err(|e| e.to_string())?;
    let mut handles = Vec::new();
    let mut open = vec![table.index_iter()];
    while let Some(mut index) = open.pop() {
        index.seek_first();
        while index.valid() {
            match index.place() {
                Locate::Block(handle) => handles.push(handle),
                Locate::Partition(partition) => {
                    handles.push(partition.index);
                    handles.extend(partition.filter);
                    open.push(partition_index(&*file, uid, partition.index)?);
                }
                Locate::None => break,
            }
            index.next();
        }
    }
    // Behind the last of them are tombstones, filter, index, properties.
    for part in 0..4 {
        let at = uid_at + 16 + part * 12;
        let offset = u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let len = u32::from_le_bytes(std::array::from_fn(|i| bytes[at + 8 + i]));
        if len > 0 {
            handles.push(BlockHandle { offset, bytes: len });
        }
    }
    let block = |handle: BlockHandle| {
        let raw = &bytes[handle.offset as usize..handle.end() as usize];
        let (payload, trailer) = raw.split_at(raw.len() - 5);
        [&trailer[..1], payload].concat()
    };
    Ok(handles.into_iter().map(block).collect())
}

fn partition_index(
    file: &dyn windrow_env::ReadFile,
    uid: u64,
    handle: BlockHandle,
) -> Result<IndexIter, String> {
    use windrow_format::table::{BlockKind, read_block};
    let block = read_block(file, uid, handle, BlockKind::Index).map_err(|e| e.to_string())?;
    IndexIter::new(Arc::new(block), KeyOrder::Bytewise).map_err(|e| e.to_string())
}

/// Makes forty operations under a variant.
fn operations(variant: u8) -> Vec<u8> {
    let mut rng = Rng::new(u64::from(variant));
    let mut bytes = vec![variant, variant, 0, 0, 0, 0];
    while bytes.len() < 6 + 40 * 6 {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes()[..6]);
    }
    bytes
}
