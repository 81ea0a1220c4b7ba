//! The benchmarks of `windrow bench` and of `windrow paper` on Windrow and its
//! peers in turn.

use windrow_bench_peers::ENGINES;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let code = match args.split_first() {
        Some((first, rest)) if first == "paper" => windrow_bench::paper(&ENGINES, rest),
        _ => windrow_bench::run(&ENGINES, &[], &args),
    };
    std::process::exit(code);
}
