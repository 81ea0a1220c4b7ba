//! `windrow-bench`: the benchmark on Windrow alone. `windrow-bench-peers` runs it on other engines,
//! too.
//!
//! Owns: nothing: it hands the engine and the arguments to the library. Never does: measure.

use windrow_bench::store::windrow::ENGINE;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(windrow_bench::run(&[ENGINE], &args));
}
