//! Watches of a prefix: compared with the whole feed, and one thing at a time.

use crate::changes::{from, open};
use crate::simulated_database::{DIR, options};
use std::cmp::Ordering;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use windrow::changes::{Change, Changes, Operation, watch_prefix};
use windrow::{
    Batch, Comparator, Db, ErrorKind, Follower, Keyspace, KeyspaceOptions, Result, WriteSync,
};
use windrow_env::testing::{Rng, env};

fn now(changes: &mut Changes) -> Vec<Change> {
    changes.collect::<Result<_>>().unwrap()
}

/// Whether an operation in the default keyspace touches keys with a prefix, key by key.
fn touches(operation: &Operation, prefix: &[u8]) -> bool {
    let all = (0..200u32).map(|n| format!("{n:03}").into_bytes());
    let mut there = all.filter(|key| key.starts_with(prefix));
    operation.keyspace() == "default"
        && match operation {
            Operation::Put { key, .. } | Operation::Delete { key, .. } => key.starts_with(prefix),
            Operation::DeleteRange { from, to, .. } => there.any(|key| *from <= key && key < *to),
            Operation::Ingested { .. } => true,
            other => panic!("{other:?}"),
        }
}

#[test]
fn a_watch_has_the_part_of_the_feed_that_touches_the_prefix() {
    for seed in 0..6 {
        let (_, handles) = env(seed);
        let db = open(&handles, 1 << 30);
        let other = db.keyspace("other").unwrap();
        let mut rng = Rng::new(seed);
        let prefixes = ["", "1", "01", "017", "2"];
        let mut watches = prefixes.map(|prefix| watch_prefix(&db, prefix).unwrap());
        let mut all = from(&db, 1).unwrap();
        let (mut seen, mut expected) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
        for step in 0..300 {
            let mut batch = Batch::new();
            for _ in 0..=rng.below(3) {
                let key = |rng: &mut Rng| format!("{:03}", rng.below(200));
                let space: &Keyspace = if rng.chance(0.3) { &other } else { &db };
                match rng.below(4) {
                    0 => batch.delete(space, key(&mut rng)),
                    1 => batch.delete_range(space, key(&mut rng), key(&mut rng)),
                    _ => batch.put(space, key(&mut rng), vec![1; rng.below(900) as usize]),
                }
            }
            db.write(batch, WriteSync::No).unwrap();
            match rng.below(20) {
                0 => db.flush().unwrap(),
                1 => {
                    let mut ingest = db.ingest().unwrap();
                    ingest.put("150", "ingested").unwrap();
                    ingest.finish().unwrap();
                }
                2..=5 => _ = handles.jobs.run_until_idle(),
                6..=8 => {
                    for (watch, seen) in watches.iter_mut().zip(&mut seen) {
                        seen.extend(now(watch));
                        assert!(watch.next_seq() <= db.snapshot().seq() + 1, "step {step}");
                    }
                }
                _ => {}
            }
        }
        for change in now(&mut all) {
            for (prefix, expected) in prefixes.iter().zip(&mut expected) {
                let mut part = change.clone();
                part.operations.retain(|operation| touches(operation, prefix.as_bytes()));
                if !part.operations.is_empty() {
                    expected.push(part);
                }
            }
        }
        for (at, watch) in watches.iter_mut().enumerate() {
            seen[at].extend(now(watch));
            assert!(seen[at].len() > 3, "seed {seed}: {} changes", seen[at].len());
            // A range may end before the first key with the prefix that the test knows.
            let is_known = |change: &&Change| {
                change.operations.iter().any(|op| touches(op, prefixes[at].as_bytes()))
            };
            let seen: Vec<_> = seen[at].iter().filter(is_known).collect();
            assert!(seen.iter().map(|change| change.seq).eq(expected[at].iter().map(|c| c.seq)));
            for (seen, expected) in seen.iter().zip(&expected[at]) {
                let lacks = expected.operations.iter().find(|op| !seen.operations.contains(op));
                assert_eq!(lacks, None, "seed {seed}, prefix {:?}", prefixes[at]);
            }
        }
    }
}

#[test]
fn what_was_written_before_is_not_in_a_watch_and_a_drop_ends_it() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let users = db.keyspace("users").unwrap();
    users.put("a1", "1").unwrap();
    let mut watch = watch_prefix(&users, "a").unwrap();
    assert!(now(&mut watch).is_empty());
    let (mut batch, a2) = (Batch::new(), Arc::from("users"));
    batch.put(&users, "b", "1");
    batch.put(&users, "a2", "1");
    batch.put(&db, "a", "1");
    db.write(batch, WriteSync::No).unwrap();
    let found = now(&mut watch);
    assert_eq!((found.len(), found[0].seq, found[0].operations.len()), (1, 4, 1));
    assert!(matches!(&found[0].operations[0], Operation::Put { key, .. } if key == b"a2"));
    db.keyspace("gone").unwrap();
    db.drop_keyspace("gone").unwrap();
    db.drop_keyspace("users").unwrap();
    db.keyspace("users").unwrap().put("a3", "1").unwrap();
    let found = now(&mut watch);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].operations, [Operation::KeyspaceDropped { keyspace: a2 }]);
    assert_eq!(watch_prefix(&users, "a").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_wait_passes_over_changes_of_other_keys() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let mut watch = watch_prefix(&db, "user/").unwrap();
    let mut context = Context::from_waker(Waker::noop());
    for n in 0..300 {
        db.put(format!("word/{n}"), vec![1; 2000]).unwrap();
    }
    assert!(watch.poll_next(&mut context).is_pending());
    assert_eq!(watch.next_within(Duration::from_millis(1)).unwrap(), None);
    db.put("word", "1").unwrap();
    db.put("user/ada", "1").unwrap();
    let change = watch.next_within(Duration::from_millis(1)).unwrap().unwrap();
    assert_eq!((change.seq, watch.next_seq()), (302, 303));
}

struct Backwards;

impl Comparator for Backwards {
    fn id(&self) -> &str {
        "test.backwards"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

#[test]
fn a_watch_that_can_see_nothing_is_refused() {
    let (_, handles) = env(1);
    let mut asked = options(&handles);
    asked.components.comparators.push(Arc::new(Backwards));
    let db = Db::open_with(DIR, asked.clone()).unwrap();
    let backwards =
        KeyspaceOptions { comparator: Some("test.backwards".into()), ..KeyspaceOptions::default() };
    let space = db.keyspace_with("backwards", backwards).unwrap();
    assert_eq!(watch_prefix(&space, "a").unwrap_err().kind(), ErrorKind::NotSupported);
    let follower = Follower::open_with(DIR, asked).unwrap();
    assert_eq!(watch_prefix(&follower.db(), "a").unwrap_err().kind(), ErrorKind::ReadOnly);
    db.close().unwrap();
    assert_eq!(watch_prefix(&db, "a").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_watch_that_is_taken_from_too_late_is_told() {
    let (_, handles) = env(1);
    let db = open(&handles, 0);
    let mut watch = watch_prefix(&db, "a").unwrap();
    for n in 0..300 {
        db.put(format!("{n}"), vec![1; 600]).unwrap();
    }
    db.flush().unwrap();
    handles.jobs.run_until_idle();
    let error = watch.try_next().unwrap_err();
    assert!(error.message().contains("is asked for"), "{error}");
}
