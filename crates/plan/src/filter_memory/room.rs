//! The part of the tree's memory that the filters of a job's outputs may take.
//!
//! Owns: the terms, the pool, and the memory that is kept free. Never does: decide the bits of one
//! filter (`budget.rs`).

use super::floors::{Floors, drawn};
use super::job::FilterJob;
use super::solver::Load;
use crate::tree::{File, Part};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

/// Part of the memory that merges leave to files written above them. Files of the upper levels are
/// small, asked by every lookup, and come and go; a flush frees no filter, and would get none for
/// its tables if deep files held it all. The memory that those levels hold already is part of it.
const KEPT: f64 = 0.125;

/// The part of the kept memory that must be free however much the upper levels hold: the next flush
/// needs it.
const KEPT_FREE: f64 = 0.25;

/// Tables whose keys' share of the memory is at most this, 16 lines, have that share whatever others
/// hold. A filter is made of whole lines, so that by the bytes a few of them would use up the memory
/// that many keys elsewhere are entitled to, and the rest would have none: of values of 64 KiB, 30
/// fill a table. And what rounding takes from a filter of five lines, those of values of 16 KiB in a table
/// of 4 MiB, lets twice as many absent keys through.
const SMALL_BITS: f64 = 8192.0;

/// Recorded queries that the assumption without statistics is worth: fewer than that say
/// little of thousands of files.
pub(super) const PRIOR_QUERIES: f64 = 256.0;

/// How a policy gives its memory away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Terms {
    /// Bits per key of the tree, which filters never pass (F2).
    pub(super) bits: f64,
    /// Bits per key that filters written now should have on average: fewer where memory lacks.
    /// Filters of before may have more, and take none of it away.
    pub(super) aim: f64,
    /// Whether estimates count.
    pub(super) learns: bool,
    /// Part of a level's memory that stays with it; 0 where all moves by the price.
    pub(super) stays: f64,
}

impl Terms {
    /// The terms where there is memory for all of it.
    pub(super) fn new(bits: f64, learns: bool, stays: f64) -> Terms {
        Terms { bits, aim: bits, learns, stays }
    }

    /// Whether all memory moves by the price.
    pub(super) fn moves_all(&self) -> bool {
        self.stays == 0.0
    }

    /// The terms where there is memory for `bits_max` bits per key. The fewer bits there are, the
    /// more is lost where levels are not as full as expected, and the more of them the price moves.
    pub(super) fn with_memory_for(self, bits_max: f64) -> Terms {
        match bits_max < self.bits {
            true => Terms { aim: bits_max, stays: self.stays * bits_max / self.bits, ..self },
            false => self,
        }
    }

    /// Whether a table of `entries` entries is small. In the papers no table is.
    pub(super) fn is_small(&self, entries: u64) -> bool {
        self.stays > 0.0 && entries as f64 * self.bits <= SMALL_BITS
    }

    /// Returns the bits of the memory that a table's filter holds: of a small one its share at
    /// most.
    pub(super) fn held_bits(&self, file: &File) -> f64 {
        let bits = file.filter_bytes as f64 * 8.0;
        match self.is_small(file.entries) {
            true => bits.min(file.entries as f64 * self.bits),
            false => bits,
        }
    }
}

/// A file that stays.
pub(super) struct Survivor {
    pub(super) level: u32,
    pub(super) load: Load,
    /// Part of the key space that it covers.
    pub(super) share: f64,
    /// Of its filter.
    pub(super) held_bits: f64,
}

/// The tree after a job, as its filters see it.
pub(super) struct After {
    /// Level and expected load of each output.
    pub(super) outputs: Vec<(u32, Load)>,
    pub(super) survivors: Vec<Survivor>,
    /// Entries that are written at least.
    pub(super) written: f64,
}

impl After {
    /// Outputs first, then survivors.
    pub(super) fn loads(&self) -> Vec<(u32, Load)> {
        let survivors = self.survivors.iter().map(|file| (file.level, file.load));
        self.outputs.iter().copied().chain(survivors).collect()
    }

    /// Entries of the whole tree.
    pub(super) fn entries(&self) -> f64 {
        self.written + self.survivors.iter().map(|file| file.load.entries).sum::<f64>()
    }

    /// Bits that filters hold in all levels above this one.
    fn held_above(&self, level: u32) -> f64 {
        self.survivors.iter().filter(|file| file.level < level).map(|file| file.held_bits).sum()
    }

    fn held(&self) -> f64 {
        self.held_above(u32::MAX)
    }

    /// Returns the bits that the survivors have from the pool. Where memory lacks, longer filters
    /// of before count as if they were written now, `priced` bits per key long.
    fn drawn(&self, floors: &Floors, priced: &dyn Fn(&Load) -> f64) -> f64 {
        let of_file = |file: &Survivor| {
            let Survivor { level, load, held_bits, .. } = file;
            let counted = held_bits.min(load.entries * priced(load));
            drawn(counted, load.entries * floors.bits(*level, load))
        };
        self.survivors.iter().map(of_file).sum()
    }
}

/// Memory of a job, in bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FilterRoom {
    /// Of the whole tree.
    pub(super) memory: f64,
    /// Bits that the outputs have whatever others hold.
    pub(super) floor: f64,
    /// Bits that the outputs may take.
    pub(super) left: f64,
}

impl FilterRoom {
    /// Returns the parts of the memory that a job leaves free for flushes, and that it leaves to
    /// upper levels.
    fn kept(terms: Terms, job: &FilterJob<'_>) -> (f64, f64) {
        // Merges leave room to level 0, those deeper down to level 1 as well.
        let kept = match terms.learns && terms.moves_all() {
            true => KEPT * f64::from(job.output.0.min(2)) / 2.0,
            false => 0.0,
        };
        (kept * KEPT_FREE, kept)
    }

    /// Returns the bits of all filters if they were written now, but for those that merges keep
    /// free for flushes.
    pub(super) fn aim(terms: Terms, job: &FilterJob<'_>, after: &After) -> f64 {
        terms.aim * after.entries() * (1.0 - FilterRoom::kept(terms, job).0)
    }

    /// Returns the bits that all filters may take next to the longer ones of survivors: the aim, or,
    /// where those hold more than that, as many as the job may use again next to them.
    pub(super) fn with_longer(terms: Terms, job: &FilterJob<'_>, after: &After) -> f64 {
        FilterRoom::aim(terms, job, after).max(after.held() + reusable(terms, job))
    }

    /// Computes the room of a job on a tree. `priced` are the bits per key of a filter that is
    /// written now.
    pub(super) fn new(
        terms: Terms,
        job: &FilterJob<'_>,
        after: &After,
        (floors, priced): (&Floors, &dyn Fn(&Load) -> f64),
    ) -> FilterRoom {
        let memory = terms.bits * after.entries();
        let floor = floors.sum(&after.outputs);
        let (free, kept) = FilterRoom::kept(terms, job);
        let above = after.held_above(job.output.0.min(2));
        let room = (kept * memory - above).max(free * memory);
        let unheld = memory - after.held() - job.reserved_bits;
        // Above the floors is a pool. The filters of the survivors hold a part of it.
        let shared = if terms.moves_all() { memory } else { terms.aim * after.entries() };
        let drawn = after.drawn(floors, priced);
        let pool = shared - floors.sum(&after.loads()) - drawn - job.reserved_bits;
        let again = if terms.moves_all() { reusable(terms, job) } else { 0.0 };
        let left = (floor + (pool - room).max(0.0)).max(again).min(unheld).max(0.0);
        debug_invariant!(F2, left >= 0.0 && !left.is_nan(), "{left} bits left");
        FilterRoom { memory, floor, left }
    }

    /// Returns by how many bits a job that takes `allowance` may draw the pool down, at worst.
    pub(super) fn growth(
        &self,
        (terms, floors): (Terms, &Floors),
        job: &FilterJob<'_>,
        written: f64,
        allowance: f64,
    ) -> f64 {
        let freed = |(level, _, file): &(u32, Part, Arc<File>)| {
            drawn(terms.held_bits(file), floors.mean(*level) * file.entries as f64)
        };
        let freed: f64 = job.inputs.iter().map(freed).sum();
        // Entries that the job may drop take their addition to the pool with them: most where their
        // level has the least.
        let entries: f64 = job.inputs.iter().map(|(_, _, file)| file.entries as f64).sum();
        let dropped = (entries - written).max(0.0);
        let levels = job.inputs.iter().map(|(level, _, _)| *level).chain([job.output.0]);
        let least = levels.map(|level| floors.mean(level)).fold(f64::INFINITY, f64::min);
        let with_them = ((terms.bits - least) * dropped).max(0.0);
        (drawn(allowance, self.floor) + with_them - freed).max(0.0)
    }
}

/// Returns the bits that a job may use again of those that its inputs free, whatever is kept. Else a
/// job after which less than that was free would make up for all of it, and write tables without a
/// filter.
fn reusable(terms: Terms, job: &FilterJob<'_>) -> f64 {
    let freed: f64 = job.inputs.iter().map(|(_, _, file)| terms.held_bits(file)).sum();
    freed * (1.0 - KEPT)
}
