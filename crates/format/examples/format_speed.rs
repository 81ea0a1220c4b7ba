//! Times the hot paths of the format on one core: `cargo run --release -p
//! windrow-format --example format_speed`. Best of several runs, keys of 16
//! bytes, values of 100.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock itself")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use windrow_base::key::{Kind, push_internal, seek_trailer, trailer};
use windrow_base::{Error, KeyOrder, KeyspaceId, Result};
use windrow_env::sync::{Mutex, Rank};
use windrow_env::{ReadFile, WriteFile};
use windrow_format::block::{Block, BlockGet, BlockIter};
use windrow_format::codec::Codec;
use windrow_format::filter::{self, Filter, FilterBuilder};
use windrow_format::log::{self, Class, FileHeader, Framing, LogKind, LogPosition, LogReader};
use windrow_format::table::{
    BlockHandle, BlockKind, Expect, Locate, Table, TableOptions, TableWriter, read_block,
};

const ENTRIES: u64 = 1_000_000;
const UID: u64 = 77;

#[derive(Clone)]
struct Mem(Arc<Mutex<Vec<u8>>>);

impl WriteFile for Mem {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.lock().extend_from_slice(bytes);
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Bytes(Vec<u8>);

impl ReadFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let from = offset as usize;
        let held = self.0.get(from..from + buf.len());
        buf.copy_from_slice(held.ok_or_else(|| Error::corruption("past the end"))?);
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn path(&self) -> &Path {
        Path::new("mem")
    }
}

fn key(i: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(24);
    push_internal(&mut key, format!("user{:012}", i * 7).as_bytes(), trailer(i + 1, Kind::Put));
    key
}

/// Runs `work` a few times and prints the best time per item.
fn time(name: &str, items: u64, mut work: impl FnMut()) {
    // Short work is repeated until some run has the core to itself.
    let runs = if items > 500_000 { 5 } else { 60 };
    let mut best = f64::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_nanos() as f64 / items as f64);
    }
    println!("{name:<44} {best:8.1} ns/item {:10.2} M/s", 1e3 / best);
}

fn write(keys: &[Vec<u8>], values: &[u8], codec: Codec, out: &Mem) {
    out.0.lock().clear();
    let options =
        TableOptions { codec, ..TableOptions::new(UID, KeyspaceId(0), KeyOrder::Bytewise) };
    let mut writer = TableWriter::new(Box::new(out.clone()), options).expect("writer");
    for (i, key) in keys.iter().enumerate() {
        let at = (i * 100) % (values.len() - 100);
        writer.add(key, &values[at..at + 100]).expect("add");
    }
    black_box(writer.finish().expect("finish"));
}

fn main() {
    let keys: Vec<Vec<u8>> = (0..ENTRIES).map(key).collect();
    // Half of each value compresses, as in db_bench.
    let values: Vec<u8> = (0..1_000_000u64)
        .map(|i| if i % 100 < 50 { filter::hash(&i.to_le_bytes()) as u8 } else { b'x' })
        .collect();
    let out = Mem(Arc::new(Mutex::new(Rank::INNERMOST, Vec::new())));
    write(&keys, &values, Codec::None, &out);
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        if codec.is_built_in() {
            let name = format!("table write, 116 B entries, {}", codec.name());
            time(&name, ENTRIES, || write(&keys, &values, codec, &out));
        }
    }
    write(&keys, &values, Codec::None, &out);
    read(&keys, out.0.lock().clone());
    filters();
    logs();
}

fn read(keys: &[Vec<u8>], bytes: Vec<u8>) {
    let file: Arc<dyn ReadFile> = Arc::new(Bytes(bytes));
    let expect = Expect { file_bytes: file.len(), uid: UID, order: KeyOrder::Bytewise };
    let table = Table::open(&file, expect).expect("open");
    println!(
        "{} MB file, {} bytes held open, partitioned: {}",
        file.len() / 1_000_000,
        table.memory_bytes(),
        table.is_partitioned()
    );
    let handles = data_blocks(&table, &*file);
    time("read_block + check (per block)", handles.len() as u64, || {
        for &handle in &handles {
            black_box(read_block(&*file, UID, handle, BlockKind::Data).expect("block"));
        }
    });
    let blocks: Vec<Arc<Block>> = handles
        .iter()
        .map(|&h| Arc::new(read_block(&*file, UID, h, BlockKind::Data).expect("block")))
        .collect();
    let hot: Vec<Arc<Block>> = blocks[..200].to_vec();
    let per_block = keys.len() as u64 / blocks.len() as u64;
    time("BlockIter::next, cached blocks", 200 * per_block, || {
        for _ in 0..1 {
            let mut iter = BlockIter::new(Arc::clone(&hot[0]), KeyOrder::Bytewise);
            let mut sum = 0;
            for block in &hot {
                iter.reset(Arc::clone(block));
                iter.seek_first();
                while iter.valid() {
                    sum += iter.key()[3] as usize + iter.value().len();
                    iter.next();
                }
            }
            black_box(sum);
        }
    });
    time("BlockIter::prev, cached blocks", 200 * per_block, || {
        for _ in 0..1 {
            let mut sum = 0;
            for block in &hot {
                let mut iter = BlockIter::new(Arc::clone(block), KeyOrder::Bytewise);
                iter.seek_last();
                while iter.valid() {
                    sum += iter.key().len();
                    iter.prev();
                }
            }
            black_box(sum);
        }
    });
    point_reads(keys, &table, &hot);
}

/// Every data block that the index names.
fn data_blocks(table: &Table, file: &dyn ReadFile) -> Vec<BlockHandle> {
    let mut handles = Vec::new();
    let mut top = table.index_iter();
    top.seek_first();
    while top.valid() {
        match top.place() {
            Locate::Partition(p) => {
                let block = read_block(file, UID, p.index, BlockKind::Index).expect("index");
                let part = windrow_format::table::decode_partition(&block).expect("index");
                for i in 0..part.len() {
                    if let Locate::Block(handle) = part.get(i) {
                        handles.push(handle);
                    }
                }
            }
            place => handles.extend(match place {
                Locate::Block(handle) => Some(handle),
                _ => None,
            }),
        }
        top.next();
    }
    handles
}

fn point_reads(keys: &[Vec<u8>], table: &Table, hot: &[Arc<Block>]) {
    let order = KeyOrder::Bytewise;
    // The number of the hot block that holds each of the first keys.
    let mut block_of = Vec::new();
    for (n, block) in hot.iter().enumerate() {
        let mut iter = BlockIter::new(Arc::clone(block), order.clone());
        iter.seek_first();
        while iter.valid() {
            block_of.push(n);
            iter.next();
        }
    }
    let places: Vec<(usize, usize)> = (0..10_000u64)
        .map(|n| (filter::hash(&n.to_le_bytes()) % block_of.len() as u64) as usize)
        .map(|i| (block_of[i], i))
        .collect();
    let keys_bytes = keys[..300].concat();
    let seek = seek_trailer(1 << 40);
    let user = |i: usize| &keys[i][..keys[i].len() - 8];
    let hits = places
        .iter()
        .filter(|&&(block, i)| {
            matches!(hot[block].get(&order, user(i), seek), Ok(BlockGet::Found { .. }))
        })
        .count();
    println!("({hits} of {} gets hit their block)", places.len());
    time("Block::get (hash index), cached", places.len() as u64, || {
        for &(block, i) in &places {
            black_box(hot[block].get(&order, user(i), seek)).ok();
        }
    });
    let hashes: Vec<u64> = places.iter().map(|&(_, i)| filter::hash(user(i))).collect();
    time("Block::get_hashed, cached", places.len() as u64, || {
        for (&(block, i), &hash) in places.iter().zip(&hashes) {
            black_box(hot[block].get_hashed(&order, user(i), hash, seek)).ok();
        }
    });
    let mut iters: Vec<BlockIter> =
        hot.iter().map(|b| BlockIter::new(Arc::clone(b), order.clone())).collect();
    time("BlockIter::seek, cached", places.len() as u64, || {
        for &(block, i) in &places {
            iters[block].seek(&keys[i]);
            black_box(iters[block].valid());
        }
    });
    time("checksum of 4 KiB", 1_000, || {
        for i in 0..1_000 {
            black_box(windrow_env::checksum::checksum(UID, i, &[&keys_bytes[..4096]]));
        }
    });
    time("checksum of 140 B", 10_000, || {
        for i in 0..10_000 {
            black_box(windrow_env::checksum::checksum(UID, i, &[&keys_bytes[..140]]));
        }
    });
    time("checksum of 28 B", 10_000, || {
        for i in 0..10_000 {
            black_box(windrow_env::checksum::checksum(UID, i, &[&keys_bytes[..28]]));
        }
    });
    time("Table::locate_user", places.len() as u64, || {
        for &(_, i) in &places {
            black_box(table.locate_user(user(i), seek));
        }
    });
}

fn filters() {
    let mut builder = FilterBuilder::new();
    let hashes: Vec<u64> = (0..80_000u64).map(|i| filter::hash(&i.to_le_bytes())).collect();
    let mut bytes = Vec::new();
    time("filter build, 10 bits", hashes.len() as u64, || {
        hashes.iter().for_each(|&h| builder.add_hash(h));
        bytes = builder.finish(10.0);
    });
    let filter = Filter::parse(windrow_env::Buffer::copy_of(&bytes)).expect("filter");
    time("filter may_contain, present, in cache", hashes.len() as u64, || {
        black_box(hashes.iter().filter(|&&h| filter.may_contain(h)).count());
    });
    let absent: Vec<u64> = (0..80_000u64).map(|i| filter::hash(&(i << 32).to_be_bytes())).collect();
    time("filter may_contain, absent, in cache", absent.len() as u64, || {
        black_box(absent.iter().filter(|&&h| filter.may_contain(h)).count());
    });
    let names: Vec<String> = (0..10_000).map(|i| format!("user{i:012}")).collect();
    time("filter hash of 16 bytes", names.len() as u64, || {
        black_box(names.iter().fold(0, |x, n| x ^ filter::hash(n.as_bytes())));
    });
    for bits in [2.0, 4.0, 6.0, 8.0, 10.0, 12.0] {
        hashes.iter().for_each(|&h| builder.add_hash(h));
        let filter =
            Filter::parse(windrow_env::Buffer::copy_of(&builder.finish(bits))).expect("filter");
        let asked = 2_000_000u64;
        let wrong =
            (1..=asked).filter(|i| filter.may_contain(filter::hash(&(i << 32).to_le_bytes())));
        println!(
            "false positives at {bits:>4} bits: measured {:.5}, theory {:.5}",
            wrong.count() as f64 / asked as f64,
            filter::false_positive_rate(bits)
        );
    }
}

fn logs() {
    let mut buf = vec![7u8; log::HEADER_BYTES + 140];
    for framing in [Framing::Fixed, Framing::Short] {
        let mut place = LogPosition { framing, uid: UID, offset: 64, durable_up_to: 64 };
        time(&format!("log::seal of 140 bytes, {framing:?}"), 10_000, || {
            for _ in 0..10_000 {
                let record = log::seal(&mut buf, log::HEADER_BYTES, Class::Batch, place);
                place.offset += record.len() as u64;
            }
            black_box(&buf);
        });
    }
    search();
}

/// The search for evidence in a segment that holds garbage, behind an incomplete record.
fn search() {
    type Byte = fn(u64) -> u8;
    let kinds: [(&str, Byte); 3] = [
        ("random bytes", |i| (filter::hash(&i.to_le_bytes()) >> 7) as u8),
        ("text", |i| b"the quick brown fox jumps over 1234 dogs "[i as usize % 41]),
        ("kinds of fragments", |i| if i % 4 == 0 { 0x84 } else { 1 }),
    ];
    for (what, byte) in kinds {
        for framing in [Framing::Fixed, Framing::Short] {
            let header = FileHeader {
                kind: LogKind::Wal,
                framing,
                number: 1,
                uid: UID,
                manifest_number: 1,
                manifest_durable_bytes: 64,
                manifest_uid: 2,
            };
            let mut bytes = log::encode_file_header(&header);
            bytes.extend((0..64 << 20).map(byte));
            let file: Arc<dyn ReadFile> = Arc::new(Bytes(bytes));
            time(&format!("search of 64 MiB of {what}, {framing:?}"), 1, || {
                let mut reader =
                    LogReader::open(file.clone(), LogKind::Wal, None).expect("a header");
                assert!(reader.next().expect("no evidence").is_none());
                assert!(reader.torn().is_some());
            });
        }
    }
}
