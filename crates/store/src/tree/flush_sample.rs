//! The sample by which flushes of a keyspace are cut while its tree does not show where keys are.
//!
//! Owns: the pass over a memtable, and the sample that flushes share. Flushes that run at once see
//! one version: if each went by its own keys, each would be cut elsewhere, and their files would
//! tie partitions together. So the first of them that finds boundaries keeps its sample, for the
//! flushes that see the same version, until the boundaries are part of the tree. Never does: decide
//! where boundaries are (`plan/src/level0`).

use std::sync::Arc;
use windrow_base::key::trailer_seq;
use windrow_env::sync::Mutex;
use windrow_plan::axes::{Sample, Sampler};
use windrow_plan::tree::Version;
use windrow_plan::{PlanSettings, Policy};
use windrow_read::lock_ranks;
use windrow_read::memtable::{MemCursor, Memtable};

/// Bytes that an entry takes in a table besides its key and value.
const TRAILER_BYTES: usize = 8;

/// Boundaries of the partitions of level 0.
type Boundaries = Arc<[Vec<u8>]>;

/// The sample that flushes of a keyspace share.
pub struct FlushSample(Mutex<Option<SharedSample>>);

struct SharedSample {
    /// The boundaries of the version for which the sample was taken.
    before: Boundaries,
    sample: Arc<Sample>,
}

impl Default for FlushSample {
    fn default() -> FlushSample {
        FlushSample(Mutex::new(lock_ranks::FLUSH_SAMPLE, None))
    }
}

impl FlushSample {
    /// Whether no sample is kept.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Returns the boundaries that the policy wants from a flush of this memtable on, if those of
    /// the version no longer fit.
    pub fn boundaries(
        &self,
        policy: &Policy,
        version: &Version,
        sizes: &PlanSettings,
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
                *shared = Some(SharedSample { before: version.boundaries.clone(), sample });
                Some(boundaries)
            }
        }
    }

    /// Returns the sample that another flush took for a version of these boundaries. Drops any
    /// other.
    fn kept(&self, boundaries: Option<&Boundaries>) -> Option<Arc<Sample>> {
        let mut shared = self.0.lock();
        let fits =
            |kept: &mut SharedSample| boundaries.is_some_and(|now| Arc::ptr_eq(&kept.before, now));
        if !shared.as_mut().is_some_and(fits) {
            *shared = None;
        }
        shared.as_ref().map(|kept| kept.sample.clone())
    }
}

/// Returns a sample of the published entries of a memtable.
pub fn sample_of(memtable: &Memtable) -> Sample {
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
