//! Settings that a keyspace has of its own: they are stored with it, and hold in whatever way it is
//! opened.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windrow::settings::KeyspaceSettings;
use windrow::{Db, ErrorKind, Event, Follower, Keyspace, KeyspaceOptions, Options, Ttl};
use windrow_env::testing;

fn own() -> KeyspaceSettings {
    KeyspaceSettings {
        policy: Some("leveled filters=monkey(bits=8)".into()),
        compression: Some("none".into()),
        ttl: Some(Duration::from_secs(1000)),
    }
}

fn made_with(settings: KeyspaceSettings) -> KeyspaceOptions {
    KeyspaceOptions { settings, ..KeyspaceOptions::default() }
}

/// Checks that a keyspace has the settings of `own`.
fn check(keyspace: &Keyspace) {
    assert_eq!(keyspace.settings(), own());
    let other = Db::open(tempfile::tempdir().unwrap().path()).unwrap();
    other.set_policy(own().policy.as_deref().unwrap()).unwrap();
    assert_eq!(keyspace.policy(), other.default_keyspace().policy());
}

/// Bytes of the tables of a keyspace with 100 KB that compress well.
fn table_bytes(db: &Db, keyspace: &Keyspace) -> u64 {
    keyspace.put("a", vec![7; 100_000]).unwrap();
    keyspace.flush().unwrap();
    keyspace.compact().unwrap();
    let tree = windrow::inspect::trees(db);
    let (_, version) = tree.iter().find(|(name, _)| name == keyspace.name()).unwrap();
    version.files().map(|(_, _, file)| file.bytes).sum()
}

#[test]
fn they_are_stored_and_hold_however_the_database_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let sessions = db.keyspace_with("sessions", made_with(own())).unwrap();
    check(&sessions);
    let plain = db.keyspace("plain").unwrap();
    assert_eq!(plain.settings(), KeyspaceSettings::default());
    assert_ne!(plain.policy(), sessions.policy());
    assert!(table_bytes(&db, &plain) < 10_000);
    assert!(table_bytes(&db, &sessions) >= 100_000);
    assert!(matches!(sessions.ttl("a").unwrap(), Ttl::Left(_)));
    assert_eq!(plain.ttl("a").unwrap(), Ttl::Forever);
    sessions.put_with_ttl("b", "", Duration::MAX).unwrap();
    assert_eq!(sessions.ttl("b").unwrap(), Ttl::Forever);
    let copy = copies.path().join("copy");
    db.checkpoint(&copy).unwrap();
    let follower = Follower::open(dir.path()).unwrap();
    check(&follower.db().open_keyspace("sessions").unwrap().unwrap());
    sessions.configure(KeyspaceSettings { ttl: None, ..own() }).unwrap();
    follower.refresh().unwrap();
    let followed = follower.db().open_keyspace("sessions").unwrap().unwrap();
    assert_eq!(followed.settings().ttl, None);
    drop((followed, follower));
    sessions.configure(own()).unwrap();
    db.close().unwrap();
    drop((sessions, plain, db));
    for dir in [dir.path(), &copy] {
        let read_only = Options { read_only: true, ..Options::default() };
        for options in [Options::default(), read_only] {
            let db = Db::open_with(dir, options).unwrap();
            // Where nothing may be written, the given settings change nothing.
            let given = if db.put("a", "").is_err() { "lz4" } else { "none" };
            let given = KeyspaceSettings { compression: Some(given.into()), ..Default::default() };
            check(&db.keyspace_with("sessions", made_with(given)).unwrap());
            db.close().unwrap();
        }
    }
    let report = windrow::repair(dir.path(), Options::default());
    report.unwrap();
    let stored = Db::stored_keyspaces(dir.path()).unwrap().unwrap();
    let settings: Vec<_> = stored.into_iter().map(|keyspace| keyspace.settings).collect();
    assert_eq!(settings, [KeyspaceSettings::default(), own(), KeyspaceSettings::default()]);
}

#[test]
fn what_is_given_later_takes_the_place_of_what_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let with_ttl = |seconds: u64| {
        let ttl = Some(Duration::from_secs(seconds));
        let default_keyspace = made_with(KeyspaceSettings { ttl, ..KeyspaceSettings::default() });
        Options { default_keyspace, ..Options::default() }
    };
    let ttl = |dir: &Path, options: Options| {
        let db = Db::open_with(dir, options).unwrap();
        db.put("a", "1").unwrap();
        let mut batch = windrow::Batch::new();
        batch.put(&db, "b", "1");
        db.write(batch, windrow::WriteSync::No).unwrap();
        let mut tx = db.transaction().unwrap();
        tx.put(&db, "c", "1").unwrap();
        tx.commit().unwrap();
        db.delete("d").unwrap();
        assert!(db.put_if_absent("d", "1").unwrap().is_none());
        let ttls: Vec<Ttl> = ["a", "b", "c", "d"].map(|key| db.ttl(key).unwrap()).into();
        let left = |ttl: &Ttl| match ttl {
            Ttl::Left(left) => Some(left.as_secs_f64().round() as u64),
            _ => None,
        };
        let first = left(&ttls[0]);
        assert!(ttls.iter().all(|ttl| left(ttl).is_some() == first.is_some()), "{ttls:?}");
        db.close().unwrap();
        first.map(|seconds| seconds.div_ceil(100) * 100)
    };
    assert_eq!(ttl(dir.path(), Options::default()), None);
    assert_eq!(ttl(dir.path(), with_ttl(500)), Some(500));
    assert_eq!(ttl(dir.path(), Options::default()), Some(500), "it was stored");
    assert_eq!(ttl(dir.path(), with_ttl(900)), Some(900));
    let db = Db::open(dir.path()).unwrap();
    db.default_keyspace().configure(KeyspaceSettings::default()).unwrap();
    db.close().unwrap();
    drop(db);
    assert_eq!(ttl(dir.path(), Options::default()), None);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = KeyspaceSettings {
        policy: Some("level".into()),
        compression: Some("snappy".into()),
        ttl: Some(Duration::ZERO),
    };
    let told = |error: windrow::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        ["policy", "snappy", "ttl"].iter().all(|part| error.message().contains(part))
    };
    let default_keyspace = made_with(wrong.clone());
    let options = Options { default_keyspace, ..Options::default() };
    assert!(told(Db::open_with(dir.path().join("db"), options).unwrap_err()));
    assert!(!dir.path().join("db").exists());
    let db = Db::open(dir.path()).unwrap();
    assert!(told(db.keyspace_with("new", made_with(wrong.clone())).unwrap_err()));
    assert!(told(db.default_keyspace().configure(wrong).unwrap_err()));
    assert_eq!(db.keyspaces(), ["default"]);
    let gone = db.keyspace("gone").unwrap();
    db.drop_keyspace("gone").unwrap();
    assert_eq!(gone.configure(own()).unwrap_err().kind(), ErrorKind::Closed);
}

/// The machine loses power at each operation of the file system.
#[test]
fn after_a_crash_they_are_those_of_before_or_those_that_were_given() {
    for at in 0.. {
        let (env, handles) = testing::env(1);
        let options = || {
            let mut options = Options::default();
            options.components.env = Some(env.clone());
            options
        };
        let db = Db::open_with("/db", options()).unwrap();
        let keyspace = db.keyspace("own").unwrap();
        db.sync().unwrap();
        handles.fs.crash_at(handles.fs.operations() + at);
        let done = keyspace.configure(own());
        let died = handles.fs.is_dead();
        handles.jobs.discard();
        drop((keyspace, db));
        handles.fs.crash(at);
        let db = Db::open_with("/db", options()).unwrap();
        let found = db.open_keyspace("own").unwrap().expect("it was durable").settings();
        match done {
            Ok(()) => assert_eq!(found, own(), "{at}"),
            Err(_) => assert!(found == own() || found == KeyspaceSettings::default(), "{at}"),
        }
        if !died {
            assert!(at > 0, "nothing was written");
            return;
        }
    }
}

/// A drop by another thread in between, simulated.
#[test]
fn a_policy_for_all_passes_over_a_keyspace_that_is_dropped_meanwhile() {
    let (_, handles) = testing::env(1);
    let mut options = crate::simulated_database::options(&handles);
    let writer: Arc<OnceLock<Db>> = Arc::default();
    let listening = writer.clone();
    options.components.listener = Some(Arc::new(move |event: &Event| {
        if let (Event::PolicyChanged { keyspace, .. }, Some(db)) = (event, listening.get())
            && &**keyspace == "default"
        {
            db.drop_keyspace("second").unwrap();
        }
    }));
    let db = Db::open_with("/db", options).unwrap();
    let third =
        ["second", "third"].map(|name| db.keyspace(name).unwrap()).into_iter().nth(1).unwrap();
    writer.set(db.clone()).ok().unwrap();
    db.set_policy("leveled").unwrap();
    assert_eq!(third.policy(), db.default_keyspace().policy());
    assert!(third.policy().contains("pick=leveled"), "{}", third.policy());
    assert_eq!(db.keyspaces(), ["default", "third"]);
    let error = db.set_policy("no such policy").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
