//! How far a log reserves space ahead of its writers.
//!
//! A log of an idle database takes one small step of the device; a busy one
//! doubles its steps, so that few writers wait for a reservation. The real and
//! the simulated file system follow the same schedule.
//! Owns: the schedule. Never does: reserve.

use windrow_base::debug_invariant;

/// Space that a new log has where there is enough, in bytes, and what steps are
/// multiples of.
pub(crate) const FIRST_STEP_BYTES: u64 = 64 << 10;
/// Most that a step adds, in bytes.
const STEP_BYTES_MAX: u64 = 8 << 20;
/// A step leaves three quarters of what is free to everyone else.
const FREE_SHARE: u64 = 4;

/// Least that a new log has, in bytes: its header, in whole blocks.
const FIRST_STEP_BYTES_MIN: u64 = 4 << 10;
/// A new log may be made so that a flush can let the last one go: it leaves the
/// room of that flush.
const FIRST_SHARE: u64 = 16;

/// Up to where a log of `len` bytes reserves when it is made.
pub(crate) fn first_step(len: u64, free: u64) -> u64 {
    let share = free / FIRST_SHARE / FIRST_STEP_BYTES_MIN * FIRST_STEP_BYTES_MIN;
    len.min(share.clamp(FIRST_STEP_BYTES_MIN, FIRST_STEP_BYTES))
}

/// Up to where a log goes on to reserve when `reserved` is to become `end` at
/// least: ahead of what is asked for, unless little is `free`. A step that
/// passes the log's `len` is no longer than it must be.
pub(crate) fn next_step(reserved: u64, end: u64, len: u64, free: u64) -> u64 {
    let ahead = reserved.clamp(FIRST_STEP_BYTES, STEP_BYTES_MAX).min(free / FREE_SHARE);
    let wanted = reserved.saturating_add(ahead);
    // Down, and not up to more than the share of what is free.
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
        // Beyond the length it was given, and where what is asked for is large.
        assert_eq!(next_step(LEN, LEN + 1, LEN, u64::MAX), LEN + (8 << 20));
        assert_eq!(next_step(64 << 10, 50 << 20, LEN, u64::MAX), 50 << 20);
        // Next to nothing is free: what is asked for, and no more.
        assert_eq!(next_step(1 << 20, (1 << 20) + 1, LEN, 0), (1 << 20) + 1);
        assert_eq!(next_step(1 << 20, (1 << 20) + 1, LEN, 1 << 20), (1 << 20) + (256 << 10));
        // A log that was made where little was free takes no more than a quarter either.
        assert_eq!(next_step(4 << 10, 5 << 10, LEN, 100 << 10), 28 << 10);
        assert_eq!(next_step(4 << 10, 5 << 10, LEN, u64::MAX), 64 << 10);
        assert_eq!(next_step(u64::MAX - 1, u64::MAX, LEN, u64::MAX), u64::MAX);
        let first = [0, 100 << 10, 300 << 10, 1 << 20].map(|free| first_step(LEN, free) >> 10);
        assert_eq!(first, [4, 4, 16, 64]);
        assert_eq!((first_step(10, u64::MAX), next_step(10, 12, 10, 0)), (10, 12));
    }
}
