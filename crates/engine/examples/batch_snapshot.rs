//! Several changes as one, and a view of the past: money moves between accounts while another
//! reader adds them all up.
//!
//! `cargo run --example batch_snapshot`

use windrow::{Batch, Db, Snapshot, WriteSync};

const ACCOUNTS: u64 = 100;
const START: i64 = 1_000;

pub(crate) fn main() -> windrow::Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-bank-{}", std::process::id()));
    let db = Db::open(&path)?;

    let mut opening = Batch::new();
    for account in 0..ACCOUNTS {
        opening.put(&db, key(account), START.to_le_bytes());
    }
    db.write(opening, WriteSync::Yes)?;
    let before = db.snapshot();

    // Each transfer is a batch: both accounts change, or neither does, for
    // every reader and after every crash.
    for i in 0..10_000u64 {
        let (from, to) = (i * 7 % ACCOUNTS, (i * 13 + 1) % ACCOUNTS);
        if from == to {
            continue;
        }
        let amount = (i % 50) as i64;
        let mut transfer = Batch::new();
        transfer.put(&db, key(from), (balance(&db, from)? - amount).to_le_bytes());
        transfer.put(&db, key(to), (balance(&db, to)? + amount).to_le_bytes());
        db.write(transfer, WriteSync::No)?;
        if i % 1_000 == 0 {
            // A snapshot is one moment, however long the reads take.
            assert_eq!(total(&db.snapshot())?, ACCOUNTS as i64 * START);
        }
    }
    db.sync()?; // all transfers so far are durable from here on

    // The old snapshot still reads the values from when it was taken.
    for item in before.prefix("account/") {
        let (_, value) = item?;
        assert_eq!(amount(&value), START);
    }
    println!("balance of account 7: {} before, {} now", START, balance(&db, 7)?);
    assert_eq!(total(&db.snapshot())?, ACCOUNTS as i64 * START);

    drop(before); // what only it could see may now be merged away
    db.close()?;
    Db::destroy(&path)
}

fn key(account: u64) -> String {
    format!("account/{account:04}")
}

fn amount(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().expect("an amount has eight bytes"))
}

fn balance(db: &Db, account: u64) -> windrow::Result<i64> {
    Ok(db.get(key(account))?.map_or(0, |value| amount(&value)))
}

fn total(snapshot: &Snapshot) -> windrow::Result<i64> {
    snapshot.prefix("account/").map(|item| item.map(|(_, value)| amount(&value))).sum()
}
