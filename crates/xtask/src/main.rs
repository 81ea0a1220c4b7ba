//! `cargo run -p windrow-xtask -- tidy|docs|repeat|coverage`: the checks of the
//! library by hand, the rewriting of generated pages, every test many times, and
//! which lines the tests run.

use std::error::Error;
use std::process::ExitCode;
use windrow_xtask::repeat::{self, Plan};
use windrow_xtask::{CHECKS, coverage, docs, root};

const USAGE: &str = "usage: cargo run -p windrow-xtask -- tidy|docs|repeat|coverage [...]\n\n\
                     tidy  run every check of the workspace on itself (cargo test does too)\n\
                     docs  rewrite the generated pages under docs/\n\
                     repeat [--times 50] [--filter TEXT] [--package NAME]...\n\
                     \x20     run every test binary many times, by turns beside threads that take\n\
                     \x20     all cores and on one core; TEXT is a part of `crate binary`, as in the table\n\
                     coverage [PACKAGE]...\n\
                     \x20     run the tests, instrumented, and print which share of the lines of\n\
                     \x20     engine, format, plan and env they run";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["docs"] => rewrite(),
        ["repeat", ref rest @ ..] => repeat_tests(rest),
        ["coverage", ref packages @ ..] => ended(coverage::run(&root(), packages)),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn repeat_tests(arguments: &[&str]) -> ExitCode {
    let plan = match Plan::parse(arguments) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    ended(repeat::run(&root(), &plan))
}

/// The exit code of what passed, did not, or could not be run.
fn ended(result: Result<bool, Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn tidy() -> ExitCode {
    let mut clean = true;
    for (name, check) in CHECKS {
        match check(&root()) {
            Ok(findings) if findings.is_empty() => println!("{name}: ok"),
            Ok(findings) => {
                clean = false;
                findings.iter().for_each(|finding| println!("{name}: {finding}"));
            }
            Err(error) => {
                clean = false;
                println!("{name}: cannot check: {error}");
            }
        }
    }
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rewrite() -> ExitCode {
    match docs::write(&root()) {
        Ok(written) => {
            written.iter().for_each(|path| println!("wrote {path}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
