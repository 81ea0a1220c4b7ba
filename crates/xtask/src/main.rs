//! `cargo run -p windrow-xtask -- tidy|docs`: the checks of the library by
//! hand, and the rewriting of generated pages.

use std::process::ExitCode;
use windrow_xtask::{CHECKS, docs, root};

const USAGE: &str = "usage: cargo run -p windrow-xtask -- tidy|docs\n\n\
                     tidy  run every check of the workspace on itself (cargo test does too)\n\
                     docs  rewrite the generated pages under docs/";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["docs"] => rewrite(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
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
