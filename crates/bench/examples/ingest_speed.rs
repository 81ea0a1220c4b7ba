//! Puts of sorted records, compared with an ingestion of the same records: time, and bytes written
//! per byte.
//!
//! `cargo run --release -p windrow-bench --example ingest_speed -- DIR [MILLIONS [ROUNDS [CODEC]]]`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that takes time"
)]

use std::path::Path;
use std::time::Instant;
use windrow::{Db, Options, Result};

const VALUE_BYTES: u64 = 100;

fn value(n: u64, out: &mut [u8]) {
    // Half of the value is random, so that it compresses to about a half.
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in out[..VALUE_BYTES as usize / 2].chunks_mut(8) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        chunk.copy_from_slice(&state.to_be_bytes()[..chunk.len()]);
    }
}

fn run(dir: &Path, name: &str, records: u64, codec: &str) -> Result<()> {
    let mut options = Options::default();
    options.settings.set("compression", codec)?;
    let dir = dir.join(name);
    let db = Db::open_with(&dir, options)?;
    let mut bytes = [b'v'; VALUE_BYTES as usize];
    let begin = Instant::now();
    if name == "ingest" {
        let mut ingest = db.ingest()?;
        for n in 0..records {
            value(n, &mut bytes);
            ingest.put(format!("{n:016}"), bytes)?;
        }
        ingest.finish()?;
    } else {
        for n in 0..records {
            value(n, &mut bytes);
            db.put(format!("{n:016}"), bytes)?;
        }
        db.flush()?;
    }
    let written = begin.elapsed().as_secs_f64();
    db.wait_idle()?;
    let stats = db.stats();
    let tables: u64 = stats.levels.iter().map(|level| level.written_bytes).sum();
    let user = records * (16 + VALUE_BYTES);
    println!(
        "{name}: {written:.2} s, {:.0} records/s, idle after {:.2} s; written per byte: tables {:.3}, \
         with the log {:.3}",
        records as f64 / written,
        begin.elapsed().as_secs_f64(),
        tables as f64 / user as f64,
        (tables + stats.wal_bytes) as f64 / user as f64,
    );
    db.close()?;
    drop(db);
    Db::destroy(&dir)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| "ingest-speed".to_owned());
    let mut number = |or: u64| args.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(or);
    let (millions, rounds) = (number(10), number(1));
    let codec = args.next().unwrap_or_else(|| "lz4".to_owned());
    for _ in 0..rounds {
        for name in ["puts", "ingest"] {
            run(Path::new(&dir), name, millions * 1_000_000, &codec)?;
        }
    }
    Ok(())
}
