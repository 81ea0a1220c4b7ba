//! The schedule by which a log reserves space ahead of its writers.
//!
//! A log of an idle database takes one small step of the device; a busy one doubles its steps, so
//! that few writers wait for a reservation. The real and the simulated file system follow the same
//! schedule.
//!
//! Owns: the schedule. Never does: reserve.

use windrow_base::debug_invariant;

/// The space of a new log where there is enough, in bytes; steps are multiples of it.
pub(crate) const FIRST_STEP_BYTES: u64 = 64 << 10;
/// The most that a step adds, in bytes.
const STEP_BYTES_MAX: u64 = 8 << 20;
/// A step takes at most one part in this of the free space; the rest is for others.
const FREE_SHARE: u64 = 4;

/// The least space of a new log, in bytes: its header, in whole blocks.
const FIRST_STEP_BYTES_MIN: u64 = 4 << 10;
/// A new log takes at most one part in this of the free space: it may be created so that a flush
/// can release the last log, and leaves room for that flush.
const FIRST_SHARE: u64 = 16;

/// Returns the space that a new log of `len` bytes reserves.
pub(crate) fn first_step(len: u64, free: u64) -> u64 {
    let share = free / FIRST_SHARE / FIRST_STEP_BYTES_MIN * FIRST_STEP_BYTES_MIN;
    len.min(share.clamp(FIRST_STEP_BYTES_MIN, FIRST_STEP_BYTES))
}

/// Returns the end of the space that a log reserves next, when it has `reserved` and needs `end`:
/// ahead of `end`, unless little is `free`. A step reaches beyond the log's `len` only where `end`
/// does.
pub(crate) fn next_step(reserved: u64, end: u64, len: u64, free: u64) -> u64 {
    let ahead = reserved.clamp(FIRST_STEP_BYTES, STEP_BYTES_MAX).min(free / FREE_SHARE);
    let wanted = reserved.saturating_add(ahead);
    // Rounded down, so as not to exceed the share of the free space.
    let in_steps = wanted - wanted % FIRST_STEP_BYTES;
    let in_blocks = wanted - wanted % FIRST_STEP_BYTES_MIN;
    let wanted = if reserved < in_steps { in_steps } else { in_blocks };
    let limit = if end <= len { len } else { end.saturating_add(ahead) };
    let next = end.max(wanted.min(limit));
    debug_invariant!(R15, next >= end, "a log has room up to {next}, and {end} was asked for");
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double_and_stay_within_the_log_and_what_is_free() {
        const LEN: u64 = 80 << 20;
        let mut reserved = first_step(LEN, u64::MAX);
        let mut steps = vec![reserved >> 10];
        while reserved < LEN {
            reserved = next_step(reserved, reserved + 1, LEN, u64::MAX);
            steps.push(reserved >> 10);
        }
        assert_eq!(steps[..9], [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]);
        assert_eq!((steps[10], steps.len(), reserved), (32768, 17, LEN));
        // Beyond the log's length, and for a large `end`.
        assert_eq!(next_step(LEN, LEN + 1, LEN, u64::MAX), LEN + (8 << 20));
        assert_eq!(next_step(64 << 10, 50 << 20, LEN, u64::MAX), 50 << 20);
        // With next to nothing free: `end`, and no more.
        assert_eq!(next_step(1 << 20, (1 << 20) + 1, LEN, 0), (1 << 20) + 1);
        assert_eq!(next_step(1 << 20, (1 << 20) + 1, LEN, 1 << 20), (1 << 20) + (256 << 10));
        // A log that was created with little free takes at most a quarter, too.
        assert_eq!(next_step(4 << 10, 5 << 10, LEN, 100 << 10), 28 << 10);
        assert_eq!(next_step(4 << 10, 5 << 10, LEN, u64::MAX), 64 << 10);
        assert_eq!(next_step(u64::MAX - 1, u64::MAX, LEN, u64::MAX), u64::MAX);
        let first = [0, 100 << 10, 300 << 10, 1 << 20].map(|free| first_step(LEN, free) >> 10);
        assert_eq!(first, [4, 4, 16, 64]);
        assert_eq!((first_step(10, u64::MAX), next_step(10, 12, 10, 0)), (10, 12));
    }
}
