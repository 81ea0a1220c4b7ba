//! The batches of the writers. They follow from a seed, a session and a number, so that the
//! expected contents are known without a record.
//!
//! Every writer owns the keys that begin with its number, and numbers its batches from 1. Each
//! batch puts that number into each keyspace (slot 0), so that one read gives a writer's last
//! batch, and three reads whether that batch is whole. Owns: the batches, and the contents after
//! them. Never does: open a database.

use std::collections::BTreeMap;
use windrow_env::testing::Rng;

/// The keyspaces that every batch writes to; the first is the default one.
pub const KEYSPACES: [&str; 3] = ["default", "left", "right"];

/// Sizes of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The seed of the operations.
    pub seed: u64,
    /// Threads that write.
    pub writers: u32,
    /// Keys of a writer in each keyspace, without slot 0.
    pub slots: u64,
    /// The number of synced batches in a hundred.
    pub synced_percent: u64,
    /// The number of deletes in a hundred changes.
    pub deleted_percent: u64,
}

/// A value, before it is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The number of a batch, in slot 0.
    Number(u64),
    /// Bytes that follow from a seed.
    Bytes(u64),
}

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key is given a value.
    Put(usize, u64, Value),
    /// A key is removed.
    Delete(usize, u64),
    /// The keys from one slot up to another are removed.
    DeleteRange(usize, u64, u64),
}

/// One batch of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Its changes, in order; the keyspace is an index into [`KEYSPACES`].
    pub changes: Vec<Change>,
    /// Whether the writer waits for the device.
    pub synced: bool,
}

/// Returns a writer's key.
pub fn key(writer: u32, slot: u64) -> Vec<u8> {
    format!("{writer:02}/{slot:010}").into_bytes()
}

impl Value {
    /// Returns the bytes in the database.
    pub fn bytes(self) -> Vec<u8> {
        let seed = match self {
            Value::Number(number) => return number.to_le_bytes().to_vec(),
            Value::Bytes(seed) => seed,
        };
        let mut rng = Rng::new(seed);
        let len = match rng.below(100) {
            0 => 4_000 + rng.below(30_000),
            1..10 => 400 + rng.below(4_000),
            _ => rng.below(300),
        };
        let mut bytes = Vec::with_capacity(len as usize + 8);
        while (bytes.len() as u64) < len {
            // Half of it is random, so that codecs have work and some gain.
            bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
            bytes.extend_from_slice(b"windrow.");
        }
        bytes.truncate(len as usize);
        bytes
    }
}

impl Shape {
    /// Returns batch `number` of a writer, as written in the `session`-th process.
    pub fn recipe(&self, session: u64, writer: u32, number: u64) -> Recipe {
        let mut mixed = Rng::new(self.seed ^ session.rotate_left(48) ^ u64::from(writer) << 40);
        let mut rng = Rng::new(mixed.next_u64() ^ number);
        let mut changes: Vec<Change> =
            (0..KEYSPACES.len()).map(|k| Change::Put(k, 0, Value::Number(number))).collect();
        let many = rng.below(20) == 0;
        for _ in 0..1 + rng.below(if many { 40 } else { 4 }) {
            let keyspace = rng.below(KEYSPACES.len() as u64) as usize;
            let slot = 1 + rng.below(self.slots);
            changes.push(if rng.below(100) >= self.deleted_percent {
                Change::Put(keyspace, slot, Value::Bytes(rng.next_u64()))
            } else if rng.below(3) == 0 {
                Change::DeleteRange(keyspace, slot, slot + 1 + rng.below(8))
            } else {
                Change::Delete(keyspace, slot)
            });
        }
        Recipe { changes, synced: rng.below(100) < self.synced_percent }
    }
}

/// The expected contents of the keyspaces: for each, by writer and slot.
pub type Content = [BTreeMap<(u32, u64), Value>; KEYSPACES.len()];

/// The contents of a database after a given number of batches of every writer.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The sizes of the batches.
    pub shape: Shape,
    /// Batches of each writer that are in it.
    pub numbers: Vec<u64>,
    /// The contents after them.
    pub content: Content,
}

impl Expected {
    /// Returns the contents of an empty database.
    pub fn new(shape: Shape) -> Expected {
        let numbers = vec![0; shape.writers as usize];
        Expected { shape, numbers, content: Content::default() }
    }

    /// Adds the batches of a writer up to `number`, as written in the `session`-th process.
    pub fn advance(&mut self, session: u64, writer: u32, number: u64) {
        let before = std::mem::replace(&mut self.numbers[writer as usize], number);
        for number in before + 1..=number {
            for change in self.shape.recipe(session, writer, number).changes {
                match change {
                    Change::Put(keyspace, slot, value) => {
                        self.content[keyspace].insert((writer, slot), value);
                    }
                    Change::Delete(keyspace, slot) => {
                        self.content[keyspace].remove(&(writer, slot));
                    }
                    Change::DeleteRange(keyspace, from, to) => {
                        for slot in from..to {
                            self.content[keyspace].remove(&(writer, slot));
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape =
        Shape { seed: 7, writers: 2, slots: 20, synced_percent: 30, deleted_percent: 25 };

    #[test]
    fn a_batch_repeats_and_differs_by_session_writer_and_number() {
        let recipe = SHAPE.recipe(1, 0, 1);
        assert_eq!(recipe, SHAPE.recipe(1, 0, 1));
        for other in [SHAPE.recipe(2, 0, 1), SHAPE.recipe(1, 1, 1), SHAPE.recipe(1, 0, 2)] {
            assert_ne!(recipe.changes, other.changes);
        }
        assert_eq!(Value::Bytes(3).bytes(), Value::Bytes(3).bytes());
    }

    #[test]
    fn going_on_is_the_same_as_going_at_once() {
        let (mut steps, mut once) = (Expected::new(SHAPE), Expected::new(SHAPE));
        for number in 1..=100 {
            steps.advance(1, 1, number);
        }
        once.advance(1, 1, 100);
        assert_eq!(steps.content, once.content);
        assert_eq!(once.numbers, [0, 100]);
        assert_eq!(once.content[2][&(1, 0)], Value::Number(100));
    }

    #[test]
    fn keys_sort_as_writers_and_slots_do() {
        assert!(key(1, 0) < key(1, 9) && key(1, 9) < key(1, 10) && key(1, 10) < key(2, 0));
    }
}
