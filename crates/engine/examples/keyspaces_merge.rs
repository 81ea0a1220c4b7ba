//! Keyspaces, merge operators and expiry: an index, counters and sessions next to the data, kept
//! right by atomic batches.
//!
//! `cargo run --example keyspaces_merge`

use std::time::Duration;
use windrow::{Batch, Db, KeyspaceOptions, WriteSync};

const POEM: &str = "the fog comes on little cat feet it sits looking over harbor and city \
                    on silent haunches and then moves on";

pub(crate) fn main() -> windrow::Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-words-{}", std::process::id()));
    let db = Db::open(&path)?;

    // A keyspace is a tree of its own; one log makes batches across them atomic.
    let lengths = db.keyspace("by-length")?;
    let adding = KeyspaceOptions { merge_operator: Some("add".into()), ..Default::default() };
    let counts = db.keyspace_with("counts", adding)?;

    for (position, word) in POEM.split_whitespace().enumerate() {
        let mut batch = Batch::new();
        batch.put(&db, format!("{position:04}"), word);
        batch.put(&lengths, format!("{:02}/{word}", word.len()), "");
        // A merge writes an operand and reads nothing: the sum is made when a reader asks for it,
        // or when tables are merged.
        batch.merge(&counts, word, 1i64.to_le_bytes());
        db.write(batch, WriteSync::No)?;
    }

    println!("words of five letters:");
    for item in lengths.prefix("05/") {
        let (key, _) = item?;
        println!("  {}", String::from_utf8_lossy(&key[3..]));
    }
    let on = counts.get("on")?.expect("the poem says `on`");
    println!("`on` is there {} times", i64::from_le_bytes((*on).try_into().expect("eight bytes")));
    assert_eq!(*on, 3i64.to_le_bytes());

    // A key may carry an expiry. An expired key is gone for every reader.
    let sessions = db.keyspace("sessions")?;
    sessions.put_with_ttl("ada", "until tomorrow", Duration::from_secs(86_400))?;
    sessions.put_with_ttl("bob", "until now", Duration::ZERO)?;
    assert!(sessions.get("ada")?.is_some() && sessions.get("bob")?.is_none());

    println!("keyspaces: {}", db.keyspaces().join(", "));
    db.drop_keyspace("sessions")?;
    db.compact()?; // sums are made, dropped data goes
    assert_eq!(counts.get("on")?.as_deref(), Some(&3i64.to_le_bytes()[..]));
    db.close()?;
    Db::destroy(&path)
}
