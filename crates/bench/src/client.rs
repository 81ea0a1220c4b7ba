//! One client of a store: does a phase's operations on the records that it draws, and checks the
//! answers.
//!
//! Owns: the kinds of operation, the test of an answer, the checksum of answers. Never does: take
//! the time (`driver.rs` does).

use crate::data::{Draw, mix};
use crate::dataset::Dataset;
use crate::draws::Stream;
use crate::driver::Worker;
use crate::lengths::Lengths;
use crate::op::Kind;
use crate::store::{Result, Store, Sync, Write};
use crate::workload::Mix;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of districts that orders are counted in: the first records, as many as two of TPC-C's
/// warehouses have.
const DISTRICTS: u64 = 20;

/// One answer in this number of reads is compared in full.
const CHECK_EVERY: u64 = 64;

/// The state that all clients of a phase share.
pub(crate) struct Shared<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) data: &'a Dataset,
    /// Records that were inserted, those in flight included.
    pub(crate) inserted: &'a AtomicU64,
    /// Records that the phase began with.
    pub(crate) before: u64,
    /// Number of the record at a queue's front.
    pub(crate) front: &'a AtomicU64,
    pub(crate) spaces: u32,
    pub(crate) sync: Sync,
    pub(crate) batch: u32,
    pub(crate) scan: Lengths,
    /// How long inserted records stay, if not for ever.
    pub(crate) expiry: Option<RecordExpiry>,
    /// Whether each write makes a new generation of its record. Otherwise all have one value, so
    /// that contents do not depend on the order of the clients.
    pub(crate) is_versioned: bool,
    /// Whether a record that was inserted may be gone.
    pub(crate) may_miss: bool,
    /// Whether another client may be at work on the same records.
    pub(crate) is_shared: bool,
}

/// How records vanish.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordExpiry {
    /// The store removes them after this number of seconds.
    Store(u64),
    /// The client removes the record this number before the inserted one.
    Client(u64),
}

/// A client.
pub(crate) struct Client<'a> {
    shared: &'a Shared<'a>,
    /// Kinds by the upper ends of their shares of 0.0..1.0.
    kinds: Vec<(Kind, f64)>,
    draw: Draw,
    keys: Stream,
    /// The stream of the records that are read, if reads have their own.
    read_keys: Option<Stream>,
    generation: u32,
    reads: u64,
    answers: u64,
    /// Operations that were done.
    pub(crate) ops: u64,
    /// Bytes of keys and values that were written and read.
    pub(crate) written_bytes: u64,
    pub(crate) read_bytes: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'a> Client<'a> {
    /// Makes a client that draws from a seed of its own. Generations begin above `generation`.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        mix: &Mix,
        keys: Stream,
        seed: u64,
        generation: u32,
    ) -> Client<'a> {
        let mut end = 0.0;
        let up_to = |&(kind, share): &(Kind, f64)| {
            end += share;
            (kind, end)
        };
        Client {
            shared,
            kinds: mix.iter().map(up_to).collect(),
            draw: Draw::new(seed),
            keys,
            read_keys: None,
            generation,
            reads: 0,
            answers: 0,
            ops: 0,
            written_bytes: 0,
            read_bytes: 0,
            key: Vec::new(),
            value: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Returns the client with draws of their own for its reads.
    pub(crate) fn reading(self, read_keys: Option<Stream>) -> Client<'a> {
        Client { read_keys, ..self }
    }

    /// Returns the checksum of all answers so far, in their order.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the newest generation that this client has written.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    fn kind(&mut self) -> Kind {
        let [(only, _)] = self.kinds[..] else {
            let at = self.draw.unit();
            let last = self.kinds[self.kinds.len() - 1];
            return self.kinds.iter().find(|(_, end)| at < *end).unwrap_or(&last).0;
        };
        only
    }

    fn space(&self, number: u64) -> u32 {
        (number % u64::from(self.shared.spaces)) as u32
    }

    /// Takes a number into the checksum of answers.
    fn answer(&mut self, word: u64) {
        self.answers = mix(self.answers ^ word);
    }

    fn next_generation(&mut self) -> u32 {
        if !self.shared.is_versioned {
            return 0;
        }
        self.generation += 1;
        self.generation
    }

    fn put(&mut self, number: u64) -> Result<()> {
        let (shared, generation) = (self.shared, self.next_generation());
        shared.data.key(number, &mut self.key);
        shared.data.value(number, generation, &mut self.value);
        self.written_bytes += (self.key.len() + self.value.len()) as u64;
        shared.store.put(self.space(number), &self.key, &self.value, shared.sync)
    }

    fn insert(&mut self) -> Result<()> {
        let number = self.shared.inserted.fetch_add(1, Ordering::Relaxed);
        match self.shared.expiry {
            None => self.put(number)?,
            Some(RecordExpiry::Store(seconds)) => {
                let generation = self.next_generation();
                self.shared.data.key(number, &mut self.key);
                self.shared.data.value(number, generation, &mut self.value);
                self.written_bytes += (self.key.len() + self.value.len()) as u64;
                let space = self.space(number);
                self.shared.store.put_for(space, &self.key, &self.value, seconds)?;
            }
            Some(RecordExpiry::Client(keep)) => {
                self.put(number)?;
                if let Some(old) = number.checked_sub(keep) {
                    self.delete(old)?;
                }
            }
        }
        self.keys.grow(number + 1);
        Ok(())
    }

    fn delete(&mut self, number: u64) -> Result<()> {
        self.shared.data.key(number, &mut self.key);
        self.written_bytes += self.key.len() as u64;
        self.shared.store.delete(self.space(number), &self.key, self.shared.sync)
    }

    fn get(&mut self, number: u64) -> Result<()> {
        let shared = self.shared;
        shared.data.key(number, &mut self.key);
        let found = shared.store.get(self.space(number), &self.key, &mut self.value)?;
        self.read_bytes += if found { (self.key.len() + self.value.len()) as u64 } else { 0 };
        let value = std::mem::take(&mut self.value);
        let judged = self.judge(number, found.then_some(value.as_slice()));
        self.value = value;
        judged
    }

    /// Checks the answer to a get and takes it into the checksum.
    fn judge(&mut self, number: u64, value: Option<&[u8]>) -> Result<()> {
        let Some(value) = value else {
            self.answer(1);
            // Another client may still be inserting it.
            let may_miss =
                self.shared.may_miss || self.shared.is_shared && self.shared.before <= number;
            return match may_miss {
                true => Ok(()),
                false => Err(format!("record {number} is missing").into()),
            };
        };
        self.answer(glance(value));
        self.reads += 1;
        let newest = if self.shared.is_versioned { self.generation } else { u32::MAX };
        if self.reads.is_multiple_of(CHECK_EVERY)
            && !self.shared.data.is_value(number, newest, value, &mut self.scratch)
        {
            return Err(format!("record {number} has a wrong value").into());
        }
        Ok(())
    }

    fn absent(&mut self, number: u64) -> Result<()> {
        self.shared.data.absent_key(number, &mut self.key);
        if self.shared.store.get(self.space(number), &self.key, &mut self.value)? {
            return Err(format!("a key next to record {number} was never put").into());
        }
        self.answer(2);
        Ok(())
    }

    fn scan(&mut self, number: u64) -> Result<()> {
        let shared = self.shared;
        shared.data.key(number, &mut self.key);
        let (space, entries) = (self.space(number), shared.scan.of(self.draw.word()));
        self.reads += 1;
        let check = self.reads.is_multiple_of(CHECK_EVERY);
        let (mut seen, mut bytes, mut in_order) = (0u64, 0, true);
        let last = &mut self.scratch;
        last.clone_from(&self.key);
        let mut each = |key: &[u8], value: &[u8]| {
            // The checksum is cheap, or it would be most of the measured time.
            seen = (seen ^ glance(key) ^ glance(value).rotate_left(32))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bytes += (key.len() + value.len()) as u64;
            if check {
                in_order &= last.as_slice() <= key;
                last.clear();
                last.extend_from_slice(key);
            }
        };
        let met = shared.store.scan(space, &self.key, entries, &mut each)?;
        if !in_order {
            return Err(format!("a scan from record {number} is out of order").into());
        }
        if met > entries {
            return Err(format!("a scan of {entries} entries gave {met}").into());
        }
        self.read_bytes += bytes;
        self.answer(seen ^ met);
        Ok(())
    }

    fn multi_get(&mut self) -> Result<()> {
        let first = self.keys.next();
        let space = self.space(first);
        let numbers: Vec<u64> = std::iter::once(first)
            .chain((1..self.shared.batch).map(|_| {
                // All keys are in the space of the first.
                let number = self.keys.next();
                let spaces = u64::from(self.shared.spaces);
                let moved = number - number % spaces + first % spaces;
                if moved < self.shared.before { moved } else { first }
            }))
            .collect();
        let mut keys = vec![Vec::new(); numbers.len()];
        numbers.iter().zip(&mut keys).for_each(|(n, key)| self.shared.data.key(*n, key));
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let (shared, mut judged, mut places) = (self.shared, Ok(()), 0);
        let mut bytes = 0;
        shared.store.multi_get(space, &slices, &mut |place, value| {
            let is_next = place == places;
            places += 1;
            bytes += value.map_or(0, |value| (shared.data.key_bytes() + value.len()) as u64);
            if judged.is_ok() {
                judged = match is_next {
                    true => self.judge(numbers[place], value),
                    false => Err("a read of several keys answered out of order".into()),
                };
            }
        })?;
        self.read_bytes += bytes;
        match places == numbers.len() {
            true => judged,
            false => {
                Err(format!("{} keys were asked for, {places} answered", numbers.len()).into())
            }
        }
    }

    fn batch(&mut self) -> Result<()> {
        let shared = self.shared;
        let records: Vec<(u32, Vec<u8>, Vec<u8>)> = (0..shared.batch)
            .map(|_| {
                let (number, generation) = (self.keys.next(), self.next_generation());
                let (mut key, mut value) = (Vec::new(), Vec::new());
                shared.data.key(number, &mut key);
                shared.data.value(number, generation, &mut value);
                (self.space(number), key, value)
            })
            .collect();
        let writes: Vec<Write<'_>> = records
            .iter()
            .map(|(space, key, value)| Write::Put { space: *space, key, value })
            .collect();
        let bytes = |(_, key, value): &(u32, Vec<u8>, Vec<u8>)| (key.len() + value.len()) as u64;
        self.written_bytes += records.iter().map(bytes).sum::<u64>();
        shared.store.write(&writes, shared.sync)
    }

    /// Takes the oldest entry of the queue: seeks to it, reads and removes it. The seek begins at
    /// the front that the clients know; the removed entries lie before that.
    fn pop(&mut self) -> Result<()> {
        let shared = self.shared;
        let front = shared.front.load(Ordering::Relaxed);
        let space = self.space(front);
        shared.data.key(front, &mut self.scratch);
        let (key, value) = (&mut self.key, &mut self.value);
        let met = shared.store.scan(space, &self.scratch, 1, &mut |k, v| {
            key.clear();
            key.extend_from_slice(k);
            value.clear();
            value.extend_from_slice(v);
        })?;
        let is_empty = shared.inserted.load(Ordering::Relaxed) <= front;
        match (met, is_empty) {
            (0, true) => return Ok(()),
            (0, false) => return Err(format!("entry {front} of the queue is missing").into()),
            _ if shared.data.sorted_number(key) != Some(front) => {
                return Err(format!("the queue's front is not entry {front}").into());
            }
            _ => {}
        }
        self.read_bytes += (self.key.len() + self.value.len()) as u64;
        self.written_bytes += self.key.len() as u64;
        let value = std::mem::take(&mut self.value);
        let judged = self.judge(front, Some(&value));
        self.value = value;
        judged?;
        shared.store.delete(space, &self.key, shared.sync)?;
        shared.front.store(front + 1, Ordering::Relaxed);
        Ok(())
    }
}

/// Transactions. They add to numbers at the beginning of values, so that the final contents do not
/// depend on the order of the clients.
impl Client<'_> {
    fn count(&mut self) -> Result<()> {
        let record = self.keys.next();
        self.transact(&BTreeMap::from([(record, 1)]), 0)
    }

    fn transfer(&mut self) -> Result<()> {
        let (from, mut to) = (self.keys.next(), self.keys.next());
        if to == from {
            to = (from + 1) % self.shared.before;
        }
        let amount = self.draw.below(100);
        self.transact(&BTreeMap::from([(from, amount.wrapping_neg()), (to, amount)]), 0)
    }

    fn order(&mut self) -> Result<()> {
        let mut changes = BTreeMap::from([(self.draw.below(DISTRICTS), 1)]);
        for _ in 0..self.shared.batch {
            let item = self.keys.next().max(DISTRICTS);
            let quantity = self.draw.below(10) + 1;
            let stock = changes.entry(item).or_insert(0_u64);
            *stock = stock.wrapping_sub(quantity);
        }
        self.transact(&changes, u64::from(self.shared.batch) + 1)
    }

    /// Adds to records, and sets `new` new ones, in one transaction. Keys come in one order, so
    /// that stores that lock them have no deadlocks.
    fn transact(&mut self, changes: &BTreeMap<u64, u64>, new: u64) -> Result<()> {
        let shared = self.shared;
        let key = |number: u64| {
            let mut key = Vec::new();
            shared.data.key(number, &mut key);
            ((number % u64::from(shared.spaces)) as u32, key)
        };
        let record = |number: u64| {
            let ((space, key), mut value) = (key(number), Vec::new());
            shared.data.value(number, 0, &mut value);
            (space, key, value)
        };
        let first = shared.inserted.fetch_add(new, Ordering::Relaxed);
        let rows: Vec<_> = (first..first + new).map(record).collect();
        let more: Vec<Write<'_>> = rows
            .iter()
            .map(|(space, key, value)| Write::Put { space: *space, key, value })
            .collect();
        let changed: Vec<_> = changes.keys().map(|number| key(*number)).collect();
        let keys: Vec<(u32, &[u8])> =
            changed.iter().map(|(space, key)| (*space, key.as_slice())).collect();
        let (mut is_whole, mut bytes) = (true, 0);
        let mut add = |values: &mut [Vec<u8>]| {
            bytes = values.iter().map(|value| (shared.data.key_bytes() + value.len()) as u64).sum();
            for (value, by) in values.iter_mut().zip(changes.values()) {
                let Some(head) = value.first_chunk_mut() else {
                    is_whole = false;
                    continue;
                };
                *head = u64::from_le_bytes(*head).wrapping_add(*by).to_le_bytes();
            }
        };
        shared.store.transact(&keys, &mut add, &more, shared.sync)?;
        if !is_whole {
            return Err("a record that a transaction changes is missing".into());
        }
        let of_row = |(_, key, value): &(u32, Vec<u8>, Vec<u8>)| (key.len() + value.len()) as u64;
        self.read_bytes += bytes;
        self.written_bytes += bytes + rows.iter().map(of_row).sum::<u64>();
        Ok(())
    }
}

impl Client<'_> {
    /// Does an operation of a kind. Returns the number of the record that was drawn, if it is for
    /// one record.
    pub(crate) fn one(&mut self, kind: Kind) -> Result<Option<u64>> {
        let mut drawn = None;
        match kind {
            Kind::Insert => self.insert()?,
            Kind::MultiGet => self.multi_get()?,
            Kind::Batch => self.batch()?,
            Kind::Pop => self.pop()?,
            Kind::Count => self.count()?,
            Kind::Transfer => self.transfer()?,
            Kind::Order => self.order()?,
            Kind::Put | Kind::Get | Kind::Absent | Kind::Scan | Kind::Delete | Kind::Update => {
                let reads = self.read_keys.as_mut().filter(|_| kind.reads());
                let number = reads.unwrap_or(&mut self.keys).next();
                drawn = Some(number);
                match kind {
                    Kind::Put => self.put(number)?,
                    Kind::Get => self.get(number)?,
                    Kind::Absent => self.absent(number)?,
                    Kind::Scan => self.scan(number)?,
                    Kind::Delete => self.delete(number)?,
                    _ => {
                        self.get(number)?;
                        self.put(number)?;
                    }
                }
            }
        }
        self.ops += 1;
        Ok(drawn)
    }
}

impl Worker for Client<'_> {
    fn run(&mut self, _: u64) -> Result<Kind> {
        let kind = self.kind();
        self.one(kind)?;
        Ok(kind)
    }
}

/// Returns a few bytes of a value, and its length: enough to tell its generations apart.
fn glance(bytes: &[u8]) -> u64 {
    let length = (bytes.len() as u64) << 48;
    let head = bytes.first_chunk().map_or(0, |head| u64::from_le_bytes(*head));
    let tail = bytes.last_chunk().map_or(0, |tail| u64::from_le_bytes(*tail));
    length ^ head ^ tail.rotate_left(17)
}
