//! A process that forks with a database open: the child's copy is inert, and the parent's is not
//! affected.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windrow::changes::ChangeOptions;
use windrow::env::{Buffer, Env};
use windrow::{Batch, Conditions, Db, Error, ErrorKind, Options, ReadOptions, WriteSync, inspect};
use windrow_env::testing::{ForkedChild, in_child, without_locks};

/// Options that merge soon and cache little: reads go to the files.
fn options() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 256 << 10;
    options
}

fn key(number: u32) -> String {
    format!("key{number:06}")
}

fn is_refused<T>(result: &Result<T, Error>) -> bool {
    result.as_ref().err().is_some_and(|error| {
        error.kind() == ErrorKind::Closed
            && error.message().contains("fork")
            && error.message().contains("each process has to open")
    })
}

fn put(db: &Db, numbers: std::ops::Range<u32>, sync: WriteSync) {
    for number in numbers {
        db.put_with(key(number), number.to_le_bytes().repeat(25), sync).unwrap();
    }
}

fn holds(db: &Db, numbers: std::ops::Range<u32>) {
    let mut next = numbers.start;
    for item in db.iter() {
        let (found, value) = item.unwrap();
        assert_eq!(*found, *key(next).as_bytes());
        assert_eq!(*value, next.to_le_bytes().repeat(25));
        next += 1;
    }
    assert_eq!(next, numbers.end, "the last ones are gone");
}

/// Checks that every call of a child is refused, writes nothing, and takes no lock: a thread of the
/// parent may have held it, so that it is held for good.
fn is_inert(db: &Db) -> bool {
    without_locks(|| refuses_all(db))
}

fn refuses_all(db: &Db) -> bool {
    let (keyspace, snapshot) = (db.default_keyspace(), db.snapshot());
    let mut batch = Batch::new();
    batch.put(db, "a", "child's");
    let asked = [
        db.put("a", "child's"),
        db.put_with("a", "child's", WriteSync::Yes),
        db.put_with_ttl("a", "child's", Duration::from_secs(9)),
        db.delete("a"),
        db.single_delete("a"),
        db.delete_range("a", "z"),
        db.get("a").map(|_| ()),
        db.sync(),
        db.flush(),
        db.compact(),
        db.wait_idle(),
        db.verify().map(|_| ()),
        db.checkpoint("/nowhere"),
        db.set_policy("leveled"),
        db.resume(),
        keyspace.flush(),
        keyspace.compact_range("a"..),
        keyspace.set_policy("leveled"),
        keyspace.get_at(&snapshot, "a").map(|_| ()),
        keyspace.range_at(&snapshot, "a".."b").next().unwrap().map(|_| ()),
        keyspace.prefix_at(&snapshot, "a").next().unwrap().map(|_| ()),
        keyspace.cursor_at(&snapshot).seek("a").map(|_| ()),
        keyspace.multi_get_at(&snapshot, &["a"]).remove(0).map(|_| ()),
        db.create_keyspaces(&["new"]).map(|_| ()),
        db.keyspace("new").map(|_| ()),
        db.open_keyspace("new").map(|_| ()),
        db.drop_keyspace("other"),
        db.contains_key("a").map(|_| ()),
        db.ttl("a").map(|_| ()),
        db.first().map(|_| ()),
        db.count(..).map(|_| ()),
        db.approximate_len().map(|_| ()),
        db.iter_at(&snapshot).next().unwrap().map(|_| ()),
        db.update("a", |_| None).map(|_| ()),
        db.put_if_absent("a", "child's").map(|_| ()),
        db.compare_exchange("a", None, Some(b"child's")).map(|_| ()),
        db.pop_first().map(|_| ()),
        db.clear(),
        db.ingest().map(|_| ()),
        db.configure(db.settings()),
        db.compact_range("a"..),
        db.transact(|tx| tx.put(db, "a", "child's")),
        db.write_if(&mut batch, &Conditions::new().absent(db, "a"), WriteSync::Yes).map(|_| ()),
        db.write(&mut batch, WriteSync::Yes).map(|_| ()),
        db.write(batch, WriteSync::Yes).map(|_| ()),
        db.write(Batch::new(), WriteSync::Yes).map(|_| ()),
        keyspace.approximate_bytes("a", "z").map(|_| ()),
        snapshot.get("a").map(|_| ()),
        db.changes(1, ChangeOptions::default()).map(|_| ()),
        db.cursor(ReadOptions::default()).seek_first().map(|_| ()),
        db.iter().next().unwrap().map(|_| ()),
        db.prefix("a").next_back().unwrap().map(|_| ()),
        db.close(),
        db.write_error().map_or(Ok(()), Err),
    ];
    let keys: Vec<String> = (0..200).map(key).collect();
    // These give the state in memory.
    let _ =
        (inspect::trees(db), inspect::table_searches(db), db.keyspaces(), db.keyspaces_left_out());
    let _ = (keyspace.policy(), keyspace.name().len(), format!("{db:?}"));
    for (number, result) in asked.iter().enumerate() {
        assert!(is_refused(result), "call {number}: {result:?}");
    }
    db.multi_get(&keys).iter().all(is_refused) && db.stats() == windrow::Stats::default()
}

#[test]
fn a_childs_copy_refuses_all_and_its_end_is_not_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), options()).unwrap();
    put(&db, 0..3_000, WriteSync::No);
    db.flush().unwrap();
    put(&db, 3_000..3_100, WriteSync::Yes);
    let mut copy = Some(db.clone());
    drop(db);
    assert!(in_child(|| {
        let db = copy.take().unwrap();
        let inert = is_inert(&db);
        // The last handle.
        without_locks(|| drop(db));
        inert
    }));
    let db = copy.unwrap();
    put(&db, 3_100..20_000, WriteSync::No);
    put(&db, 20_000..20_100, WriteSync::Yes);
    holds(&db, 0..20_100);
    db.close().unwrap();
    holds(&Db::open_with(dir.path(), options()).unwrap(), 0..20_100);
}

/// Reads that the parent began and the child goes on with.
#[test]
fn what_was_made_before_the_fork_ends_in_the_child() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), options()).unwrap();
    put(&db, 0..3_000, WriteSync::No);
    db.flush().unwrap();
    let other = db.keyspace("other").unwrap();
    other.put("a", "1").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let (mut iter, mut cursor) = (db.iter(), db.cursor(ReadOptions::default()));
    let (unmoved, snapshot) = (db.iter(), db.snapshot());
    let mut changes = db.changes(snapshot.seq() + 1, ChangeOptions::default()).unwrap();
    assert_eq!(changes.next_within(Duration::from_millis(1)).unwrap(), None);
    iter.next().unwrap().unwrap();
    assert!(cursor.seek_first().unwrap());
    // Its last view, and with it its file, goes with the handle.
    db.drop_keyspace("other").unwrap();
    // Tables only: the parent may still be removing a log.
    #[expect(clippy::disallowed_methods, reason = "which tables there are")]
    let tables = || -> std::collections::BTreeSet<_> {
        let entries = std::fs::read_dir(dir.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "sst")).collect()
    };
    let before = tables();
    assert!(before.len() >= 2, "{before:?}");
    let mut held = Some((iter, cursor, unmoved, snapshot, other, changes));
    assert!(in_child(|| {
        let (mut iter, mut cursor, mut unmoved, snapshot, other, mut changes) =
            held.take().unwrap();
        let uses = || {
            is_refused(&iter.next().unwrap())
                && iter.next().is_none()
                && is_refused(&unmoved.next_back().unwrap())
                && is_refused(&cursor.next())
                && is_refused(&cursor.refresh())
                && is_refused(&snapshot.get(key(1)))
                && is_refused(&snapshot.range(..).next().unwrap())
                && is_refused(&changes.try_next())
                && is_refused(&changes.next_within(Duration::ZERO))
        };
        let refused = without_locks(uses);
        without_locks(|| drop((iter, cursor, unmoved, snapshot, other, changes)));
        refused && tables() == before
    }));
    let (mut iter, mut cursor, unmoved, snapshot, _other, mut changes) = held.unwrap();
    db.put("z", "").unwrap();
    assert!(changes.try_next().unwrap().is_some());
    assert_eq!(*iter.next().unwrap().unwrap().0, *key(1).as_bytes());
    assert!(cursor.next().unwrap());
    assert_eq!((cursor.key(), unmoved.count()), (key(1).as_bytes(), 3_000));
    assert!(snapshot.get(key(2)).unwrap().is_some());
}

#[test]
fn a_child_opens_databases_of_its_own() {
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Db::open_with(dir.path(), options()).unwrap();
    put(&db, 0..100, WriteSync::No);
    let env = Env::os(1);
    assert!(in_child(|| {
        let busy = Db::open_with(dir.path(), options()).err().unwrap();
        let pid = format!("process {}", std::os::unix::process::parent_id());
        assert!(busy.kind() == ErrorKind::Busy && busy.message().contains(&pid), "{busy}");
        // The threads of the inherited environment do not exist here.
        let mut inherited = options();
        inherited.components.env = Some(env.clone());
        let error = Db::open_with(own.path(), inherited).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let mine = Db::open_with(own.path(), options()).unwrap();
        put(&mine, 0..3_000, WriteSync::No);
        mine.flush().unwrap();
        holds(&mine, 0..3_000);
        let grandchild = in_child(|| is_inert(&mine));
        mine.close().unwrap();
        grandchild && is_inert(&db)
    }));
    drop(env);
    holds(&Db::open_with(own.path(), options()).unwrap(), 0..3_000);
    holds(&db, 0..100);
}

/// Such a repair waited for the threads of its parent.
#[test]
fn a_repair_in_a_child_is_refused_with_the_environment_of_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), options()).unwrap();
    put(&db, 0..3_000, WriteSync::No);
    db.close().unwrap();
    let env = Env::os(1);
    assert!(in_child(|| {
        let mut inherited = options();
        inherited.components.env = Some(env.clone());
        let error = windrow::repair(dir.path(), inherited).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains("fork"), "{error}");
        windrow::repair(dir.path(), options()).unwrap();
        true
    }));
    drop(env);
    holds(&Db::open_with(dir.path(), options()).unwrap(), 0..3_000);
}

/// The lock goes with the process that opened the database, even if it leaves children.
#[test]
fn a_child_keeps_nobody_out_after_its_parent_died() {
    let dir = tempfile::tempdir().unwrap();
    let (wait, go_on) = std::io::pipe().unwrap();
    let (mut begun, tell) = std::io::pipe().unwrap();
    let parent = ForkedChild::start(|| {
        let db = Db::open_with(dir.path(), options()).unwrap();
        put(&db, 0..5_000, WriteSync::No);
        let child = ForkedChild::start(|| {
            (&tell).write_all(&[1]).unwrap();
            let _ = (&wait).read(&mut [0]);
            i32::from(!is_inert(&db))
        });
        child.map_or(1, |_| 0)
    });
    assert_eq!(parent.unwrap().wait().unwrap(), Some(0));
    begun.read_exact(&mut [0]).unwrap();
    let opened = Db::open_with(dir.path(), options());
    (&go_on).write_all(&[1]).unwrap();
    holds(&opened.unwrap(), 0..5_000);
}

/// `exit` runs the handlers that threads and the program registered for the end.
#[test]
fn a_child_may_end_by_exit_or_by_unwinding() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), options()).unwrap();
    put(&db, 0..3_000, WriteSync::No);
    db.flush().unwrap();
    let keys: Vec<String> = (0..200).map(key).collect();
    let all = |db: &Db| db.multi_get(&keys).iter().all(|value| matches!(value, Ok(Some(_))));
    assert!(all(&db));
    let mut copy = Some(db);
    for ends in [0, 1] {
        let child = ForkedChild::start(|| {
            let _db = copy.take();
            if ends == 0 {
                std::process::exit(7);
            }
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        let code = child.unwrap().wait().unwrap();
        assert_eq!(code, Some([7, 101][ends]));
        assert!(all(copy.as_ref().unwrap()), "its ring works as before");
    }
    let db = copy.unwrap();
    put(&db, 3_000..6_000, WriteSync::Yes);
    db.close().unwrap();
    holds(&Db::open(Path::new(dir.path())).unwrap(), 0..6_000);
}

/// At any point of the other threads at which it is forked, a child takes buffers and gives them
/// back.
#[test]
fn a_child_waits_for_no_buffer() {
    let ends = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    drop([Buffer::new(5_000), Buffer::new(200_000)]);
                }
            });
        }
        let mut inherited = Some(Buffer::copy_of(&[7; 5_000]));
        let mut uses_buffers = || {
            let more: Vec<Buffer> = (0..300).map(|_| Buffer::copy_of(&[9; 9_000])).collect();
            inherited.take().is_some_and(|buffer| buffer[4_999] == 7)
                && more.iter().all(|buffer| buffer.iter().all(|&byte| byte == 9))
        };
        let answered = (0..50).all(|_| in_child(&mut uses_buffers));
        ends.store(true, Ordering::Relaxed);
        assert!(answered);
    });
}
