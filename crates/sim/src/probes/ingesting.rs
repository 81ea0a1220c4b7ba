//! Scenarios of ingestions: every later reader sees the new keys, and no earlier one.
//!
//! Owns: the scenarios. Never does: run them next to threads (`engine/tests/it/ingest.rs` does).

use super::steps::{ensure, kind, open, text};
use windrow::{Db, ErrorKind};
use windrow_env::testing::env;

fn ingest(db: &Db, value: &str, keys: impl Iterator<Item = u32>) -> Result<(), String> {
    let mut ingest = db.ingest().map_err(text)?;
    for key in keys {
        ingest.put(format!("k{key:04}"), value).map_err(text)?;
    }
    ingest.finish().map(drop).map_err(text)
}

/// A scan has recorded a gap of deleted keys where the new ones are ingested.
pub(super) fn what_comes_into_a_gap_is_seen() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    (0..2_000).try_for_each(|n| db.put(format!("k{n:04}"), "")).map_err(text)?;
    let _held = db.snapshot();
    (1..1_999).try_for_each(|n| db.delete(format!("k{n:04}"))).map_err(text)?;
    for _ in 0..3 {
        ensure(db.count(..).map_err(text)? == 2, "deleted keys are there")?;
    }
    ingest(&db, "new", 900..910)?;
    ensure(db.iter().count() == 12, "a scan misses what was ingested")
}

/// It is refused like one that read a key that was put since.
pub(super) fn a_transaction_that_read_it_is_refused() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    for key in ["k0001", "k0004", "k0009"] {
        let mut tx = db.transaction().map_err(text)?;
        tx.get(&db, key).map_err(text)?;
        tx.put(&db, "seen", key).map_err(text)?;
        ingest(&db, key, 1..10)?;
        ensure(kind(tx.commit()) == Some(ErrorKind::Conflict), "a stale read was committed")?;
    }
    Ok(())
}

/// Ingests over a memtable, and over tables of every level that has some.
pub(super) fn what_comes_is_the_newest() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    for round in 0..4u32 {
        for key in 0..40 {
            db.put(format!("k{key:04}"), "old").map_err(text)?;
        }
        match round {
            0 => {}
            1 => db.flush().map_err(text)?,
            _ => db.compact().map_err(text)?,
        }
        let before = db.snapshot();
        ingest(&db, "new", 10..30)?;
        for key in 0..40u32 {
            let name = format!("k{key:04}");
            let now = db.get(&name).map_err(text)?;
            let new = (10..30).contains(&key);
            let want: &[u8] = if new { b"new" } else { b"old" };
            ensure(now.as_deref() == Some(want), "an older value is shown")?;
            let then = before.get(&name).map_err(text)?;
            ensure(then.as_deref() == Some(&b"old"[..]), "a snapshot sees what came later")?;
        }
    }
    Ok(())
}
