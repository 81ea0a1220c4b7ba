//! `windrow-bench`: the benchmark on Windrow alone. `windrow-bench-peers` has it on other
//! engines, too.

use windrow_bench::store::windrow::ENGINE;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(windrow_bench::run(&[ENGINE], &args));
}
