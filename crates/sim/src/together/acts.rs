//! The acts. Each is run again and again by an author of its own; some write, and number their
//! writes in the ledger.
//!
//! Owns: the acts, and the assertions that each can make by itself. Never does: end a database,
//! except in the act that closes it.

use super::stage::{Ground, Stage, queued, shown};
use std::path::Path;
use windrow::backup::{BackedUp, BackupDirectory, BackupOptions};
use windrow::changes::{Change, ChangeOptions, OldValue, Operation};
use windrow::{Batch, Conditions, Keyspace, TransactionOptions, WriteSync};
use windrow_base::{ErrorKind, Result};
use windrow_testkit::ledger::{Counts, Ledger, first_key};

/// An act.
#[derive(Clone, Copy)]
pub struct Act {
    /// Its name.
    pub name: &'static str,
    /// Runs it once, for an author.
    pub run: fn(&Stage, usize) -> Result<()>,
    /// Its effect on the others.
    pub kind: Kind,
    /// The number of its runs for a hundred runs of a quick act.
    pub times: u64,
}

/// The effect of an act on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Harmless,
    /// The device may refuse their operations.
    Breaks,
    /// They may find the database closed.
    Closes,
}

const fn act(name: &'static str, run: fn(&Stage, usize) -> Result<()>, times: u64) -> Act {
    Act { name, run, kind: Kind::Harmless, times }
}

/// Every act. The index of one that writes is its author, so the order stays: databases contain it.
pub const ACTS: &[Act] = &[
    act("write", write, 100),
    act("transact", transact, 60),
    act("condition", condition, 60),
    act("merge", merge, 60),
    act("pop", pop, 60),
    act("ingest", ingest, 40),
    act("ingest_other", ingest, 40),
    act("flush", flush, 20),
    act("compact", compact, 6),
    act("checkpoint", checkpoint, 4),
    act("backup", backup, 6),
    act("keyspaces", keyspaces, 12),
    act("policy", policy, 10),
    act("sync", sync, 40),
    act("read", read, 20),
    act("follow", follow, 8),
    act("copy", copy, 4),
    act("backup_followed", backup_followed, 6),
    act("changes", changes, 10),
    Act { name: "resume", run: resume, kind: Kind::Breaks, times: 6 },
    Act { name: "close", run: close, kind: Kind::Closes, times: 1 },
];

impl Stage {
    fn draw_sync(&self) -> WriteSync {
        if self.ground.draw(3) == 0 { WriteSync::Yes } else { WriteSync::No }
    }

    fn one_space(&self) -> &Keyspace {
        &self.spaces[self.ground.draw(2) as usize]
    }
}

/// Writes a batch over both keyspaces, in which a range may be deleted first.
fn write(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin(author);
    let mut batch = Batch::new();
    if stage.ground.draw(4) == 0 {
        let (from, to) = attempt.range();
        stage.spaces.iter().for_each(|space| batch.delete_range(space, &from, &to));
    }
    attempt.push(&mut batch, &stage.spaces);
    let sync = stage.draw_sync();
    stage.db.write(batch, sync)?;
    stage.ledger.end(&attempt, sync.is_yes());
    Ok(())
}

/// Writes in a transaction, of either kind, that has read the values that it overwrites.
fn transact(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin(author);
    let options = match stage.ground.draw(2) {
        0 => TransactionOptions::default(),
        _ => TransactionOptions::pessimistic(),
    };
    stage.db.transact_with(&options, |tx| {
        for space in &stage.spaces {
            for (key, value) in attempt.pairs() {
                let before = stage.ledger.number(tx.get(space, &key)?.as_deref());
                assert!(before < attempt.number(), "{} reads {before}", attempt.number());
                tx.put(space, key, value)?;
            }
        }
        Ok(())
    })?;
    stage.ledger.end(&attempt, false);
    Ok(())
}

/// Writes a batch under the condition that the author's keys are unchanged, which always holds.
fn condition(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin(author);
    let (mut batch, mut conditions) = (Batch::new(), Conditions::new());
    for space in &stage.spaces {
        let key = first_key(author);
        conditions = match space.get(&key)? {
            Some(value) => conditions.equal(space, &key, &*value),
            None => conditions.absent(space, &key),
        };
    }
    attempt.push(&mut batch, &stage.spaces);
    let sync = stage.draw_sync();
    let written = stage.db.write_if(batch, &conditions, sync)?;
    assert!(written.is_some(), "somebody else has written the keys of author {author}");
    stage.ledger.end(&attempt, sync.is_yes());
    Ok(())
}

/// Adds to a sum, so that it is the number of the write.
fn merge(stage: &Stage, author: usize) -> Result<()> {
    let before = stage.spaces[0].get(first_key(author))?;
    let before = stage.ledger.number(before.as_deref());
    let attempt = stage.ledger.begin(author);
    let mut batch = Batch::new();
    attempt.push(&mut batch, &stage.spaces);
    batch.merge(&stage.sums, [author as u8], (attempt.number() - before).to_le_bytes());
    let sync = stage.draw_sync();
    stage.db.write(batch, sync)?;
    stage.ledger.end(&attempt, sync.is_yes());
    Ok(())
}

/// Pushes a number, and pops the lowest one or a few.
fn pop(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin(author);
    let mut batch = Batch::new();
    attempt.push(&mut batch, &stage.spaces);
    let mut key = attempt.number().to_be_bytes().to_vec();
    key.push(author as u8);
    batch.put(&stage.queue, key, "");
    let sync = stage.draw_sync();
    stage.db.write(batch, sync)?;
    stage.ledger.end(&attempt, sync.is_yes());
    let mut last = 0;
    for _ in 0..stage.ground.draw(3) {
        let Some((key, _)) = stage.queue.pop_first()? else { break };
        let (number, pusher) = queued(&key);
        if pusher == author {
            assert!(last < number && number <= attempt.number(), "{number} is popped after {last}");
            last = number;
        }
    }
    Ok(())
}

/// Ingests into one keyspace always: the other one's keys would be older.
fn ingest(stage: &Stage, author: usize) -> Result<()> {
    let attempt = stage.ledger.begin_in_one(author);
    let mut ingest = stage.spaces[author % 2].ingest()?;
    attempt.pairs().try_for_each(|(key, value)| ingest.put(key, value))?;
    if stage.ground.draw(8) == 0 {
        // Abandoned: none of its keys may show.
        return Ok(());
    }
    ingest.finish()?;
    stage.ledger.end(&attempt, true);
    Ok(())
}

fn flush(stage: &Stage, _: usize) -> Result<()> {
    match stage.ground.draw(2) {
        0 => stage.db.flush(),
        _ => stage.one_space().flush(),
    }
}

fn compact(stage: &Stage, _: usize) -> Result<()> {
    match stage.ground.draw(3) {
        0 => stage.db.compact(),
        1 => stage.one_space().compact_range("author02"..="author09"),
        _ => stage.one_space().compact(),
    }
}

fn checkpoint(stage: &Stage, author: usize) -> Result<()> {
    let dir = stage.ground.copy_path(author);
    stage.look("a copy", || {
        stage.db.checkpoint(&dir)?;
        stage.ground.with_copy(&dir, &mut |copy| shown(copy, &stage.ledger))
    })
}

/// Backs up, unless somebody else does, and looks at what is restored of it. Some of the backups are
/// removed.
pub(super) fn backed_up(
    ground: &dyn Ground,
    ledger: &Ledger,
    author: usize,
    back_up: impl FnOnce(&BackupDirectory) -> Result<BackedUp>,
) -> Result<Option<Counts>> {
    let (env, dir) = (ground.env(), ground.copy_path(author));
    let backups = match BackupDirectory::open_in(&env, &ground.backups_path()) {
        Err(error) if error.kind() == ErrorKind::Busy => return Ok(None),
        opened => opened?,
    };
    let made = back_up(&backups)?;
    windrow::backup::restore_backup_in(&env, &backups, Some(made.number), Path::new(&dir))?;
    let seen = ground.with_copy(&dir, &mut |copy| shown(copy, ledger))?;
    if ground.draw(2) == 0 {
        windrow::backup::prune_backups(&backups, 2)?;
    }
    Ok(Some(seen))
}

fn backup(stage: &Stage, author: usize) -> Result<()> {
    let before = stage.ledger.acknowledged();
    let options = BackupOptions::default();
    let back_up = |backups: &BackupDirectory| stage.db.backup(backups, options);
    let seen = backed_up(&*stage.ground, &stage.ledger, author, back_up)?;
    match seen {
        Some(seen) => stage.check("a backup", &before, &seen),
        None => stage.ground.pause(),
    }
    Ok(())
}

/// Another process backs up what it read.
fn backup_followed(stage: &Stage, author: usize) -> Result<()> {
    let follower = stage.ground.follow()?;
    for _ in 0..2 {
        let before = stage.ledger.acknowledged();
        follower.refresh()?;
        let shown_there = shown(&follower.db(), &stage.ledger)?;
        let options = BackupOptions::default();
        let back_up = |backups: &BackupDirectory| follower.backup(backups, options);
        let seen = backed_up(&*stage.ground, &stage.ledger, author, back_up)?;
        if let Some(seen) = seen {
            stage.check("a follower's backup", &before, &seen);
            assert_eq!(seen, shown_there, "a backup is not what was shown");
        }
    }
    Ok(())
}

/// Makes and drops a keyspace with a few keys in it.
fn keyspaces(stage: &Stage, author: usize) -> Result<()> {
    let name = format!("of author {author}");
    let space = stage.db.keyspace(&name)?;
    match stage.ground.draw(3) {
        0 => space.put("key", "value")?,
        1 => space.put("key", "value").and_then(|()| space.flush())?,
        _ => {
            let mut ingest = space.ingest()?;
            ingest.put("key", "value")?;
            ingest.finish()?;
        }
    }
    assert_eq!(space.get("key")?.as_deref(), Some(&b"value"[..]));
    stage.db.drop_keyspace(&name)
}

fn policy(stage: &Stage, _: usize) -> Result<()> {
    let policies = ["leveled", "windrow", "l2sm", "vlsm filters=none", "autumn", "mnemosyne"];
    stage.db.set_policy(policies[stage.ground.draw(policies.len() as u64) as usize])
}

fn sync(stage: &Stage, _: usize) -> Result<()> {
    stage.db.sync()
}

/// Reads by a snapshot, scans and statistics.
fn read(stage: &Stage, _: usize) -> Result<()> {
    let held = stage.db.snapshot();
    let first = stage.ledger.observe(&stage.spaces, &held)?;
    stage.look("a read", || shown(&stage.db, &stage.ledger))?;
    let again = stage.ledger.observe(&stage.spaces, &held)?;
    assert_eq!(first, again, "a snapshot has changed");
    let stats = stage.db.stats();
    let memory = stats.memory;
    assert!(memory.memtables_bytes < u64::MAX / 2, "{memory:?}");
    stage.db.at_rest().map(drop)
}

/// Reads the feed of changes behind a snapshot, with old values or without: each author's writes are
/// there in order, and all that were acknowledged before a look are.
fn changes(stage: &Stage, _: usize) -> Result<()> {
    let held = stage.db.snapshot();
    let mut seen = stage.ledger.observe(&stage.spaces, &held)?;
    let mut options = ChangeOptions::default();
    options.old_values = (stage.ground.draw(2) == 0).then(|| held.clone());
    let mut all_known = options.old_values.is_some();
    let mut changes = match stage.db.changes(held.seq() + 1, options) {
        // The logs behind the snapshot are gone.
        Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(()),
        changes => changes?,
    };
    drop(held);
    for _ in 0..3 {
        let before = stage.ledger.acknowledged();
        loop {
            let change = match changes.try_next() {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(()),
                change => change?,
            };
            let Some(change) = change else { break };
            take_over(stage, &change, &mut all_known, &mut seen);
        }
        let lacks = |author: &usize| seen[*author] < before[*author] && !ingests(*author);
        let missing = (0..seen.len()).find(lacks);
        assert_eq!(missing, None, "the feed has {seen:?}, and {before:?} was acknowledged");
        stage.ground.pause();
    }
    Ok(())
}

/// Whether an author ingests: such entries are not in the feed.
fn ingests(author: usize) -> bool {
    ACTS.get(author).is_some_and(|act| act.name.starts_with("ingest"))
}

/// Takes over the writes of a change. Old values are those of the author's write before, and
/// `all_known` as long as nothing was ingested.
fn take_over(stage: &Stage, change: &Change, all_known: &mut bool, seen: &mut Counts) {
    let before = seen.clone();
    for operation in &change.operations {
        *all_known &= !matches!(operation, Operation::Ingested { .. });
        let Operation::Put { key, value, old, .. } = operation else { continue };
        let Some(author) = stage.ledger.author(key) else { continue };
        let number = stage.ledger.number(Some(value));
        assert!(seen[author] <= number, "{number} of {author} after {}", seen[author]);
        seen[author] = number;
        let old = match old {
            OldValue::Value(old) => stage.ledger.number(Some(old)),
            OldValue::Absent => continue,
            OldValue::Unknown => {
                assert!(!*all_known, "the value before {number} of {author} is not known");
                continue;
            }
        };
        let is_last = old == before[author] || ingests(author);
        assert!(is_last, "{old} comes before {number} of {author}, after {}", before[author]);
    }
}

/// Reads twice in another process.
fn follow(stage: &Stage, _: usize) -> Result<()> {
    let follower = stage.ground.follow()?;
    // The state that it showed before, which stays.
    let mut kept: Option<(Counts, windrow::Db)> = None;
    for _ in 0..2 {
        let before = stage.ledger.acknowledged();
        follower.refresh()?;
        let db = follower.db();
        let seen = shown(&db, &stage.ledger)?;
        stage.check("a follower", &before, &seen);
        if let Some((earlier, db)) = kept.replace((seen.clone(), db)) {
            stage.check("a follower, later", &earlier, &seen);
            assert_eq!(shown(&db, &stage.ledger)?, earlier, "a state has changed");
        }
    }
    Ok(())
}

/// Copies the database from another process that reads it.
fn copy(stage: &Stage, author: usize) -> Result<()> {
    let follower = stage.ground.follow()?;
    let dir = stage.ground.copy_path(author);
    for _ in 0..2 {
        stage.look("a follower's copy", || {
            follower.refresh()?;
            let shown_there = shown(&follower.db(), &stage.ledger)?;
            follower.checkpoint(&dir)?;
            let look = &mut |copy: &_| shown(copy, &stage.ledger);
            let copied = stage.ground.with_copy(&dir, look)?;
            assert_eq!(copied, shown_there, "a copy is not what was shown");
            Ok(copied)
        })?;
    }
    Ok(())
}

/// Makes the device fail, and turns writing on again.
fn resume(stage: &Stage, _: usize) -> Result<()> {
    let broken = stage.ground.break_device();
    for _ in 0..stage.ground.draw(30) {
        stage.ground.pause();
    }
    let resumed = stage.db.resume();
    drop(broken);
    resumed
}

fn close(stage: &Stage, _: usize) -> Result<()> {
    for _ in 0..stage.ground.draw(60) {
        stage.ground.pause();
    }
    stage.db.close()
}
