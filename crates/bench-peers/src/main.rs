//! The benchmarks of `windrow bench` on Windrow and its peers in turn.
//!
//! Owns: the peers' adapters. Never a default member of the workspace: it
//! builds RocksDB's C++.

mod rocksdb;

use windrow_bench::store::windrow::ENGINE as WINDROW;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(windrow_bench::run(&[WINDROW, rocksdb::ENGINE], &[], &args));
}
