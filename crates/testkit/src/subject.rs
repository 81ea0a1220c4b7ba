//! A database that answers operations: the engine behind the vocabulary of a test.
//!
//! Owns: the open database, its handles, snapshots and cursors by name.
//! Never does: decide which answer is right (`model.rs` does).

use crate::op::{Answer, Change, DEFAULT, Direction, Op, Pair, Span, Step, Subject, Write};
use crate::world::World;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;
use windrow::settings::KeyspaceSettings;
use windrow::{
    Batch, Cursor, Db, InKeyspace, Keyspace, KeyspaceOptions, Options, ReadOptions, Slice,
    Snapshot, Transaction, WriteSync,
};
use windrow_base::{Error, ErrorKind, Result};

/// A database under test.
pub struct Database {
    options: Options,
    /// `None` only after an open failed.
    db: Option<Db>,
    keyspaces: BTreeMap<String, Keyspace>,
    snapshots: BTreeMap<String, Snapshot>,
    cursors: BTreeMap<String, Cursor>,
    checkpoints: u64,
    /// The last error, for messages.
    last_error: Option<Error>,
    /// Last, so that a temporary directory is removed after the database in it is dropped.
    world: World,
}

/// Adds a change to a batch.
pub fn push(batch: &mut Batch, place: &impl InKeyspace, change: &Change) {
    match change {
        Change::Put { key, value } => batch.put(place, key, value),
        Change::PutTtl { key, value, ttl_ms } => {
            batch.put_with_ttl(place, key, value, Duration::from_millis(*ttl_ms));
        }
        Change::Delete { key } => batch.delete(place, key),
        Change::SingleDelete { key } => batch.single_delete(place, key),
        Change::Merge { key, operand } => batch.merge(place, key, operand),
        Change::MergeTtl { key, operand, ttl_ms } => {
            batch.merge_with_ttl(place, key, operand, Duration::from_millis(*ttl_ms));
        }
        Change::DeleteRange { from, to } => batch.delete_range(place, from, to),
    }
}

/// Makes a change in a transaction.
fn apply(tx: &mut Transaction, place: &impl InKeyspace, change: &Change) -> Result<()> {
    match change {
        Change::Put { key, value } => tx.put(place, key, value),
        Change::PutTtl { key, value, ttl_ms } => {
            tx.put_with_ttl(place, key, value, Duration::from_millis(*ttl_ms))
        }
        Change::Delete { key } | Change::SingleDelete { key } => tx.delete(place, key),
        Change::Merge { key, operand } => tx.merge(place, key, operand),
        Change::MergeTtl { key, operand, ttl_ms } => {
            tx.merge_with_ttl(place, key, operand, Duration::from_millis(*ttl_ms))
        }
        Change::DeleteRange { from, to } => tx.delete_range(place, from, to),
    }
}

/// Returns the key of a change, or the first key of a range.
fn key_of(change: &Change) -> &[u8] {
    match change {
        Change::Put { key, .. }
        | Change::PutTtl { key, .. }
        | Change::Delete { key }
        | Change::SingleDelete { key }
        | Change::Merge { key, .. }
        | Change::MergeTtl { key, .. } => key,
        Change::DeleteRange { from, .. } => from,
    }
}

/// Reads every entry of every keyspace of a database, forward.
///
/// # Errors
/// The first read error.
pub fn dump(db: &Db) -> Result<Vec<(String, Vec<Pair>)>> {
    let mut out = Vec::new();
    let mut names = db.keyspaces();
    names.sort();
    for name in names {
        let Some(keyspace) = db.open_keyspace(&name)? else {
            return Err(Error::invalid(format!("keyspace {name} is listed but not there")));
        };
        let mut pairs = Vec::new();
        for item in keyspace.iter() {
            let (key, value) = item?;
            pairs.push((key.to_vec(), value.to_vec()));
        }
        out.push((name, pairs));
    }
    Ok(out)
}

impl Database {
    /// Opens a new database in `world`.
    ///
    /// # Errors
    /// As `Db::open_with`.
    pub fn open(world: World, options: Options) -> Result<Database> {
        let mut database = Database {
            options,
            db: None,
            keyspaces: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            cursors: BTreeMap::new(),
            checkpoints: 0,
            last_error: None,
            world,
        };
        database.open_db()?;
        Ok(database)
    }

    /// Returns the error behind the last `Answer::Error`.
    pub fn last_error(&self) -> Option<&Error> {
        self.last_error.as_ref()
    }

    /// Returns the database.
    ///
    /// # Panics
    /// If the last open failed.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    /// Sets the options of the next open, in place of those of the last.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    fn open_db(&mut self) -> Result<()> {
        let mut options = self.options.clone();
        options.components.env = Some(self.world.env());
        let db = Db::open_with(self.world.dir(), options)?;
        for name in db.keyspaces() {
            if let Some(keyspace) = db.open_keyspace(&name)? {
                self.keyspaces.insert(name, keyspace);
            }
        }
        self.db = Some(db);
        Ok(())
    }

    fn release_handles(&mut self) -> Option<Db> {
        self.cursors.clear();
        self.snapshots.clear();
        self.keyspaces.clear();
        self.db.take()
    }

    fn reopen(&mut self, close: bool) -> Result<Answer> {
        if let Some(db) = self.release_handles() {
            if close {
                db.close()?;
            }
            drop(db);
        }
        self.world.process_died();
        self.open_db()?;
        Ok(Answer::Done)
    }

    fn write(&self, write: &Write, sync: bool) -> Result<Answer> {
        if sync {
            return self.batch(std::slice::from_ref(write), sync);
        }
        let Some(space) = self.keyspaces.get(&write.keyspace) else { return Ok(Answer::Missing) };
        match &write.change {
            Change::Put { key, value } => space.put(key, value),
            Change::PutTtl { key, value, ttl_ms } => {
                space.put_with_ttl(key, value, Duration::from_millis(*ttl_ms))
            }
            Change::Delete { key } => space.delete(key),
            Change::SingleDelete { key } => space.single_delete(key),
            Change::Merge { key, operand } => space.merge(key, operand),
            Change::MergeTtl { key, operand, ttl_ms } => {
                space.merge_with_ttl(key, operand, Duration::from_millis(*ttl_ms))
            }
            Change::DeleteRange { from, to } => space.delete_range(from, to),
        }?;
        Ok(Answer::Done)
    }

    fn ingest(&self, keyspace: &str, pairs: &[Pair]) -> Result<Answer> {
        let Some(space) = self.keyspaces.get(keyspace) else { return Ok(Answer::Missing) };
        let mut ingest = space.ingest()?;
        pairs.iter().try_for_each(|(key, value)| ingest.put(key, value))?;
        let done = ingest.finish()?;
        assert_eq!(done.entries, pairs.len() as u64, "an ingestion has added others than it took");
        Ok(Answer::Done)
    }

    /// Writes a batch or runs a transaction: without concurrency both have the same effect.
    fn batch(&self, writes: &[Write], sync: bool) -> Result<Answer> {
        let mut placed = Vec::with_capacity(writes.len());
        for write in writes {
            let Some(space) = self.keyspaces.get(&write.keyspace) else {
                return Ok(Answer::Missing);
            };
            placed.push((space, &write.change));
        }
        let sync = if sync { WriteSync::Yes } else { WriteSync::No };
        // A transaction has no single delete, and commits without writes even where writing is off.
        let is_single = |change: &Change| matches!(change, Change::SingleDelete { .. });
        let is_even = !writes.is_empty() && writes.len().is_multiple_of(2);
        if is_even && !writes.iter().any(|write| is_single(&write.change)) {
            return self.transaction(&placed, sync);
        }
        let mut batch = Batch::new();
        placed.iter().for_each(|(space, change)| push(&mut batch, *space, change));
        self.db().write(batch, sync)?;
        Ok(Answer::Done)
    }

    /// Makes the changes in a transaction that also rolls back to a savepoint, and reads each key
    /// before and after. Its view of its own writes is the view of every reader once it has
    /// committed.
    ///
    /// # Panics
    /// If the two views differ.
    fn transaction(&self, changes: &[(&Keyspace, &Change)], sync: WriteSync) -> Result<Answer> {
        let mut tx = self.db().transaction()?;
        let begin_ms = self.db().now_ms();
        let mut seen = Vec::new();
        for (space, change) in changes {
            let key = key_of(change);
            // A read that fails ends nothing: the write may succeed.
            let _ = tx.get(*space, key);
            let savepoint = tx.savepoint();
            let _ = tx.put(*space, key, "forgotten");
            tx.rollback_to(&savepoint)?;
            apply(&mut tx, *space, change)?;
        }
        for (space, change) in changes {
            let key = key_of(change);
            seen.push((space, key, tx.get(*space, key)));
        }
        tx.commit_with(sync)?;
        for (space, key, before) in seen {
            let after = space.get(key);
            let is_one_moment = self.db().now_ms() == begin_ms;
            if let (Ok(before), Ok(after), true) = (before, after, is_one_moment) {
                assert_eq!(before, after, "a transaction saw another value of {key:02x?}");
            }
        }
        Ok(Answer::Done)
    }

    /// Returns the keyspace and the snapshot of a read; `None` if one is missing.
    fn read_place(
        &self,
        keyspace: &str,
        at: Option<&str>,
    ) -> Option<(&Keyspace, Option<&Snapshot>)> {
        let keyspace = self.keyspaces.get(keyspace)?;
        match at {
            None => Some((keyspace, None)),
            Some(name) => Some((keyspace, Some(self.snapshots.get(name)?))),
        }
    }

    fn get(&self, keyspace: &str, at: Option<&str>, key: &[u8]) -> Result<Answer> {
        let Some((ks, snapshot)) = self.read_place(keyspace, at) else {
            return Ok(Answer::Missing);
        };
        let value = match snapshot {
            None => ks.get(key)?,
            Some(snapshot) if keyspace == DEFAULT => snapshot.get(key)?,
            Some(snapshot) => ks.get_at(snapshot, key)?,
        };
        Ok(Answer::Value(value.map(|v| v.to_vec())))
    }

    fn multi_get(&self, keyspace: &str, keys: &[Vec<u8>]) -> Result<Answer> {
        let Some((ks, _)) = self.read_place(keyspace, None) else { return Ok(Answer::Missing) };
        let plain = |v: Result<Option<Slice>>| match v {
            Ok(value) => Ok(value.map(|v| v.to_vec())),
            Err(error) => Err(error.kind()),
        };
        Ok(Answer::Values(ks.multi_get(keys).into_iter().map(plain).collect()))
    }

    fn scan(&self, span: &Span, direction: Direction) -> Result<Answer> {
        let Some((ks, snapshot)) = self.read_place(&span.keyspace, span.at.as_deref()) else {
            return Ok(Answer::Missing);
        };
        let lower = span.from.clone().map_or(Bound::Unbounded, Bound::Included);
        let upper = span.to.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (lower, upper);
        let iter = match snapshot {
            None => ks.range(bounds),
            Some(snapshot) if span.keyspace == DEFAULT => snapshot.range(bounds),
            Some(snapshot) => ks.range_at(snapshot, bounds),
        };
        Ok(collect(iter, direction))
    }

    fn prefix(
        &self,
        keyspace: &str,
        at: Option<&str>,
        prefix: &[u8],
        direction: Direction,
    ) -> Result<Answer> {
        let Some((ks, snapshot)) = self.read_place(keyspace, at) else {
            return Ok(Answer::Missing);
        };
        let iter = match snapshot {
            None => ks.prefix(prefix),
            Some(snapshot) if keyspace == DEFAULT => snapshot.prefix(prefix),
            Some(snapshot) => ks.prefix_at(snapshot, prefix),
        };
        Ok(collect(iter, direction))
    }

    fn open_cursor(&mut self, name: &str, span: &Span) -> Result<Answer> {
        let Some((ks, snapshot)) = self.read_place(&span.keyspace, span.at.as_deref()) else {
            return Ok(Answer::Missing);
        };
        let options = ReadOptions {
            lower: span.from.clone(),
            upper: span.to.clone(),
            snapshot: snapshot.cloned(),
            ..ReadOptions::default()
        };
        let cursor = ks.cursor(options);
        self.cursors.insert(name.to_owned(), cursor);
        Ok(Answer::Done)
    }

    fn walk(&mut self, name: &str, steps: &[Step]) -> Answer {
        let Some(cursor) = self.cursors.get_mut(name) else { return Answer::Missing };
        Answer::Steps(steps.iter().map(|step| take_step(cursor, step)).collect())
    }

    fn checkpoint(&mut self) -> Result<Answer> {
        self.checkpoints += 1;
        let target: PathBuf = self.world.sibling(&format!("checkpoint-{}", self.checkpoints));
        self.db().checkpoint(&target)?;
        let mut options = self.options.clone();
        options.components.env = Some(self.world.env());
        options.create_if_missing = false;
        let copy = Db::open_with(&target, options)?;
        let answer = Answer::Dump(dump(&copy)?);
        copy.close()?;
        Ok(answer)
    }

    fn create(&mut self, name: &str, options: KeyspaceOptions) -> Result<Answer> {
        let keyspace = self.db().keyspace_with(name, options)?;
        self.keyspaces.insert(name.to_owned(), keyspace);
        Ok(Answer::Done)
    }

    /// Dropping an absent keyspace is an error. The handle of a dropped one is kept, to check that
    /// it answers `Closed`.
    fn drop_keyspace(&mut self, name: &str) -> Result<Answer> {
        if !self.db().keyspaces().iter().any(|n| n == name) {
            return match self.db().drop_keyspace(name) {
                Ok(()) => Ok(Answer::Done),
                Err(_) => Ok(Answer::Missing),
            };
        }
        self.db().drop_keyspace(name)?;
        Ok(Answer::Done)
    }

    fn try_apply(&mut self, op: &Op) -> Result<Answer> {
        if self.db.is_none() {
            return Err(Error::new(ErrorKind::Closed, "the last open failed"));
        }
        match op {
            Op::Write { write, sync } => self.write(write, *sync),
            Op::Batch { writes, sync } => self.batch(writes, *sync),
            Op::Ingest { keyspace, pairs } => self.ingest(keyspace, pairs),
            Op::Get { keyspace, at, key } => self.get(keyspace, at.as_deref(), key),
            Op::MultiGet { keyspace, keys } => self.multi_get(keyspace, keys),
            Op::Scan { span, direction } => self.scan(span, *direction),
            Op::Prefix { keyspace, at, prefix, direction } => {
                self.prefix(keyspace, at.as_deref(), prefix, *direction)
            }
            Op::Dump => dump(self.db()).map(Answer::Dump),
            Op::OpenCursor { cursor, span } => self.open_cursor(cursor, span),
            Op::Walk { cursor, steps } => Ok(self.walk(cursor, steps)),
            Op::Refresh { cursor } => match self.cursors.get_mut(cursor) {
                Some(cursor) => {
                    let moved = cursor.refresh();
                    Ok(Answer::Steps(vec![was_on(cursor, moved)]))
                }
                None => Ok(Answer::Missing),
            },
            Op::CloseCursor { cursor } => {
                Ok(self.cursors.remove(cursor).map_or(Answer::Missing, |_| Answer::Done))
            }
            Op::Snapshot { name } => {
                let snapshot = self.db().snapshot();
                self.snapshots.insert(name.clone(), snapshot);
                Ok(Answer::Done)
            }
            Op::Release { name } => {
                Ok(self.snapshots.remove(name).map_or(Answer::Missing, |_| Answer::Done))
            }
            Op::CreateKeyspace { name, operator, comparator } => {
                let merge_operator = operator.clone();
                let comparator = comparator.clone();
                self.create(
                    name,
                    KeyspaceOptions { comparator, merge_operator, ..KeyspaceOptions::default() },
                )
            }
            Op::Configure { name, ttl_ms, compression } => {
                let Some(keyspace) = self.db().open_keyspace(name)? else {
                    return Ok(Answer::Missing);
                };
                let (ttl, compression) = (ttl_ms.map(Duration::from_millis), compression.clone());
                keyspace.configure(KeyspaceSettings { ttl, compression, policy: None })?;
                Ok(Answer::Done)
            }
            Op::DropKeyspace { name } => self.drop_keyspace(name),
            Op::Keyspaces => {
                let mut names = self.db().keyspaces();
                names.sort();
                Ok(Answer::Names(names))
            }
            Op::Clock { forward_ms } => {
                self.world.advance_ms(*forward_ms);
                Ok(Answer::Done)
            }
            work => self.work(work),
        }
    }

    /// Runs work on the files, which changes nothing that a reader sees.
    fn work(&mut self, op: &Op) -> Result<Answer> {
        match op {
            Op::Flush { keyspace: None } => self.db().flush()?,
            Op::Flush { keyspace: Some(name) } => match self.keyspaces.get(name) {
                Some(keyspace) => keyspace.flush()?,
                None => return Ok(Answer::Missing),
            },
            Op::CompactRange { span } => match self.keyspaces.get(&span.keyspace) {
                Some(ks) => {
                    let end = |key: &Option<Vec<u8>>| {
                        key.clone().map_or(Bound::Unbounded, Bound::Included)
                    };
                    ks.compact_range((end(&span.from), end(&span.to)))?;
                }
                None => return Ok(Answer::Missing),
            },
            Op::Compact => self.db().compact()?,
            Op::Wait => self.db().wait_idle()?,
            Op::Sync => self.db().sync()?,
            Op::Policy { policy } => {
                self.db().set_policy(policy)?;
                self.options.settings.preset.clone_from(policy);
            }
            Op::Verify => {
                self.db().verify()?.into_result()?;
            }
            Op::Reopen => return self.reopen(true),
            Op::Kill => return self.reopen(false),
            Op::Checkpoint => return self.checkpoint(),
            _ => return Err(Error::invalid(format!("{op:?} is not work"))),
        }
        Ok(Answer::Done)
    }
}

fn collect(iter: windrow::Iter, direction: Direction) -> Answer {
    let mut iter = iter;
    let (mut pairs, mut refused) = (Vec::new(), None);
    let mut front = direction != Direction::Backward;
    loop {
        let item = if front { iter.next() } else { iter.next_back() };
        match item {
            Some(Ok((key, value))) => pairs.push((key.to_vec(), value.to_vec())),
            Some(Err(error)) if error.kind() == ErrorKind::MergeRefused => {
                refused = Some(error.kind());
            }
            Some(Err(error)) => return Answer::Pairs(pairs, Some(error.kind())),
            None => return Answer::Pairs(pairs, refused),
        }
        front ^= direction == Direction::Zigzag;
    }
}

fn take_step(cursor: &mut Cursor, step: &Step) -> std::result::Result<Option<Pair>, ErrorKind> {
    let moved = match step {
        Step::First => cursor.seek_first(),
        Step::Last => cursor.seek_last(),
        Step::Seek(key) => cursor.seek(key),
        Step::SeekBefore(key) => cursor.seek_before(key),
        Step::Next | Step::Prev if !cursor.valid() && !is_at_refused(cursor) => return Ok(None),
        Step::Next => cursor.next(),
        Step::Prev => cursor.prev(),
    };
    was_on(cursor, moved)
}

/// Whether the cursor is at a key whose merge was refused, from which it continues.
fn is_at_refused(cursor: &Cursor) -> bool {
    cursor.status().is_err_and(|error| error.kind() == ErrorKind::MergeRefused)
}

/// Returns the entry of the cursor after a movement that returned `moved`.
fn was_on(cursor: &Cursor, moved: Result<bool>) -> std::result::Result<Option<Pair>, ErrorKind> {
    let valid = moved.map_err(|error| error.kind())?;
    assert_eq!(valid, cursor.valid(), "what a step returns is whether the cursor is valid");
    Ok(valid.then(|| (cursor.key().to_vec(), cursor.value().to_vec())))
}

impl Subject for Database {
    fn apply(&mut self, op: &Op) -> Answer {
        match self.try_apply(op) {
            Ok(answer) => answer,
            Err(error) => {
                let kind = error.kind();
                self.last_error = Some(error);
                Answer::Error(kind)
            }
        }
    }
}
