//! Transactions against a map, alone and concurrent.
//!
//! Owns: the cases, and the map that random transactions are compared with. Never does: look into
//! the record of writes, except at its size and whether it is on.

use super::*;
use crate::{Db, Options};
use std::collections::BTreeMap;
use std::time::Duration;
use windrow_env::testing::Rng;

type EntryModel = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(n: u64) -> Vec<u8> {
    format!("k{n:02}").into_bytes()
}

fn text(value: Option<Slice>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn entries(iter: impl Iterator<Item = Result<(Slice, Slice)>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    iter.map(|item| item.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn is_conflict<T: std::fmt::Debug>(result: Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Conflict)
}

#[test]
fn a_transaction_sees_its_own_writes_and_nobody_else_does() {
    let (db, _handles) = Db::in_memory();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    let mut tx = db.transaction().unwrap();
    tx.put(&db, "a", "mine").unwrap();
    tx.delete(&db, "b").unwrap();
    tx.put(&db, "c", "3").unwrap();
    assert_eq!(text(tx.get(&db, "a").unwrap()).as_deref(), Some("mine"));
    assert_eq!(tx.get(&db, "b").unwrap(), None);
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("1"));
    let all = entries(tx.iter(&db).unwrap());
    assert_eq!(all, [(b"a".to_vec(), b"mine".to_vec()), (b"c".to_vec(), b"3".to_vec())]);
    let seq = tx.commit().unwrap();
    assert_eq!(db.snapshot().seq(), seq);
    assert_eq!(text(db.get("c").unwrap()).as_deref(), Some("3"));
    assert_eq!(db.get("b").unwrap(), None);
}

#[test]
fn what_was_read_and_then_written_by_others_conflicts() {
    let (db, _handles) = Db::in_memory();
    let other = db.keyspace("other").unwrap();
    let conflicts = |read: &dyn Fn(&Transaction), write: &dyn Fn()| {
        for i in 0..6 {
            db.put(key(i * 2), "old").unwrap();
        }
        let mut tx = db.transaction().unwrap();
        read(&tx);
        write();
        tx.put(&other, "result", "x").unwrap();
        is_conflict(tx.commit())
    };
    let db_ref = &db;
    let get = |n| move |tx: &Transaction| drop(tx.get(db_ref, key(n)).unwrap());
    assert!(conflicts(&get(2), &|| db.put(key(2), "new").unwrap()));
    assert!(conflicts(&get(2), &|| db.delete(key(2)).unwrap()));
    assert!(conflicts(&get(3), &|| db.put(key(3), "new").unwrap()), "a key that was absent");
    assert!(conflicts(&get(2), &|| db.delete_range(key(1), key(5)).unwrap()));
    assert!(!conflicts(&get(2), &|| db.put(key(4), "new").unwrap()));
    assert!(!conflicts(&get(2), &|| other.put(key(2), "new").unwrap()), "another keyspace");
    // The first two entries, k00 and k02, were passed: up to the second of them was read.
    let two = |tx: &Transaction| assert_eq!(tx.iter(&db).unwrap().take(2).count(), 2);
    assert!(conflicts(&two, &|| db.put(key(1), "new").unwrap()), "a phantom");
    assert!(!conflicts(&two, &|| db.put(key(4), "new").unwrap()));
    db.delete(key(1)).unwrap();
    let last = |tx: &Transaction| drop(tx.range(&db, key(2)..key(9)).unwrap().next_back().unwrap());
    assert!(conflicts(&last, &|| db.put(key(8), "new").unwrap()));
    assert!(!conflicts(&last, &|| db.put(key(7), "new").unwrap()));
    assert!(!conflicts(&last, &|| db.put(key(9), "new").unwrap()));
    let all = |tx: &Transaction| assert!(tx.prefix(&db, "k").unwrap().count() > 1);
    assert!(conflicts(&all, &|| db.put("kz", "new").unwrap()));
    assert!(conflicts(&all, &|| db.delete_range("j", "k00\0").unwrap()));
    assert!(!conflicts(&all, &|| db.put("l", "new").unwrap()));
    assert!(!conflicts(&|_| (), &|| db.put(key(0), "new").unwrap()), "it read nothing");
}

#[test]
fn only_readers_conflict_and_never_those_that_write_nothing() {
    let (db, _handles) = Db::in_memory();
    db.put("a", "1").unwrap();
    let (mut one, mut two) = (db.transaction().unwrap(), db.transaction().unwrap());
    let reader = db.transaction().unwrap();
    one.put(&db, "a", "one").unwrap();
    two.put(&db, "a", "two").unwrap();
    assert_eq!(text(reader.get(&db, "a").unwrap()).as_deref(), Some("1"));
    one.commit().unwrap();
    two.commit().unwrap();
    reader.commit().unwrap();
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("two"));
}

#[test]
fn a_savepoint_forgets_what_came_after_it() {
    let (db, _handles) = Db::in_memory();
    let other = db.keyspace("other").unwrap();
    db.put("a", "1").unwrap();
    let mut tx = db.transaction().unwrap();
    tx.put(&db, "a", "2").unwrap();
    let first = tx.savepoint();
    tx.delete_range(&db, "a", "z").unwrap();
    tx.put(&other, "b", "3").unwrap();
    let second = tx.savepoint();
    tx.put(&db, "a", "4").unwrap();
    tx.rollback_to(&second).unwrap();
    assert_eq!(tx.get(&db, "a").unwrap(), None);
    tx.rollback_to(&first).unwrap();
    assert_eq!(text(tx.get(&db, "a").unwrap()).as_deref(), Some("2"));
    assert_eq!(tx.get(&other, "b").unwrap(), None);
    assert_eq!(tx.rollback_to(&second).unwrap_err().kind(), ErrorKind::InvalidArgument);
    tx.commit().unwrap();
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("2"));
    let mut tx = db.transaction().unwrap();
    tx.delete(&db, "a").unwrap();
    tx.rollback();
    assert!(tx.is_empty());
    tx.commit().unwrap();
    assert!(db.get("a").unwrap().is_some());
}

/// Keys that the record of writes has forgotten are compared by value.
#[test]
fn a_transaction_older_than_the_record_compares_what_it_read() {
    let (db, _handles) = Db::in_memory();
    db.put("a", "1").unwrap();
    db.put("c", "1").unwrap();
    for (change, conflicts) in [("other", false), ("a", true), ("b", true)] {
        let mut tx = db.transaction().unwrap();
        tx.get(&db, "a").unwrap();
        assert_eq!(tx.range(&db, "a".."d").unwrap().count(), 2);
        let big = vec![7; 1000];
        for i in 0..20_000u32 {
            db.put([b"filler".as_slice(), &i.to_be_bytes(), &[0; 900]].concat(), &big[..1])
                .unwrap();
        }
        assert!(db.database().pipeline.observers.recent.memory_bytes() <= 8 << 20);
        db.put(change, "2").unwrap();
        tx.put(&db, "result", "x").unwrap();
        assert_eq!(is_conflict(tx.commit()), conflicts, "{change}");
        db.delete("b").unwrap();
    }
}

#[test]
fn one_key_is_swapped_updated_and_put_once() {
    let (db, _handles) = Db::in_memory();
    assert_eq!(db.compare_exchange("k", None, Some(b"1")).unwrap(), Ok(()));
    let refused = db.compare_exchange("k", None, Some(b"2")).unwrap();
    assert_eq!(text(refused.unwrap_err()).as_deref(), Some("1"));
    assert_eq!(db.compare_exchange("k", Some(b"1"), Some(b"2")).unwrap(), Ok(()));
    assert_eq!(text(db.put_if_absent("k", "3").unwrap()).as_deref(), Some("2"));
    assert_eq!(db.put_if_absent("l", "3").unwrap(), None);
    let old = db.update("k", |old| Some([old.unwrap(), b"+".as_slice()].concat())).unwrap();
    assert_eq!((text(old), text(db.get("k").unwrap())), (Some("2".into()), Some("2+".into())));
    assert_eq!(db.compare_exchange("k", Some(b"2+"), None).unwrap(), Ok(()));
    assert_eq!(db.get("k").unwrap(), None);
}

#[test]
fn counters_of_many_threads_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let add = |old: Option<&[u8]>| {
        let old = old.map_or(0, |old| u64::from_be_bytes(old.try_into().unwrap()));
        Some((old + 1).to_be_bytes().to_vec())
    };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let db = &db;
            scope.spawn(move || {
                for i in 0..250 {
                    db.update(key((thread + i) % 3), add).unwrap();
                }
            });
        }
    });
    let sum: u64 = (0..3)
        .map(|n| u64::from_be_bytes((*db.get(key(n)).unwrap().unwrap()).try_into().unwrap()))
        .sum();
    assert_eq!(sum, 1000);
}

#[test]
fn a_transaction_of_a_database_that_cannot_be_written_reads() {
    let dir = tempfile::tempdir().unwrap();
    Db::open(dir.path()).unwrap().put("a", "1").unwrap();
    let options = Options { read_only: true, ..Default::default() };
    let db = Db::open_with(dir.path(), options).unwrap();
    let mut tx = db.transaction().unwrap();
    assert_eq!(text(tx.get(&db, "a").unwrap()).as_deref(), Some("1"));
    tx.put(&db, "b", "2").unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::ReadOnly);
    db.transaction().unwrap().commit().unwrap();
}

#[test]
fn a_transaction_and_a_keyspace_are_of_one_database() {
    let dirs = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (db, other) = (Db::open(dirs.0.path()).unwrap(), Db::open(dirs.1.path()).unwrap());
    let mut tx = db.transaction().unwrap();
    assert_eq!(tx.get(&other, "a").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(tx.put(&other, "a", "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let long = vec![0; crate::KEY_BYTES_MAX + 1];
    assert_eq!(tx.put(&db, long, "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    tx.put(&db, "a", "1").unwrap();
    tx.commit().unwrap();
}

fn waiting() -> TransactionOptions {
    TransactionOptions {
        lock_timeout: Duration::from_secs(60),
        ..TransactionOptions::pessimistic()
    }
}

fn not_waiting() -> TransactionOptions {
    TransactionOptions { lock_timeout: Duration::ZERO, ..TransactionOptions::pessimistic() }
}

#[test]
fn a_locked_key_is_waited_for_and_read_as_it_is_then() {
    let (db, _handles) = Db::in_memory();
    db.put("a", "1").unwrap();
    let mut first = db.transaction_with(&waiting()).unwrap();
    assert_eq!(text(first.get_for_update(&db, "a").unwrap()).as_deref(), Some("1"));
    first.put(&db, "a", "2").unwrap();
    let theirs = db.clone();
    let second = std::thread::spawn(move || {
        let mut tx = theirs.transaction_with(&waiting()).unwrap();
        let seen = text(tx.get_for_update(&theirs, "a").unwrap());
        tx.put(&theirs, "a", "3").unwrap();
        tx.commit().unwrap();
        seen
    });
    let mut third = db.transaction_with(&not_waiting()).unwrap();
    assert_eq!(third.get_for_update(&db, "a").unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(third.put(&db, "a", "4").unwrap_err().kind(), ErrorKind::Busy);
    assert!(third.is_empty());
    // The default keyspace's lock differs from that of another keyspace, and reads lock nothing.
    let other = db.keyspace("other").unwrap();
    assert_eq!(third.get_for_update(&other, "a").unwrap(), None);
    assert_eq!(text(third.get(&db, "a").unwrap()).as_deref(), Some("1"));
    first.commit().unwrap();
    assert_eq!(second.join().unwrap().as_deref(), Some("2"), "what it waited for");
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("3"));
    drop(third);
    assert_eq!(db.database().pipeline.key_locks.memory_bytes(), 0);
}

#[test]
fn what_was_shared_is_read_by_many_and_written_by_one() {
    let (db, _handles) = Db::in_memory();
    let begin = || db.transaction_with(&not_waiting()).unwrap();
    let (mut a, mut b) = (begin(), begin());
    assert_eq!(a.get_for_share(&db, "k").unwrap(), None);
    assert_eq!(b.get_for_share(&db, "k").unwrap(), None);
    assert_eq!(a.put(&db, "k", "a").unwrap_err().kind(), ErrorKind::Busy);
    b.rollback();
    assert_eq!(a.put(&db, "k", "a").unwrap_err().kind(), ErrorKind::Busy, "it is kept");
    drop(b);
    a.put(&db, "k", "a").unwrap();
    a.commit().unwrap();
    assert_eq!(text(db.get("k").unwrap()).as_deref(), Some("a"));
}

#[test]
fn a_lock_brings_the_present_unless_what_was_read_has_changed() {
    let (db, _handles) = Db::in_memory();
    for name in ["a", "b", "c"] {
        db.put(name, "1").unwrap();
    }
    let mut tx = db.transaction_with(&waiting()).unwrap();
    assert_eq!(text(tx.get(&db, "a").unwrap()).as_deref(), Some("1"));
    db.put("b", "2").unwrap();
    db.put("c", "2").unwrap();
    assert_eq!(text(tx.get(&db, "c").unwrap()).as_deref(), Some("1"), "still the snapshot");
    db.put("c", "1").unwrap();
    // `c` was written since, if only with the same value.
    let error = tx.get_for_update(&db, "b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict, "it is lost");

    let mut tx = db.transaction().unwrap();
    assert_eq!(text(tx.get(&db, "a").unwrap()).as_deref(), Some("1"));
    db.put("b", "3").unwrap();
    assert_eq!(text(tx.get_for_update(&db, "b").unwrap()).as_deref(), Some("3"));
    // A write without a transaction waits for no lock.
    db.put("b", "4").unwrap();
    tx.put(&db, "b", "5").unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_deadlock_is_told_and_gone_through_by_transact() {
    let (db, _handles) = Db::in_memory();
    db.put("a", "0").unwrap();
    db.put("b", "0").unwrap();
    let deadlocks = std::sync::atomic::AtomicU32::new(0);
    let both_have_one = std::sync::Barrier::new(2);
    let add = |keys: [&'static str; 2]| {
        let mut is_first = true;
        db.transact_with(&waiting(), |tx| -> Result<()> {
            for key in keys {
                let value = tx.get_for_update(&db, key).inspect_err(|error| {
                    assert!(
                        error.to_string().contains("would be a deadlock: transaction "),
                        "{error}"
                    );
                    deadlocks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                })?;
                if std::mem::take(&mut is_first) {
                    both_have_one.wait();
                }
                let number: u32 = text(value).unwrap().parse().unwrap();
                tx.put(&db, key, (number + 1).to_string())?;
            }
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        scope.spawn(|| add(["a", "b"]).unwrap());
        scope.spawn(|| add(["b", "a"]).unwrap());
    });
    assert!(deadlocks.into_inner() > 0);
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("2"));
    assert_eq!(text(db.get("b").unwrap()).as_deref(), Some("2"));
}

#[test]
fn locked_counters_of_many_threads_never_conflict() {
    let (db, _handles) = Db::in_memory();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200_u64 {
                    let mut tx = db.transaction_with(&waiting()).unwrap();
                    // In one order, so that there are no deadlocks.
                    for name in [key(n % 3), key(3)] {
                        let before = tx.get_for_update(&db, &name).unwrap();
                        let before =
                            before.map_or(0, |v| u64::from_be_bytes((*v).try_into().unwrap()));
                        tx.put(&db, &name, (before + 1).to_be_bytes()).unwrap();
                    }
                    tx.commit().unwrap();
                }
            });
        }
    });
    let all = db.get(key(3)).unwrap().unwrap();
    assert_eq!(u64::from_be_bytes((*all).try_into().unwrap()), 800);
}

#[test]
fn a_batch_is_written_if_its_conditions_hold() {
    let (db, _handles) = Db::in_memory();
    let other = db.keyspace("other").unwrap();
    let batch = || {
        let mut batch = Batch::new();
        batch.put(&db, "a", "1");
        batch.put(&other, "b", "2");
        batch
    };
    let absent = Conditions::new().absent(&db, "a").absent(&other, "b");
    assert_eq!(db.write_if(batch(), &absent, WriteSync::No).unwrap(), Some(2));
    assert_eq!(db.write_if(batch(), &absent, WriteSync::No).unwrap(), None);
    let equal = Conditions::new().equal(&db, "a", "1").present(&other, "b");
    assert_eq!(db.write_if(batch(), &equal, WriteSync::Yes).unwrap(), Some(4));
    assert_eq!(db.write_if(batch(), &equal.equal(&db, "a", "3"), WriteSync::No).unwrap(), None);
    assert_eq!(db.snapshot().seq(), 4);
    let dir = tempfile::tempdir().unwrap();
    let stranger = Db::open(dir.path()).unwrap();
    let of_other = Conditions::new().absent(&stranger, "x");
    let refused = db.write_if(batch(), &of_other, WriteSync::No).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    // As long as no other thread writes in between, nothing is recorded for it.
    assert!(!db.database().pipeline.observers.recent.is_on());
}

#[test]
fn updates_of_many_threads_without_transactions_lose_nothing() {
    let (db, _handles) = Db::in_memory();
    let add = |old: Option<&[u8]>| {
        let before = old.map_or(0, |v| u64::from_be_bytes(v.try_into().unwrap()));
        Some((before + 1).to_be_bytes().to_vec())
    };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (db, add) = (&db, &add);
            scope.spawn(move || {
                for n in 0..300 {
                    db.put(key(50 + thread), "noise").unwrap();
                    while let Err(error) = db.update(key(n % 2), add) {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    }
                }
            });
        }
    });
    for n in 0..2 {
        let value = db.get(key(n)).unwrap().unwrap();
        assert_eq!(u64::from_be_bytes((*value).try_into().unwrap()), 600);
    }
}

/// Random operations against a map: reads, ranges from both ends, writes of all kinds, savepoints;
/// several transactions open at a time, with plain writes between. Each that commits must have seen
/// the state of the database at its commit; each that must not conflict commits.
#[test]
fn random_transactions_are_as_if_one_after_the_other() {
    let (mut commits, mut conflicts) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (env, _handles) = windrow_env::testing::env(seed);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.default_keyspace.merge_operator = Some("append".into());
        let db = Db::open_with("db", options).unwrap();
        let mut model = EntryModel::new();
        let mut open: Vec<OpenTransaction> = Vec::new();
        for _ in 0..400 {
            let at = rng.below(4) as usize;
            match rng.below(10) {
                0 if open.len() < 4 => open.push(OpenTransaction::begin(&db, &model)),
                1 if at < open.len() => {
                    let run = open.swap_remove(at);
                    let must_commit = run.is_unchanged(&model);
                    let OpenTransaction { tx, ops, wrote, .. } = run;
                    match tx.commit() {
                        Ok(_) => {
                            assert!(must_commit || !wrote, "seed {seed}: it read what has changed");
                            ops.iter().for_each(|op| op.apply(&mut model));
                            commits += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                            conflicts += 1;
                        }
                    }
                }
                2 => {
                    let op = ModelOp::random(&mut rng);
                    let mut batch = Batch::new();
                    op.push(&db, &mut batch);
                    db.write(batch, WriteSync::No).unwrap();
                    op.apply(&mut model);
                }
                3 if rng.chance(0.1) => db.flush().unwrap(),
                _ if at < open.len() => open[at].step(&db, &mut rng),
                _ => {}
            }
        }
        assert_eq!(entries(db.iter()), Vec::from_iter(model.clone()), "seed {seed}");
    }
    assert!(commits > 500 && conflicts > 100, "{commits} commits, {conflicts} conflicts");
}

#[derive(Clone, Debug)]
enum ModelOp {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl ModelOp {
    fn random(rng: &mut Rng) -> ModelOp {
        let value = vec![b'a' + rng.below(26) as u8; 1 + rng.below(3) as usize];
        let (k, to) = (rng.below(20), rng.below(20));
        match rng.below(8) {
            0..4 => ModelOp::Put(key(k), value),
            4 | 5 => ModelOp::Delete(key(k)),
            6 => ModelOp::Merge(key(k), value),
            _ => ModelOp::DeleteRange(key(k), key(to.min(k + 4))),
        }
    }

    fn push(&self, db: &Db, batch: &mut Batch) {
        match self {
            ModelOp::Put(key, value) => batch.put(db, key, value),
            ModelOp::Delete(key) => batch.delete(db, key),
            ModelOp::Merge(key, operand) => batch.merge(db, key, operand),
            ModelOp::DeleteRange(from, to) => batch.delete_range(db, from, to),
        }
    }

    fn write(&self, db: &Db, tx: &mut Transaction) {
        let written = match self {
            ModelOp::Put(key, value) => tx.put(db, key, value),
            ModelOp::Delete(key) => tx.delete(db, key),
            ModelOp::Merge(key, operand) => tx.merge(db, key, operand),
            ModelOp::DeleteRange(from, to) => tx.delete_range(db, from, to),
        };
        written.unwrap();
    }

    /// Whether the value of a key after the operation does not depend on the one before.
    fn determines(&self, key: &[u8]) -> bool {
        match self {
            ModelOp::Put(own, _) | ModelOp::Delete(own) => own == key,
            ModelOp::Merge(..) => false,
            ModelOp::DeleteRange(from, to) => &**from <= key && key < &**to,
        }
    }

    fn apply(&self, model: &mut EntryModel) {
        match self {
            ModelOp::Put(key, value) => _ = model.insert(key.clone(), value.clone()),
            ModelOp::Delete(key) => _ = model.remove(key),
            ModelOp::Merge(key, operand) => {
                let value = model.entry(key.clone()).or_default();
                value.extend_from_slice(operand);
            }
            ModelOp::DeleteRange(from, to) => model.retain(|key, _| key < from || key >= to),
        }
    }
}

/// An open transaction with the state that it must see, and its reads: as the test counts them.
struct OpenTransaction {
    tx: Transaction,
    seen: EntryModel,
    begun: EntryModel,
    ops: Vec<ModelOp>,
    wrote: bool,
    savepoints: Vec<(Savepoint, usize, EntryModel)>,
    keys: Vec<Vec<u8>>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl OpenTransaction {
    fn begin(db: &Db, model: &EntryModel) -> OpenTransaction {
        OpenTransaction {
            tx: db.transaction().unwrap(),
            seen: model.clone(),
            begun: model.clone(),
            ops: Vec::new(),
            wrote: false,
            savepoints: Vec::new(),
            keys: Vec::new(),
            ranges: Vec::new(),
        }
    }

    fn step(&mut self, db: &Db, rng: &mut Rng) {
        match rng.below(8) {
            0..3 => {
                let op = ModelOp::random(rng);
                op.write(db, &mut self.tx);
                op.apply(&mut self.seen);
                self.ops.push(op);
                self.wrote = true;
            }
            3 | 4 => {
                let key = key(rng.below(20));
                let value = self.tx.get(db, &key).unwrap();
                assert_eq!(value.as_deref(), self.seen.get(&key).map(Vec::as_slice));
                // A value that the transaction has set itself does not depend on others.
                if !self.ops.iter().any(|op| op.determines(&key)) {
                    self.keys.push(key);
                }
            }
            5 => self.scan(db, rng),
            6 => self.savepoints.push((self.tx.savepoint(), self.ops.len(), self.seen.clone())),
            _ => {
                if let Some((savepoint, ops, seen)) = self.savepoints.pop() {
                    self.tx.rollback_to(&savepoint).unwrap();
                    self.ops.truncate(ops);
                    self.wrote = ops > 0;
                    self.seen = seen;
                }
            }
        }
    }

    /// From both ends, at random, to the end or not.
    fn scan(&mut self, db: &Db, rng: &mut Rng) {
        let (from, to) = (key(rng.below(20)), key(rng.below(24)));
        let expected: Vec<_> = self.seen.iter().filter(|(k, _)| **k >= from && **k < to).collect();
        let mut expected: std::collections::VecDeque<_> = expected.into();
        let mut iter = self.tx.range(db, from.clone()..to.clone()).unwrap();
        let (mut front, mut back, mut all) = (None, None, false);
        for _ in 0..rng.below(12) {
            let at_front = rng.chance(0.5);
            let (got, want) = match at_front {
                true => (iter.next(), expected.pop_front()),
                false => (iter.next_back(), expected.pop_back()),
            };
            match (want, at_front) {
                (Some((key, _)), true) => front = Some(key.clone()),
                (Some((key, _)), false) => back = Some(key.clone()),
                (None, _) => all = true,
            }
            let got = got.map(|item| item.unwrap());
            let got = got.as_ref().map(|(k, v)| (k.as_bytes(), v.as_bytes()));
            assert_eq!(got, want.map(|(k, v)| (k.as_slice(), v.as_slice())));
        }
        if all {
            self.ranges.push((from, to));
            return;
        }
        if let Some(key) = front {
            self.ranges.push((from, [&key[..], b"\0"].concat()));
        }
        if let Some(key) = back {
            self.ranges.push((key, to));
        }
    }

    /// Whether the database still shows all reads as they were.
    fn is_unchanged(&self, model: &EntryModel) -> bool {
        let key_is = |key: &Vec<u8>| self.begun.get(key) == model.get(key);
        let in_range = |model: &EntryModel, (from, to): &(Vec<u8>, Vec<u8>)| {
            let within = model.iter().filter(|(k, _)| *k >= from && *k < to);
            within.map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>()
        };
        self.keys.iter().all(key_is)
            && self
                .ranges
                .iter()
                .all(|range| in_range(&self.begun, range) == in_range(model, range))
    }
}

/// A database of 8 MiB. A transaction may take one of them for its reads, and two for its writes.
fn small_budget() -> Db {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.components.env = Some(windrow_env::testing::env(1).0);
    Db::open_with("db", options).unwrap()
}

fn is_refused<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::InvalidArgument)
}

#[test]
fn reads_that_find_nothing_count_and_are_refused_at_the_bound() {
    let db = small_budget();
    let prefix = |i: u32| [b"nothing".as_slice(), &[0; 1000], &i.to_be_bytes()].concat();
    let mut tx = db.transaction().unwrap();
    let scan = |tx: &Transaction, i| tx.prefix(&db, prefix(i)).unwrap().next().transpose();
    let first_refused = (0..5_000).find(|&i| is_refused(scan(&tx, i))).unwrap();
    // Two bounds of a kilobyte each.
    assert!((300..520).contains(&first_refused), "{first_refused}");
    // It remains so, for keys as well, and for more of a range. Reads that count may be repeated.
    assert!((0..2_000).all(|i| is_refused(scan(&tx, first_refused + i))));
    let gets = (0..2_000).filter(|&i| tx.get(&db, prefix(first_refused + i)).is_ok()).count();
    assert!(gets <= 2, "{gets} more keys, of half that size");
    assert!(is_refused(tx.get_for_update(&db, prefix(0))));
    assert_eq!(db.database().pipeline.key_locks.memory_bytes(), 0, "a lock that does not count");
    tx.put(&db, "result", "x").unwrap();
    // Reads before the bound must still be unchanged.
    let mut other = db.transaction().unwrap();
    assert_eq!(scan(&other, 7).unwrap(), None);
    other.put(&db, "other", "x").unwrap();
    db.put(prefix(7), "").unwrap();
    assert!(is_conflict(other.commit()));
    assert!(is_conflict(tx.commit()));
    let mut tx = db.transaction().unwrap();
    assert!(scan(&tx, 8).unwrap().is_none());
    tx.put(&db, "result", "x").unwrap();
    tx.commit().unwrap();
}

/// A range that is walked further includes the key that it has come to.
#[test]
fn a_range_counts_as_far_as_it_was_walked() {
    let db = small_budget();
    let long = [b"z".as_slice(), &[0; 60_000]].concat();
    db.put("a", "").unwrap();
    db.put(&long, "").unwrap();
    for (backwards, few, many) in [(false, 20, 30), (true, 0, 0)] {
        let tx = db.transaction().unwrap();
        let mut refused = 0;
        for _ in 0..40 {
            let mut range = tx.iter(&db).unwrap();
            let mut next = || if backwards { range.next_back() } else { range.next() };
            let (first, second) = (next(), next());
            let is_err = |item: Option<Result<_>>| item.unwrap().is_err();
            refused += usize::from(is_err(first) || is_err(second));
        }
        assert!((few..=many).contains(&refused), "{refused} of 40 were refused");
    }
}

#[test]
fn a_write_is_refused_where_the_commit_would_be() {
    let db = small_budget();
    db.put("gone", "1").unwrap();
    let mut tx = db.transaction().unwrap();
    let value = [7; 60_000];
    let key = |i: usize| format!("key{i:05}");
    let written = (0..500).find(|&i| is_refused(tx.put(&db, key(i), value))).unwrap();
    assert!((30..36).contains(&written), "{written}");
    assert_eq!((tx.len(), tx.get(&db, key(written)).unwrap()), (written, None));
    let before = tx.savepoint();
    assert!(is_refused(tx.merge(&db, "a", value)) && is_refused(tx.put(&db, "a", value)));
    tx.delete(&db, "gone").unwrap();
    tx.rollback_to(&before).unwrap();
    tx.delete(&db, "gone").unwrap();
    tx.commit().unwrap();
    assert_eq!(db.iter().count(), written);
    // By the memory that small operations take, too.
    let mut tx = db.transaction().unwrap();
    let deletes = (0..1_000_000u32).take_while(|i| tx.delete(&db, i.to_be_bytes()).is_ok()).count();
    assert!((50_000..100_000).contains(&deletes), "{deletes}");
    tx.commit().unwrap();
}

#[test]
fn a_lock_that_was_not_free_leaves_the_transaction_as_it_was() {
    let (db, _handles) = Db::in_memory();
    let mut first = db.transaction_with(&waiting()).unwrap();
    first.put(&db, "a", "1").unwrap();
    let busy = |tx: &mut Transaction| tx.put(&db, "a", "2").unwrap_err().kind();
    // With nothing else in it, with something, and with what was read.
    let mut empty = db.transaction_with(&not_waiting()).unwrap();
    let mut other = db.transaction_with(&not_waiting()).unwrap();
    let mut reader = db.transaction_with(&not_waiting()).unwrap();
    other.put(&db, "b", "2").unwrap();
    assert_eq!(reader.get_for_update(&db, "c").unwrap(), None);
    for tx in [&mut empty, &mut other, &mut reader] {
        assert_eq!(busy(tx), ErrorKind::Busy);
    }
    empty.commit().unwrap();
    other.commit().unwrap();
    first.commit().unwrap();
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("1"));
    assert_eq!(text(db.get("b").unwrap()).as_deref(), Some("2"));
    // Later the lock is free, and earlier reads must still be unchanged.
    reader.put(&db, "a", "3").unwrap();
    reader.commit().unwrap();
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("3"));
    // A deadlock, or a change of a read, remains.
    db.put("d", "1").unwrap();
    let mut lost = db.transaction_with(&not_waiting()).unwrap();
    lost.get(&db, "d").unwrap();
    db.put("d", "2").unwrap();
    assert!(is_conflict(lost.get_for_update(&db, "e")));
    let error = lost.commit().unwrap_err();
    assert!(error.message().contains("has changed since, or waiting for a lock"), "{error}");
}
