//! When something expires, as clients say it.
//!
//! Owns: units, beginnings, and what is no time. Never does: write.

use super::call::{int, is};
use crate::fault::{Outcome, fail};

/// How a number says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) ms: i64,
    /// It counts from 1970, not from now.
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
    /// The unit that an option names: `EX`, `PX`, `EXAT`, `PXAT`.
    pub(crate) fn of_option(arg: &[u8]) -> Option<Unit> {
        [("EX", SECONDS), ("PX", MILLISECONDS), ("EXAT", AT_SECONDS), ("PXAT", AT_MILLISECONDS)]
            .into_iter()
            .find_map(|(word, unit)| is(arg, word).then_some(unit))
    }

    /// The moment that `number` says, in milliseconds since 1970; negative ones are before.
    ///
    /// # Errors
    /// That it is no integer, or more than there is room for.
    pub(crate) fn moment(self, number: &[u8], now_ms: u64, command: &str) -> Outcome<i64> {
        let begin_ms = if self.is_absolute { 0 } else { i64::try_from(now_ms).unwrap_or(i64::MAX) };
        let moment = int(number)?.checked_mul(self.ms).and_then(|ms| ms.checked_add(begin_ms));
        moment.map_or_else(|| invalid(command), Ok)
    }

    /// The same, for a command that takes nothing that is not after 1970 or now.
    ///
    /// # Errors
    /// As [`Unit::moment`], and that it is not.
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
