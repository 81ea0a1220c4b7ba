//! A source and a mirror, each a process that is killed again and again while the database is written.

#![allow(clippy::disallowed_methods, reason = "an example has no environment but the system's")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use windrow::{Batch, Db, KeyspaceOptions, Options, WriteSync};
use windrow_mirror::source::Source;
use windrow_mirror::{mirror, source};

/// How long something that must happen may take.
const MOST: Duration = Duration::from_secs(120);
const KILLS: u64 = 25;

type Spaces = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Numbers from a seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn opened(dir: &Path) -> Db {
    let mut options = Options::default();
    options.settings.changes_bytes = 256 << 20;
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 64 << 10;
    let db = Db::open_with(dir, options).unwrap();
    let sums = KeyspaceOptions { merge_operator: Some("add".into()), ..KeyspaceOptions::default() };
    db.keyspace_with("sums", sums).unwrap();
    db
}

/// All entries, without those that are the mirror's own.
fn spaces(db: &Db) -> Spaces {
    let entries = |name: &String| {
        let space = db.open_keyspace(name).unwrap().unwrap();
        let entries = space.iter().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
        entries.collect::<windrow::Result<_>>().unwrap()
    };
    let all = db.keyspaces().into_iter().filter(|name| name != mirror::STATE);
    all.map(|name| (name.clone(), entries(&name)))
        .filter(|(_, map): &(_, BTreeMap<_, _>)| !map.is_empty())
        .collect()
}

/// Writes a batch over several keyspaces.
fn write(db: &Db, rng: &mut Rng) {
    let sums = db.keyspace("sums").unwrap();
    let named = db.keyspace(&format!("plain{}", rng.below(3))).unwrap();
    let mut batch = Batch::new();
    for _ in 0..=rng.below(6) {
        let (key, to) = (rng.below(500).to_be_bytes(), rng.below(500).to_be_bytes());
        match rng.below(12) {
            0 => batch.delete_range(&named, key, to),
            1 | 2 => batch.delete(&named, key),
            3..=5 => batch.merge(&sums, key, 1u64.to_le_bytes()),
            6 => batch.put_with_ttl(db, key, "expires", Duration::from_secs(100_000)),
            _ => batch.put(&named, key, vec![rng.below(256) as u8; rng.below(300) as usize]),
        }
    }
    db.write(batch, WriteSync::No).unwrap();
    if rng.below(400) == 0 {
        db.drop_keyspace(&format!("plain{}", rng.below(3))).unwrap_or_default();
    }
}

/// A process that dies with its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(args: &[&str]) -> Killed {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow-mirror"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::null());
    Killed(command.spawn().unwrap())
}

/// Starts a source, and waits until it listens.
fn serving(db: &Path, address: &str) -> Killed {
    let mut served = program(&["serve", db.to_str().unwrap(), address]);
    let mut line = String::new();
    BufReader::new(served.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("serving "), "{line:?}: is the port taken?");
    served
}

/// A port that nobody listens at now.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Waits until a mirror, whose process has ended, would go on with this number.
fn wait_for(address: &str, copy: &Path, next_seq: u64) -> Db {
    let (until, mut tries) = (Instant::now() + MOST, 0);
    loop {
        let following = program(&["follow", address, copy.to_str().unwrap()]);
        std::thread::sleep(Duration::from_secs(1) + MOST / 100 * tries);
        drop(following);
        tries += 1;
        if copy.exists() {
            let db = Db::open(copy).unwrap();
            if mirror::next_seq(&db).unwrap() == next_seq {
                return db;
            }
            db.close().unwrap();
        }
        assert!(Instant::now() < until, "the mirror is not at {next_seq}");
    }
}

#[test]
fn either_side_is_killed_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let (source_dir, copy) = (dir.path().join("db"), dir.path().join("mirror"));
    let db = opened(&source_dir);
    let (address, is_over) = (free_address(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng(7);
            while !is_over.load(Ordering::Relaxed) {
                write(&db, &mut rng);
                // The mirror is to keep up, built without optimisation.
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        // The writer ends, also if something here fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&is_over);
        let mut rng = Rng(11);
        let mut seen = 0;
        for _ in 0..KILLS {
            let serving = serving(&source_dir, &address);
            let following = program(&["follow", &address, copy.to_str().unwrap()]);
            std::thread::sleep(Duration::from_millis(30 + rng.below(500)));
            // One side first, and the other a little later.
            let (first, second) = match rng.below(2) {
                0 => (serving, following),
                _ => (following, serving),
            };
            drop(first);
            std::thread::sleep(Duration::from_millis(rng.below(100)));
            drop(second);
            if copy.exists() {
                let mirrored = Db::open(&copy).unwrap();
                mirrored.verify().and_then(|report| report.into_result()).unwrap();
                let next_seq = mirror::next_seq(&mirrored).unwrap();
                assert!(seen <= next_seq, "the mirror went back from {seen} to {next_seq}");
                seen = next_seq;
                mirrored.close().unwrap();
            }
        }
        assert!(seen > 1, "the mirror was never copied");
    });
    let _serving = serving(&source_dir, &address);
    let mirrored = wait_for(&address, &copy, db.snapshot().seq() + 1);
    let (here, there) = (spaces(&db), spaces(&mirrored));
    assert!(here.keys().eq(there.keys()), "{:?} and {:?}", here.keys(), there.keys());
    assert!(here == there, "the mirror differs");
    assert!(here.len() > 2 && here["sums"].len() > 100, "{:?}", here.keys());
}

#[test]
fn a_mirror_that_needs_a_copy_is_told_and_what_is_no_mirror_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = opened(&dir.path().join("db"));
    db.put("a", "1").unwrap();
    db.sync().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (served, room) = (Source::Writer(db.clone()), dir.path().join("copies"));
    std::thread::spawn(move || source::serve(&served, &listener, &room).map_err(|e| e.to_string()));
    let copy = dir.path().join("mirror");
    drop(wait_for(&address, &copy, 2));

    // A client of another protocol gets an answer, and harms nobody.
    let mut other = TcpStream::connect(&address).unwrap();
    // As long as a hello: what is not read would be answered by a reset.
    other.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut said = Vec::new();
    let _ = std::io::Read::read_to_end(&mut other, &mut said);
    assert!(String::from_utf8_lossy(&said).contains("is no mirror"), "{said:?}");

    db.put("b", "2").unwrap();
    db.sync().unwrap();
    drop(wait_for(&address, &copy, 3));
    let mut ingest = db.ingest().unwrap();
    ingest.put("c", "3").unwrap();
    ingest.finish().unwrap();
    db.sync().unwrap();
    let refused = mirror::follow(&address, &copy).unwrap_err().to_string();
    assert!(refused.contains("entries were ingested into `default`"), "{refused}");
    assert!(refused.contains("to have it copied again"), "{refused}");
    // A mirror that is ahead is of a database that has lost writes.
    let ahead = Db::open(&copy).unwrap();
    ahead.keyspace(mirror::STATE).unwrap().put("next_seq", 900u64.to_be_bytes()).unwrap();
    ahead.close().unwrap();
    let refused = mirror::follow(&address, &copy).unwrap_err().to_string();
    assert!(refused.contains("900 comes next for this consumer"), "{refused}");
    std::fs::remove_dir_all(&copy).unwrap();
    let mirrored = wait_for(&address, &copy, 4);
    assert_eq!(spaces(&mirrored), spaces(&db));
}
