//! All regions of the process, and the memory that it keeps in them.
//!
//! A general allocator has several heaps for its threads, and memory freed in one is of no use to
//! the others; nor does it return free memory between blocks that stay. A cache that many threads
//! fill, and that gives way to memtables, then takes twice the memory that it counts. Here all
//! threads share all regions, and free pages go back to the system once they are more than a small
//! part.
//!
//! Owns: the list of regions, which only grows, and the counts over all of them. Never does: wait;
//! a region that another thread searches is skipped.

use super::mapping::{self, PAGE_BYTES, Pages};
use super::mapping_pool;
use super::region::{GRANULE_BYTES, GranuleRun, Region, RoomBound, RunRefusal};
use crate::sync::real::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::ptr::{self, NonNull};

/// The most bytes of a run; a larger buffer has a mapping of its own. Longer runs leave gaps in
/// regions that no other one fits in: at 512 KiB a full cache of values of 16 to 512 KiB took three
/// times as many fresh pages.
pub(super) const RUN_BYTES_MAX: usize = 256 << 10;

const GROUP_REGIONS: usize = 64;
/// The most groups: a tebibyte in all.
const GROUPS_MAX: usize = 1 << 14;
const _: () = assert!(GROUPS_MAX <= 1 << 16 && GROUP_REGIONS <= 1 << 16);

/// Regions that are skipped together when none of them has room.
pub(super) struct RegionGroup {
    room: RoomBound,
    regions: [Region; GROUP_REGIONS],
}

/// The groups, made one after the other and never freed.
static GROUPS: [AtomicPtr<RegionGroup>; GROUPS_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; GROUPS_MAX];

/// Bytes of runs that are in use.
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of pages that the system has, or may have, behind runs and free space.
static TOUCHED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The bytes that may be touched and not used before pages are given back.
static IDLE_BYTES_MAX: AtomicUsize = AtomicUsize::new(IDLE_BYTES_MIN);
/// A thread gives pages back.
static IS_SWEEPING: AtomicBool = AtomicBool::new(false);

/// The bytes that may always be idle, for the next block; or this part of the bytes that all
/// buffers use: a cache gives way to large blocks by freeing many small ones at once. Between blocks
/// of many lengths there are holes; with a smaller part, their pages were given back and taken
/// again all the time.
const IDLE_BYTES_MIN: usize = 1 << 20;
const IDLE_PART: usize = 8;

/// The region of a run in use, which [`give_back`] needs: small, since each block of an open table
/// has one.
#[derive(Clone, Copy)]
pub(super) struct RegionIndex {
    group: u16,
    region: u16,
}

fn granules(bytes: usize) -> usize {
    bytes.div_ceil(GRANULE_BYTES)
}

/// The bytes that a run for `bytes` takes.
pub(super) fn run_bytes(bytes: usize) -> usize {
    granules(bytes) * GRANULE_BYTES
}

/// Allocates a run of [`run_bytes`], if there is memory for one more. Its bytes are initialised,
/// with zeros or with earlier content.
pub(super) fn take(bytes: usize, pages: Pages) -> Option<(NonNull<u8>, RegionIndex)> {
    debug_assert!(0 < bytes && bytes <= RUN_BYTES_MAX);
    let granules = granules(bytes);
    let in_group = |(number, slot)| Some((number, group(slot).take(granules)?));
    let (number, taken): (usize, _) = GROUPS.iter().enumerate().find_map(in_group)?;
    let (region, run) = taken.ok()?;
    let place = RegionIndex { group: number as u16, region: region as u16 };
    USED_BYTES.fetch_add(run_bytes(bytes), Ordering::Relaxed);
    TOUCHED_BYTES.fetch_add(run.pages_touched * PAGE_BYTES, Ordering::Relaxed);
    if pages == Pages::Now {
        // Here, since others pass by a region that is searched. SAFETY: it lies in its mapping.
        unsafe { mapping::populate(run.start, run_bytes(bytes), run.pages_touched) };
    }
    Some((run.start, place))
}

/// Frees a run.
///
/// # Safety
/// [`take`] returned it for this number of bytes, with this place, and it is not used any more.
pub(super) unsafe fn give_back(start: NonNull<u8>, bytes: usize, place: RegionIndex) {
    let group = group(&GROUPS[usize::from(place.group)]);
    let region = &group.regions[usize::from(place.region)];
    // SAFETY: the caller's promise.
    unsafe { region.give_back(start, granules(bytes)) };
    group.room.given_back();
    let used = USED_BYTES.fetch_sub(run_bytes(bytes), Ordering::Relaxed) - run_bytes(bytes);
    let idle = TOUCHED_BYTES.load(Ordering::Relaxed).saturating_sub(used);
    let most = IDLE_BYTES_MAX.load(Ordering::Relaxed);
    if idle > most {
        sweep();
    } else if idle + idle_slack(used) < most {
        IDLE_BYTES_MAX.store(idle + idle_slack(used), Ordering::Relaxed);
    }
}

/// The bytes of runs in use, and those that are touched and not used.
pub(super) fn bytes() -> (usize, usize) {
    let used = USED_BYTES.load(Ordering::Relaxed);
    (used, TOUCHED_BYTES.load(Ordering::Relaxed).saturating_sub(used))
}

/// The bytes by which the idle ones may grow until the next sweep, where runs use `used_bytes`.
fn idle_slack(used_bytes: usize) -> usize {
    let (mapped_bytes, _) = mapping_pool::bytes();
    ((used_bytes + mapped_bytes) / IDLE_PART).max(IDLE_BYTES_MIN)
}

/// Gives all free pages back to the system. Free granules on pages with used ones stay, so the next
/// sweep comes when the idle bytes have grown by the slack.
#[cold]
fn sweep() {
    if IS_SWEEPING.swap(true, Ordering::Acquire) {
        return;
    }
    let mut left = 0;
    for region in made_groups().flat_map(|group| &group.regions) {
        let bytes = region.give_back_pages() * PAGE_BYTES;
        TOUCHED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        left += region.idle_bytes();
    }
    // Not by the global counts: runs that other threads freed meanwhile are for the next sweep.
    let most = left + idle_slack(USED_BYTES.load(Ordering::Relaxed));
    IDLE_BYTES_MAX.store(most, Ordering::Relaxed);
    IS_SWEEPING.store(false, Ordering::Release);
}

fn made_groups() -> impl Iterator<Item = &'static RegionGroup> {
    // SAFETY: a group in `GROUPS` was leaked and is only read through shared references.
    GROUPS.iter().map_while(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// The group of a slot, created now if there is none.
fn group(slot: &AtomicPtr<RegionGroup>) -> &'static RegionGroup {
    // SAFETY: as in `made_groups`.
    if let Some(group) = unsafe { slot.load(Ordering::Acquire).as_ref() } {
        return group;
    }
    let mine = Box::into_raw(Box::new(RegionGroup::new()));
    let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
    let Err(first) = slot.compare_exchange(ptr::null_mut(), mine, set, get) else {
        // SAFETY: as in `made_groups`.
        return unsafe { &*mine };
    };
    // Another thread was first: its group counts. SAFETY: it was made above, and no other thread
    // has its address.
    drop(unsafe { Box::from_raw(mine) });
    // SAFETY: as in `made_groups`.
    unsafe { &*first }
}

/// A run and the number of its region, or the refusal of the system.
type RunAnswer = Result<(usize, GranuleRun), RunRefusal>;

impl RegionGroup {
    const fn new() -> RegionGroup {
        RegionGroup {
            room: RoomBound::unknown(),
            regions: [const { Region::new() }; GROUP_REGIONS],
        }
    }

    /// Allocates from one of the regions; `None` if none of them has room.
    fn take(&self, granules: usize) -> Option<RunAnswer> {
        if self.room.bound() < granules {
            return None;
        }
        self.room.search(|| {
            let mut longest = 0;
            for (number, region) in self.regions.iter().enumerate() {
                if granules <= region.room_bound() {
                    match region.take(granules) {
                        Ok(run) => return Ok(Ok((number, run))),
                        Err(RunRefusal::NoMemory) => return Ok(Err(RunRefusal::NoMemory)),
                        Err(RunRefusal::NoRoom) => {}
                    }
                }
                longest = longest.max(region.room_bound());
            }
            Err(longest)
        })
    }
}
