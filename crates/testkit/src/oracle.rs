//! The states that a database may have after a crash: a prefix of the history of its batches, at
//! least as long as the part acknowledged as durable.
//!
//! Owns: the history, which prefix came back, and the comparison of everything that can be read
//! with the replay of that prefix. Keyspaces are made and dropped at once, apart from the history
//! (a manifest edit is durable when it returns); a keyspace operation that was under way at the
//! crash may have happened or not. A durable drop comes after everything acknowledged before it
//! (P2).
//! Never does: crash anything (`sim` does).

use crate::compose::{all_keys, random_key};
use crate::model::Model;
use crate::op::{Answer, Change, Op, Pair, Subject, Write};
use std::ops::Bound;
use windrow::{Db, Keyspace};
use windrow_env::testing::Rng;

/// A batch that was issued since the last recovery.
#[derive(Clone, Debug)]
struct Entry {
    writes: Vec<(u64, Change)>,
    now_ms: u64,
    /// An ingestion takes its sequence number before its tables are installed: if it failed, that
    /// number proves nothing.
    is_ingestion: bool,
    /// The database's newest sequence number after it; `None`: it was never acknowledged.
    seq_end: Option<u64>,
}

/// A part of the history between two known moments: opens, and changes to the set of keyspaces.
#[derive(Clone, Debug)]
struct Stretch {
    /// The replay of the history before it.
    base: Model,
    base_seq: u64,
    /// Batches after `base`, in order.
    pending: Vec<Entry>,
    /// An ingestion has failed in it. The log may have its sequence number although nothing was
    /// installed.
    is_number_lost: bool,
}

impl Stretch {
    /// Returns how many of its batches are present at this sequence number.
    fn count_at(&self, seq: u64) -> usize {
        let before = |entry: &&Entry| entry.seq_end.is_some_and(|end| end <= seq);
        let count = self.pending.iter().take_while(before).count();
        let known = self.pending[..count].iter().rev().find_map(|e| e.seq_end);
        // The last batch may never have been acknowledged: it is present if the sequence number
        // says so.
        let doubtful = count + 1 == self.pending.len()
            && self.pending[count].seq_end.is_none()
            && seq > known.unwrap_or(self.base_seq);
        count + usize::from(doubtful)
    }

    /// Returns the possible counts on a device that has lost durable data, likeliest first. Of an
    /// ingestion, the log holds only the sequence number and the manifest all else.
    fn counts_at(&self, seq: u64) -> impl Iterator<Item = usize> + use<> {
        let most = self.count_at(seq);
        let ingestions = self.pending[..most].iter().rev().take_while(|e| e.is_ingestion).count();
        let lost = ingestions + usize::from(self.is_number_lost);
        (most.saturating_sub(lost)..=most).rev()
    }

    /// Returns the state after its first `count` batches, at this time.
    fn replayed(&self, count: usize, now_ms: u64) -> Model {
        let mut state = self.base.clone();
        for entry in &self.pending[..count] {
            state.replay(&entry.writes, entry.now_ms);
        }
        state.set_now_ms(now_ms);
        state.apply(&Op::Kill);
        state
    }
}

/// The history of a database, and how much of it must still be present.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The stretch that began at the last known moment, with the batches issued since.
    last: Stretch,
    /// The replay of everything issued and acknowledged.
    current: Model,
    /// The number of the last stretch's batches that must survive a power loss.
    synced: usize,
    /// A keyspace operation that has not returned.
    in_doubt: Option<Op>,
    /// The stretches before the last, oldest first, where they are kept.
    past: Option<Vec<Stretch>>,
}

impl Oracle {
    /// Begins the history of an empty database.
    pub fn new(model: Model) -> Oracle {
        Oracle {
            last: Stretch {
                base: model.clone(),
                base_seq: 0,
                pending: Vec::new(),
                is_number_lost: false,
            },
            current: model,
            synced: 0,
            in_doubt: None,
            past: None,
        }
    }

    /// Keeps the whole history from here on, for [`Oracle::recovered_any`].
    pub fn keep_past(&mut self) {
        self.past.get_or_insert_default();
    }

    /// Returns the state that reads must show now.
    pub fn current(&self) -> &Model {
        &self.current
    }

    /// Returns the state that reads show if a batch that failed half-way is visible.
    pub fn with_doubt(&self) -> Model {
        let mut state = self.current.clone();
        for entry in self.last.pending.iter().filter(|entry| entry.seq_end.is_none()) {
            state.replay(&entry.writes, entry.now_ms);
        }
        state
    }

    /// Sets the time by which expiry is judged and from which new expiries count.
    pub fn set_now_ms(&mut self, now_ms: u64) {
        self.current.set_now_ms(now_ms);
    }

    /// Answers an operation that changes no history.
    pub fn answer(&mut self, op: &Op) -> Answer {
        self.current.apply(op)
    }

    /// Records a batch that is about to be issued.
    pub fn issue(&mut self, writes: &[Write], is_ingestion: bool) {
        let resolved = self.current.resolve(writes).unwrap_or_default();
        let now_ms = self.current.now_ms();
        self.last.pending.push(Entry { writes: resolved, now_ms, is_ingestion, seq_end: None });
    }

    /// Records that the batch issued last was acknowledged, with the database now at `seq`.
    pub fn acknowledge(&mut self, seq: u64, synced: bool) {
        if let Some(entry) = self.last.pending.last_mut() {
            entry.seq_end = Some(seq);
            self.current.replay(&entry.writes, entry.now_ms);
        }
        if synced {
            self.sync();
        }
    }

    /// Forgets the batch issued last: it was refused before anything was written.
    pub fn withdraw(&mut self) {
        self.last.pending.pop();
    }

    /// Records that everything acknowledged is durable.
    pub fn sync(&mut self) {
        self.synced = self.acknowledged();
    }

    fn acknowledged(&self) -> usize {
        self.last.pending.iter().filter(|entry| entry.seq_end.is_some()).count()
    }

    /// Records a keyspace operation that is about to begin.
    pub fn begin_keyspace(&mut self, op: &Op) {
        self.in_doubt = Some(op.clone());
    }

    /// Forgets the keyspace operation: it was refused before anything was written.
    pub fn withdraw_keyspace(&mut self) {
        self.in_doubt = None;
    }

    /// Whether a batch or keyspace operation failed half-way: after the next open it may be present
    /// or not.
    pub fn has_doubt(&self) -> bool {
        self.in_doubt.is_some() || self.last.pending.iter().any(|entry| entry.seq_end.is_none())
    }

    /// Records that the keyspace operation returned: it is durable.
    pub fn end_keyspace(&mut self) -> Answer {
        match self.in_doubt.take() {
            Some(op) => {
                if let Some(past) = &mut self.past {
                    past.push(self.last.clone());
                }
                if matches!(op, Op::DropKeyspace { .. }) {
                    self.sync();
                }
                self.last.base.apply(&op);
                self.current.apply(&op)
            }
            None => Answer::Missing,
        }
    }

    /// Judges a database that was just opened after a crash, and continues from its contents.
    /// `kept`: the page cache survived (the process died, not the machine), so everything
    /// acknowledged must be present.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn recovered(&mut self, db: &Db, kept: bool) -> Result<(), String> {
        self.settle_keyspace(db)?;
        self.recovered_with(db, if kept { self.acknowledged() } else { self.synced })
    }

    /// Judges as [`Oracle::recovered`] does, on a device that has lost durable data: any prefix is
    /// accepted, also of the history before the last open if that is kept ([`Oracle::keep_past`]),
    /// but nothing else.
    ///
    /// # Errors
    /// As [`Oracle::recovered`].
    pub fn recovered_any(&mut self, db: &Db) -> Result<(), String> {
        let why = match self.recovered_with(db, 0) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        self.in_doubt = None;
        let (names, seq) = (sorted_keyspaces(db), db.snapshot().seq());
        let states = self
            .past
            .iter()
            .flatten()
            .chain([&self.last])
            .rev()
            .flat_map(|stretch| stretch.counts_at(seq).map(move |k| (stretch, k)))
            .map(|(stretch, k)| stretch.replayed(k, self.current.now_ms()));
        let mut same = states.filter(|state| state.keyspaces() == names);
        let found = same.find(|state| compare(db, state).is_ok());
        drop(same);
        match found {
            Some(state) => self.go_on(state, seq),
            None => return Err(why),
        }
        Ok(())
    }

    /// Judges a database in which writing was turned on again after a failure, and continues:
    /// everything acknowledged is present and durable. The batch that failed is present if it was
    /// visible before, else never again.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn resumed(&mut self, db: &Db) -> Result<(), String> {
        self.settle_keyspace(db)?;
        self.settle_ingestion(db);
        let seq = db.snapshot().seq();
        let (count, acknowledged) = (self.last.count_at(seq), self.acknowledged());
        if count < acknowledged {
            return Err(format!("{count} of {acknowledged} acknowledged batches are there"));
        }
        self.last.pending.truncate(count);
        if acknowledged < count {
            self.acknowledge(seq, false);
        }
        self.sync();
        compare(db, &self.current)
    }

    fn recovered_with(&mut self, db: &Db, least: usize) -> Result<(), String> {
        self.settle_keyspace(db)?;
        self.settle_ingestion(db);
        let seq = db.snapshot().seq();
        let k = self.last.count_at(seq);
        if k < least {
            return Err(format!(
                "{k} of {} batches came back (sequence number {seq}), {least} were acknowledged \
                 as durable{}",
                self.last.pending.len(),
                self.other_explanation(db),
            ));
        }
        let state = self.replayed(k);
        compare(db, &state).map_err(|e| {
            format!(
                "with {k} of {} batches recovered: {e}{}",
                self.last.pending.len(),
                self.other_explanation(db)
            )
        })?;
        self.go_on(state, seq);
        Ok(())
    }

    /// Starts a new stretch: the contents that an open has shown are durable (R3).
    fn go_on(&mut self, state: Model, seq: u64) {
        self.current = state.clone();
        let next =
            Stretch { base: state, base_seq: seq, pending: Vec::new(), is_number_lost: false };
        let last = std::mem::replace(&mut self.last, next);
        if let Some(past) = &mut self.past {
            past.push(last);
        }
        self.synced = 0;
    }

    /// Decides whether a keyspace operation that was under way has happened.
    fn settle_keyspace(&mut self, db: &Db) -> Result<(), String> {
        let names = sorted_keyspaces(db);
        if let Some(op) = self.in_doubt.clone() {
            if names != self.current.keyspaces() {
                self.end_keyspace();
            }
            self.in_doubt = None;
            if names != self.current.keyspaces() {
                return Err(format!("{op:?} was under way, and the keyspaces are {names:?}"));
            }
        }
        let want = self.current.keyspaces();
        if names == want { Ok(()) } else { Err(format!("keyspaces {names:?}, not {want:?}")) }
    }

    /// Decides whether an ingestion that was under way has happened, or never will. The contents
    /// tell, also for a batch after a failed ingestion: the number that is found may be the
    /// ingestion's.
    fn settle_ingestion(&mut self, db: &Db) {
        let Some(entry) = self.last.pending.last() else { return };
        let is_doubtful =
            entry.seq_end.is_none() && (entry.is_ingestion || self.last.is_number_lost);
        if is_doubtful && compare(db, &self.replayed(self.last.pending.len())).is_err() {
            self.last.is_number_lost = true;
            self.last.pending.pop();
        }
    }

    /// Returns the state after the last stretch's first `k` batches, at the present time.
    fn replayed(&self, k: usize) -> Model {
        self.last.replayed(k, self.current.now_ms())
    }

    /// Reports whether any prefix explains the contents.
    fn other_explanation(&self, db: &Db) -> String {
        let fits = |k: &usize| compare(db, &self.replayed(*k)).is_ok();
        match (0..=self.last.pending.len()).rev().find(fits) {
            Some(k) => format!("; the contents are those after {k} batches"),
            None => "; no prefix of the history explains the contents".to_owned(),
        }
    }
}

fn sorted_keyspaces(db: &Db) -> Vec<String> {
    let mut names = db.keyspaces();
    names.sort();
    names
}

/// Checks that every way to read a database shows the model's contents.
///
/// # Errors
/// The first difference, or read error, in words.
pub fn compare(db: &Db, model: &Model) -> Result<(), String> {
    for (name, want) in model.dump() {
        let keyspace = db.open_keyspace(&name).map_err(place("open keyspace"))?;
        let keyspace = keyspace.ok_or_else(|| format!("keyspace {name} is missing"))?;
        let read = |item: windrow_base::Result<(windrow::Slice, windrow::Slice)>| {
            item.map(|(key, value)| (key.to_vec(), value.to_vec()))
        };
        let forward: Result<Vec<Pair>, _> = keyspace.iter().map(read).collect();
        differ(&name, "forward", &forward.map_err(place("forward scan"))?, &want)?;
        let backward: Result<Vec<Pair>, _> = keyspace.iter().rev().map(read).collect();
        let mut backward = backward.map_err(place("backward scan"))?;
        backward.reverse();
        differ(&name, "backward", &backward, &want)?;
        for key in all_keys() {
            let got = keyspace.get(key).map_err(place("get"))?.map(|v| v.to_vec());
            let want = want.iter().find(|(k, _)| k == key).map(|(_, v)| v);
            if got.as_ref() != want {
                return Err(format!(
                    "get @{name} {}: {}, not {}",
                    crate::text::token(key),
                    got.map_or("nothing".to_owned(), |v| crate::text::token(&v)),
                    want.map_or("nothing".to_owned(), |v| crate::text::token(v)),
                ));
            }
        }
        compare_spans(&keyspace, &name, model)?;
    }
    Ok(())
}

/// Spans of a keyspace that are read with bounds, different ones at each comparison.
const SPANS: usize = 3;

fn compare_spans(keyspace: &Keyspace, name: &str, model: &Model) -> Result<(), String> {
    let mut rng = Rng::new(model.seq() ^ name.len() as u64);
    for _ in 0..SPANS {
        let mut bound = || (rng.below(4) > 0).then(|| random_key(&mut rng));
        let (from, to) = (bound(), bound());
        let (low, high) = (from.clone(), to.clone());
        let bounds = (
            low.map_or(Bound::Unbounded, Bound::Included),
            high.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let read = |item: windrow_base::Result<(windrow::Slice, windrow::Slice)>| {
            item.map(|(key, value)| (key.to_vec(), value.to_vec()))
        };
        let want = model.span(name, from.as_deref(), to.as_deref());
        let forward: Result<Vec<Pair>, _> = keyspace.range(bounds.clone()).map(read).collect();
        let what = format!("within {bounds:?}");
        differ(name, &what, &forward.map_err(place("bounded scan"))?, &want)?;
        let backward: Result<Vec<Pair>, _> = keyspace.range(bounds).rev().map(read).collect();
        let mut backward = backward.map_err(place("bounded scan back"))?;
        backward.reverse();
        differ(name, &format!("back {what}"), &backward, &want)?;
    }
    Ok(())
}

fn place(what: &str) -> impl Fn(windrow_base::Error) -> String {
    move |error| format!("{what}: {error}")
}

fn differ(name: &str, way: &str, got: &[Pair], want: &[Pair]) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    let text = |pair: Option<&Pair>| {
        pair.map_or("the end".to_owned(), |(key, value)| {
            format!("{} = {}", crate::text::token(key), crate::text::token(value))
        })
    };
    let at = got.iter().zip(want).take_while(|(g, w)| g == w).count();
    Err(format!(
        "@{name} read {way}: entry {at} is {}, not {} ({} entries, not {})",
        text(got.get(at)),
        text(want.get(at)),
        got.len(),
        want.len(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;
    use windrow::Options;
    use windrow_env::testing::env;

    /// A new database to which these keys were put, one after the other.
    fn holding(keys: &[&str]) -> Db {
        let mut options = Options::default();
        options.components.env = Some(env(1).0);
        let db = Db::open_with("/db", options).unwrap();
        for key in keys {
            db.put(key, "value").unwrap();
        }
        db
    }

    /// Records puts of these keys, each acknowledged and synced.
    fn issued(oracle: &mut Oracle, keys: &[&str]) {
        for key in keys {
            let change = Change::Put { key: key.as_bytes().to_vec(), value: b"value".to_vec() };
            oracle.issue(&[Write { keyspace: "default".to_owned(), change }], false);
            let seq = oracle.last.base_seq + oracle.last.pending.len() as u64;
            oracle.acknowledge(seq, true);
        }
    }

    #[test]
    fn any_prefix_will_do_and_nothing_else() {
        let mut oracle = Oracle::new(script::model());
        issued(&mut oracle, &["a", "b", "c"]);
        assert!(oracle.clone().recovered(&holding(&["a"]), false).is_err(), "two are lost");
        assert!(oracle.clone().recovered_any(&holding(&["a", "c"])).is_err(), "a hole");
        assert!(oracle.clone().recovered_any(&holding(&["a", "b", "d"])).is_err(), "invented");
        oracle.recovered_any(&holding(&["a"])).unwrap();
        assert_eq!(oracle.current().dump()[0].1.len(), 1);
    }

    #[test]
    fn what_went_before_an_open_will_do_where_it_is_kept() {
        for keeps in [false, true] {
            let mut oracle = Oracle::new(script::model());
            if keeps {
                oracle.keep_past();
            }
            issued(&mut oracle, &["a", "b"]);
            oracle.recovered(&holding(&["a", "b"]), false).unwrap();
            issued(&mut oracle, &["c"]);
            assert_eq!(oracle.clone().recovered_any(&holding(&["a"])).is_ok(), keeps);
            assert!(oracle.clone().recovered_any(&holding(&["b"])).is_err(), "a hole");
            oracle.recovered_any(&holding(&["a", "b"])).unwrap();
        }
    }
}
