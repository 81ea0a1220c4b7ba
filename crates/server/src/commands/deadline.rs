//! Expiry times in the forms that clients send.
//!
//! Owns: units, their origins, and the test of a valid time. Never does: write.

use super::call::{int, is};
use crate::fault::{Outcome, fail};

/// The form of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) ms: i64,
    /// Whether it counts from 1970, not from now.
    pub(crate) is_absolute: bool,
}

/// Seconds from now.
pub(crate) const SECONDS: Unit = Unit { ms: 1000, is_absolute: false };
/// Milliseconds from now.
pub(crate) const MILLISECONDS: Unit = Unit { ms: 1, is_absolute: false };
/// Seconds since 1970.
pub(crate) const AT_SECONDS: Unit = Unit { ms: 1000, is_absolute: true };
/// Milliseconds since 1970.
pub(crate) const AT_MILLISECONDS: Unit = Unit { ms: 1, is_absolute: true };

impl Unit {
    /// Returns the unit that an option names: `EX`, `PX`, `EXAT`, `PXAT`.
    pub(crate) fn of_option(arg: &[u8]) -> Option<Unit> {
        [("EX", SECONDS), ("PX", MILLISECONDS), ("EXAT", AT_SECONDS), ("PXAT", AT_MILLISECONDS)]
            .into_iter()
            .find_map(|(word, unit)| is(arg, word).then_some(unit))
    }

    /// Returns the moment of `number`, in milliseconds since 1970; negative ones are before.
    ///
    /// # Errors
    /// A text that is no integer, or an integer out of range.
    pub(crate) fn moment(self, number: &[u8], now_ms: u64, command: &str) -> Outcome<i64> {
        let begin_ms = if self.is_absolute { 0 } else { i64::try_from(now_ms).unwrap_or(i64::MAX) };
        let moment = int(number)?.checked_mul(self.ms).and_then(|ms| ms.checked_add(begin_ms));
        moment.map_or_else(|| invalid(command), Ok)
    }

    /// Returns the moment, for a command that takes only numbers above 0 and moments after 1970.
    ///
    /// # Errors
    /// As [`Unit::moment`], and any other number.
    pub(crate) fn deadline_ms(self, number: &[u8], now_ms: u64, command: &str) -> Outcome<u64> {
        if int(number)? <= 0 {
            return invalid(command);
        }
        u64::try_from(self.moment(number, now_ms, command)?).or_else(|_| invalid(command))
    }
}

fn invalid<T>(command: &str) -> Outcome<T> {
    fail(format!("ERR invalid expire time in '{command}' command"))
}
