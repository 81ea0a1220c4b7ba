//! Assertions of what Windrow promises itself: the invariants I1 to I10 of the tree,
//! Q1 to Q4 of the commit queue, the rules R1 to R16 of durability and the lesser ones
//! of the policies (S1, F1 to F3, H1), by their names in ARCHITECTURE.md.
//!
//! - [`invariant!`](crate::invariant!) is checked in every build, where that costs
//!   nothing per key. In the background, and under a slot of the commit queue, the
//!   panic turns writing off.
//! - [`check_invariant!`](crate::check_invariant!) is the same in a function that
//!   returns a `Result`: it returns [`ErrorKind::Internal`].
//! - [`debug_invariant!`](crate::debug_invariant!) is checked in debug builds alone:
//!   for each key or entry, and where a broken one only costs (filter memory F1 to
//!   F3, hotness H1).
//!
//! Owns: the form of the message, by which a panic is known to be one of these. Never does: check
//! data from disk (that is `Corruption`) or arguments of a caller (`InvalidArgument`).

use crate::error::{Error, ErrorKind};
use alloc::string::String;
use core::fmt::Arguments;

/// The beginning of the message of each of them.
const BEGINS: &str = "Windrow contradicts itself (";

/// Makes the message of a broken invariant.
#[doc(hidden)]
#[cold]
pub fn message(name: &str, what: Arguments<'_>) -> String {
    alloc::format!("{BEGINS}{name}): {what}; this is a defect of Windrow: please report it")
}

/// Whether a panic's text is that of a broken invariant.
pub fn is_message(text: &str) -> bool {
    text.starts_with(BEGINS)
}

#[doc(hidden)]
#[cold]
#[inline(never)]
#[track_caller]
pub fn broken(name: &str, what: Arguments<'_>) -> ! {
    panic!("{}", message(name, what))
}

impl Error {
    /// Returns the error of a fault that Windrow made just now, and that does not come from disk:
    /// [`ErrorKind::Internal`] in the place of [`ErrorKind::Corruption`].
    #[must_use]
    pub fn of_our_making(self) -> Error {
        match self.kind() {
            ErrorKind::Corruption => {
                let text = message("I1 to I4", format_args!("{}", self.message()));
                Error::new(ErrorKind::Internal, text)
            }
            _ => self,
        }
    }
}

/// Panics unless the condition holds. `invariant!(I2, a != b, "two tables are {a}")`.
#[macro_export]
macro_rules! invariant {
    ($name:ident, $holds:expr, $($what:tt)+) => {
        if !$holds {
            $crate::invariant::broken(stringify!($name), format_args!($($what)+));
        }
    };
}

/// Returns an error of kind `Internal` unless the condition holds.
#[macro_export]
macro_rules! check_invariant {
    ($name:ident, $holds:expr, $($what:tt)+) => {
        if !$holds {
            let text = $crate::invariant::message(stringify!($name), format_args!($($what)+));
            return Err($crate::Error::new($crate::ErrorKind::Internal, text));
        }
    };
}

/// Panics unless the condition holds, in debug builds.
#[macro_export]
macro_rules! debug_invariant {
    ($name:ident, $holds:expr, $($what:tt)+) => {
        if cfg!(debug_assertions) {
            $crate::invariant!($name, $holds, $($what)+);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;
    use std::panic::catch_unwind;

    fn halved(number: u32) -> Result<u32> {
        check_invariant!(I2, number.is_multiple_of(2), "{number} is odd");
        Ok(number / 2)
    }

    #[test]
    fn a_broken_one_says_that_it_is_our_defect() {
        assert_eq!(halved(4).unwrap(), 2);
        let error = halved(3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        let text = "Windrow contradicts itself (I2): 3 is odd; \
                    this is a defect of Windrow: please report it";
        assert_eq!(error.message(), text);

        let made = Error::corruption("tables 1 and 2 overlap").of_our_making();
        assert_eq!(made.kind(), ErrorKind::Internal);
        assert!(made.message().contains("tables 1 and 2 overlap; this is a defect of Windrow"));
        let other = Error::new(ErrorKind::NoSpace, "full").of_our_making();
        assert_eq!((other.kind(), other.message()), (ErrorKind::NoSpace, "full"));

        let panic = catch_unwind(|| invariant!(I2, 1 + 1 == 3, "{} is odd", 3)).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), text);
        assert!(is_message(text) && !is_message("index out of bounds"));
        invariant!(I2, 1 + 1 == 2, "never");
        debug_invariant!(I2, 1 + 1 == 2, "never");
    }
}
