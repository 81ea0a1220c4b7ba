//! Tests of the crates below that open a whole database, which those crates cannot.
//!
//! Each file is named for the one that it tests.

mod gaps;
