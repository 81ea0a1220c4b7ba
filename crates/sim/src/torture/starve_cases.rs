//! The workloads of starved processes: each case is the largest request that a database of some
//! budget must serve, or a request that once exceeded the budget.
//!
//! A step is acknowledged or not, as a whole; its last write is a marker, so that a judge can tell.
//! Owns: the cases. Never does: know of processes or limits.

use std::fmt::Write as _;
use windrow::{Batch, Db, Error, Snapshot, WriteSync};
use windrow_env::testing::Rng;

/// The size of a case.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// `memory_bytes` of the database.
    pub budget: u64,
    /// The share of the whole case, in thousandths.
    pub permille: u64,
}

impl Scale {
    fn of(&self, whole: u64) -> u64 {
        (whole * self.permille).div_ceil(1000)
    }
}

/// A case.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The number of its steps.
    pub steps: fn(&Scale) -> u64,
    /// Bytes that the case itself needs: the batch in the making, whose buffer grows by doubling;
    /// handles; other memory of the program.
    pub besides: fn(&Scale) -> u64,
    /// Takes a step. Its snapshots live as long as the process.
    pub step: fn(&Db, &Scale, u64, &mut Vec<Snapshot>) -> Result<(), Error>,
    /// Checks that the first steps are present, in this number, and none in part.
    pub judge: fn(&Db, &Scale, u64) -> Result<(), String>,
}

const BESIDES: u64 = 2 << 20;
/// The memory of merges for the longest keys that no budget counts: the current keys of each input
/// and output, and the last ones.
const LONG_KEYS_BYTES: u64 = 48 * KEY_BYTES as u64;
/// The memory of a keyspace that no budget counts.
const KEYSPACE_BYTES: u64 = 3 << 10;

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "deletes",
        steps: |_| 4,
        // A batch, or its record that is replayed, twice.
        besides: |scale| scale.budget / 2 + BESIDES,
        step: deletes,
        judge: batches_are_whole,
    },
    Case {
        name: "ranges",
        steps: |_| 4,
        // A batch, or its record that is replayed, and the sets that a merge makes of the range
        // tombstones of all batches.
        besides: |scale| scale.budget + BESIDES,
        step: ranges,
        judge: batches_are_whole,
    },
    Case {
        name: "snapshots",
        steps: |scale| scale.of(16),
        besides: |scale| (scale.of(16) + 1) * NESTED * 256 + BESIDES,
        step: nested_ranges,
        judge: nested_ranges_hide,
    },
    Case {
        name: "keys",
        steps: |scale| scale.of(30) * KEY_FORMS,
        besides: |_| BESIDES + LONG_KEYS_BYTES,
        step: longest_keys,
        judge: longest_keys_are_there,
    },
    Case {
        name: "keyspaces",
        steps: |scale| scale.of(100),
        besides: |scale| (scale.of(100) + 1) * SPACES * KEYSPACE_BYTES + BESIDES,
        step: keyspaces,
        judge: keyspaces_are_there,
    },
];

/// Returns the case of a name.
pub fn case(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

fn marker(step: u64) -> String {
    format!("~marker{step:06}")
}

/// Checks that the number of present steps is `steps` or `steps + 1`.
fn markers(db: &Db, steps: u64) -> Result<u64, String> {
    let there = db.prefix("~marker").count() as u64;
    if there == steps || there == steps + 1 {
        return Ok(there);
    }
    Err(format!("{steps} steps were acknowledged, {there} are there"))
}

/// Makes the largest batch of operations that `push` adds, and the step's marker.
fn largest(db: &Db, scale: &Scale, step: u64, push: impl Fn(&mut Batch, u64)) -> Batch {
    let mut batch = Batch::new();
    batch.put(db, marker(step), b"1");
    let (memory, encoded) = (scale.budget / 2, scale.budget / 4);
    for i in 0.. {
        if batch.memory_bytes() as u64 + 256 > memory || batch.byte_len() as u64 + 64 > encoded {
            break;
        }
        push(&mut batch, i);
    }
    batch
}

fn deletes(db: &Db, scale: &Scale, step: u64, _: &mut Vec<Snapshot>) -> Result<(), Error> {
    let batch = largest(db, scale, step, |batch, i| batch.delete(db, [i as u8 % 100]));
    db.write(batch, WriteSync::No).map(drop)
}

/// Deletes ranges many times each, or once each.
fn ranges(db: &Db, scale: &Scale, step: u64, _: &mut Vec<Snapshot>) -> Result<(), Error> {
    let push = |batch: &mut Batch, i: u64| match step % 2 {
        0 => {
            let from = (i as u16 % 20_000).to_be_bytes();
            batch.delete_range(db, from, [from[0], from[1], 1]);
        }
        _ => {
            let from = (i as u32).to_be_bytes();
            batch.delete_range(db, from, [&from[..], &[1]].concat());
        }
    };
    db.write(largest(db, scale, step, push), WriteSync::No).map(drop)
}

fn batches_are_whole(db: &Db, _: &Scale, steps: u64) -> Result<(), String> {
    let there = markers(db, steps)?;
    let all = db.iter().map(|pair| pair.map(drop).map_err(|e| e.to_string()));
    let count = all.collect::<Result<Vec<()>, String>>()?.len() as u64;
    if count == there { Ok(()) } else { Err(format!("{count} keys for {there} batches")) }
}

/// Range deletes of a step.
const NESTED: u64 = 500;
const MIDDLE: u64 = 1 << 20;

fn number(i: u64) -> String {
    format!("n{i:010}")
}

/// Deletes ranges, each around those before it, with a snapshot between any two.
fn nested_ranges(db: &Db, _: &Scale, step: u64, held: &mut Vec<Snapshot>) -> Result<(), Error> {
    let (first, end) = (step * NESTED, (step + 1) * NESTED);
    // An aborted attempt may have left its last put uncovered, further out than this one gets.
    db.delete_range(number(MIDDLE + first), number(MIDDLE + end))?;
    for i in first..end {
        db.put(number(MIDDLE + i), b"hidden")?;
        db.put(number(MIDDLE - NESTED * 1000 - i), b"kept")?;
        db.delete_range(number(MIDDLE - i), number(MIDDLE + i + 1))?;
        held.push(db.snapshot());
    }
    db.put(marker(step), b"1")
}

fn nested_ranges_hide(db: &Db, _: &Scale, steps: u64) -> Result<(), String> {
    markers(db, steps)?;
    let kept = db.range(..number(MIDDLE - NESTED * 1000 + 1)).count() as u64;
    // An unacknowledged step may have begun: its last put may not be hidden yet.
    let rest = db.range(number(MIDDLE - NESTED * 1000 + 1)..number(u64::MAX / 4)).count() as u64;
    let (least, most) = (steps * NESTED, (steps + 1) * NESTED);
    if least <= kept && kept <= most && rest <= 1 {
        return Ok(());
    }
    Err(format!("{kept} of {least} to {most} keys are there, and {rest} that were deleted"))
}

/// Keys of a step.
const KEYS: u64 = 100;
/// The number of forms of keys, which alternate by step.
const KEY_FORMS: u64 = 3;
const KEY_BYTES: usize = 65_535;

/// Returns a key that differs from others at its end, at its beginning, or anywhere.
fn long_key(i: u64, form: u64) -> Vec<u8> {
    match form {
        0 => [vec![b'a'; KEY_BYTES - 8], format!("{i:08}").into_bytes()].concat(),
        1 => [format!("b{i:08}").into_bytes(), vec![b'x'; KEY_BYTES - 9]].concat(),
        _ => {
            let mut rng = Rng::new(i);
            let mut key = Vec::with_capacity(KEY_BYTES);
            key.push(b'c');
            while key.len() < KEY_BYTES {
                key.extend_from_slice(&rng.next_u64().to_le_bytes());
            }
            key.truncate(KEY_BYTES);
            key
        }
    }
}

fn longest_keys(db: &Db, _: &Scale, step: u64, _: &mut Vec<Snapshot>) -> Result<(), Error> {
    let (from, form) = (step / KEY_FORMS * KEYS, step % KEY_FORMS);
    for i in from..from + KEYS {
        db.put(long_key(i, form), i.to_le_bytes())?;
    }
    db.put(marker(step), b"1")
}

fn longest_keys_are_there(db: &Db, _: &Scale, steps: u64) -> Result<(), String> {
    markers(db, steps)?;
    for step in 0..steps {
        let (from, form) = (step / KEY_FORMS * KEYS, step % KEY_FORMS);
        for i in from..from + KEYS {
            let value = db.get(long_key(i, form)).map_err(|e| e.to_string())?;
            if value.as_deref() != Some(&i.to_le_bytes()[..]) {
                return Err(format!("key {i} of step {step} is not there"));
            }
        }
    }
    Ok(())
}

/// Keyspaces of a step.
const SPACES: u64 = 100;

fn space(i: u64) -> String {
    let mut name = String::new();
    let _ = write!(name, "space{i:06}");
    name
}

fn keyspaces(db: &Db, _: &Scale, step: u64, _: &mut Vec<Snapshot>) -> Result<(), Error> {
    for i in step * SPACES..(step + 1) * SPACES {
        db.keyspace(&space(i))?.put("key", i.to_le_bytes())?;
    }
    db.put(marker(step), b"1")
}

fn keyspaces_are_there(db: &Db, _: &Scale, steps: u64) -> Result<(), String> {
    markers(db, steps)?;
    for i in 0..steps * SPACES {
        let space = db.keyspace(&space(i)).map_err(|e| e.to_string())?;
        let value = space.get("key").map_err(|e| e.to_string())?;
        if value.as_deref() != Some(&i.to_le_bytes()[..]) {
            return Err(format!("the key of keyspace {i} is not there"));
        }
    }
    Ok(())
}
