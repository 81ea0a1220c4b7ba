//! Scenarios of concurrent transactions: those that commit are serialisable, plain writes included,
//! and a weaker isolation is detected.

use crate::machine::{DIR, Machine, draw, spaces};
use crate::runner::check;
use shuttle::thread;
use std::sync::{Arc, Mutex};
use windrow::{
    Batch, Db, ErrorKind, Keyspace, Result, Slice, Transaction, TransactionOptions, WriteSync,
};
use windrow_testkit::serial::{self, Committed};

const KEYS: u64 = 5;

/// The number of transactions of each thread.
const TRANSACTIONS: u64 = 4;

fn key(n: u64) -> [u8; 1] {
    [n as u8]
}

/// Returns the writer of a value; 0 if there is none.
fn writer(value: Option<Slice>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes((*value).try_into().expect("a name")))
}

#[derive(Default)]
struct Record(Mutex<Vec<Committed>>);

impl Record {
    fn add(&self, committed: Committed) {
        self.0.lock().expect("no thread panicked").push(committed);
    }
}

/// Reads a key, under a lock or not, or a range of all keys. A range read counts as a read of every
/// key in it.
fn read(tx: &mut Transaction, space: &Keyspace, reads: &mut Vec<(u64, u64)>) -> Result<()> {
    let n = draw(KEYS);
    let value = match draw(4) {
        0 => Some(tx.get(space, key(n))?),
        1 => Some(tx.get_for_update(space, key(n))?),
        2 => Some(tx.get_for_share(space, key(n))?),
        _ => None,
    };
    if let Some(value) = value {
        reads.push((n, writer(value)));
        return Ok(());
    }
    let (from, to) = (draw(KEYS), KEYS);
    let iter = tx.range(space, key(from)..key(to)).expect("range");
    let found: Vec<_> = match draw(2) {
        0 => iter.map(|item| item.expect("scan")).collect(),
        _ => iter.rev().map(|item| item.expect("scan")).collect(),
    };
    for n in from..to {
        let value = found.iter().find(|(k, _)| **k == key(n)).map(|(_, value)| value.clone());
        reads.push((n, writer(value)));
    }
    Ok(())
}

/// Runs a transaction of some reads and writes.
fn attempt(db: &Db, space: &Keyspace, id: u64) -> Result<Committed> {
    let options = match draw(2) {
        0 => TransactionOptions::default(),
        _ => TransactionOptions::pessimistic(),
    };
    let mut tx = db.transaction_with(&options)?;
    let mut committed = Committed { id, ..Committed::default() };
    for _ in 0..1 + draw(3) {
        read(&mut tx, space, &mut committed.reads)?;
    }
    for _ in 0..draw(3) {
        let n = draw(KEYS);
        tx.put(space, key(n), id.to_be_bytes())?;
        committed.writes.push(n);
    }
    committed.writes.sort_unstable();
    committed.writes.dedup();
    committed.commit = tx.commit()?;
    Ok(committed)
}

/// Runs a transaction, and records it if it commits.
fn run(db: &Db, space: &Keyspace, id: u64, record: &Record) {
    match attempt(db, space, id) {
        Ok(committed) => record.add(committed),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
    }
}

/// Adds to a counter, without a transaction; two other threads add to it as well.
fn add(db: &Db, space: &Keyspace, _: u64, _: &Record) {
    let one_more = |old: Option<&[u8]>| Some(vec![old.map_or(1, |old| old[0] + 1)]);
    space.update(key(0), one_more).expect("update");
    db.put(key(1), "noise").expect("put");
}

/// Reads at a snapshot and writes a batch, without a transaction: snapshot isolation at most.
fn run_unchecked(db: &Db, space: &Keyspace, id: u64, record: &Record) {
    let snapshot = db.snapshot();
    let at = |n| writer(space.get_at(&snapshot, key(n)).expect("get"));
    let reads: Vec<_> = (0..2).map(|n| (n, at(n))).collect();
    let n = draw(2);
    let mut batch = Batch::new();
    batch.put(space, key(n), id.to_be_bytes());
    let commit = db.write(batch, WriteSync::No).expect("write");
    record.add(Committed { id, commit, reads, writes: vec![n] });
}

/// Runs a plain write.
fn write(db: &Db, space: &Keyspace, id: u64, record: &Record) {
    let n = draw(KEYS);
    let mut batch = Batch::new();
    batch.put(space, key(n), id.to_be_bytes());
    let commit = db.write(batch, WriteSync::No).expect("write");
    record.add(Committed { id, commit, reads: Vec::new(), writes: vec![n] });
}

fn threads(
    work: impl Fn(&Db, &Keyspace, u64, &Record) + Send + Sync + 'static,
) -> (Vec<Committed>, Option<Slice>) {
    let machine = Machine::new();
    let (db, _jobs) = machine.open(DIR);
    let [space, _] = spaces(&db);
    let (record, work) = (Arc::new(Record::default()), Arc::new(work));
    let thread = |number: u64| {
        let (db, space, record, work) = (db.clone(), space.clone(), record.clone(), work.clone());
        thread::spawn(move || {
            (0..TRANSACTIONS).for_each(|n| work(&db, &space, 1 + number * 100 + n, &record));
        })
    };
    let running: Vec<_> = (0..3).map(thread).collect();
    running.into_iter().for_each(|thread| thread.join().expect("a thread panicked"));
    let first = space.get(key(0)).expect("get");
    db.close().expect("close");
    let history = record.0.lock().expect("no thread panicked").clone();
    (history, first)
}

#[test]
fn transactions_are_serialisable() {
    check("transactions_are_serialisable", || {
        let (history, _) = threads(|db, space, id, record| match id / 100 {
            0 => write(db, space, id, record),
            _ => run(db, space, id, record),
        });
        serial::check(&history).unwrap_or_else(|cycle| panic!("{cycle}\n{history:#?}"));
    });
}

#[test]
fn updates_without_transactions_lose_nothing() {
    check("updates_without_transactions_lose_nothing", || {
        let (_, count) = threads(add);
        assert_eq!(count.as_deref(), Some(&[3 * TRANSACTIONS as u8][..]));
    });
}

/// The canary: without the check of reads the checker finds cycles.
#[test]
fn snapshots_and_batches_are_not_serialisable() {
    static FOUND: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    check("snapshots_and_batches_are_not_serialisable", || {
        let (history, _) = threads(run_unchecked);
        if serial::check(&history).is_err() {
            FOUND.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(FOUND.load(std::sync::atomic::Ordering::Relaxed) > 0, "no cycle was found");
}
