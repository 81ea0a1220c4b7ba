//! The thin end of fuzzing: libFuzzer in front of the targets of
//! `windrow_sim::fuzz`, which are plain functions that `cargo test` runs too.
//!
//! `fuzz/run.sh` builds and runs all of them; `cargo fuzz run -s none TARGET`
//! works as well, where cargo-fuzz is installed.

pub use libfuzzer_sys;
pub use peak_alloc;
pub use windrow_server;
pub use windrow_sim;

/// A fuzzer of the target of this name, its memory counted and bounded.
#[macro_export]
macro_rules! fuzz {
    ($name:literal) => {
        #[global_allocator]
        static MEMORY: $crate::peak_alloc::PeakAlloc = $crate::peak_alloc::PeakAlloc;

        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            let target = $crate::windrow_sim::fuzz::target($name).expect("a target of this name");
            target.check(input, &MEMORY);
        });
    };
}

/// A fuzzer of a function of [`windrow_server::testing`].
#[macro_export]
macro_rules! fuzz_server {
    ($name:ident) => {
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            $crate::windrow_server::testing::$name(input);
        });
    };
}
