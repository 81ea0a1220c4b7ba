//! A region: a mebibyte of memory that is allocated in runs of granules.
//!
//! A bit for each granule says whether it is in use. One thread at a time searches a region, for
//! the first fit from the front, so that the used granules gather there; another thread does not
//! wait but goes to another region. Freeing a run is one atomic operation for each word of the
//! bitmap and needs no lock. Neither waits, so that a child of `fork` never needs anything that
//! stays held for ever.
//!
//! Rejected: a list of free slots for each of some sizes. When a cache of blocks of one size gives
//! way to one of another, it leaves free slots that no other size can use.
//!
//! Owns: the bitmaps of used granules and of touched pages. Never does: choose among regions, or
//! count over all of them.

use super::mapping::{self, PAGE_BYTES};
use crate::sync::real::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::ptr::{self, NonNull};

/// Bytes of a region.
pub(super) const REGION_BYTES: usize = 1 << 20;
/// The unit that runs are rounded up to: a block of 4 KiB loses 6 % on average.
pub(super) const GRANULE_BYTES: usize = 512;

const GRANULES: usize = REGION_BYTES / GRANULE_BYTES;
const WORD_BITS: usize = u64::BITS as usize;
const PAGES: usize = REGION_BYTES / PAGE_BYTES;
const PAGE_GRANULES: usize = PAGE_BYTES / GRANULE_BYTES;

/// An upper bound of the longest free run, in granules, for threads that search.
///
/// The bits above the bound count the runs that were freed: a search may lower the bound to the
/// longest run that it found, if no run was freed since the search began.
pub(super) struct RoomBound(AtomicU64);

const BOUND_BITS: u32 = 16;
const BOUND_MAX: u64 = (1 << BOUND_BITS) - 1;

impl RoomBound {
    pub(super) const fn unknown() -> RoomBound {
        RoomBound(AtomicU64::new(BOUND_MAX))
    }

    fn state(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn bound(&self) -> usize {
        (self.state() & BOUND_MAX) as usize
    }

    /// Notes that a run was freed; its bits are clear already.
    pub(super) fn given_back(&self) {
        self.0.fetch_add(1 << BOUND_BITS, Ordering::Release);
        self.0.fetch_or(BOUND_MAX, Ordering::Release);
    }

    /// Runs `search`. If it finds no run anywhere, it returns the greatest length of a free run,
    /// which becomes the bound.
    pub(super) fn search<T>(&self, search: impl FnOnce() -> Result<T, usize>) -> Option<T> {
        let state = self.state();
        let longest = match search() {
            Ok(found) => return Some(found),
            Err(longest) => longest as u64,
        };
        let lowered = state & !BOUND_MAX | longest;
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        // It fails if a run was freed meanwhile, or another thread has lowered the bound.
        let _ = self.0.compare_exchange(state, lowered, set, get);
        None
    }
}

/// A region; see the module.
pub(super) struct Region {
    /// The region's memory; null if it is not mapped yet.
    start: AtomicPtr<u8>,
    /// A thread searches the region, or gives its pages back.
    is_searched: AtomicBool,
    room: RoomBound,
    used: [AtomicU64; GRANULES / WORD_BITS],
    /// Pages that were allocated from since they were last given back to the system. Only the
    /// thread that searches the region changes them.
    touched: [AtomicU64; PAGES / WORD_BITS],
}

/// A run of granules, and the number of its pages that the system will add.
pub(super) struct GranuleRun {
    pub(super) start: NonNull<u8>,
    pub(super) pages_touched: usize,
}

/// The reason why there is no run.
pub(super) enum RunRefusal {
    /// No run of this length is free, or another thread is searching.
    NoRoom,
    /// The system maps nothing more.
    NoMemory,
}

/// The right to allocate granules, until it is dropped.
struct Searching<'a>(&'a Region);

impl Drop for Searching<'_> {
    fn drop(&mut self) {
        self.0.is_searched.store(false, Ordering::Release);
    }
}

impl Region {
    pub(super) const fn new() -> Region {
        Region {
            start: AtomicPtr::new(ptr::null_mut()),
            is_searched: AtomicBool::new(false),
            room: RoomBound::unknown(),
            used: [const { AtomicU64::new(0) }; GRANULES / WORD_BITS],
            touched: [const { AtomicU64::new(0) }; PAGES / WORD_BITS],
        }
    }

    /// An upper bound of the longest free run.
    pub(super) fn room_bound(&self) -> usize {
        self.room.bound()
    }

    fn search_alone(&self) -> Option<Searching<'_>> {
        // Not `then_some`, which would always make a `Searching`, whose drop releases the region.
        (!self.is_searched.swap(true, Ordering::Acquire)).then(|| Searching(self))
    }

    /// Allocates a run of `granules`, if there is one and no other thread is searching here.
    pub(super) fn take(&self, granules: usize) -> Result<GranuleRun, RunRefusal> {
        let searching = self.search_alone().ok_or(RunRefusal::NoRoom)?;
        let base = searching.mapped().ok_or(RunRefusal::NoMemory)?;
        let first = self.room.search(|| self.find(granules)).ok_or(RunRefusal::NoRoom)?;
        self.each_word(first, granules, |word, mask| {
            word.fetch_or(mask, Ordering::Relaxed);
        });
        let pages_touched = searching.touch(first, granules);
        // SAFETY: `find` gives runs within the region, whose mapping lives for ever.
        let start = unsafe { base.add(first * GRANULE_BYTES) };
        Ok(GranuleRun { start, pages_touched })
    }

    /// Frees a run.
    ///
    /// # Safety
    /// [`Region::take`] of this region returned it for this size, and it is not used any more.
    pub(super) unsafe fn give_back(&self, start: NonNull<u8>, granules: usize) {
        let base = self.start.load(Ordering::Relaxed);
        let first = (start.addr().get() - base.addr()) / GRANULE_BYTES;
        self.each_word(first, granules, |word, mask| {
            // Release: the next owner writes the run after the reads of this one.
            let before = word.fetch_and(!mask, Ordering::Release);
            debug_assert_eq!(before & mask, mask, "a run is given back once");
        });
        self.room.given_back();
    }

    /// Gives the free pages back to the system, and returns their number. 0 while another thread
    /// searches here.
    pub(super) fn give_back_pages(&self) -> usize {
        self.search_alone().map_or(0, |searching| searching.give_back_pages())
    }

    /// About the bytes of memory behind free granules.
    pub(super) fn idle_bytes(&self) -> usize {
        let count = |words: &[AtomicU64]| -> usize {
            words.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
        };
        let used = count(&self.used) * GRANULE_BYTES;
        (count(&self.touched) * PAGE_BYTES).saturating_sub(used)
    }

    /// Finds the first free run of at least `granules`, or else the length of the longest one.
    fn find(&self, granules: usize) -> Result<usize, usize> {
        let (mut run, mut longest) = (0, 0);
        for (index, word) in self.used.iter().enumerate() {
            let used = word.load(Ordering::Acquire);
            let mut bit = 0;
            while bit < WORD_BITS {
                let free = ((used >> bit).trailing_zeros() as usize).min(WORD_BITS - bit);
                (run, bit) = (run + free, bit + free);
                if run >= granules {
                    return Ok(index * WORD_BITS + bit - run);
                }
                if bit < WORD_BITS {
                    (longest, run) = (longest.max(run), 0);
                    bit += (used >> bit).trailing_ones() as usize;
                }
            }
        }
        Err(longest.max(run))
    }

    /// Calls `change` with each word of the bitmap that has bits of a run, and these bits.
    fn each_word(&self, first: usize, granules: usize, change: impl Fn(&AtomicU64, u64)) {
        let (mut at, end) = (first, first + granules);
        while at < end {
            let (bit, left) = (at % WORD_BITS, end - at);
            let count = left.min(WORD_BITS - bit);
            change(&self.used[at / WORD_BITS], u64::MAX >> (WORD_BITS - count) << bit);
            at += count;
        }
    }

    /// Whether no granule of a page is used.
    fn is_page_free(&self, page: usize) -> bool {
        let first = page * PAGE_GRANULES;
        let used = self.used[first / WORD_BITS].load(Ordering::Acquire);
        used >> (first % WORD_BITS) & ((1 << PAGE_GRANULES) - 1) == 0
    }

    fn is_page_touched(&self, page: usize) -> bool {
        self.touched[page / WORD_BITS].load(Ordering::Relaxed) >> (page % WORD_BITS) & 1 == 1
    }
}

impl Searching<'_> {
    /// The region's memory, mapped now if it was not.
    fn mapped(&self) -> Option<NonNull<u8>> {
        if let Some(start) = NonNull::new(self.0.start.load(Ordering::Relaxed)) {
            return Some(start);
        }
        let start = mapping::map(REGION_BYTES)?;
        // SAFETY: it was mapped just above.
        unsafe { mapping::keep_pages_small(start, REGION_BYTES) };
        self.0.start.store(start.as_ptr(), Ordering::Relaxed);
        Some(start)
    }

    /// Marks a run's pages as touched. Returns the number that were not.
    fn touch(&self, first: usize, granules: usize) -> usize {
        let pages = first / PAGE_GRANULES..(first + granules).div_ceil(PAGE_GRANULES);
        let fresh = pages.filter(|&page| !self.0.is_page_touched(page));
        fresh.inspect(|&page| self.flip_touched(page)).count()
    }

    fn flip_touched(&self, page: usize) {
        self.0.touched[page / WORD_BITS].fetch_xor(1 << (page % WORD_BITS), Ordering::Relaxed);
    }

    fn give_back_pages(&self) -> usize {
        let Some(base) = NonNull::new(self.0.start.load(Ordering::Relaxed)) else { return 0 };
        let is_idle = |page: &usize| self.0.is_page_free(*page) && self.0.is_page_touched(*page);
        // The system rounds a length up to its own pages.
        let whole = mapping::system_pages();
        let (mut given, mut page) = (0, 0);
        while let Some(idle) = (page..PAGES).find(is_idle) {
            page = (idle..PAGES).find(|page| !is_idle(page)).unwrap_or(PAGES);
            let (first, end) = (idle.next_multiple_of(whole), page / whole * whole);
            if first >= end {
                continue;
            }
            // SAFETY: the pages lie in the region's mapping, and are whole ones. No granule of them
            // is used, and none is allocated while this holds the region.
            let done = unsafe {
                mapping::give_back(base.add(first * PAGE_BYTES), (end - first) * PAGE_BYTES)
            };
            if done {
                (first..end).for_each(|page| self.flip_touched(page));
                given += end - first;
            }
        }
        given
    }
}

#[cfg(all(test, not(any(miri, loom, heap_only))))]
mod tests {
    use super::*;

    fn taken(region: &Region, granules: usize) -> Option<usize> {
        let run = region.take(granules).ok()?;
        Some((run.start.addr().get() - region.start.load(Ordering::Relaxed).addr()) / GRANULE_BYTES)
    }

    fn give_back(region: &Region, first: usize, granules: usize) {
        let base = NonNull::new(region.start.load(Ordering::Relaxed)).unwrap();
        // SAFETY: the tests give back what they took.
        unsafe { region.give_back(base.add(first * GRANULE_BYTES), granules) };
    }

    #[test]
    fn the_first_run_that_fits_is_taken() {
        let region = Region::new();
        for (granules, first) in [(60, 0), (8, 60), (64, 68), (300, 132)] {
            assert_eq!(taken(&region, granules), Some(first));
        }
        give_back(&region, 60, 8);
        assert_eq!((taken(&region, 9), taken(&region, 5)), (Some(432), Some(60)));
        give_back(&region, 0, 60);
        assert_eq!((taken(&region, 60), taken(&region, 3)), (Some(0), Some(65)));
        let left = GRANULES - 441;
        assert_eq!((taken(&region, left + 1), region.room_bound()), (None, left));
        assert_eq!((taken(&region, left), taken(&region, 1)), (Some(441), None));
        assert_eq!(region.room_bound(), 0);
        give_back(&region, 100, 1);
        assert!(region.room_bound() >= 1);
        assert_eq!(taken(&region, 1), Some(100));
    }

    /// A run that is freed during a search in vain is found by the next search.
    #[test]
    fn the_bound_is_not_lowered_over_what_came_back() {
        let room = RoomBound::unknown();
        assert_eq!(room.search(|| Err::<(), usize>(3)), None);
        assert_eq!(room.bound(), 3);
        let meanwhile = || {
            room.given_back();
            Err::<(), usize>(2)
        };
        assert_eq!(room.search(meanwhile), None);
        assert_eq!(room.bound() as u64, BOUND_MAX);
    }

    #[test]
    fn pages_that_nothing_is_left_on_are_given_back() {
        let region = Region::new();
        let blocks: Vec<GranuleRun> = (0..100).map(|_| region.take(9).ok().unwrap()).collect();
        let touched: usize = blocks.iter().map(|block| block.pages_touched).sum();
        assert_eq!(touched, (100 * 9usize).div_ceil(PAGE_GRANULES));
        for (index, block) in blocks.iter().enumerate() {
            // SAFETY: each block is 9 granules long and used only here.
            unsafe { block.start.write_bytes(index as u8 + 1, 9 * GRANULE_BYTES) };
        }
        assert_eq!(region.give_back_pages(), 0);
        let stays = |index: usize| index % 10 == 3;
        for (index, block) in blocks.iter().enumerate().filter(|(index, _)| !stays(*index)) {
            // SAFETY: the block has bytes, and no thread writes to them now.
            assert_eq!(index as u8 + 1, unsafe { *block.start.as_ptr() });
            // SAFETY: taken above and not used again.
            unsafe { region.give_back(block.start, 9) };
        }
        // A block that stays holds two pages, or three if it crosses two bounds.
        let given = region.give_back_pages();
        assert!(given >= touched - 10 * 3 && given <= touched - 10 * 2, "{given} of {touched}");
        assert_eq!(region.give_back_pages(), 0);
        for (index, block) in blocks.iter().enumerate().filter(|(index, _)| stays(*index)) {
            // SAFETY: it was not given back.
            let bytes =
                unsafe { std::slice::from_raw_parts(block.start.as_ptr(), 9 * GRANULE_BYTES) };
            assert!(bytes.iter().all(|&byte| byte == index as u8 + 1));
        }
        assert_eq!(region.take(9).ok().unwrap().pages_touched, 2);
    }
}
