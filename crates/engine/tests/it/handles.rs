//! The handles that keep a database open, and the close by the last of them.

use std::path::Path;
use std::sync::Arc;
use windrow::env::sync::{Mutex, Rank};
use windrow::{CompactionFilter, Db, ErrorKind, FilterDecision, Options, ReadOptions};
use windrow_env::testing::{Handles, env};

const DIR: &str = "db";

fn options(handles: &Handles) -> Options {
    let mut options = Options::default();
    options.components.env = Some(handles.env());
    options.settings.set("memtable_bytes", "64KiB").unwrap();
    options
}

fn is_open(handles: &Handles) -> bool {
    match Db::open_with(DIR, options(handles)) {
        Err(error) => error.kind() == ErrorKind::Busy,
        Ok(_) => false,
    }
}

/// The database is open until the last handle of any kind is dropped, and not after.
#[test]
fn the_last_handle_of_any_kind_closes() {
    for kind in 0..6 {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        let other = db.keyspace("other").unwrap();
        other.put("a", "1").unwrap();
        db.put("b", "2").unwrap();
        let mut kept: [Option<Box<dyn FnOnce()>>; 6] = [const { None }; 6];
        let (snapshot, mut iter, mut cursor) =
            (db.snapshot(), other.iter(), other.cursor(ReadOptions::default()));
        let (clone, default, keyspace) = (db.clone(), db.default_keyspace(), other.clone());
        kept[0] = Some(Box::new(move || clone.put("c", "3").unwrap()));
        kept[1] = Some(Box::new(move || keyspace.put("c", "3").unwrap()));
        kept[2] = Some(Box::new(move || assert!(snapshot.get("b").unwrap().is_some())));
        kept[3] = Some(Box::new(move || assert!(iter.next().unwrap().is_ok())));
        kept[4] = Some(Box::new(move || assert!(cursor.refresh().is_ok())));
        kept[5] = Some(Box::new(move || default.put("c", "3").unwrap()));
        let last = kept[kind].take().unwrap();
        drop((db, other, kept));
        assert!(is_open(&handles), "{kind}: closed too soon");
        last();
        assert!(!is_open(&handles), "{kind}: open, and nobody holds it");
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

#[test]
fn a_close_closes_for_all() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    let (keyspace, mut iter) = (db.keyspace("other").unwrap(), db.iter());
    db.close().unwrap();
    assert_eq!(keyspace.put("a", "1").unwrap_err().kind(), ErrorKind::Closed);
    assert!(iter.next().is_none());
    assert!(!is_open(&handles), "it is held, and closed all the same");
    drop((db, keyspace, iter));
    assert!(!is_open(&handles));
}

/// A filter that owns a handle of the database that it filters, as a filter with lookups does. It
/// drops the handle, or closes it, in the middle of a merge.
struct Owner {
    handle: Mutex<Option<Db>>,
    refused: Mutex<Option<ErrorKind>>,
}

impl Default for Owner {
    fn default() -> Owner {
        let handle = Mutex::new(Rank::INNERMOST, None);
        Owner { handle, refused: Mutex::new(Rank::INNERMOST, None) }
    }
}

impl CompactionFilter for Owner {
    fn name(&self) -> &str {
        "owner"
    }

    fn filter(&self, _level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        let handle = self.handle.lock().take();
        if let Some(db) = handle {
            *self.refused.lock() = db.close().err().map(|error| error.kind());
        }
        FilterDecision::Keep
    }
}

/// A snapshot is readable after the close, until the next owner of the directory merges a table
/// away that the snapshot has not opened. That is not reported as a missing file.
#[test]
fn a_snapshot_outlives_the_close_until_its_tables_go() {
    let (_, handles) = env(1);
    // The limit of open tables holds, regardless of the tables that were opened meanwhile.
    let mut few = options(&handles);
    for (name, value) in
        [("open_files_max", "16"), ("file_bytes", "64KiB"), ("compression", "none")]
    {
        few.settings.set(name, value).unwrap();
    }
    let db = Db::open_with(DIR, few).unwrap();
    let put_all = |db: &Db| {
        (0..8_000).for_each(|key| db.put(format!("{key:06}"), [1; 300]).unwrap());
    };
    put_all(&db);
    let snapshot = db.snapshot();
    db.close().unwrap();
    assert!(handles.fs.files(Path::new(DIR)).iter().filter(|f| f.ends_with(".sst")).count() > 16);
    assert!(snapshot.range(..).all(|pair| pair.is_ok()), "nobody has changed anything");
    let next = Db::open_with(DIR, options(&handles)).unwrap();
    put_all(&next);
    next.compact().unwrap();
    handles.jobs.run_until_idle();
    let mut all = snapshot.range(..);
    let error = all.find_map(|pair| pair.err()).expect("its tables are gone");
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

fn fill(db: &Db) {
    for round in 0..12 {
        for key in 0..200 {
            db.put(format!("{key:04}"), [round; 300]).unwrap();
        }
    }
}

#[test]
fn the_last_handle_may_go_in_a_job() {
    let (_, handles) = env(1);
    let owner = Arc::new(Owner::default());
    let mut options = options(&handles);
    options.settings.set("preset", "leveled").unwrap();
    options.components.compaction_filters.push(("default".to_owned(), owner.clone()));
    let db = Db::open_with(DIR, options).unwrap();
    fill(&db);
    handles.jobs.run_until_idle();
    fill(&db);
    *owner.handle.lock() = Some(db);
    handles.jobs.run_until_idle();
    assert!(owner.handle.lock().is_none(), "no merge ran: this tests nothing");
    assert_eq!(*owner.refused.lock(), Some(ErrorKind::InvalidArgument));
    assert!(!is_open(&handles));
    let db = Db::open_with(DIR, self::options(&handles)).unwrap();
    assert_eq!(db.get("0199").unwrap().as_deref(), Some(&[11; 300][..]));
}

/// Likewise on background threads. There is only one, so another thread must close.
#[test]
#[allow(clippy::disallowed_methods)] // a close on a thread of its own tells nobody
fn the_last_handle_may_go_on_a_background_thread() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Arc::new(Owner::default());
    let mut options = Options::default();
    for (name, value) in
        [("background_threads", "1"), ("memtable_bytes", "64KiB"), ("preset", "leveled")]
    {
        options.settings.set(name, value).unwrap();
    }
    let bare = options.clone();
    options.components.compaction_filters.push(("default".to_owned(), owner.clone()));
    let db = Db::open_with(dir.path(), options).unwrap();
    *owner.handle.lock() = Some(db.clone());
    fill(&db);
    // Either of the two handles may be the last one.
    drop(db);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let opened = loop {
        match Db::open_with(dir.path(), bare.clone()) {
            Err(error) if error.kind() == ErrorKind::Busy && until > std::time::Instant::now() => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            opened => break opened,
        }
    };
    let db = opened.expect("it hangs");
    assert_eq!(db.get("0199").unwrap().as_deref(), Some(&[11; 300][..]));
}

/// docs/guide/async.md promises this of the types that tasks of async programs keep, and pass to
/// other threads.
#[test]
fn handles_go_to_other_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>() {}
    shared::<Db>();
    shared::<windrow::Keyspace>();
    shared::<windrow::Snapshot>();
    shared::<windrow::Follower>();
    shared::<windrow::Slice>();
    shared::<windrow::Batch>();
    sent::<windrow::Iter>();
    sent::<windrow::Cursor>();
    sent::<windrow::Ingest>();
    sent::<windrow::Transaction>();
}
