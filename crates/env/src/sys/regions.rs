//! All regions of the process, and how much of them it keeps.
//!
//! A general allocator has a heap for each of some threads, and what one of them gives
//! back is of no use to the others; nor does it return what is free between blocks that
//! stay. A cache that many threads fill, and that gives way to memtables, then takes twice
//! what it counts. Here all threads share all regions, and free pages go back to the
//! system once they are more than a little.
//!
//! Owns: the list of regions, which only grows, and the counts over all of them. Never
//! does: wait. A region that another thread searches is passed by.

use super::mapping::PAGE_BYTES;
use super::region::{GRANULE_BYTES, Refused, Region, Room, Run};
use crate::sync::real::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::ptr::{self, NonNull};

/// Most bytes of a run; who needs more has a mapping of its own.
pub(super) const RUN_BYTES_MAX: usize = 512 << 10;

const GROUP_REGIONS: usize = 64;
/// A tebibyte in all.
const GROUPS_MAX: usize = 1 << 14;
const _: () = assert!(GROUPS_MAX <= 1 << 16 && GROUP_REGIONS <= 1 << 16);

/// Regions that are passed by together where none of them has room.
pub(super) struct Group {
    room: Room,
    regions: [Region; GROUP_REGIONS],
}

/// Made one after the other, and never freed.
static GROUPS: [AtomicPtr<Group>; GROUPS_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; GROUPS_MAX];

/// Bytes of runs that are in use.
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of pages that the system has, or may have, behind runs and free space.
static TOUCHED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Touched bytes that are not used may come to this before pages are given back.
static IDLE_BYTES_MAX: AtomicUsize = AtomicUsize::new(IDLE_BYTES_MIN);
/// Somebody gives pages back.
static IS_SWEEPING: AtomicBool = AtomicBool::new(false);

/// So much may always be idle, or this part of what is used: it is for the next block.
const IDLE_BYTES_MIN: usize = 1 << 20;
const IDLE_PART: usize = 32;

/// The region of a run in use, which [`give_back`] has to be given: small, since each block of an
/// open table has one.
#[derive(Clone, Copy)]
pub(super) struct Place {
    group: u16,
    region: u16,
}

fn granules(bytes: usize) -> usize {
    bytes.div_ceil(GRANULE_BYTES)
}

/// Bytes that a run for `bytes` takes.
pub(super) fn run_bytes(bytes: usize) -> usize {
    granules(bytes) * GRANULE_BYTES
}

/// A run of [`run_bytes`], if there may be one more. Its bytes are initialised, with
/// zeros or with what somebody wrote before.
pub(super) fn take(bytes: usize) -> Option<(NonNull<u8>, Place)> {
    debug_assert!(0 < bytes && bytes <= RUN_BYTES_MAX);
    let granules = granules(bytes);
    let in_group = |(number, slot)| Some((number, group(slot).take(granules)?));
    let (number, taken): (usize, _) = GROUPS.iter().enumerate().find_map(in_group)?;
    let (region, run) = taken.ok()?;
    let place = Place { group: number as u16, region: region as u16 };
    USED_BYTES.fetch_add(run_bytes(bytes), Ordering::Relaxed);
    TOUCHED_BYTES.fetch_add(run.pages_touched * PAGE_BYTES, Ordering::Relaxed);
    Some((run.start, place))
}

/// Takes a run back.
///
/// # Safety
/// [`take`] gave it, for so many bytes, with this place, and nobody uses it any more.
pub(super) unsafe fn give_back(start: NonNull<u8>, bytes: usize, place: Place) {
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

/// Touched bytes that are not used, as far as they are due to `bytes` of what is used.
pub(super) fn idle_bytes(bytes: u64) -> u64 {
    let used = USED_BYTES.load(Ordering::Relaxed);
    let idle = TOUCHED_BYTES.load(Ordering::Relaxed).saturating_sub(used) as u64;
    // In `u128`: the product of two lengths.
    let part = u128::from(idle) * u128::from(bytes) / (used as u128).max(1);
    idle.min(u64::try_from(part).unwrap_or(u64::MAX))
}

/// By how much the idle bytes may grow.
fn idle_slack(used_bytes: usize) -> usize {
    (used_bytes / IDLE_PART).max(IDLE_BYTES_MIN)
}

/// Gives all pages back that nothing is left on. What is free next to what is used on
/// one page stays, so that the next time comes when there is a slack more of it all.
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
    // Not by the counts of all: what others gave back meanwhile is for the next time.
    let most = left + idle_slack(USED_BYTES.load(Ordering::Relaxed));
    IDLE_BYTES_MAX.store(most, Ordering::Relaxed);
    IS_SWEEPING.store(false, Ordering::Release);
}

fn made_groups() -> impl Iterator<Item = &'static Group> {
    // SAFETY: what is stored in `GROUPS` was leaked and is only read as shared.
    GROUPS.iter().map_while(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// The group of a slot, made now if there is none.
fn group(slot: &AtomicPtr<Group>) -> &'static Group {
    // SAFETY: as in `made_groups`.
    if let Some(group) = unsafe { slot.load(Ordering::Acquire).as_ref() } {
        return group;
    }
    let mine = Box::into_raw(Box::new(Group::new()));
    let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
    let Err(first) = slot.compare_exchange(ptr::null_mut(), mine, set, get) else {
        // SAFETY: as in `made_groups`.
        return unsafe { &*mine };
    };
    // Another thread was first: its group counts.
    // SAFETY: it was made above, and nobody has seen it.
    drop(unsafe { Box::from_raw(mine) });
    // SAFETY: as in `made_groups`.
    unsafe { &*first }
}

/// A run and the number of its region, or that there is no memory for more.
type Answer = Result<(usize, Run), Refused>;

impl Group {
    const fn new() -> Group {
        Group { room: Room::unknown(), regions: [const { Region::new() }; GROUP_REGIONS] }
    }

    /// `None` where none of its regions has room.
    fn take(&self, granules: usize) -> Option<Answer> {
        if self.room.bound() < granules {
            return None;
        }
        self.room.search(|| {
            let mut longest = 0;
            for (number, region) in self.regions.iter().enumerate() {
                if granules <= region.room_bound() {
                    match region.take(granules) {
                        Ok(run) => return Ok(Ok((number, run))),
                        Err(Refused::NoMemory) => return Ok(Err(Refused::NoMemory)),
                        Err(Refused::NoRoom) => {}
                    }
                }
                longest = longest.max(region.room_bound());
            }
            Err(longest)
        })
    }
}
