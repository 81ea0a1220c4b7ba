//! `bench` and `paper`: the door to the benchmark crate, which has its own arguments,
//! output and errors. Ctrl-C ends it as it ends any program.

use crate::args::BenchArgs;
use crate::failure::{Failure, Result};

/// Runs the benchmark crate's command of this name.
pub(crate) fn run(name: &str, args: BenchArgs) -> Result<()> {
    let args: Vec<String> = args
        .args
        .into_iter()
        .map(|arg| arg.into_string())
        .collect::<Result<_, _>>()
        .map_err(|arg| Failure::usage(format!("{name}: {} is not UTF-8", arg.display())))?;
    let engines = [windrow_bench::store::windrow::ENGINE];
    let code = match name {
        "paper" => windrow_bench::paper(&engines, &args),
        _ => windrow_bench::run(&engines, &["bench"], &args),
    };
    match code {
        0 => Ok(()),
        code => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
    }
}
