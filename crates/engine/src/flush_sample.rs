//! The sample that flushes of a keyspace go by while its tree says nothing of where keys are.
//!
//! Owns: the pass over a memtable, and the sample that flushes share. Those that run at once see
//! one version: if each went by its own keys, each would be cut elsewhere, and their files would
//! tie partitions together. So the first of them that finds boundaries keeps its sample, for the
//! flushes that see the same version, until the boundaries are part of the tree.
//! Never does: decide where boundaries are (`plan/src/level0`).

use std::sync::Arc;
use windrow_base::key::trailer_seq;
use windrow_env::sync::Mutex;
use windrow_plan::axes::{Sample, Sampler};
use windrow_plan::tree::Version;
use windrow_plan::{Policy, Settings};
use windrow_read::lock_ranks;
use windrow_read::memtable::{MemCursor, Memtable};

/// Bytes of a table for an entry, besides its key and value.
const TRAILER_BYTES: usize = 8;

/// Boundaries of the partitions of level 0.
type Boundaries = Arc<[Vec<u8>]>;

/// The sample that flushes of a keyspace share.
pub(crate) struct FlushSample(Mutex<Option<Shared>>);

struct Shared {
    /// Those of the version that the sample was taken for.
    before: Boundaries,
    sample: Arc<Sample>,
}

impl Default for FlushSample {
    fn default() -> FlushSample {
        FlushSample(Mutex::new(lock_ranks::FLUSH_SAMPLE, None))
    }
}

impl FlushSample {
    /// The boundaries that the policy wants from a flush of this memtable on, if those of the
    /// version no longer fit.
    pub(crate) fn boundaries(
        &self,
        policy: &Policy,
        version: &Version,
        sizes: &Settings,
        memtable: &Memtable,
    ) -> Option<Boundaries> {
        let is_wanted = policy.wants_sample(version, sizes);
        let kept = self.kept(is_wanted.then_some(&version.boundaries));
        if !is_wanted {
            return policy.boundaries(version, sizes, None);
        }
        if let Some(sample) = kept {
            return policy.boundaries(version, sizes, Some(&sample));
        }
        let sample = Arc::new(sample_of(memtable));
        let boundaries = policy.boundaries(version, sizes, Some(&sample))?;
        let mut shared = self.0.lock();
        match &*shared {
            // Another flush was quicker.
            Some(kept) if Arc::ptr_eq(&kept.before, &version.boundaries) => {
                policy.boundaries(version, sizes, Some(&kept.sample))
            }
            _ => {
                *shared = Some(Shared { before: version.boundaries.clone(), sample });
                Some(boundaries)
            }
        }
    }

    /// The sample that another flush took for a version of these boundaries. Any other goes.
    fn kept(&self, boundaries: Option<&Boundaries>) -> Option<Arc<Sample>> {
        let mut shared = self.0.lock();
        let fits = |kept: &mut Shared| boundaries.is_some_and(|now| Arc::ptr_eq(&kept.before, now));
        if !shared.as_mut().is_some_and(fits) {
            *shared = None;
        }
        shared.as_ref().map(|kept| kept.sample.clone())
    }
}

/// A sample of what is published of a memtable.
fn sample_of(memtable: &Memtable) -> Sample {
    let mut sampler = Sampler::new(memtable.order().clone());
    let mut entries = memtable.cursor();
    entries.iter_mut().for_each(MemCursor::seek_first);
    let seq_max = memtable.seq_max();
    while let Some(cursor) = entries.as_mut().filter(|cursor| cursor.valid()) {
        if trailer_seq(cursor.trailer()) <= seq_max {
            let bytes = cursor.key().len() + cursor.value().len() + TRAILER_BYTES;
            sampler.see(cursor.key(), bytes as u64);
        }
        cursor.next();
    }
    sampler.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, Event, Options};
    use windrow_base::KeyOrder;
    use windrow_base::key::Kind;
    use windrow_env::sync::atomic::{AtomicU64, Ordering};
    use windrow_plan::tree::Edit;
    use windrow_skiplist::ChunkPool;

    fn memtable(keys: impl Iterator<Item = u32>) -> Memtable {
        let memtable = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
        for (seq, key) in (1..).zip(keys) {
            memtable.insert(Kind::Put, seq, &key.to_be_bytes(), &[7; 100]);
        }
        memtable
    }

    fn sizes() -> Settings {
        Settings { memtable_bytes: 100 << 10, file_bytes: 12 << 10, ..Settings::default() }
    }

    /// Two memtables with other keys each, flushed at once, were cut at other places each.
    #[test]
    fn flushes_of_one_version_are_cut_at_the_same_places() {
        let policy = Policy::preset("windrow").unwrap();
        let empty = Version::empty(KeyOrder::Bytewise);
        let (sizes, shared) = (sizes(), FlushSample::default());
        let of = |version: &Version, memtable: &Memtable| {
            shared.boundaries(&policy, version, &sizes, memtable)
        };
        let (even, odd) = (memtable((0..1000).map(|n| n * 2)), memtable((0..1000).map(|n| n * 3)));
        let first = of(&empty, &even).unwrap();
        assert!(first.len() > 32, "{}", first.len());
        assert_eq!(of(&empty, &odd), Some(first.clone()));
        // One that was flushed alone goes by its own keys.
        let alone = FlushSample::default().boundaries(&policy, &empty, &sizes, &odd);
        assert!(alone.is_some() && alone != Some(first.clone()));
        // They are part of the tree: nothing changes, and nothing is kept.
        let edit = Edit { boundaries: Some(first), ..Edit::default() };
        let version = empty.apply(&edit).unwrap();
        assert_eq!(of(&version, &odd), None);
        assert!(shared.0.lock().is_none());
    }

    /// Nobody will read them: their writes have failed.
    #[test]
    fn what_was_never_published_is_no_part_of_a_sample() {
        let memtable = memtable(0..1000);
        memtable.cut(500);
        assert_eq!(sample_of(&memtable).bytes(), 500 * (4 + 100 + 8));
        let few = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
        few.insert(Kind::RangeDelete, 1, b"a", b"z");
        assert_eq!(sample_of(&few), Sample::default());
    }

    /// The first flushes were uncut, and all partitions tied together until they had been
    /// merged: the first job read five memtables.
    #[test]
    fn a_load_has_partitions_from_its_first_flush_on() {
        let (env, _handles) = windrow_env::testing::env(1);
        let largest = Arc::new(AtomicU64::new(0));
        let seen = largest.clone();
        let mut options = Options::default();
        options.components.env = Some(env);
        options.components.listener = Some(Arc::new(move |event: &Event| {
            if let Event::MergeBegin { input_bytes, .. } = event {
                seen.fetch_max(*input_bytes, Ordering::Relaxed);
            }
        }));
        options.settings.set("memtable_bytes", "256KiB").unwrap();
        options.settings.set("file_bytes", "64KiB").unwrap();
        let db = Db::open_with("db", options).unwrap();
        let mut key = 1u64;
        for flush in 0..8 {
            for _ in 0..200 {
                key = key.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let value: Vec<u8> = (0..1000).map(|n| (key >> (n % 57)) as u8 ^ n as u8).collect();
                db.put(key.to_be_bytes(), value).unwrap();
            }
            db.delete_range(key.to_be_bytes(), (key.saturating_add(1 << 40)).to_be_bytes())
                .unwrap();
            db.flush().unwrap();
            db.wait_idle().unwrap();
            let (_, tree) = db.tree().into_iter().next().unwrap();
            assert!(tree.boundaries.len() > 16, "{flush}: {}", tree.boundaries.len());
        }
        db.verify().unwrap().into_result().unwrap();
        let largest = largest.load(Ordering::Relaxed);
        assert!(0 < largest && largest < 128 << 10, "a job of {largest} bytes");
        db.close().unwrap();
    }
}
