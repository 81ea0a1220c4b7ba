//! How `memory_bytes` is split: pure arithmetic, no state.
//!
//! Half goes to memtables, since they set how much is merged, and an eighth to merges. A sixteenth, at
//! most 4 MiB, is for memory that nobody counts. The rest serves reads. All but the reads' share is
//! capped: beyond a point, memory helps nothing but the cache.
//!
//! Reads are lent the memory that memtables and merges do not use. An active memtable counts for
//! the bytes in it and up to two eighths of a memtable more: the writer that enters the next eighth, or
//! freezes a memtable, takes memory back before it fills it. Each merge that runs counts for its
//! part. Reads have the loan once they filled the cache again while writers took at most an eighth as
//! much, and as long as a memtable takes five seconds to fill. Else active memtables count as
//! full, and all merges as running. A flushed memtable that a reader still holds counts as the reader's;
//! meanwhile memtables are frozen smaller, at a quarter of their size at least. The counts are read
//! under the block cache's resize lock, so that the last thread sets the latest.
//!
//! Owns: the shares of memtables, open tables, block cache and merges, and
//! that they never add up to more than was given (promise P18).
//! Never does: count the memory in use; each share's owner charges against it.

use crate::options::{MEMTABLES_MIN, Settings};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Larger memtables were not worth their longer flushes and slower inserts
/// (the skiplist misses the processor's caches more).
const MEMTABLE_BYTES_CAP: u64 = 64 * MIB;

/// One fills while one is flushed, which takes a fraction of the time. Three of
/// two thirds the size take as much memory and merge more often: a load of
/// ten million records ran at 366 thousand a second with them and at 494 with
/// two (budget 192 MiB, direct I/O), its slowest put 3 ms and 25.
const MEMTABLES_AIM: u64 = 2;
/// More than this many frozen memtables only make gets slower.
const MEMTABLES_CAP: u64 = 4;

/// Memory is shared out again whenever the active memtables have grown by an eighth of a memtable.
const STEPS: u64 = 8;

/// The most that one merge can use: input buffers of a dozen tables, the output's
/// buffer, and the filter and index it builds.
const MERGE_BYTES_PER_THREAD_CAP: u64 = 16 * MIB;

/// Small allocations that nobody counts, and the part of them that the general allocator keeps for
/// each thread: 4 MiB with sixteen threads, whatever the budget is.
const UNCOUNTED_PART: u64 = 16;
const UNCOUNTED_BYTES_CAP: u64 = 4 * MIB;

/// A memtable is asked for its entries' bytes, and has begun a chunk of a mebibyte beyond them.
const BEGUN_PART: u64 = 16;
const BEGUN_BYTES_CAP: u64 = MIB;

/// Most memory of memtables that one batch may take: with the default shares, all
/// that memtables have.
pub const fn batch_memory_max(memory_bytes: u64) -> u64 {
    memory_bytes / 2
}

/// The shares of one database's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Size at which a memtable is frozen.
    pub memtable_bytes: u64,
    /// Most memtables at a time, the one being filled included.
    pub memtables_max: u32,
    /// The reads' share while all memtables are full: open tables (indexes,
    /// filters, tombstones) and the block cache. [`Shares::reads_bytes`] adds
    /// the loan of the memtables.
    pub(crate) reads_bytes_min: u64,
    /// Buffers of all running merges and flushes.
    pub merge_bytes: u64,
    /// Memory that is taken without being counted.
    pub(crate) uncounted_bytes: u64,
    /// The block cache never grows beyond this.
    pub cache_bytes_max: u64,
}

/// Bytes in use now of the shares that are lent to reads as far as they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// [`Shares::memtables_used`].
    pub memtables_bytes: u64,
    /// [`Shares::merges_used`].
    pub merge_bytes: u64,
}

/// Splits a memory budget.
pub struct Budget;

impl Budget {
    #[cfg(test)]
    fn split(settings: &Settings) -> Shares {
        Budget::split_for(settings, u64::MAX)
    }

    /// The shares that follow from `settings`. Total for any settings, valid
    /// or not: the sum of the shares is at most `memory_bytes`. Memtables are
    /// as large as suits the policy, unless the user asked for a size.
    pub fn split_for(settings: &Settings, memtable_bytes_suited: u64) -> Shares {
        let memory = settings.memory_bytes;
        let cap = memtable_bytes_suited.min(MEMTABLE_BYTES_CAP);
        let (memtable_bytes, memtables_max) = memtables(settings, cap);
        let threads = u64::from(settings.background_threads.max(1));
        let merge_bytes = (memory / 8).min(MERGE_BYTES_PER_THREAD_CAP.saturating_mul(threads));
        let begun_bytes = (memtable_bytes / BEGUN_PART).min(BEGUN_BYTES_CAP) * memtables_max;
        let uncounted_bytes = (memory / UNCOUNTED_PART).min(UNCOUNTED_BYTES_CAP) + begun_bytes;
        let others = memtable_bytes * memtables_max + merge_bytes + uncounted_bytes;
        Shares {
            memtable_bytes,
            memtables_max: memtables_max as u32,
            reads_bytes_min: memory - others,
            merge_bytes,
            uncounted_bytes,
            cache_bytes_max: match settings.cache_bytes {
                0 => u64::MAX,
                asked => asked,
            },
        }
    }
}

/// Size and number of memtables. A size that was asked for is kept, and their
/// number follows; else both follow from half the memory.
fn memtables(settings: &Settings, cap_bytes: u64) -> (u64, u64) {
    let half = settings.memory_bytes / 2;
    let bytes = if settings.memtable_bytes == 0 {
        let even = (half / MEMTABLES_AIM).min(cap_bytes);
        // Whole steps: an odd size would only make figures hard to compare.
        let step = if even >= 16 * MIB { MIB } else { 64 * KIB };
        even / step * step
    } else {
        settings.memtable_bytes.min(settings.memtable_bytes_max())
    };
    let number = half.checked_div(bytes).unwrap_or(0);
    (bytes, number.clamp(MEMTABLES_MIN, MEMTABLES_CAP))
}

impl Shares {
    /// The most that all memtables may hold together, in bytes. A write that would pass
    /// it waits for a flush: a batch can be larger than one memtable.
    pub fn memtables_bytes(&self) -> u64 {
        self.memtable_bytes * u64::from(self.memtables_max)
    }

    /// The most that memtables ever hold: a batch may be larger than their share where
    /// the user asked for a small one.
    pub fn memtables_bytes_max(&self, memory_bytes: u64) -> u64 {
        self.memtables_bytes().max(batch_memory_max(memory_bytes))
    }

    /// Bytes by which active memtables grow from one time that memory is shared out to the next.
    pub fn step_bytes(&self) -> u64 {
        (self.memtable_bytes / STEPS).max(1)
    }

    /// Counts active memtables that hold `active_bytes`: they fill the step at hand before
    /// memory is shared out again, and a part of the next one before reads have given it up.
    pub fn active_counted(&self, active_bytes: u64) -> u64 {
        let step = self.step_bytes();
        let ahead = (active_bytes / step + 2).saturating_mul(step);
        ahead.min(self.memtable_bytes.max(active_bytes))
    }

    /// Counts memtables by their bytes now, and by those that they come to hold before memory is
    /// shared out again. A large batch has more in them.
    pub fn memtables_used(&self, active_bytes: u64, frozen_bytes: u64, memory_bytes: u64) -> u64 {
        let filled = self.active_counted(active_bytes).saturating_add(frozen_bytes);
        // Beyond that a write waits for a flush.
        let most = self.memtables_bytes_max(memory_bytes);
        filled.min(most).max(active_bytes.saturating_add(frozen_bytes))
    }

    /// Buffers of `merges` running merges out of at most `merges_max`, and of a flush next to them.
    pub fn merges_used(&self, merges: usize, merges_max: usize) -> u64 {
        let (jobs, jobs_max) = (merges.min(merges_max) as u64 + 1, merges_max as u64 + 1);
        self.merge_bytes / jobs_max * jobs
    }

    /// With all memtables full, and all merges running.
    pub fn all_in_use(&self) -> InUse {
        InUse { memtables_bytes: self.memtables_bytes(), merge_bytes: self.merge_bytes }
    }

    /// With one memtable full, and all merges running.
    pub fn one_in_use(&self) -> InUse {
        InUse { memtables_bytes: self.memtable_bytes, merge_bytes: self.merge_bytes }
    }

    /// While reads alone run, after some writes or others: half a memtable, and no merge.
    pub fn at_rest(&self) -> InUse {
        let memtables_bytes = self.active_counted(self.memtable_bytes / 2);
        InUse { memtables_bytes, merge_bytes: self.merges_used(0, 1) }
    }

    /// Size at which a memtable is frozen while readers hold `retired_bytes` of flushed ones:
    /// these have their part of the memtables' share. A reader that goes on for hours costs
    /// smaller tables and not the budget; a quarter is left, so that writers go on.
    pub(crate) fn memtable_bytes_left(&self, retired_bytes: u64) -> u64 {
        let left = self.memtables_bytes().saturating_sub(retired_bytes);
        (left / u64::from(self.memtables_max)).max(self.memtable_bytes / 4)
    }

    /// The shares while memtables hold more than theirs by this much: the reads' is less.
    pub(crate) fn with_memtables_beyond(&self, beyond_bytes: u64) -> Shares {
        let given = beyond_bytes.min(self.reads_bytes_min / 4 * 3);
        Shares { reads_bytes_min: self.reads_bytes_min - given, ..*self }
    }

    /// Memory of open tables and the block cache together.
    pub fn reads_bytes(&self, used: InUse) -> u64 {
        self.reads_bytes_min
            + self.memtables_bytes().saturating_sub(used.memtables_bytes)
            + self.merge_bytes.saturating_sub(used.merge_bytes)
    }

    /// The part of it that open tables may use. Most: a block that is not cached costs
    /// one read, a table that is not open costs several larger ones.
    pub fn tables_limit_bytes(&self, used: InUse) -> u64 {
        self.reads_bytes(used) / 4 * 3
    }

    /// Room of the block cache and of what readers hold while open tables use `tables_used_bytes`: all
    /// that they leave, in sixteenths of their limit, so that it is not
    /// resized for every table opened. One sixteenth stays free for tables
    /// that are opened before the cache has given way.
    pub fn cache_target_bytes(&self, used: InUse, tables_used_bytes: u64) -> u64 {
        let limit = self.tables_limit_bytes(used);
        let step = (limit / 16).max(1);
        let kept = (tables_used_bytes.saturating_add(step)).div_ceil(step).saturating_mul(step);
        self.reads_bytes(used) - kept.min(limit)
    }

    /// Sum of all shares, in bytes.
    #[cfg(test)]
    fn total_bytes(&self) -> u64 {
        self.memtables_bytes() + self.reads_bytes_min + self.merge_bytes + self.uncounted_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(memory_bytes: u64) -> Shares {
        Budget::split(&Settings { memory_bytes, ..Settings::default() })
    }

    #[test]
    fn the_middle() {
        let shares = split(192 * MIB);
        assert_eq!((shares.memtable_bytes, shares.memtables_max), (48 * MIB, 2));
        assert_eq!(shares.reads_bytes_min, 66 * MIB);
        assert_eq!((shares.merge_bytes, shares.uncounted_bytes), (24 * MIB, 6 * MIB));
    }

    #[test]
    fn both_ends_are_usable() {
        let small = split(8 * MIB);
        assert!(small.memtable_bytes >= MIB && small.memtables_max >= 2, "{small:?}");
        assert!(small.reads_bytes_min >= 2 * MIB, "{small:?}");
        assert!(small.merge_bytes >= 512 * KIB, "{small:?}");
        let large = split(1 << 40);
        assert_eq!(large.memtables_bytes(), 256 * MIB);
        assert!(large.reads_bytes_min >= (1 << 40) / 100 * 99, "{large:?}");
    }

    /// Sizes that a linear walk of 8 MiB to 1 TiB would take too long for:
    /// every power of two with its neighbours, and 100,000 random ones.
    fn sizes() -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let random = std::iter::repeat_with(move || {
            // xorshift64; the shift spreads the sizes over all magnitudes.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (8 << 20) + (state >> 24 >> (state % 18))
        });
        let edges = (23..=40).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        edges.chain(random.take(100_000)).filter(|size| (8 << 20..=1 << 40).contains(size))
    }

    #[test]
    fn shares_never_exceed_the_memory() {
        for memory_bytes in sizes() {
            for background_threads in [1, 2, 16, 256] {
                for asked in [0, 64 * KIB, 3 * MIB + 1, 64 * MIB, 2 << 30] {
                    let settings = Settings {
                        memory_bytes,
                        background_threads,
                        memtable_bytes: asked,
                        ..Settings::default()
                    };
                    let shares = Budget::split(&settings);
                    // Not below either: what one share's rounding leaves, another takes.
                    assert_eq!(shares.total_bytes(), memory_bytes, "{settings:?} {shares:?}");
                    assert!(shares.memtable_bytes > 0 && shares.reads_bytes_min > 0, "{shares:?}");
                }
            }
        }
    }

    #[test]
    fn memtables_grow_with_memory() {
        let mut last = 0;
        for step in 0..4_096 {
            let total = split((8 << 20) + step * (1 << 18)).memtables_bytes();
            assert!(total >= last, "step {step}");
            last = total;
        }
    }

    #[test]
    fn invalid_settings_still_split() {
        for memory_bytes in [0, 1, 4_095, u64::MAX] {
            for memtable_bytes in [0, 1, u64::MAX] {
                let settings = Settings {
                    memory_bytes,
                    memtable_bytes,
                    background_threads: 0,
                    ..Settings::default()
                };
                assert!(Budget::split(&settings).total_bytes() <= memory_bytes);
            }
        }
    }

    #[test]
    fn the_largest_batch_fits() {
        for memory_bytes in sizes() {
            for asked in [0, 64 * KIB, 3 * MIB + 1, 64 * MIB] {
                let settings =
                    Settings { memory_bytes, memtable_bytes: asked, ..Settings::default() };
                let shares = Budget::split(&settings);
                let most = shares.memtables_bytes_max(memory_bytes);
                assert!(batch_memory_max(memory_bytes) <= most);
                let one = shares.memtable_bytes;
                for (active, frozen) in [
                    (0, 0),
                    (one, 0),
                    (most, 0),
                    (0, most),
                    (most / 3 * 2, most / 3),
                    (one, most - one),
                ] {
                    let used = shares.memtables_used(active, frozen, memory_bytes);
                    let beyond = used.saturating_sub(shares.memtables_bytes());
                    let in_use = InUse { memtables_bytes: used, ..shares.all_in_use() };
                    let reads = shares.with_memtables_beyond(beyond).reads_bytes(in_use);
                    assert!(active + frozen <= used && used <= most && reads > 0);
                    let all = used + shares.merge_bytes + shares.uncounted_bytes + reads;
                    assert!(all <= memory_bytes, "{active} {frozen} {all} {shares:?}");
                }
            }
        }
    }

    #[test]
    fn memtables_are_smaller_next_to_retired_ones() {
        for memory in [8 * MIB, 64 * MIB, 3 << 30] {
            let shares = split(memory);
            let (one, most) = (shares.memtable_bytes, shares.memtables_bytes());
            assert_eq!(shares.memtable_bytes_left(0), one);
            assert_eq!(shares.memtable_bytes_left(most / 2), one / 2);
            assert_eq!(shares.memtable_bytes_left(u64::MAX), one / 4);
        }
    }

    #[test]
    fn reads_borrow_only_what_others_leave() {
        for memory in [8 * MIB, 192 * MIB, 3 << 30] {
            let shares = split(memory);
            let all = shares.memtables_bytes();
            for (memtables_bytes, merges) in
                [(0, 0), (all / 16, 1), (all / 4, 3), (all / 2, 2), (all, 0), (all, 9)]
            {
                let used = InUse { memtables_bytes, merge_bytes: shares.merges_used(merges, 3) };
                assert!(used.merge_bytes <= shares.merge_bytes, "{used:?}");
                let reads = shares.reads_bytes(used);
                let others = memtables_bytes + used.merge_bytes + shares.uncounted_bytes;
                assert_eq!(reads + others, memory, "{shares:?} {used:?}");
                let limit = shares.tables_limit_bytes(used);
                let mut last = u64::MAX;
                for tables in (0..=limit).step_by((limit / 97) as usize) {
                    let cache = shares.cache_target_bytes(used, tables);
                    assert!(cache + tables <= reads && reads / 4 <= cache, "{shares:?} {tables}");
                    assert!(cache <= last);
                    last = cache;
                }
                assert!(shares.cache_target_bytes(used, 0) > reads * 7 / 8);
            }
            let more = InUse { memtables_bytes: u64::MAX, merge_bytes: u64::MAX };
            assert_eq!(shares.reads_bytes(more), shares.reads_bytes_min);
            assert_eq!(shares.reads_bytes(shares.all_in_use()), shares.reads_bytes_min);
        }
    }

    /// Memory is shared out again before memtables hold more than they were counted for.
    #[test]
    fn memtables_count_for_more_than_they_hold() {
        for memory in sizes().step_by(50) {
            let shares = split(memory);
            let (one, step) = (shares.memtable_bytes, shares.step_bytes());
            let mut counted = 0;
            for active in (0..=one).step_by((step / 3).max(1) as usize) {
                let used = shares.memtables_used(active, 0, memory);
                assert!(used >= counted && used <= one, "{active} {used}");
                // Until it fills the step at hand, and for a part of the next one.
                let next = (active / step + 1) * step;
                assert!(used >= next.min(one) && (used >= next + step / 2 || used == one));
                counted = used;
            }
            assert_eq!(counted, one);
            assert!(shares.memtables_used(0, 0, memory) <= one / 4 + 1);
            assert!(shares.merges_used(0, 1) <= shares.merge_bytes / 2);
        }
    }
}
