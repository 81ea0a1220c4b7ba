//! The benchmarks of `windrow-bench`, the papers' experiments among them, on Windrow and its peers
//! in turn.
//!
//! Owns: nothing: it hands the engines and the arguments to the library. Never does: measure.

use windrow_bench_peers::ENGINES;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(windrow_bench::run(&ENGINES, &args));
}
