//! Mutants: the engine with one of its safeguards taken out, so that the
//! harnesses can show that they would notice.
//!
//! A mutant that leaves out one statement is a hook in the source,
//! `unless_mutant!(Name, statement);`. Any other is a patch in
//! `crates/sim/mutants` that adds wrong code, which asks `mutant!(Name)`. The hunt
//! applies all patches to a copy of the source: one build has every mutant, and one
//! of them is active at a time. Without the feature `mutants`, which nothing turns on
//! but the harness's own, the macros are constants and the table is not compiled.
//!
//! (Rewriting the source mutant by mutant, as general tools do, was rejected:
//! each would be a build of minutes, and none of them would know which promise
//! it breaks. `mutant!` in the source's own conditions was rejected, too: it
//! hampered reading exactly where reading matters.)
//!
//! Owns: the table, and which mutant is active. Never does: decide which harness must notice it
//! (`sim` does).

#[cfg(feature = "mutants")]
mod table;

#[cfg(feature = "mutants")]
pub use active::{is, set};
#[cfg(feature = "mutants")]
pub use table::{Mutant, MutantRow, TABLE};

/// Whether the named mutant is active: never, without the
/// feature `mutants`. For patches: the source itself has `unless_mutant!` alone.
#[cfg(feature = "mutants")]
#[macro_export]
macro_rules! mutant {
    ($name:ident) => {
        $crate::mutants::is($crate::mutants::Mutant::$name)
    };
}

/// Whether the named mutant is active: never, without the
/// feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[macro_export]
macro_rules! mutant {
    ($name:ident) => {
        $crate::mutants::NONE
    };
}

/// Does the work, unless the named mutant is active. A statement of its own.
#[macro_export]
macro_rules! unless_mutant {
    ($name:ident, $work:expr) => {
        if !$crate::mutant!($name) {
            $work;
        }
    };
}

/// The value of `mutant!` without the feature.
#[cfg(not(feature = "mutants"))]
pub const NONE: bool = false;

#[cfg(feature = "mutants")]
mod active {
    use super::Mutant;
    use core::sync::atomic::{AtomicU32, Ordering};

    /// The number of the active mutant, 0 for none. Of the whole process, since
    /// a harness shares its cases out over threads of its own.
    static ACTIVE: AtomicU32 = AtomicU32::new(0);

    /// Makes a mutant, or none, active.
    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.store(mutant.map_or(0, |mutant| mutant as u32), Ordering::SeqCst);
    }

    /// Whether the mutant is active.
    pub fn is(mutant: Mutant) -> bool {
        ACTIVE.load(Ordering::Relaxed) == mutant as u32
    }
}

#[cfg(all(test, not(feature = "mutants")))]
mod tests {
    #[test]
    fn an_ordinary_build_has_no_mutants() {
        let mut done = false;
        unless_mutant!(AnyName, done = true);
        assert!(done && !mutant!(AnyName));
    }
}
