//! Random operations: plain numbers in, valid operations out.
//!
//! A case is a list of [`Raw`] numbers and a mask of the kinds left out. Both
//! shrink well, and every list of numbers is a valid case: the meaning of a
//! number is looked up in the model's state (a single delete only where its
//! contract allows one). Owns: the kinds, their weights, the key spaces. Never
//! does: draw a kind, or a key where there are few.

use crate::model::Model;
use crate::model::{CASE_BLIND_ID, REVERSE_ID};
use crate::op::{Change, DEFAULT, Direction, Op, Span, Step, Write};
use crate::variant::POLICIES;
use windrow_env::testing::Rng;

/// The numbers that one operation is made from.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    /// The kind of operation.
    pub kind: u16,
    /// Operands; their meaning depends on the kind.
    pub operands: [u8; 4],
}

impl Raw {
    /// Draws numbers from a generator.
    pub fn draw(rng: &mut Rng) -> Raw {
        let bits = rng.next_u64();
        Raw { kind: bits as u16, operands: ((bits >> 32) as u32).to_le_bytes() }
    }
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    PutLarge,
    PutTtl,
    Delete,
    SingleDelete,
    Merge,
    DeleteRange,
    Batch,
    Get,
    MultiGet,
    Scan,
    Prefix,
    Dump,
    OpenCursor,
    Walk,
    Refresh,
    Snapshot,
    Release,
    Flush,
    Compact,
    CompactRange,
    Wait,
    Sync,
    Policy,
    Reopen,
    Kill,
    Checkpoint,
    Verify,
    CreateKeyspace,
    DropKeyspace,
    Clock,
    Ingest,
}

/// A set of kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u32);

const fn kinds(of: &[Kind]) -> Kinds {
    let mut bits = 0;
    let mut i = 0;
    while i < of.len() {
        bits |= 1 << of[i] as u32;
        i += 1;
    }
    Kinds(bits)
}

impl Kinds {
    /// None.
    pub const NONE: Kinds = Kinds(0);
    /// All.
    pub const ALL: Kinds = Kinds(u32::MAX >> (u32::BITS as usize - WEIGHTS.len()));
    /// Plain writes of one small value.
    pub const PUT: Kinds = kinds(&[Kind::Put]);
    /// Single writes and batches.
    pub const WRITES: Kinds = kinds(&[
        Kind::Put,
        Kind::PutLarge,
        Kind::PutTtl,
        Kind::Delete,
        Kind::SingleDelete,
        Kind::Merge,
        Kind::DeleteRange,
        Kind::Batch,
        Kind::Ingest,
    ]);
    /// Reads that are complete when they return.
    pub const READS: Kinds =
        kinds(&[Kind::Get, Kind::MultiGet, Kind::Scan, Kind::Prefix, Kind::Dump]);
    /// Cursors, which stay open.
    pub const CURSORS: Kinds = kinds(&[Kind::OpenCursor, Kind::Walk, Kind::Refresh]);
    /// Snapshots, and reads at them.
    pub const SNAPSHOTS: Kinds =
        kinds(&[Kind::Snapshot, Kind::Release, Kind::Get, Kind::Scan, Kind::Prefix]);
    /// Work on the files that changes no answer.
    pub const UPKEEP: Kinds = kinds(&[
        Kind::Flush,
        Kind::Compact,
        Kind::CompactRange,
        Kind::Wait,
        Kind::Sync,
        Kind::Policy,
        Kind::Verify,
    ]);
    /// Making and dropping keyspaces.
    pub const KEYSPACES: Kinds = kinds(&[Kind::CreateKeyspace, Kind::DropKeyspace]);

    /// Returns the kinds of these names, as [`Kinds::names`] gives them.
    ///
    /// # Errors
    /// A sentence that lists the known names.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Kinds, String> {
        names.into_iter().try_fold(Kinds::NONE, |set, name| {
            let found = WEIGHTS.iter().find(|(kind, _)| kind.name() == name);
            let all = || Kinds::ALL.names().join(",");
            let (kind, _) =
                found.ok_or_else(|| format!("no kind `{name}`; there are {}", all()))?;
            Ok(Kinds(set.0 | 1 << *kind as u32))
        })
    }

    /// Returns their names, in the order of the enumeration.
    pub fn names(self) -> Vec<String> {
        self.each().map(|(kind, _)| kind.name()).collect()
    }

    /// Returns the kinds that are in both sets.
    #[must_use]
    pub fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    /// Returns the kinds of this set that are not in `other`.
    #[must_use]
    pub fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    /// Returns a set for each kind.
    pub fn singles(self) -> impl Iterator<Item = Kinds> {
        self.each().map(|(kind, _)| Kinds(1 << kind as u32))
    }

    /// Keeps each kind with a chance of one half.
    #[must_use]
    pub fn half(self, rng: &mut Rng) -> Kinds {
        Kinds(self.0 & rng.next_u64() as u32)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn each(self) -> impl Iterator<Item = (Kind, u16)> {
        WEIGHTS.iter().copied().filter(move |(kind, _)| self.0 >> *kind as u32 & 1 == 1)
    }

    /// Returns the kind that a number stands for, by weight; `None` if the set
    /// is empty.
    fn choose(self, number: u16) -> Option<Kind> {
        let total: u32 = self.each().map(|(_, weight)| u32::from(weight)).sum();
        let mut left = u32::from(number) % total.max(1);
        self.each()
            .find(|(_, weight)| {
                let found = left < u32::from(*weight);
                left = left.saturating_sub(u32::from(*weight));
                found
            })
            .map(|(kind, _)| kind)
    }
}

impl Kind {
    /// Returns the name in snake case: `PutLarge` is `put_large`.
    fn name(self) -> String {
        let mut name = String::new();
        for (i, letter) in format!("{self:?}").chars().enumerate() {
            if i > 0 && letter.is_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

/// Kinds and how often each is chosen, in the order of their enumeration.
const WEIGHTS: &[(Kind, u16)] = &[
    (Kind::Put, 14),
    (Kind::PutLarge, 8),
    (Kind::PutTtl, 4),
    (Kind::Delete, 6),
    (Kind::SingleDelete, 4),
    (Kind::Merge, 8),
    (Kind::DeleteRange, 5),
    (Kind::Batch, 8),
    (Kind::Get, 10),
    (Kind::MultiGet, 3),
    (Kind::Scan, 8),
    (Kind::Prefix, 3),
    (Kind::Dump, 2),
    (Kind::OpenCursor, 3),
    (Kind::Walk, 8),
    (Kind::Refresh, 1),
    (Kind::Snapshot, 4),
    (Kind::Release, 2),
    (Kind::Flush, 6),
    (Kind::Compact, 1),
    (Kind::CompactRange, 2),
    (Kind::Wait, 2),
    (Kind::Sync, 1),
    (Kind::Policy, 3),
    (Kind::Reopen, 2),
    (Kind::Kill, 2),
    (Kind::Checkpoint, 1),
    (Kind::Verify, 1),
    (Kind::CreateKeyspace, 2),
    (Kind::DropKeyspace, 1),
    (Kind::Clock, 3),
    (Kind::Ingest, 4),
];

/// Keyspaces that cases use: name, merge operator, comparator. The first ones
/// exist from the start, the last one comes and goes.
const KEYSPACES: &[(&str, Option<&str>, Option<&str>)] = &[
    (DEFAULT, None, None),
    ("sum", Some("add"), None),
    ("text", Some("append"), None),
    ("back", Some("max"), Some(REVERSE_ID)),
    ("passing", None, None),
];

const PASSING: usize = 4;

/// The keyspace that [`Composer::setup_blind`] makes case-blind.
const BLIND: &str = "text";

/// The number that [`space`] maps to the keyspace of counters.
const SUM: u8 = 3;

/// The keys: few, so that operations meet, with prefixes of each other and the
/// ends of the byte order among them.
const KEYS: &[&[u8]] = &[
    b"",
    b"\0",
    b"a",
    b"a\0",
    b"aa",
    b"ab",
    b"abc",
    b"abd",
    b"b",
    b"ba",
    b"bb",
    b"c",
    b"ca",
    b"cb",
    b"d",
    b"da",
    b"e",
    b"f",
    b"fa",
    b"g",
    b"\xff",
    b"\xff\xff",
];

/// Milliseconds by which clock and expiry move: so coarse that the delays that
/// pacing adds to a simulated clock never decide an expiry.
pub const CLOCK_STEP_MS: u64 = 3_600_000;

/// Makes operations of numbers, for one case.
#[derive(Clone, Debug)]
pub struct Composer {
    kinds: Vec<Kind>,
    written: u64,
    /// `None`: the few keys.
    many: Option<Many>,
}

/// Up to thousands of keys, for trees of many tables. They do not follow from the numbers of an
/// operation, which are too short for that.
#[derive(Clone, Debug)]
struct Many {
    rng: Rng,
    keys: u64,
    /// Longest value of a plain put, in bytes: some seeds have small ones only.
    value_bytes_max: u64,
}

/// Keys that only puts and single deletes touch, in turn, where there are many keys.
const SINGLES: u8 = 64;

impl Many {
    /// Draws a key. Lengths differ, and one key in eight is the beginning of others.
    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.keys);
        let tail = match number % 8 {
            0 => String::new(),
            _ => format!("-{:02x}", number % 199),
        };
        format!("{:04}{tail}", number / 8).into_bytes()
    }

    /// Draws the bounds of a range, mostly near each other, in bytewise order.
    fn bounds(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (a, b) = (self.key(), self.key());
        let (from, to) = if a <= b { (a, b) } else { (b, a) };
        match self.rng.below(5) {
            0 => (from, to),
            _ => (from.clone(), [&from[..], b"~"].concat()),
        }
    }
}

impl Composer {
    /// Makes a composer that leaves out the kinds whose bit in `omitted` is
    /// set. Writes are never all left out.
    pub fn new(omitted: u32) -> Composer {
        let kept = WEIGHTS.iter().enumerate().filter(|(i, _)| omitted >> i & 1 == 0);
        let mut kinds: Vec<Kind> =
            kept.flat_map(|(_, (kind, weight))| vec![*kind; usize::from(*weight)]).collect();
        kinds.extend([Kind::Put, Kind::Get]);
        Composer { kinds, written: 0, many: None }
    }

    /// Makes a composer of operations on up to thousands of keys, with values of up to kilobytes:
    /// how many and how long follows from the seed.
    pub fn of_many_keys(seed: u64) -> Composer {
        let mut rng = Rng::new(seed);
        let (keys, value_bytes_max) = (1 << (4 + rng.below(9)), 1 << (4 + rng.below(8)));
        Composer { many: Some(Many { rng, keys, value_bytes_max }), ..Composer::new(0) }
    }

    /// Returns the operations that make the keyspaces of a case.
    pub fn setup() -> Vec<Op> {
        KEYSPACES[1..PASSING].iter().map(|space| create(*space)).collect()
    }

    /// Returns the same operations with one keyspace in the case-blind order.
    /// Composed operations must then go through [`respell`].
    pub fn setup_blind() -> Vec<Op> {
        let order = |space: &(&'static str, Option<&'static str>, Option<&'static str>)| {
            let (name, operator, comparator) = *space;
            create((name, operator, if name == BLIND { Some(CASE_BLIND_ID) } else { comparator }))
        };
        KEYSPACES[1..PASSING].iter().map(order).collect()
    }

    /// Returns the operation that `raw` stands for in the model's state; `None`
    /// where it stands for no operation.
    pub fn compose(&mut self, raw: Raw, model: &Model) -> Option<Op> {
        let kind = self.kinds[usize::from(raw.kind) % self.kinds.len()];
        self.compose_kind(kind, raw, model)
    }

    /// Composes an operation of one of these kinds.
    pub fn compose_of(&mut self, kinds: Kinds, raw: Raw, model: &Model) -> Option<Op> {
        self.compose_kind(kinds.choose(raw.kind)?, raw, model)
    }

    fn compose_kind(&mut self, kind: Kind, raw: Raw, model: &Model) -> Option<Op> {
        let [a, b, _, d] = raw.operands;
        Some(match kind {
            Kind::Put
            | Kind::PutLarge
            | Kind::PutTtl
            | Kind::Delete
            | Kind::SingleDelete
            | Kind::Merge
            | Kind::DeleteRange => Op::Write {
                write: self.write(kind, raw.operands, model)?,
                sync: d.is_multiple_of(8),
            },
            Kind::Batch => self.batch(raw.operands, model),
            Kind::Ingest => self.ingest(raw.operands, model)?,
            Kind::Get
            | Kind::MultiGet
            | Kind::Scan
            | Kind::Prefix
            | Kind::OpenCursor
            | Kind::Walk
            | Kind::Refresh => self.read(kind, raw.operands, model)?,
            Kind::Snapshot => Op::Snapshot { name: snapshot(a) },
            Kind::Release => {
                Op::Release { name: Some(snapshot(a)).filter(|s| model.has_snapshot(s))? }
            }
            Kind::Flush if a % 2 == 0 => Op::Flush { keyspace: None },
            Kind::Flush => Op::Flush { keyspace: Some(space(b, model)?) },
            Kind::CompactRange => {
                Op::CompactRange { span: Span { at: None, ..self.span(raw.operands, model)? } }
            }
            Kind::CreateKeyspace => create(KEYSPACES[PASSING]),
            Kind::DropKeyspace => {
                let name = KEYSPACES[PASSING].0;
                model.keyspaces().iter().any(|n| n == name).then(|| name.to_owned())?;
                Op::DropKeyspace { name: name.to_owned() }
            }
            Kind::Clock => Op::Clock { forward_ms: u64::from(a % 4) * CLOCK_STEP_MS },
            Kind::Dump => Op::Dump,
            Kind::Compact => Op::Compact,
            Kind::Wait => Op::Wait,
            Kind::Sync => Op::Sync,
            Kind::Policy => {
                Op::Policy { policy: POLICIES[usize::from(a) % POLICIES.len()].to_owned() }
            }
            Kind::Reopen => Op::Reopen,
            Kind::Kill => Op::Kill,
            Kind::Checkpoint => Op::Checkpoint,
            Kind::Verify => Op::Verify,
        })
    }

    /// Composes a read of some keys, or a cursor's.
    fn read(&mut self, kind: Kind, operands: [u8; 4], model: &Model) -> Option<Op> {
        let [a, b, c, d] = operands;
        Some(match kind {
            Kind::Get => Op::Get { keyspace: space(a, model)?, at: at(c, model), key: self.key(b) },
            Kind::MultiGet => {
                let more = if self.many.is_some() { usize::from(a % 16) } else { 0 };
                let numbers = [b, c, d].into_iter().chain(std::iter::repeat_n(0, more));
                let keys = numbers.map(|number| self.key(number)).collect();
                Op::MultiGet { keyspace: space(a, model)?, keys }
            }
            Kind::Scan => Op::Scan { span: self.span(operands, model)?, direction: direction(d) },
            Kind::Prefix => {
                let keyspace = space(a, model).filter(|name| !model.is_reverse(name))?;
                let mut prefix = self.key(b);
                if self.many.is_some() {
                    prefix.truncate(4);
                }
                Op::Prefix { keyspace, at: at(c, model), prefix, direction: direction(d) }
            }
            Kind::OpenCursor => {
                let span = self.span(operands, model)?;
                Op::OpenCursor { cursor: self.cursor(d), span }
            }
            Kind::Walk => {
                let cursor = Some(self.cursor(a)).filter(|c| model.has_cursor(c))?;
                let mut steps: Vec<Step> =
                    [b, c, d].into_iter().flat_map(|number| self.steps(number)).collect();
                if self.many.is_some() {
                    steps.extend(long_walk(d));
                }
                Op::Walk { cursor, steps }
            }
            _ => Op::Refresh { cursor: Some(self.cursor(a)).filter(|c| model.has_cursor(c))? },
        })
    }

    /// Returns the key of a number, or draws one of many.
    fn key(&mut self, number: u8) -> Vec<u8> {
        self.many.as_mut().map_or_else(|| key(number), Many::key)
    }

    fn cursor(&self, number: u8) -> String {
        let cursors = if self.many.is_some() { 6 } else { NAMES };
        format!("c{}", number % cursors)
    }

    fn span(&mut self, operands: [u8; 4], model: &Model) -> Option<Span> {
        let [a, b, c, d] = operands;
        let keyspace = space(a, model)?;
        let (drawn, open) = match &mut self.many {
            None => ((key(b), key(c)), 192),
            Some(many) => (many.bounds(), 232),
        };
        let (from, to) = (Some(drawn.0).filter(|_| b < open), Some(drawn.1).filter(|_| c < open));
        // Reversed bounds must read as empty; once in a while is enough.
        let (from, to) = match (from, to) {
            (Some(f), Some(t)) if (f > t) != model.is_reverse(&keyspace) && d >= 16 => {
                (Some(t), Some(f))
            }
            bounds => bounds,
        };
        Some(Span { keyspace, at: at(d, model), from, to })
    }

    fn steps(&mut self, number: u8) -> Vec<Step> {
        match number % 8 {
            0 => vec![Step::First, Step::Next],
            1 => vec![Step::Last, Step::Prev],
            2 | 3 => vec![Step::Seek(self.key(number / 8)), Step::Next, Step::Next, Step::Prev],
            4 => vec![Step::SeekBefore(self.key(number / 8)), Step::Prev, Step::Next],
            5 => vec![Step::Next, Step::Prev, Step::Next],
            6 => vec![Step::Prev, Step::Next, Step::Prev],
            _ => vec![Step::Next, Step::Next],
        }
    }

    /// Returns a value that no other write of the case has.
    fn value(&mut self, operator: Option<&str>, bytes: usize) -> Vec<u8> {
        self.written += 1;
        if operator == Some("add") {
            return (self.written as i64 * 1_000_003).to_le_bytes().to_vec();
        }
        let head = format!("v{}", self.written);
        if bytes <= head.len() {
            return head.into_bytes();
        }
        // A repetition of a short random unit: short to print, and its first copy does not
        // compress.
        let noise = Rng::new(self.written).next_u64() >> 24;
        let unit = format!("{head}-{noise:x}-").into_bytes();
        unit.repeat(bytes.div_ceil(unit.len()))
    }

    fn write(&mut self, kind: Kind, operands: [u8; 4], model: &Model) -> Option<Write> {
        let [a, b, c, d] = operands;
        let keyspace = space(a, model)?;
        let operator = model.operator(&keyspace);
        let key_b = self.key(b);
        let bytes = self.many.as_mut().map_or(0, |many| many.rng.below(many.value_bytes_max));
        let change = match kind {
            Kind::PutLarge => {
                let value = self.value(operator, 64 + usize::from(c) * 48);
                Change::Put { key: key_b, value }
            }
            Kind::PutTtl => {
                let ttl_ms = u64::from(c % 4) * CLOCK_STEP_MS + CLOCK_STEP_MS / 2;
                Change::PutTtl { key: key_b, value: self.value(operator, bytes as usize), ttl_ms }
            }
            Kind::Delete => Change::Delete { key: key_b },
            Kind::SingleDelete if self.many.is_some() => {
                let key = format!("~single-{}", b % SINGLES).into_bytes();
                match model.may_single_delete(&keyspace, &key) {
                    true => Change::SingleDelete { key },
                    false => Change::Put { key, value: self.value(operator, 0) },
                }
            }
            Kind::SingleDelete => {
                // The first key from this one on that a single delete may remove.
                let at = usize::from(b);
                let mut keys = (0..KEYS.len()).map(|i| KEYS[(at + i) % KEYS.len()]);
                let found = keys.find(|k| model.may_single_delete(&keyspace, k))?;
                Change::SingleDelete { key: found.to_vec() }
            }
            Kind::Merge => {
                let (keyspace, operator) = match operator {
                    Some(operator) => (keyspace, operator),
                    None => (space(SUM, model)?, "add"),
                };
                let operand = self.value(Some(operator), usize::from(d % 16));
                let change = match c % 4 {
                    0 => {
                        let ttl_ms = u64::from(c / 4 % 4) * CLOCK_STEP_MS + CLOCK_STEP_MS / 2;
                        Change::MergeTtl { key: key_b, operand, ttl_ms }
                    }
                    _ => Change::Merge { key: key_b, operand },
                };
                return Some(Write { keyspace, change });
            }
            Kind::DeleteRange => {
                let drawn = self.many.as_mut().map(Many::bounds);
                let (from, to) = drawn.unwrap_or_else(|| (key(b), key(c)));
                let ordered = (from <= to) != model.is_reverse(&keyspace);
                // One in sixteen keeps its bounds reversed: an empty range.
                let (from, to) = if ordered || d < 16 { (from, to) } else { (to, from) };
                Change::DeleteRange { from, to }
            }
            _ => Change::Put { key: key_b, value: self.value(operator, bytes as usize) },
        };
        Some(Write { keyspace, change })
    }

    fn batch(&mut self, operands: [u8; 4], model: &Model) -> Op {
        const KINDS: [Kind; 8] = [
            Kind::Put,
            Kind::Put,
            Kind::PutLarge,
            Kind::PutTtl,
            Kind::Delete,
            Kind::Merge,
            Kind::DeleteRange,
            Kind::Put,
        ];
        let mut rng = Rng::new(u64::from(u32::from_le_bytes(operands)));
        let mut writes = Vec::new();
        for _ in 0..operands[0] % if self.many.is_some() { 12 } else { 6 } {
            let raw = Raw::draw(&mut rng);
            let kind = KINDS[usize::from(raw.kind) % KINDS.len()];
            writes.extend(self.write(kind, raw.operands, model));
        }
        Op::Batch { writes, sync: operands[3].is_multiple_of(4) }
    }

    /// Ingests some of the keys, in the order of the keyspace.
    fn ingest(&mut self, operands: [u8; 4], model: &Model) -> Option<Op> {
        let keyspace = space(operands[0], model)?;
        let mut rng = Rng::new(u64::from(u32::from_le_bytes(operands)));
        let count = 1 + operands[1] % if self.many.is_some() { 40 } else { 12 };
        let mut keys: Vec<Vec<u8>> = (0..count).map(|_| self.key(rng.next_u64() as u8)).collect();
        model.sort_keys(&keyspace, &mut keys);
        let operator = model.operator(&keyspace);
        let large = usize::from(operands[2]) * usize::from(operands[2] % 2) * 8;
        let pairs = keys.into_iter().map(|key| (key, self.value(operator, large))).collect();
        Some(Op::Ingest { keyspace, pairs })
    }
}

/// Changes the case of letters at random in the keys of the case-blind keyspace
/// and in the keys that cursors seek. In the other keyspaces such a seek is a
/// different operation.
pub fn respell(op: &mut Op, bits: u16) {
    let mut rng = Rng::new(u64::from(bits));
    let mut anyhow = |key: &mut Vec<u8>| {
        let upper = rng.next_u64();
        let letters = key.iter_mut().enumerate().filter(|(i, _)| upper >> (i % 64) & 1 == 1);
        letters.for_each(|(_, letter)| letter.make_ascii_uppercase());
    };
    match op {
        Op::Write { write, .. } => respell_write(write, &mut anyhow),
        Op::Batch { writes, .. } => {
            writes.iter_mut().for_each(|write| respell_write(write, &mut anyhow));
        }
        Op::Ingest { keyspace, pairs } if keyspace == BLIND => {
            pairs.iter_mut().for_each(|(key, _)| anyhow(key));
        }
        Op::Get { keyspace, key, .. } if keyspace == BLIND => anyhow(key),
        Op::MultiGet { keyspace, keys } if keyspace == BLIND => keys.iter_mut().for_each(anyhow),
        Op::Prefix { keyspace, prefix, .. } if keyspace == BLIND => anyhow(prefix),
        Op::Scan { span, .. } | Op::OpenCursor { span, .. } | Op::CompactRange { span }
            if span.keyspace == BLIND =>
        {
            span.from.iter_mut().chain(&mut span.to).for_each(anyhow);
        }
        Op::Walk { steps, .. } => {
            for step in steps {
                if let Step::Seek(key) | Step::SeekBefore(key) = step {
                    anyhow(key);
                }
            }
        }
        _ => {}
    }
}

fn respell_write(write: &mut Write, anyhow: &mut impl FnMut(&mut Vec<u8>)) {
    if write.keyspace != BLIND {
        return;
    }
    match &mut write.change {
        Change::Put { key, .. }
        | Change::PutTtl { key, .. }
        | Change::Delete { key }
        | Change::SingleDelete { key }
        | Change::Merge { key, .. }
        | Change::MergeTtl { key, .. } => anyhow(key),
        Change::DeleteRange { from, to } => {
            anyhow(from);
            anyhow(to);
        }
    }
}

fn create((name, operator, comparator): (&str, Option<&str>, Option<&str>)) -> Op {
    Op::CreateKeyspace {
        name: name.to_owned(),
        operator: operator.map(str::to_owned),
        comparator: comparator.map(str::to_owned),
    }
}

/// Returns a keyspace of the model, the default one most often.
fn space(number: u8, model: &Model) -> Option<String> {
    let index = [0, 0, 0, 1, 2, 3, 4, 1][usize::from(number) % 8];
    let name = KEYSPACES[index].0;
    model.keyspaces().into_iter().find(|n| n == name)
}

fn key(number: u8) -> Vec<u8> {
    KEYS[usize::from(number) % KEYS.len()].to_vec()
}

/// Returns all keys that cases use, for gets of present and absent ones.
pub fn all_keys() -> impl Iterator<Item = &'static [u8]> {
    KEYS.iter().copied()
}

/// Returns one of the keys.
pub fn random_key(rng: &mut Rng) -> Vec<u8> {
    key(rng.next_u64() as u8)
}

/// Names of snapshots, and of cursors where there are few keys.
const NAMES: u8 = 3;

fn snapshot(number: u8) -> String {
    format!("s{}", number % NAMES)
}

/// Returns an open snapshot, half of the time.
fn at(number: u8, model: &Model) -> Option<String> {
    Some(snapshot(number)).filter(|s| number >= 128 && model.has_snapshot(s))
}

fn direction(number: u8) -> Direction {
    match number % 5 {
        0 | 1 => Direction::Forward,
        2 | 3 => Direction::Backward,
        _ => Direction::Zigzag,
    }
}

/// Returns up to 24 steps in one direction, or mostly in one.
fn long_walk(number: u8) -> impl Iterator<Item = Step> {
    let (forward, turns) = (number.is_multiple_of(2), number.is_multiple_of(5));
    (0..number % 25).map(move |i| match forward != (turns && i % 3 == 2) {
        true => Step::Next,
        false => Step::Prev,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_bits_and_names() {
        for (i, (kind, _)) in WEIGHTS.iter().enumerate() {
            assert_eq!(*kind as usize, i, "the weights are in the order of the enumeration");
        }
        let names = Kinds::ALL.names();
        assert_eq!(names.len(), WEIGHTS.len());
        assert_eq!(Kinds::parse(names.iter().map(String::as_str)), Ok(Kinds::ALL));
        assert_eq!(Kinds::parse(["put_large"]), Ok(kinds(&[Kind::PutLarge])));
        assert!(Kinds::parse(["pot"]).is_err());
        assert_eq!(Kinds::NONE.choose(7), None);
    }

    #[test]
    fn every_kind_is_chosen_by_its_weight() {
        let set = kinds(&[Kind::Put, Kind::Sync]);
        let chosen = |kind| (0..15).filter(|n| set.choose(*n) == Some(kind)).count();
        assert_eq!((chosen(Kind::Put), chosen(Kind::Sync)), (14, 1));
    }
}
