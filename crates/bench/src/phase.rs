//! One phase of a benchmark on one engine, in this process: the load, the
//! cached reads, the load and the reads of the disk phase.
//!
//! Owns: what is done and measured, figure by figure. Never does: repeat or
//! compare (`basic.rs` does).

use crate::args::{Args, Child};
use crate::data::{Data, Draw};
use crate::latency::Latencies;
use crate::process::{self, Stopwatch, Traffic, mib};
use crate::report::Figures;
use crate::store::{Engine, Result, Store};
use std::path::Path;
use std::time::Duration;

/// Every so many reads, the value that came back is compared in full.
const CHECK_EVERY: u64 = 64;

/// Nexts after a seek.
const NEXTS: u32 = 10;

/// Puts between two lines of progress.
const PROGRESS_EVERY: u64 = 1_000_000;

/// Runs the phase that the parent asked for, and prints its figures as one line.
pub(crate) fn run(args: &Args, child: &Child, engines: &[Engine]) -> Result<()> {
    let engine = engines.iter().find(|e| e.name == child.engine).ok_or("no such engine")?;
    let data = Data::new(args.seed, args.value_bytes as usize);
    let mut figures = match child.phase.as_str() {
        "load" => load(args, engine, &child.dir, &data, args.records, false)?,
        "disk-load" => load(args, engine, &child.dir, &data, args.disk_records(), true)?,
        "cached" => cached(args, engine, &child.dir, &data)?,
        "disk" => disk(args, engine, &child.dir, &data)?,
        other => return Err(format!("`{other}` is not a phase").into()),
    };
    figures.set("peak_rss_mib", mib(process::peak_rss_bytes()));
    println!("{}", figures.to_json());
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Puts every record once, in random order, and drains.
fn load(
    args: &Args,
    engine: &Engine,
    dir: &Path,
    data: &Data,
    records: u64,
    direct_io: bool,
) -> Result<Figures> {
    let mut store = (engine.open)(dir, &args.common(direct_io))?;
    let mut latencies = Latencies::new()?;
    let before = Traffic::now();
    let (mut whole, mut each) = (Stopwatch::start(), Stopwatch::start());
    for index in 0..records {
        store.put(&data.key(index), data.value(index))?;
        latencies.record(each.lap());
        if (index + 1).is_multiple_of(PROGRESS_EVERY) {
            eprintln!("  {}: {} M records", engine.name, (index + 1) / 1_000_000);
        }
    }
    let put_s = whole.lap().as_secs_f64();
    store.drain()?;
    let drain_s = whole.lap().as_secs_f64();
    let mut figures = Figures::default();
    figures.set("kops_per_s", records as f64 / (put_s + drain_s) / 1000.0);
    figures.set("put_s", put_s);
    figures.set("drain_s", drain_s);
    latencies.figures(&mut figures, "put");
    let user_bytes = (records * args.record_bytes()) as f64;
    let written = Traffic::now().since(before).written_bytes as f64;
    figures.set("write_amplification", written / user_bytes);
    figures.set("cpu_us_per_put", process::cpu_s() * 1e6 / records as f64);
    finish(args, engine, store)?;
    figures.set("space_amplification", process::disk_bytes(dir) as f64 / user_bytes);
    Ok(figures)
}

fn finish(args: &Args, engine: &Engine, store: Box<dyn Store>) -> Result<()> {
    if args.verbose {
        eprintln!("--- {}\n{}", engine.name, store.statistics());
    }
    store.close()
}

/// Gets `index`, and once in a while compares what came back.
fn get(
    store: &mut dyn Store,
    data: &Data,
    index: u64,
    check: bool,
    into: &mut Vec<u8>,
) -> Result<bool> {
    let found = store.get(&data.key(index), into)?;
    if check && found && into != data.value(index) {
        return Err(format!("record {index} has a wrong value").into());
    }
    Ok(found)
}

/// What is read.
#[derive(Clone, Copy)]
enum Read {
    Present,
    Absent,
    Seek,
}

/// One read, checked for being what it should be.
fn read(
    store: &mut dyn Store,
    data: &Data,
    (kind, records): (Read, u64),
    draw: &mut Draw,
    into: &mut Vec<u8>,
) -> Result<()> {
    let index = draw.below(records);
    match kind {
        Read::Present => {
            if !get(store, data, index, index.is_multiple_of(CHECK_EVERY), into)? {
                return Err(format!("record {index} is missing").into());
            }
        }
        Read::Absent => {
            if get(store, data, records + index, false, into)? {
                return Err(format!("record {} was never put", records + index).into());
            }
        }
        Read::Seek => {
            let (entries, bytes) = store.scan(&data.key(index), NEXTS)?;
            // Only the last ten keys of all have fewer after them.
            let full = entries == NEXTS + 1 && bytes > 0;
            if !full && records > 1000 && entries == 0 {
                return Err(format!("a seek to record {index} found nothing").into());
            }
        }
    }
    Ok(())
}

/// Reads of a data set that the cache holds. Opened with direct I/O, so that
/// what the store's own cache does not hold shows as device reads.
fn cached(args: &Args, engine: &Engine, dir: &Path, data: &Data) -> Result<Figures> {
    let records = args.cached_records();
    let mut store = (engine.open)(dir, &args.common(true))?;
    for index in 0..records {
        store.put(&data.key(index), data.value(index))?;
    }
    store.drain()?;
    let mut into = Vec::new();
    for pass in 0..2 {
        for index in 0..records {
            if !get(&mut *store, data, index, pass == 0, &mut into)? {
                return Err(format!("record {index} is missing").into());
            }
        }
    }
    let mut figures = Figures::default();
    let before = Traffic::now();
    let kinds = [
        ("get_us", Read::Present, args.cached_ops),
        ("get_absent_us", Read::Absent, args.cached_ops),
        ("seek10_us", Read::Seek, args.cached_ops / 4),
    ];
    for (name, kind, ops) in kinds {
        let mut draw = Draw::new(args.seed ^ ops);
        let mut watch = Stopwatch::start();
        for _ in 0..ops {
            read(&mut *store, data, (kind, records), &mut draw, &mut into)?;
        }
        figures.set(name, micros(watch.lap()) / ops as f64);
    }
    figures.set("device_read_mib", mib(Traffic::now().since(before).read_bytes));
    finish(args, engine, store)?;
    Ok(figures)
}

/// Reads of a data set much larger than the memory, past the page cache.
fn disk(args: &Args, engine: &Engine, dir: &Path, data: &Data) -> Result<Figures> {
    let records = args.disk_records();
    let mut store = (engine.open)(dir, &args.common(true))?;
    let mut into = Vec::new();
    let mut draw = Draw::new(args.seed);
    // Indexes and filters come into memory, and the cache fills.
    for _ in 0..args.disk_ops {
        for kind in [Read::Seek, Read::Present] {
            read(&mut *store, data, (kind, records), &mut draw, &mut into)?;
        }
    }
    let mut figures = Figures::default();
    let kinds = [("seek10", Read::Seek), ("get", Read::Present), ("get_absent", Read::Absent)];
    for (name, kind) in kinds {
        let mut latencies = Latencies::new()?;
        let before = Traffic::now();
        let mut watch = Stopwatch::start();
        for _ in 0..args.disk_ops {
            read(&mut *store, data, (kind, records), &mut draw, &mut into)?;
            latencies.record(watch.lap());
        }
        let device = Traffic::now().since(before).read_bytes;
        latencies.figures(&mut figures, name);
        figures.set(&format!("{name}_device_kib"), device as f64 / 1024.0 / args.disk_ops as f64);
    }
    finish(args, engine, store)?;
    Ok(figures)
}
