//! Restores to moments between backups: compared with the states that a database had at each sequence
//! number.

use crate::simulated_database::{DIR, make, options};
use std::collections::BTreeMap;
use std::path::Path;
use windrow::backup::{
    BackedUp, BackupDirectory, BackupOptions, Moment, Restored, backup_numbers, prune_backups,
    read_backup, restore_to_in, verify_backup,
};
use windrow::{Batch, Db, ErrorKind, Follower, Options, Result, SeqNo, WriteSync};
use windrow_env::testing::{FileDamage, Handles, NameDamage, PowerLoss, Rng, env};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Spaces = BTreeMap<String, Map>;

const BACKUPS: &str = "/backups";
const COPY: &str = "/copy";

fn keeping(handles: &Handles, changes_bytes: u64) -> Options {
    let mut options = options(handles);
    options.settings.changes_bytes = changes_bytes;
    options
}

fn open(handles: &Handles) -> Db {
    Db::open_with(DIR, keeping(handles, 1 << 30)).unwrap()
}

fn target(handles: &Handles) -> BackupDirectory {
    BackupDirectory::open_in(&handles.env(), Path::new(BACKUPS)).unwrap()
}

fn back_up(db: &Db, handles: &Handles) -> BackedUp {
    db.backup(&target(handles), BackupOptions::default()).unwrap()
}

fn restore(handles: &Handles, to: Moment, from: Option<u64>) -> Result<Restored> {
    restore_to_in(&handles.env(), &target(handles), (to, from), Path::new(COPY))
}

/// Opens the copy, and removes it.
fn with_copy<T>(handles: &Handles, look: impl FnOnce(&Db) -> T) -> T {
    let copy = Db::open_with(COPY, options(handles)).unwrap();
    let found = look(&copy);
    copy.verify().and_then(|report| report.into_result()).unwrap();
    copy.close().unwrap();
    for name in handles.fs.files(Path::new(COPY)) {
        handles.fs.remove_file(&Path::new(COPY).join(name));
    }
    found
}

/// The copy's last sequence number and its keyspaces with entries.
fn found(handles: &Handles) -> (SeqNo, Spaces) {
    with_copy(handles, |copy| (copy.snapshot().seq(), spaces(copy)))
}

/// All keyspaces that have entries.
fn spaces(db: &Db) -> Spaces {
    let entries = |name: &String| {
        let space = db.open_keyspace(name).unwrap().unwrap();
        let entries = space.iter().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
        entries.collect::<Result<Map>>().unwrap()
    };
    let all = db.keyspaces().into_iter().map(|name| (name.clone(), entries(&name)));
    all.filter(|(_, map)| !map.is_empty()).collect()
}

/// Kills the process, or cuts the power, and opens the database again.
fn reopened(db: Db, handles: &Handles, power_loss: bool, seed: u64) -> (Db, Handles) {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    match power_loss {
        true => handles.fs.crash_with(PowerLoss {
            seed,
            files: Some(FileDamage::DropAll),
            names: Some(NameDamage::DropAll),
        }),
        false => handles.fs.kill(seed),
    }
    let handles = handles.reborn(seed);
    (open(&handles), handles)
}

/// A database with backups, and all that it was. After a drop of a keyspace, and after a loss of writes,
/// a sequence number has two states.
struct World {
    handles: Handles,
    rng: Rng,
    db: Db,
    states: BTreeMap<SeqNo, Vec<Spaces>>,
    /// The time at which a sequence number was there, and the log knew it.
    noted: Vec<(u64, SeqNo)>,
    /// The time of each write.
    written: BTreeMap<SeqNo, u64>,
    /// Numbers behind backups that have writes which were lost.
    lost: Vec<SeqNo>,
    made: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let (_, handles) = env(seed);
        let db = open(&handles);
        World {
            handles,
            rng: Rng::new(seed),
            db,
            states: BTreeMap::new(),
            noted: Vec::new(),
            written: BTreeMap::new(),
            lost: Vec::new(),
            made: 0,
        }
    }

    fn note_state(&mut self) {
        let (seq, now) = (self.db.snapshot().seq(), spaces(&self.db));
        let states = self.states.entry(seq).or_default();
        if !states.contains(&now) {
            states.push(now);
        }
        self.written.entry(seq).or_insert_with(|| self.handles.env().clock.wall_ms());
    }

    fn pass_ms(&self, ms: u64) {
        let now = self.handles.env().clock.wall_ms();
        self.handles.clock.set_wall_ms(now + ms);
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:02}", self.rng.below(60)).into_bytes()
    }

    fn batch(&mut self) {
        let names: Vec<String> = self.db.keyspaces();
        let mut batch = Batch::new();
        for _ in 0..=self.rng.below(8) {
            let name = &names[self.rng.below(names.len() as u64) as usize];
            let space = self.db.keyspace(name).unwrap();
            let (key, to) = (self.key(), self.key());
            match self.rng.below(10) {
                0 => batch.delete_range(&space, &key, &to),
                1 | 2 => batch.delete(&space, &key),
                3 | 4 if name.starts_with("sums") => batch.merge(&space, &key, 3u64.to_le_bytes()),
                _ if name.starts_with("sums") => batch.put(&space, &key, 1u64.to_le_bytes()),
                _ => {
                    let value = vec![self.rng.below(256) as u8; 1 + self.rng.below(900) as usize];
                    batch.put(&space, &key, value);
                }
            }
        }
        let sync = if self.rng.chance(0.1) { WriteSync::Yes } else { WriteSync::No };
        self.db.write(batch, sync).unwrap();
    }

    fn transaction(&mut self) {
        let key = self.key();
        let done = self.db.transact(|tx| {
            let value = tx.get(&self.db, &key)?.map_or(1, |value| value.len() % 50 + 1);
            tx.put(&self.db, &key, vec![7; value])?;
            tx.put(&self.db, "transacted", &key)
        });
        done.unwrap();
    }

    fn make_or_drop(&mut self) {
        let names = self.db.keyspaces();
        if self.rng.chance(0.5) && names.len() < 5 {
            // A name may come again.
            self.made = (self.made + 1) % 4;
            let sums = self.made.is_multiple_of(2);
            make(&self.db, &format!("{}{}", if sums { "sums" } else { "plain" }, self.made));
        } else if let Some(name) = names.iter().find(|name| *name != "default") {
            self.db.drop_keyspace(name).unwrap();
        }
    }

    fn back_up(&mut self) {
        // Where two states have one number, a backup may be of either.
        match self.rng.chance(0.5) {
            true => back_up(&self.db, &self.handles),
            false => {
                let follower = Follower::open_with(DIR, options(&self.handles)).unwrap();
                follower.backup(&target(&self.handles), BackupOptions::default()).unwrap()
            }
        };
    }

    fn step(&mut self, losses: bool) {
        let ms = 1 + self.rng.below(3_000);
        self.pass_ms(ms);
        match self.rng.below(60) {
            0 => self.db.flush().unwrap(),
            1 => self.db.compact().unwrap(),
            2..=4 => self.make_or_drop(),
            5 if self.rng.chance(if losses { 0.9 } else { 0.4 }) => self.reopen(losses),
            6 | 7 => self.back_up(),
            8..=15 => _ = self.handles.jobs.run_until_idle(),
            16..=22 => {
                self.handles.jobs.fire_timers();
                self.noted.push((self.handles.env().clock.wall_ms(), self.db.snapshot().seq()));
            }
            23..=28 => self.transaction(),
            _ => self.batch(),
        }
        self.note_state();
    }

    fn reopen(&mut self, losses: bool) {
        if self.rng.chance(0.4) {
            self.db.close().unwrap();
            self.db = open(&self.handles);
            return;
        }
        let power_loss = losses && self.rng.chance(0.8);
        if power_loss {
            // A follower sees what the device does not have.
            self.batch();
            self.note_state();
            let follower = Follower::open_with(DIR, options(&self.handles)).unwrap();
            let made = follower.backup(&target(&self.handles), BackupOptions::default()).unwrap();
            self.lost.push(made.seq + 1);
        }
        // Another one in its place, since its last handle must go before the kill.
        let none = Db::open_with("/none", options(&env(1).1)).unwrap();
        let db = std::mem::replace(&mut self.db, none);
        let seed = self.rng.below(1_000);
        (self.db, self.handles) = reopened(db, &self.handles, power_loss, seed);
    }

    /// Restores to a sequence number. Returns whether that was possible.
    fn check_seq(&self, seq: SeqNo, what: &str) -> bool {
        let restored = match restore(&self.handles, Moment::Seq(seq), None) {
            Ok(restored) => restored,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}, {seq}: {error}");
                assert!(self.handles.fs.files(Path::new(COPY)).is_empty(), "{what}, {seq}");
                return false;
            }
        };
        let (last, spaces) = found(&self.handles);
        assert_eq!(last, restored.seq, "{what}, {seq}");
        // Within a batch: the one before. Batches that were lost had other ends.
        let before = self.states.range(..=seq).next_back().map(|(s, _)| *s);
        assert!(
            before == Some(last) || !self.lost.is_empty() && Some(last) < before,
            "{what}, {seq}"
        );
        let is_right = self.states[&last].contains(&spaces);
        assert!(is_right, "{what}: {restored:?} for {seq} is {:?}", spaces.keys());
        true
    }

    /// Restores to a time: nothing later is in it, and all that the log knew of by then.
    fn check_time(&self, ms: u64, what: &str) -> bool {
        let Ok(restored) = restore(&self.handles, Moment::Time(ms), None) else { return false };
        let (last, spaces) = found(&self.handles);
        assert_eq!(last, restored.seq, "{what}, at {ms}");
        assert!(self.written[&last] <= ms, "{what}, at {ms}: {last} was written later");
        let noted = self.noted.iter().filter(|(at, _)| *at <= ms).map(|(_, seq)| *seq).max();
        assert!(
            noted <= Some(last),
            "{what}, at {ms}: {noted:?} was there, and {last} is restored"
        );
        assert!(self.states[&last].contains(&spaces), "{what}, at {ms}: {restored:?}");
        true
    }
}

fn check_model(losses: bool) {
    let mut done = [0, 0];
    let mut power_losses = 0;
    for seed in 0..if losses { 12 } else { 6 } {
        let mut world = World::new(seed);
        world.note_state();
        world.back_up();
        let first = world.db.snapshot().seq();
        let begin_ms = world.handles.env().clock.wall_ms();
        for _ in 0..300 {
            world.step(losses);
        }
        world.pass_ms(5_000);
        world.back_up();
        let (last, what) = (world.db.snapshot().seq(), format!("seed {seed}"));
        let end_ms = world.handles.env().clock.wall_ms();
        let numbers = backup_numbers(&target(&world.handles)).unwrap();
        numbers.iter().for_each(|n| _ = verify_backup(&target(&world.handles), *n).unwrap());
        let drawn = (0..25).map(|_| first + world.rng.below(last - first + 1)).collect::<Vec<_>>();
        let behind_losses = world.lost.iter().flat_map(|seq| [*seq, seq + 4, seq + 9]);
        for seq in drawn.into_iter().chain(behind_losses.collect::<Vec<_>>()) {
            if last < seq {
                continue;
            }
            let is_possible = world.check_seq(seq, &what);
            assert!(is_possible || losses, "{what}: {seq} of {first} to {last}");
            done[0] += u32::from(is_possible);
            if !losses {
                let ms = begin_ms + world.rng.below(end_ms - begin_ms);
                done[1] += u32::from(world.check_time(ms, &what));
            }
        }
        power_losses += world.lost.len();
        world.db.close().unwrap();
    }
    assert!(done[0] > 50, "{done:?}");
    match losses {
        true => assert!(power_losses > 10, "{power_losses}"),
        false => assert!(done[1] > 140, "{done:?}"),
    }
}

#[test]
fn each_moment_between_backups_can_be_restored() {
    check_model(false);
}

/// Numbers of writes that were lost are given out again: changes may only follow the backup of their own
/// history.
#[test]
fn a_loss_of_writes_mixes_no_histories() {
    check_model(true);
}

fn put(db: &Db, keys: std::ops::Range<u32>) {
    keys.for_each(|key| db.put(format!("{key:04}"), vec![b'v'; 100]).unwrap());
}

#[test]
fn a_restored_database_begins_a_history_of_its_own() {
    let (_, handles) = env(1);
    let db = open(&handles);
    put(&db, 0..10);
    back_up(&db, &handles);
    put(&db, 10..20);
    let second = back_up(&db, &handles);
    assert_eq!(second.changes.map(|c| (c.since, c.through)), Some((1, 20)));
    db.close().unwrap();
    for name in handles.fs.files(Path::new(DIR)) {
        handles.fs.remove_file(&Path::new(DIR).join(name));
    }
    let to = (Moment::Seq(15), None);
    restore_to_in(&handles.env(), &target(&handles), to, Path::new(DIR)).unwrap();
    let db = open(&handles);
    assert_eq!((db.snapshot().seq(), db.count(..).unwrap()), (15, 15));
    // It goes on to the number of the second backup, and further.
    put(&db, 100..110);
    let third = back_up(&db, &handles);
    assert_eq!((third.seq, third.changes), (25, None), "it does not go on from the second");
    put(&db, 110..120);
    let fourth = back_up(&db, &handles);
    assert_eq!(fourth.changes.map(|c| (c.since, c.through)), Some((3, 35)));
    let restored = restore(&handles, Moment::Seq(30), None).unwrap();
    assert_eq!((restored.backup.number, restored.batches), (3, 5));
    assert_eq!(with_copy(&handles, |copy| copy.count(..).unwrap()), 30);
    let gap = restore(&handles, Moment::Seq(22), None).unwrap_err();
    assert!(gap.message().contains("backup 2 has no changes behind it"), "{gap}");
    db.close().unwrap();
}

#[test]
fn a_prune_removes_the_changes_of_backups_that_are_gone() {
    let (_, handles) = env(1);
    let db = open(&handles);
    for round in 0..4 {
        put(&db, round * 10..round * 10 + 10);
        back_up(&db, &handles);
    }
    let parts = || {
        let files = handles.fs.files(&Path::new(BACKUPS).join("logs"));
        files.iter().filter(|name| name.ends_with(".changes")).count()
    };
    assert_eq!(parts(), 3);
    assert_eq!(prune_backups(&target(&handles), 2).unwrap(), [1, 2]);
    assert_eq!(parts(), 1, "those between 3 and 4 are left");
    (3..=4).for_each(|number| _ = verify_backup(&target(&handles), number).unwrap());
    restore(&handles, Moment::Seq(35), None).unwrap();
    assert_eq!(found(&handles).0, 35);
    let early = restore(&handles, Moment::Seq(25), None).unwrap_err();
    assert!(early.message().contains("the first backup, 3, is of a later moment"), "{early}");
    for (to, told) in [
        (Moment::Seq(35), "backup 4 was made at sequence number 40, behind 35"),
        (Moment::Time(1), "later than 1: restore from an earlier backup"),
    ] {
        let behind = restore(&handles, to, Some(4)).unwrap_err();
        assert!(behind.message().contains(told), "{behind}");
    }
    let late = restore(&handles, Moment::Seq(41), None).unwrap_err();
    assert!(late.message().contains("backup 4 has no changes behind it"), "{late}");
    db.close().unwrap();
}

#[test]
fn a_kept_log_that_is_damaged_or_gone_ends_the_changes() {
    for case in 0..2 {
        let (_, handles) = env(1);
        let db = open(&handles);
        back_up(&db, &handles);
        for round in 0..3 {
            put(&db, round * 200..round * 200 + 200);
            handles.jobs.run_until_idle();
            db.flush().unwrap();
            handles.jobs.run_until_idle();
        }
        let logs: Vec<_> = handles.fs.files(Path::new(DIR));
        let kept: Vec<_> = logs.iter().filter(|name| name.ends_with(".changes")).collect();
        assert!(kept.len() > 2, "{kept:?}");
        let path = Path::new(DIR).join(kept[1]);
        match case {
            0 => handles.fs.flip(&path, 5_000, 1),
            _ => handles.fs.remove_file(&path),
        }
        let made = back_up(&db, &handles);
        let changes = made.changes.expect("some changes");
        assert!(0 < changes.through && changes.through < made.seq, "case {case}: {made:?}");
        let backup = read_backup(&target(&handles), made.number).unwrap();
        assert_eq!((backup.changes, backup.seq), (made.changes, Some(made.seq)));
        restore(&handles, Moment::Seq(changes.through), None).unwrap();
        assert_eq!(found(&handles).0, changes.through);
        let behind = restore(&handles, Moment::Seq(changes.through + 1), None).unwrap_err();
        let told = format!("end at sequence number {}", changes.through);
        assert!(behind.message().contains(&told), "{behind}");
        let at_end = restore(&handles, Moment::Seq(made.seq), None).unwrap();
        assert_eq!((at_end.backup.number, at_end.batches), (made.number, 0));
        assert_eq!(found(&handles).0, made.seq);
        let _ = db.close();
    }
}

#[test]
fn damage_to_changes_is_found_before_anything_is_written() {
    let (_, handles) = env(1);
    let db = open(&handles);
    back_up(&db, &handles);
    put(&db, 0..20);
    back_up(&db, &handles);
    let part = Path::new(BACKUPS).join("logs/000002-000000.changes");
    for at in 0..handles.env().fs.len(&part).unwrap() {
        handles.fs.flip(&part, at, 1);
        let damaged = verify_backup(&target(&handles), 2).unwrap_err();
        assert!(damaged.is_corruption(), "byte {at}: {damaged}");
        let damaged = restore(&handles, Moment::Seq(10), None).unwrap_err();
        assert!(damaged.is_corruption(), "byte {at}: {damaged}");
        assert!(damaged.to_string().contains("000002-000000.changes"), "byte {at}: {damaged}");
        assert!(!handles.env().fs.exists(Path::new(COPY)).unwrap());
        handles.fs.flip(&part, at, 1);
    }
    restore(&handles, Moment::Seq(10), None).unwrap();
    assert_eq!(found(&handles).0, 10);
    db.close().unwrap();
}

#[test]
fn an_ingestion_is_said_before_anything_is_written() {
    let (_, handles) = env(1);
    let db = open(&handles);
    back_up(&db, &handles);
    put(&db, 0..10);
    let users = db.keyspace("users").unwrap();
    let mut ingest = users.ingest().unwrap();
    ingest.put("a", "1").unwrap();
    ingest.finish().unwrap();
    let at = db.snapshot().seq();
    put(&db, 10..20);
    let made = back_up(&db, &handles);
    let refused = restore(&handles, Moment::Seq(at + 3), None).unwrap_err();
    let told = format!("ingested into keyspace `users` at sequence number {at}");
    assert!(refused.message().contains(&told), "{refused}");
    assert!(refused.message().contains(&format!("restore to {} at most", at - 1)), "{refused}");
    assert!(!handles.env().fs.exists(Path::new(COPY)).unwrap());
    restore(&handles, Moment::Seq(at - 1), None).unwrap();
    assert_eq!(found(&handles).0, at - 1);
    restore(&handles, Moment::Seq(made.seq), None).unwrap();
    assert_eq!(found(&handles).1["users"].len(), 1);
    // Where the keyspace is gone by then, it has no entries to be without.
    db.drop_keyspace("users").unwrap();
    put(&db, 20..30);
    back_up(&db, &handles);
    restore(&handles, Moment::Seq(made.seq + 5), Some(1)).unwrap();
    let spaces = found(&handles).1;
    assert_eq!((spaces.len(), spaces["default"].len()), (1, 25));
    db.close().unwrap();
}

/// A keyspace that is only there between two backups, with an operator.
#[test]
fn a_keyspace_between_two_backups_has_its_operator() {
    let (_, handles) = env(1);
    let db = open(&handles);
    back_up(&db, &handles);
    make(&db, "sums");
    let sums = db.keyspace("sums").unwrap();
    (0..5).for_each(|_| sums.merge("a", 2u64.to_le_bytes()).unwrap());
    let at = db.snapshot().seq();
    db.drop_keyspace("sums").unwrap();
    put(&db, 0..5);
    back_up(&db, &handles);
    restore(&handles, Moment::Seq(at), None).unwrap();
    assert_eq!(found(&handles).1["sums"][&b"a"[..]], 10u64.to_le_bytes());
    // Behind the drop it is gone, and its id is not given out again.
    restore(&handles, Moment::Seq(at + 1), None).unwrap();
    with_copy(&handles, |copy| {
        assert_eq!(copy.keyspaces(), ["default"]);
        let again = copy.keyspace("again").unwrap();
        assert!(again.is_empty().unwrap());
    });
    db.close().unwrap();
}

#[test]
fn entries_expire_when_they_would_have() {
    let (_, handles) = env(1);
    let db = open(&handles);
    back_up(&db, &handles);
    db.put_with_ttl("short", "1", std::time::Duration::from_secs(60)).unwrap();
    db.put_with_ttl("long", "1", std::time::Duration::from_secs(6_000)).unwrap();
    let made = back_up(&db, &handles);
    let now = handles.env().clock.wall_ms();
    handles.clock.set_wall_ms(now + 100_000);
    restore(&handles, Moment::Seq(made.seq), Some(1)).unwrap();
    let keys: Vec<_> = found(&handles).1["default"].keys().cloned().collect();
    assert_eq!(keys, [b"long"]);
    db.close().unwrap();
}
