//! How hot the keys are that a job writes (L2SM): feeds the tree's HotMap and asks it for the
//! hotness of each output table.
//!
//! An update is noted once, when it leaves level 0. In a job from level 0 to level 1 those entries
//! are told from the entries of level 1 by their sequence numbers: level 1 has older ones. If that
//! does not hold (the newest entry of a wide level 1 file is newer than a narrow flush) an update
//! is missed, which costs nothing but precision.
//!
//! Hashes are passed on a few thousand at a time, so that the lock is never held per key. A tree
//! whose policy does not ask for it has no map, and a job then costs one test per key.
//!
//! Owns: the hashes that wait, and the hotness of the table at hand. Never does: decide which keys
//! are hot (`HotMap` does), or read a table.

use std::mem::take;
use windrow_base::SeqNo;
use windrow_base::key;
use windrow_env::sync::Mutex;
use windrow_format::filter;
use windrow_plan::Merge;
use windrow_plan::hotness::HotMap;

/// Hashes passed on under one lock.
const BATCH: usize = 4096;

/// The heat of one job's keys.
pub struct Heat<'a> {
    map: &'a Mutex<HotMap>,
    /// Entries above this are updates that leave level 0; `None`: none does.
    updates_above: Option<SeqNo>,
    observed: Vec<u64>,
    written: Vec<u64>,
    /// The hotness of the table at hand, without `written`.
    hotness: u64,
}

impl<'a> Heat<'a> {
    /// Makes the heat of a merge's keys in this tree's map.
    pub fn new(map: &'a Mutex<HotMap>, merge: &Merge) -> Heat<'a> {
        let from_level0 = merge.inputs.first().is_some_and(|i| i.level == 0);
        let leaves_level0 = from_level0 && merge.output_level > 0;
        let older = merge.files().filter(|(level, _, _)| *level > 0).map(|(_, _, f)| f.seq_max);
        let updates_above = leaves_level0.then(|| older.max().unwrap_or(0));
        Heat { updates_above, ..Heat::known(map) }
    }

    /// Makes the heat of keys whose updates are noted already.
    pub fn known(map: &'a Mutex<HotMap>) -> Heat<'a> {
        Heat { map, updates_above: None, observed: Vec::new(), written: Vec::new(), hotness: 0 }
    }

    /// Notes an entry of the inputs.
    #[inline]
    pub fn read(&mut self, user_key: &[u8], trailer: u64) {
        if self.updates_above.is_some_and(|above| key::trailer_seq(trailer) > above) {
            self.observed.push(filter::hash(user_key));
            if self.observed.len() >= BATCH {
                self.pass_on();
            }
        }
    }

    /// Notes a key of the table at hand.
    #[inline]
    pub fn wrote(&mut self, user_key: &[u8]) {
        self.written.push(filter::hash(user_key));
        if self.written.len() >= BATCH {
            self.pass_on();
        }
    }

    /// Ends the table at hand, and returns its hotness.
    pub(crate) fn end_table(&mut self) -> u64 {
        self.pass_on();
        take(&mut self.hotness)
    }

    fn pass_on(&mut self) {
        let mut map = self.map.lock();
        self.observed.drain(..).for_each(|hash| map.observe(hash));
        self.hotness = self.hotness.saturating_add(map.hotness(self.written.drain(..)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windrow_plan::tree::{File, Part};
    use windrow_plan::{Input, Reason};

    fn merge(output_level: u32) -> Merge {
        let input = |level, part, seq_max| Input {
            level,
            part,
            files: vec![Arc::new(File { seq_max, ..File::default() })],
        };
        Merge {
            inputs: vec![input(0, Part::SstLog, 200), input(1, Part::Run, 100)],
            output_level,
            output_part: if output_level == 0 { Part::SstLog } else { Part::Run },
            output_epoch: output_level.is_multiple_of(2) as u64,
            bounds: (b"a".to_vec(), b"z".to_vec(), false),
            reason: Reason::Manual,
            cursor: None,
        }
    }

    #[test]
    fn an_update_counts_once_when_it_leaves_level_0() {
        let map = Mutex::new(windrow_read::lock_ranks::HOT_MAP, HotMap::new(1 << 16));
        let mut heat = Heat::new(&map, &merge(1));
        for (key, seq) in [(b"hot", 150), (b"hot", 120), (b"new", 110), (b"old", 100)] {
            heat.read(key, key::trailer(seq, key::Kind::Put));
        }
        for key in [b"hot", b"new", b"old"] {
            heat.wrote(key);
        }
        // 2^2 + 2^1; the entry from level 1 was counted before.
        assert_eq!(heat.end_table(), 6);
        // The next table begins at zero.
        heat.wrote(b"new");
        assert_eq!(heat.end_table(), 2);
        assert_eq!(heat.end_table(), 0);
    }

    #[test]
    fn other_jobs_count_nothing_but_know_what_is_hot() {
        let map = Mutex::new(windrow_read::lock_ranks::HOT_MAP, HotMap::new(1 << 16));
        Heat::new(&map, &merge(1)).map.lock().observe(filter::hash(b"hot"));
        let mut within_level0 = Heat::new(&map, &merge(0));
        within_level0.read(b"hot", key::trailer(150, key::Kind::Put));
        within_level0.wrote(b"hot");
        assert_eq!(within_level0.end_table(), 2);
    }
}
