//! Measures the environment's hot calls on this machine: log writes through a mapping against
//! `pwrite`, one batch of reads against single reads, and checksums. `cargo run --release -p
//! windrow-env --example io_cost [dir]`.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use windrow_base::Result;
use windrow_env::fs::{ReadFileOptions, ReadRequest, WriteOptions};
use windrow_env::{Clock, FileSystem, OsClock, OsFs, OsRandom, Random, checksum};

const RECORD_BYTES: u64 = 116;
const LOG_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: usize = 4096;
const FILE_BYTES: u64 = 1 << 30;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let dir = dir.join(format!("windrow-io-cost-{}", std::process::id()));
    let fs = OsFs::new();
    fs.create_dir(&dir)?;
    let result = log(&dir).and_then(|()| reads(&fs, &dir));
    for name in fs.list(&dir)? {
        fs.remove(&dir.join(name))?;
    }
    fs.remove_dir(&dir)?;
    checksums();
    result
}

/// Runs `work` and returns nanoseconds per round.
fn ns_each(rounds: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start_ns = OsClock.monotonic_ns();
    work()?;
    Ok((OsClock.monotonic_ns() - start_ns) as f64 / rounds as f64)
}

/// Processor time of this thread per round, in nanoseconds: the same on a busy machine.
fn cpu_ns_each(rounds: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let cpu_ns = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let start_ns = cpu_ns();
    work()?;
    Ok((cpu_ns() - start_ns) / rounds as f64)
}

fn log(dir: &Path) -> Result<()> {
    let record = [7u8; RECORD_BYTES as usize];
    let records = LOG_BYTES / RECORD_BYTES;
    for round in 0..2 {
        for (name, mapped) in [("mapped", true), ("pwrite", false)] {
            let fs = OsFs::new().with_mapped_logs(mapped);
            let path = dir.join(format!("{name}-{round}.log"));
            let log = fs.create_log(&path, LOG_BYTES)?;
            log.sync()?;
            let mut cpu_ns = 0.0;
            let write_ns = ns_each(records, || {
                cpu_ns = cpu_ns_each(records, || {
                    (0..records).try_for_each(|n| log.write_at(n * RECORD_BYTES, &record))
                })?;
                Ok(())
            })?;
            let end_ns = ns_each(1, || log.sync())?;
            fs.remove(&path)?;
            let log = fs.create_log(&path, LOG_BYTES)?;
            log.sync()?;
            let (syncs, mut write_only_ns) = (2_000, 0.0);
            let sync_ns = ns_each(syncs, || {
                (0..syncs).try_for_each(|n| {
                    write_only_ns += ns_each(1, || log.write_at(n * RECORD_BYTES, &record))?;
                    log.sync()
                })
            })?;
            println!(
                "log {name}: {write_ns:.1} ns a record (processor {cpu_ns:.1}), sync of all {:.1} ms; synced each: {:.1} us, of it the write {:.2} us",
                end_ns / 1e6,
                sync_ns / 1e3,
                write_only_ns / syncs as f64 / 1e3
            );
            fs.remove(&path)?;
        }
        two_writers(dir)?;
    }
    Ok(())
}

fn two_writers(dir: &Path) -> Result<()> {
    for (name, mapped) in [("mapped", true), ("pwrite", false)] {
        let fs = OsFs::new().with_mapped_logs(mapped);
        let path = dir.join("two.log");
        let log = fs.create_log(&path, LOG_BYTES)?;
        let record = [7u8; RECORD_BYTES as usize];
        let records = LOG_BYTES / RECORD_BYTES;
        let ns = ns_each(records, || {
            let half = |first: u64| {
                let (log, record) = (&log, &record);
                move || {
                    (first..records)
                        .step_by(2)
                        .try_for_each(|n| log.write_at(n * RECORD_BYTES, record))
                }
            };
            std::thread::scope(|scope| {
                let other = scope.spawn(half(1));
                half(0)()?;
                other.join().unwrap_or(Ok(()))
            })
        })?;
        println!("log {name}, two threads: {ns:.1} ns a record");
        fs.remove(&path)?;
    }
    Ok(())
}

fn reads(fs: &OsFs, dir: &Path) -> Result<()> {
    let path = dir.join("table");
    let mut file =
        fs.create(&path, WriteOptions { direct: true, preallocate_bytes: FILE_BYTES })?;
    let chunk = vec![3u8; 1 << 20];
    let write_ns = ns_each(1, || {
        (0..FILE_BYTES >> 20).try_for_each(|_| file.append(&chunk))?;
        file.finish()
    })?;
    println!("direct write: {:.0} MB/s", FILE_BYTES as f64 / write_ns * 1e3);
    let file = fs.open(&path, ReadFileOptions { direct: true })?;
    // Not a multiple of the alignment, like the offsets of blocks in tables.
    let place = || OsRandom.next_u64() % (FILE_BYTES - 2 * BLOCK_BYTES as u64);
    for batch in [1, 2, 4, 8, 16, 64] {
        let mut bufs = vec![vec![0u8; BLOCK_BYTES]; batch];
        let rounds = 2_000 / batch as u64 + 50;
        let alone_ns = ns_each(rounds, || {
            (0..rounds)
                .try_for_each(|_| bufs.iter_mut().try_for_each(|buf| file.read_at(place(), buf)))
        })?;
        let together_ns = ns_each(rounds, || {
            (0..rounds).try_for_each(|_| {
                let mut requests: Vec<ReadRequest<'_>> = bufs
                    .iter_mut()
                    .map(|buf| ReadRequest { file: &*file, offset: place(), buf, result: Ok(()) })
                    .collect();
                fs.read_many(&mut requests);
                requests.into_iter().try_for_each(|request| request.result)
            })
        })?;
        println!(
            "{batch} random 4 KiB direct reads: {:.1} us one after the other, {:.1} us by read_many",
            alone_ns / 1e3,
            together_ns / 1e3
        );
    }
    Ok(())
}

fn checksums() {
    for len in [116, 4096, 1 << 20] {
        let bytes = vec![5u8; len];
        let rounds = (256 << 20) / len as u64;
        let ns = ns_each(rounds, || {
            for n in 0..rounds {
                black_box(checksum::checksum(7, n, &[black_box(&bytes)]));
            }
            Ok(())
        });
        if let Ok(ns) = ns {
            println!("checksum of {len} bytes: {ns:.1} ns, {:.1} GB/s", len as f64 / ns);
        }
    }
}
