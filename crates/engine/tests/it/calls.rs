//! The calls that users of other stores expect, each compared with a map.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use windrow::inspect::{BatchOp, KeyspaceId};
use windrow::{
    Batch, Comparator, Db, ErrorKind, KEY_BYTES_MAX, Keyspace, KeyspaceOptions, Options, Ttl,
    WriteSync,
};
use windrow_env::testing::{Handles, Rng, env};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open() -> (Db, Handles) {
    let (env, handles) = env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    options.components.comparators.push(Arc::new(Backwards));
    options.settings.set("memtable_bytes", "64KiB").unwrap();
    (Db::open_with("db", options).unwrap(), handles)
}

/// The bytewise order, reversed.
#[derive(Debug)]
struct Backwards;

impl Comparator for Backwards {
    fn id(&self) -> &str {
        "backwards"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn own(entry: Option<(windrow::Slice, windrow::Slice)>) -> Option<(Vec<u8>, Vec<u8>)> {
    entry.map(|(key, value)| (key.to_vec(), value.to_vec()))
}

fn pair((key, value): (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (key.clone(), value.clone())
}

/// Compares all calls without a key, and with this one.
fn compare(space: &Keyspace, map: &Map, key: &[u8]) {
    assert_eq!(space.contains_key(key).unwrap(), map.contains_key(key));
    assert_eq!(space.is_empty().unwrap(), map.is_empty());
    assert_eq!(own(space.first().unwrap()), map.iter().next().map(pair));
    assert_eq!(own(space.last().unwrap()), map.iter().next_back().map(pair));
    assert_eq!(space.count(key..).unwrap(), map.range(key.to_vec()..).count() as u64);
    assert_eq!(space.count(..).unwrap(), map.len() as u64);
    let keys: Vec<Vec<u8>> = space.iter().keys().rev().map(|key| key.unwrap().to_vec()).collect();
    assert!(keys.iter().eq(map.keys().rev()));
}

fn some_key(rng: &mut Rng) -> Vec<u8> {
    // The longest key is among them. No key comes after it.
    match rng.below(12) {
        0 => vec![0xff; 65_535],
        1 => Vec::new(),
        _ => format!("{:03}", rng.below(60)).into_bytes(),
    }
}

#[test]
fn random_calls_do_what_a_map_does() {
    let (db, _handles) = open();
    let space = db.keyspace("calls").unwrap();
    let mut rng = Rng::new(7);
    let mut map = Map::new();
    for n in 0..6_000u64 {
        let (key, other) = (some_key(&mut rng), some_key(&mut rng));
        let value = n.to_string().into_bytes();
        match rng.below(60) {
            0 => {
                let range = (Bound::Excluded(key.clone()), Bound::Included(other.clone()));
                space.clear_range(range).unwrap();
                map.retain(|k, _| *k <= key || *k > other);
            }
            1 => {
                space.clear_range(&key[..]..).unwrap();
                map.retain(|k, _| *k < key);
            }
            2 => {
                let prefix = &key[..key.len().min(2)];
                space.clear_prefix(prefix).unwrap();
                map.retain(|k, _| !k.starts_with(prefix));
            }
            3 if rng.below(4) == 0 => {
                space.clear().unwrap();
                map.clear();
            }
            3 => {
                let prefix = &key[..key.len().min(2)];
                let mut batch = Batch::new();
                batch.delete_prefix(&space, prefix);
                db.write(batch, WriteSync::No).unwrap();
                map.retain(|k, _| !k.starts_with(prefix));
            }
            4..8 => assert_eq!(own(space.pop_first().unwrap()), map.pop_first()),
            8..12 => assert_eq!(own(space.pop_last().unwrap()), map.pop_last()),
            12..16 => {
                let before = space.remove(&key).unwrap();
                assert_eq!(before.as_deref(), map.remove(&key).as_deref());
            }
            16..18 => compare(&space, &map, &key),
            18..22 => {
                let held = map.get(&key).map(Vec::as_slice);
                let expected = if rng.below(3) == 0 { Some(&b"no number"[..]) } else { held };
                let done = space.compare_exchange(&key, expected, Some(&value)).unwrap();
                if expected == held {
                    assert_eq!(done, Ok(()));
                    map.insert(key, value);
                } else {
                    assert_eq!(done.unwrap_err().as_deref(), held);
                }
            }
            _ => {
                let before = space.replace(&key, &value).unwrap();
                assert_eq!(before.as_deref(), map.insert(key, value).as_deref());
            }
        }
    }
    compare(&space, &map, b"030");
}

/// A prefix is no range in every order of keys, and a range's ends are those of the order.
#[test]
fn another_order_is_cleared_as_well() {
    let (db, _handles) = open();
    let options =
        KeyspaceOptions { comparator: Some("backwards".into()), ..KeyspaceOptions::default() };
    let space = db.keyspace_with("backwards", options).unwrap();
    let put = |keys: &[&str]| keys.iter().for_each(|key| space.put(key, "1").unwrap());
    let left = || {
        let keys = space.iter().keys().map(|key| String::from_utf8(key.unwrap().to_vec()).unwrap());
        keys.collect::<Vec<_>>().join(" ")
    };
    put(&["a", "ab", "abc", "b", "c"]);
    space.clear_prefix("ab").unwrap();
    assert_eq!(left(), "c b a");
    let mut by_prefix = Batch::new();
    by_prefix.delete_prefix(&space, "b");
    let refused = db.write(by_prefix, WriteSync::No).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    let refused = db.transact(|tx| tx.delete_prefix(&space, "b")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    space.clear_range("c"..="b").unwrap();
    assert_eq!(left(), "a");
    assert_eq!(space.first().unwrap(), space.last().unwrap());
    space.clear().unwrap();
    assert!(space.is_empty().unwrap());
}

#[test]
fn a_prefix_is_removed_with_the_rest_of_a_batch_or_transaction() {
    let (db, _handles) = open();
    let space = db.keyspace("space").unwrap();
    let highest = vec![0xff; KEY_BYTES_MAX];
    for prefix in [&b"b"[..], b"", b"\xff", b"\xff\xff", &highest] {
        for in_transaction in [false, true] {
            for key in
                [&b"a"[..], b"b", b"b\xff", b"c", b"\xff", b"\xff\xfe", b"\xff\xff", &highest]
            {
                space.put(key, "1").unwrap();
            }
            let mut new = prefix.to_vec();
            new.truncate(KEY_BYTES_MAX - 1);
            new.push(0);
            if in_transaction {
                let mut tx = db.transaction().unwrap();
                tx.put(&space, prefix, "before").unwrap();
                tx.delete_prefix(&space, prefix).unwrap();
                tx.put(&space, &new, "after").unwrap();
                assert!(!tx.contains_key(&space, prefix).unwrap());
                tx.commit().unwrap();
            } else {
                let mut batch = Batch::new();
                batch.put(&space, prefix, "before");
                let mut more = Batch::new();
                more.delete_prefix(&space, prefix);
                more.put(&space, &new, "after");
                batch.append(&more);
                db.write(batch, WriteSync::No).unwrap();
            }
            for key in space.iter().keys() {
                let key = key.unwrap();
                assert!(*key == *new || !key.starts_with(prefix), "{key:?} of {prefix:?}");
            }
            assert_eq!(space.get(&new).unwrap().as_deref(), Some(&b"after"[..]));
            assert_eq!(space.contains_key("a").unwrap(), !prefix.is_empty());
            space.clear().unwrap();
        }
    }
}

/// Every entry goes to one of the threads that pop, from either end, while others are put.
#[test]
fn each_entry_is_popped_once() {
    const EACH: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let popped = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|w: u64| {
                let db = &db;
                scope.spawn(move || {
                    (0..EACH).for_each(|n| db.put(format!("{n:04}{w}"), "").unwrap());
                })
            })
            .collect();
        let poppers: Vec<_> = [Keyspace::pop_first, Keyspace::pop_last]
            .map(|pop| {
                let db = &db;
                scope.spawn(move || {
                    let mut popped = Vec::new();
                    while popped.len() < EACH as usize {
                        match pop(db) {
                            Ok(Some((key, _))) => popped.push(key.to_vec()),
                            Ok(None) => std::thread::yield_now(),
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                        }
                    }
                    popped
                })
            })
            .into_iter()
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        poppers.into_iter().flat_map(|popper| popper.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all: Vec<String> =
        (0..EACH).flat_map(|n| (0..2).map(move |w| format!("{n:04}{w}"))).collect();
    let mut popped: Vec<String> =
        popped.into_iter().map(|key| String::from_utf8(key).unwrap()).collect();
    all.sort();
    popped.sort();
    assert_eq!(popped, all);
    assert!(db.is_empty().unwrap());
}

#[test]
fn a_key_says_how_long_it_is_there() {
    let (db, handles) = open();
    db.put("forever", "1").unwrap();
    db.put_with_ttl("soon", "1", Duration::from_secs(60)).unwrap();
    handles.clock.advance_ms(20_000);
    assert_eq!(db.ttl("soon").unwrap(), Ttl::Left(Duration::from_secs(40)));
    assert_eq!(db.ttl("forever").unwrap(), Ttl::Forever);
    assert_eq!(db.ttl("s").unwrap(), Ttl::NoKey, "only `soon` comes after it");
    // A merged value changes when the first of its parts expires.
    let merging = KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
    let merged = db.keyspace_with("merged", merging).unwrap();
    merged.merge_with_ttl("key", "1", Duration::from_secs(60)).unwrap();
    merged.merge_with_ttl("key", "2", Duration::from_secs(90)).unwrap();
    merged.merge("key", "3").unwrap();
    assert_eq!(merged.ttl("key").unwrap(), Ttl::Left(Duration::from_secs(60)));
    handles.clock.advance_ms(40_000);
    assert_eq!(db.ttl("soon").unwrap(), Ttl::NoKey);
    handles.clock.advance_ms(20_000);
    assert_eq!(merged.get("key").unwrap().as_deref(), Some(&b"23"[..]));
    assert_eq!(merged.ttl("key").unwrap(), Ttl::Left(Duration::from_secs(30)));
}

#[test]
fn the_length_is_about_right_and_exact_once_merged() {
    let (db, _handles) = open();
    for n in 0..3_000 {
        db.put(format!("{:04}", n % 1_000), [7; 50]).unwrap();
    }
    assert!((1_000..=3_000).contains(&db.approximate_len().unwrap()));
    (0..250).for_each(|n| db.delete(format!("{n:04}")).unwrap());
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!((db.approximate_len().unwrap(), db.count(..).unwrap()), (750, 750));
}

/// Tombstones in memory subtract the keys that they hide, in memory or in tables.
#[test]
fn deleted_keys_count_as_little_before_a_flush_as_after_it() {
    let (db, _handles) = open();
    let keys = || (0..1_000).map(|n| format!("{n:04}"));
    for in_tables in [false, true] {
        keys().for_each(|key| db.put(key, [7; 50]).unwrap());
        if in_tables {
            db.flush().unwrap();
        }
        assert_eq!(db.approximate_len().unwrap(), 1_000);
        keys().for_each(|key| db.delete(key).unwrap());
        assert_eq!(db.approximate_len().unwrap(), 0);
        db.flush().unwrap();
        assert_eq!(db.approximate_len().unwrap(), 0);
    }
    db.put("a", "1").unwrap();
    db.single_delete("a").unwrap();
    assert_eq!((db.approximate_len().unwrap(), db.count(..).unwrap()), (0, 0));
}

#[test]
fn a_batch_tells_what_it_holds_and_what_is_wrong_with_it() {
    let (db, _handles) = open();
    let other = db.keyspace("other").unwrap();
    let mut first = Batch::new();
    first.put(&db, "a", "1");
    first.put_with_ttl(&other, "b", "2", Duration::from_millis(5));
    let mut second = Batch::new();
    second.delete(&other, "c");
    second.single_delete(&db, "d");
    second.merge(&db, "e", "3");
    second.merge_with_ttl(&db, "e", "4", Duration::from_millis(7));
    second.delete_range(&db, "f", "g");
    first.append(&Batch::new());
    first.append(&second);
    let now_ms = windrow::InKeyspace::now_ms(&db);
    let expected = [
        (KeyspaceId::DEFAULT, BatchOp::Put { key: b"a", value: b"1" }),
        (other.id(), BatchOp::PutUntil { key: b"b", value: b"2", expiry_ms: now_ms + 5 }),
        (other.id(), BatchOp::Delete { key: b"c" }),
        (KeyspaceId::DEFAULT, BatchOp::SingleDelete { key: b"d" }),
        (KeyspaceId::DEFAULT, BatchOp::Merge { key: b"e", operand: b"3" }),
        (
            KeyspaceId::DEFAULT,
            BatchOp::MergeUntil { key: b"e", operand: b"4", expiry_ms: now_ms + 7 },
        ),
        (KeyspaceId::DEFAULT, BatchOp::DeleteRange { from: b"f", to: b"g" }),
    ];
    assert!(first.iter().eq(expected));
    assert!(first.error().is_none());
    // The default keyspace has no operator, so any operand is refused.
    let refused = db.write(first.clone(), WriteSync::No).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    let mut broken = Batch::new();
    broken.put(&db, vec![0; 70_000], "");
    assert!(broken.error().is_some_and(|error| error.to_string().contains("70000 bytes")));
    first.append(&broken);
    assert!(first.error().is_some_and(|error| error.to_string().contains("70000 bytes")));
    // From another seed: an open database is distinguished from others by random bytes.
    let (env, _handles) = env(2);
    let mut options = Options::default();
    options.components.env = Some(env);
    let stranger = Db::open_with("db", options).unwrap();
    let mut foreign = Batch::new();
    foreign.put(&stranger, "a", "1");
    second.append(&foreign);
    assert!(second.error().is_some_and(|error| error.to_string().contains("two databases")));
}

#[test]
fn handles_may_pass_where_a_panic_is_caught() {
    let (db, _handles) = open();
    let space = db.keyspace("space").unwrap();
    let panicked = std::panic::catch_unwind(|| {
        db.put("a", "1").unwrap();
        space.put("a", "1").unwrap();
        panic!("as asked");
    });
    assert!(panicked.is_err());
    assert_eq!((db.count(..).unwrap(), space.count(..).unwrap()), (1, 1));
}

/// Each write through a synced handle survives the loss of power, and a call that writes nothing
/// waits for nothing.
#[test]
fn what_a_synced_handle_writes_is_on_the_device() {
    let (db, handles) = open();
    let merging = KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
    let merged = db.keyspace_with("merged", merging).unwrap();
    let plain = db.keyspace("plain").unwrap();
    let (synced, merged) = (db.synced(), merged.synced());
    let space = synced.keyspace("plain").unwrap();
    let minute = Duration::from_secs(60);
    let syncs = |work: &dyn Fn() -> windrow::Result<()>| {
        let before = handles.fs.syncs();
        work().unwrap();
        handles.fs.syncs() - before
    };
    let writes: &[&dyn Fn() -> windrow::Result<()>] = &[
        &|| space.put("a", "1"),
        &|| space.put_with_ttl("b", "1", minute),
        &|| space.delete("b"),
        &|| space.put("c", "1"),
        &|| space.single_delete("c"),
        &|| merged.merge("a", "1"),
        &|| merged.merge_with_ttl("a", "2", minute),
        &|| space.delete_range("a", "b"),
        &|| space.replace("a", "1").map(|_| ()),
        &|| space.compare_exchange("a", Some(b"1"), Some(b"2")).map(|_| ()),
        &|| space.update("a", |_| Some(vec![3])).map(|_| ()),
        &|| space.put_if_absent("d", "1").map(|_| ()),
        &|| space.remove("d").map(|_| ()),
        &|| space.pop_first().map(|_| ()),
        &|| space.put("e", "1"),
        &|| space.clear(),
        &|| synced.put("a", "1"),
        &|| synced.transact(|tx| tx.put(&space, "f", "1")),
        &|| synced.default_keyspace().put("a", "1"),
        &|| synced.create_keyspaces(&["plain"])?[0].put("a", "1"),
        &|| synced.open_keyspace("plain")?.expect("it is there").put("a", "1"),
    ];
    for (number, write) in writes.iter().enumerate() {
        assert_eq!(syncs(write), 1, "write {number}");
    }
    let others: &[&dyn Fn() -> windrow::Result<()>] = &[
        &|| space.remove("none").map(|_| ()),
        &|| space.put_if_absent("a", "2").map(|_| ()),
        &|| space.put_with("a", "2", WriteSync::No),
        &|| plain.put("a", "1"),
        &|| db.transact(|tx| tx.put(&plain, "a", "1")),
        &|| db.update("a", |_| None).map(|_| ()),
    ];
    for (number, other) in others.iter().enumerate() {
        assert_eq!(syncs(other), 0, "other {number}");
    }
}

/// A database derefs to its default keyspace. Its own methods act on all keyspaces, and those of the
/// keyspace on that alone.
#[test]
fn a_database_acts_on_all_keyspaces_and_derefs_to_the_default_one() {
    let (db, _handles) = open();
    let other = db.keyspace("other").unwrap();
    // Entries in memtables and in tables, of each keyspace.
    let entries = || {
        let at_rest = db.at_rest().unwrap();
        let entries = at_rest.iter().map(|of| (of.memtable_entries, of.tables().entries));
        entries.collect::<Vec<_>>()
    };
    assert_eq!((db.name(), db.id()), ("default", db.default_keyspace().id()));

    db.put("a", "1").unwrap();
    other.put("a", "1").unwrap();
    assert_eq!(entries(), [(1, 0), (1, 0)]);
    Keyspace::flush(&db).unwrap();
    assert_eq!(entries(), [(0, 1), (1, 0)]);
    db.flush().unwrap();
    assert_eq!(entries(), [(0, 1), (0, 1)]);

    db.clear().unwrap();
    assert_eq!((db.is_empty().unwrap(), other.is_empty().unwrap()), (true, false));
    db.compact_range(..).unwrap();
    assert_eq!(entries(), [(0, 0), (0, 1)]);
    other.clear().unwrap();
    db.compact().unwrap();
    assert_eq!(entries(), [(0, 0), (0, 0)]);

    db.set_policy("leveled").unwrap();
    assert_eq!(db.policy(), other.policy());
    Keyspace::set_policy(&db, "windrow").unwrap();
    assert_ne!(db.policy(), other.policy());
}
