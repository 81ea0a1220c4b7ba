//! Random operations, on more keys than a model could keep, with snapshots and cursors that stay
//! open over hundreds of them.
//!
//! Owns: keys, values, weights, and the few rules that give every operation a defined answer. Never
//! does: look at an answer.

use std::collections::BTreeSet;
use windrow_env::testing::Rng;
use windrow_testkit::model::REVERSE_ID;
use windrow_testkit::op::{Change, DEFAULT, Direction, Op, Span, Step, Write};

/// Keyspaces: name, merge operator, comparator.
const KEYSPACES: [(&str, Option<&str>, Option<&str>); 4] = [
    (DEFAULT, None, None),
    ("sum", Some("add"), None),
    ("text", Some("append"), None),
    ("back", None, Some(REVERSE_ID)),
];

/// The most keys of a keyspace.
const KEYS_MAX: u64 = 4_000;

/// The beginning of the keys that only `put` and `single_delete` touch, in turn.
const SINGLE: &[u8] = b"~single-";

const SINGLES: u64 = 64;

const CURSORS: u64 = 6;
const SNAPSHOTS: u64 = 3;

/// As in the testkit: so coarse that the delays that pacing adds to a simulated clock never decide
/// an expiry.
const CLOCK_STEP_MS: u64 = 3_600_000;

/// Whether a keyspace's order is backwards.
pub(super) fn is_reverse(keyspace: &str) -> bool {
    KEYSPACES.iter().any(|(name, _, comparator)| *name == keyspace && comparator.is_some())
}

/// The next action.
pub(super) enum Action {
    /// One operation, for every database.
    Same(Op),
    /// Another policy for each database.
    SwitchPolicies,
    /// Opens each database again under other options; cursors and snapshots are gone.
    Reopen {
        /// Whether it is closed before; otherwise the process dies.
        close: bool,
    },
}

/// Kinds of operations and how often each is drawn.
const WEIGHTS: &[(Kind, u64)] = &[
    (Kind::Put, 300),
    (Kind::PutTtl, 20),
    (Kind::Delete, 40),
    (Kind::Single, 20),
    (Kind::Merge, 50),
    (Kind::DeleteRange, 12),
    (Kind::Batch, 60),
    (Kind::Get, 150),
    (Kind::MultiGet, 20),
    (Kind::Scan, 60),
    (Kind::Prefix, 10),
    (Kind::OpenCursor, 12),
    (Kind::CloseCursor, 3),
    (Kind::Walk, 150),
    (Kind::Snapshot, 3),
    (Kind::Release, 1),
    (Kind::Flush, 10),
    (Kind::CompactRange, 2),
    (Kind::Compact, 1),
    (Kind::Wait, 4),
    (Kind::Sync, 4),
    (Kind::Clock, 4),
    (Kind::Switch, 6),
    (Kind::Reopen, 2),
    (Kind::Kill, 2),
    (Kind::Ingest, 4),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    PutTtl,
    Delete,
    Single,
    Merge,
    DeleteRange,
    Batch,
    Get,
    MultiGet,
    Scan,
    Prefix,
    OpenCursor,
    CloseCursor,
    Walk,
    Snapshot,
    Release,
    Flush,
    CompactRange,
    Compact,
    Wait,
    Sync,
    Clock,
    Switch,
    Reopen,
    Kill,
    Ingest,
}

/// The operations of one seed.
pub(super) struct Workload {
    rng: Rng,
    kinds: Vec<(Kind, u64)>,
    keys: u64,
    /// Longest value, in bytes: some seeds have small ones only.
    value_bytes_max: u64,
    written: u64,
    snapshots: BTreeSet<String>,
    cursors: BTreeSet<String>,
    /// Keys of [`SINGLE`] that are present.
    singles: BTreeSet<u64>,
}

impl Workload {
    pub(super) fn new(seed: u64) -> Workload {
        let mut rng = Rng::new(seed);
        // A swarm: each kind but the first is left out one time in four.
        let mut kinds: Vec<(Kind, u64)> = vec![WEIGHTS[0]];
        kinds.extend(WEIGHTS[1..].iter().filter(|_| !rng.chance(0.25)));
        let keys = 1 << (4 + rng.below(9));
        let value_bytes_max = 1 << (4 + rng.below(8));
        Workload {
            rng,
            kinds,
            keys: keys.min(KEYS_MAX),
            value_bytes_max,
            written: 0,
            snapshots: BTreeSet::new(),
            cursors: BTreeSet::new(),
            singles: BTreeSet::new(),
        }
    }

    /// Returns the operations that make the keyspaces.
    pub(super) fn setup() -> Vec<Op> {
        let create = |(name, operator, comparator): &(&str, Option<&str>, Option<&str>)| {
            Op::CreateKeyspace {
                name: (*name).to_owned(),
                operator: operator.map(str::to_owned),
                comparator: comparator.map(str::to_owned),
            }
        };
        KEYSPACES[1..].iter().map(create).collect()
    }

    /// Forgets snapshots and cursors, which ended with the process.
    pub(super) fn restarted(&mut self) {
        self.snapshots.clear();
        self.cursors.clear();
    }

    /// Draws the next operation.
    pub(super) fn draw(&mut self) -> Action {
        let total = self.kinds.iter().map(|(_, weight)| weight).sum();
        let mut number = self.rng.below(total);
        let mut chosen = Kind::Put;
        for (kind, weight) in &self.kinds {
            if number < *weight {
                chosen = *kind;
                break;
            }
            number -= weight;
        }
        match chosen {
            Kind::Switch => Action::SwitchPolicies,
            Kind::Reopen => Action::Reopen { close: true },
            Kind::Kill => Action::Reopen { close: false },
            kind => Action::Same(self.op(kind)),
        }
    }

    fn op(&mut self, kind: Kind) -> Op {
        match kind {
            Kind::Batch => {
                let kinds = [Kind::Put, Kind::Put, Kind::PutTtl, Kind::Delete, Kind::Merge];
                let count = self.rng.below(12);
                let writes = (0..count).map(|_| self.write_of(&kinds)).collect();
                Op::Batch { writes, sync: self.rng.chance(0.2) }
            }
            Kind::Ingest => {
                let keyspace = self.keyspace();
                let count = 1 + self.rng.below(40);
                let mut keys: Vec<Vec<u8>> = (0..count).map(|_| self.key()).collect();
                keys.sort();
                keys.dedup();
                if is_reverse(&keyspace) {
                    keys.reverse();
                }
                let pairs = keys.into_iter().map(|key| (key, self.value(&keyspace))).collect();
                Op::Ingest { keyspace, pairs }
            }
            Kind::Get => {
                let keyspace = self.keyspace();
                Op::Get { keyspace, at: self.at(), key: self.key() }
            }
            Kind::MultiGet => {
                let count = 1 + self.rng.below(20);
                let keys = (0..count).map(|_| self.key()).collect();
                Op::MultiGet { keyspace: self.keyspace(), keys }
            }
            Kind::Scan => Op::Scan { span: self.span(), direction: self.direction() },
            Kind::Prefix => {
                let (at, direction) = (self.at(), self.direction());
                let mut prefix = self.key();
                prefix.truncate(prefix.len() - 1);
                Op::Prefix { keyspace: DEFAULT.to_owned(), at, prefix, direction }
            }
            Kind::OpenCursor => {
                let cursor = format!("c{}", self.rng.below(CURSORS));
                self.cursors.insert(cursor.clone());
                Op::OpenCursor { cursor, span: self.span() }
            }
            Kind::CloseCursor => {
                let cursor = format!("c{}", self.rng.below(CURSORS));
                self.cursors.remove(&cursor);
                Op::CloseCursor { cursor }
            }
            Kind::Walk => self.walk(),
            Kind::Snapshot | Kind::Release => self.snapshot(kind),
            Kind::Flush if self.rng.chance(0.5) => Op::Flush { keyspace: None },
            Kind::Flush => Op::Flush { keyspace: Some(self.keyspace()) },
            Kind::CompactRange => Op::CompactRange { span: Span { at: None, ..self.span() } },
            Kind::Compact => Op::Compact,
            Kind::Wait => Op::Wait,
            Kind::Sync => Op::Sync,
            Kind::Clock => Op::Clock { forward_ms: self.rng.below(3) * CLOCK_STEP_MS },
            write => Op::Write { write: self.write(write), sync: self.rng.chance(0.1) },
        }
    }

    fn write_of(&mut self, kinds: &[Kind]) -> Write {
        let kind = kinds[self.rng.below(kinds.len() as u64) as usize];
        self.write(kind)
    }

    fn write(&mut self, kind: Kind) -> Write {
        let keyspace = if kind == Kind::Single { DEFAULT.to_owned() } else { self.keyspace() };
        let merges = keyspace == "sum" || keyspace == "text";
        let change = match kind {
            Kind::Single => self.single(),
            Kind::Delete => Change::Delete { key: self.key() },
            Kind::PutTtl => {
                let ttl_ms = self.rng.below(4) * CLOCK_STEP_MS + CLOCK_STEP_MS / 2;
                Change::PutTtl { key: self.key(), value: self.value(&keyspace), ttl_ms }
            }
            Kind::Merge if merges => {
                let (key, operand) = (self.key(), self.value(&keyspace));
                match self.rng.below(8) {
                    steps @ 0..4 => {
                        let ttl_ms = steps * CLOCK_STEP_MS + CLOCK_STEP_MS / 2;
                        Change::MergeTtl { key, operand, ttl_ms }
                    }
                    _ => Change::Merge { key, operand },
                }
            }
            Kind::DeleteRange => {
                let (from, to) = self.bounds(&keyspace);
                Change::DeleteRange { from, to }
            }
            _ => Change::Put { key: self.key(), value: self.value(&keyspace) },
        };
        Write { keyspace, change }
    }

    /// Changes a key that is put once and then deleted once, again and again.
    fn single(&mut self) -> Change {
        let number = self.rng.below(SINGLES);
        let key = [SINGLE, number.to_string().as_bytes()].concat();
        if self.singles.remove(&number) {
            return Change::SingleDelete { key };
        }
        self.singles.insert(number);
        Change::Put { key, value: self.value(DEFAULT) }
    }

    fn snapshot(&mut self, kind: Kind) -> Op {
        let name = format!("s{}", self.rng.below(SNAPSHOTS));
        if kind == Kind::Release && self.snapshots.remove(&name) {
            return Op::Release { name };
        }
        self.snapshots.insert(name.clone());
        Op::Snapshot { name }
    }

    /// Draws steps of a cursor, if there is one.
    fn walk(&mut self) -> Op {
        let index = self.rng.below(self.cursors.len().max(1) as u64) as usize;
        let Some(cursor) = self.cursors.iter().nth(index).cloned() else {
            return self.op(Kind::OpenCursor);
        };
        let mut steps = Vec::new();
        if self.rng.chance(0.3) {
            let key = self.key();
            let starts = [Step::First, Step::Last, Step::Seek(key.clone()), Step::SeekBefore(key)];
            steps.extend(starts.into_iter().nth(self.rng.below(4) as usize));
        }
        let turn = self.rng.chance(0.2);
        let forward = self.rng.chance(0.5);
        for i in 0..1 + self.rng.below(24) {
            let on = forward != (turn && i % 3 == 2);
            steps.push(if on { Step::Next } else { Step::Prev });
        }
        Op::Walk { cursor, steps }
    }

    fn keyspace(&mut self) -> String {
        let index = [0, 0, 0, 1, 2, 3][self.rng.below(6) as usize];
        KEYSPACES[index].0.to_owned()
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.keys);
        // Lengths differ, and one key in eight is the beginning of others.
        let tail =
            if number.is_multiple_of(8) { String::new() } else { format!("-{:02x}", number % 199) };
        format!("{:04}{tail}", number / 8).into_bytes()
    }

    /// Returns a value that no other write has, of the kind that the keyspace merges.
    fn value(&mut self, keyspace: &str) -> Vec<u8> {
        self.written += 1;
        if keyspace == "sum" {
            return (self.written as i64 * 7).to_le_bytes().to_vec();
        }
        let mut value = format!("v{}-", self.written).into_bytes();
        // Appended values grow, so each is short.
        let bytes_max = if keyspace == "text" { 16 } else { self.value_bytes_max };
        let bytes = self.rng.below(bytes_max) as usize;
        while value.len() < bytes {
            value.extend_from_slice(&self.rng.next_u64().to_le_bytes());
            let unit = value.clone();
            value.extend_from_slice(&unit);
        }
        value
    }

    /// Draws bounds in the right order, mostly near each other.
    fn bounds(&mut self, keyspace: &str) -> (Vec<u8>, Vec<u8>) {
        let (a, b) = (self.key(), self.key());
        let (from, mut to) = if a <= b { (a, b) } else { (b, a) };
        if self.rng.chance(0.8) {
            to = [&from[..], b"~"].concat();
        }
        if is_reverse(keyspace) { (to, from) } else { (from, to) }
    }

    fn span(&mut self) -> Span {
        let keyspace = self.keyspace();
        let at = self.at();
        let (from, to) = self.bounds(&keyspace);
        let from = Some(from).filter(|_| self.rng.chance(0.9));
        let to = Some(to).filter(|_| self.rng.chance(0.9));
        Span { keyspace, at, from, to }
    }

    fn at(&mut self) -> Option<String> {
        let name = format!("s{}", self.rng.below(SNAPSHOTS));
        Some(name).filter(|name| self.rng.chance(0.5) && self.snapshots.contains(name))
    }

    fn direction(&mut self) -> Direction {
        [Direction::Forward, Direction::Backward, Direction::Zigzag][self.rng.below(3) as usize]
    }
}
