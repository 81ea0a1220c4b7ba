//! The circles and spread types that are tolerated.
//!
//! Owns: the list. It may only get shorter: an entry that nothing needs fails the check. Never
//! does: look for circles.

/// A tolerated circle or type of a crate.
#[derive(Debug)]
pub(super) enum Allowed {
    /// These files, all of a circle, sorted, from the crate's `src`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the list has none"))]
    Circle(&'static [&'static str]),
    /// The type of this name, wherever its methods are.
    #[cfg_attr(not(test), expect(dead_code, reason = "the list has none"))]
    Type(&'static str),
}

/// An exception, with its reason.
pub(super) struct Exception {
    pub(super) crate_dir: &'static str,
    pub(super) what: Allowed,
    pub(super) why: &'static str,
}

/// All exceptions: none.
pub(super) const ALLOWED: &[Exception] = &[];
