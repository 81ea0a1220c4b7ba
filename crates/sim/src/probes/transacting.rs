//! Scenarios of transactions: no commit is based on a read that another write has made stale.
//!
//! Owns: the scenarios. Never does: run them concurrently (`tests/shuttle` does).

use super::steps::{ensure, kind, open, text};
use windrow::{Db, ErrorKind, Result, SeqNo, Transaction, TransactionOptions};
use windrow_env::testing::env;

fn is_conflict(result: Result<SeqNo>) -> bool {
    kind(result) == Some(ErrorKind::Conflict)
}

/// Reads with `read`, runs `write` outside of the transaction, and commits a write of another key.
fn conflicts(
    db: &Db,
    read: impl Fn(&Transaction) -> Result<()>,
    write: impl Fn() -> Result<()>,
) -> std::result::Result<bool, String> {
    let mut tx = db.transaction().map_err(text)?;
    read(&tx).map_err(text)?;
    write().map_err(text)?;
    tx.put(db, "result", "x").map_err(text)?;
    Ok(is_conflict(tx.commit()))
}

pub(super) fn what_was_read_and_written_since_is_refused() -> std::result::Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    db.put("k", "old").map_err(text)?;
    let get = |tx: &Transaction| tx.get(&db, "k").map(drop);
    let scan = |tx: &Transaction| tx.range(&db, "p".."q")?.try_for_each(|item| item.map(drop));
    ensure(conflicts(&db, get, || db.put("k", "new"))?, "a key that was read, and then written")?;
    ensure(conflicts(&db, get, || db.delete_range("j", "l"))?, "a key that a range delete hit")?;
    ensure(conflicts(&db, scan, || db.put("pp", "new"))?, "a key that came into a range")?;
    ensure(!conflicts(&db, get, || db.put("l", "new"))?, "a key that was not read")
}

/// A transaction that outlasts the record of recent writes.
pub(super) fn a_long_transaction_is_refused_as_well() -> std::result::Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let many = |last: &str, value: &str| -> Result<()> {
        (0..2_000).try_for_each(|n| db.put(format!("other{n:04}{}", "-".repeat(100)), "x"))?;
        db.put(last, value)
    };
    let get = |tx: &Transaction| tx.get(&db, "k").map(drop);
    let early = || {
        db.put("k", "new")?;
        many("l", "new")
    };
    ensure(conflicts(&db, get, early)?, "what was written first, and forgotten")?;
    ensure(conflicts(&db, get, || many("k", "newer"))?, "what was written last")?;
    ensure(!conflicts(&db, get, || many("l", "newer"))?, "a key that was not read")
}

pub(super) fn a_locked_key_is_one_transactions() -> std::result::Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    let options = TransactionOptions {
        lock_timeout: std::time::Duration::ZERO,
        ..TransactionOptions::pessimistic()
    };
    let begin = || db.transaction_with(&options).map_err(text);
    let (mut first, mut second) = (begin()?, begin()?);
    first.put(&db, "k", "1").map_err(text)?;
    let refused = Some(ErrorKind::Busy);
    ensure(kind(second.get_for_update(&db, "k")) == refused, "a key was locked twice")?;
    ensure(kind(second.get_for_share(&db, "k")) == refused, "a key was locked and shared")?;
    first.commit().map_err(text)?;
    let value = second.get_for_update(&db, "k").map_err(text)?;
    ensure(value.as_deref() == Some(b"1"), "a lock did not bring the present value")
}
