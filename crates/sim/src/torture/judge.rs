//! The judge: whether an opened database has the contents that its ledger requires.
//!
//! Each writer's keys must be those after some number of its batches: whole, in order, none left
//! out, independent of other writers. The least number depends on the event. After the death of a
//! process it is all acknowledged batches. After a power cut it is all synced ones, and then a
//! batch is present only with all that were committed before it. Owns: those rules. Never does:
//! change a database.

use super::ledger::Ack;
use super::worker::number_in;
use super::workload::{Expected, KEYSPACES, key};
use windrow::{Db, Keyspace};
use windrow_env::testing::Rng;

/// The part of the machine that survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// The page cache survives, and so does every acknowledged batch.
    Everything,
    /// The device survives, and so do every synced batch and a prefix of the commits.
    Synced,
}

/// The acknowledgements that a session reported to its parent.
#[derive(Clone, Debug)]
pub struct Told {
    /// Number of the process that wrote.
    pub session: u64,
    /// Acknowledged before the event that ended it.
    pub before: Vec<Vec<Ack>>,
    /// Acknowledged at any time; one more batch of each writer may be under way.
    pub after: Vec<Vec<Ack>>,
}

/// The counts of a judgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Batches that had been acknowledged.
    pub acknowledged: u64,
    /// Those of them promised to survive a power cut.
    pub synced: u64,
    /// Acknowledged, not promised, and gone.
    pub gone: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: Tally) {
        self.acknowledged += other.acknowledged;
        self.synced += other.synced;
        self.gone += other.gone;
    }
}

/// Judges an open database, and advances `expected` to its contents.
///
/// # Errors
/// The first fault, in words.
pub fn judge(
    db: &Db,
    expected: &mut Expected,
    told: Option<&Told>,
    survives: Survives,
) -> Result<Tally, String> {
    let keyspaces = KEYSPACES
        .iter()
        .map(|name| db.open_keyspace(name).map_err(|e| e.to_string()))
        .collect::<Result<Vec<_>, _>>()?;
    let default = keyspaces[0].as_ref().ok_or("there is no default keyspace")?;
    let mut numbers = Vec::new();
    for writer in 0..expected.shape.writers {
        let value = default.get(key(writer, 0)).map_err(|e| e.to_string())?;
        numbers.push(value.as_deref().map_or(0, number_in));
    }
    let mut tally = Tally::default();
    if let Some(told) = told {
        tally = check_bounds(&expected.numbers, &numbers, told, survives)?;
        for (writer, &number) in numbers.iter().enumerate() {
            expected.advance(told.session, writer as u32, number);
        }
    } else if numbers != expected.numbers {
        return Err(format!("{:?} were there, and now {numbers:?}", expected.numbers));
    }
    for (at, keyspace) in keyspaces.iter().enumerate() {
        match keyspace {
            Some(keyspace) => compare(keyspace, expected, at)?,
            None if expected.content[at].is_empty() => {}
            None => return Err(format!("the keyspace {} is gone", KEYSPACES[at])),
        }
    }
    Ok(tally)
}

/// Checks that each writer's number is an allowed one.
fn check_bounds(
    begin: &[u64],
    found: &[u64],
    told: &Told,
    survives: Survives,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    // Everything committed up to here was promised, by any writer.
    let last_synced = |acks: &Vec<Ack>| acks.iter().rev().find(|a| a.synced).map(|a| a.seq);
    let promised = told.before.iter().filter_map(last_synced).max().unwrap_or(0);
    let (mut newest_kept, mut oldest_gone) = ((0, 0), (u64::MAX, 0));
    for (writer, (&begin, &found)) in begin.iter().zip(found).enumerate() {
        let (before, after) = (&told.before[writer], &told.after[writer]);
        let needed = match survives {
            Survives::Everything => before.len(),
            Survives::Synced => before.iter().take_while(|ack| ack.seq <= promised).count(),
        };
        let (least, most) = (begin + needed as u64, begin + after.len() as u64 + 1);
        if !(least <= found && found <= most) {
            return Err(format!(
                "writer {writer} has {found} batches, and must have {least} to {most}: {begin} \
                 were there before, {} were acknowledged, {needed} promised",
                after.len()
            ));
        }
        let kept = ((found - begin) as usize).min(after.len());
        let (kept, gone) = after.split_at(kept);
        newest_kept = newest_kept.max(kept.last().map_or((0, 0), |ack| (ack.seq, writer)));
        oldest_gone = oldest_gone.min(gone.first().map_or((u64::MAX, 0), |ack| (ack.seq, writer)));
        tally.acknowledged += after.len() as u64;
        tally.synced += needed as u64;
        tally.gone += gone.len() as u64;
    }
    if oldest_gone.0 < newest_kept.0 {
        return Err(format!(
            "a hole: writer {}'s batch at sequence number {} is gone, and writer {}'s at {} is there",
            oldest_gone.1, oldest_gone.0, newest_kept.1, newest_kept.0
        ));
    }
    Ok(tally)
}

/// Compares `count` keys, by gets, with the expected contents.
///
/// # Errors
/// The first difference.
pub fn check_some(db: &Db, expected: &Expected, rng: &mut Rng, count: u64) -> Result<(), String> {
    for _ in 0..count {
        let at = rng.below(KEYSPACES.len() as u64) as usize;
        let writer = rng.below(u64::from(expected.shape.writers)) as u32;
        let slot = rng.below(1 + expected.shape.slots);
        let keyspace = db.open_keyspace(KEYSPACES[at]).map_err(|e| e.to_string())?;
        let keyspace = keyspace.ok_or_else(|| format!("the keyspace {} is gone", KEYSPACES[at]))?;
        let found = keyspace.get(key(writer, slot)).map_err(|e| e.to_string())?;
        let want = expected.content[at].get(&(writer, slot)).map(|value| value.bytes());
        if found.as_deref() != want.as_deref() {
            return Err(format!("{} has another slot {slot} of writer {writer}", KEYSPACES[at]));
        }
    }
    Ok(())
}

/// Compares a full scan with the expected contents.
fn compare(keyspace: &Keyspace, expected: &Expected, at: usize) -> Result<(), String> {
    let name = KEYSPACES[at];
    let mut wanted = expected.content[at].iter();
    for item in keyspace.iter() {
        let (found, value) = item.map_err(|e| format!("a scan of {name}: {e}"))?;
        let shown = String::from_utf8_lossy(&found).into_owned();
        let Some((&(writer, slot), want)) = wanted.next() else {
            return Err(format!("{name} holds {shown}, which was never put or was deleted"));
        };
        let want_key = key(writer, slot);
        if found != want_key[..] {
            let want_key = String::from_utf8_lossy(&want_key).into_owned();
            return Err(format!("{name} holds {shown} where {want_key} must come next"));
        }
        if value != want.bytes()[..] {
            return Err(format!("{name} holds another value of {shown} than was put last"));
        }
    }
    match wanted.next() {
        None => Ok(()),
        Some((&(writer, slot), _)) => {
            Err(format!("{name} lacks {}", String::from_utf8_lossy(&key(writer, slot))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(list: &[(u64, bool)]) -> Vec<Ack> {
        list.iter().map(|&(seq, synced)| Ack { seq, synced }).collect()
    }

    fn told(lists: &[&[(u64, bool)]]) -> Told {
        let acks: Vec<_> = lists.iter().map(|list| acks(list)).collect();
        Told { session: 1, before: acks.clone(), after: acks }
    }

    #[test]
    fn the_death_of_a_process_loses_nothing_that_was_acknowledged() {
        let told = told(&[&[(3, false), (9, false)], &[(6, false)]]);
        let bounds = |found: &[u64]| check_bounds(&[5, 0], found, &told, Survives::Everything);
        assert!(bounds(&[7, 1]).is_ok());
        assert!(bounds(&[8, 2]).is_ok(), "what was on its way may have arrived");
        assert!(bounds(&[6, 1]).is_err(), "lost");
        assert!(bounds(&[9, 1]).is_err(), "never written");
    }

    #[test]
    fn a_power_cut_leaves_a_prefix_with_all_that_was_synced() {
        let told = told(&[&[(3, false), (9, true), (12, false)], &[(6, false), (15, false)]]);
        let bounds = |found: &[u64]| check_bounds(&[0, 0], found, &told, Survives::Synced);
        assert!(bounds(&[2, 1]).is_ok());
        assert!(bounds(&[3, 1]).is_ok());
        assert!(bounds(&[2, 0]).is_err(), "6 was committed before 9, which was synced");
        assert!(bounds(&[1, 1]).is_err(), "9 was synced");
        assert!(bounds(&[2, 2]).is_err(), "15 without 12 is a hole");
    }
}
