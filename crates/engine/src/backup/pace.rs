//! The pace of a backup's copy.
//!
//! Owns: the time at which the next bytes may be copied. Never does: read or write them.

use std::sync::Arc;
use windrow_base::Result;
use windrow_env::Clock;

/// The most bytes at a time; a slow copy takes its bytes of a tenth of a second.
const PIECE_BYTES: u64 = 1 << 20;
const PIECE_BYTES_MIN: u64 = 4 << 10;

const NS_PER_S: u64 = 1_000_000_000;

/// How often a waiting copy asks whether it may go on.
const STEP_NS: u64 = NS_PER_S / 10;

/// Keeps to a number of bytes a second.
pub(super) struct CopyPace<'a> {
    clock: Arc<dyn Clock>,
    bytes_per_second: u64,
    /// The time at which the next byte may be copied.
    next_ns: u64,
    /// Whether the copy may go on.
    check: &'a dyn Fn() -> Result<()>,
}

impl<'a> CopyPace<'a> {
    /// Makes a pace; 0 bytes a second: no limit.
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        bytes_per_second: u64,
        check: &'a dyn Fn() -> Result<()>,
    ) -> CopyPace<'a> {
        let next_ns = clock.monotonic_ns();
        CopyPace { clock, bytes_per_second, next_ns, check }
    }

    /// Returns the most bytes that may be copied at a time.
    pub(super) fn piece_bytes(&self) -> u64 {
        match self.bytes_per_second {
            0 => PIECE_BYTES,
            rate => (rate / 10).clamp(PIECE_BYTES_MIN, PIECE_BYTES),
        }
    }

    /// Waits until this number of bytes may be copied.
    ///
    /// # Errors
    /// The error that ends the copy, if it may not go on.
    pub(super) fn wait_for(&mut self, bytes: u64) -> Result<()> {
        (self.check)()?;
        if self.bytes_per_second == 0 {
            return Ok(());
        }
        loop {
            let now_ns = self.clock.monotonic_ns();
            let wait_ns = self.next_ns.saturating_sub(now_ns);
            if wait_ns == 0 {
                let takes_ns =
                    u128::from(bytes) * u128::from(NS_PER_S) / u128::from(self.bytes_per_second);
                // A copy does not catch up for time in which it copied nothing.
                self.next_ns = now_ns.saturating_add(u64::try_from(takes_ns).unwrap_or(u64::MAX));
                return Ok(());
            }
            self.clock.sleep_ns(wait_ns.min(STEP_NS));
            (self.check)()?;
        }
    }
}
