//! The model: the right answers of a database, written so plainly that it is right by
//! reading. Every version of every key is kept in a `BTreeMap`; nothing is ever
//! compacted, cached or written to a file.
//!
//! Owns: the meaning of operations, snapshots, cursors, expiry and merges.
//! Never does: anything about durability (`oracle.rs` replays histories on models).

use crate::op::{Answer, Change, DEFAULT, Direction, Op, Pair, Span, Step, Subject, Write};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use windrow_base::ErrorKind;
use windrow_base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Id of the comparator that the testkit registers: bytewise, backwards.
pub const REVERSE_ID: &str = "testkit.reverse";

/// Id of the other comparator that the testkit registers: bytewise, but for
/// the case of ASCII letters. `a` and `A` are one key, spelt as the newest
/// version that is visible spells it.
pub const CASE_BLIND_ID: &str = "testkit.case_blind";

/// A built-in merge operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Append,
    Max,
}

impl Operator {
    fn parse(name: &str) -> Option<Operator> {
        Some(match name {
            "add" => Operator::Add,
            "append" => Operator::Append,
            "max" => Operator::Max,
            _ => return None,
        })
    }

    /// Whether these bytes are an operand.
    fn accepts(self, operand: &[u8]) -> bool {
        !matches!(self, Operator::Add) || operand.len() == size_of::<i64>()
    }

    /// Applies `operands` (oldest first) to `base`; `None` if they do not fit.
    fn apply(self, base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Operator::Add => {
                let counter = |b: &[u8]| Some(i64::from_le_bytes(b.try_into().ok()?));
                let mut sum = base.map_or(Some(0), counter)?;
                for operand in operands {
                    sum = sum.wrapping_add(counter(operand)?);
                }
                Some(sum.to_le_bytes().to_vec())
            }
            Operator::Append => {
                let mut out = base.unwrap_or_default().to_vec();
                operands.iter().for_each(|o| out.extend_from_slice(o));
                Some(out)
            }
            Operator::Max => base.iter().chain(operands).max().map(|b| b.to_vec()),
        }
    }
}

/// The order of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Bytewise,
    Reverse,
    CaseBlind,
}

impl Order {
    /// Returns the order of a comparator's id; `None`: there is no such comparator.
    fn parse(comparator: Option<&str>) -> Option<Order> {
        match comparator {
            None => Some(Order::Bytewise),
            Some(REVERSE_ID) => Some(Order::Reverse),
            Some(CASE_BLIND_ID) => Some(Order::CaseBlind),
            Some(_) => None,
        }
    }
}

/// A key under its keyspace's order.
#[derive(Clone, Debug)]
struct Ordered {
    order: Order,
    key: Vec<u8>,
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> Ordering {
        match self.order {
            Order::Bytewise => self.key.cmp(&other.key),
            Order::Reverse => other.key.cmp(&self.key),
            Order::CaseBlind => self.key.to_ascii_lowercase().cmp(&other.key.to_ascii_lowercase()),
        }
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One entry of a key.
#[derive(Clone, Debug)]
struct Version {
    seq: u64,
    /// The key as the write spelt it.
    spelling: Vec<u8>,
    entry: Entry,
}

#[derive(Clone, Debug)]
enum Entry {
    /// The key is absent, by a delete or range delete.
    Absent,
    /// The key is absent, by a single delete.
    SingleAbsent,
    Value {
        value: Vec<u8>,
        expiry_ms: Option<u64>,
    },
    Operand {
        operand: Vec<u8>,
        expiry_ms: Option<u64>,
    },
}

/// A state: every version up to a sequence number, with expiry judged at a time.
#[derive(Clone, Copy, Debug)]
struct Moment {
    seq: u64,
    now_ms: u64,
}

#[derive(Clone, Debug)]
struct Space {
    /// Tells a keyspace from an earlier one of the same name.
    incarnation: u64,
    operator: Option<Operator>,
    order: Order,
    /// Time to live of the values that are put, in ms.
    ttl_ms: Option<u64>,
    dropped: bool,
    /// Once it is dropped: the snapshots from before, which still show it.
    seen_by: BTreeSet<String>,
    keys: BTreeMap<Ordered, Vec<Version>>,
}

/// A key that is present, and its value or the reason why it has none.
type Visible = (Vec<u8>, Result<Vec<u8>, ErrorKind>);

impl Space {
    fn new(incarnation: u64, operator: Option<Operator>, order: Order) -> Space {
        let (keys, seen_by) = (BTreeMap::new(), BTreeSet::new());
        Space { incarnation, operator, order, ttl_ms: None, dropped: false, seen_by, keys }
    }

    fn ordered(&self, key: &[u8]) -> Ordered {
        Ordered { order: self.order, key: key.to_vec() }
    }

    fn push(&mut self, key: &[u8], seq: u64, entry: Entry) {
        let versions = self.keys.entry(self.ordered(key)).or_default();
        versions.push(Version { seq, spelling: key.to_vec(), entry });
    }

    fn change(&mut self, change: &Change, seq: u64, now_ms: u64) {
        match change {
            Change::Put { key, value } => {
                let expiry_ms = self.ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms));
                self.push(key, seq, Entry::Value { value: value.clone(), expiry_ms });
            }
            Change::PutTtl { key, value, ttl_ms } => {
                let expiry_ms = Some(now_ms.saturating_add(*ttl_ms));
                self.push(key, seq, Entry::Value { value: value.clone(), expiry_ms });
            }
            Change::Delete { key } => self.push(key, seq, Entry::Absent),
            Change::SingleDelete { key } => self.push(key, seq, Entry::SingleAbsent),
            Change::Merge { key, operand } => {
                let operand = operand.clone();
                self.push(key, seq, Entry::Operand { operand, expiry_ms: None });
            }
            Change::MergeTtl { key, operand, ttl_ms } => {
                let expiry_ms = Some(now_ms.saturating_add(*ttl_ms));
                self.push(key, seq, Entry::Operand { operand: operand.clone(), expiry_ms });
            }
            Change::DeleteRange { from, to } => {
                let (from, to) = (self.ordered(from), self.ordered(to));
                if from < to {
                    for (key, versions) in self.keys.range_mut(from..to) {
                        let spelling = key.key.clone();
                        versions.push(Version { seq, spelling, entry: Entry::Absent });
                    }
                }
            }
        }
    }

    /// Returns the value of a key's versions at a moment.
    fn value(&self, versions: &[Version], at: Moment) -> Result<Option<Vec<u8>>, ErrorKind> {
        let mut operands: Vec<&[u8]> = Vec::new();
        let mut base = None;
        let is_there = |expiry_ms: &Option<u64>| expiry_ms.is_none_or(|expiry| at.now_ms < expiry);
        for version in versions.iter().rev().filter(|v| v.seq <= at.seq) {
            match &version.entry {
                Entry::Operand { operand, expiry_ms } if is_there(expiry_ms) => {
                    operands.push(operand);
                    continue;
                }
                Entry::Value { value, expiry_ms } if is_there(expiry_ms) => {
                    base = Some(value.as_slice());
                }
                // An expired version counts as a delete.
                Entry::Operand { .. } | Entry::Value { .. } => {}
                Entry::Absent | Entry::SingleAbsent => {}
            }
            break;
        }
        if operands.is_empty() {
            return Ok(base.map(<[u8]>::to_vec));
        }
        operands.reverse();
        let merged = self.operator.and_then(|operator| operator.apply(base, &operands));
        merged.map(Some).ok_or(ErrorKind::MergeRefused)
    }

    /// Returns a key's newest spelling and its value at a moment; `None`: it is absent.
    fn entry(&self, versions: &[Version], at: Moment) -> Option<Visible> {
        let newest = versions.iter().rev().find(|v| v.seq <= at.seq)?;
        let value = self.value(versions, at).transpose()?;
        Some((newest.spelling.clone(), value))
    }

    fn get(&self, key: &[u8], at: Moment) -> Result<Option<Vec<u8>>, ErrorKind> {
        self.keys.get(&self.ordered(key)).map_or(Ok(None), |versions| self.value(versions, at))
    }

    fn bounds(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> (Bound<Ordered>, Bound<Ordered>) {
        let lower = from.map_or(Bound::Unbounded, |k| Bound::Included(self.ordered(k)));
        let upper = to.map_or(Bound::Unbounded, |k| Bound::Excluded(self.ordered(k)));
        (lower, upper)
    }

    /// Returns the visible entries of a span, in order.
    fn visible(&self, from: Option<&[u8]>, to: Option<&[u8]>, at: Moment) -> Vec<Visible> {
        if let (Some(from), Some(to)) = (from, to)
            && self.ordered(from) >= self.ordered(to)
        {
            return Vec::new();
        }
        let versions = self.keys.range(self.bounds(from, to)).map(|(_, versions)| versions);
        versions.filter_map(|versions| self.entry(versions, at)).collect()
    }
}

/// The position of a model cursor, and the versions that it may see.
#[derive(Clone, Debug)]
struct Cursor {
    space: (String, u64),
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    moment: Moment,
    /// It reads a snapshot: refreshing changes nothing.
    pinned: bool,
    on: Option<Vec<u8>>,
}

/// A database in memory that keeps every version for ever.
#[derive(Clone, Debug)]
pub struct Model {
    seq: u64,
    now_ms: u64,
    incarnations: u64,
    batch_bytes_max: u64,
    spaces: BTreeMap<String, Space>,
    /// Dropped keyspaces whose snapshots or cursors may still be around.
    dropped: Vec<Space>,
    snapshots: BTreeMap<String, Moment>,
    cursors: BTreeMap<String, Cursor>,
}

impl Default for Model {
    fn default() -> Model {
        Model {
            seq: 0,
            now_ms: 0,
            incarnations: 1,
            batch_bytes_max: u64::MAX,
            spaces: BTreeMap::from([(DEFAULT.to_owned(), Space::new(0, None, Order::Bytewise))]),
            dropped: Vec::new(),
            snapshots: BTreeMap::new(),
            cursors: BTreeMap::new(),
        }
    }
}

impl Model {
    /// Creates an empty database whose batches may take at most `batch_bytes_max` bytes
    /// (keys and values).
    pub fn new(batch_bytes_max: u64) -> Model {
        Model { batch_bytes_max, ..Model::default() }
    }

    /// Returns the number of operations written so far: the newest sequence number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the names of the keyspaces, sorted.
    pub fn keyspaces(&self) -> Vec<String> {
        self.spaces.iter().filter(|(_, s)| !s.dropped).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the name of the keyspace's merge operator, if it has one.
    pub fn operator(&self, keyspace: &str) -> Option<&'static str> {
        self.spaces.get(keyspace)?.operator.map(|operator| match operator {
            Operator::Add => "add",
            Operator::Append => "append",
            Operator::Max => "max",
        })
    }

    /// Whether the keyspace has the reverse order.
    pub fn is_reverse(&self, keyspace: &str) -> bool {
        self.spaces.get(keyspace).is_some_and(|space| space.order == Order::Reverse)
    }

    /// Whether the contract of single delete allows one for this key: put exactly once
    /// since it was last removed, never merged, and removed by single deletes only.
    pub fn may_single_delete(&self, keyspace: &str, key: &[u8]) -> bool {
        let Some(space) = self.spaces.get(keyspace) else { return false };
        let Some(versions) = space.keys.get(&space.ordered(key)) else { return false };
        let put = |v: &Version| matches!(v.entry, Entry::Value { expiry_ms: None, .. });
        let removed = |v: &Version| matches!(v.entry, Entry::SingleAbsent);
        // Puts and single deletes in turn, a put last.
        versions.iter().rev().enumerate().all(|(i, v)| if i % 2 == 0 { put(v) } else { removed(v) })
    }

    /// Whether a snapshot of this name is open.
    pub fn has_snapshot(&self, name: &str) -> bool {
        self.snapshots.contains_key(name)
    }

    /// Whether a cursor of this name is open.
    pub fn has_cursor(&self, name: &str) -> bool {
        self.cursors.contains_key(name)
    }

    /// Returns the model's clock: milliseconds since it was made.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Brings keys into the order of a keyspace, each once.
    pub fn sort_keys(&self, keyspace: &str, keys: &mut Vec<Vec<u8>>) {
        if let Some(space) = self.spaces.get(keyspace) {
            keys.sort_by_key(|key| space.ordered(key));
            keys.dedup_by_key(|key| space.ordered(key));
        }
    }

    /// Resolves the keyspace names of writes, for [`Model::replay`]; `None` if a
    /// keyspace is absent.
    pub fn resolve(&self, writes: &[Write]) -> Option<Vec<(u64, Change)>> {
        let place = |write: &Write| {
            let space = self.spaces.get(&write.keyspace).filter(|space| !space.dropped)?;
            Some((space.incarnation, write.change.clone()))
        };
        writes.iter().map(place).collect()
    }

    /// Applies writes made at `now_ms` to keyspaces that may have been dropped since.
    pub fn replay(&mut self, writes: &[(u64, Change)], now_ms: u64) {
        for (incarnation, change) in writes {
            self.seq += 1;
            let seq = self.seq;
            let live = self.spaces.values_mut().chain(&mut self.dropped);
            for space in live.filter(|space| space.incarnation == *incarnation) {
                space.change(change, seq, now_ms);
            }
        }
    }

    /// Sets the clock.
    pub fn set_now_ms(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Returns every visible entry, per keyspace.
    pub fn dump(&self) -> Vec<(String, Vec<Pair>)> {
        let now = self.now();
        let visible = |space: &Space| -> Vec<Pair> {
            space.visible(None, None, now).into_iter().filter_map(pair).collect()
        };
        let live = self.spaces.iter().filter(|(_, space)| !space.dropped);
        live.map(|(name, space)| (name.clone(), visible(space))).collect()
    }

    /// Returns the visible entries of a part of a keyspace; none if the keyspace is
    /// absent.
    pub fn span(&self, keyspace: &str, from: Option<&[u8]>, to: Option<&[u8]>) -> Vec<Pair> {
        let space = self.spaces.get(keyspace).filter(|space| !space.dropped);
        let visible = space.map(|space| space.visible(from, to, self.now())).unwrap_or_default();
        visible.into_iter().filter_map(pair).collect()
    }

    fn now(&self) -> Moment {
        Moment { seq: self.seq, now_ms: self.now_ms }
    }

    /// Returns the keyspace and the moment that a read is for, or the answer that says
    /// why not.
    fn place(&self, keyspace: &str, at: Option<&str>) -> Result<(&Space, Moment), Answer> {
        let space = self.spaces.get(keyspace).ok_or(Answer::Missing)?;
        let moment = match at {
            None => self.now(),
            Some(name) => *self.snapshots.get(name).ok_or(Answer::Missing)?,
        };
        if space.dropped && !at.is_some_and(|name| space.seen_by.contains(name)) {
            return Err(Answer::Error(ErrorKind::Closed));
        }
        Ok((space, moment))
    }

    fn write(&mut self, writes: &[Write]) -> Answer {
        let mut bytes = 0;
        for write in writes {
            let Some(space) = self.spaces.get(&write.keyspace) else { return Answer::Missing };
            let (key, value) = extent(&write.change);
            bytes += (key + value) as u64;
            let merge_refused = match (&write.change, space.operator) {
                (Change::Merge { .. } | Change::MergeTtl { .. }, None) => true,
                (
                    Change::Merge { operand, .. } | Change::MergeTtl { operand, .. },
                    Some(operator),
                ) => !space.dropped && !operator.accepts(operand),
                _ => false,
            };
            if key > KEY_BYTES_MAX || value > VALUE_BYTES_MAX || merge_refused {
                return Answer::Error(ErrorKind::InvalidArgument);
            }
        }
        if bytes > self.batch_bytes_max {
            return Answer::Error(ErrorKind::InvalidArgument);
        }
        if writes.iter().any(|w| self.spaces[&w.keyspace].dropped) {
            return Answer::Error(ErrorKind::Closed);
        }
        for write in writes {
            self.seq += 1;
            let (seq, now_ms) = (self.seq, self.now_ms);
            if let Some(space) = self.spaces.get_mut(&write.keyspace) {
                space.change(&write.change, seq, now_ms);
            }
        }
        Answer::Done
    }

    fn ingest(&mut self, op: &Op, keyspace: &str, pairs: &[Pair]) -> Answer {
        let Some(space) = self.spaces.get(keyspace) else { return Answer::Missing };
        if space.dropped {
            return Answer::Error(ErrorKind::Closed);
        }
        let is_ascending =
            pairs.windows(2).all(|two| space.ordered(&two[0].0) < space.ordered(&two[1].0));
        let is_short =
            |pair: &Pair| pair.0.len() <= KEY_BYTES_MAX && pair.1.len() <= VALUE_BYTES_MAX;
        if !is_ascending || !pairs.iter().all(is_short) {
            return Answer::Error(ErrorKind::InvalidArgument);
        }
        let (seq, now_ms) = (self.seq + 1, self.now_ms);
        let Some((writes, _)) = op.writes() else { return Answer::Done };
        self.seq = seq;
        if let Some(space) = self.spaces.get_mut(keyspace) {
            writes.iter().for_each(|write| space.change(&write.change, seq, now_ms));
        }
        Answer::Done
    }

    fn scan(&self, span: &Span, direction: Direction) -> Answer {
        let (space, moment) = match self.place(&span.keyspace, span.at.as_deref()) {
            Ok(place) => place,
            Err(answer) => return answer,
        };
        take(space.visible(span.from.as_deref(), span.to.as_deref(), moment), direction)
    }

    fn prefix(&self, place: (&str, Option<&str>), prefix: &[u8], direction: Direction) -> Answer {
        let (space, moment) = match self.place(place.0, place.1) {
            Ok(place) => place,
            Err(answer) => return answer,
        };
        let entries = space.keys.values().filter_map(|versions| space.entry(versions, moment));
        take(entries.filter(|(key, _)| key.starts_with(prefix)).collect(), direction)
    }

    fn open_cursor(&mut self, name: &str, span: &Span) -> Answer {
        match self.place(&span.keyspace, span.at.as_deref()) {
            Err(answer) => answer,
            Ok((space, moment)) => {
                let space = (span.keyspace.clone(), space.incarnation);
                let (from, to) = (span.from.clone(), span.to.clone());
                let pinned = span.at.is_some();
                let cursor = Cursor { space, from, to, moment, pinned, on: None };
                self.cursors.insert(name.to_owned(), cursor);
                Answer::Done
            }
        }
    }

    /// Returns the keyspace a cursor was made on, dropped or not.
    fn cursor_space(&self, cursor: &Cursor) -> Option<&Space> {
        let live = self.spaces.get(&cursor.space.0).into_iter();
        live.chain(&self.dropped).find(|space| space.incarnation == cursor.space.1)
    }

    fn walk(&mut self, name: &str, steps: &[Step]) -> Answer {
        let Some(mut cursor) = self.cursors.remove(name) else { return Answer::Missing };
        let mut entries = Vec::new();
        if let Some(space) = self.cursor_space(&cursor) {
            let all = space.visible(cursor.from.as_deref(), cursor.to.as_deref(), cursor.moment);
            for step in steps {
                let entry = step_over(space, &all, cursor.on.as_deref(), step);
                cursor.on = entry.map(|(key, _)| key.clone());
                entries
                    .push(entry.map(|(key, value)| Ok((key.clone(), value.clone()?))).transpose());
            }
        }
        self.cursors.insert(name.to_owned(), cursor);
        Answer::Steps(entries)
    }

    /// Moves a cursor to the newest state, and there to the first key at or after the
    /// old one.
    fn refresh(&mut self, name: &str) -> Answer {
        let now = self.now();
        let Some(cursor) = self.cursors.get(name).cloned() else { return Answer::Missing };
        // A snapshot that it was made on is from before the drop.
        if !cursor.pinned && self.cursor_space(&cursor).is_some_and(|space| space.dropped) {
            // It keeps its position and its moment.
            return Answer::Steps(vec![Err(ErrorKind::Closed)]);
        }
        if let Some(cursor) = self.cursors.get_mut(name).filter(|cursor| !cursor.pinned) {
            cursor.moment = now;
        }
        match cursor.on {
            Some(key) => self.walk(name, &[Step::Seek(key)]),
            None => Answer::Steps(vec![Ok(None)]),
        }
    }

    fn create(&mut self, name: &str, operator: Option<&str>, comparator: Option<&str>) -> Answer {
        let parsed = operator.map(Operator::parse);
        let Some(order) = Order::parse(comparator) else {
            return Answer::Error(ErrorKind::InvalidArgument);
        };
        if parsed == Some(None) || name.is_empty() {
            return Answer::Error(ErrorKind::InvalidArgument);
        }
        let parsed = parsed.flatten();
        if let Some(there) = self.spaces.get(name).filter(|space| !space.dropped) {
            let agrees = (parsed.is_none() || parsed == there.operator)
                && (comparator.is_none() || there.order == order);
            return if agrees { Answer::Done } else { Answer::Error(ErrorKind::InvalidArgument) };
        }
        let space = Space::new(self.incarnations, parsed, order);
        self.incarnations += 1;
        self.dropped.extend(self.spaces.insert(name.to_owned(), space));
        Answer::Done
    }

    fn configure(&mut self, name: &str, ttl_ms: Option<u64>) -> Answer {
        match self.spaces.get_mut(name).filter(|space| !space.dropped) {
            None => Answer::Missing,
            Some(_) if ttl_ms == Some(0) => Answer::Error(ErrorKind::InvalidArgument),
            Some(space) => {
                space.ttl_ms = ttl_ms;
                Answer::Done
            }
        }
    }

    fn drop_keyspace(&mut self, name: &str) -> Answer {
        if name == DEFAULT {
            return Answer::Error(ErrorKind::InvalidArgument);
        }
        match self.spaces.get_mut(name).filter(|space| !space.dropped) {
            None => Answer::Missing,
            Some(space) => {
                space.dropped = true;
                space.seen_by = self.snapshots.keys().cloned().collect();
                Answer::Done
            }
        }
    }

    /// Ends the process: its snapshots, cursors and dropped keyspaces are gone.
    fn restart(&mut self) -> Answer {
        self.snapshots.clear();
        self.cursors.clear();
        self.spaces.retain(|_, space| !space.dropped);
        self.dropped.clear();
        Answer::Done
    }

    fn get(&self, keyspace: &str, at: Option<&str>, key: &[u8]) -> Answer {
        match self.place(keyspace, at) {
            Ok((space, moment)) => space.get(key, moment).map_or_else(Answer::Error, Answer::Value),
            Err(answer) => answer,
        }
    }

    fn multi_get(&self, keyspace: &str, keys: &[Vec<u8>]) -> Answer {
        let place = match self.place(keyspace, None) {
            Err(Answer::Error(kind)) => return Answer::Values(vec![Err(kind); keys.len()]),
            Err(answer) => return answer,
            Ok(place) => place,
        };
        Answer::Values(keys.iter().map(|key| place.0.get(key, place.1)).collect())
    }

    /// Returns the answer of work that changes nothing a reader sees.
    fn work(&self, keyspace: &str) -> Answer {
        self.place(keyspace, None).map_or_else(|answer| answer, |_| Answer::Done)
    }
}

/// Returns the lengths of a change's longest key and value, in bytes.
fn extent(change: &Change) -> (usize, usize) {
    match change {
        Change::Put { key, value } | Change::PutTtl { key, value, .. } => (key.len(), value.len()),
        Change::Delete { key } | Change::SingleDelete { key } => (key.len(), 0),
        Change::Merge { key, operand } | Change::MergeTtl { key, operand, .. } => {
            (key.len(), operand.len())
        }
        Change::DeleteRange { from, to } => (from.len().max(to.len()), 0),
    }
}

fn pair((key, value): Visible) -> Option<Pair> {
    Some((key, value.ok()?))
}

/// Returns the entries in the order in which a scan meets them, and the first error.
fn take(mut entries: Vec<Visible>, direction: Direction) -> Answer {
    match direction {
        Direction::Forward => {}
        Direction::Backward => entries.reverse(),
        Direction::Zigzag => {
            let mut rest: std::collections::VecDeque<_> = entries.into();
            entries = Vec::new();
            while let Some(front) = rest.pop_front() {
                entries.push(front);
                entries.extend(rest.pop_back());
            }
        }
    }
    let refused = entries.iter().find_map(|(_, value)| value.as_ref().err().copied());
    Answer::Pairs(entries.into_iter().filter_map(pair).collect(), refused)
}

/// Returns the position of a cursor on `on` after a step.
fn step_over<'a>(
    space: &Space,
    all: &'a [Visible],
    on: Option<&[u8]>,
    step: &Step,
) -> Option<&'a Visible> {
    let first_from =
        |key: &[u8]| all.partition_point(|(at, _)| space.ordered(at) < space.ordered(key));
    let before = |index: usize| index.checked_sub(1).and_then(|i| all.get(i));
    match step {
        Step::First => all.first(),
        Step::Last => all.last(),
        Step::Seek(key) => all.get(first_from(key)),
        Step::SeekBefore(key) => before(first_from(key)),
        Step::Next => all.get(first_from(on?) + 1),
        Step::Prev => before(first_from(on?)),
    }
}

impl Subject for Model {
    fn apply(&mut self, op: &Op) -> Answer {
        match op {
            Op::Write { write, .. } => self.write(std::slice::from_ref(write)),
            Op::Batch { writes, .. } => self.write(writes),
            Op::Ingest { keyspace, pairs } => self.ingest(op, keyspace, pairs),
            Op::Get { keyspace, at, key } => self.get(keyspace, at.as_deref(), key),
            Op::MultiGet { keyspace, keys } => self.multi_get(keyspace, keys),
            Op::Scan { span, direction } => self.scan(span, *direction),
            Op::Prefix { keyspace, at, prefix, direction } => {
                self.prefix((keyspace, at.as_deref()), prefix, *direction)
            }
            Op::Dump | Op::Checkpoint => Answer::Dump(self.dump()),
            Op::OpenCursor { cursor, span } => self.open_cursor(cursor, span),
            Op::Walk { cursor, steps } => self.walk(cursor, steps),
            Op::Refresh { cursor } => self.refresh(cursor),
            Op::CloseCursor { cursor } => {
                self.cursors.remove(cursor).map_or(Answer::Missing, |_| Answer::Done)
            }
            Op::Snapshot { name } => {
                let now = self.now();
                for space in self.spaces.values_mut().chain(&mut self.dropped) {
                    space.seen_by.remove(name);
                }
                self.snapshots.insert(name.clone(), now);
                Answer::Done
            }
            Op::Release { name } => {
                self.snapshots.remove(name).map_or(Answer::Missing, |_| Answer::Done)
            }
            Op::Flush { keyspace: Some(name) } => self.work(name),
            Op::CompactRange { span } => self.work(&span.keyspace),
            Op::Flush { keyspace: None }
            | Op::Compact
            | Op::Wait
            | Op::Sync
            | Op::Verify
            | Op::Policy { .. } => Answer::Done,
            Op::Reopen | Op::Kill => self.restart(),
            Op::CreateKeyspace { name, operator, comparator } => {
                self.create(name, operator.as_deref(), comparator.as_deref())
            }
            Op::Configure { name, ttl_ms, .. } => self.configure(name, *ttl_ms),
            Op::DropKeyspace { name } => self.drop_keyspace(name),
            Op::Keyspaces => Answer::Names(self.keyspaces()),
            Op::Clock { forward_ms } => {
                self.now_ms += forward_ms;
                Answer::Done
            }
        }
    }
}
