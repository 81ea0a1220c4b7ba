//! The dial between writes and reads: what a file over a point is worth.
//!
//! Files over a point cost reads, and merging costs writes. The *price* of a file is how many
//! bytes may be rewritten, per byte put, so that one file less lies over a point. From it follow:
//!
//! - *k*, the flushes that a partition of level 0 gathers. Each job rewrites the partition's part
//!   of level 1, so that C bytes of level 1 are rewritten for k flushes: C/k for each
//!   byte flushed. On average (k-1)/2 flushes lie over a point. The sum `C/k + price (k-1)/2` is
//!   least at `k = sqrt(2 C / price)`, with C in flushes. So no k is right for every
//!   tree: level 1 holds from half a memtable to seventeen of them.
//! - *The SST-log's share* of its level. Twice the log puts twice as many files over a point, and
//!   each further file saves fewer of the writes to the next level.
//!
//! Both stay within the *ceiling of space*: the bytes above the last level may shadow as many bytes
//! of it. Capacities are a part of the ceiling already, the SST-logs get the rest
//! (`pick/sst_log.rs`), and in a tree of one level k keeps to it.
//!
//! The constants were found in the lab, over data of 6 to 400 memtables (docs/lab.md).
//!
//! Owns: k, the share of the SST-logs and the ceiling of space. Never does: measure reads or
//! writes.

use crate::view::PlanSettings;
use windrow_base::debug_invariant;

/// Fewest and most flushes that a partition gathers. With one, level 1 is rewritten for each
/// flush; with more than eight, a read meets more of level 0 than of all else.
const GATHERED: (f64, f64) = (2.0, 8.0);
/// Level 1 counts as at least this number of flushes. With less in it, its jobs are so cheap that
/// `C/k` would have k at its least, and flushes would go down before several are gathered: where
/// updates cluster in 3 % of the keys, 1.04 bytes written per byte for .92 of `leveled`.
pub(crate) const LEVEL1_FLUSHES_MIN: f64 = 6.0;
/// In a tree of one level a file costs this part of its price: a read meets few in any case.
const ONE_LEVEL_PART: f64 = 0.5;
/// An SST-log's share of its level's capacity at a price of 1.
const LOG_SHARE: f64 = 1.9;
/// The largest share. More saves next to nothing.
const LOG_SHARE_MAX: f64 = 8.0;

/// A price of a file over a point, and the values that follow from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dial(f64);

impl Dial {
    /// The dial that the settings ask for. A price below a hundredth counts as one.
    pub(crate) fn of(settings: &PlanSettings) -> Dial {
        Dial(f64::from(settings.file_price_percent.max(1)) / 100.0)
    }

    /// Returns k for a level 1 of `level1_flushes` flushes. `is_last`: no level is below it.
    pub(crate) fn gathered(self, level1_flushes: f64, is_last: bool) -> f64 {
        let price = if is_last { self.0 * ONE_LEVEL_PART } else { self.0 };
        let best = libm::sqrt(2.0 * level1_flushes.max(LEVEL1_FLUSHES_MIN) / price);
        debug_invariant!(S1, best.is_finite(), "{best} flushes are to be gathered");
        best.clamp(GATHERED.0, GATHERED.1)
    }

    /// Bytes of an SST-log over the capacity of its level.
    pub(crate) fn log_share(self) -> f64 {
        (LOG_SHARE / self.0).min(LOG_SHARE_MAX)
    }
}

/// Returns how many bytes may lie above a last level of `last_bytes`, by the ceiling of space.
pub(crate) fn room(settings: &PlanSettings, last_bytes: u64) -> f64 {
    match settings.space_max_percent {
        0 => f64::INFINITY,
        percent => last_bytes as f64 * f64::from(percent.max(100) - 100) / 100.0,
    }
}
