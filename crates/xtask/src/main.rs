//! The program of the workspace's checks, reports and generated pages:
//! `cargo run -p windrow-xtask -- COMMAND`. `USAGE` describes each command.
//!
//! Owns: the command line: its commands, their arguments, and the exit code.
//! Never does: check anything itself; the library does.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use windrow_xtask::repeat::{self, Plan};
use windrow_xtask::{
    CHECKS, assertions, circles, coverage, docs, mutants, path, readme, root, same,
};

const USAGE: &str = "usage: cargo run -p windrow-xtask -- \
                     tidy|circles|assertions|path|docs|readme|repeat|coverage|same|mutants [...]\n\n\
                     tidy [CHECK]...\n\
                     \x20     run every check of the workspace on itself, or these (cargo test does too)\n\
                     circles [CRATE]...\n\
                     \x20     print which files of a crate (engine, plan, ...) need each other, for\n\
                     \x20     what, and which types have methods in more than two files\n\
                     assertions [PART]...\n\
                     \x20     print how many assertions there are for each function, and which\n\
                     \x20     invariants (I1 ...) are checked in which files; or, of the files\n\
                     \x20     with PART in their path, the functions with steps that assert nothing\n\
                     path [put|get]...\n\
                     \x20     print which functions of the engine a put or a get passes, by file\n\
                     docs  rewrite the generated pages under docs/\n\
                     readme [--all] [PAGE]...\n\
                     \x20     run the commands of README.md, docs/guide and docs/program.md, or of the\n\
                     \x20     pages with PAGE in their path; with --all also those that take long\n\
                     repeat [--times 50] [--jobs 1] [--filter TEXT]... [--package NAME]...\n\
                     \x20     run every test binary many times, by turns next to threads that take\n\
                     \x20     all cores and on one core; TEXT is a part of `crate binary`, as in the table\n\
                     coverage [PACKAGE]...\n\
                     \x20     run the tests, instrumented, and print which share of the lines of\n\
                     \x20     the engine's crates, format, plan and env they run\n\
                     same REVISION [--seeds 10000]\n\
                     \x20     run seeds of the crash harness with the engine of that revision and\n\
                     \x20     with this one, and name those that do not do the same\n\
                     mutants [--check|--refresh|ARGUMENT...]\n\
                     \x20     build the engine with all mutants and hunt them (`mutants --help` has the\n\
                     \x20     arguments); --check: see that it compiles; --refresh: write the patches\n\
                     \x20     again, where lines around them have changed";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy", ref names @ ..] => tidy(names),
        ["circles", ref crates @ ..] => ended(circles::print(&root(), crates)),
        ["assertions", ref parts @ ..] => ended(assertions::print(&root(), parts)),
        ["path", ref calls @ ..] => ended(path::print(&root(), calls)),
        ["docs"] => rewrite(),
        ["readme", ref rest @ ..] => planned(readme::Plan::parse(rest), readme::run),
        ["repeat", ref rest @ ..] => planned(Plan::parse(rest), repeat::run),
        ["same", ref rest @ ..] => planned(same::Plan::parse(rest), same::run),
        ["mutants", ref rest @ ..] => planned(mutants::Plan::parse(rest), mutants::run),
        ["coverage", ref packages @ ..] => ended(coverage::run(&root(), packages)),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs a plan, if its arguments were understood.
fn planned<P>(
    plan: Result<P, String>,
    run: impl FnOnce(&Path, &P) -> Result<bool, Box<dyn Error>>,
) -> ExitCode {
    match plan {
        Ok(plan) => ended(run(&root(), &plan)),
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Returns the exit code of a run that passed, failed, or could not start.
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

fn tidy(names: &[&str]) -> ExitCode {
    if let Some(unknown) = names.iter().find(|name| CHECKS.iter().all(|(known, _)| known != *name))
    {
        let known: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no check `{unknown}`; there are {}", known.join(", "));
        return ExitCode::from(2);
    }
    let mut clean = true;
    for (name, check) in CHECKS.iter().filter(|(name, _)| names.is_empty() || names.contains(name))
    {
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
