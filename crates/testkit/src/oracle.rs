//! What a database may hold after a crash: a prefix of the history of its
//! batches, as long as what was acknowledged as durable, at least.
//!
//! Owns: the history, which prefix came back, and the comparison of everything
//! that can be read with the replay of that prefix. Keyspaces are made and
//! dropped at once, apart from the history (a manifest edit is durable when it
//! returns); one that was under way at the crash may be there or not.
//! Never does: crash anything (`crash.rs` does).

use crate::compose::all_keys;
use crate::model::Model;
use crate::op::{Answer, Change, Op, Pair, Subject, Write};
use windrow::Db;

/// A batch that was issued since the last recovery.
#[derive(Clone, Debug)]
struct Entry {
    writes: Vec<(u64, Change)>,
    now_ms: u64,
    /// The database's newest sequence number after it; `None`: it was never acknowledged.
    seq_end: Option<u64>,
}

/// The history of a database, and what of it must still be there.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The replay of what is known to be durable.
    durable: Model,
    durable_seq: u64,
    /// The replay of everything issued and acknowledged.
    current: Model,
    /// Batches after `durable`, in order.
    pending: Vec<Entry>,
    /// So many of `pending` must survive a power loss.
    synced: usize,
    /// A keyspace operation that has not returned.
    in_doubt: Option<Op>,
}

impl Oracle {
    /// The history of an empty database.
    pub fn new(model: Model) -> Oracle {
        Oracle {
            durable: model.clone(),
            durable_seq: 0,
            current: model,
            pending: Vec::new(),
            synced: 0,
            in_doubt: None,
        }
    }

    /// The state that reads must show now.
    pub fn current(&self) -> &Model {
        &self.current
    }

    /// What reads show where a batch that failed half-way is visible.
    pub fn with_doubt(&self) -> Model {
        let mut state = self.current.clone();
        for entry in self.pending.iter().filter(|entry| entry.seq_end.is_none()) {
            state.replay(&entry.writes, entry.now_ms);
        }
        state
    }

    /// Answers an operation that changes no history.
    pub fn answer(&mut self, op: &Op) -> Answer {
        self.current.apply(op)
    }

    /// A batch is about to be issued.
    pub fn issue(&mut self, writes: &[Write]) {
        let resolved = self.current.resolve(writes).unwrap_or_default();
        let now_ms = self.current.now_ms();
        self.pending.push(Entry { writes: resolved, now_ms, seq_end: None });
    }

    /// The batch issued last was acknowledged, the database now being at `seq`.
    pub fn acknowledge(&mut self, seq: u64, synced: bool) {
        if let Some(entry) = self.pending.last_mut() {
            entry.seq_end = Some(seq);
            self.current.replay(&entry.writes, entry.now_ms);
        }
        if synced {
            self.sync();
        }
    }

    /// The batch issued last was refused before anything was written.
    pub fn withdraw(&mut self) {
        self.pending.pop();
    }

    /// Everything acknowledged is durable.
    pub fn sync(&mut self) {
        self.synced = self.acknowledged();
    }

    fn acknowledged(&self) -> usize {
        self.pending.iter().filter(|entry| entry.seq_end.is_some()).count()
    }

    /// A keyspace is about to be made or dropped.
    pub fn begin_keyspace(&mut self, op: &Op) {
        self.in_doubt = Some(op.clone());
    }

    /// It was refused before anything was written.
    pub fn withdraw_keyspace(&mut self) {
        self.in_doubt = None;
    }

    /// Whether a batch or keyspace operation failed half-way: it may be there
    /// after the next open, or not.
    pub fn has_doubt(&self) -> bool {
        self.in_doubt.is_some() || self.pending.iter().any(|entry| entry.seq_end.is_none())
    }

    /// It returned: it is durable.
    pub fn end_keyspace(&mut self) -> Answer {
        match self.in_doubt.take() {
            Some(op) => {
                self.durable.apply(&op);
                self.current.apply(&op)
            }
            None => Answer::Missing,
        }
    }

    /// Judges a database that was just opened after a crash, and goes on from
    /// what it holds. `kept`: the page cache survived (the process died, not
    /// the machine), so everything acknowledged must be there.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn recovered(&mut self, db: &Db, kept: bool) -> Result<(), String> {
        self.settle_keyspace(db)?;
        let seq = db.snapshot().seq();
        let least = if kept { self.acknowledged() } else { self.synced };
        let before = |entry: &&Entry| entry.seq_end.is_some_and(|end| end <= seq);
        let mut k = self.pending.iter().take_while(before).count();
        let known = self.pending[..k].iter().rev().find_map(|e| e.seq_end);
        // The one batch that was never acknowledged: it is there if the
        // sequence number says so.
        if k + 1 == self.pending.len()
            && self.pending[k].seq_end.is_none()
            && seq > known.unwrap_or(self.durable_seq)
        {
            k += 1;
        }
        if k < least {
            return Err(format!(
                "{k} of {} batches came back (sequence number {seq}), {least} were acknowledged \
                 as durable{}",
                self.pending.len(),
                self.other_explanation(db),
            ));
        }
        let state = self.replayed(k);
        compare(db, &state).map_err(|e| {
            format!(
                "with {k} of {} batches recovered: {e}{}",
                self.pending.len(),
                self.other_explanation(db)
            )
        })?;
        // What an open has shown is durable (R3).
        self.durable = state.clone();
        self.current = state;
        self.durable_seq = seq;
        self.pending.clear();
        self.synced = 0;
        Ok(())
    }

    /// A keyspace operation that was under way has happened or has not.
    fn settle_keyspace(&mut self, db: &Db) -> Result<(), String> {
        let mut names = db.keyspaces();
        names.sort();
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

    /// The state after the first `k` pending batches, at the present time.
    fn replayed(&self, k: usize) -> Model {
        let mut state = self.durable.clone();
        for entry in &self.pending[..k] {
            state.replay(&entry.writes, entry.now_ms);
        }
        state.set_now_ms(self.current.now_ms());
        state.apply(&Op::Kill);
        state
    }

    /// For a report: whether any prefix explains what is there.
    fn other_explanation(&self, db: &Db) -> String {
        let fits = |k: &usize| compare(db, &self.replayed(*k)).is_ok();
        match (0..=self.pending.len()).rev().find(fits) {
            Some(k) => format!("; the contents are those after {k} batches"),
            None => "; no prefix of the history explains the contents".to_owned(),
        }
    }
}

/// Checks that every way to read a database shows what the model holds.
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
